"""Parquet and Arrow files: types, metadata, and what is no such file."""

import datetime as dt
import decimal
import os
import socket
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import microagg
from microagg import TableError
from microagg.formats.atomic import replacing
from microagg.formats.csv import CsvText
from microagg.formats.files import Source, kind_of, read_file, write_file
from microagg.formats.layouts import CsvFormat, FileFormat

# What is left in a table beside the protected columns is warned of; here it is what is looked at.
pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

N = 6
AGE = [30, 31, 34, 61, 65, 66]
ZONED = dt.datetime(2024, 7, 1, 12, 30, tzinfo=dt.UTC)


def rich_table() -> pa.Table:
    """One numeric column and, with few distinct values, all that a survey may hold beside it."""
    columns = {
        "age": pa.array(AGE, pa.int16()),
        "born": pa.array([dt.date(1994, 2, 28), None] * 3),
        "seen": pa.array([ZONED, ZONED, None] * 2, pa.timestamp("us", "Europe/Berlin")),
        "nano": pa.array([1, 1, 2] * 2, pa.timestamp("ns")),
        "paid": pa.array([decimal.Decimal("1.50"), None] * 3, pa.decimal128(30, 2)),
        "city": pa.array(["Aachen", "Zürich", None] * 2).dictionary_encode(),
        "big": pa.array([2**64 - 1, 2**53 + 1] * 3, pa.uint64()),
        "signed": pa.array([2**53 + 1, None] * 3, pa.int64()),
        # Parquet calls the values of a list "element", whatever arrow called them.
        "kids": pa.array([[1, 2], [], None] * 2, pa.list_(pa.field("element", pa.int8()))),
        "home": pa.array([{"zip": "00123"}, None] * 3),
        "raw": pa.array([b"\xff\x00", b""] * 3),
        "flag": pa.array([True, None] * 3),
        "text": pa.array(["🦜", ""] * 3, pa.large_string()),
        "float": pa.array([0.1, float("nan")] * 3, pa.float32()),
        "none": pa.nulls(N),
    }
    schema = pa.schema(
        [
            pa.field(name, array.type, metadata={"label": name.upper()})
            for name, array in columns.items()
        ],
        metadata={"survey": "2024", "weights": "none"},
    )
    return pa.table(list(columns.values()), schema=schema)


def to_the_letter(read: Source, changed) -> pa.Table:
    """The typed table with all columns as they were written, but for those that change."""
    table, kept = read.table, read.kept_for(read.kind)
    for name in () if kept is None else set(kept.column_names) - set(changed):
        at = table.column_names.index(name)
        table = table.set_column(at, kept.schema.field(name), kept[name])
    return table


def protect_file(source: Path, target: Path, **settings) -> microagg.Release:
    """As the command does it."""
    read = read_file(source, settings.get("columns"))
    changed = settings.get("columns", read.table.column_names)
    release = microagg.protect(to_the_letter(read, changed), k=3, keep_order=True, **settings)
    same = source.suffix == target.suffix
    release.write(target, read.format if same else read.format.for_another(None))
    return release


@pytest.fixture(params=[".parquet", ".pq", ".arrow", ".feather", ".ipc", ".PARQUET"])
def path(request, tmp_path):
    return tmp_path / f"table{request.param}"


def test_a_table_comes_back_with_types_nulls_and_metadata(path):
    table = rich_table()
    write_file(table, path)
    again = read_file(path).table
    assert_same(again, table)


def assert_same(one: pa.Table, two: pa.Table) -> None:
    """Tables with NaN are never equal to arrow, so compare that column by its text."""
    assert one.schema.equals(two.schema, check_metadata=True)
    assert one["float"].cast(pa.string()).equals(two["float"].cast(pa.string()))
    assert one.drop_columns("float").equals(two.drop_columns("float"), check_metadata=True)


def without_metadata(table: pa.Table) -> pa.Table:
    plain = [field.remove_metadata() for field in table.schema]
    return table.cast(pa.schema(plain))


def test_protecting_a_file_keeps_the_rest_exactly(path):
    table = rich_table()
    write_file(table, path)
    target = path.with_name(f"safe{path.suffix}")
    protect_file(path, target, columns=["age"])
    safe = read_file(target).table
    assert_same(safe.drop_columns("age"), without_metadata(table.drop_columns("age")))
    assert safe.column_names == table.column_names
    assert safe["age"].to_pylist() == pytest.approx([95 / 3] * 3 + [64.0] * 3)
    assert safe.schema.metadata is None
    assert safe.schema.field("age").metadata is None


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(list("uvwxyz"), name="person"),
        pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]], names=["site", "no"]),
        pd.RangeIndex(10, 70, 10),
        pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin", name="day"),
    ],
    ids=["text", "levels", "range", "dates"],
)
@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_the_index_of_pandas_goes_through_parquet(tmp_path, index):
    frame = pd.DataFrame({"age": AGE, "city": pd.Categorical(list("ABABBA"))}, index=index)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    frame.to_parquet(source)
    named = [] if index.name is None else [index.name]
    protect_file(source, target, columns=["age"], known=named)
    safe = pd.read_parquet(target)
    expected = frame.assign(age=[95 / 3] * 3 + [64.0] * 3)
    pd.testing.assert_frame_equal(safe, expected, check_freq=False)


def test_dictionaries_that_differ_by_chunk(path):
    chunks = [pa.array(list("aba")).dictionary_encode(), pa.array(list("xyx")).dictionary_encode()]
    table = pa.table({"age": AGE, "city": pa.chunked_array(chunks)})
    write_file(table, path)
    again = read_file(path).table
    assert again["city"].to_pylist() == list("abaxyx")
    assert pa.types.is_dictionary(again["city"].type)


# A file is written back as it was laid out

LAID_OUT = pa.table(
    {
        "age": AGE,
        "a.b": [1.5] * N,
        "city": pa.array(list("ABABBA")).dictionary_encode(),
        "kids": pa.array([[1, 2], [], None] * 2),
        "home": pa.array([{"zip": "00123", "city": {"no": 1}}] * N),
    }
)


@pytest.mark.parametrize("compression", ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI"])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_parquet_keeps_its_codec_and_the_size_of_row_groups(tmp_path, compression, rows):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(LAID_OUT, source, compression=compression, row_group_size=rows)
    protect_file(source, target, columns=["age"])
    assert layout_of(target) == layout_of(source)


def layout_of(path: Path) -> tuple[object, object]:
    found = pq.read_metadata(path)
    groups = [found.row_group(i) for i in range(found.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(found.num_columns)]
    codecs = [(column.path_in_schema, column.compression) for column in columns]
    return codecs, [group.num_rows for group in groups]


def test_columns_of_several_codecs_get_the_most_common_one(tmp_path):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(LAID_OUT, source, compression={"age": "NONE", "a.b": "ZSTD", "city": "ZSTD"})
    table = pa.table({"new": [1], "age": [2]})
    write_file(table, target, read_file(source).format)
    assert layout_of(target) == ([("new", "UNCOMPRESSED"), ("age", "UNCOMPRESSED")], [1])


@pytest.mark.parametrize("rows", [0, 2, 9])
def test_row_groups_of_fewer_or_more_records(tmp_path, rows):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"x": range(6)}), source, row_group_size=4)
    write_file(pa.table({"x": range(rows)}), target, read_file(source).format)
    assert layout_of(target)[1] == {0: [], 2: [2], 9: [4, 4, 1]}[rows]
    assert read_file(target).table["x"].to_pylist() == list(range(rows))


# From one format to another


def test_csv_to_parquet(tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text("zip;age;note\n" + "".join(f'00123;{a};"x;y"\n' for a in AGE))
    protect_file(source, target, columns=["age"], round=True)
    safe = pq.read_table(target)
    assert safe["zip"].to_pylist() == ["00123"] * N
    assert safe["age"].to_pylist() == [32, 32, 32, 64, 64, 64]
    assert safe["age"].type == pa.int64()
    assert safe["note"].to_pylist() == ["x;y"] * N


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "in.csv"
    path.write_text("age\n30\n")
    assert read_file(path, hashed=True).sha256
    read = CsvText.read

    def read_and_change(text, file):
        table = read(text, file)
        path.write_text("age\n30\n31\n")
        return table

    monkeypatch.setattr(CsvText, "read", read_and_change)
    with pytest.raises(
        TableError, match=r"must stay as it is while it is read.*in\.csv.*Read it again"
    ):
        read_file(path, hashed=True)


def test_parquet_to_csv(tmp_path):
    source, target = tmp_path / "in.parquet", tmp_path / "out.csv"
    table = rich_table().select(["age", "born", "seen", "paid", "city", "big", "flag", "text"])
    write_file(table, source)
    protect_file(source, target, columns=["age"], round=True)
    lines = target.read_text().splitlines()
    assert lines[0] == "age,born,seen,paid,city,big,flag,text"
    assert lines[1] == (
        "32,1994-02-28,2024-07-01 14:30:00.000000+0200,1.50,Aachen,18446744073709551615,true,🦜"
    )
    assert lines[6] == "64,,,,,9007199254740993,,"


def test_tsv_means_tabs(tmp_path):
    path = tmp_path / "table.tsv"
    write_file(pa.table({"a": ["x,y"], "b": [1]}), path)
    assert path.read_text() == "a\tb\nx,y\t1\n"
    assert read_file(path).table.to_pydict() == {"a": ["x,y"], "b": [1]}


def test_a_given_delimiter_wins_over_the_ending_tsv(tmp_path):
    path = tmp_path / "table.tsv"
    write_file(pa.table({"a": ["x"], "b": [1]}), path, FileFormat(CsvFormat(delimiter=";")))
    assert path.read_text() == "a;b\nx;1\n"


def test_a_type_that_parquet_lacks_is_refused(tmp_path):
    interval = pa.array([pa.MonthDayNano([1, 2, 3])], pa.month_day_nano_interval())
    table = pa.table({"age": [1], "span": interval})
    with pytest.raises(TableError, match=r"does not fit into a parquet file: .*interval.*Choose"):
        write_file(table, tmp_path / "table.parquet")


# Text beside numbers


def test_a_csv_file_is_read_as_text_and_as_numbers(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("zip,pay,kids,born\n00123,1.50,1,\n00124,2,NA,\n")
    read = read_file(path)
    assert read.table.to_pydict() == {
        "zip": ["00123", "00124"],
        "pay": [1.5, 2.0],
        "kids": [1, None],
        "born": ["", ""],
    }
    assert read.as_written["pay"].to_pylist() == ["1.50", "2"]
    assert read.as_written["kids"].to_pylist() == ["1", "NA"]
    assert read_file(path, ["zip"]).table["zip"].to_pylist() == [123, 124]


# Names that are not UTF-8


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_name_that_is_not_utf_8(tmp_path, ending):
    path = tmp_path / os.fsdecode(b"caf\xe9." + ending.encode())
    table = pa.table({"age": AGE, "city": list("ABABBA")})
    with replacing(path) as part:
        write_file(table, part)
    assert read_file(path).table.equals(table)
    protect_file(path, path, columns=["age"], round=True)
    assert read_file(path).table["age"].to_pylist() == [32, 32, 32, 64, 64, 64]
    path.write_bytes(b"\xff\xff")
    with pytest.raises(TableError, match=r"'.*caf\\udce9\."):
        read_file(path)


# What is no such file


@pytest.mark.parametrize("name", ["table", "table.docx", "table.csv.gz", ".csv", "table."])
def test_unknown_endings(tmp_path, name):
    with pytest.raises(TableError, match=r"ending of a file's name tells its format.*\.parquet"):
        kind_of(tmp_path / name)


@pytest.mark.parametrize("name", ["folder.csv", "folder.arrow", "folder.sav"])
def test_a_folder_is_no_file(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(TableError, match="is a folder; name one file"):
        read_file(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("place", "fact"),
    [
        ("gone", r"There is no file '.*gone\."),
        ("file/table", "Cannot read .*Not a directory"),
        ("a\0b", "Cannot read .*null byte"),
    ],
)
def test_a_place_without_a_file(tmp_path, ending, place, fact):
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match=fact):
        read_file(tmp_path / f"{place}.{ending}")


BEGINNINGS = [b"", b"a,b\n1,2\n", b"PAR1", b"ARROW1\0\0", b"$FL2" + bytes(200), b"<stata_dta>"]
KINDS = {"parquet": "parquet", "arrow": "arrow", "xlsx": "excel", "sav": "spss", "zsav": "spss"}
KINDS |= {"por": "spss", "dta": "stata", "xpt": "sas", "sas7bdat": "sas"}


@pytest.mark.parametrize(("ending", "kind"), KINDS.items())
@pytest.mark.parametrize("content", [*BEGINNINGS, bytes(1000)])
def test_files_of_another_kind(tmp_path, ending, kind, content):
    path = tmp_path / f"table.{ending}"
    path.write_bytes(content)
    with pytest.raises(TableError, match=rf"no complete {kind} file: .*copied whole"):
        read_file(path)


def test_parquet_with_duplicate_names_is_refused(tmp_path):
    path = tmp_path / "twins.parquet"
    pq.write_table(pa.table([AGE, AGE], names=["a", "a"]), path)
    with pytest.raises(TableError, match=r"names must differ; in .*'a' occurs more than once"):
        read_file(path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.posix
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, ending, kind):
    path = tmp_path / f"in.{ending}"
    server = socket.socket(socket.AF_UNIX)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        server.bind(str(path))
    else:
        path.symlink_to("/dev/zero")
    with server, pytest.raises(TableError, match=r"read from an ordinary file; .*Copy"):
        read_file(path)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("notes", [b"no JSON", b"[]", b'{"columns": 1}'])
def test_odd_notes_of_pandas_are_refused(tmp_path, ending, notes):
    path = tmp_path / f"in.{ending}"
    write_file(pa.table({"age": AGE}).replace_schema_metadata({b"pandas": notes}), path)
    with pytest.raises(TableError, match="What pandas notes"):
        read_file(path)


def test_damage_within_a_column_is_found_when_the_file_is_read(tmp_path):
    path = tmp_path / "in.arrow"
    text = pa.array([f"a text of some length {i}" for i in range(100)])
    feather.write_feather(pa.table({"x": text}), path, compression="uncompressed")
    data = bytearray(path.read_bytes())
    offsets = text.buffers()[1].to_pybytes()[: 4 * 101]
    at = data.index(offsets) + 4 * 50
    data[at : at + 4] = (2**31 - 1).to_bytes(4, "little")  # the text would lie far outside
    path.write_bytes(data)
    with pytest.raises(TableError, match="no complete arrow file"):
        read_file(path)
