"""Places of tables that are no plain local files: object stores, compressed CSV, standard input and output.

A table from such a place is copied into a private folder and read there. One for such a place is written
there, read back and counted; then it is sent under a temporary name, read back again, compared byte by byte
(by its hash), and only then gets its name. Object stores copy a file to its new name: readers see the old
file or the new one. A folder of several files gets its names one after the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from microagg.errors import MicroaggError, TableError, VerificationError, shown
from microagg.formats.addresses import CODECS, STANDARD, Address, Place, is_plain, plain_name
from microagg.formats.atomic import private_folder, sha256

_AT_ONCE = 1 << 20
_ARROW_STREAM, _ARROW_FILE = b"\xff\xff\xff\xff", b"ARROW1"


def fetched(place: Place, folder: Path) -> tuple[Path, str]:
    """Copy a table from its ``place`` into a private ``folder``.

    Returns
    -------
    path : the local file or folder that stands for the place
    sha256 : hash of what lies in the place, compressed or not
    """
    if isinstance(place, Address):
        with place.reached() as (store, path):
            return _from_store(place, store, path, folder)
    if place == STANDARD:
        return _from_input(folder)
    try:
        return _unpacked(place, folder / plain_name(place), sha256(place))
    except FileNotFoundError:
        raise TableError(f"There is no file {shown(str(place), 300)}.") from None
    except OSError as error:
        raise TableError(f"Cannot read {shown(str(place), 300)}: {error.strerror}.") from None


def _from_store(place: Address, store: Any, path: str, folder: Path) -> tuple[Path, str]:
    from pyarrow import fs

    info = store.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise TableError(f"There is no file {shown(str(place), 300)}.")
    if info.type == fs.FileType.File:
        name = folder / place.name
        with store.open_input_stream(path) as stream, name.open("wb") as file:
            digest = _copy(stream, file)
        return _unpacked(name, folder / plain_name(place), digest)
    copy = folder / (place.name or "table")
    for entry in store.get_file_info(fs.FileSelector(path, recursive=True)):
        within = Path(entry.path).relative_to(path)
        if entry.type != fs.FileType.File or within.suffix.lower() not in (".parquet", ".pq"):
            continue
        if not {".."}.isdisjoint(within.parts):
            raise TableError(f"{shown(str(place), 300)} has a file whose name leads out of it.")
        (copy / within).parent.mkdir(parents=True, exist_ok=True)
        with store.open_input_stream(entry.path) as stream, (copy / within).open("wb") as file:
            _copy(stream, file)
    copy.mkdir(exist_ok=True)
    return copy, sha256(copy)


def _from_input(folder: Path) -> tuple[Path, str]:
    """Copy standard input: an Arrow stream or file, by its first bytes, or else CSV."""
    import pyarrow as pa

    arrived = folder / "standard input"
    with arrived.open("wb") as copy:
        digest = _copy(sys.stdin.buffer, copy)
    with arrived.open("rb") as file:
        head = file.read(len(_ARROW_FILE))
    if not head.startswith(_ARROW_STREAM):
        name = "stdin.arrow" if head.startswith(_ARROW_FILE) else "stdin.csv"
        return arrived.rename(folder / name), digest
    whole = folder / "stdin.arrow"
    try:
        with arrived.open("rb") as file, pa.ipc.open_stream(file) as stream:
            _copy_batches(stream, pa.ipc.new_file(str(whole), stream.schema))
    except (OSError, pa.ArrowException):
        raise TableError(
            "Standard input begins as an Arrow stream and is no complete one. Check what writes it."
        ) from None
    arrived.unlink()
    return whole, digest


def _copy_batches(batches: Any, writer: Any) -> None:
    with writer:
        for batch in batches:
            writer.write_batch(batch)


def _unpacked(path: Path, target: Path, digest: str) -> tuple[Path, str]:
    """Decompress a file, if its ending says that it is compressed."""
    import pyarrow as pa

    codec = CODECS.get(path.suffix.lower())
    if codec is None:
        return path, digest
    try:
        with path.open("rb") as file, target.open("wb") as plain:
            _copy(pa.CompressedInputStream(file, codec), plain)
    except OSError as error:
        if error.errno is not None:
            raise
        raise TableError(
            f"{shown(str(path), 300)} is no complete {codec} file. Check that it was copied whole and that "
            "its ending fits its content."
        ) from None
    return target, digest


def _copy(source: Any, target: Any = None) -> str:
    """Copy a stream, if there is a target, and return the hash of what it held."""
    digest = hashlib.sha256()
    while chunk := source.read(_AT_ONCE):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
    return digest.hexdigest()


class Destination:
    """A place to which a table is sent that was written to a private folder and counted there."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self._folder = place, folder
        self._packed = folder  # the table in the form of the place, once it is packed
        self._temporary = ""

    @property
    def is_local(self) -> bool:
        """Whether the place is a file, which takes its name together with others."""
        return isinstance(self.place, Path) and self.place != STANDARD

    def pack(self, table: Path, part: Path) -> str:
        """Bring a table into the form of its place and return its hash; ``part`` is for a local file."""
        import pyarrow as pa

        self._packed = table
        codec = CODECS.get(Path(self.place.name).suffix.lower())
        if self.place == STANDARD and table.suffix == ".arrow":
            self._packed = self._folder / "stream"
            with pa.ipc.open_file(str(table)) as whole:
                batches = (whole.get_batch(j) for j in range(whole.num_record_batches))
                _copy_batches(batches, pa.ipc.new_stream(str(self._packed), whole.schema))
        elif codec is not None:
            self._packed = part if self.is_local else self._folder / self.place.name
            with (
                table.open("rb") as plain,
                self._packed.open("wb") as compressed,
                pa.CompressedOutputStream(compressed, codec) as out,
            ):
                digest = _copy(plain, out)
            with self._packed.open("rb") as file:
                self._refuse_difference(_copy(pa.CompressedInputStream(file, codec)), digest)
        return sha256(self._packed)

    def send(self) -> None:
        """Send the table to a store under a temporary name.

        Raises
        ------
        VerificationError
            If it is read back and is not what was counted.
        """
        if isinstance(self.place, Address):
            with self.place.reached() as (store, path):
                parent, _, name = path.rpartition("/")
                self._temporary = f"{parent}/.{name[:30]}.{secrets.token_hex(4)}.part"
                for within, file in self._files().items():
                    there = self._temporary + within
                    self._refuse_difference(_sent(store, file, there), sha256(file))

    def _files(self) -> dict[str, Path]:
        """Return the files to send, by what follows the name of the place: nothing, or /part.parquet."""
        if not self._packed.is_dir():
            return {"": self._packed}
        files = sorted(file for file in self._packed.rglob("*") if file.is_file())
        return {f"/{file.relative_to(self._packed).as_posix()}": file for file in files}

    def _refuse_difference(self, digest: str, expected: str) -> None:
        if digest != expected:
            raise VerificationError(
                f"{shown(str(self.place), 300)} was read back and is not what was written. Nothing was "
                "released."
            )

    def take_name(self) -> None:
        """Give what was sent its name; standard output gets it now.

        The files of a folder get their names one after the other, in place of those that were there.
        """
        from pyarrow import fs

        if self.place == STANDARD:
            with self._packed.open("rb") as file:
                _copy(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        elif isinstance(self.place, Address):
            with self.place.reached() as (store, path):
                kind = store.get_file_info(path).type
                if self._packed.is_dir() and kind == fs.FileType.Directory:
                    store.delete_dir_contents(path)
                if store.type_name == "hdfs" and kind == fs.FileType.File:
                    store.delete_file(path)  # which renames over nothing that is there
                for within in self._files():
                    _make_folder(store, path + within)
                    store.move(self._temporary + within, path + within)
                if self._packed.is_dir():
                    with contextlib.suppress(OSError):
                        store.delete_dir(self._temporary)

    def remove(self) -> None:
        """Remove what was sent and did not take its name."""
        if self._temporary and isinstance(self.place, Address):
            with contextlib.suppress(Exception), self.place.reached() as (store, _):
                remove = store.delete_dir if self._packed.is_dir() else store.delete_file
                remove(self._temporary)

    def check(self, overwrite: bool) -> None:
        """Refuse a place that cannot be written to, before any work."""
        from pyarrow import fs

        plain_name(self.place)
        if not isinstance(self.place, Address):
            return
        with self.place.reached() as (store, path):
            if not self.place.name:
                raise TableError(f"{shown(str(self.place), 300)} names no file. Add its name.")
            info = store.get_file_info(path)
            if not overwrite and info.type != fs.FileType.NotFound:
                raise TableError(
                    f"--no-overwrite: nothing is replaced, and {shown(str(self.place), 300)} exists. "
                    "Choose another name, remove it, or say --overwrite."
                )


def _make_folder(store: Any, path: str) -> None:
    """Make the folder that a path lies in; object stores have none."""
    if store.type_name in ("hdfs", "local"):
        store.create_dir(path.rpartition("/")[0], recursive=True)


def _sent(store: Any, file: Path, to: str) -> str:
    """Send a file and return the hash of what is read back."""
    _make_folder(store, to)
    with file.open("rb") as local, store.open_output_stream(to) as out:
        _copy(local, out)
    with store.open_input_stream(to) as back:
        return _copy(back)


@contextmanager
def local_copies(*places: Place) -> Iterator[list[Path]]:
    """Yield local files that stand for places to read from; plain ones stand for themselves.

    Errors within name the places and not their copies.
    """
    with ExitStack() as stack:
        paths = []
        for address in places:
            if isinstance(address, Path) and is_plain(address):
                paths.append(address)
                continue
            folder = stack.enter_context(private_folder(Path(tempfile.gettempdir())))
            stack.enter_context(naming({folder: address}))
            paths.append(fetched(address, folder)[0])
        yield paths


@contextmanager
def naming(places: Mapping[Path, Place]) -> Iterator[None]:
    """Let errors name a place of ``places``, where they name a file in the folder that stands for it."""
    try:
        yield
    except MicroaggError as error:
        message = str(error)
        for folder, address in places.items():
            name = str(address).replace("\\", r"\\")  # in a pattern's replacement
            message = re.sub(re.escape(str(folder)) + r"(/[^'\"]*)?", name, message)
        error.args = (message, *error.args[1:])
        raise
