"""The files that the page reads and takes in: of the folders that the user opened, and uploads.

Bodies of requests are limited in size and time: forms stay in memory, uploads go to a private file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import ClientDisconnect, Request

from microagg.errors import InputError, shown
from microagg.formats.addresses import ENDINGS, kind_by_ending
from microagg.ledger.ledger_file import key_file

_MOST = 500  # entries that a listing shows
_LONGEST_NAME = 150  # of an upload


class Folders:
    """The opened folders, by their true paths."""

    def __init__(self, opened: Sequence[Path]) -> None:
        self.roots = [path.resolve(strict=True) for path in opened]

    def check(self, path: Path) -> Path:
        """Return the true path of a file in an opened folder; refuse all others, and links out of it."""
        true: Path | None = None
        if path.is_absolute() and "\0" not in str(path):
            with contextlib.suppress(OSError, RuntimeError):
                true = path.resolve(strict=True)
        if true is None or not any(true.is_relative_to(root) for root in self.roots):
            # One sentence for both, so that nobody learns which files exist elsewhere.
            raise InputError(
                "The page reads only files in the folders that it was started with "
                f"({', '.join(shown(str(root), 300) for root in self.roots)}); "
                f"{shown(str(path), 300)} is in none of them, or does not exist. Start microagg page with "
                "that file, or upload it."
            )
        return true

    def check_ledger(self, path: Path) -> Path:
        """Return the true path of a ledger, which may be new; it and its key are in an opened folder."""
        folder = self.check(path.parent)
        for file in (path, key_file(path)):
            if os.path.lexists(file):
                self.check(file)
        return folder / path.name

    def ledgers(self, folder: Path) -> list[str]:
        """Return the names of the ledgers in a folder: files that have a key next to them."""
        names = sorted(key.name.removesuffix(".key") for key in folder.glob("[!.]*.key"))
        return [name for name in names if (folder / name).is_file()][:_MOST]

    def listing(self, path: Path) -> dict[str, Any]:
        """List the folders, and the tables with their sizes, in a folder; ``more`` counts those not listed.

        Hidden ones, and links out of the folder, are left out.
        """
        folder = self.check(path)
        if not folder.is_dir():
            raise InputError(f"{shown(str(path), 300)} is not a folder. Choose one from the list.")
        folders: list[Path] = []
        files: list[tuple[Path, int]] = []
        try:
            entries = sorted(folder.iterdir(), key=lambda entry: entry.name.casefold())
        except OSError as error:
            raise InputError(
                f"Cannot open {shown(str(path), 300)}: {error.strerror}. Choose another folder."
            ) from None
        for entry in entries:
            if entry.name.startswith("."):
                continue
            with contextlib.suppress(InputError, OSError):
                true = self.check(entry)
                if true.is_dir():
                    folders.append(entry)
                elif entry.suffix.lower() in ENDINGS and true.is_file():
                    files.append((entry, true.stat().st_size))
        return {
            "path": folder,
            "above": folder.parent if any(map(folder.parent.is_relative_to, self.roots)) else None,
            "folders": folders[:_MOST],
            "files": files[: max(_MOST - len(folders), 0)],
            "more": max(len(folders) + len(files) - _MOST, 0),
        }


@dataclass(frozen=True)
class RequestLimits:
    """Limits on the size and the time of a request."""

    form: int = 1 << 20
    upload: int = 500_000_000
    seconds: float = 600.0  # for the whole of a request
    silent: float = 20.0  # without any byte
    idle: float = 3600.0  # without any request and any task, until the server ends


class TooMuchError(Exception):
    """A request is too large, or takes too long."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


async def _pieces(request: Request, most: int, limits: RequestLimits) -> AsyncIterator[bytes]:
    """Yield the body of a request, piece by piece."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        raise TooMuchError(413, f"At most {most / 1e6:,.0f} MB can be sent at once.")
    ends, size = time.monotonic() + limits.seconds, 0
    stream = request.stream().__aiter__()
    while True:
        wait = min(limits.silent, ends - time.monotonic())
        try:
            piece = await asyncio.wait_for(anext(stream), max(wait, 0.0))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise TooMuchError(408, "The upload was too slow; nothing was kept.") from None
        except ClientDisconnect:
            raise TooMuchError(400, "The upload broke off; nothing was kept.") from None
        size += len(piece)
        if size > most:
            raise TooMuchError(413, f"At most {most / 1e6:,.0f} MB can be sent at once.")
        yield piece


async def form_of(request: Request, limits: RequestLimits) -> dict[str, str]:
    """Read a form; several values of a field are joined by commas."""
    body = b"".join([piece async for piece in _pieces(request, limits.form, limits)])
    fields: dict[str, str] = {}
    for key, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True):
        fields[key] = f"{fields[key]},{value}" if key in fields else value
    return fields


async def upload_to(request: Request, folder: Path, limits: RequestLimits) -> Path:
    """Write an upload into a folder, under the last part of the name that the browser gives."""
    given = unquote(request.headers.get("x-name", ""), errors="replace")
    name = given.replace("\\", "/").rpartition("/")[2]
    if not name.isprintable() or name.startswith(".") or not 0 < len(name) <= _LONGEST_NAME:
        raise InputError(
            f"The name of a file is printable and at most {_LONGEST_NAME} characters long; got "
            f"{shown(name)}. Rename the file."
        )
    path = folder / name
    kind_by_ending(path)  # an unknown ending is refused before anything is sent
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        async for piece in _pieces(request, limits.upload, limits):
            file.write(piece)
    return path
