"""A name stands for a complete file or for what it stood for before."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from microagg import TableError
from microagg.formats.atomic import check_target, replacing, replacing_all


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


@pytest.mark.parametrize(
    ("place", "fact"),
    [
        ("missing/out.csv", "there is no folder.*folder that exists"),
        (f"{'a' * 300}.csv", "name too long"),
        ("a\0b.csv", "the name holds a zero byte"),
    ],
)
def test_a_place_that_takes_no_file(tmp_path, place, fact):
    with pytest.raises(TableError, match=f"Cannot write .*{fact}"):
        write(tmp_path / place)


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def denied(*_args, **_settings):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(TableError, match=r"Cannot write .*Permission denied.*writable"):
        write(tmp_path / "out.csv")


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


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "out.parquet").write_text("old")
    with pytest.raises(
        TableError, match=r"is a folder of Parquet files; .*out\.parquet' is a file"
    ):
        check_target(tmp_path / "out.parquet", folder=True)


@pytest.mark.posix
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
@pytest.mark.posix
def test_the_permissions_of_a_replaced_file_are_kept(tmp_path, mode):
    target = tmp_path / "out.csv"
    target.write_text("old")
    target.chmod(mode)
    write(target)
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
@pytest.mark.posix
def test_a_new_file_gets_the_usual_permissions(tmp_path, umask, mask, mode):
    umask(mask)
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == mode


@pytest.mark.posix
def test_nobody_else_can_read_a_file_before_it_is_complete(tmp_path, umask):
    umask(0)
    with replacing(tmp_path / "out.csv") as part:
        assert part.stat().st_mode & 0o077 == 0


def test_a_name_that_is_not_utf_8(tmp_path):
    target = tmp_path / os.fsdecode(b"caf\xe9.csv")
    write(target)
    assert [entry.name for entry in os.scandir(os.fsencode(tmp_path))] == [b"caf\xe9.csv"]
    target.unlink()
    target.mkdir()
    with pytest.raises(TableError, match=r"caf\\udce9\.csv' is not one"):
        write(target)


# What a killed run has left

ORPHANS = [".out.csv.abcdefgh.part.csv", ".out.csv.a_0z9y8x.part.csv"]
OTHERS = [
    ".out.csv.notes.part.csv",  # no name that we give
    ".out.csv.ABCDEFGH.part.csv",
    ".out.parquet.abcdefgh.part.parquet",
    "out.csv.abcdefgh.part.csv",
]


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path):
    for name in [*ORPHANS, *OTHERS]:
        (tmp_path / name).write_text("half")
    write(tmp_path / "out.csv")
    assert names(tmp_path) == sorted([*OTHERS, "out.csv"])


def test_a_folder_or_a_link_named_like_an_orphan_is_left(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ORPHANS[0]).mkdir()
    (tmp_path / ORPHANS[1]).symlink_to(tmp_path / "mine")
    write(tmp_path / "out.csv")
    assert names(tmp_path) == sorted([*ORPHANS, "mine", "out.csv"])
    assert (tmp_path / "mine").read_text() == "mine"


HOLDER = """
import sys
from pathlib import Path
from microagg.formats.atomic import replacing

with replacing(Path(sys.argv[1])) as part:
    part.write_text("theirs")
    print(part.name, flush=True)
    sys.stdin.readline()
"""


def another_run(target: Path) -> subprocess.Popen[str]:
    """Write a file in another process, which says its name and waits for a line."""
    words = [sys.executable, "-c", HOLDER, str(target)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_the_file_of_another_run_is_left_until_that_run_is_killed(tmp_path):
    target = tmp_path / "out.csv"
    with another_run(target) as other:
        part = other.stdout.readline().strip()
        write(target)
        assert names(tmp_path) == sorted([part, "out.csv"])
        other.kill()
    assert names(tmp_path) == sorted([part, "out.csv"])
    write(target)
    assert names(tmp_path) == ["out.csv"]


def test_the_file_of_another_run_takes_its_name_though_we_wrote_meanwhile(tmp_path):
    target = tmp_path / "out.csv"
    with another_run(target) as other:
        other.stdout.readline()
        write(target)
        other.communicate("go on\n")
    assert other.returncode == 0
    assert target.read_text() == "theirs"
    assert names(tmp_path) == ["out.csv"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file left open
@pytest.mark.posix
def test_an_interrupt_while_the_temporary_file_is_made_or_removed_leaves_nothing(tmp_path, umask):
    """Interrupt after each line that runs here, one after the other."""
    usual = umask(0o022)
    for line in range(1, 200):
        seen = 0

        def interrupt(frame, event, _arg, line=line):
            nonlocal seen
            if frame.f_code.co_filename.endswith("atomic.py") and event == "line":
                seen += 1
                if seen == line:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            write(tmp_path / "out.csv")
        except KeyboardInterrupt:
            pass
        else:
            break  # the run has fewer lines
        finally:
            sys.settrace(before)
        assert [name for name in names(tmp_path) if ".part" in name] == [], line
        assert umask(0o022) == usual, line
    assert 30 < line < 199


# Several files together

THREE = ["report.json", "report.html", "out.csv"]


def write_three(folder: Path, old: str | None = None):
    if old is not None:
        for name in THREE:
            (folder / name).write_text(old)
    with replacing_all([folder / name for name in THREE]) as parts:
        for part, name in zip(parts, THREE, strict=True):
            assert part.suffix == Path(name).suffix
            part.write_text("new")
            assert not parts.named
    return parts


def contents(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir()}


@pytest.mark.parametrize("old", [None, "old"])
def test_several_files_take_their_names_together(tmp_path, old):
    assert write_three(tmp_path, old).named
    assert contents(tmp_path) == dict.fromkeys(THREE, "new")


@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fails", range(3))
def test_all_have_their_names_or_none(tmp_path, monkeypatch, old, error, fails, after):
    """Fail before or after the renaming of each file, as an interrupt may."""
    rename = Path.replace
    calls = []

    def failing(part, target):
        calls.append(target)
        if len(calls) == fails + 1 and not after:
            raise error
        result = rename(part, target)
        if len(calls) == fails + 1 and after:
            raise error
        return result

    monkeypatch.setattr(Path, "replace", failing)
    complete = fails == 2 and after
    kind = TableError if isinstance(error, OSError) and not complete else type(error)
    with pytest.raises(kind) as caught:
        write_three(tmp_path, old)
    if kind is TableError:
        assert "Permission denied. Nothing was released" in str(caught.value)
        assert "report.html' or " in str(caught.value)
    expected = "new" if complete else old
    assert contents(tmp_path) == ({} if expected is None else dict.fromkeys(THREE, expected))


def test_a_file_that_cannot_be_taken_back_is_told(tmp_path, monkeypatch):
    rename, remove = Path.replace, Path.unlink

    def denied(*_args):
        raise PermissionError(13, "Permission denied")

    def rename_first(part, target):
        return rename(part, target) if target.name == THREE[0] else denied()

    def remove_parts(path, missing_ok=False):
        return remove(path, missing_ok) if ".part" in path.name else denied()

    monkeypatch.setattr(Path, "replace", rename_first)
    monkeypatch.setattr(Path, "unlink", remove_parts)
    with pytest.raises(TableError) as caught:
        write_three(tmp_path)
    assert re.search(r"All is as it was before but '.*report\.json'", str(caught.value))
    assert "Nothing was released" not in str(caught.value)
    assert contents(tmp_path) == {"report.json": "new"}


def test_one_target_that_cannot_be_written_leaves_the_others_alone(tmp_path):
    with (
        pytest.raises(TableError, match="there is no folder"),
        replacing_all([tmp_path / "out.csv", tmp_path / "missing" / "report.html"]),
    ):
        pytest.fail("the block must not be entered")
    assert names(tmp_path) == []
