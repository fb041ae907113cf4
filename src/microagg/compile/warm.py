"""Compile in advance the kernels that take longest, in several processes at the same time.

numba compiles one kernel at a time in a process. A plan is known before its file is read, so other processes
can compile the large parts of what it needs meanwhile: a first job on a survey takes 22 s on two processors,
of which one alone would be busy for 43. What is not named here is compiled by the job itself when it is used.
Each process runs :mod:`microagg.engines.first_calls`, reads the names of parts and answers when one is
compiled. Scripts of users are never imported again, and calls of the library start no process.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self

from microagg.compile.source_digest import stamp
from microagg.compile.threads import thread_count
from microagg.errors import MicroaggError
from microagg.plan.registry import METHODS
from microagg.plan.settings import EXACT_K, FEW_RECORDS, LARGE_K

if TYPE_CHECKING:
    from microagg.plan.plan import Plan

COMPILED = "compiled"  # the answer of a process; any other one says what went wrong

# Before numba and pyarrow are loaded, which then load less.
_WORK = """\
from microagg.base.own_process import start_quickly
start_quickly()
from microagg.engines.first_calls import serve
serve()
"""

# Parts come with and without weights; the name of the first is that of the second after this word.
WEIGHTED = "weighted "

# Used when the groups are there: compiled while groups are searched for.
AFTER_GROUPING = ("bound", "bound of larger k", "linkage in a tree", "linkage")

# In the order of use; of those used together the longest first, so that no processor waits for the last.
PARTS = (
    *("weighted search", "last search", "search", "required merging", "required start"),
    *("large search", "weighted large search", "many records", "weighted many records"),
    *("weighted mdav", "start", "one column", "best", "closeness", "tables in parts"),
    *(name for name, method in METHODS.items() if method.for_numbers and name != "auto"),
    *AFTER_GROUPING,
)

_NOT_NUMBERS = {"boolean", "nominal", "ordinal", "spiked"}


def needed(plan: Plan, records: int | None, bound: bool, engine: str | None = None) -> list[str]:
    """List the parts that a job will need, in the order in which they are compiled.

    Parameters
    ----------
    plan : if it names no columns, the parts that every draft needs: more is asked for when the draft is made
    records : number of records; None if it is not known yet: there may be many
    bound : whether a lower bound is shown, where the plan allows to prove one within seconds
    engine : name of the engine; None for memory

    Returns
    -------
    list of str
        Names in ``PARTS``. Methods other than auto and the choices of few plans compile when they are used.
    """
    many, weighted = records is None or records > FEW_RECORDS, WEIGHTED * (plan.weight is not None)
    parts = {"linkage", "linkage in a tree"} if many else {"linkage"}
    if engine in ("disk", "spark"):
        parts.add("tables in parts")
    if bound and records is not None and plan.is_easily_bound(records):
        parts.add("bound" if plan.k <= EXACT_K else "bound of larger k")
    for block in plan.blocks:
        searched = block.method == "auto" or bool(block.refine)
        if block.columns is None:
            parts |= {"last search", "start"} if searched else set()
            continue
        required = plan.unit_of(block).column is not None or bool(block.require)
        large_k = (block.k or 0) > LARGE_K
        if searched:
            parts |= {"start", f"{weighted}{'large search' if large_k else 'search'}"}
        if required:
            # The search under requirements is that with weights, which are all 1 where there are none.
            parts |= {"weighted search", "required start", "required merging"}
        if required or large_k or block.method == "mdav":
            parts.add(f"{weighted}mdav")
        if many and (searched or required or block.method == "mdav"):
            parts.add(f"{weighted}many records")
        if (searched or required) and _NOT_NUMBERS & {plan.column(c).kind for c in block.columns}:
            parts.add("last search")
        if block.per_column or len(block.columns) == 1:
            parts.add("one column")
    return [name for name in PARTS if name in parts]


def notes_folder() -> Path | None:
    """Return the folder that says which parts are compiled, next to numba's cache; None: there is none."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    beside_kernels = Path(__file__).parents[1] / "kernels" / "__pycache__"
    for folder in [Path(named)] if named else [beside_kernels, Path.home() / ".cache" / "microagg"]:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return None


def note(part: str) -> str:
    """Name the file that says that a part is compiled, for these kernels, this numba and this Python."""
    of = (stamp(), version("numba"), sys.version, platform.machine(), part)
    return f"compiled-{part.replace(' ', '-')}-{hashlib.sha256(repr(of).encode()).hexdigest()[:12]}"


def lacking(parts: Iterable[str]) -> list[str]:
    """List the parts that were never compiled here; none if nothing can be noted."""
    folder = notes_folder()
    return [] if folder is None else [p for p in parts if not (folder / note(p)).exists()]


class Warming:
    """Parts that are being compiled, in as many processes as there are processors."""

    def __init__(self) -> None:
        self._parts: dict[str, Future[None]] = {}  # each done when it is compiled
        self._pool = ThreadPoolExecutor(thread_count())
        self._workers: list[subprocess.Popen[str]] = []
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, parts: Iterable[str]) -> list[str]:
        """Compile the parts that were never compiled here or asked for; return them."""
        new = [part for part in lacking(parts) if part not in self._parts]
        pending = len(new) + sum(not compiled.done() for compiled in self._parts.values())
        for _ in range(min(thread_count(), pending) - len(self._workers)):
            worker = _worker()
            self._workers.append(worker)
            self._idle.put(worker)
        self._parts |= {part: self._pool.submit(self._compile, part) for part in new}
        return new

    def wait(
        self, on_progress: Callable[[int, int], None] | None = None, without: Collection[str] = ()
    ) -> None:
        """Wait for all parts but some, and report how many are compiled; load numba meanwhile."""
        if not self._parts:
            return
        import numba  # noqa: F401

        awaited = [self._parts[part] for part in sorted(self._parts.keys() - set(without))]
        over = False
        while not over:
            done, rest = wait(awaited, timeout=0.1)
            over = not rest
            if on_progress is not None:
                on_progress(len(done), len(awaited))
        for compiled in awaited:
            compiled.result()
        if all(compiled.done() for compiled in self._parts.values()):
            self.stop()  # the processes would only take memory

    def stop(self) -> None:
        """End the processes, even in the middle of a part."""
        pool, self._pool = self._pool, ThreadPoolExecutor(thread_count())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()
            worker.wait()
        pool.shutdown()  # what waited for an answer has none
        for worker in self._workers:
            with (
                suppress(BrokenPipeError),
                worker.stdin or nullcontext(),
                worker.stdout or nullcontext(),
            ):
                pass
        self._workers, self._idle = [], SimpleQueue()

    def _compile(self, part: str) -> None:
        """Let a process compile a part."""
        worker, answer = self._idle.get(), ""
        with suppress(OSError):  # a process that was ended
            print(part, file=worker.stdin, flush=True)
            assert worker.stdout is not None
            answer = worker.stdout.readline().strip()
        self._idle.put(worker)
        if answer != COMPILED:
            reason = answer or "the process that compiled ended"
            raise MicroaggError(f"Compiling in advance failed: {reason}")


def _worker() -> subprocess.Popen[str]:
    """Start a process that compiles; it finds the package where this one did."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
