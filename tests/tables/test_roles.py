"""Which columns are protected, and which of the others give records away."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microagg
from microagg import DisclosureRiskWarning, InputError
from microagg.tables.frames import Frame
from microagg.tables.roles import choose_columns

N = 20
AGE = np.arange(N)
MAKERS = [pd.DataFrame, pl.DataFrame, pa.table]


@pytest.fixture(params=MAKERS, ids=["pandas", "polars", "pyarrow"])
def make(request):
    return request.param


def repeated(*values):
    return (list(values) * N)[:N]


# Which columns


def test_all_numeric_columns_by_default(make):
    frame = make(
        {
            "text": repeated("a", "b"),
            "int": AGE,
            "flag": repeated(True, False),
            "float": AGE / 3,
            "small": AGE.astype(np.int8),
        }
    )
    release = microagg.protect(frame, k=3)
    assert release.columns == ["int", "float", "small"]
    assert release.untouched == ["text", "flag"]


def test_a_numeric_column_with_missing_values_is_not_left_out_in_silence(make):
    frame = make({"a": AGE, "b": [None, *map(float, AGE[1:])]})
    with pytest.raises(InputError, match=r"column 'b' has 1, the first in row 1.*without this one"):
        microagg.protect(frame, k=3)


@pytest.mark.parametrize("columns", ["age", ["age"], ("age",), iter(["age"]), np.array(["age"])])
def test_ways_to_name_one_column(columns):
    frame = pa.table({"age": AGE, "a": repeated(1, 2), "g": repeated(1, 2), "e": repeated(1, 2)})
    release = microagg.protect(frame, k=3, columns=columns)
    assert release.columns == ["age"]
    assert release.untouched == ["a", "g", "e"]


def test_a_name_that_is_no_text_needs_no_list():
    frame = pd.DataFrame({7: AGE, 8: repeated("a", "b")})
    assert microagg.protect(frame, k=3, columns=7).columns == [7]


def test_the_order_of_the_names_is_kept():
    frame = Frame(pa.table({"a": AGE, "b": AGE}))
    assert choose_columns(frame, ["b", "a"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["nope"], r"There is no column 'nope'; the table has 'age', 'city'\."),
        ("nope", r"There is no column 'nope'; the table has 'age', 'city'\."),
        (["age", "Age"], r"There is no column 'Age'"),
        ([["age"]], r"There is no column \['age'\]"),
        (5, r"There is no column 5"),
        ([None], r"There is no column None"),
        (["age", "city", "age"], r"Column 'age' is named twice\. Name each column once"),
        ([], r"No column was named\. Name at least one"),
    ],
)
def test_columns_that_cannot_be(make, columns, message):
    frame = make({"age": AGE, "city": repeated("A", "B")})
    with pytest.raises(InputError, match=message):
        microagg.protect(frame, k=3, columns=columns)


def test_a_table_without_numbers(make):
    with pytest.raises(InputError, match=r"at least one numeric column; .* 'a', 'b'.*Convert"):
        microagg.protect(make({"a": repeated("x"), "b": repeated(True)}), k=3)


# What gives records away

SINGLES_OUT = {
    "all distinct text": [f"person {i}" for i in range(N)],
    "all distinct numbers": list(range(N)),
    "all distinct floats": [i / 7 for i in range(N)],
    "two the same": [0, *range(N - 1)],
    "nine in ten": [0, 0, *range(N - 2)],
    "distinct where known": [*range(N // 2), *[None] * (N // 2)],
    "distinct lists": [[i] for i in range(N)],
    "distinct records": [{"id": i} for i in range(N)],
}
HARMLESS = {
    "few values": repeated("a", "b", "c"),
    "truth values": repeated(True, False),
    "constant": [1] * N,
    "all missing": [None] * N,
    "one value": ["a", *[None] * (N - 1)],
    "below nine in ten": [0, 0, 0, *range(N - 3)],
    "few lists": repeated([1], [2]),
    "few records": repeated({"id": 1}, {"id": 2}),
}


@pytest.mark.parametrize("what", SINGLES_OUT)
def test_columns_that_single_records_out_are_warned_of(make, what):
    frame = make({"age": AGE, "id": SINGLES_OUT[what], "city": repeated("A", "B")})
    with pytest.warns(DisclosureRiskWarning, match=r"values differ in 'id', left as") as caught:
        release = microagg.protect(frame, k=3, columns=["age"])
    assert release.identifying == ["id"]
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("what", HARMLESS)
def test_other_columns_are_not(make, what):
    frame = make({"age": AGE, "other": HARMLESS[what]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = microagg.protect(frame, k=3, columns=["age"])
    assert release.identifying == []


def test_categories_that_single_records_out(make):
    frame = make({"age": AGE, "x": repeated("a", "b")})
    names = [f"person {i}" for i in range(N)]
    if make is pd.DataFrame:
        frame["id"] = pd.Categorical(names)
    elif make is pl.DataFrame:
        frame = frame.with_columns(id=pl.Series(names, dtype=pl.Categorical))
    else:
        frame = frame.append_column("id", pa.array(names).dictionary_encode())
    with pytest.warns(DisclosureRiskWarning, match="'id'"):
        microagg.protect(frame, k=3, columns=["age"])


def test_unused_categories_do_not_count():
    city = pd.Categorical(
        repeated("a", "b"), categories=[f"city {i}" for i in range(N)] + ["a", "b"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        microagg.protect(pd.DataFrame({"age": AGE, "city": city}), k=3, columns=["age"])


def test_protected_columns_are_never_warned_of(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = microagg.protect(make({"age": AGE, "pay": AGE * 7}), k=3)
    assert release.untouched == []


def test_the_index_of_pandas_in_parquet_is_not_data(tmp_path):
    frame = pd.DataFrame({"a": np.arange(9.0)}, index=np.arange(9)[::-1] + 100)
    frame.to_parquet(tmp_path / "in.parquet")
    table = pq.read_table(tmp_path / "in.parquet")
    with pytest.warns(DisclosureRiskWarning, match="__index_level_0__"):
        release = microagg.protect(table, k=3)
    assert release.columns == ["a"]
    release.write(tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet").index.equals(frame.index)


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "int64", "Float64"])
def test_pandas_reads_what_was_released_of_its_own_types(tmp_path, kind):
    pd.DataFrame({"a": np.arange(10)}).astype(kind).to_parquet(tmp_path / "in.parquet")
    release = microagg.protect(pq.read_table(tmp_path / "in.parquet"), k=3)
    release.write(tmp_path / "out.parquet")
    back = pd.read_parquet(tmp_path / "out.parquet")["a"].astype(float)
    assert back.tolist() == release.data["a"].to_pylist()


def test_row_labels_that_single_out_are_warned_of():
    frame = pd.DataFrame({"ssn": [f"{i:09d}" for i in range(9)], "a": range(9)}).set_index("ssn")
    with pytest.warns(DisclosureRiskWarning, match=r"\(index\)"):
        release = microagg.protect(frame, k=3)
    assert release.identifying == ["(index)"]


def test_unnamed_row_labels_stay_out_of_csv(tmp_path):
    frame = pd.DataFrame({"a": range(9), "b": range(9)}).loc[[8, 1, 2, 3, 4, 5, 6, 7, 0]]
    with pytest.warns(DisclosureRiskWarning, match="index"):
        microagg.protect(frame, k=3).write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "a,b"


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        (["1", "2", "n/a", "4"], True),
        (["1,5", "2,5", "3,25", "4"], True),
        (["00123", "04711", "99999", "12345"], False),
        (["a", "b", "3", "c"], False),
    ],
)
def test_numbers_as_text_are_warned_of_unless_they_look_like_codes(values, warned):
    frame = pd.DataFrame({"a": np.arange(12.0), "t": values * 3})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        microagg.protect(frame, k=3)
    assert any("read as numbers" in str(w.message) for w in caught) == warned
