"""What a format cannot hold is found out before any work is done for it."""

import datetime as dt
import decimal

import pyarrow as pa
import pytest

from command import here, said
from microagg import TableError
from microagg.formats.files import cannot_hold, difference, read_file, write_file
from microagg.formats.layouts import FileFormat
from microagg.tables.file_metadata import ColumnFacts, Labelled

BIG = 2**53 + 1


@pytest.mark.parametrize(
    ("kind", "table", "message"),
    [
        ("stata", {"a" * 33: [1]}, "at most 32 signs; .* has 33"),
        ("stata", {"my column": [1]}, "begin with a letter or _"),
        ("stata", {"using": [1]}, "no words of its language; 'using' is one"),
        ("spss", {"1st": [1]}, "begin with a letter"),
        ("spss", {"é" * 33: [1]}, "at most 64 bytes; .* has 66"),
        ("spss", {"with": [1]}, "no words of its language"),
        ("spss", {"age": [1], "Age": [2]}, "differ in more than capitals"),
        ("sas", {"größe": [1]}, "letters a to z"),
        ("sas", {"a" * 33: [1]}, "at most 32 bytes"),
        ("spss", {"x": [1, BIG]}, r"exact up to 2\^53; column 'x' has a larger one in row 2"),
        ("stata", {"x": [-BIG]}, "column 'x' has a larger one in row 1"),
        ("excel", {"x": [BIG]}, "column 'x' has a larger one in row 1"),
        ("stata", {"x": [1.0, float("inf")]}, "finite; column 'x' has an infinite one in row 2"),
        ("stata", {"x": [1e308]}, r"go up to 8.98e\+307; column 'x' has a larger one in row 1"),
        ("sas", {"x": [1.0, -1e76]}, "column 'x' has a larger one in row 2"),
        ("sas", {"x": [0.0, 1e-80]}, "column 'x' has a smaller one in row 2"),
        (
            "spss",
            {"x": ["a", "b" * 32_768]},
            "at most 32,767 bytes; column 'x' has longer text in row 2",
        ),
        ("spss", {"x": [[1, 2]]}, "column 'x' of type list"),
        ("stata", {"x": [b"bytes"]}, "column 'x' of type binary"),
        ("excel", {"x": [decimal.Decimal("0.1")]}, "column 'x' has a decimal number that is none"),
    ],
)
def test_values_that_would_be_lost_are_refused(kind, table, message):
    with pytest.raises(TableError, match=message):
        cannot_hold(pa.table(table), kind)


@pytest.mark.parametrize("kind", ["spss", "stata", "sas", "excel", "csv", "parquet"])
def test_what_fits(kind):
    table = pa.table(
        {
            "x": [1.5, None],
            "n": [2**53, None],
            "s": ["é", None],
            "d": [dt.date(2024, 1, 1), None],
            "t": [dt.datetime(2024, 1, 1, 10), None],
            "b": [True, None],
            "e": [decimal.Decimal("0.5"), None],
        }
    )
    assert cannot_hold(table, kind) == []


def test_old_transport_files_have_shorter_names_and_text():
    with pytest.raises(TableError, match="at most 8 bytes"):
        cannot_hold(pa.table({"a" * 9: [1]}), "sas", version=5)
    with pytest.raises(TableError, match="at most 200 bytes; column 'x' has longer text in row 1"):
        cannot_hold(pa.table({"x": ["a" * 201]}), "sas", version=5)


def test_refused_before_the_grouping(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("my age,id\n" + "".join(f"{i},{i}\n" for i in range(9)))
    done = here("protect", source, tmp_path / "out.sav", "--k", 3, "--columns", "my age")
    assert done.returncode == 2
    assert "'my age' does not fit" in said(done)
    assert "grouped" not in said(done)


def test_a_dropped_column_need_not_fit(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("age,my id\n" + "".join(f"{i},{i}\n" for i in range(9)))
    done = here(
        "protect", source, tmp_path / "out.sav", "--k", 3, "--columns", "age", "--drop", "my id"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt", "xlsx"])
def test_a_csv_file_to_other_formats(tmp_path, ending):
    source, target = tmp_path / "in.csv", tmp_path / f"out.{ending}"
    rows = "".join(f"{20 + i},00{i},{i / 7!r},text {i}\n" for i in range(9))
    source.write_text("age,zip,share,name\n" + rows)
    done = here("protect", source, target, "--k", 3, "--columns", "age", "--keep-order")
    assert done.returncode == 0, done.stderr
    again = read_file(target).table
    assert again["zip"].to_pylist() == [f"00{i}" for i in range(9)]
    assert again["share"].to_pylist() == [i / 7 for i in range(9)]
    assert again["name"].to_pylist() == [f"text {i}" for i in range(9)]


# What was read back


def labelled(**columns):
    facts = {name: fact for name, (_, fact) in columns.items()}
    table = pa.table({name: values for name, (values, _) in columns.items()})
    return table.cast(Labelled(facts, "spss", label="Survey").on(table.schema))


TABLE = labelled(
    age=([1.5, 2.5], ColumnFacts(label="Age", value_labels=((1.5, "low"),), format="F8.2")),
    city=(
        ["a", "b"],
        ColumnFacts(label="City", missing=("9",), format="A4", storage="string", width=4),
    ),
)


def changed(**facts):
    """The table with other facts about the column age."""
    found = Labelled.of(TABLE.schema)
    new = {**found.columns, "age": ColumnFacts(**{"label": "Age", "format": "F8.2", **facts})}
    return TABLE.cast(Labelled(new, "spss", label="Survey").on(TABLE.schema))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (TABLE, None),
        (TABLE.slice(0, 1), "it has 1 of 2 records"),
        (TABLE.rename_columns(["age", "town"]), "its columns have other names"),
        (
            TABLE.set_column(1, TABLE.schema.field(1), pa.array(["a", "c"])),
            "the values of column 'city'",
        ),
        (changed(label="Other", value_labels=((1.5, "low"),)), "column 'age' has another label"),
        (changed(), "column 'age' has another value labels"),
        (changed(value_labels=((1.5, "low"),), format="F9.3"), "column 'age' has another format"),
    ],
)
@pytest.mark.parametrize("ending", ["sav", "parquet"])
def test_differences_are_found(tmp_path, written, message, ending):
    path = tmp_path / f"out.{ending}"
    write_file(written, path, FileFormat())
    found = difference(TABLE, read_file(path), ["city"])
    assert found is None if message is None else str(found).startswith(message)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_values_of_any_type_are_compared(tmp_path, ending):
    nan = float("nan")
    table = pa.table(
        {
            "list": [[nan, 1.0], None],
            "struct": [{"a": nan}, {"a": None}],
            "float": [nan, None],
            "half": pa.array([1.5, None], pa.float16()),
            "second": pa.array([1, None], pa.timestamp("s", "Europe/Vienna")),
            "nano": pa.array([1, None], pa.timestamp("ns")),
            "day": pa.array([86_400_000, None], pa.date64()),
            "time": pa.array([1, None], pa.time32("s")),
            "long": pa.array([1, None], pa.duration("s")),
            "bytes": [b"\xff", None],
            "view": pa.array(["a", None], pa.string_view()),
            "levels": pa.array(["a", None]).dictionary_encode(),
            "truth": [True, None],
            "nothing": pa.nulls(2),
        }
    )
    path = tmp_path / f"out.{ending}"
    write_file(table, path)
    assert difference(table, read_file(path), table.column_names) is None
    other = table.set_column(0, "list", pa.array([[nan, 2.0], None]))
    assert "'list'" in str(difference(other, read_file(path), table.column_names))


def test_a_file_that_lost_a_label_is_taken_away(tmp_path, monkeypatch):
    source = tmp_path / "in.sav"
    ages = [30.0, 31, 34, 61, 65, 66]
    fact = ColumnFacts(label="City", format="A4", storage="string", width=4)
    write_file(labelled(age=(ages, ColumnFacts(label="Age")), city=(list("ABABBA"), fact)), source)

    def forget(table, path, form=None):
        at = table.column_names.index("city")
        write_file(table.set_column(at, pa.field("city", pa.string()), table["city"]), path, form)

    monkeypatch.setattr("microagg.engines.write_and_count.write_file", forget)
    done = here("protect", source, tmp_path / "out.sav", "--k", 3, "--columns", "age")
    assert done.returncode == 1
    assert "is not what was written: column 'city' has another label" in said(done)
    assert [p.name for p in tmp_path.iterdir()] == ["in.sav"]
