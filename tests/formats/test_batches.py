"""Tables in batches: what is read and written is what the whole table would be."""

import datetime as dt
import decimal
import filecmp
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microagg import InputError, TableError
from microagg.formats.batches import open_batches, write_batches
from microagg.formats.files import read_file, write_file
from microagg.formats.layouts import CsvFormat, FileFormat
from microagg.tables.file_metadata import ColumnFacts
from microagg.tables.numbers_in_text import NumberTest, as_typed

SIZES = (1, 3, 7, 1 << 17)


def many_kinds(n: int = 23) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": pa.array(rng.integers(0, 99, n)),
            "pay": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.2),
            "city": pa.array([None if i % 5 == 0 else f"c{i % 4}" for i in range(n)]),
            "when": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(i) for i in range(n)]),
            "paid": pa.array([decimal.Decimal(i) / 4 for i in range(n)], pa.decimal128(8, 2)),
            "tags": pa.array([[i, None] for i in range(n)]),
            "own": pa.array([{"house": i % 2 == 0} for i in range(n)]),
        },
        metadata={"who": "we"},
    )


def same_as_read(path: Path, csv: CsvFormat | None = None, numbers=()) -> None:
    """Batches of any size are the table that is read as a whole."""
    whole = read_file(path, numbers, csv)
    source = open_batches(path, csv, numbers)
    assert source.names == whole.table.column_names
    assert source.schema.equals(whole.table.schema, check_metadata=True)
    assert source.rows == whole.table.num_rows
    assert source.format == whole.format
    assert source.kind == whole.kind
    for at_once in SIZES:
        batches = list(source.batches(at_once=at_once))
        assert [b.first for b in batches] == list(range(0, source.rows, at_once))
        assert all(b.table.num_rows == b.as_written.num_rows <= at_once for b in batches)
        for which, expected in (("table", whole.table), ("as_written", whole.as_written)):
            found = [getattr(b, which) for b in batches]
            assert all(t.schema.equals(expected.schema, check_metadata=True) for t in found)
            if found:
                assert _repr(pa.concat_tables(found)) == _repr(expected)
    some = source.names[::-1][:2]
    for batch in source.batches(some, at_once=4):
        assert _repr(batch.table) == _repr(whole.table.select(some).slice(batch.first, 4))


def _repr(table: pa.Table) -> str:
    return repr(table.to_pydict())  # in which NaN is NaN, and −0 is not 0


def write_parts(path: Path, source, table: pa.Table, at_once: int, **settings) -> None:
    """Write a table in parts of so many records."""
    parts = (table.slice(start, at_once) for start in range(0, table.num_rows, at_once))
    rows = settings.pop("rows", getattr(source, "rows", table.num_rows))
    write_batches(parts, path, getattr(source, "format", source), table.schema, rows, **settings)


def copy_parts(source, path: Path, at_once: int) -> None:
    """Write what is read, in the batches in which it is read."""
    batches = source.batches(at_once=at_once)
    tables = (batch.table for batch in batches)
    write_batches(tables, path, source.format, source.schema, source.rows)


def same_error(whole, parts) -> None:
    """Both fail, with the same sentence."""
    sentences = []
    for work in (whole, parts):
        with pytest.raises(TableError) as caught:
            work()
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]


def written_alike(table: pa.Table, source: Path, target: Path) -> tuple[Path, Path]:
    """Write a table as a whole and in parts of several sizes, in the format of a source."""
    form = read_file(source).format
    whole = target.with_name(f"whole-{target.name}")
    paths = []
    for i, at_once in enumerate((*SIZES, None)):
        path = whole if at_once is None else target.with_name(f"{i}-{target.name}")
        if not target.suffix:
            path.mkdir()
        if at_once is None:
            write_file(table, path, form)
            continue
        paths.append(path)
        write_parts(path, open_batches(source), table, at_once)
    for path in paths:
        assert bytes_of(path) == bytes_of(whole)
    return paths[0], whole


def bytes_of(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    start = path.parent if path.is_file() else path
    return {"" if path.is_file() else str(f.relative_to(start)): f.read_bytes() for f in files}


@pytest.mark.parametrize("groups", [None, 1, 4, 10])
def test_a_parquet_file(tmp_path, groups):
    path = tmp_path / "in.parquet"
    pq.write_table(many_kinds(), path, row_group_size=groups, compression="zstd")
    same_as_read(path)
    written_alike(read_file(path).table, path, tmp_path / "out.parquet")


def test_a_parquet_file_with_codecs_of_its_own_and_large_pages(tmp_path):
    rng = np.random.default_rng(1)
    n = 400_000
    table = pa.table({"a": rng.normal(size=n), "b": rng.integers(0, 9, n).astype(str)})
    path = tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=190_001, compression={"a": "gzip", "b": "snappy"})
    form = read_file(path).format
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    write_file(table, whole, form)
    write_parts(parts, form, table, 13_001)
    assert filecmp.cmp(whole, parts, shallow=False)
    # Also from the batches of the file itself, whose chunks lie elsewhere.
    again = tmp_path / "again.parquet"
    source = open_batches(path)
    copy_parts(source, again, 5003)
    assert filecmp.cmp(whole, again, shallow=False)
    assert open_batches(again).format == source.format


def test_a_row_group_beyond_memory_is_written_as_several(tmp_path):
    table = pa.table({"a": np.arange(10_000.0)})
    path, copy = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, path, row_group_size=6000)
    write_parts(copy, open_batches(path), table, 1000, most=16_000)
    assert pq.read_table(copy).equals(table)
    assert open_batches(copy).format.parquet.row_group <= 3000


def test_dictionaries_are_the_same_values(tmp_path):
    table = pa.table({"c": pa.array(["x", "y", None, "z"] * 6).dictionary_encode()})
    path, copy = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, path, row_group_size=5)
    same_as_read(path)
    source = open_batches(path)
    copy_parts(source, copy, 3)
    assert read_file(copy).table["c"].to_pylist() == table["c"].to_pylist()
    assert open_batches(copy).format == source.format


def in_folders(folder: Path) -> pa.Table:
    for i, (place, rows) in enumerate((("year=2023", 6), ("year=2024", 9), ("year=2024", 0))):
        (folder / place).mkdir(parents=True, exist_ok=True)
        table = many_kinds(9).slice(0, rows)
        pq.write_table(table, folder / place / f"{i}.parquet", row_group_size=4)
    return read_file(folder).table


def test_a_folder(tmp_path):
    folder = tmp_path / "in"
    table = in_folders(folder)
    same_as_read(folder)
    one, _ = written_alike(table, folder, tmp_path / "out")
    assert (one / "year=2024" / "2.parquet").exists()
    source = open_batches(folder)
    found = pa.concat_tables([batch.table for batch in source.batches(["year"], at_once=4)])
    assert found["year"].to_pylist() == [2023] * 6 + [2024] * 9


def test_a_pattern(tmp_path):
    in_folders(tmp_path / "in")
    same_as_read(tmp_path / "in" / "year=2023" / "*.parquet")


def test_a_folder_whose_names_would_tell_what_records_no_longer_do(tmp_path):
    folder = tmp_path / "in"
    table = in_folders(folder)
    changed = table.set_column(table.column_names.index("year"), "year", pa.array([2023] * 15))
    source = open_batches(folder)
    whole, parts, wrong = (tmp_path / name for name in ("whole", "parts", "wrong"))
    for path in (whole, parts, wrong):
        path.mkdir()
    write_file(changed, whole, source.format)
    write_parts(parts, source, changed, 8, changed=["year"])
    assert bytes_of(whole) == bytes_of(parts)
    with pytest.raises(TableError, match="'year', which was changed"):
        write_parts(wrong, source, changed, 15)


def test_fewer_records_go_to_one_file(tmp_path):
    folder, parts, whole = tmp_path / "in", tmp_path / "parts", tmp_path / "whole"
    table = in_folders(folder).slice(0, 11)
    source = open_batches(folder)
    parts.mkdir()
    whole.mkdir()
    write_file(table, whole, source.format)
    write_parts(parts, source, table, 8, rows=11)
    assert bytes_of(whole) == bytes_of(parts)


TEXTS = {
    "plain": "a,b\n1,x\n2,y\n3,z\n",
    "late decimal": "a,b\n1,2\n2,3\n3,4\n4,5\n5,6.5\n",
    "late text": "a\n" + "1\n" * 9 + "x\n",
    "late code": "a\n" + "12345\n" * 9 + "00123\n",
    "missing first": "a,b\nNA,\n,\nnull,\n1,\n",
    "nan is a number": "a,b\n1,NaN\nNaN,1.5\n",
    "nan is missing": "a,b\n1,NaN\nNaN,1.5\nNA,\n",
    "all missing": 'a,b\n"",NA\nNA,NA\n',
    "large": "a\n1\n99999999999999999999\n",
    "first decimal, then whole": "a\n1.0\n2\n3\n",
    "plus": "a\n+5\n6\n",
    "quotes": 'a,b\n1,"x\ny"\n2,"he said ""no"", twice"\n"3","  z "\n',
    "dos": "a,b\r\n1,x\r\n2,y\r\n",
    "semicolons": "a;b\n1;x,y\n2;z\n",
    "names in lines": '"a\nb",c\n1,2\n',
    "one column": 'a\n""\n1\n\n2\n',
    "no records": "a,b\n",
    "no last line end": "a,b\n1,2\n3,4",
    "minus zero": "a,b\n-0,-0.0\n0,0.0\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_csv_file(tmp_path, text):
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode())
    same_as_read(path)
    source = read_file(path)
    for i, table in enumerate((source.as_written, source.table)):
        written_alike(table, path, tmp_path / f"{i}.csv")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_and_decimal_commas(tmp_path, encoding):
    path = tmp_path / "in.tsv"
    path.write_bytes("ä\tb\n1,5\t.\n2\tü\nNA\t7\n".encode(encoding))
    form = CsvFormat(decimal=",", encoding=encoding)
    same_as_read(path, form)
    table = read_file(path, csv=form).table
    source = open_batches(path, form)
    whole, parts = tmp_path / "whole.tsv", tmp_path / "parts.tsv"
    write_file(table, whole, source.format)
    write_parts(parts, source, table, 1)
    assert whole.read_bytes() == parts.read_bytes()


def test_codes_are_numbers_where_one_says_so(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("a,b\n00123,00123\n4,4\n")
    same_as_read(path, numbers=["b"])
    assert open_batches(path, numbers=["b"]).schema.types == [pa.string(), pa.int64()]


CELLS = [
    *("1", "-2", "2.5", "1e3", "007", "0", "-0", "+1", " 4 ", "1,5", "inf", "x"),
    *("", "NA", ".", "NaN", "nan"),
]


@settings(max_examples=300)
@given(
    cells=st.lists(st.sampled_from(CELLS), min_size=1),
    at_once=st.integers(1, 4),
    decimal_sign=st.sampled_from(".,"),
    named=st.booleans(),
)
def test_types_are_those_of_the_whole(cells, at_once, decimal_sign, named):
    text = pa.table({"a": cells})
    whole = as_typed(text, decimal_sign, ["a"] if named else [])
    test = NumberTest(decimal_sign, codes_are_text=not named)
    parts = [text["a"].slice(i, at_once) for i in range(0, len(cells), at_once)]
    for part in parts:
        test.add(part)
    assert (pa.string() if test.way is None else test.way.kind) == whole["a"].type
    found = [value for part in parts for value in test.convert(part).to_pylist()]
    assert repr(found) == repr(whole["a"].to_pylist())


def test_a_record_longer_than_a_block(tmp_path):
    path = tmp_path / "in.csv"
    long = "x" * 3_000_000 + "\n" + "y" * 3_000_000
    path.write_text("a,b\n" + "1,short\n" * 300_000 + f'2,"{long}"\n' + "3,z\n" * 5)
    source = open_batches(path)
    assert source.rows == 300_006
    cells = [cell for batch in source.batches(["b"]) for cell in batch.table["b"].to_pylist()]
    assert len(cells) == 300_006
    assert cells[300_000] == long
    assert cells[299_999] == "short"
    assert cells[300_001:] == ["z"] * 5


def test_numbers_and_tags_of_statistical_packages(tmp_path):
    fields = [
        pa.field("whole", pa.string(), metadata=ColumnFacts(storage="double").as_metadata()),
        pa.field("broken", pa.string(), metadata=ColumnFacts(storage="double").as_metadata()),
        pa.field("none", pa.string(), metadata=ColumnFacts(storage="double").as_metadata()),
        pa.field("small", pa.string(), metadata=ColumnFacts(storage="int8").as_metadata()),
        pa.field("code", pa.int64(), metadata=ColumnFacts(missing=(-8,)).as_metadata()),
    ]
    columns = [
        [".a", "1", "2", None],
        ["1", "2", "3", "4.5"],
        [".a", ".b", None, None],
        ["1", ".a", "2", None],
        [1, -8, 3, None],
    ]
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)
    same_as_read(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("none.csv", None),
        ("none.parquet", None),
        ("empty.csv", b""),
        ("empty.parquet", b""),
        ("half.parquet", b"PAR1 and no more"),
        ("twice.csv", b"a,a\n1,2\n"),
        ("ragged.csv", b"a,b\n1,2\n3\n"),
        ("open.csv", b'a,b\n1,"2\n3,4\n'),
        ("bytes.csv", b"a,b\n1,\xff\n"),
        ("odd.xyz", b"1"),
    ],
)
def test_errors_are_those_of_the_whole(tmp_path, name, content):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    # The pass over the file, for its schema, is what may fail.
    same_error(lambda: read_file(path), lambda: open_batches(path).schema)


def test_errors_of_files_that_are_read_later(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(many_kinds(5000), path, write_page_checksum=True, compression=None)
    content = bytearray(path.read_bytes())
    content[2000:2100] = bytes(100)
    path.write_bytes(content)
    same_error(lambda: read_file(path), lambda: list(open_batches(path).batches()))


def test_folders_that_are_no_table(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    same_error(lambda: read_file(tmp_path), lambda: open_batches(tmp_path))


def test_wrong_use(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("a\n1\n")
    source = open_batches(path)
    with pytest.raises(InputError, match="no column 'b'; the table has 'a'"):
        list(source.batches(["b"]))
    with pytest.raises(InputError, match="at least one record"):
        list(source.batches(at_once=0))
    with pytest.raises(InputError, match="No column was named"):
        list(source.batches([]))
    with pytest.raises(TableError, match="Parquet or CSV"):
        write_batches([], tmp_path / "out.arrow", source.format, source.schema, 0)
    table = pa.table({"a": [1]})
    with pytest.raises(TableError, match="its 1 record; there were 0"):
        write_parts(tmp_path / "out.csv", source, table.slice(0, 0), 1)
    floats = pa.table({"a": [1.5]})
    with pytest.raises(TableError, match="these differ"):
        write_batches([floats], tmp_path / "out.csv", source.format, table.schema, 1)
    write_file(pa.table({"a": [1]}), tmp_path / "in.arrow")
    with pytest.raises(TableError, match="Parquet and CSV files"):
        open_batches(tmp_path / "in.arrow")
    nested, target = pa.table({"a": [[1]]}), tmp_path / "nested.csv"
    same_error(lambda: write_file(nested, target), lambda: write_parts(target, source, nested, 1))


def test_what_does_not_fit_into_parquet(tmp_path):
    table = pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    file, folder = tmp_path / "out.parquet", tmp_path / "folder"
    folder.mkdir()
    for path in (file, folder):
        same_error(
            lambda: write_file(table, file),
            lambda path=path: write_parts(path, FileFormat(), table, 1, rows=1),
        )


_PASS = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from microagg.formats.batches import open_batches, write_batches
source = open_batches(Path(sys.argv[1]))
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
tables = (batch.table for batch in source.batches(at_once=1 << 15))
write_batches(tables, Path(sys.argv[2]), source.format, source.schema, source.rows)
print((peak() - before) * 1024, source.bytes_in_memory)
"""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.linux
def test_memory_is_that_of_a_few_batches(tmp_path, ending):
    path = tmp_path / f"in.{ending}"
    table = pa.table({f"x{j}": np.random.default_rng(j).normal(size=1_500_000) for j in range(8)})
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=50_000)
    else:
        pacsv.write_csv(table, path)
    done = subprocess.run(
        [sys.executable, "-c", _PASS, path, tmp_path / f"out.{ending}"],
        capture_output=True,
        text=True,
        check=True,
    )
    used, whole = map(int, done.stdout.split())
    # A batch has 2 MB; arrow, its threads and its pool have their own share.
    assert used < 150e6
    assert whole > table.nbytes * 0.9
