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
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from microagg.base.progress import RisingShare
from microagg.base.typing import Floats
from microagg.comparing.comparison import Tried, prepare, try_prepared
from microagg.comparing.offers import price_answers
from microagg.comparing.prices import price_table
from microagg.comparing.search import search
from microagg.comparing.trials import TriedSample
from microagg.drafting.infer import guess
from microagg.drafting.profile import Profile, profiles
from microagg.engines.memory.table import Table
from microagg.errors import InputError, MicroaggError, StopSearch, fault_words, shown, system_words
from microagg.formats.files import Source, read_file
from microagg.formats.layouts import CsvFormat
from microagg.job.job import Job, numbers_of
from microagg.job.observer import Observer
from microagg.job.run import run
from microagg.page.tasks import STOP, Message, Opened, Task
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

_SECONDS_BETWEEN_TELLS = 0.2
_SAMPLE = 2_500  # records of an estimate that somebody waits for
_SECONDS_OF_PRICES = 60.0  # for those of all columns
_LESS_URGENT = 5  # the page comes first where processors are few
_BINS = 16
_MIDDLE = (0.01, 0.99)  # what lies farther out is counted in the outermost bins
_ROWS = 12
_LONGEST = 80  # characters of a value in the preview
_LABELS = 60  # of values that are listed
_POINTS = 1500  # in a scatter, before and after each


def serve_tasks(pipe: Connection) -> None:
    """Do tasks one after another until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    os.umask(0o077)
    if hasattr(os, "nice"):
        os.nice(_LESS_URGENT)
    bench = _Bench(pipe)
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
        pipe.send(_done(tasks.get(), bench))


def _done(task: Task, bench: _Bench) -> Message:
    """Do a task; every error ends in a sentence."""
    try:
        bench.begin(task)
        return "done", _WORK[task.kind](bench, **task.settings)
    except StopSearch:
        return "refused", {"words": "Stopped before there was anything to keep."}
    except MicroaggError as error:
        return "refused", {"words": str(error)}
    except MemoryError:
        return "refused", {"words": "The table does not fit into memory."}
    except OSError as error:
        return "refused", {"words": system_words(error)}
    except Exception as error:  # its own words may hold values of records
        return "failed", {"words": fault_words(error)}


class _Bench:
    """What a task works with: its file and plan, and the way to tell the server how far it is."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.asked = threading.Event()
        self._last: tuple[Opened, Source] | None = None
        self.last_sample: tuple[str, TriedSample] | None = None

    def begin(self, task: Task) -> None:
        self.opened, self.plan = task.opened, task.plan
        self.csv = CsvFormat(task.opened.delimiter, task.opened.encoding, task.opened.decimal)
        self._told: tuple[float, Any] = (0.0, None)
        self._rising = RisingShare()

    def source(self) -> Source:
        """Read the file, unless it was the last one read; numbers are those of the plan."""
        opened = self.opened
        if self._last is None or self._last[0] != opened:
            self._last = self.last_sample = None  # one table at a time
            self._last = opened, read_file(opened.path, csv=self.csv, sheet=opened.sheet)
        return replace(self._last[1], numbers=frozenset(numbers_of(self.plan)))

    def tell(self, **data: Any) -> None:
        """Send progress a few times a second at most, but every change of stage; it never runs backwards."""
        data["share"] = self._rising.at(data.get("stage", ""), *data.get("done", (0, 0)))
        now, mark = time.monotonic(), (data.get("stage"), len(data.get("cells", ())))
        if now - self._told[0] >= _SECONDS_BETWEEN_TELLS or mark != self._told[1]:
            self._told = now, mark
            self._pipe.send(("progress", data))

    def on_progress(self, done: int, total: int, **data: Any) -> None:
        """Tell how much is done; end the search if the user asked for it."""
        self.tell(done=(int(done), total), **data)
        if self.asked.is_set():
            raise StopSearch


def _read(bench: _Bench) -> dict[str, Any]:
    """Read a file, describe its columns and draft a plan."""
    bench.tell(stage="reading")
    source = bench.source()
    table = Table.of(source)
    bench.tell(stage="looking at each column")
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


def _price(bench: _Bench, columns: tuple[str, ...] | None) -> dict[str, Any]:
    """Estimate on a sample what the plan gives, and what other decisions about columns (None: all) would."""
    source, toml = bench.source(), bench.plan.to_toml()
    estimated, tried = bench.last_sample or ("", None)
    priced = price_table(
        Table.of(source),
        bench.plan,
        sample=_SAMPLE,
        budget=_SECONDS_OF_PRICES,
        progress=bench.on_progress,
        columns=columns,
        tried=tried if estimated == toml else None,
    )
    bench.last_sample = toml, priced.tried
    best = priced.best() if columns is None else None
    return {
        "facts": priced.facts,
        "basis": priced.basis,
        "rule": priced.rule,
        "below_k": priced.now.below_k,
        "losses": dict(priced.now.by_column),
        "stakes": dict(priced.now.stakes),
        "columns": {
            column.column: [(p.decision, p.words, p.problem) for p in column.decisions]
            for column in priced.columns
        },
        "best": None
        if best is None
        else [(column, price.decision, price.words) for column, price in best],
    }


def _claim(bench: _Bench, answers: tuple[str, ...]) -> dict[str, Any]:
    """Estimate what the claim wins and stakes that nobody outside knows some columns."""
    records, on_progress = Table.of(bench.source()), bench.on_progress
    claims = price_answers(records, bench.plan, answers, sample=_SAMPLE, progress=on_progress)
    return {"claims": [(columns, price.words, price.problem) for columns, price in claims]}


def _search(
    bench: _Bench, max_loss: float | None, max_linkage: float | None, keep: tuple[str, ...]
) -> dict[str, Any]:
    """Search the plan that keeps most within a largest loss or linkage; it keeps some columns as they are."""
    best = search(
        Table.of(bench.source()),
        bench.plan,
        max_loss=max_loss,
        max_linkage=max_linkage,
        keep=keep,
        progress=bench.on_progress,
        decided=(),
    )
    settings = {field.name: getattr(best, field.name) for field in fields(Plan)}
    return {"plan": Plan(**settings), "meets": best.meets, "lines": best.lines()}


def _compare(
    bench: _Bench,
    methods: Sequence[str],
    sizes: Sequence[int],
    max_loss: float | None,
    max_linkage: float | None,
    attack: bool,
) -> dict[str, Any]:
    """Carry out a plan with several methods and k, without writing anything.

    With ``attack`` each choice is attacked, with people put aside as controls.
    """
    plan = bench.plan.override(max_loss=max_loss, max_linkage=max_linkage)
    records = Table.of(bench.source())

    def on_progress(done: Tried, total: int) -> None:
        bench.on_progress(done, total, stage=done.words, cells=done.choices)

    trials = prepare(records, plan, sizes, methods, budget=None, attack=attack)
    return {"cells": try_prepared(trials, on_progress).cells}


class _Teller(Observer):
    """Sends the server what the command shows at a terminal."""

    def __init__(self, bench: _Bench) -> None:
        self._bench = bench
        self.lost_facts: list[str] = []
        self.model: dict[str, Any] = {}

    def stage(self, name: str, words: str = "") -> None:
        self._bench.tell(stage=name, done=(0, 1))

    def progress(self, stage: str, done: int, total: int) -> None:
        loss, gap = getattr(done, "information_loss", None), getattr(done, "gap", None)
        self._bench.on_progress(done, total, stage=stage, loss=loss, gap=gap)

    def left_out(self, words: str) -> None:
        self.lost_facts.append(words)

    def reported(self, model: dict[str, Any]) -> None:
        self.model = model


def _protect(bench: _Bench, folder: Path, target: str, **settings: Any) -> dict[str, Any]:
    """Write a release called ``target`` into a folder of its own, with its reports; settings are a Job's."""
    # From within the folder the release has the name by which the user takes it away.
    os.chdir(folder)
    opened = bench.opened
    job = Job(
        Path(opened.path.name) if opened.uploaded else opened.path,
        Path(target),
        bench.plan,
        csv=bench.csv,
        sheet=opened.sheet,
        report=Path("report.html"),
        public_report=Path("public-report.html"),
        **settings,
    )
    teller = _Teller(bench)
    outcome = run(job, teller)
    return {"model": teller.model, "left_out": teller.lost_facts, "plan": outcome.evidence.plan}


def _scatter(bench: _Bench, released: Path, number: int, x: str, y: str) -> dict[str, Any]:
    """Read some records of two columns, before and after; ``number`` is that of the release."""
    before = bench.source()
    after = read_file(released, numbers=numbers_of(bench.plan), csv=bench.csv)
    return two_columns(Frame(before.table), Frame(after.table), x, y)


# A table as the page shows it before any work, as plain data.


def about_columns(table: Frame, missing_words: Sequence[str] = ("",)) -> list[dict[str, Any]]:
    """Describe each column: counts, the heights of a small histogram, the draft's role and reason."""
    guesses, columns = guess(table, missing_words=missing_words), []
    for name, profile in profiles(table, missing_words=missing_words):
        drafted = guesses[name]
        columns.append(
            {
                "name": str(name),
                "label": profile.facts.label or "",
                "value_labels": [
                    (f"{value:g}" if isinstance(value, float) else str(value), label)
                    for value, label in profile.facts.value_labels[:_LABELS]
                ],
                "more_labels": max(len(profile.facts.value_labels) - _LABELS, 0),
                "type": profile.type,
                "missing": profile.missing,
                "distinct": profile.distinct,
                "bars": _bars(table, name, profile, missing_words),
                **{key: getattr(drafted, key) for key in ("role", "looks_like", "kind", "reason")},
            }
        )
    return columns


def _bars(table: Frame, name: Any, profile: Profile, missing_words: Sequence[str]) -> list[int]:
    """Count numbers in bins of equal width, and other values by frequency."""
    numbers = profile.numbers
    if numbers is not None and len(numbers.levels) > _BINS:
        weights = np.cumsum(numbers.counts) / numbers.counts.sum()
        low, high = numbers.levels[np.searchsorted(weights, _MIDDLE)].tolist()
        if high > low:
            clipped = np.clip(numbers.levels, low, high)
            counts, _ = np.histogram(
                clipped, _BINS, (low, high), weights=numbers.counts.astype(float)
            )
            return [int(count) for count in counts]
    if numbers is not None:
        return [int(count) for count in numbers.counts[:_BINS]]
    if profile.type == "nested" or not profile.present:
        return []
    counted = pc.value_counts(table.arrow_column(name).drop_null())
    is_missing = [value in missing_words for value in counted.field("values").to_pylist()]
    counts = counted.field("counts").to_numpy()[~np.array(is_missing, bool)]
    return [int(count) for count in np.sort(counts)[::-1][:_BINS]]


def first_rows(source: Source) -> dict[str, Any]:
    """Return the first records as they are written in the file."""
    head = source.as_written.slice(0, _ROWS)
    names = [str(name) for name in head.column_names]
    columns = [[_cell(value) for value in column.to_pylist()] for column in head.columns]
    return {"names": names, "rows": [list(row) for row in zip(*columns, strict=True)]}


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def two_columns(before: Frame, after: Frame, x: str, y: str) -> dict[str, Any]:
    """Return evenly chosen records of two numeric columns, before and after."""
    points = {}
    for when, table in (("before", before), ("after", after)):
        both = np.column_stack([_numbers(table, name) for name in (x, y)])
        both = both[np.isfinite(both).all(axis=1)]
        step = max(len(both) // _POINTS, 1)
        points[when] = both[::step][:_POINTS].tolist()
    return points


def _numbers(table: Frame, name: str) -> Floats:
    if name not in table.names:
        raise InputError(f"The table has no column {shown(name)} any more. Choose another column.")
    if table.is_numeric(name):
        return table.doubles(name)
    raise InputError(
        f"A scatter shows two numeric columns; {shown(name)} has no numbers. Choose another column."
    )


_WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "read": _read,
    "price": _price,
    "claim": _claim,
    "search": _search,
    "compare": _compare,
    "protect": _protect,
    "scatter": _scatter,
}
