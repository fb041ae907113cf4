"""The worker: a process that reads, tries and protects, so that the server can answer at the same time.

Tasks and messages (:mod:`microagg.page.tasks`) go over one pipe. The worker ends whenever the server does,
because the pipe is then closed.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import singledispatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from microagg.base.progress import RisingShare
from microagg.comparing.comparison import Tried, prepare, try_prepared
from microagg.comparing.offers import price_answers
from microagg.comparing.prices import price_table
from microagg.comparing.search import search
from microagg.comparing.trials import TriedSample
from microagg.engines.memory.table import Table
from microagg.errors import MicroaggError, StopSearch, fault_words, system_words
from microagg.formats.files import Source, read_file
from microagg.formats.layouts import CsvFormat
from microagg.job.job import Job, numbers_of
from microagg.job.observer import Observer
from microagg.job.run import run
from microagg.page.table_view import about_columns, first_rows, two_columns
from microagg.page.tasks import (
    STOP,
    ClaimTask,
    CompareTask,
    Message,
    Opened,
    PriceTask,
    ProtectTask,
    ReadTask,
    ScatterTask,
    SearchTask,
    Task,
)
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

_SECONDS_BETWEEN_TELLS = 0.2
_SAMPLE = 2_500  # records of an estimate that somebody waits for
_SECONDS_OF_PRICES = 60.0  # for those of all columns
_LESS_URGENT = 5  # the page comes first where processors are few

Tell = Callable[[Mapping[str, Any]], None]


def serve_tasks(pipe: Connection) -> None:
    """Do tasks one after another until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    os.umask(0o077)
    if hasattr(os, "nice"):
        os.nice(_LESS_URGENT)
    bench = Bench()
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()

    def listen() -> None:
        while True:
            try:
                task = pipe.recv()
            except (EOFError, OSError):
                os._exit(0)  # the server is gone; a search in threads would go on
            if task == STOP:
                bench.asked.set()
            else:
                bench.asked.clear()
                tasks.put(task)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        pipe.send(_done(tasks.get(), bench, pipe))


def _done(task: Task, bench: Bench, pipe: Connection) -> Message:
    """Do a task; every error ends in a sentence."""
    tell = _seldom(lambda data: pipe.send(Message("progress", data)))
    try:
        return Message("done", do(task, bench, tell))
    except StopSearch:
        return Message("refused", {"words": "Stopped before there was anything to keep."})
    except MicroaggError as error:
        return Message("refused", {"words": str(error)})
    except MemoryError:
        return Message("refused", {"words": "The table does not fit into memory."})
    except OSError as error:
        return Message("refused", {"words": system_words(error)})
    except Exception as error:  # its own words may hold values of records
        return Message("failed", {"words": fault_words(error)})


def _seldom(send: Tell) -> Tell:
    """Send progress a few times a second at most, but every change of stage; it never runs backwards."""
    last: tuple[float, Any] = (0.0, None)
    rising = RisingShare()

    def tell(data: Mapping[str, Any]) -> None:
        nonlocal last
        data = {**data, "share": rising.at(data.get("stage", ""), *data.get("done", (0, 0)))}
        now, mark = time.monotonic(), (data.get("stage"), len(data.get("cells", ())))
        if now - last[0] >= _SECONDS_BETWEEN_TELLS or mark != last[1]:
            last = now, mark
            send(data)

    return tell


class Bench:
    """The state between tasks: the file that was read last."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._opened: Opened | None = None
        self._source: Source | None = None
        self.last_sample: tuple[str, TriedSample] | None = None

    def source(self, opened: Opened) -> Source:
        """Read a file, unless it was the last one read."""
        if self._source is None or self._opened != opened:
            self._opened = self._source = self.last_sample = None  # one table at a time
            source = read_file(opened.path, csv=_csv(opened), sheet=opened.sheet)
            self._opened, self._source = opened, source
        return self._source

    def tried(self, plan: Plan) -> TriedSample | None:
        """Return the estimates for a plan, if it is the one estimated last."""
        toml, tried = self.last_sample or ("", None)
        return tried if toml == plan.to_toml() else None

    def records(self, opened: Opened, plan: Plan) -> Table:
        """Return the records of a file, on which plans are tried."""
        return Table.of(_typed(self.source(opened), plan))

    def check(self) -> None:
        """End the search if the user asked for it."""
        if self.asked.is_set():
            raise StopSearch


def _csv(opened: Opened) -> CsvFormat:
    return CsvFormat(opened.delimiter, opened.encoding, opened.decimal)


@singledispatch
def do(task: Any, bench: Bench, tell: Tell) -> dict[str, Any]:
    """Do a task and return its result for the page."""
    raise TypeError(f"{type(task).__name__} is no task")


@do.register
def _(task: ReadTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    tell({"stage": "reading"})
    source = bench.source(task.opened)
    table = Table.of(source)
    tell({"stage": "looking at each column"})
    columns = about_columns(table.frame, table.missing_words)
    plan, problem = None, None
    try:
        plan = Table.of(source).completed(Plan()).plan
    except MicroaggError as error:  # the user has to choose the roles
        problem = str(error)
    return {
        "records": len(table),
        "columns": columns,
        "preview": first_rows(source),
        "plan": plan,
        "problem": problem,
    }


def _on_progress(bench: Bench, tell: Tell) -> Callable[[int, int], None]:
    def hear(done: int, total: int) -> None:
        tell({"done": (done, total)})
        bench.check()

    return hear


@do.register
def _(task: PriceTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    prices = price_table(
        bench.records(task.opened, task.plan),
        task.plan,
        sample=_SAMPLE,
        budget=_SECONDS_OF_PRICES,
        progress=_on_progress(bench, tell),
        columns=task.columns,
        tried=bench.tried(task.plan),
    )
    bench.last_sample = task.plan.to_toml(), prices.tried
    best = prices.best() if task.columns is None else None
    return {
        "facts": prices.facts,
        "basis": prices.basis,
        "rule": prices.rule,
        "below_k": prices.now.below_k,
        "losses": dict(prices.now.by_column),
        "stakes": dict(prices.now.stakes),
        "columns": {
            column.column: [(p.decision, p.words, p.problem) for p in column.decisions]
            for column in prices.columns
        },
        "best": None
        if best is None
        else [(column, price.decision, price.words) for column, price in best],
    }


@do.register
def _(task: ClaimTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    claims = price_answers(
        bench.records(task.opened, task.plan),
        task.plan,
        task.answers,
        sample=_SAMPLE,
        progress=_on_progress(bench, tell),
    )
    return {"claims": [(columns, price.words, price.problem) for columns, price in claims]}


@do.register
def _(task: SearchTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    best = search(
        bench.records(task.opened, task.plan),
        task.plan,
        max_loss=task.max_loss,
        max_linkage=task.max_linkage,
        keep=task.keep,
        progress=_on_progress(bench, tell),
        decided=(),
    )
    plan = Plan(**{field.name: getattr(best, field.name) for field in fields(Plan)})
    return {"plan": plan, "meets": best.meets, "lines": best.lines()}


@do.register
def _(task: CompareTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    plan = task.plan.override(max_loss=task.max_loss, max_linkage=task.max_linkage)
    records = bench.records(task.opened, plan)

    def on_progress(done: Tried, total: int) -> None:
        tell({"stage": done.words, "done": (done, total), "cells": done.choices})
        bench.check()

    trials = prepare(records, plan, task.sizes, task.methods, budget=None, attack=task.attack)
    return {"cells": try_prepared(trials, on_progress).cells}


class _Teller(Observer):
    """Sends the server what the command shows at a terminal."""

    def __init__(self, bench: Bench, tell: Tell) -> None:
        self._bench, self._tell = bench, tell
        self.lost_facts: list[str] = []
        self.model: dict[str, Any] = {}

    def stage(self, name: str, words: str = "") -> None:
        self._tell({"stage": name, "done": (0, 1)})

    def progress(self, stage: str, done: int, total: int) -> None:
        self._tell(
            {
                "stage": stage,
                "done": (int(done), total),
                "loss": getattr(done, "information_loss", None),
                "gap": getattr(done, "gap", None),
            }
        )
        self._bench.check()

    def left_out(self, words: str) -> None:
        self.lost_facts.append(words)

    def reported(self, model: dict[str, Any]) -> None:
        self.model = model


@do.register
def _(task: ProtectTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    # From within the folder the release has the name by which the user takes it away.
    os.chdir(task.folder)
    source = Path(task.opened.path.name) if task.opened.uploaded else task.opened.path
    job = Job(
        source,
        Path(task.target),
        task.plan,
        csv=_csv(task.opened),
        sheet=task.opened.sheet,
        report=Path("report.html"),
        public_report=Path("public-report.html"),
        prices=task.prices,
        ledger=task.ledger,
        key=task.key,
        leavers=task.leavers,
        earlier=task.earlier,
    )
    teller = _Teller(bench, tell)
    outcome = run(job, teller)
    return {
        "model": teller.model,
        "left_out": teller.lost_facts,
        "plan": outcome.evidence.plan,
    }


@do.register
def _(task: ScatterTask, bench: Bench, tell: Tell) -> dict[str, Any]:
    source = _typed(bench.source(task.opened), task.plan)
    released = read_file(task.released, numbers=numbers_of(task.plan), csv=_csv(task.opened))
    return two_columns(Frame(source.table), Frame(released.table), task.x, task.y)


def _typed(source: Source, plan: Plan) -> Source:
    return replace(source, numbers=frozenset(numbers_of(plan)))
