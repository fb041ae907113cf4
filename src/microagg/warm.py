"""Compiling ahead: the kernels that a job will need, in processes side by side.

numba compiles one kernel at a time in a process. What a plan asks for is known before the file is read, so
that other processes can compile its parts (warm_parts.py) into the shared cache meanwhile. Each runs
``python -m microagg.warm``, reads the names of parts and says when one is done; scripts of users are never
imported anew, and calls of the library start no process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import Condition, Thread
from typing import IO

from microagg.errors import MicroaggError
from microagg.kernels.stamp import stamp
from microagg.own_process import start_quickly
from microagg.warm_parts import PARTS

__all__ = ["Warming", "kept_in", "lacking"]


def kept_in() -> Path | None:
    """Where it is noted what is compiled: beside numba's cache; None where nothing can be kept."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    own = Path(__file__).parent / "kernels" / "__pycache__"
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

    def __init__(self, parts: Iterable[str]) -> None:
        self._left = list(parts)
        self.total = len(self._left)
        self.done = 0
        self._failed: str | None = None
        self._change = Condition()
        count = min(os.cpu_count() or 1, self.total)
        self._workers = [_worker() for _ in range(count)]
        self._feeders = [Thread(target=self._feed, args=(one,)) for one in self._workers]
        for feeder in self._feeders:
            feeder.daemon = True
            feeder.start()

    def wait(self, told: Callable[[int, int], None] | None = None) -> None:
        """Wait until all is compiled, and tell how much is; meanwhile load what runs it."""
        import numba  # noqa: F401

        over = False
        while not over:
            if told is not None:
                told(self.done, self.total)
            with self._change:
                over = self._change.wait_for(lambda: self.done == self.total, 0.1)
        if self._failed is not None:
            raise MicroaggError(f"Compiling ahead failed: {self._failed}")

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        with self._change:
            self._left.clear()
        for worker in self._workers:
            worker.kill()
            worker.wait()

    def _feed(self, worker: subprocess.Popen[str]) -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        # What is asked last may not reach a process that was ended.
        with suppress(BrokenPipeError), worker.stdin as asks, worker.stdout as answers:
            while (part := self._next()) is not None:
                failed = _ask(asks, answers, part)
                with self._change:
                    self.done += 1
                    self._failed = failed or self._failed
                    self._change.notify()
            worker.kill()  # it has nothing left to do, and would take a while to end by itself
        worker.wait()

    def _next(self) -> str | None:
        with self._change:
            return self._left.pop(0) if self._left else None


def _worker() -> subprocess.Popen[str]:
    """Start a process that compiles; it finds the package where this one did."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "microagg.warm"],
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
