"""The session: the state of the page in the server's memory, and the worker that does its tasks.

Tabs and reloads see the same session. One task runs at a time, the others wait. A release runs in a new
process while no other one holds the table, so that it needs no more memory than the command.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from microagg.base.formatting import plural
from microagg.comparing.choices import Choice, mark_frontier
from microagg.page.tasks import STOP, Message, Opened, Task
from microagg.plan.plan import Plan

_MOST_REMEMBERED = 30  # tasks of the queue, and plans with their prices
_SECONDS_TO_END = 5.0  # of a worker that was killed


@dataclass(frozen=True)
class OpenTable:
    """The table that is open."""

    opened: Opened
    records: int
    columns: Sequence[Mapping[str, Any]]
    preview: Mapping[str, Any]
    plan: Plan | None  # as drafted
    problem: str | None  # why no plan could be drafted; None if one was

    @property
    def names(self) -> list[str]:
        """Names of the columns, in their order."""
        return [column["name"] for column in self.columns]

    @property
    def drafted_kinds(self) -> dict[str, Any]:
        """Kinds that the draft names for columns that it does not protect by itself."""
        return {c["name"]: c["kind"] for c in self.columns if c["role"] != "protect" and c["kind"]}


@dataclass(frozen=True)
class WrittenRelease:
    """A release that was written into the private folder, with its reports."""

    number: int
    task: Task
    plan: Plan  # as it was completed
    model: Mapping[str, Any]  # what the board's report says
    left_out: Sequence[str]
    when: str

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return Path(self.task.settings["folder"])


@dataclass
class Entry:
    """One task of the queue."""

    number: int
    task: Task
    state: str = "waiting"  # waiting, running, done, refused, failed or cancelled
    news: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None
    """Of claims, searches and scatters, until another table is opened."""
    words: str = ""  # why there is no result
    began: float = 0.0
    ended: float = 0.0
    stopping: bool = False

    @property
    def seconds(self) -> float:
        """The time since it began."""
        return (self.ended or time.monotonic()) - self.began if self.began else 0.0

    @property
    def open(self) -> bool:
        """Whether it is waiting or running."""
        return self.state in ("waiting", "running")


class Worker:
    """The process that does tasks, with a thread that calls ``on_message`` and ``on_end``."""

    def __init__(
        self, on_message: Callable[[Worker, Message], None], on_end: Callable[[Worker, int], None]
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self.process = context.Process(target=_work, args=(far,), daemon=True)
        self.process.start()
        far.close()
        self.used = False
        self._on_message, self._on_end = on_message, on_end
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, task: Task | str) -> None:
        """Send a task, or the request to stop; a process that has ended reports that itself."""
        self.used = True
        with suppress(OSError):
            self._pipe.send(task)

    def kill(self) -> None:
        """End the process at once; it writes under temporary names, so no incomplete file has a name."""
        self.process.kill()
        self.process.join(_SECONDS_TO_END)

    def _listen(self) -> None:
        while True:
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                break
            self._on_message(self, message)
        self.process.join(_SECONDS_TO_END)
        self._pipe.close()
        self._on_end(self, self.process.exitcode or 0)


class Session:
    """The state of one user's work, and its queue."""

    def __init__(self, private: Path) -> None:
        self.lock = threading.RLock()
        self.private = private
        self.table: OpenTable | None = None
        self.plans: list[Plan] = []
        self.at = 0
        self.changes = 0
        self.releases: list[WrittenRelease] = []
        self.cells: dict[tuple[str, int], Choice] = {}
        self.tried: Plan | None = None  # without method and k
        self.pending: Opened | None = None
        """A table that is opened once the user agrees to drop the work on the one before."""
        self._prices: dict[str, dict[str, Any]] = {}
        self.entries: list[Entry] = []
        self._count = 0
        self.worker: Worker | None = None
        self._closed = False

    # Plans: every edit is kept, and can be taken back.

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return self.plans[self.at]

    def edit(self, plan: Plan) -> None:
        """Put a changed plan after the present one; undone changes are dropped."""
        with self.lock:
            if plan != self.plan:
                self.plans = [*self.plans[: self.at + 1], plan]
                self.at += 1
                self.changes += 1
                self._drop_prices()

    def step(self, by: int) -> None:
        """Undo (−1) or redo (1)."""
        with self.lock:
            self.at = min(max(self.at + by, 0), len(self.plans) - 1)
            self.changes += 1
            self._drop_prices()

    # What the plan gives as it stands, and what other decisions would cost.

    def prices(self, plan: Plan) -> Mapping[str, Any] | None:
        """Return the estimates for a plan; None if there are none yet."""
        return self._prices.get(plan.to_toml())

    def pricing(self, columns: tuple[str, ...] | None = ()) -> Entry | None:
        """Return the task that makes these estimates for the current plan, if there is one."""
        return self.latest("price", self.plan, columns=columns)

    def refused_pricing(self, columns: tuple[str, ...] | None = ()) -> str:
        """Return why these estimates could not be made; empty if they were, or still may be."""
        entry = self.pricing(columns)
        return "" if entry is None or entry.open or entry.stopping else entry.words

    def price(self, columns: tuple[str, ...] | None = ()) -> None:
        """Queue estimates for the current plan, unless they exist or are on their way."""
        with self.lock:
            entry = self.pricing(columns)
            gave_way = entry is not None and not entry.open and entry.stopping
            if entry is None or entry.state == "cancelled" or gave_way:
                self.ask("price", columns=columns)

    def _drop_prices(self) -> None:
        """End all estimates: those of an older plan are useless, and other tasks go first."""
        for entry in self.entries:
            if entry.task.kind == "price" and entry.state == "waiting":
                self._end(entry, "cancelled", "")
            elif entry.task.kind == "price":
                self.stop(entry)

    # The map of what was tried.

    def map(self) -> list[Choice]:
        """Return the choices that were tried, the ones worth choosing marked."""
        with self.lock:
            return mark_frontier([self.cells[key] for key in sorted(self.cells)])

    @property
    def map_is_old(self) -> bool:
        """Whether the plan has changed, otherwise than by method and k, since choices were tried."""
        return self.tried not in (None, _apart_from_choice(self.plan))

    def note_cells(self, plan: Plan, cells: Sequence[Choice]) -> None:
        """Add choices that were tried; those of an older plan are dropped."""
        with self.lock:
            plan_tried = _apart_from_choice(plan)
            self.cells = self.cells if self.tried == plan_tried else {}
            self.tried = plan_tried
            self.cells |= {(cell.method, cell.k): cell for cell in cells}

    # Another table.

    @property
    def work(self) -> str:
        """The work that opening another table would lose, in words; empty if there is none."""
        edits, releases = len(self.plans) - 1, len(self.releases)
        releases += sum(e.task.kind == "protect" and e.open for e in self.entries)
        changed = plural(edits, "change") + " of the plan" if edits > 0 else ""
        released = plural(releases, "release") if releases else ""
        return " and ".join(filter(None, (changed, released)))

    def open(self, opened: Opened) -> None:
        """Read another table; if work would be lost, only once the user agrees."""
        with self.lock:
            self.settle_pending(agreed=False)
            if self.table is not None and self.work:
                self.pending = opened
            else:
                self.submit(Task("read", opened, Plan(), {}))

    def settle_pending(self, agreed: bool) -> None:
        """Read the table that waits for the user's answer, or stay with the one that is open."""
        with self.lock:
            opened, self.pending = self.pending, None
            if opened is not None and agreed:
                self.submit(Task("read", opened, Plan(), {}))
            elif opened is not None and opened.uploaded:
                shutil.rmtree(opened.path.parent, ignore_errors=True)

    def new_folder(self, start: str) -> Path:
        """Make a folder in the private one, which nobody else can read."""
        return Path(tempfile.mkdtemp(prefix=start, dir=self.private))

    # Releases.

    def release(self, number: int) -> WrittenRelease | None:
        """Find a release by its number."""
        return next((release for release in self.releases if release.number == number), None)

    def new_release(self, plan: Plan, ending: str, **settings: Any) -> Entry:
        """Queue a release of the open table by a plan, with settings of a Job."""
        assert self.table is not None
        opened = self.table.opened
        folder = self.new_folder("release-")
        if opened.uploaded:  # under its own name, by which the report calls it
            os.link(opened.path, folder / opened.path.name)
        target = f"{opened.path.stem}-safe{ending}"
        earlier = tuple(release.folder for release in self.releases)
        files = {"folder": folder, "target": target, "earlier": earlier}
        return self.submit(Task("protect", opened, plan, {**files, **settings}))

    # The queue.

    def submit(self, task: Task) -> Entry:
        """Put a task at the end of the queue; estimates give way to all others."""
        with self.lock:
            if task.kind != "price":
                self._drop_prices()
            self._count += 1
            entry = Entry(self._count, task)
            self.entries = [*self.entries, entry][-_MOST_REMEMBERED:]
            self._next()
            return entry

    def ask(self, kind: str, plan: Plan | None = None, **settings: Any) -> None:
        """Queue a task about the open table and a plan, by default the one that stands."""
        assert self.table is not None
        self.submit(Task(kind, self.table.opened, plan or self.plan, settings))

    def _newest_first(
        self, kind: str, plan: Plan | None, asked: Mapping[str, Any]
    ) -> Iterator[Entry]:
        for entry in reversed(self.entries):
            task = entry.task
            is_such = task.kind == kind and plan in (None, task.plan)
            if is_such and asked.items() <= task.settings.items():
                yield entry

    def latest(self, kind: str, plan: Plan | None = None, **settings: Any) -> Entry | None:
        """Return the newest task of a kind; with a plan or settings, the newest about these."""
        return next(self._newest_first(kind, plan, settings), None)

    def asked(self, kind: str) -> Mapping[str, Any]:
        """Return the settings of the newest task of a kind; empty if there was none."""
        entry = self.latest(kind)
        return {} if entry is None else entry.task.settings

    def result(
        self, kind: str, plan: Plan | None = None, **settings: Any
    ) -> Mapping[str, Any] | None:
        """Return what the newest such task about a plan gave, by default about the one that stands."""
        such = self._newest_first(kind, plan or self.plan, settings)
        return next((entry.result for entry in such if entry.result), None)

    @property
    def running(self) -> Entry | None:
        """The running task."""
        return next((entry for entry in self.entries if entry.state == "running"), None)

    def stop(self, entry: Entry) -> None:
        """Ask a search to end and to keep its best result."""
        with self.lock:
            if entry.state == "running" and self.worker is not None:
                entry.stopping = True
                self.worker.send(STOP)

    def cancel(self, entry: Entry) -> None:
        """End a task at once and keep nothing of it."""
        with self.lock:
            if not entry.open:
                return
            was_running = entry.state == "running"
            self._end(entry, "cancelled", "Cancelled: nothing was kept.")
            if was_running:
                self._replace_worker()
            self._next()

    def warm_up(self) -> None:
        """Start the worker before it is needed."""
        with self.lock:
            if self.worker is None:
                self.worker = Worker(self._receive, self._gone)

    def close(self) -> None:
        """End the worker; the session takes no more tasks."""
        with self.lock:
            self._closed = True
            worker, self.worker = self.worker, None
        if worker is not None:
            worker.kill()

    def _next(self) -> None:
        if self._closed or self.running is not None:
            return
        entry = next((e for e in self.entries if e.state == "waiting"), None)
        if entry is None:
            return
        if entry.task.kind == "protect" and self.worker is not None and self.worker.used:
            self._replace_worker()
        self.warm_up()
        assert self.worker is not None
        entry.state, entry.began = "running", time.monotonic()
        self.worker.send(entry.task)

    def _replace_worker(self) -> None:
        old, self.worker = self.worker, None
        if old is not None:
            old.kill()
        self.warm_up()

    def _receive(self, worker: Worker, message: Message) -> None:
        with self.lock:
            entry = self.running
            if worker is not self.worker or entry is None:
                return  # about a task that was cancelled
            kind, data = message
            if kind == "progress":
                entry.news = data
                if "cells" in data:
                    self.note_cells(entry.task.plan, data["cells"])
                return
            if kind == "done":
                self._keep(entry, data)
            self._end(entry, kind, data.get("words", ""))
            if entry.task.kind == "protect":  # what it took of memory goes back
                self._replace_worker()
            self._next()

    def _gone(self, worker: Worker, code: int) -> None:
        """Report that the worker has ended, if it had a task, and go on with the queue."""
        with self.lock:
            if worker is not self.worker or self._closed:
                return
            self.worker = None
            entry = self.running
            if entry is not None:
                why = f"signal {-code}" if code < 0 else f"exit code {code}"
                words = (
                    f"The process ended unexpectedly ({why}), probably because memory ran out. Nothing was "
                    "written. Try again; if it happens again, choose a faster method or fewer columns."
                )
                self._end(entry, "failed", words)
            self._next()

    def _end(self, entry: Entry, state: str, words: str) -> None:
        entry.state, entry.words, entry.ended = state, words, time.monotonic()

    def _keep(self, entry: Entry, found: Mapping[str, Any]) -> None:
        task = entry.task
        if task.kind == "read":
            self._open(task, found)
        elif task.kind == "price":
            before = self._prices.pop(task.plan.to_toml(), {"columns": {}, "best": None})
            columns = {**before["columns"], **found["columns"]}
            best = before["best"] if found["best"] is None else found["best"]
            self._prices[task.plan.to_toml()] = {**found, "columns": columns, "best": best}
            for old in list(self._prices)[:-_MOST_REMEMBERED]:
                del self._prices[old]
        elif task.kind == "compare":
            self.note_cells(task.plan, found["cells"])
        elif task.kind == "protect":
            when = datetime.now(UTC).strftime("%H:%M UTC")
            release = WrittenRelease(len(self.releases) + 1, task, **found, when=when)
            self.releases = [*self.releases, release]
        else:
            entry.result = found

    def _open(self, task: Task, found: Mapping[str, Any]) -> None:
        """Put another table into the session; all about the one before goes."""
        for release in self.releases:
            shutil.rmtree(release.folder, ignore_errors=True)
        if self.table is not None and self.table.opened.uploaded:
            shutil.rmtree(self.table.opened.path.parent, ignore_errors=True)
        for entry in self.entries:
            entry.result = None
            if entry.state == "waiting" and entry.task.opened != task.opened:
                self._end(entry, "cancelled", "Cancelled, since another table was opened.")
        self.table = OpenTable(task.opened, **found)
        self.plans, self.at = [self.table.plan or Plan.of(k=5)], 0
        self.releases, self.cells, self.tried, self._prices = [], {}, None, {}


def _apart_from_choice(plan: Plan) -> Plan:
    """Return the plan without the settings that a choice on the map changes."""
    blocks = [replace(block, k=2, method="auto", options={}) for block in plan.blocks]
    return replace(plan, blocks=tuple(blocks))


def _work(pipe: Connection) -> Any:
    # Loaded in the worker alone: the server needs neither numba nor the table.
    from microagg.base.own_process import start_quickly

    start_quickly()
    from microagg.page.worker import serve_tasks

    serve_tasks(pipe)
