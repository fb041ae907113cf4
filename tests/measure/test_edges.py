"""What measures give at their edges: nothing to compare, one record, constant columns, limits."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import microagg
from microagg.evidence.usable import about_use, moved_figures
from microagg.measure.before_and_after import Summary, bars
from microagg.measure.disclosure_signs import identifiers
from microagg.measure.known_columns import Known, as_in_file
from microagg.measure.read_protected import protected_values
from microagg.plan.column import Column
from microagg.tables.frame import Frame
from microagg.tables.variable import variable_of


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


def test_others_are_shown_if_they_are_k():
    codes = np.repeat([0, 1, 2], [6, 2, 1])
    assert bars([codes], [*"abc"], 3) == {"levels": ["a", "others"], "after": [6, 3]}
    # Three would be too few.
    assert bars([codes], [*"abc"], 4) == {"levels": ["others"], "after": [9]}


def test_levels_that_have_no_name_are_others():
    """As of a hierarchy whose rare codes moved up: the original has no such code."""
    before, after = np.repeat([0, 1], [6, 4]), np.repeat([0, 2], [6, 4])
    assert bars([before, after], ["a", "b"], 3)["levels"] == ["a", "b", "others"]


def test_texts_number_values_and_leave_missing_ones_apart():
    column, text = Known(np.array([-1, 0, 0, 1]), "real"), Known(np.array([0, 1, 2, 3]))
    assert as_in_file(column, text).codes.tolist() == [-1, 0, 1, 2]


def test_measurements_may_differ_nearly_everywhere_and_names_may_not():
    nearly, all_differ = np.append(np.arange(19), 0), np.arange(20)
    columns = {"height": Known(nearly, "real"), "name": Known(nearly)}
    found = identifiers({**columns, "weight": Known(all_differ, "real")})
    signs = {name: sign.how for name, sign in found.items()}
    assert signs == {"name": "nearly distinct", "weight": "distinct"}


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


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%d %H:%M"])
def test_dates_that_did_not_change_lost_nothing(form):
    """Days are counted in days, times of a day in seconds."""
    times = pd.date_range("2024-01-01", periods=6, freq="37h").strftime(form)
    frame = pd.DataFrame({"t": times})
    found = microagg.utility(frame, frame, ["t"], kinds={"t": "date"})
    assert found.information_loss == 0.0
    later = pd.DataFrame({"t": times[[1, 1, 1, 4, 4, 4]]})
    assert 5 < microagg.utility(frame, later, ["t"], kinds={"t": "date"}).information_loss < 30
