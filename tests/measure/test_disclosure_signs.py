"""Units, identifiers and columns that follow from others, against naive twins and real tables."""

import math
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_measures as naive
from measure_mixed import plain_pair
from microagg.measure.disclosure_signs import determines, identifier, units_in_groups
from microagg.measure.known_columns import Known, known_columns
from microagg.tables.frame import Frame


def known(values, kind=None):
    """A column as it would come from a table; None is missing."""
    column = known_columns(Frame(pa.table({"x": pa.array(values)})), ["x"])["x"]
    return column if kind is None else Known(column.codes, kind)


def original(**columns):
    X = np.column_stack([np.asarray(values, float) for values in columns.values()])
    return plain_pair(list(columns), X, X)


# Units in groups


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 4))),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 5),
)
def test_units_in_groups_equal_the_naive_twin(rows, k):
    labels = np.unique([label for label, _ in rows], return_inverse=True)[1]
    values = [value for _, value in rows]
    found = units_in_groups(labels, known(pa.array(values, pa.int64())), k)
    assert (found.one_value, found.below_k) == naive.homogeneous(labels.tolist(), values, k)
    assert found.distinct == len(set(values) - {None})


def test_chance_is_that_of_all_permutations():
    labels, values = [0, 0, 0, 1, 1, 1, 1], ["a", "a", "a", "b", "b", None, "c"]
    drawn = [naive.homogeneous(labels, order, 3) for order in permutations(values)]
    expected = np.mean(drawn, axis=0)
    found = units_in_groups(np.array(labels), known(values), 3)
    assert found.one_value_by_chance == pytest.approx(expected[0], abs=0.01)
    assert found.below_k_by_chance == pytest.approx(expected[1], abs=0.01)


def test_chance_of_one_value_is_the_hypergeometric_one():
    values = np.repeat(np.arange(20), 50)
    labels = np.arange(1000) // 4
    expected = 20 * math.comb(50, 4) / math.comb(1000, 4)
    found = units_in_groups(labels, Known(values), 4)
    assert found.one_value_by_chance == pytest.approx(expected, abs=3e-4)
    assert found.one_value == 1 - 10 / 250  # each second household ends within a group


def test_what_chance_gives_does_not_depend_on_the_order_of_records():
    rng = np.random.default_rng(1)
    labels, homes = np.arange(300) // 5, rng.integers(0, 90, 300)
    rows = rng.permutation(300)
    renamed = rng.permutation(90)[homes]
    found = units_in_groups(labels, Known(homes), 4)
    assert units_in_groups(labels[rows], Known(renamed[rows]), 4) == found


def test_sex_region_and_measurements_are_no_units_but_firms_are():
    rng = np.random.default_rng(0)
    firms = np.repeat(np.arange(200), 12)  # a year of months each, in groups of three of one firm
    labels = np.arange(2400) // 3
    assert units_in_groups(labels, Known(firms, "whole"), 3).looks_like_unit
    assert units_in_groups(labels, Known(firms, "other"), 3).looks_like_unit
    assert not units_in_groups(labels, Known(firms, "real"), 3).looks_like_unit
    assert not units_in_groups(labels, Known(rng.permutation(firms)), 3).looks_like_unit
    regions, sexes = np.repeat(np.arange(8), 300), np.repeat([0, 1], 1200)
    for column in (regions, sexes):
        found = units_in_groups(labels, Known(column), 3)
        assert found.one_value == 1.0
        assert not found.looks_like_unit


def test_a_quantity_that_runs_along_with_the_groups_is_no_unit():
    ages = np.sort(np.random.default_rng(0).normal(45, 12, 2400).round())
    codes = np.unique(ages, return_inverse=True)[1]
    found = units_in_groups(np.arange(2400) // 3, Known(codes, "whole"), 3)
    assert found.one_value > 0.8
    assert found.below_k_by_chance < 0.25
    assert not found.looks_like_unit


def test_one_record_is_one_group():
    found = units_in_groups(np.array([0]), known([None], "other"), 2)
    assert (found.distinct, found.one_value, found.below_k) == (0, 1.0, 1.0)
    assert not found.looks_like_unit


# Identifiers


@pytest.mark.parametrize(
    ("values", "how"),
    [
        (list("abcd"), "distinct"),
        (["a", None, None, "b", None, None], "distinct"),
        ([0.25, 0.5, 0.75], "distinct"),
        (np.arange(100).astype("datetime64[D]"), "distinct"),
        ([*map(str, range(95)), *"wwwww"], "nearly distinct"),
        ([*range(95), 0, 1, 2, 3, 4], "nearly distinct"),
        ([str(i // 2) for i in range(60)], "repeats"),
        ([str(i // 2) for i in range(12)], None),  # six values may as well be a classification
        ([i // 2 for i in range(400)], "repeats"),
        ([i // 2 for i in range(60)], None),  # numbers of a small table
        ([i // 2 / 3 for i in range(400)], None),  # a measurement
        (np.arange(400).astype("datetime64[D]").repeat(2), None),
        ([*"mf"] * 50, None),
        (["a"], None),
        (["a", None], None),
        (pa.nulls(5), None),
    ],
)
def test_identifiers(values, how):
    found = identifier(known(values))
    assert found.how == how


def test_the_figures_of_an_identifier():
    found = identifier(known(["a", "b", None, "b", "c"]))
    assert (found.present, found.distinct) == (4, 3)


def test_a_whole_quantity_of_many_values_is_no_identifier():
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(1000), rng.integers(1, 5, 1000)))
    incomes = rng.lognormal(7, 0.4, len(ids)).round().astype(int)
    rounded = np.where(rng.random(len(ids)) < 0.3, incomes // 500 * 500, incomes)
    assert identifier(known(ids)).how == "repeats"
    for quantity in (incomes, rounded):
        found = identifier(known(quantity))
        assert found.distinct > len(ids) / 5  # as rare as the ids
        assert found.how is None


def test_a_missing_value_does_not_hide_a_numbered_identifier():
    ids = [i // 3 if i % 7 else None for i in range(900)]
    assert identifier(known(ids)).how == "repeats"


# Columns that follow from others


@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.integers(0, 6)),
        min_size=12,
        max_size=40,
    ).filter(lambda rows: len({a for a, _ in rows} - {None}) > 1 and len({b for _, b in rows}) > 1),
)
def test_rank_correlation_equals_the_naive_twin(rows):
    x, y = zip(*rows, strict=True)
    there = [a for a in x if a is not None]
    expected = naive.rank_correlation(x, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("microagg.measure.disclosure_signs._RANK_CORRELATION", 0.0)
        found = determines({"x": known(x)}, original(y=y))
    if len(there) < 10:
        assert found == []
    else:
        assert found[0].rank_correlation == pytest.approx(expected, abs=1e-12)
        assert found[0].records == len(there)


def found_pairs(columns, both):
    return [(found.known, found.protected) for found in determines(columns, both)]


def test_log_wage_beside_wage_and_birth_year_beside_age():
    rng = np.random.default_rng(0)
    wage, age = rng.lognormal(3, 1, 500), rng.integers(18, 65, 500)
    born = 2020 - age - rng.integers(0, 2, 500)
    columns = {
        "log wage": known(np.log(wage)),
        "missing in places": known([math.log(w) if w > 20 else None for w in wage]),
        "born": known(born),
        "nearly": known(wage * rng.lognormal(0, 0.3, 500)),
        "other": known(rng.normal(size=500)),
        "name of the wage": known([f"{w:.3f}" for w in wage]),
    }
    both = original(wage=wage, age=age)
    assert found_pairs(columns, both) == [
        ("log wage", "wage"),
        ("missing in places", "wage"),
        ("born", "age"),
    ]
    first, _, born = determines(columns, both)
    assert first.rank_correlation == pytest.approx(1.0, abs=1e-12)
    assert -1 < born.rank_correlation < -0.99
    assert not born.function


def test_a_code_that_many_records_share_and_a_value_follows_from():
    rng = np.random.default_rng(0)
    schools = rng.integers(0, 20, 600)
    pupils = rng.permutation(20)[schools] // 2
    columns = {
        "school": known([f"school {s}" for s in schools]),
        "number": known(schools),
        "sex": known(rng.integers(0, 2, 600)),
        "id": known([f"person {i}" for i in range(600)]),
    }
    found = determines(columns, original(pupils=pupils, constant=np.ones(600)))
    assert [(f.known, f.protected, f.function) for f in found] == [
        ("school", "pupils", True),
        ("number", "pupils", True),
    ]
    assert found[0].rank_correlation is None
    assert abs(found[1].rank_correlation) < 0.9
    schools[0] = (schools[0] + 1) % 20
    while pupils[schools == schools[0]].min() == pupils[schools == schools[0]].max():
        schools[0] = (schools[0] + 1) % 20
    assert determines({"school": known(list(map(str, schools)))}, original(pupils=pupils)) == []


def test_an_accident_is_no_function():
    values = np.zeros(200)
    values[:3] = 1.0  # three ones among 200: fifteen levels may well agree in them
    levels = np.r_[[0, 0, 0], np.arange(197) % 14 + 1]
    assert determines({"level": known(list(map(str, levels)))}, original(x=values)) == []


def test_constant_or_absent_values_tell_nothing():
    columns = {"constant": known(np.zeros(50)), "absent": known(pa.nulls(50, pa.float64()))}
    assert determines(columns, original(x=np.arange(50))) == []
    assert determines({}, original(x=np.arange(50))) == []
    assert determines({"x": known([1.0])}, original(x=[1.0])) == []
