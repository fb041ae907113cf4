"""Writing files so that a name only ever stands for something complete.

Several files can take their names together: none does before all are complete, and when one
cannot, those that did are taken back.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from microagg.errors import TableError, shown
from microagg.formats.parquet import foreign_file, is_several, parquet_files

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True


class TemporaryFiles(list[Path]):
    """Temporary files, in the order of the files that they are to become."""

    def __init__(self) -> None:
        super().__init__()
        self.named = False  # whether they have taken their names, all that shall
        self.withheld: set[int] = set()  # places of those that shall not
        # Places of those that only their owner may read; they go first.
        self.private: set[int] = set()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``target``, which takes its name when the block succeeds.

    It has the same ending, which says the format. When the block raises, the temporary file is removed and
    ``target`` is as it was before, be it absent or the very input of the run.
    """
    with replacing_all([target]) as parts:
        yield parts[0]


@contextmanager
def replacing_all(
    targets: Sequence[Path], folder: bool = False, overwrite: bool = True
) -> Iterator[TemporaryFiles]:
    """Yield temporary paths next to several targets, which take their names when the block succeeds.

    Parameters
    ----------
    targets : files in the order in which they take their names, the largest last
    folder : whether the last target is a folder, and so is its temporary path
    overwrite : whether the last target may exist; see :func:`check_target`

    They do so in the order given, private ones first, each at once, after all are safely on the disk. When
    the block raises, or a later one cannot take its name, all targets are as they were before: what an
    earlier one replaced is put back, for which it is copied first. So the largest file goes last.
    Those in ``parts.withheld`` take no name and are removed.

    After an interrupt, ``parts.named`` says whether the files are there.
    """
    # A link stays a link; a zero byte in a name is refused with all other bad names.
    targets = [t if "\0" in str(t) else Path(os.path.realpath(t)) for t in targets]
    is_folder = [folder and target is targets[-1] for target in targets]
    for target, several in zip(targets, is_folder, strict=True):
        check_target(target, several, overwrite or target is not targets[-1])
    parts = TemporaryFiles()
    with ExitStack() as held:
        try:
            for target, several in zip(targets, is_folder, strict=True):
                _remove_orphans(target, several)
                parts.append(held.enter_context(_part_next_to(target, several)))
            yield parts
            chosen = [j for j in range(len(parts)) if j not in parts.withheld]
            chosen.sort(key=lambda j: j not in parts.private)
            moves: list[tuple[Path, Path, Path | None]] = []  # the part, its target, what was there
            for j in chosen:
                temporary, target = parts[j], targets[j]
                files = [temporary, *temporary.rglob("*")]
                for file in (file for file in files if file.is_file()):
                    with file.open("rb+") as written:
                        os.fsync(written.fileno())
                mode = 0o600 if j in parts.private else _mode_for(target, temporary.is_dir())
                temporary.chmod(mode)
                backup = None  # what the target stands for now, to put it back if need be
                if j != chosen[-1] and target.exists():
                    backup = held.enter_context(_part_next_to(target))
                    shutil.copyfile(target, backup)
                    backup.chmod(_mode_for(target))
                moves.append((temporary, target, backup))
        except OSError as error:
            raise _cannot_write(targets, error) from error
        _take_names(parts, moves)


def _take_names(parts: TemporaryFiles, moves: Sequence[tuple[Path, Path, Path | None]]) -> None:
    """Rename all that were chosen, or none."""
    try:
        for temporary, target, _ in moves:
            _take_name(temporary, target)
        parts.named = True
    except BaseException as error:  # Ctrl-C too
        # A part that is no longer there was renamed, even between two steps.
        renamed = [move for move in moves if not move[0].exists()]
        if len(renamed) == len(moves):
            parts.named = True
            raise
        left = []
        for _, target, backup in renamed:
            try:
                _remove(target) if backup is None else backup.replace(target)
            except OSError:
                left.append(target)
        if isinstance(error, OSError) or left:
            raise _cannot_write([target for _, target, _ in moves], error, left) from error
        raise


def _take_name(part: Path, target: Path) -> None:
    """Rename a file or a folder, replacing what has the name.

    A folder that is not empty cannot be replaced at once: it is renamed first, and put back if the new one
    cannot take its place. Only a run that is killed just then leaves no folder under the name.
    """
    if not (target.is_dir() and any(target.iterdir())):
        part.replace(target)
        return
    aside = _name_next_to(target)
    try:
        target.rename(aside)
        part.replace(target)
    finally:
        if not target.exists():
            aside.rename(target)
    shutil.rmtree(aside, ignore_errors=True)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _part_next_to(target: Path, folder: bool = False, mode: int = 0o600) -> Iterator[Path]:
    """Make a temporary file or folder, which is removed at the end unless it took its name."""
    temporary = _name_next_to(target)

    def make() -> Path:
        if folder:
            temporary.mkdir(mode | 0o100)  # which its owner may enter
        else:
            temporary.touch(mode, exist_ok=False)
        return temporary

    # Within the block from before it exists, so that no interrupt leaves it behind.
    try:
        with _locked(make):
            yield temporary
    finally:
        try:
            _remove(temporary)
        except KeyboardInterrupt:  # one that came just before
            _remove(temporary)
            raise


@contextmanager
def _locked(make: Callable[[], Path]) -> Iterator[Path]:
    """Make a file or folder that is locked as long as its maker lives."""
    while True:
        path = make()
        if not HAS_LOCKS:  # as on Windows, where a file that is open cannot be renamed either
            yield path
            return
        access = os.O_RDONLY if path.is_dir() else os.O_RDWR
        try:
            handle = os.open(path, access | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            lock(handle)
            if os.fstat(handle).st_nlink:
                yield path
                return
        finally:
            os.close(handle)
        # Another run took it for an orphan before it was locked, and removed it: once more.


def _name_next_to(target: Path) -> Path:
    return target.with_name(f".{target.name[:30]}.{secrets.token_hex(4)}.part{target.suffix}")


def lock(handle: int, wait: bool = True) -> bool:
    """Lock an open file, by its ``handle``, until it is closed; with ``wait`` after others have closed it.

    False: another process has it, or locks do not exist.
    """
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove_orphans(target: Path, folder: bool) -> None:
    """Remove the temporary files, or folders, of killed runs for this target."""
    start, end = f".{target.name[:30]}.", f".part{target.suffix}"
    orphan = re.compile(f"{re.escape(start)}[a-z0-9_]{{8}}{re.escape(end)}", re.DOTALL)
    entries = [entry for entry in os.listdir(target.parent) if orphan.fullmatch(entry)]
    _remove_unlocked([target.parent / entry for entry in entries], folder)


def remove_orphan_folders(base: Path, start: str) -> None:
    """Remove the folders of killed runs in ``base`` whose names begin with ``start``."""
    _remove_unlocked(base.glob(f"{glob.escape(start)}*"), folders=True)


def _remove_unlocked(paths: Iterable[Path], folders: bool) -> None:
    """Remove those files, or folders, of this user that no living run has locked.

    Without locks nobody can tell which runs were killed, and nothing is removed.
    """
    for path in paths if HAS_LOCKS else ():
        with contextlib.suppress(OSError):  # what cannot be opened or removed stays
            access = os.O_RDONLY | os.O_DIRECTORY if folders else os.O_RDWR
            handle = os.open(path, access | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                status = os.fstat(handle)
                is_ours = status.st_uid == os.getuid() and lock(handle, wait=False)
                if is_ours and os.path.samestat(status, os.lstat(path)):
                    _remove(path)
            finally:
                os.close(handle)


@contextmanager
def private_folder(base: Path, start: str = "microagg-files-") -> Iterator[Path]:
    """Make a folder in ``base`` that only its owner can read, and remove it at the end.

    Its name begins with ``start``; those of killed runs are removed first.
    """
    remove_orphan_folders(base, start)
    folder = None
    try:
        with _locked(lambda: Path(tempfile.mkdtemp(prefix=start, dir=base))) as folder:
            yield folder
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def check_target(target: Path, folder: bool = False, overwrite: bool = True) -> None:
    """Refuse a place where no file (or folder) can be made, before any work is done for it.

    Parameters
    ----------
    target : absolute path of the file or folder to be
    folder : whether it is to be a folder of Parquet files
    overwrite : whether a file, or a folder of Parquet files, that is there already is replaced; a folder
        that holds anything else is never replaced
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
        if folder and target.is_file():
            raise TableError(
                f"The output is a folder of Parquet files; {shown(str(target), 300)} is a file. Choose "
                "another name, or remove the file."
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
    """Return the hash of what is in ``path``, of a folder that of names and hashes, as hexadecimal digits."""
    if is_several(path):
        lines = [f"{sha256(file)}  {file.name}\n" for file in parquet_files(path)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return digest_of(file)


def digest_of(file: BufferedReader) -> str:
    """Hash of the content of an open file, which is then again at its beginning."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _mode_for(target: Path, folder: bool = False) -> int:
    """Permissions of what is replaced, or those that a new file (or folder) gets, which is tried."""
    if target.exists():
        return target.stat().st_mode & 0o777
    with _part_next_to(target, folder, 0o777 if folder else 0o666) as new:
        mode = new.stat().st_mode & 0o777
        _remove(new)  # here, so that no interrupt leaves it behind
    return mode


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
