"""Starting the page: on the loopback addresses alone, with a token that only the starting user sees."""

from __future__ import annotations

import asyncio
import html
import logging
import os
import socket
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvicorn

from microagg.errors import InputError, shown
from microagg.formats.atomic import private_folder
from microagg.page.app import Page
from microagg.page.files import Folders, RequestLimits
from microagg.page.security import Guard, Keys, log
from microagg.page.session import Session
from microagg.page.tasks import Opened

_SECONDS_BETWEEN_LOOKS = 1.0  # whether nobody is there any more
_SECONDS_TO_END = 2

Say = Callable[[str, str], None]


class Server:
    """The page of one user: sockets, session, guard."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        port: int = 0,
        limits: RequestLimits | None = None,
        say: Say = lambda label, words: None,
        temporary: Path | None = None,
    ) -> None:
        self.limits, self._say = limits or RequestLimits(), say
        for path in paths:
            if not path.exists():
                raise InputError(
                    f"The page opens a file or a folder; there is no {shown(str(path), 300)}. Check its name."
                )
        opened = list(paths) or [Path.cwd()]
        roots = [path if path.is_dir() else path.parent for path in opened]
        self.sockets = _listening(port)
        self.port: int = self.sockets[0].getsockname()[1]
        self.keys = Keys()
        self._held = ExitStack()
        folder = private_folder(temporary or Path(tempfile.gettempdir()), "microagg-page-")
        self.private = self._held.enter_context(folder)
        self.session = Session(self.private)
        self.page = Page(self.session, Folders(roots), self.keys.home, self.limits)
        guard = Guard(self.page.app(), self.keys, self.port, self._entered)
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                guard,
                log_config=None,
                log_level=logging.CRITICAL,
                access_log=False,  # addresses and sizes are nobody's business
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=_SECONDS_TO_END,
            )
        )
        self.session.warm_up()
        first = next((path for path in opened if path.is_file()), None)
        if first is not None:
            self.session.open(Opened(first.resolve()))

    @property
    def address(self) -> str:
        """The address that lets one browser in."""
        return self.keys.entrance(self.port)

    def run(self) -> None:
        """Answer requests until somebody ends it, or nobody has come for a while."""
        try:
            asyncio.run(self._run())
        finally:
            self.close()

    def end(self) -> None:
        """Ask the server to end; may be called from any thread."""
        self._uvicorn.should_exit = True

    def close(self) -> None:
        """End the worker and remove all files."""
        self.session.close()
        self._held.close()
        for listening in self.sockets:
            listening.close()

    async def _run(self) -> None:
        watch = asyncio.create_task(self._end_when_idle())
        await self._uvicorn.serve(sockets=self.sockets)
        watch.cancel()

    async def _end_when_idle(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            busy = self.session.running is not None
            if not busy and time.monotonic() - self.page.last_asked > self.limits.idle:
                self._say("ended", "nobody has used the page for a while")
                self.end()

    def _entered(self) -> None:
        self._say("entered", f"another browser enters once by {self.address}")


def serve(
    paths: Sequence[Path], *, port: int, open_browser: bool, limits: RequestLimits, say: Say
) -> None:
    """Start the page, say where it is, and stay until it ends.

    Parameters
    ----------
    paths : files whose first screen is opened, with the table or plan in them
    port : 0 takes one that is free
    open_browser : whether to open the system's browser at the address
    limits : how large a request may be, and how many run at once
    say : is told the address and what goes wrong, a title and a sentence
    """
    with _logging(say):
        server = Server(paths, port=port, limits=limits, say=say)
        try:
            say("page", server.address)
            say("", "the address works once; Ctrl-C ends the page and removes its files")
            if not (open_browser and _open_browser(server)):
                tunnel = f"ssh -N -L {server.port}:127.0.0.1:{server.port} USER@THIS_MACHINE"
                say(
                    "", f"from another machine: run {tunnel} there, and open the same address there"
                )
            server.run()
        finally:  # also when Ctrl-C comes before the server runs
            server.close()


def _open_browser(server: Server) -> bool:
    """Open a private file that leads to the page; tell whether there is a browser.

    All users of a machine can read the words by which a program was started: the token must not be among
    those of the browser.
    """
    entrance = server.private / "enter.html"
    address = html.escape(server.address)
    handle = os.open(entrance, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>microagg</title>'
            f'<meta http-equiv="refresh" content="0;url={address}"><a href="{address}">Open the page</a>\n'
        )
    return webbrowser.open(entrance.as_uri())


def _listening(port: int) -> list[socket.socket]:
    """Listen on 127.0.0.1 and, where there is one, on ::1 with the same port; on nothing else."""
    sockets: list[socket.socket] = []
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            listening = socket.create_server((host, port), family=family, backlog=128)
        except OSError as error:
            if sockets:  # a machine without IPv6
                continue
            raise InputError(
                f"The page needs a free port of this machine; port {port} cannot be used "
                f"({error.strerror}). Name another one with --port, or none."
            ) from None
        listening.setblocking(False)
        port = listening.getsockname()[1]
        sockets.append(listening)
    return sockets


@contextmanager
def _logging(say: Say) -> Iterator[None]:
    """Let the page's log go the way of all words of the command."""
    handler = logging.Handler()
    handler.emit = lambda record: say("page", record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    before, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before
