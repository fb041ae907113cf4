"""Compiling ahead: the kernels that a job will need, in processes side by side.

numba compiles one kernel at a time in a process. What a plan asks for is known before the file is read, so
that other processes can compile its parts (jobs.py) into the shared cache meanwhile. Each runs
``python -m microagg.warming.warm``, reads the names of parts and says when one is done; scripts of users are
never imported anew, and calls of the library start no process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Self

from microagg.base.own_process import start_quickly
from microagg.compile.source_digest import stamp
from microagg.errors import MicroaggError
from microagg.warming.jobs import PARTS

__all__ = ["Warming", "kept_in", "lacking"]


def kept_in() -> Path | None:
    """Where it is noted what is compiled: beside numba's cache; None where nothing can be kept."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    own = Path(__file__).parents[1] / "kernels" / "__pycache__"
    for folder in [Path(given)] if given else [own, Path.home() / ".cache" / "microagg"]:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


def _note(part: str) -> str:
    """Name of the file that says that a part is compiled, for these kernels, this numba and Python."""
    of = (stamp(), version("numba"), sys.version, platform.machine(), part)
    return f"compiled-{part.replace(' ', '-')}-{hashlib.sha256(repr(of).encode()).hexdigest()[:12]}"


def lacking(parts: Iterable[str]) -> list[str]:
    """Those of the parts that were never compiled here; none where nothing can be kept."""
    folder = kept_in()
    return [] if folder is None else [p for p in parts if not (folder / _note(p)).exists()]


class Warming:
    """Parts being compiled, each in one of as many processes as there are processors."""

    def __init__(self, parts: Iterable[str] = ()) -> None:
        self._left: list[str] = []
        self._asked: set[str] = set()
        self._done: set[str] = set()
        self._failed: str | None = None
        self._change = Condition()
        self._workers: list[subprocess.Popen[str]] = []
        self.ask(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, parts: Iterable[str]) -> None:
        """Have parts compiled too; those asked for before are not compiled again."""
        with self._change:
            new = [part for part in parts if part not in self._asked]
            self._asked.update(new)
            self._left.extend(new)
            self._change.notify_all()
            more = min(os.cpu_count() or 1, len(self._left)) - len(self._workers)
        for _ in range(more):
            worker = _worker()
            self._workers.append(worker)
            Thread(target=self._feed, args=(worker,), daemon=True).start()

    def wait(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        without: Collection[str] = (),
    ) -> None:
        """Wait until all but some parts are compiled, and tell how many are; meanwhile load numba."""
        import numba  # noqa: F401

        awaited = self._asked - set(without)
        over = False
        while not over:
            if on_progress is not None:
                on_progress(len(self._done & awaited), len(awaited))
            with self._change:
                over = self._change.wait_for(lambda: awaited <= self._done, 0.1)
        if self._failed is not None:
            raise MicroaggError(f"Compiling ahead failed: {self._failed}")
        if self._done == self._asked:  # the processes would only take memory
            self.stop()

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        with self._change:
            workers, self._workers = self._workers, []
            self._change.notify_all()
        for worker in workers:
            worker.kill()
            worker.wait()

    def _feed(self, worker: subprocess.Popen[str]) -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        # What is asked last may not reach a process that was ended.
        with suppress(BrokenPipeError), worker.stdin as asks, worker.stdout as answers:
            while (part := self._next(worker)) is not None:
                failed = _ask(asks, answers, part)
                with self._change:
                    self._done.add(part)
                    self._failed = failed or self._failed
                    self._change.notify_all()

    def _next(self, worker: subprocess.Popen[str]) -> str | None:
        """Return the next part for a process, as soon as there is one; None once it is to end."""
        with self._change:
            self._change.wait_for(lambda: self._left or worker not in self._workers)
            return self._left.pop(0) if worker in self._workers else None


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


def _ask(asks: IO[str], answers: IO[str], part: str) -> str | None:
    """Have a part compiled; return why it could not be, if so."""
    try:
        asks.write(part + "\n")
        asks.flush()
        answer = answers.readline()
    except OSError:
        answer = ""
    return json.loads(answer)["failed"] if answer else "the process that compiled ended"


def _serve() -> None:
    """Compile the parts named on stdin, one a line."""
    start_quickly()
    for line in sys.stdin:
        part, failed = line.strip(), None
        try:
            PARTS[part]()
            folder = kept_in()
            if folder is not None:
                (folder / _note(part)).touch()
        except Exception as error:
            failed = f"{type(error).__name__}: {error}"
        print(json.dumps({"part": part, "failed": failed}), flush=True)


if __name__ == "__main__":
    _serve()
