"""What can be wrong with a table: each a clear refusal that names column and row, and no value."""

import datetime as dt
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import microagg
import mixed
from microagg import InputError

SECRET = "tell-tale"


def of(values, **others):
    return pa.table({"x": values, "y": list(range(len(values))), **others})


def refused(frame, columns=("x",), k=2, **settings):
    if isinstance(frame, pa.Table) and "y" in frame.column_names and "y" not in columns:
        settings = {"known": ["y"], **settings}
    with pytest.raises(InputError) as caught:
        mixed.protected(frame, k=k, columns=list(columns), **settings)
    words = str(caught.value)
    assert SECRET not in words
    assert words.count(". ") >= 1  # the rule and the fact, then the way out
    return words


CASES = {
    "a level that was not declared": (
        of(["a", "b", SECRET, "a"]),
        {"kinds": {"x": ["a", "b"]}},
        ["'x'", "row 3", "levels"],
    ),
    "a hole in a hierarchy": (
        of(["a1", "b1", "a1", SECRET]),
        {"kinds": {"x": {"kind": "hierarchy", "parents": {"a1": "A", "b1": "B"}}}},
        ["'x'", "row 4", "Add it with its parent"],
    ),
    "a negative weight": (
        of([1, 2, 3], w=[1, -77, 2]),
        {"weight": "w"},
        ["'w'", "row 2", "above 0"],
    ),
    "a missing weight": (
        of([1, 2, 3], w=[1, 2, None]),
        {"weight": "w"},
        ["'w'", "row 3", "missing"],
    ),
    "an infinite weight": (
        of([1, 2, 3], w=[1, np.inf, 2]),
        {"weight": "w"},
        ["'w'", "row 2", "infinite"],
    ),
    "a weight of text": (of([1, 2], w=["a", SECRET]), {"weight": "w"}, ["'w'", "text"]),
    "a missing stratum": (
        of([1, 2, 3], s=["a", None, "a"]),
        {"strata": ["s"]},
        ["'s'", "row 2", "unknown"],
    ),
    "a broken relation": (
        of([1, 2, 3, 4], a=[1, 2, 3, 4], b=[2, 4, 6, 9]),
        {"columns": ("x", "a", "b"), "relations": ["x + a = b"]},
        ["x + a = b", "row 4", "1 record"],
    ),
    "an infinite value": (of([1.0, 2.0, np.inf]), {}, ["'x'", "row 3", "infinite"]),
    "a fraction": (of([1.0, 2.5, 3.0]), {"kinds": {"x": "integer"}}, ["'x'", "row 2", "fraction"]),
    "three truth values": (
        of(["y", "n", "n", SECRET]),
        {"kinds": {"x": "boolean"}},
        ["'x'", "has 3", "row 4", "Say nominal"],
    ),
    "a text among dates": (
        of(["2024-01-01", "2024-01-03", SECRET]),
        {"kinds": {"x": "date"}},
        ["'x'", "row 3", "no date"],
    ),
    "dates in several ways": (
        of(["2024-01-01", "03.01.2024"]),
        {"kinds": {"x": "date"}},
        ["'x'", "several ways"],
    ),
    "no date at all": (of(["", " "]), {"kinds": {"x": "date"}}, ["'x'", "without a single value"]),
    "numbers as dates": (of([1, 2]), {"kinds": {"x": "date"}}, ["'x'", "numbers"]),
    "text without an order": (of(["a", SECRET]), {"kinds": {"x": "ordinal"}}, ["'x'", "order"]),
    "text among numbers": (of(["1", "2", "3", SECRET]), {}, ["'x'", "row 4"]),
    "no rows": (of([]), {}, ["this one has none"]),
    "missing by the policy error": (
        of([1, None, 3]),
        {"missing": "error"},
        ["'x'", "row 2", "missing"],
    ),
    "all dropped": (
        of([1, None], z=[None, 2]),
        {"columns": ("x", "z"), "missing": "drop"},
        ["every record"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_names_column_and_row(case):
    frame, settings, told = CASES[case]
    words = refused(frame, **settings)
    for fact in told:
        assert fact in words


def test_a_stratum_under_k_is_named_with_its_size():
    table = of([1] * 7, s=["north"] * 3 + ["south"] * 2 + ["east"] * 2)
    words = refused(table, k=3, strata=["s"])
    assert "'s' = 'east' has 2, and 1 more stratum" in words
    units = of([1] * 6, s=["north"] * 3 + ["south"] * 3, u=[1, 2, 3, 1, 1, 2])
    assert "'s' = 'south' has 2" in refused(units, k=3, strata=["s"], unit="u")


def test_one_small_stratum_alone_cannot_be_merged():
    words = refused(of([1, 2], s=["a", "a"]), k=3, strata={"columns": ["s"], "small": "merge"})
    assert "has 2" in words


def test_too_many_values_blanked_gives_figures_of_every_policy():
    words = refused(
        of([1, None, 3, None, 5, 6], z=[1, 2, None, None, 5, 6]), columns=("x", "z"), k=3
    )
    for policy in ("majority", "fill", "drop", "most ="):
        assert policy in words
    assert "of 12 values" in words


STRANGE = {
    "lists": of([[1], [2]]),
    "records": of([{"a": 1}, {"a": 2}]),
    "lists of polars": pl.DataFrame({"x": [[1], [2]]}),
    "maps": of(pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64()))),
    "complex numbers": pd.DataFrame({"x": [1 + 2j, 2, 3]}),
    "mixed objects": pd.DataFrame({"x": [1, SECRET, 3]}),
    "objects": pd.DataFrame({"x": [object(), object()]}),
    "objects of polars": pl.DataFrame({"x": pl.Series([object(), 3], dtype=pl.Object)}),
    "binary": of([b"a", b"b"]),
    "binary of one length": of(pa.array([b"a", b"b"], pa.binary(1))),
    "nulls": of(pa.nulls(3)),
    "nulls of polars": pl.DataFrame({"x": [None, None]}),
    "nothing but None": pd.DataFrame({"x": [None, None]}, dtype=object),
    "months and days": of(pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval())),
    "intervals": pd.DataFrame({"x": pd.arrays.IntervalArray.from_breaks([1, 2, 3])}),
    "periods": pd.DataFrame({"x": pd.period_range("2024-01", periods=2, freq="M")}),
}


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("kind", [None, *mixed.KINDS])
def test_columns_of_other_types_are_refused_by_name_whatever_the_kind(strange, kind):
    words = refused(STRANGE[strange], kinds={} if kind is None else {"x": kind})
    assert "'x'" in words


ORDINARY = {
    "text": of(["a", "b", "c", "a"]),
    "numbers in text": of(["1", "2", "3x", "77"]),
    "empty text": of(["", "", "", ""]),
    "truth": of([True, False, True, None]),
    "days": of([dt.date(2024, 1, day) for day in (1, 2, 3, 4)]),
    "infinite": of([1.0, 2.0, np.inf, 4.0]),
    "whole": of([1, 2, 2, 4]),
    "missing numbers": pd.DataFrame({"x": [np.nan] * 4}),
    "beyond doubles": of(pa.array([2**63 + 5, 2**64 - 1, 1, 2], pa.uint64())),
    "nines": of(pa.array([Decimal("9" * 38)] * 4, pa.decimal128(38, 0))),
    "long spans": of(pa.array([2**62, -(2**62), 1, 2], pa.duration("ns"))),
    "numeric categories": pd.DataFrame(
        {"x": pd.Categorical([1, 2, 5, 2], [5, 2, 1], ordered=True)}
    ),
}


@pytest.mark.parametrize(
    ("ordinary", "kind"), list(itertools.product(ORDINARY, [None, *mixed.KINDS]))
)
def test_a_table_is_protected_or_refused_never_anything_else(ordinary, kind):
    for more in ({}, {"round": "nearest"}, {"missing": "fill"}):
        try:
            release = mixed.protected(
                ORDINARY[ordinary],
                k=2,
                columns=["x"],
                kinds={} if kind is None else {"x": kind},
                **more,
            )
        except InputError:
            continue
        assert min(release.parts[0].partition.sizes) >= 2


def test_more_than_there_are_records_is_said_before_all_else():
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 4.0]})
    with pytest.raises(InputError, match="k=50 needs at least 50 records; the table has 4"):
        microagg.protect(frame, k=50, columns=["x"])
