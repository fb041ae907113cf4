"""Folders and patterns of Parquet files as one table."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import here, said
from microagg import TableError
from microagg.formats.atomic import replacing_all, sha256
from microagg.formats.files import read_file


def month(number, rows=6):
    start = 10 * number
    return pa.table({"age": np.arange(start, start + rows), "city": [f"c{number}"] * rows})


@pytest.fixture
def flights(tmp_path):
    folder = tmp_path / "flights"
    folder.mkdir()
    for number, rows in ((1, 6), (2, 7), (3, 5)):
        pq.write_table(month(number, rows), folder / f"{number}.parquet", compression="zstd")
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.parquet").write_text("no data")
    return folder


def whole(folder):
    return pa.concat_tables([pq.read_table(folder / f"{i}.parquet") for i in (1, 2, 3)])


def test_a_folder_is_one_table(flights):
    assert read_file(flights).table.equals(whole(flights))
    assert read_file(flights / "*.parquet").table.equals(whole(flights))
    assert read_file(flights / "[12].parquet").table.num_rows == 13


@pytest.mark.posix
def test_a_folder_to_a_folder(flights, tmp_path):
    target = tmp_path / "safe"
    done = here("protect", flights, target, "--k", 3, "--columns", "age", "--keep-order")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in target.iterdir()) == ["1.parquet", "2.parquet", "3.parquet"]
    for file in target.iterdir():
        old, new = pq.ParquetFile(flights / file.name), pq.ParquetFile(file)
        assert new.metadata.num_rows == old.metadata.num_rows
        assert new.metadata.row_group(0).column(0).compression == "ZSTD"
        assert new.read()["city"].equals(old.read()["city"])
        assert not new.read()["age"].equals(old.read()["age"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["flights", "safe"]
    assert (target.stat().st_mode & 0o777) == 0o777 & ~_umask()


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_folder_or_a_pattern_to_a_file(flights, tmp_path):
    for source in (flights, flights / "*.parquet"):
        target = tmp_path / "safe.parquet"
        asked = ("--k", 3, "--columns", "age", "--keep-order")
        assert here("protect", source, target, *asked).returncode == 0
        assert pq.read_table(target)["city"].equals(whole(flights)["city"])


def test_an_empty_folder_is_filled(flights, tmp_path):
    target = tmp_path / "safe"
    target.mkdir()
    assert here("protect", flights, target, "--k", 3, "--columns", "age").returncode == 0
    assert len(list(target.iterdir())) == 3


def test_a_folder_with_something_in_it_is_left_alone(flights, tmp_path):
    target = tmp_path / "safe"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    done = here("protect", flights, target, "--k", 3, "--columns", "age")
    assert done.returncode == 2
    assert "only if it holds nothing but Parquet files" in said(done)
    assert [p.name for p in target.iterdir()] == ["mine.txt"]


def test_one_rule_for_files_and_folders_that_exist(flights, tmp_path):
    """A task that is run again replaces what it wrote; --no-overwrite refuses, and changes nothing."""
    asked = ["--k", 3, "--columns", "age", "--quiet", "--keep-order"]
    for target in (tmp_path / "safe", tmp_path / "safe.parquet"):
        first = ["protect", flights, target, *asked]
        assert here(*first, "--no-overwrite").returncode == 0
        written = pq.read_table(target)
        done = here(*first, "--no-overwrite")
        assert (done.returncode, "exists" in said(done)) == (2, True)
        assert pq.read_table(target).equals(written)
        assert here("protect", flights, target, "--drop", "city", *asked).returncode == 0
        assert pq.read_table(target).equals(written.drop_columns(["city"]))
    assert {p.name for p in tmp_path.iterdir()} == {"flights", "safe", "safe.parquet"}


def test_a_folder_that_cannot_be_replaced_is_put_back(flights, tmp_path, monkeypatch):
    target = tmp_path / "safe"
    assert here("protect", flights, target, "--k", 3, "--columns", "age").returncode == 0
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    replace = Path.replace

    def fail(self, other):
        if other == target:
            raise OSError(5, "Input/output error")
        return replace(self, other)

    monkeypatch.setattr(Path, "replace", fail)
    done = here("protect", flights, target, "--k", 5, "--columns", "age")
    assert (done.returncode, "Input/output error" in said(done)) == (2, True)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    assert {p.name for p in tmp_path.iterdir()} == {"flights", "safe"}


def test_a_failed_run_leaves_no_folder(flights, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("microagg.formats.parquet.Parquet.write", fail)
    done = here("protect", flights, tmp_path / "safe", "--k", 3, "--columns", "age")
    assert done.returncode == 2
    assert "No space left on device" in said(done)
    assert [p.name for p in tmp_path.iterdir()] == ["flights"]


def test_a_folder_takes_its_name_with_the_files_beside_it_or_not_at_all(tmp_path, monkeypatch):
    report, folder = tmp_path / "report.html", tmp_path / "safe"

    def write(parts):
        parts[0].write_text("new")
        (parts[1] / "a.parquet").write_text("data")

    whole_replace = type(report).replace

    def refuse_folders(self, target):
        if self.is_dir():
            raise OSError(13, "Permission denied")
        return whole_replace(self, target)

    report.write_text("old")
    monkeypatch.setattr(type(report), "replace", refuse_folders)
    with (
        pytest.raises(TableError, match="Permission denied"),
        replacing_all([report, folder], True) as parts,
    ):
        write(parts)
    assert report.read_text() == "old"
    monkeypatch.undo()
    with replacing_all([report, folder], True) as parts:
        write(parts)
    assert report.read_text() == "new"
    assert (folder / "a.parquet").read_text() == "data"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "safe"]


def test_folders_of_killed_runs_are_removed(tmp_path):
    target = tmp_path / "safe"
    orphan = tmp_path / ".safe.abcdefgh.part"
    orphan.mkdir()
    (orphan / "1.parquet").write_text("secret")
    with replacing_all([target], True) as parts:
        (parts[0] / "1.parquet").write_text("data")
    assert [p.name for p in tmp_path.iterdir()] == ["safe"]


# Folders that tell a column


@pytest.fixture
def by_year(tmp_path):
    folder = tmp_path / "by_year"
    for year in (2023, 2024):
        (folder / f"year={year}").mkdir(parents=True)
        pq.write_table(month(year - 2020), folder / f"year={year}" / "a.parquet")
    return folder


@pytest.mark.parametrize("order", [(), ("--keep-order",), ("--no-keep-order",)])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_hive_folders_come_back(by_year, tmp_path, engine, order):
    """Where the column that they tell is kept: each record in its folder, in random order within."""
    pq.write_table(month(5), by_year / "year=2023" / "b.parquet")
    read = read_file(by_year).table
    assert read["year"].to_pylist() == [2023] * 12 + [2024] * 6
    target = tmp_path / "safe"
    words = ("--k", 3, "--columns", "age", "--engine", engine, *order)
    assert here("protect", by_year, target, *words).returncode == 0
    back = read_file(target).table
    assert back["year"].equals(read["year"])
    in_2024 = [back["city"][i].as_py() for i in range(12, 18)]
    assert sorted(in_2024) == sorted(read["city"].to_pylist()[12:])
    assert (target / "year=2023" / "b.parquet").exists()
    assert "year" not in pq.ParquetFile(target / "year=2023" / "a.parquet").schema_arrow.names


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_records_of_a_folder_are_in_random_order(tmp_path, engine):
    """The order of 60 records comes back with a chance of 1 in 60!."""
    (tmp_path / "in" / "year=2024").mkdir(parents=True)
    table = pa.table({"age": list(range(60)), "note": [f"n{i}" for i in range(60)]})
    pq.write_table(table, tmp_path / "in" / "year=2024" / "a.parquet")
    words = ("--k", 3, "--columns", "age", "--known", "note", "--engine", engine)
    assert here("protect", tmp_path / "in", tmp_path / "out", *words).returncode == 0
    notes = read_file(tmp_path / "out").table["note"].to_pylist()
    assert notes != table["note"].to_pylist()
    assert sorted(notes) == sorted(table["note"].to_pylist())


@pytest.mark.parametrize("words", [("--drop", "year"), ("--renumber", "year"), ("-c", "age,year")])
def test_names_of_folders_do_not_tell_what_records_no_longer_do(by_year, tmp_path, words):
    target = tmp_path / "safe"
    columns = () if words[0] == "-c" else ("--columns", "age")
    done = here("protect", by_year, target, "--k", 7, *columns, *words)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in target.iterdir()) == ["part-0.parquet", "part-1.parquet"]
    assert ("year" in read_file(target).table.column_names) == ("--drop" not in words)


# Files that do not fit


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"age": [1.5], "city": ["x"]},
            r"column 'age' of '.*4\.parquet' is double, in '.*1\.parquet' it is int64",
        ),
        ({"age": [1]}, r"4\.parquet' lacks 'city'"),
        ({"age": [1], "city": ["x"], "more": [1]}, r"4\.parquet' also has 'more'"),
        ({"city": ["x"], "age": [1]}, r"4\.parquet' has them in another order"),
    ],
)
def test_files_of_other_columns(flights, other, message):
    pq.write_table(pa.table(other), flights / "4.parquet")
    with pytest.raises(TableError, match=message):
        read_file(flights)


def test_a_damaged_file_is_named(flights):
    (flights / "2.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(TableError, match=r"2\.parquet' is no complete parquet file"):
        read_file(flights)


def test_nothing_to_read(tmp_path):
    with pytest.raises(TableError, match="none matches"):
        read_file(tmp_path / "*.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match="has none"):
        read_file(tmp_path / "folder")


def test_a_file_beside_the_folders_of_a_column(by_year):
    pq.write_table(month(1), by_year / "b.parquet")
    with pytest.raises(TableError, match=r"b\.parquet' does not|a\.parquet' does not"):
        read_file(by_year)


def test_a_column_in_files_and_in_the_names_of_folders(by_year):
    for file in by_year.rglob("*.parquet"):
        pq.write_table(month(1).append_column("year", pa.array([1] * 6)), file)
    with pytest.raises(TableError, match="'year' is in both"):
        read_file(by_year)


def test_the_hash_tells_of_every_file(flights):
    before = sha256(flights)
    assert sha256(flights) == before == sha256(flights / "*.parquet")
    pq.write_table(month(9), flights / "2.parquet")
    assert sha256(flights) != before
