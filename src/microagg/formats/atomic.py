"""Writing files so that a name only ever stands for something complete.

Several files can take their names together: none does before all are complete, and when one
cannot, those that did are taken back.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from microagg.errors import TableError, shown
from microagg.formats.parquet_folders import foreign_file, is_several, parquet_files

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

__all__ = [
    "HAS_LOCKS",
    "Parts",
    "check_target",
    "lock",
    "private_folder",
    "remove_orphan_folders",
    "replacing",
    "replacing_all",
    "sha256",
]


_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"


class Parts(list[Path]):
    """Temporary files, in the order of the files that they are to become."""

    def __init__(self) -> None:
        super().__init__()
        self.named = False  # whether they have taken their names, all that shall
        self.withheld: set[int] = set()  # places of those that shall not


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``, which takes its name when the block succeeds.

    It has the same ending, so that the format can be told from it.

    When the block raises, the temporary file is removed and ``target`` is as it was
    before, be it absent or the very input of the run.
    """
    with replacing_all([target]) as parts:
        yield parts[0]


@contextmanager
def replacing_all(
    targets: Sequence[Path], folder: bool = False, overwrite: bool = True
) -> Iterator[Parts]:
    """Yield temporary paths beside several targets, which take their names when the block succeeds.

    With ``folder`` the last target is one, and so is its temporary path. Without ``overwrite`` the last
    target must not exist; see :func:`check_target`.

    They do so in the order given, each at once, after all are safely on the disk. When the block
    raises, or a later one cannot take its name, all targets are as they were before: what an
    earlier one replaced is put back, for which it is copied first. So the largest file goes last.
    Those in ``parts.withheld`` take no name and are removed.

    Whoever catches an interrupt sees from ``parts.named`` whether the files are there.
    """
    targets = [_real(target) for target in targets]  # a link stays a link
    is_folder = [folder and target is targets[-1] for target in targets]
    for target, several in zip(targets, is_folder, strict=True):
        check_target(target, several, overwrite or target is not targets[-1])
    parts = Parts()
    with ExitStack() as held:
        try:
            for target, several in zip(targets, is_folder, strict=True):
                _remove_orphans(target, several)
                make = _folder_beside if several else _part_beside
                parts.append(held.enter_context(make(target)))
            yield parts
            chosen = [j for j in range(len(parts)) if j not in parts.withheld]
            for part, target in ((parts[j], targets[j]) for j in chosen):
                for file in (
                    [f for f in part.rglob("*") if f.is_file()] if part.is_dir() else [part]
                ):
                    with file.open("rb+") as written:
                        os.fsync(written.fileno())
                part.chmod(_mode_for(target, part.is_dir()))
            backups = [_backup(targets[j], held) for j in chosen[:-1]]
        except OSError as error:
            raise _cannot_write(targets, error) from error
        _take_names(parts, chosen, targets, backups)


def _real(target: Path) -> Path:
    try:
        return Path(os.path.realpath(target))
    except ValueError:  # a zero byte in the name, which is refused with all other bad names
        return target


def _take_names(
    parts: Parts, chosen: Sequence[int], all_targets: list[Path], backups: list[Path | None]
) -> None:
    """Rename all that were chosen, or none."""
    files, targets = [parts[j] for j in chosen], [all_targets[j] for j in chosen]
    try:
        for part, target in zip(files, targets, strict=True):
            _take_name(part, target)
        parts.named = True
    except BaseException as error:  # Ctrl-C too
        # What was renamed is told by what is no longer there, even between two steps.
        renamed = [j for j, part in enumerate(files) if not part.exists()]
        if len(renamed) == len(files):
            parts.named = True
            raise
        left = []
        for j in renamed:
            backup = backups[j]
            try:
                if backup is None:
                    _remove(targets[j])
                else:
                    backup.replace(targets[j])
            except OSError:
                left.append(targets[j])
        if isinstance(error, OSError) or left:
            raise _cannot_write(targets, error, left) from error
        raise


def _take_name(part: Path, target: Path) -> None:
    """Rename a file or a folder, replacing what has the name.

    A folder that is not empty cannot be replaced at once: it is renamed first, and put back if the new one
    cannot take its place. Only a run that is killed just then leaves no folder under the name.
    """
    if not (target.is_dir() and any(target.iterdir())):
        part.replace(target)
        return
    aside = _name_beside(target)
    try:
        target.rename(aside)
        part.replace(target)
    finally:
        if not target.exists():
            aside.rename(target)
    shutil.rmtree(aside, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _backup(target: Path, held: ExitStack) -> Path | None:
    """Copy what a target stands for now, to put it back if need be."""
    if not target.exists():
        return None
    copy = held.enter_context(_part_beside(target))
    shutil.copyfile(target, copy)
    copy.chmod(_mode_for(target))
    return copy


@contextmanager
def _part_beside(target: Path) -> Iterator[Path]:
    """Make a temporary file that is locked as long as its maker lives, and removed at the end."""
    part = _name_beside(target)
    # Within the block from before it exists, so that no interrupt leaves it behind.
    try:
        with _made_and_locked(part):
            yield part
    finally:
        try:
            part.unlink(missing_ok=True)
        except KeyboardInterrupt:  # one that came just before
            part.unlink(missing_ok=True)
            raise


@contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    """Make a temporary folder, which is removed at the end unless it took its name."""
    part = _name_beside(target)
    handle = None
    try:
        part.mkdir(0o700)
        if HAS_LOCKS:
            handle = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
            lock(handle)
        yield part
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _made_and_locked(part: Path) -> Iterator[None]:
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        handle = os.open(part, flags, 0o600)
        if not HAS_LOCKS:  # as on Windows, where a file that is open cannot be renamed either
            os.close(handle)
            yield
            return
        try:
            lock(handle)
            if os.fstat(handle).st_nlink:
                yield
                return
        finally:
            os.close(handle)
        # Another run took it for an orphan before it was locked, and removed it: once more.


def _name_beside(target: Path) -> Path:
    name = "".join(random.SystemRandom().choices(_LETTERS, k=8))
    return target.with_name(f"{_start_of_part(target)}{name}.part{target.suffix}")


def _start_of_part(target: Path) -> str:
    return f".{target.name[:30]}."


def lock(handle: int, wait: bool = True) -> bool:
    """Lock an open file until it is closed; False: another process has, or locks do not exist."""
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove_orphans(target: Path, folder: bool = False) -> None:
    """Remove temporary files for this target whose maker was killed: nobody holds their lock.

    Folders are removed only where the target is one, so that nobody's own folder is taken for such a file.
    Without locks it cannot be told who was killed, and nothing is removed.
    """
    if not HAS_LOCKS:
        return
    start, end = _start_of_part(target), f".part{target.suffix}"
    orphan = re.compile(f"{re.escape(start)}[{_LETTERS}]{{8}}{re.escape(end)}", re.DOTALL)
    for entry in os.listdir(target.parent):
        if orphan.fullmatch(entry):
            path = target.parent / entry
            # What cannot be opened or removed is left, as it was left before.
            with contextlib.suppress(OSError):
                access = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR
                handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if lock(handle, wait=False) and os.path.samestat(
                        os.fstat(handle), os.lstat(path)
                    ):
                        _remove(path)
                finally:
                    os.close(handle)


@contextmanager
def private_folder(base: Path, start: str = "microagg-files-") -> Iterator[Path]:
    """Make a folder that only its owner can read, removed at the end; first remove those of killed runs."""
    remove_orphan_folders(base, start)
    handle = None
    while handle is None:
        folder = Path(tempfile.mkdtemp(prefix=start, dir=base))  # made with the mode 0700
        if not HAS_LOCKS:
            break
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        lock(handle)
        if not os.fstat(handle).st_nlink:  # another run took it for an orphan: once more
            os.close(handle)
            handle = None
    try:
        yield folder
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def remove_orphan_folders(base: Path, start: str) -> None:
    """Remove folders of this user whose run was killed: nobody holds their lock."""
    if not HAS_LOCKS:
        return
    for folder in base.glob(f"{start}*"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.getuid() and lock(handle, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def check_target(target: Path, folder: bool = False, overwrite: bool = True) -> None:
    """Refuse a place where no file (or folder) can be made, before any work is done for it.

    A file, or a folder of Parquet files, that is there already is replaced, unless ``overwrite`` is false. A
    folder that holds anything else is never replaced.
    """
    try:
        if "\0" in str(target):
            raise OSError(0, "the name holds a zero byte")
        filled = target.is_dir() and any(target.iterdir())
        if not overwrite and (filled or target.is_file()):
            raise TableError(
                f"--no-overwrite: nothing is replaced, and {shown(str(target), 300)} exists. Choose "
                "another name, remove it, or say --overwrite."
            )
        foreign = foreign_file(target) if folder and filled else None
        if foreign is not None:
            raise TableError(
                "A folder is replaced only if it holds nothing but Parquet files; "
                f"{shown(str(foreign), 300)} is none. Choose another name."
            )
        if target.exists() and not (target.is_dir() if folder else target.is_file()):
            raise TableError(
                f"The output must be an ordinary file; {shown(str(target), 300)} is not one. "
                "Choose another name."
            )
        if not target.parent.is_dir():
            raise NotADirectoryError(0, f"there is no folder {shown(str(target.parent), 300)}")
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(0, "the folder is not writable")
    except OSError as error:
        raise _cannot_write([target], error) from None


def sha256(path: Path) -> str:
    """Hash of a file's content, or of the names and hashes of several, in hexadecimal digits."""
    import hashlib

    if is_several(path):
        lines = [f"{sha256(file)}  {file.name}\n" for file in parquet_files(path)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return digest_of(file)


def digest_of(file: BufferedReader) -> str:
    """Hash of the content of an open file, which is then again at its beginning."""
    import hashlib

    found = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return found


def _mode_for(target: Path, folder: bool = False) -> int:
    """Permissions of the file that is replaced, or those that a new file (or folder) would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return (0o777 if folder else 0o666) & ~umask


def _cannot_write(
    targets: Sequence[Path], error: BaseException, left: Sequence[Path] = ()
) -> TableError:
    """Say what could not be written, and what there is nevertheless."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    paths = " or ".join(shown(str(target), limit=300) for target in targets)
    there = " and ".join(shown(str(target), limit=300) for target in left)
    fact = (
        f"All is as it was before but {there}; remove that yourself"
        if left
        else "Nothing was released; choose a folder that exists, is writable and has room"
    )
    return TableError(f"Cannot write {paths}: {reason}. {fact}.")
