"""What measures give at their edges: nothing to compare, one record, constant columns, limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import microagg
from microagg.encode.categories import nominal_encoder
from microagg.encode.inertia import LevelCounts
from microagg.evidence.usable import about_use, moved_figures
from microagg.measure.before_and_after import Summary, bars
from microagg.measure.both_tables import Pair
from microagg.measure.disclosure_signs import identifiers
from microagg.measure.known_columns import Known, as_in_file, known_risk
from microagg.measure.read_protected import protected_values
from microagg.measure.utility import utility_of
from microagg.plan.column import Column
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable, variable_of


def numbers(x, y):
    """A pair of one column of numbers, in which values may be missing."""
    x, y = np.array(x, dtype=float), np.array(y, dtype=float)
    return Pair([Variable("x", "number", x)], y[:, None])


def test_a_column_of_which_nothing_is_released_is_lost():
    found = utility_of(numbers([1, 2, 4], [np.nan] * 3))
    assert found.information_loss == pytest.approx(100)


@pytest.mark.parametrize("kind", ["number", "date"])
@pytest.mark.parametrize("blank", ["", " ", "NA", None])
def test_a_column_of_a_csv_file_that_was_blanked_throughout_is_text_without_values(kind, blank):
    values = [1.0, 2.5] if kind == "number" else ["2024-01-31", "2024-02-01"]
    before, after = (Frame(pa.table({"x": one})) for one in (values, [blank, blank]))
    if blank is None:
        after = Frame(pa.table({"x": pa.array([None, None], pa.string())}))
    found = protected_values(variable_of(before, "x", Column(kind)), before, after)
    assert np.isnan(found).all()


@pytest.mark.parametrize("value", [7.0, "x"])
def test_a_constant_column_is_as_close_as_can_be(value):
    frame = pd.DataFrame({"a": [1.0, 1.0, 2.0, 2.0], "b": [value] * 4})
    found = microagg.risk(frame, frame, ["a"], confidential=["b"]).diversity["b"]
    assert (found.t, found.distinct_l, found.agreement.records) == (0.0, 1, 0)


def test_the_unit_is_not_compared():
    frame = pd.DataFrame(
        {"x": [1.0, 1.0, 2.0, 2.0], "home": [1, 2, 3, 4], "w": [5.0, 5.0, 9.0, 9.0]}
    )
    found = microagg.risk(frame, frame, unit="home", weights="w")
    assert found.smallest_class == 2  # by home, each record would be alone
    assert found.individual.household is not None


def test_classes_of_one_two_and_three_records():
    both = numbers([1, 2, 2, 3, 3, 3], [1, 2, 2, 3, 3, 3])
    found = known_risk(both, {}, 3)
    assert found.smallest_class == 1
    assert (found.unique, found.below_k) == (1 / 6, 3 / 6)


def test_others_are_shown_if_they_are_k():
    codes = np.repeat([0, 1, 2], [6, 2, 1])
    assert bars([codes], [*"abc"], 3) == {"levels": ["a", "others"], "after": [6, 3]}
    assert bars([codes], [*"abc"], 4) == {
        "levels": ["others"],
        "after": [9],
    }  # three would be too few


def test_levels_that_have_no_name_are_others():
    """As of a hierarchy whose rare codes moved up: the original has no such code."""
    before, after = np.repeat([0, 1], [6, 4]), np.repeat([0, 2], [6, 4])
    assert bars([before, after], ["a", "b"], 3)["levels"] == ["a", "b", "others"]


def test_states_are_centred_with_an_inertia_of_n_less_one():
    often = np.array([5, 2, 1])
    points = nominal_encoder(len(often), LevelCounts(often, 8)).apply(np.arange(3.0))
    assert often @ points == pytest.approx(0)
    assert often @ np.square(points).sum(axis=1) == pytest.approx(often.sum() - 1)


def test_texts_number_values_and_leave_missing_ones_apart():
    column, text = Known(np.array([-1, 0, 0, 1]), "real"), Known(np.array([0, 1, 2, 3]))
    assert as_in_file(column, text).codes.tolist() == [-1, 0, 1, 2]


def test_measurements_may_differ_nearly_everywhere_and_names_may_not():
    nearly, all_differ = np.append(np.arange(19), 0), np.arange(20)
    found = identifiers(
        {
            "height": Known(nearly, "real"),
            "name": Known(nearly),
            "weight": Known(all_differ, "real"),
        }
    )
    assert {name: sign.how for name, sign in found.items()} == {
        "name": "nearly distinct",
        "weight": "distinct",
    }


def test_a_mean_near_zero_has_moved_only_if_the_column_shows_it():
    """A hundredth of a standard deviation is noise, however small the mean is."""
    assert moved_figures(Summary("a", mean=(0.0, 0.015), sd=(2.0, 2.0))) == []
    assert moved_figures(Summary("a", mean=(0.0, 0.025), sd=(2.0, 2.0))) == ["mean"]


def test_nearly_all_lost_is_all():
    def words(loss):
        return about_use({"a": loss}, [Summary("a")])[0].words

    assert "a (all of its information)" in words(99.6)
    assert "a (99.4 % of its information)" in words(99.4)
    assert "a (worse than the column's mean for everybody: drop it)" in words(113.0)


def test_one_infinite_value_of_the_protected_table_is_refused():
    before = pd.DataFrame({"x": [1.0, 2.0, 3.0], "w": [1.0, 2.0, 1.0]})
    after = before.assign(x=[1.0, np.inf, 3.0])
    with pytest.raises(microagg.InputError, match="infinite value, the first in row 2"):
        microagg.utility(before, after, ["x"], weights="w")


def test_groups_that_are_not_known_are_taken_to_be_equal_protected_rows():
    """By equal values of the category alone, all four records would be one group."""
    before = pd.DataFrame({"x": [1.0, 1.0, 9.0, 9.0], "c": [*"aabb"]})
    after = before.assign(c="a")
    found = microagg.utility(before, after, ["x", "c"])
    assert found.group_loss_by_column["c"] == 0.0
    assert found.by_column["c"] > 0
    alone = microagg.utility(before, after.assign(x=[1.0, 2.0, 8.0, 9.0]), ["x", "c"])
    assert alone.group_loss_by_column["c"] == pytest.approx(100)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%d %H:%M"])
def test_dates_that_did_not_change_lost_nothing(form):
    """Days are counted in days, times of a day in seconds."""
    times = pd.date_range("2024-01-01", periods=6, freq="37h").strftime(form)
    frame = pd.DataFrame({"t": times})
    found = microagg.utility(frame, frame, ["t"], kinds={"t": "date"})
    assert found.information_loss == 0.0
    later = pd.DataFrame({"t": times[[1, 1, 1, 4, 4, 4]]})
    assert 5 < microagg.utility(frame, later, ["t"], kinds={"t": "date"}).information_loss < 30


def test_categories_that_moved_to_other_levels():
    before = pd.DataFrame({"a": [*"xxyy"], "b": [*"uvuv"]})
    after = pd.DataFrame({"a": [*"xxxy"], "b": [*"uvuv"]})
    found = microagg.utility(before, after, ["a", "b"])
    assert found.changed == {"a": 0.25, "b": 0.0}
    gone = microagg.utility(before, after.assign(a=None), ["a", "b"])
    assert gone.changed["a"] == 0.0
