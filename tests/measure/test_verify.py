"""verify(): count in a file of any origin how many records share each combination."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import InputError
from microagg.formats.files import write_file
from microagg.formats.layouts import CsvFormat
from microagg.measure.verify import verify

TABLE = pa.table(
    {
        "age": [30, 30, 30, 64, 64, 64, 64],
        "pay": [1.5, 1.5, 1.5, 2.5, 2.5, 2.5, 3.5],
        "city": ["A", "A", "B", "B", "B", "B", "B"],
    }
)


@pytest.fixture(params=["csv", "parquet", "arrow"])
def path(request, tmp_path):
    return tmp_path / f"table.{request.param}"


@pytest.mark.parametrize(
    ("columns", "k", "combinations", "smallest", "below"),
    [
        (["age"], 3, 2, 3, 0),
        (["age"], 4, 2, 3, 3),
        (["age"], 5, 2, 3, 7),
        (["age", "pay"], 3, 3, 1, 1),
        (["age", "pay", "city"], 3, 4, 1, 4),
        (["city"], 2, 2, 2, 0),
        ("city", 3, 2, 2, 2),
        (None, 2, 3, 1, 1),
        (["pay"], 1, 3, 1, 0),
        (["age"], 100, 2, 3, 7),
    ],
)
def test_counts(path, columns, k, combinations, smallest, below):
    write_file(TABLE, path)
    found = verify(path, k, columns)
    assert found.holds is (below == 0)
    assert found.k == k
    assert found.records == 7
    assert (found.combinations, found.smallest, found.records_below_k) == (
        combinations,
        smallest,
        below,
    )


def test_the_path_may_be_text(path):
    write_file(TABLE, path)
    assert verify(str(path), 3, ["age"]).as_dict() == {
        "holds": True,
        "k": 3,
        "columns": ["age"],
        "records": 7,
        "combinations": 2,
        "smallest": 3,
        "records_below_k": 0,
        "unit": None,
        "left_out": {},
    }


def test_every_nan_is_one_value_and_missing_is_another(tmp_path):
    bits = [0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000]
    nans = np.array(bits, np.uint64).view(np.float64)
    column = pa.chunked_array([pa.array(nans), pa.array([None], pa.float64())])
    found = verify(pa.table({"x": column}), 1)
    assert (found.combinations, found.smallest) == (2, 1)


def test_values_that_differ_in_the_last_bit_are_two(path):
    write_file(pa.table({"x": [0.1, 0.1, 0.1 + 2**-56], "y": [1, 1, 1]}), path)
    assert verify(path, 2, ["x"]).records_below_k == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        pa.array([True, False, True, False]),
        pa.array([1, 2, 1, 2], pa.date32()),
        pa.array([1, 2, 1, 2], pa.timestamp("us", "UTC")),
        pa.array([1, 2, 1, 2], pa.decimal128(10, 2)),
        pa.array([1, 2, 1, 2], pa.float32()),
        pa.array([1, 2, 1, 2], pa.uint64()),
    ],
    ids=str,
)
def test_types_that_can_be_counted(path, values):
    write_file(pa.table({"x": values, "y": [1] * 4}), path)
    found = verify(path, 2, ["x"])
    assert (found.holds, found.combinations) == (True, 2)


@pytest.mark.parametrize("values", [[[1]] * 3 + [[2]], [{"a": 1}] * 3 + [{"a": None}]])
def test_nested_values_are_counted(tmp_path, values):
    write_file(pa.table({"x": values}), tmp_path / "table.parquet")
    found = verify(tmp_path / "table.parquet", 2, ["x"])
    assert (found.combinations, found.smallest, found.records_below_k) == (2, 1, 1)


@pytest.mark.parametrize(
    ("values", "combinations"),
    [
        (["1", "1.0", "1e0"], 3),
        (["1", "1", "1"], 1),
        (["007", "7", "7.0"], 3),
        (["12345678901234567890", "12345678901234567891", "12345678901234567892"], 3),
        (["0.12345678901234567890", "0.12345678901234567891", "0.1234567890123456789"], 3),
        (["1.5", " 1.5", "1.50"], 3),
        (["", "NA", ""], 2),
    ],
)
def test_a_csv_file_is_counted_as_the_text_it_is(tmp_path, values, combinations):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "".join(f"{value},1\n" for value in values))
    assert verify(path, 1, ["x"]).combinations == combinations
    assert verify(path, 1, ["x", "y"]).combinations == combinations


def test_a_csv_file_with_its_own_format(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("x#y\né#1,5\né#1,5\né#1,5\n".encode("latin-1"))
    form = CsvFormat(delimiter="#", encoding="latin-1", decimal=",")
    found = verify(path, 3, csv=form)
    assert (found.columns, found.holds, found.left_out) == (["y"], True, {"x": "text"})


def test_decimals_and_large_integers_are_counted_exactly(tmp_path):
    path = tmp_path / "table.parquet"
    decimals = [decimal.Decimal(f"0.{'1' * 29}{digit}") for digit in "1123"]
    integers = pa.array([2**64 - 1, 2**64 - 1, 2**64 - 2, 2**64 - 3], pa.uint64())
    write_file(pa.table({"d": pa.array(decimals, pa.decimal128(31, 30)), "u": integers}), path)
    assert verify(path, 1, ["d"]).combinations == 3
    assert verify(path, 1, ["u"]).combinations == 3


# Columns that nobody named

ODD = {
    "age": [30, 30, 30],
    "note": ["x", "y", "z"],
    "pay": ["1.5", "1.5 EUR", "1.5"],
    "day": [dt.date(2024, 1, 1)] * 3,
    "old": [True, True, True],
}


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_columns_left_out_are_told_with_the_reason(make):
    found = verify(make(ODD), 3)
    assert found.columns == ["age"]
    assert found.left_out["note"] == "text"
    assert found.left_out["pay"] == "one odd cell in row 2"
    assert found.left_out["old"] == "truth values"
    assert list(found.left_out) == ["note", "pay", "day", "old"]
    assert found.as_dict()["left_out"] == found.left_out


def test_columns_left_out_of_a_csv_file_are_told(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,zip,c\n1,1,00123,5\n1,x,00124,\n1,2,00125,5\n")
    found = verify(path, 1)
    assert found.columns == ["a", "c"]
    assert found.left_out == {"b": "one odd cell in row 2", "zip": "text"}


def test_the_index_of_pandas_is_told(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"x": [1, 1]}, index=pd.Index([7, 8], name="id")).to_parquet(path)
    found = verify(path, 2)
    assert (found.columns, found.left_out) == (["x"], {"id": "the index of pandas"})


# Units

HOUSEHOLDS = {
    "age": [30, 30, 30, 64, 64, 64, 64],
    "hid": ["a", "a", "b", "c", "d", "e", "e"],
}


def with_missing(values):
    return {"age": [1] * len(values), "hid": values}


@pytest.mark.parametrize(
    ("data", "k", "smallest", "below"),
    [
        (HOUSEHOLDS, 2, 2, 0),
        (HOUSEHOLDS, 3, 2, 3),
        (HOUSEHOLDS, 4, 2, 7),
        (with_missing(["a", None, None, None]), 2, 2, 0),
        (with_missing(["a", None, None, None]), 3, 2, 4),
        (with_missing([None, None, None]), 2, 1, 3),
    ],
)
@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_units_are_counted_not_records(make, data, k, smallest, below):
    found = verify(make(data), k, ["age"], unit="hid")
    assert (found.smallest, found.records_below_k, found.holds) == (smallest, below, below == 0)
    assert found.unit == "hid"


def test_missing_units_of_a_csv_file_are_one_at_most_however_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("age,hid\n1,7\n1, 7 \n1,\n1,NA\n1,.\n")
    assert verify(path, 2, ["age"], unit="hid").smallest == 2


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, -0.0, 1.5, None, float("nan")]),
            st.sampled_from(["a", "b", None]),
            st.sampled_from([1, 2, 3, None]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 4),
)
def test_counts_equal_those_of_a_naive_twin(rows, k):
    x, y, unit = (list(column) for column in zip(*rows, strict=True))
    table = pa.table(
        {
            "x": pa.array(x, pa.float64()),
            "y": pa.array(y, pa.string()),
            "u": pa.array(unit, pa.int64()),
        }
    )
    groups: dict[tuple[object, object], list[object]] = {}
    for value, word, one in rows:
        key = "nan" if value is not None and value != value else value
        groups.setdefault((key, word), []).append(one)
    by_units = {key: len(set(members)) for key, members in groups.items()}
    found = verify(table, k, ["x", "y"], "u")
    assert found.combinations == len(groups)
    assert found.smallest == min(by_units.values())
    assert found.records_below_k == sum(len(groups[g]) for g, n in by_units.items() if n < k)
    alone = verify(table, k, ["x", "y"])
    assert alone.smallest == min(map(len, groups.values()))


# Frames


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({("a", 1): [1, 1, 2], ("a", 2): pd.Categorical(["x", "x", "y"])}),
        pd.DataFrame({0: pd.arrays.SparseArray([0, 0, 1]), 1: [decimal.Decimal("0.1")] * 3}),
        pl.DataFrame({"a": [1, 1, 2], "b": pl.Series(["x", "x", "y"], dtype=pl.Categorical)}),
        pa.table({"a": pc.run_end_encode(pa.array([1, 1, 2])), "b": [None, None, None]}),
    ],
    ids=["categories", "sparse", "polars", "runs"],
)
def test_frames_of_any_kind(frame):
    found = verify(frame, 2, list(frame.columns) if hasattr(frame, "iloc") else ["a", "b"])
    assert (found.combinations, found.smallest, found.records_below_k) == (2, 1, 1)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_half_a_surrogate_pair_is_a_clear_error(text):
    frame = pd.DataFrame({"x": pd.Series([text, "b"], dtype=object), "y": [1, 1]})
    with pytest.raises(
        InputError, match=r"column 'x' holds others \(text with half of a surrogate"
    ):
        verify(frame, 1, ["x"])
    assert verify(frame, 2, ["y"]).holds


@pytest.mark.parametrize(
    ("table", "k", "columns", "unit", "words"),
    [
        *((TABLE, k, ["age"], None, "whole number of at least 1") for k in (0, -1, 2.5, "3", None)),
        (TABLE, True, ["age"], None, "whole number of at least 1"),
        (TABLE.slice(0, 0), 3, ["age"], None, r"at least one record; .* has none"),
        (TABLE, 3, ["wage"], None, r"There is no column 'wage'; the table has 'age'"),
        (TABLE.select(["city"]), 3, None, None, "at least one numeric column"),
        (pa.table(HOUSEHOLDS), 2, ["hid"], "hid", "The unit 'hid' is what is counted"),
        (pa.table(HOUSEHOLDS), 2, ["age", "hid"], "hid", "The unit 'hid' is what is counted"),
        (pa.table(HOUSEHOLDS), 2, ["age"], "household", "There is no column 'household'"),
    ],
)
def test_what_cannot_be_counted_is_refused(path, table, k, columns, unit, words):
    write_file(table, path)
    with pytest.raises(InputError, match=words):
        verify(path, k, columns, unit=unit)
