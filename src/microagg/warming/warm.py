"""Compile in advance the kernels that a job will need, in several processes at the same time.

numba compiles one kernel at a time in a process. A plan is known before its file is read, so other processes
can compile the parts that it needs (needed.py) meanwhile. Each runs ``python -m microagg.warming.warm``,
reads the names of parts and answers when one is compiled. Scripts of users are never imported again, and
calls of the library start no process.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import Condition, Thread
from typing import Self

from microagg.base.own_process import start_quickly
from microagg.compile.source_digest import stamp
from microagg.compile.threads import thread_count
from microagg.errors import MicroaggError

__all__ = ["Warming", "lacking", "notes_folder"]

_COMPILED = "compiled"  # the answer of a process; any other one says what went wrong


def notes_folder() -> Path | None:
    """Return the folder that says which parts are compiled, next to numba's cache; None: there is none."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    own = Path(__file__).parents[1] / "kernels" / "__pycache__"
    for folder in [Path(given)] if given else [own, Path.home() / ".cache" / "microagg"]:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return None


def _note(part: str) -> str:
    """Name the file that says that a part is compiled, for these kernels, this numba and this Python."""
    of = (stamp(), version("numba"), sys.version, platform.machine(), part)
    return f"compiled-{part.replace(' ', '-')}-{hashlib.sha256(repr(of).encode()).hexdigest()[:12]}"


def lacking(parts: Iterable[str]) -> list[str]:
    """List the parts that were never compiled here; none if nothing can be noted."""
    folder = notes_folder()
    return [] if folder is None else [p for p in parts if not (folder / _note(p)).exists()]


class Warming:
    """Parts that are being compiled, in as many processes as there are processors."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._asked: set[str] = set()
        self._done: set[str] = set()
        self._failed: str | None = None
        self._change = Condition()
        self._workers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, parts: Iterable[str]) -> list[str]:
        """Compile the parts that were never compiled here or asked for; return them."""
        new = [part for part in lacking(parts) if part not in self._asked]
        with self._change:
            self._asked.update(new)
            self._waiting.extend(new)
            self._change.notify_all()
            more = min(thread_count(), len(self._waiting)) - len(self._workers)
        for _ in range(more):
            worker = _worker()
            self._workers.append(worker)
            Thread(target=self._feed, args=(worker,), daemon=True).start()
        return new

    def wait(
        self, on_progress: Callable[[int, int], None] | None = None, without: Collection[str] = ()
    ) -> None:
        """Wait for all parts but some, and report how many are compiled; load numba meanwhile."""
        if not self._asked:
            return
        import numba  # noqa: F401

        awaited = self._asked - set(without)
        over = False
        while not over:
            if on_progress is not None:
                on_progress(len(self._done & awaited), len(awaited))
            with self._change:
                over = self._change.wait_for(lambda: awaited <= self._done, 0.1)
        if self._failed is not None:
            raise MicroaggError(f"Compiling in advance failed: {self._failed}")
        if self._done == self._asked:  # the processes would only take memory
            self.stop()

    def stop(self) -> None:
        """End the processes, even in the middle of a part."""
        with self._change:
            workers, self._workers = self._workers, []
            self._change.notify_all()
        for worker in workers:
            worker.kill()
            worker.wait()

    def _feed(self, worker: subprocess.Popen[str]) -> None:
        """Give a process one part after the other, until it is to end."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        # The last request may not reach a process that was ended.
        with suppress(BrokenPipeError), worker.stdin, worker.stdout:
            while (part := self._next(worker)) is not None:
                answer = ""
                with suppress(OSError):
                    print(part, file=worker.stdin, flush=True)
                    answer = worker.stdout.readline().strip()
                with self._change:
                    self._done.add(part)
                    if answer != _COMPILED:
                        self._failed = answer or "the process that compiled ended"
                    self._change.notify_all()

    def _next(self, worker: subprocess.Popen[str]) -> str | None:
        """Return the next part for a process, as soon as there is one; None: the process is to end."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or worker not in self._workers)
            return self._waiting.pop(0) if worker in self._workers else None


def _worker() -> subprocess.Popen[str]:
    """Start a process that compiles; it finds the package where this one did."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "microagg.warming.warm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def _serve() -> None:
    """Compile the parts named on stdin, one a line."""
    start_quickly()
    gc.set_threshold(2_000_000)  # nearly all that compiling makes stays
    from microagg.warming.parts import compile_part

    for line in sys.stdin:
        part, answer = line.strip(), _COMPILED
        try:
            compile_part(part)
            folder = notes_folder()
            if folder is not None:
                (folder / _note(part)).touch()
        except Exception as error:
            answer = " ".join(f"{type(error).__name__}: {error}".split())
        print(answer, flush=True)


if __name__ == "__main__":
    _serve()
