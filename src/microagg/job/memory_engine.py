"""The engine for tables that are read as a whole."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.base.formatting import few_digits, plural
from microagg.comparing.prices import price_table
from microagg.comparing.search import steer
from microagg.encode.categories import MOST_COORDINATES
from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.release import Release
from microagg.engines.memory.table import Table
from microagg.errors import StopSearch
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile, History, Measured
from microagg.formats.csv import formula_cells
from microagg.formats.files import FORMATS, Source, read_file, what_is_left
from microagg.grouping.partition import seconds_of_proof
from microagg.job.delivery import Delivery
from microagg.job.earlier_reports import check_newest
from microagg.job.engine import NOTICED, Engine
from microagg.job.job import numbers_of
from microagg.ledger.carry import Carrying
from microagg.ledger.checks import with_plain_means
from microagg.ledger.ledger_file import (
    Ledger,
    finish_killed_run,
    note_release,
    opened_key,
    read_ledger,
    write_ledger,
)
from microagg.tables.frame import Frame
from microagg.tables.release_frame import left_out_words

if TYPE_CHECKING:
    import pyarrow as pa

_MINUTE = 60.0
# Of a search with the effort of the default, measured: 250 s for a million records of 65 coordinates, a
# number and a category of 5,000 levels.
_SECONDS_A_COORDINATE = 4e-6


class MemoryEngine(Engine):
    """Reads the whole table, and hands it to :func:`microagg.engines.memory.protect.protect_table`."""

    _source: Source
    _table: Table
    _release: Release
    _carrying: Carrying | None = None
    """The groups of earlier releases."""
    _key: bytes
    _ledger: Ledger
    """With this release."""
    _released: pa.Table
    """The released table as it is written."""

    def read(self) -> list[str]:
        """Read the file."""
        job = self.job
        if job.ledger is not None:
            # No other run can write to it until the files have taken their names.
            self._key = self.closing.enter_context(opened_key(job.ledger, make=True))
            before = read_ledger(job.ledger, self._key)
            check_newest(job.report_folders, job.ledger, before)
            finish_killed_run(before)
            self._carrying = Carrying(before, self._key, job.key, job.leavers)
        self._source = source = read_file(
            job.reads, numbers_of(job.plan), job.csv, sheet=job.sheet, hashed=True
        )
        self.digest = source.sha256
        # Columns that the table does not have are refused here.
        job.plan.roles(source.as_written.column_names)
        self._table = Table.of(source)
        self.records, self.columns = len(self._table.frame), len(self._table.frame.names)
        return what_is_left(source, job.writes, job.plan.drop)

    def prepare(self) -> str:
        """Fill in the plan by what all records look like, and let columns of analyses count more.

        They do if the plan says how far an analysis may move, and they move further. Returned is how long a
        search over many coordinates takes, and a proof that was asked for.
        """
        self.drafted = self._table.completed(self.job.plan)
        plan = self.drafted.plan
        if self._carrying is not None:
            plan = with_plain_means(plan, self.job.plan)
        if plan.analyses and plan.accept.moved is not None:
            self._table.checked(plan)
            self.observer.stage("steering")
            plan = steer(self._table, plan)
        self.drafted = replace(self.drafted, plan=plan)
        plan = self.job.plan
        seconds = sum(
            seconds_of_proof(block.bound or False, self.records, block.k, bool(plan.weight))
            for block in plan.blocks
            if block.k is not None and len(block.columns or "some") > 1 and not block.per_column
        )
        return "; ".join(filter(None, [self._words_of_search(), _words_of_proof(seconds)]))

    def _words_of_search(self) -> str:
        """Say how long the search takes where it takes minutes, as it does over categories of many levels."""
        plan, frame = self.drafted.plan, self._table.frame
        columns = [name for block in plan.blocks for name in block.columns or ()]
        a_coordinate = _SECONDS_A_COORDINATE * self.records / _MINUTE
        is_quick = a_coordinate * MOST_COORDINATES * len(columns) < 1
        if is_quick or any(block.method != "auto" or block.options for block in plan.blocks):
            return ""
        nominal = [name for name in columns if plan.column(name).kind in ("nominal", "hierarchy")]
        levels = [len(frame.levels(name)[1]) for name in nominal]
        coordinates = len(columns) + sum(min(n, MOST_COORDINATES) - 1 for n in levels)
        minutes = a_coordinate * coordinates
        words = f"about {plural(round(minutes), 'minute')} of computing, shared by all cores"
        return "" if minutes < 1 else words

    def group(self) -> None:
        """Group the records, and prove a bound for the board's report where that takes seconds."""
        self._release = protect_table(
            self._table.frame,
            self.drafted,
            lambda done: self.observer.progress("grouping", done, self.records),
            self._table.text,
            self._table.coded,
            on_plan=lambda plan: self.observer.planned(plan, self.records),
            clock=self.clock,
            carrying=self._carrying,
        )
        if self.job.report is None or self.job.public:  # no bound is shown in public
            return
        self.observer.stage("bounding", _words_of_proof(self._release.seconds_of_bound()))
        n = len(self._release.parts[0].rows)
        with suppress(StopSearch):  # who does not wait for the proof has the groups
            self._release = self._release.with_bound(
                lambda done: self.observer.progress("bounding", done, n)
            )

    def write(self, delivery: Delivery) -> CountedFile:
        """Write the table."""
        job, kind, release = self.job, self.job.kind_of_target, self._release.released_table
        form = self.format_to_write(self._source)
        if job.to_folder:
            release = release.placed_in(form.folder)
        self._released = release.table(kind, self._source.kept_for(kind))
        # Columns are compared with the file as far as they are written as it holds them.
        self.left_out = self._release.left_out
        if self._source.kept_for(kind) is not None:
            self.left_out = left_out_words(self._source.table.schema, self._released.schema)
        return release.write(self._released, delivery.table, job.writes, form, job.escape_formulas)

    def history(self, counted: CountedFile, delivery: Delivery) -> History | None:
        """Add this release to the ledger."""
        carrying = self._carrying
        if carrying is None:
            return None
        form, order = self.format_to_write(self._source), self._release.released_table.order
        assert order is not None  # a kept order is refused
        back = read_file(delivery.table, csv=form.csv, sheet=form.excel.sheet)
        self._ledger = ledger = carrying.ledger(
            Frame(back.as_written),
            back.is_text,
            order,
            {
                "date": datetime.now(UTC).date().isoformat(),
                "records": counted.least.records,
                "loss": few_digits(self._release.utility.information_loss, 3),
                "smallest": carrying.smallest,
                "path": str(self.job.writes.absolute()),
                "parts": [
                    [str(part.absolute()), str(target.absolute())]
                    for part, target in zip(delivery.parts, delivery.targets, strict=True)
                    if part != delivery.ledger
                ],
                "sha256": counted.sha256,
            },
        )
        return History.of(ledger, carrying, self.drafted.plan.is_swapped)

    def write_ledger(self, part: Path) -> None:
        """Write the ledger, and note the release in its key once the files have taken their names."""
        assert self.job.ledger is not None
        write_ledger(part, self._ledger, self._key)
        self.closing.callback(note_release, self.job.ledger, self._ledger)

    def measure(self) -> Measured:
        """Measure all records, attack them, and price other decisions if asked to."""
        job = self.job
        if watched := self.begin_attacks():
            with self.clock.time("attack"):
                self._release.attacked(*watched)
        measured = self._release.measured()
        if FORMATS[job.kind_of_target].has_formulas and not job.escape_formulas:
            measured = replace(measured, formulas=formula_cells(self._released))
        if job.prices:
            self.observer.stage("pricing")
            with self.clock.time("price"), suppress(StopSearch):  # who does not wait has no prices
                prices = price_table(
                    self._table,
                    self.drafted.plan,
                    progress=lambda done, total: self.observer.progress("pricing", done, total),
                    counted_loss=self._release.utility.information_loss,
                )
                measured = replace(measured, prices=prices.for_report())
        return measured

    def report_model(self, evidence: Evidence, public: bool) -> dict[str, Any]:
        """Gather what the report for the board, or for the public, shows."""
        return self._release.report_model(evidence, public)


def _words_of_proof(seconds: float | None) -> str:
    """Say how long a proof takes, where one has to wait for it."""
    if seconds is None or seconds < NOTICED:
        return ""
    took = plural(math.ceil(seconds), "second")
    return f"a proof of how near the optimum the groups are takes about {took}"
