"""verify(): count in a file of any origin how many records share each combination."""

from __future__ import annotations

import pyarrow as pa
import pytest

from microagg import InputError, TableError
from microagg.tables.csv import CsvFormat
from microagg.tables.files import write_file
from microagg.verify import verify

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
    }


def test_minus_zero_and_zero_are_one_value(path):
    write_file(pa.table({"x": [0.0, -0.0, 0.0, 1.5, 1.5, 1.5]}), path)
    found = verify(path, 3)
    assert found.holds
    assert found.combinations == 2


def test_values_that_differ_in_the_last_bit_are_two(path):
    write_file(pa.table({"x": [0.1, 0.1, 0.1 + 2**-56], "y": [1, 1, 1]}), path)
    assert verify(path, 2, ["x"]).records_below_k == 1


def test_integers_that_no_double_tells_apart_are_two(path):
    write_file(pa.table({"x": [2**53, 2**53, 2**53 + 1], "y": [1, 1, 1]}), path)
    assert verify(path, 2, ["x"]).records_below_k == 1


def test_missing_values_are_one_value(path):
    write_file(pa.table({"x": [None, None, 1, 1, 1], "y": ["a"] * 5}), path)
    found = verify(path, 2, ["x"])
    assert found.holds
    assert (found.combinations, found.smallest) == (2, 2)


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


@pytest.mark.parametrize("values", [[[1]] * 3, [{"a": 1}] * 3])
def test_nested_values_are_refused(tmp_path, values):
    write_file(pa.table({"x": values}), tmp_path / "table.parquet")
    with pytest.raises(InputError, match=r"must hold numbers, text or dates; 'x' hold.*without"):
        verify(tmp_path / "table.parquet", 2, ["x"])


@pytest.mark.parametrize(
    ("text", "form", "columns"),
    [
        ("x;y\n1,50;a\n1,5;a\n 1,5 ;a\n", CsvFormat(decimal=","), ["x"]),
        ("x\ty\n1e1\ta\n10\ta\n10.0\ta\n", None, ["x"]),
        ("x#y\né#a\né#a\né#a\n", CsvFormat(delimiter="#", encoding="latin-1"), ["x", "y"]),
        ("x,y\n007,1\n7,1\n7.0,1\n", None, ["x"]),
    ],
)
def test_numbers_of_a_csv_file_count_by_value(tmp_path, text, form, columns):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(form.encoding if form and form.encoding else "utf-8"))
    found = verify(path, 3, columns, form)
    assert (found.holds, found.combinations, found.smallest) == (True, 1, 3)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", None, True])
def test_impossible_k(path, k):
    write_file(TABLE, path)
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        verify(path, k, ["age"])


def test_no_records(path):
    write_file(TABLE.slice(0, 0), path)
    with pytest.raises(InputError, match=r"at least one record; .* has none"):
        verify(path, 3, ["age"])


def test_an_unknown_column(path):
    write_file(TABLE, path)
    with pytest.raises(InputError, match=r"There is no column 'wage'; the table has 'age'"):
        verify(path, 3, ["wage"])


def test_no_numeric_column(path):
    write_file(TABLE.select(["city"]), path)
    with pytest.raises(InputError, match="at least one numeric column"):
        verify(path, 3)


def test_a_missing_file(path):
    with pytest.raises(TableError, match="There is no file"):
        verify(path, 3)
