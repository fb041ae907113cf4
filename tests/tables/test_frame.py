"""Frames of pandas, polars and pyarrow: the same type out, all else exactly as it was."""

import datetime as dt
import decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
from microagg import InputError, TableError
from microagg.formats.files import read_file
from microagg.tables.finite import check_finite
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import OddCells

# What is left in a table beside the protected columns is warned of; here it is what is looked at.
pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

AGE = [30, 61, 31, 66, 34, 65]
MEANS = [95 / 3, 64.0] * 3
ROUNDED = [32, 64] * 3


def protect(frame, columns=("age",), **settings):
    return microagg.protect(frame, k=3, columns=columns, **settings).data


def rich_pandas() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": ["a", None, "ü"] * 2,
            "age": AGE,
            "city": pd.Categorical(["B", "A", None] * 2, categories=["Z", "B", "A"], ordered=True),
            "day": pd.to_datetime(["2024-01-01", None] * 3),
            "zoned": pd.to_datetime(["2024-07-01 12:00"] * 6).tz_localize("Europe/Berlin"),
            "span": pd.to_timedelta([1, 2] * 3, unit="D"),
            "month": pd.PeriodIndex(["2024-01", "2024-02"] * 3, freq="M"),
            "flag": [True, False] * 3,
            "maybe": pd.array([True, None] * 3, dtype="boolean"),
            "big": np.array([2**64 - 1, 2**53 + 1] * 3, dtype=np.uint64),
            "whole": pd.array([2**53 + 1, None] * 3, dtype="Int64"),
            "share": np.array([0.1, np.nan] * 3, dtype=np.float32),
            "things": pd.Series([[1, 2], None, {"a": 1}] * 2, dtype=object),
            "arrow": pd.array(["x", None] * 3, dtype=pd.ArrowDtype(pa.string())),
        }
    )


def rich_polars() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "text": ["a", None, "ü"] * 2,
            "age": AGE,
            "city": pl.Series(["B", "A", None] * 2, dtype=pl.Categorical),
            "size": pl.Series(["S", "L"] * 3, dtype=pl.Enum(["S", "M", "L"])),
            "day": [dt.date(2024, 1, 1), None] * 3,
            "zoned": pl.Series([0, 1] * 3).cast(pl.Datetime("us", "Europe/Berlin")),
            "kids": [[1, 2], [], None] * 2,
            "home": [{"zip": "00123"}, None] * 3,
            "big": pl.Series([2**64 - 1, None] * 3, dtype=pl.UInt64),
            "paid": [decimal.Decimal("1.50"), None] * 3,
            "share": pl.Series([0.1, float("nan")] * 3, dtype=pl.Float32),
            "none": [None] * 6,
        }
    )


def rich_arrow() -> pa.Table:
    table = pa.table(
        {
            "text": pa.chunked_array([["a", None], ["ü"], ["a", None, "ü"]]),
            "age": pa.chunked_array([AGE[:4], [], AGE[4:]], pa.int64()),
            "city": pa.array(["B", "A", None] * 2).dictionary_encode(),
            "day": pa.array([dt.date(2024, 1, 1), None] * 3),
            "zoned": pa.array([0, None] * 3, pa.timestamp("ns", "Europe/Berlin")),
            "kids": pa.array([[1, 2], [], None] * 2),
            "big": pa.array([2**64 - 1, None] * 3, pa.uint64()),
            "paid": pa.array([decimal.Decimal("1.50"), None] * 3),
            "none": pa.nulls(6),
        }
    )
    fields = [
        field.with_metadata({"label": field.name}).with_nullable(field.name != "age")
        for field in table.schema
    ]
    return table.cast(pa.schema(fields, metadata={"survey": "2024"}))


# Same type, same order, same everything else


def test_pandas_keeps_all_else():
    frame = rich_pandas()
    frame.attrs["source"] = {"survey": "2024"}
    before = frame.copy(deep=True)
    safe = protect(frame)
    pd.testing.assert_frame_equal(safe, before.assign(age=MEANS))
    pd.testing.assert_frame_equal(frame, before)
    assert safe.attrs == {}  # a release has no metadata that it does not need
    assert frame.attrs == {"source": {"survey": "2024"}}


def test_polars_keeps_all_else():
    frame = rich_polars()
    before = frame.clone()
    safe = protect(frame)
    pl.testing.assert_frame_equal(safe, before.with_columns(age=pl.Series(MEANS)))
    pl.testing.assert_frame_equal(frame, before)


def test_pyarrow_keeps_all_else():
    table = rich_arrow()
    safe = protect(table)
    assert safe.drop_columns("age").equals(table.drop_columns("age"))
    assert safe["text"].num_chunks == 3
    assert safe["age"].to_pylist() == pytest.approx(MEANS)
    field = table.schema.field("age").with_type(pa.float64())
    assert safe.schema.field("age").equals(field)
    assert safe.schema.metadata is None  # a release has no metadata that it does not need
    assert {field.metadata for field in safe.schema} == {None}
    assert safe.column_names == table.column_names
    assert table.equals(rich_arrow(), check_metadata=True)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(list("zyxwvu"), name="person"),
        pd.Index([7, 7, 3, 3, 7, 1]),
        pd.MultiIndex.from_product([["a", "b"], [3, 1, 2]], names=["site", None]),
        pd.date_range("2024-01-01", periods=6, freq="D"),
    ],
    ids=["text", "repeated", "levels", "dates"],
)
@pytest.mark.filterwarnings("ignore:All or nearly all values differ in '.index.'")
def test_pandas_keeps_its_index(index):
    frame = pd.DataFrame({"age": AGE, "city": list("ABABBA")}, index=index)
    pd.testing.assert_frame_equal(protect(frame), frame.assign(age=MEANS))


@pytest.mark.parametrize(
    "names",
    [
        pd.Index([0, 1]),
        pd.Index([1.5, None]),
        pd.Index([dt.date(2024, 1, 1), ("a", "b")], tupleize_cols=False, name="what"),
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")], names=["top", None]),
        pd.Index(["", " "]),
    ],
    ids=["integers", "floats", "mixed", "levels", "blank"],
)
def test_pandas_keeps_names_of_any_kind(names):
    frame = pd.DataFrame({0: AGE, 1: list("ABABBA")})
    frame.columns = names
    safe = protect(frame, columns=[names[0]])
    pd.testing.assert_index_equal(safe.columns, names)
    assert safe.iloc[:, 0].tolist() == pytest.approx(MEANS)
    assert safe.iloc[:, 1].tolist() == list("ABABBA")
    assert frame.iloc[:, 0].tolist() == AGE


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_pandas_with_odd_names_can_be_written(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    frame = pd.DataFrame({("a", 1): AGE, ("a", 2): AGE, ("b", 1): list("ABABBA")})
    found = microagg.protect(frame, k=3).write(path)
    assert found.holds
    assert read_file(path).table.column_names == ["('a', '1')", "('a', '2')", "('b', '1')"]
    assert found.columns == ["('a', '1')", "('a', '2')", "('b', '1')"]


def test_the_original_may_change_after_the_release():
    frame = pd.DataFrame({"age": AGE, "city": list("ABABBA")})
    safe = protect(frame)
    frame.loc[0, "age"] = 99
    assert safe["age"].tolist() == pytest.approx(MEANS)


# Types of the protected columns

# Means of integers are doubles; those of floats and of decimals keep their type.
PANDAS_TYPES = {
    **dict.fromkeys(["int8", "uint8", "int16", "int32", "int64", "uint64"], "float64"),
    **dict.fromkeys(["Sparse[int64]", "category"], "float64"),
    **dict.fromkeys(["Int8", "UInt16", "Int64", "UInt64"], "Float64"),
    **dict.fromkeys(["int8[pyarrow]", "int64[pyarrow]", "uint64[pyarrow]"], "double[pyarrow]"),
    **{kind: kind for kind in ("float16", "float32", "float64", "Float32", "Float64")},
    **{kind: kind for kind in ("float[pyarrow]", "double[pyarrow]")},
    "Sparse[float32]": "float32",
    pd.ArrowDtype(pa.decimal128(21, 2)): pd.ArrowDtype(pa.decimal128(21, 2)),
}
POLARS_TYPES = {
    **dict.fromkeys([pl.Int8, pl.UInt8, pl.Int32, pl.Int64, pl.UInt64, pl.Int128], pl.Float64),
    **{kind: kind for kind in (pl.Float32, pl.Float64, pl.Decimal(10, 2))},
}
ARROW_TYPES = {
    **dict.fromkeys([pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()], pa.float64()),
    **{kind: kind for kind in (pa.float16(), pa.float32(), pa.float64())},
    **{kind: kind for kind in (pa.decimal32(6, 2), pa.decimal64(10, 2))},
    **{kind: kind for kind in (pa.decimal128(10, 2), pa.decimal256(40, 2))},
}


def in_pandas(kind):
    return pd.DataFrame({"age": AGE}).astype(kind)


def in_polars(kind):
    return pl.DataFrame({"age": AGE}).cast(kind)


def in_arrow(kind):
    return pa.table({"age": pa.array(AGE, pa.float64()).cast(kind)})


def type_of(frame):
    return frame.schema.field("age").type if isinstance(frame, pa.Table) else frame["age"].dtype


CASES = [
    *((in_pandas, kind, mean) for kind, mean in PANDAS_TYPES.items()),
    *((in_polars, kind, mean) for kind, mean in POLARS_TYPES.items()),
    *((in_arrow, kind, mean) for kind, mean in ARROW_TYPES.items()),
]


@pytest.mark.parametrize(("make", "kind", "mean_kind"), CASES)
def test_means_keep_the_width_of_floats_and_make_doubles_of_integers(make, kind, mean_kind):
    safe = protect(make(kind))
    assert type_of(safe) == type_of(make(mean_kind))
    values = Frame(safe).values("age")
    assert values == pytest.approx(MEANS, rel=1e-3)
    assert len(np.unique(values)) == 2


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make, kind)
        for make, kind, _ in CASES
        if "int" in str(kind).lower() and not str(kind).startswith("Sparse")
    ],
)
def test_rounding_keeps_the_type_of_integers(make, kind):
    safe = protect(make(kind), round=True)
    dense = "int64" if kind == "Sparse[int64]" else kind  # few of the values are zero by then
    assert type_of(safe) == type_of(make(dense))
    assert Frame(safe).values("age").tolist() == ROUNDED


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_rounding_holds_at_the_ends_of_a_type(make, kind):
    low, high = np.iinfo(kind).min, min(np.iinfo(kind).max, 2**53)
    low = max(low, -(2**53))
    values = np.array([low, low, low + 1, high, high, high - 1], dtype=kind)
    safe = protect(make({"age": values}), round=True)
    assert Frame(safe).values("age").tolist() == [low] * 3 + [high] * 3


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_integers_beyond_exact_doubles_are_averaged_but_not_rounded(make):
    frame = make({"age": np.array([2**60 + a for a in AGE])})
    values = Frame(protect(frame)).values("age")
    assert values == pytest.approx([2.0**60] * 6)
    with pytest.raises(InputError, match=r"up to 2\^53; column 'age' has larger ones.*unrounded"):
        protect(frame, round=True)


# Numbers however they are stored


def encoded(values: pa.Array) -> list[tuple[str, object]]:
    """The same column of numbers in every way in which a library may store it."""
    chunks = pa.chunked_array([values.slice(0, 2), values.slice(2)])
    dictionary, runs = chunks.dictionary_encode(), pc.run_end_encode(values)
    both = [
        ("pyarrow dictionary", pa.table({"age": dictionary})),
        ("pyarrow runs", pa.table({"age": runs})),
    ]
    for name, column in (("dictionary", dictionary), ("runs", pa.chunked_array([runs]))):
        series = pd.Series(pd.arrays.ArrowExtensionArray(column))
        both.append((f"pandas {name}", pd.DataFrame({"age": series})))
    return both


ENCODED = [
    (name, frame, kind)
    for kind in (pa.int16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(8, 2))
    for name, frame in encoded(pa.array(AGE).cast(pa.float64()).cast(kind))
]


@pytest.mark.parametrize(
    ("frame", "kind"), [case[1:] for case in ENCODED], ids=[f"{c[0]} {c[2]}" for c in ENCODED]
)
def test_encoded_numbers_are_protected_and_come_out_plain(frame, kind):
    assert Frame(frame).is_numeric("age")
    assert Frame(frame).values("age").tolist() == AGE
    assert Frame(frame).is_integer("age") == pa.types.is_integer(kind)
    safe = protect(frame)
    expected = pa.float64() if pa.types.is_integer(kind) else kind
    stored = type_of(safe)
    assert getattr(stored, "pyarrow_dtype", stored) == expected
    assert Frame(safe).values("age") == pytest.approx(MEANS, abs=0.005)
    if pa.types.is_integer(kind):
        whole = type_of(protect(frame, round=True))
        assert getattr(whole, "pyarrow_dtype", whole) == kind


def test_decimals_are_released_in_their_type_rounded_to_its_scale():
    values = [decimal.Decimal(a) / 4 for a in AGE]
    expected = [decimal.Decimal("7.92" if a < 50 else "16.00") for a in AGE]
    kind = pa.decimal128(10, 2)
    in_pandas = protect(pd.DataFrame({"age": pd.Series(values, dtype=pd.ArrowDtype(kind))}))
    assert in_pandas["age"].tolist() == expected
    as_objects = protect(pd.DataFrame({"age": values}))
    assert as_objects["age"].dtype == object
    assert as_objects["age"].tolist() == expected
    assert protect(pa.table({"age": pa.array(values, kind)}))["age"].to_pylist() == expected
    in_polars = protect(pl.DataFrame({"age": pl.Series(values, dtype=pl.Decimal(10, 2))}))
    assert in_polars["age"].to_list() == expected


@given(st.lists(st.decimals(-(10**12), 10**12, places=4), min_size=1, max_size=20))
def test_decimals_become_the_nearest_doubles(values):
    kind = pa.decimal128(20, 4)
    nearest = [float(value) for value in values]
    series = pl.Series(values, dtype=pl.Decimal(20, 4))
    for frame in (pa.table({"x": pa.array(values, kind)}), pl.DataFrame({"x": series})):
        assert Frame(frame).values("x").tolist() == nearest


def test_a_decimal_that_does_not_fit_its_type_is_a_clear_error():
    largest = decimal.Decimal("9" * 30)  # its double is 10^30, which has a digit more
    frame = pa.table({"age": pa.array([largest] * 6, pa.decimal128(30, 0))})
    with pytest.raises(InputError, match=r"must fit its type.*decimal128\(30, 0\).*more digits"):
        protect(frame)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_nan_stands_for_missing_when_columns_are_replaced(make):
    frame = make({"a": [1.5, 2.5], "b": ["x", "y"]})
    given = Frame(frame)
    new = given.with_columns({"a": given.numbers_like("a", np.array([1.0, np.nan]))})
    assert Frame(new).arrow_column("a").to_pylist() == [1.0, None]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_wide_frames_keep_their_order(make):
    names = [
        f"c{j}" for j in range(400)
    ]  # pandas warns of more than 100 that are put in one by one
    frame = make({name: [float(j), 1.0] for j, name in enumerate(names)})
    wide = Frame(frame)
    new = {name: wide.numbers_like(name, wide.values(name) + 0.5) for name in names[::2]}
    again = Frame(wide.with_columns(new))
    assert again.names == names
    assert [again.values(name)[0] for name in names] == [j + 0.5 * (j % 2 == 0) for j in range(400)]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_reading_a_column_does_not_list_all_names(make, monkeypatch):
    wide = Frame(make({f"c{j}": [float(j), 1.0] for j in range(30)}))
    listed = []
    names = nw.DataFrame.columns
    monkeypatch.setattr(
        nw.DataFrame, "columns", property(lambda frame: listed.append(1) or names.fget(frame))
    )
    assert [wide.values(name)[0] for name in wide.names] == list(range(30))
    assert not listed


# Odd cells


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", "x", "4"], OddCells(2, 1)),
        (["1", "", "35", "NA", None], OddCells()),
        (["1", "", "3,5", "x", "7"], OddCells(2, 2, 1)),
        (["1,5", "2,5", "3", ""], OddCells(0, 2, 2)),
        (["1,5", "2,5", "x", "3,5"], OddCells(0, 4, 3)),
        (["1,234,567", "2", "3"], OddCells(0, 1)),
        (["1", *["2"] * 2000, "x"], OddCells(2001, 1)),
        (["123", "124", "125"], None),  # codes
        (["a", "b", "1"], None),
        (["", "", ""], None),
        ([1, 2, 3], None),
        ([True, False], None),
    ],
)
def test_odd_cells_are_found_by_row(make, cells, expected):
    assert Frame(make({"x": cells})).odd_numbers("x") == expected


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_decimal_comma_brings_its_hint_and_no_value(make):
    with pytest.raises(
        InputError, match=r"decimal commas, the first in row 1.*--decimal ,"
    ) as caught:
        Frame(make({"pay": ["1234,5", "1234,6", "7"]})).values("pay")
    assert "1234" not in str(caught.value)


# Hostile frames


@pytest.mark.parametrize(
    "notes",
    [b"no JSON", b"[1]", b'"text"', b'{"index_columns": 5}', b'{"columns": {}}', b"\xff", b"1"],
)
def test_odd_notes_of_pandas_are_refused(notes):
    table = pa.table({"age": AGE}).replace_schema_metadata({b"pandas": notes})
    with pytest.raises(TableError, match=r"What pandas notes .*is a JSON object.*replace_schema"):
        protect(table)


@pytest.mark.parametrize(
    "notes",
    [
        b"{}",
        b'{"columns": []}',
        b'{"columns": [1, {"name": "age"}, {"field_name": 5}], "index_columns": [{"kind": "range"}]}',
        b'{"columns": [{"field_name": "age"}], "index_columns": [null]}',
    ],
)
def test_incomplete_notes_of_pandas_do_no_harm(notes):
    table = pa.table({"age": AGE}).replace_schema_metadata({b"pandas": notes})
    assert protect(table)["age"].to_pylist() == pytest.approx(MEANS)


# What cannot be protected

DAYS = [dt.date(2024, 1, day) for day in range(1, 7)]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    ("values", "fact"),
    [
        (
            ["1", "2", "x", "4", "y", "6"],
            "holds text (2 odd cells, the first in row 3; the first rec",
        ),
        (["1", "2", "3", "4", "5", "6"], "holds numbers stored as text"),
        ([True, False] * 3, "holds truth values"),
        ([[1], [2]] * 3, "holds values of type "),
        ([None, 1.5, 2.5, None, 3.5, 4.5], "has 2, the first in row 1 (the first record is row 1)"),
        ([1, 2, 3, 4, None, 6], "has 1, the first in row 5 (the first record is row 1)"),
        ([1.0, 2.0, float("nan"), 4.0, 5.0, 6.0], "has 1, the first in row 3"),
        ([1.0, float("inf"), 3.0, 4.0, 5.0, 6.0], "has an infinite value, the first in row 2"),
        ([1.0, 2.0, 3.0, 4.0, 5.0, float("-inf")], "has an infinite value, the first in row 6"),
    ],
)
def test_what_is_no_number_is_refused_by_column_and_row(make, values, fact):
    refused(make({"age": AGE, "odd": values}), fact)


@pytest.mark.parametrize("row", [0, 3, 4, 9])
@pytest.mark.parametrize(("value", "fact"), [(np.inf, "an infinite value, "), (np.nan, "has 1, ")])
def test_the_first_value_that_is_not_finite_is_named(row, value, fact):
    values = np.arange(10.0)
    check_finite(values, "x")
    values[row] = value
    with pytest.raises(InputError, match=f"{fact}the first in row {row + 1} "):
        check_finite(values, "x")


@pytest.mark.filterwarnings("error")
def test_finite_values_may_sum_to_infinity():
    check_finite(np.full(3, 1.7e308), "x")


def refused(frame, fact):
    with pytest.raises(InputError) as caught:
        microagg.partition(frame, 2)
    message = str(caught.value)
    assert message.startswith("Columns to work on must h")
    assert "column 'odd'" in message
    assert fact in message
    ways_out = ("Leave it out", "Convert it", "Fill them", "Replace it")
    assert any(way in message for way in ways_out)


@pytest.mark.parametrize(
    ("make", "values", "fact"),
    [
        (pd.DataFrame, pd.Categorical(["a", "b"] * 3), "holds categories"),
        (pd.DataFrame, pd.to_datetime(DAYS), "holds dates or times"),
        (pd.DataFrame, pd.to_timedelta(range(6), unit="D"), "holds dates or times"),
        (pd.DataFrame, pd.period_range("2024-01", periods=6, freq="M"), "values of type period[M]"),
        (pd.DataFrame, pd.array([1, None] * 3, dtype="Int64"), "has 3, the first in row 2"),
        (pd.DataFrame, pd.array([True, None] * 3, dtype="boolean"), "holds truth values"),
        (
            pd.DataFrame,
            pd.Series([1, 2, 3, 4, 5, "x"], dtype=object),
            "values of type object (one odd cell in row 6",
        ),
        (
            pd.DataFrame,
            pd.Series([1, 2, 3, 4, 5, 6], dtype=object),
            "numbers stored as values of type object",
        ),
        (pd.DataFrame, pd.Categorical([1, 2, None] * 2), "has 2, the first in row 3"),
        (pd.DataFrame, pd.arrays.SparseArray([1.0, np.nan] * 3), "has 3, the first in row 2"),
        (pd.DataFrame, pd.Series([decimal.Decimal(1), None] * 3), "has 3, the first in row 2"),
        (pd.DataFrame, pd.Series([decimal.Decimal(1), "x"] * 3), "values of type object"),
        (pd.DataFrame, [1j] * 6, "values of type complex128"),
        (pl.DataFrame, pl.Series(["a", "b"] * 3, dtype=pl.Categorical), "holds categories"),
        (pl.DataFrame, pl.Series(DAYS), "holds dates or times"),
        (pl.DataFrame, pl.Series([{"a": 1}] * 6), "holds values of type Struct"),
        (pl.DataFrame, pl.Series([None] * 6), "values of type Null"),
        (pl.DataFrame, pl.Series([b"1"] * 5 + [b"x"]), "values of type Binary"),
        (pa.table, pa.array(["a", "b"] * 3).dictionary_encode(), "holds categories"),
        (pa.table, pa.array(DAYS), "holds dates or times"),
        (pa.table, pa.array(range(6), pa.time64("us")), "holds dates or times"),
        (pa.table, pa.nulls(6), "values of type null"),
    ],
)
def test_what_one_library_alone_has_is_refused_too(make, values, fact):
    refused(make({"age": AGE, "odd": values}), fact)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_an_empty_frame_is_refused(make):
    with pytest.raises(InputError, match="at least one record; this one has none"):
        protect(make({"age": np.array([], dtype=float)}))


def test_a_lazy_frame_is_refused():
    with pytest.raises(InputError, match=r"is lazy.*\.collect\(\)"):
        protect(pl.LazyFrame({"age": AGE}))


@pytest.mark.parametrize(
    "data", [np.array([AGE, AGE]).T, [AGE], {"age": AGE}, None, "table.csv", pd.Series(AGE)]
)
def test_what_is_no_frame_is_refused(data):
    kind = type(data).__name__
    with pytest.raises(InputError, match=rf"A data frame .* is needed; got {kind}.*partition"):
        protect(data)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]] * 6, columns=["a", "a"]),
        pa.table([AGE, AGE], names=["a", "a"]),
    ],
    ids=["pandas", "pyarrow"],
)
@pytest.mark.parametrize("work", [protect, lambda frame: microagg.partition(frame, k=3)])
def test_duplicate_names_are_refused(frame, work):
    with pytest.raises(InputError, match=r"Column names must differ.*'a' 2 times.*Rename"):
        work(frame)


# What cannot be written


def beside(values, make=pd.DataFrame):
    return make({"age": AGE, "odd": values})


NO_TYPE = "one type that files know; column 'odd' has not"
HALF = "text with half of a surrogate pair"
TWICE = "names in a file are text and must differ; .*'1', '1'"


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (beside(pd.Series([1, "a"] * 3, dtype=object)), NO_TYPE),
        (beside(pd.Series([2**70] * 6, dtype=object)), NO_TYPE),
        (beside(pd.Series([object] * 6, dtype=object)), NO_TYPE),
        (beside(pd.Series([1j] * 6)), NO_TYPE),
        (beside(pl.Series([pl] * 6, dtype=pl.Object), pl.DataFrame), NO_TYPE),
        (beside(pl.Series([1] * 6, dtype=pl.Int128), pl.DataFrame), NO_TYPE),
        (beside(pd.Series(["\ud800"] * 6, dtype=object)), HALF),
        (beside(AGE).set_axis(pd.Index(["age", "\ud800"], dtype=object), axis=1), HALF),
        (beside(AGE).set_axis(["age", 1], axis=1).assign(**{"1": "A"}), TWICE),
    ],
)
@pytest.mark.filterwarnings("ignore:The DataFrame has column names of mixed type")
def test_what_no_file_holds_is_refused_when_writing(tmp_path, frame, reason):
    release = microagg.protect(frame, k=3, columns=["age"])
    with pytest.raises(TableError, match=reason):
        release.write(tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_values_taken_of_a_column_of_objects_stay_objects():
    frame = Frame(pd.DataFrame({"sex": pd.Series(["f", None, "m"], dtype=object)}))
    assert frame.take("sex", np.array([2, 2, 0])).dtype == object
    found = frame.take("sex", np.array([2, -1, 0]))
    assert found.dtype == object
    assert found.isna().tolist() == [False, True, False]
