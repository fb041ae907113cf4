"""Which columns are protected, and which of the others give records away."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microagg
from microagg import DisclosureRiskWarning, InputError
from microagg.tables.frame import Frame, choose_columns

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
    assert choose_columns(Frame(frame), None) == ["int", "float", "small"]


@pytest.mark.parametrize("columns", ["age", ["age"], ("age",), iter(["age"]), np.array(["age"])])
def test_ways_to_name_one_column(columns):
    frame = pa.table({"age": AGE, "a": repeated(1, 2), "g": repeated(1, 2), "e": repeated(1, 2)})
    release = microagg.protect(frame, k=3, columns=columns, confidential=["a", "g"], drop="e")
    assert release.columns == ["age"]
    assert release.roles.confidential == ["a", "g"]
    assert release.roles.dropped == ["e"]
    assert release.roles.known == []


def test_a_name_that_is_no_text_needs_no_list():
    frame = pd.DataFrame({7: AGE, 8: repeated("a", "b")})
    release = microagg.protect(frame, k=3, columns=7, confidential=8)
    assert (release.columns, release.roles.confidential) == ([7], [8])


def test_the_order_of_the_names_is_kept():
    frame = Frame(pa.table({"a": AGE, "b": AGE}))
    assert choose_columns(frame, ["b", "a"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["nope"], r"There is no column 'nope'; the table has 'age', 'city'\."),
        ("nope", r"There is no column 'nope'; the table has 'age', 'city'\."),
        (["age", "Age"], r"There is no column 'Age'"),
        ([["age"]], r"columns takes names of columns; got \['age'\]"),
        (5, r"There is no column 5"),
        ([None], r"There is no column None"),
        (["age", "city", "age"], r"Column 'age' is named twice in columns\. Name each column once"),
        ([], r"No column was named\. Name at least one"),
    ],
)
def test_columns_that_cannot_be(make, columns, message):
    frame = make({"age": AGE, "city": repeated("A", "B")})
    with pytest.raises(InputError, match=message):
        microagg.protect(frame, k=3, columns=columns)


def test_a_table_without_numbers(make):
    with pytest.raises(InputError, match=r"at least one numeric column; .* 'a', 'b'.*Convert"):
        choose_columns(Frame(make({"a": repeated("x"), "b": repeated(True)})), None)


# What gives records away

# In an order that does not follow from any of the columns above.
PAY = np.random.default_rng(0).permutation(N)


def beyond_the_order(release):
    """The cautions apart from the note that every frame in its original order has."""
    note, *others = sorted(release.cautions, key=lambda caution: caution.severity != "note")
    assert note.severity == "note"
    assert "order and index of the original" in note.words
    return others


def test_protected_columns_are_never_warned_of(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = microagg.protect(make({"age": AGE, "pay": PAY}), k=3, columns=["age", "pay"])
    assert release.roles.known == []
    assert beyond_the_order(release) == []


def test_the_index_of_pandas_in_parquet_is_not_data(tmp_path):
    frame = pd.DataFrame({"a": np.arange(9.0)}, index=np.arange(9)[::-1] + 100)
    frame.to_parquet(tmp_path / "in.parquet")
    table = pq.read_table(tmp_path / "in.parquet")
    assert choose_columns(Frame(table), None) == ["a"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = microagg.protect(table, k=3, columns=["a"], known=["__index_level_0__"])
    assert any("__index_level_0__ is unprotected and different" in str(w.message) for w in caught)
    release.write(tmp_path / "out.parquet")
    back = pd.read_parquet(tmp_path / "out.parquet")
    assert back.index.dtype == frame.index.dtype
    # The rows are written in random order, each with its label.
    labels = release.data["__index_level_0__"].to_pylist()
    assert labels == frame.index.tolist()
    assert back["a"].to_dict() == dict(zip(labels, release.data["a"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "int64", "Float64"])
def test_pandas_reads_what_was_released_of_its_own_types(tmp_path, kind):
    pd.DataFrame({"a": np.arange(10)}).astype(kind).to_parquet(tmp_path / "in.parquet")
    release = microagg.protect(pq.read_table(tmp_path / "in.parquet"), k=3, columns=["a"])
    release.write(tmp_path / "out.parquet")
    back = pd.read_parquet(tmp_path / "out.parquet")["a"].astype(float)
    assert sorted(back) == sorted(release.data["a"].to_pylist())


@pytest.mark.parametrize("index", ["ssn", "household", ["household", "region"]])
def test_row_labels_are_warned_of_since_they_are_released(index):
    frame = pd.DataFrame(
        {
            "ssn": [f"{i:09d}" for i in range(9)],
            "household": np.repeat([1, 2, 3], 3),
            "region": ["a", "b", "c"] * 3,
            "a": range(9),
        }
    )
    frame = frame.set_index(index)[["a"]]
    with pytest.warns(DisclosureRiskWarning, match=r"row labels of the frame \(its index\) are"):
        release = microagg.protect(frame, k=3, columns=["a"])
    (caution,) = beyond_the_order(release)
    assert (caution.severity, caution.columns) == ("amber", ("(index)",))
    assert f"{frame.index.nunique()} different values" in caution.words
    assert release.evidence.verdict == "amber"
    without_labels = microagg.protect(frame.reset_index(drop=True), k=3, columns=["a"])
    assert beyond_the_order(without_labels) == []


def test_row_labels_that_are_all_the_same_tell_nothing():
    frame = pd.DataFrame({"a": range(9)}, index=["row"] * 9)
    assert beyond_the_order(microagg.protect(frame, k=3, columns=["a"])) == []


def test_unnamed_row_labels_stay_out_of_csv(tmp_path):
    frame = pd.DataFrame({"a": range(9), "b": range(9)}).loc[[8, 1, 2, 3, 4, 5, 6, 7, 0]]
    with pytest.warns(DisclosureRiskWarning, match="index"):
        microagg.protect(frame, k=3, columns=["a", "b"]).write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "a,b"
