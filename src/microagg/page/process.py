"""The server's side of a worker: start it, hand it tasks, hear of them, end it."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from microagg.page.tasks import Task, Told

__all__ = ["Worker"]

_SECONDS_TO_END = 5.0


class Worker:
    """A process of its own; ``heard`` and ``ended`` are called in a thread."""

    def __init__(
        self, heard: Callable[[Worker, Told], None], ended: Callable[[Worker, int], None]
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_work, args=(far,), daemon=True)
        self._process.start()
        far.close()
        self.used = False
        self._heard, self._ended = heard, ended
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return int(self._process.pid or 0)

    def send(self, task: Task | str) -> None:
        """Hand over a task, or the wish to stop; a process that has just ended says so by itself."""
        self.used = True
        with suppress(OSError):
            self._pipe.send(task)

    def kill(self) -> None:
        """End the process at once; it writes under temporary names, so nothing half has a name."""
        self._process.kill()
        self._process.join(_SECONDS_TO_END)

    def _listen(self) -> None:
        while True:
            try:
                told = self._pipe.recv()
            except (EOFError, OSError):
                break
            self._heard(self, told)
        self._process.join(_SECONDS_TO_END)
        self._pipe.close()
        self._ended(self, self._process.exitcode or 0)


def _work(pipe: Connection) -> Any:
    # Loaded in the worker alone: the server does without numba, matplotlib and the tables.
    from microagg.base.own_process import start_quickly

    start_quickly()
    from microagg.page.worker import serve_tasks

    serve_tasks(pipe)
