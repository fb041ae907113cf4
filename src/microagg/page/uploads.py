"""Bodies of requests, limited in size and time: forms in memory, uploads in a private file."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from starlette.requests import ClientDisconnect, Request

from microagg.errors import InputError, shown
from microagg.formats.addresses import kind_by_ending

_LONGEST_NAME = 150


@dataclass(frozen=True)
class RequestLimits:
    """Limits on the size and the time of a request."""

    form: int = 1 << 20
    upload: int = 500_000_000
    seconds: float = 600.0
    """For the whole of a request."""
    silent: float = 20.0
    """Without any byte."""
    idle: float = 3600.0
    """Without any request and any task, until the server ends."""


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
