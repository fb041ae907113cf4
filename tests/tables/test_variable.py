"""Typed columns: kind, levels, values and codes for missing, against naive twins."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import InputError
from microagg.plan.column import Column
from microagg.tables.frame import Frame
from microagg.tables.variable import variable_of

LIBRARIES = {
    "pyarrow": lambda values: pa.table({"x": values}),
    "polars": lambda values: pl.DataFrame({"x": values}),
    "pandas": lambda values: pd.DataFrame(
        {"x": pd.Series(values, dtype="object")}
    ).convert_dtypes(),
}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "integer"),
        ([1.5, 2.0, None], "number"),
        ([True, None, False], "boolean"),
        (["a", "b", None], "nominal"),
        (["2024-01-31", None, "2024-02-01"], "date"),
        ([dt.datetime(2024, 1, 1), None], "date"),
        (["01234", "99999"], "nominal"),  # codes of one length
    ],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_type_tells_the_kind(library, values, kind):
    found = variable_of(Frame(LIBRARIES[library](values)), "x")
    assert found.kind == kind
    assert found.missing.tolist() == [value is None for value in values]


@pytest.mark.parametrize("library", LIBRARIES)
@given(values=st.lists(st.none() | st.sampled_from(["b", "a", "ä", "Z", "10", "9"]), min_size=1))
def test_levels_equal_their_naive_twin(library, values):
    if all(value is None or value.isdigit() for value in values):
        return
    found = variable_of(Frame(LIBRARIES[library](values)), "x", Column("nominal"))
    levels = sorted({value for value in values if value is not None})
    assert list(found.levels) == levels
    expected = [np.nan if value is None else levels.index(value) for value in values]
    assert np.array_equal(found.values, expected, equal_nan=True)
    assert found.rows.tolist() == [values.index(level) for level in levels]
    assert found.level_numbers.tolist() == [-1 if np.isnan(v) else int(v) for v in expected]


def test_a_declared_order_counts_levels_that_do_not_occur():
    setting = Column("ordinal", levels=("low", "middle", "high"))
    found = variable_of(Frame(pa.table({"x": ["high", "low", None]})), "x", setting)
    assert found.levels == ("low", "middle", "high")
    assert found.rows.tolist() == [1, -1, 0]
    assert np.array_equal(found.values, [2, 0, np.nan], equal_nan=True)


def test_an_ordered_type_has_its_own_order():
    frame = pd.DataFrame({"x": pd.Categorical(["b", "a", "b"], ["z", "b", "a"], ordered=True)})
    found = variable_of(Frame(frame), "x")
    assert (found.kind, found.levels) == ("ordinal", ("z", "b", "a"))  # also what does not occur
    assert found.values.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("values", "kind", "codes", "states"),
    [
        ([1, -8, None, -9], "integer", [-8, -9], [0, 2, 1, 3]),
        ([1.5, -8.0, None, 2.0], "number", [-8], [0, 2, 1, 0]),
        (["1", "refused", None, "2.5"], "number", ["refused"], [0, 2, 1, 0]),
        (["a", "?", None, "b"], "nominal", ["?", "-"], [0, 2, 1, 0]),
        (["2024-01-31", "never", None, "2024-02-01"], "date", ["never"], [0, 2, 1, 0]),
    ],
)
def test_codes_for_missing_have_states_of_their_own(values, kind, codes, states):
    found = variable_of(Frame(pa.table({"x": values})), "x", Column(kind), codes)
    assert found.states.tolist() == states
    assert found.missing.tolist() == [state != 0 for state in states]


def test_a_code_is_no_level():
    found = variable_of(Frame(pa.table({"x": ["a", "?", "b"]})), "x", Column("nominal"), ["?"])
    assert found.levels == ("a", "b")


def test_a_code_is_no_level_of_an_ordered_type():
    values = pd.Categorical(["b", "?", "a"], ["z", "b", "a", "?"], ordered=True)
    frame = Frame(pd.DataFrame({"x": values}))
    assert variable_of(frame, "x", None, ["?"]).levels == ("z", "b", "a")
    declared = Column("ordinal", levels=("z", "b", "a"))
    assert variable_of(frame, "x", declared, ["?"]).states.tolist() == [0, 2, 0]


def test_a_code_that_does_not_occur_changes_nothing():
    found = variable_of(Frame(pa.table({"x": [1, None, 3]})), "x", None, [-8])
    assert found.tags is None
    assert found.states.tolist() == [0, 1, 0]


def test_levels_match_numbers_and_texts():
    setting = Column("ordinal", levels=("3", "1", "2"))
    found = variable_of(Frame(pa.table({"x": [1, 2, 3]})), "x", setting)
    assert found.values.tolist() == [1, 2, 0]
    assert found.levels == (3, 1, 2)


def test_some_records_keep_all_levels():
    found = variable_of(Frame(pa.table({"x": ["a", "b", "c"]})), "x").take(np.array([2, 0]))
    assert found.levels == ("a", "b", "c")
    assert found.values.tolist() == [2, 0]


def test_a_long_column_of_odd_numbers_names_the_row():
    values = ["1", "2", "3", "x", "5"]
    with pytest.raises(InputError, match="row 4"):
        variable_of(Frame(pa.table({"x": values})), "x", Column("number"))
