"""A name stands for a complete file or for what it stood for before."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from microagg import TableError
from microagg.tables.atomic import replacing


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def write(target: Path, then: BaseException | None = None) -> None:
    """Write a file, and raise something before it is complete."""
    with replacing(target) as part:
        part.write_text("new")
        if then is not None:
            raise then


@pytest.fixture
def umask():
    """Set the mask of permissions for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_a_new_file(tmp_path):
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "new"
    assert names(tmp_path) == ["out.csv"]


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")
    with replacing(target) as part:
        part.write_text("half")
        assert target.read_text() == "old"
        assert part.parent == target.parent
        assert part.suffix == ".csv"
    assert target.read_text() == "half"
    assert names(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("old", [None, "old"])
def test_an_error_leaves_everything_as_it_was(tmp_path, error, old):
    target = tmp_path / "out.csv"
    if old:
        target.write_text(old)
    before = names(tmp_path)
    with pytest.raises(error):
        write(target, then=error())
    assert names(tmp_path) == before
    assert old is None or target.read_text() == old


def test_a_full_disk_while_writing(tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(TableError, match=r"Cannot write .*out\.csv.*No space left.*has room"):
        write(target, then=full)
    assert names(tmp_path) == ["out.csv"]
    assert target.read_text() == "old"


def test_a_full_disk_that_shows_only_when_the_file_is_flushed(tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TableError, match="No space left"):
        write(tmp_path / "out.csv")
    assert names(tmp_path) == []


def test_a_folder_that_is_missing(tmp_path):
    with pytest.raises(TableError, match=r"Cannot write .*there is no folder.*folder that exists"):
        write(tmp_path / "missing" / "out.csv")


def test_a_path_below_a_file(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(TableError, match=r"Cannot write .*there is no folder"):
        write(tmp_path / "file" / "out.csv")
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def denied(*_args, **_settings):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("tempfile.mkstemp", denied)
    with pytest.raises(TableError, match=r"Cannot write .*Permission denied.*writable"):
        write(tmp_path / "out.csv")


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(TableError, match=r"Cannot write .*name too long"):
        write(tmp_path / f"{'a' * 300}.csv")


def test_the_longest_name_that_a_disk_takes(tmp_path):
    target = tmp_path / f"{'🦜' * 62}.csv"
    write(target)
    assert target.read_text() == "new"


def test_a_folder_is_never_replaced(tmp_path):
    target = tmp_path / "out.csv"
    target.mkdir()
    with pytest.raises(TableError, match=r"must be an ordinary file; .*out\.csv' is not one"):
        write(target)
    assert target.is_dir()


def test_a_device_is_never_replaced():
    with pytest.raises(TableError, match="must be an ordinary file; '/dev/null' is not one"):
        write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


def test_a_pipe_is_never_replaced(tmp_path):
    target = tmp_path / "out.csv"
    os.mkfifo(target)
    with pytest.raises(TableError, match="must be an ordinary file"):
        write(target)
    assert target.is_fifo()


def test_a_link_keeps_pointing_where_it_does(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.csv", tmp_path / "out.csv"
    real.write_text("old")
    link.symlink_to(real)
    write(link)
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert names(tmp_path / "elsewhere") == ["real.csv"]


def test_a_link_to_a_file_yet_to_be(tmp_path):
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "real.csv")
    write(link)
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_the_permissions_of_a_replaced_file_are_kept(tmp_path, mode):
    target = tmp_path / "out.csv"
    target.write_text("old")
    target.chmod(mode)
    write(target)
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_the_usual_permissions(tmp_path, umask, mask, mode):
    umask(mask)
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == mode


def test_nobody_else_can_read_a_file_before_it_is_complete(tmp_path, umask):
    umask(0)
    with replacing(tmp_path / "out.csv") as part:
        assert part.stat().st_mode & 0o077 == 0
