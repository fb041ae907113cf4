"""The server's side of a worker: start it, send tasks, receive messages, end it."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from microagg.page.tasks import Message, Task

_SECONDS_TO_END = 5.0


class Worker:
    """A process with a thread that calls ``on_message`` and ``on_end``."""

    def __init__(
        self,
        on_message: Callable[[Worker, Message], None],
        on_end: Callable[[Worker, int], None],
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_work, args=(far,), daemon=True)
        self._process.start()
        far.close()
        self.used = False
        self._on_message, self._on_end = on_message, on_end
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return int(self._process.pid or 0)

    def send(self, task: Task | str) -> None:
        """Send a task, or the request to stop; a process that has ended reports that itself."""
        self.used = True
        with suppress(OSError):
            self._pipe.send(task)

    def kill(self) -> None:
        """End the process at once; it writes under temporary names, so no incomplete file has a name."""
        self._process.kill()
        self._process.join(_SECONDS_TO_END)

    def _listen(self) -> None:
        while True:
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                break
            self._on_message(self, message)
        self._process.join(_SECONDS_TO_END)
        self._pipe.close()
        self._on_end(self, self._process.exitcode or 0)


def _work(pipe: Connection) -> Any:
    # Loaded in the worker alone: the server needs neither numba nor the table.
    from microagg.base.own_process import start_quickly

    start_quickly()
    from microagg.page.worker import serve_tasks

    serve_tasks(pipe)
