"""Released columns keep their type, row order and index, in every library; values by a naive twin."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mixed
from microagg.releasing.release_values import _merged_strata

# Two clear groups of two and two missing values, in an order that is not theirs.
NEAR, FAR = (0, 2), (1, 4)
GONE = (3, 5)
DAYS = [
    dt.date(2024, 1, 1),
    dt.date(2024, 5, 1),
    dt.date(2024, 1, 5),
    None,
    dt.date(2024, 5, 3),
    None,
]
STAMPS = [None if day is None else dt.datetime(day.year, day.month, day.day, 7) for day in DAYS]
TEXTS = ["a", "b", "a", None, "b", None]
TRUTHS = [True, False, True, None, False, None]
WHOLE = [1, 50, 3, None, 60, None]
UNITS = ("s", "ms", "us", "ns")


def decimals(values):
    return [None if v is None else decimal.Decimal(v) for v in values]


def spans(values):
    return [None if v is None else dt.timedelta(seconds=v) for v in values]


ARROW = {
    "date32": pa.array(DAYS, pa.date32()),
    "date64": pa.array(DAYS, pa.date64()),
    **{f"timestamp {u}": pa.array(STAMPS, pa.timestamp(u)) for u in UNITS},
    **{f"zoned {u}": pa.array(STAMPS, pa.timestamp(u, "Europe/Vienna")) for u in UNITS},
    **{f"duration {u}": pa.array(WHOLE, pa.duration(u)) for u in UNITS},
    "time32": pa.array(WHOLE, pa.time32("s")),
    "time64": pa.array(WHOLE, pa.time64("ns")),
    "string": pa.array(TEXTS),
    "large string": pa.array(TEXTS, pa.large_string()),
    "string view": pa.array(TEXTS, pa.string_view()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "boolean": pa.array(TRUTHS),
    "float32": pa.array(WHOLE, pa.float32()),
    "float64": pa.array(WHOLE, pa.float64()),
    "decimal": pa.array(decimals(WHOLE), pa.decimal128(9, 2)),
}
POLARS = {
    "date": pl.Series(DAYS),
    **{f"timestamp {u}": pl.Series(STAMPS).cast(pl.Datetime(u)) for u in UNITS[1:]},
    **{
        f"zoned {u}": pl.Series(STAMPS).cast(pl.Datetime(u)).dt.replace_time_zone("Europe/Vienna")
        for u in UNITS[1:]
    },
    **{f"duration {u}": pl.Series(spans(WHOLE)).cast(pl.Duration(u)) for u in UNITS[1:]},
    "time": pl.Series([None if v is None else dt.time(0, 0, min(v, 59)) for v in WHOLE]),
    "string": pl.Series(TEXTS),
    "categorical": pl.Series(TEXTS, dtype=pl.Categorical),
    "enum": pl.Series(TEXTS, dtype=pl.Enum(["z", "b", "a"])),
    "boolean": pl.Series(TRUTHS),
    "float32": pl.Series(WHOLE, dtype=pl.Float32),
    "decimal": pl.Series(decimals(WHOLE), dtype=pl.Decimal(9, 2)),
}
PANDAS = {
    "objects of dates": pd.Series(DAYS, dtype=object),
    "arrow dates": pd.Series(pd.array(DAYS, dtype="date32[pyarrow]")),
    **{f"timestamp {u}": pd.Series(STAMPS).astype(f"datetime64[{u}]") for u in UNITS},
    **{
        f"zoned {u}": pd.Series(STAMPS).astype(f"datetime64[{u}]").dt.tz_localize("Europe/Vienna")
        for u in UNITS
    },
    **{f"duration {u}": pd.Series(spans(WHOLE)).astype(f"timedelta64[{u}]") for u in UNITS},
    "objects of text": pd.Series(TEXTS, dtype=object),
    "string": pd.Series(TEXTS, dtype="string"),
    "arrow string": pd.Series(pd.array(TEXTS, dtype=pd.ArrowDtype(pa.string()))),
    "categorical": pd.Series(pd.Categorical(TEXTS, ["z", "b", "a"])),
    "ordered": pd.Series(pd.Categorical(TEXTS, ["z", "b", "a"], ordered=True)),
    "boolean": pd.Series(TRUTHS, dtype="boolean"),
    "objects of truth": pd.Series(TRUTHS, dtype=object),
    "arrow boolean": pd.Series(pd.array(TRUTHS, dtype="bool[pyarrow]")),
    "float": pd.Series(WHOLE, dtype="float64"),
    "nullable float": pd.Series(WHOLE, dtype="Float32"),
    "decimals": pd.Series(decimals(WHOLE), dtype=object),
}


def checked(before, after):
    """Values of the two groups and the missing ones, as plain numbers or levels."""
    for rows in (NEAR, FAR):
        first, second = (after[row] for row in rows)
        assert first == second
        given = sorted(before[row] for row in rows)
        assert given[0] <= first <= given[1]
        if isinstance(first, str | bool | np.bool_):
            assert first == given[0]  # both are the same
        elif isinstance(first, dt.time):
            seconds = [60 * value.minute + value.second for value in (*given, first)]
            assert abs(sum(seconds[:2]) / 2 - seconds[2]) <= 0.5
        elif isinstance(first, dt.date):  # also times, of which a double may not have all digits
            middle = given[0] + (given[1] - given[0]) / 2
            assert abs(first - middle) <= dt.timedelta(days=0.5)
        else:
            assert first == given[0] + (given[1] - given[0]) / 2
    assert all(after[row] is None for row in GONE)


def plain(values):
    return [
        None if value is None or value is pd.NaT or value is pd.NA else value for value in values
    ]


@pytest.mark.parametrize("name", ARROW)
def test_arrow_types_are_kept(name):
    table = pa.table({"id": list("uvwxyz"), "x": ARROW[name]})
    data = mixed.protected(table, k=2, columns=["x"]).data
    assert data.schema == table.schema
    assert data["id"].to_pylist() == list("uvwxyz")
    checked(table["x"].to_pylist(), data["x"].to_pylist())


@pytest.mark.parametrize("name", POLARS)
def test_polars_types_are_kept(name):
    frame = pl.DataFrame({"id": list("uvwxyz"), "x": POLARS[name]})
    data = mixed.protected(frame, k=2, columns=["x"]).data
    assert data.schema == frame.schema
    assert data["id"].to_list() == list("uvwxyz")
    checked(frame["x"].to_list(), data["x"].to_list())


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_types_and_index_are_kept(name):
    frame = pd.DataFrame({"id": list("uvwxyz"), "x": PANDAS[name]})
    frame.index = pd.Index([9, 7, 5, 3, 1, 8], name="row")
    data = mixed.protected(frame, k=2, columns=["x"]).data
    kind = frame["x"].dtype
    if isinstance(
        kind, pd.CategoricalDtype
    ):  # of which those stay that are released, in their order
        there = set(data["x"].dropna())
        left = [value for value in kind.categories if value in there]
        kind = pd.CategoricalDtype(left, kind.ordered)
    assert data.dtypes.to_dict() == {**frame.dtypes.to_dict(), "x": kind}
    assert data.index.equals(frame.index)
    assert data.index.name == "row"
    assert data["id"].tolist() == list("uvwxyz")
    missing = data["x"].isna().tolist()
    assert [row for row, gone in enumerate(missing) if gone] == list(GONE)
    before = [None if g else v for v, g in zip(frame["x"], frame["x"].isna(), strict=True)]
    after = [None if g else v for v, g in zip(data["x"], missing, strict=True)]
    checked(before, after)


@pytest.mark.parametrize("rounding", ["nearest", "totals"])
@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"x": pa.array(WHOLE, pa.int16())}),
        pl.DataFrame({"x": WHOLE}, schema={"x": pl.UInt8}),
        pd.DataFrame({"x": pd.array(WHOLE, dtype="Int32")}),
        pd.DataFrame({"x": pd.array(WHOLE, dtype="int8[pyarrow]")}),
    ],
    ids=["arrow", "polars", "pandas", "pandas with arrow"],
)
@pytest.mark.parametrize("kinds", [{}, {"x": "number"}], ids=["by type", "number"])
def test_rounded_whole_numbers_keep_their_type(frame, rounding, kinds):
    data = mixed.protected(frame, k=2, columns=["x"], round=rounding, kinds=kinds).data
    column = data["x"]
    assert (column.type if isinstance(data, pa.Table) else column.dtype) == (
        frame["x"].type if isinstance(data, pa.Table) else frame["x"].dtype
    )
    values = plain(column.to_pylist() if isinstance(data, pa.Table) else list(column))
    assert [values[row] for row in (*NEAR, *FAR)] == [2, 2, 55, 55]
    assert [values[row] for row in GONE] == [None, None]


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]
)
@pytest.mark.parametrize("library", [pa.table, pl.DataFrame, pd.DataFrame])
def test_dates_in_text_are_written_as_they_were(form, library):
    texts = [stamp.strftime(form) for stamp in STAMPS if stamp is not None]
    texts = [*texts, (STAMPS[4] + dt.timedelta(days=20)).strftime(form)]
    data = mixed.protected(library({"x": texts}), k=2, columns=["x"]).data
    found = data["x"].to_pylist() if isinstance(data, pa.Table) else list(data["x"])
    assert found[0] == found[2] == dt.datetime(2024, 1, 3, 7).strftime(form)
    assert len(set(found)) == 2
    for text in found:
        assert dt.datetime.strptime(text, form).strftime(form) == text


def test_nanoseconds_of_decades_keep_all_that_a_double_has():
    base = pd.Timestamp("1990-01-01").value
    stamps = pa.array([base, base + 2, base + 10**18, base + 10**18 + 4096], pa.timestamp("ns"))
    data = mixed.protected(pa.table({"x": stamps}), k=2, columns=["x"]).data
    whole = data["x"].cast(pa.int64()).to_pylist()
    assert whole[0] == whole[1] == base + 1
    assert abs(whole[2] - (base + 10**18 + 2048)) <= 128


def test_what_is_counted_of_missing_values():
    from microagg.plan.plan import Plan
    from microagg.releasing.release_values import release_block
    from microagg.releasing.swap import ReleaseTerms
    from microagg.tables.frame import Frame
    from microagg.tables.variable import variable_of

    table = Frame(pa.table({"x": [1.0, None, 3.0, 8.0, None, -8.0]}))
    plan = Plan.of(k=3, columns=["x"], missing={"policy": "majority", "codes": {"x": [-8]}})
    variable = variable_of(table, "x", plan.column("x"), [-8])
    found = release_block(
        table,
        [variable],
        variable.states.reshape(-1, 1),
        np.array([0, 0, 0, 1, 1, 1]),
        ReleaseTerms(plan.blocks[0], plan),
    )
    cells = found.missing_counts["x"]
    assert (cells.missing, cells.blanked, cells.filled, cells.codes_lost) == (3, 1, 1, 1)
    assert found.columns["x"].to_pylist() == [2.0, 2.0, 2.0, None, None, None]


def test_merged_strata_are_released_as_most_of_the_group_have_them():
    frame = pd.DataFrame({"x": [1.0, 1, 1, 2, 9, 9, 9], "s": ["a", "a", "a", "b", "c", "c", "c"]})
    release = mixed.protected(
        frame, k=3, columns=["x"], strata={"columns": ["s"], "small": "merge"}
    )
    assert release.data["s"].tolist() == ["a", "a", "a", "a", "c", "c", "c"]


def test_merged_strata_release_one_that_k_units_hold():
    """The most frequent of the group that is held; else the largest of the table; else the group's own."""
    strata = np.array([0, 0, 1, 2, 2, 2, 3, 3, 1])
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert _merged_strata(strata, groups, 3, None).tolist() == [2] * 9  # only 2 is held by three
    found = _merged_strata(strata, groups, 2, None).tolist()
    assert found == [0] * 3 + [2] * 3 + [3] * 3
    units = np.zeros(9, dtype=np.int64)  # nothing is held by two units
    assert _merged_strata(strata, groups, 2, units).tolist() == [0] * 3 + [2] * 3 + [3] * 3
