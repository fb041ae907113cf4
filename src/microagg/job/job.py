"""The settings of a job: what to read, do and write, and all that can be wrong with it before any work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from microagg.engines.capabilities import check_engine, check_plan_in_parts, check_spark_source
from microagg.errors import InputError, shown
from microagg.formats.addresses import STANDARD, Place, is_plain, kind_by_ending, plain_name
from microagg.formats.atomic import check_target, private_folder
from microagg.formats.batches import BatchSource, open_batches
from microagg.formats.csv import no_formulas
from microagg.formats.files import FORMATS, is_folder_target, kind_of, stands_for_several
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import Destination, fetched, naming
from microagg.measure.analyses import check_analyses
from microagg.plan.analysis_formulas import computed_with
from microagg.plan.column import CATEGORIES
from microagg.plan.job_settings import JobSettings
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target
from microagg.tables.frame import Frame
from microagg.tables.variable import QUANTITIES

_NO_NUMBERS = (*CATEGORIES, "date")
_LARGE_FILE = 2**18  # bytes; larger ones have probably more than few records


@dataclass(frozen=True)
class Job(JobSettings):
    """What to do."""

    source: Place
    """Local file, folder or pattern; an address in a store; or ``-``, standard input."""
    target: Place
    plan: Plan
    csv: CsvFormat | None = None
    public_report: Path | None = None
    """A second report, for readers of the target, in addition to the board's."""
    earlier: Sequence[Path] = ()
    """Folders of releases of the same source, whose reports lie elsewhere."""

    origin: Mapping[str, str] | None = field(default=None, repr=False)
    """Place and hash of a source, if a copy of it is read; set by :func:`microagg.job.run.run`."""
    destination: Destination | None = field(default=None, repr=False)
    """Where the target is sent once it is counted; set by :func:`microagg.job.run.run`."""

    @property
    def reads(self) -> Path:
        """The local file that is read."""
        assert isinstance(self.source, Path)
        return self.source

    @property
    def writes(self) -> Path:
        """The local file that is written."""
        assert isinstance(self.target, Path)
        return self.target

    @property
    def report_folders(self) -> list[Path]:
        """Where reports of earlier releases may lie."""
        return [path.parent for path in (self.writes, *(path for path, _ in self.reports))]

    @cached_property
    def looked(self) -> BatchSource | None:
        """The source, opened once to look at names and size; None: its kind is only read as a whole."""
        if not FORMATS[kind_of(self.reads)].in_batches:
            return None
        return open_batches(self.reads, self.csv, numbers_of(self.plan))

    @property
    def about_records(self) -> int | None:
        """Number of records, about; None: not known before they are read, and there may be many."""
        if not is_plain(self.source) or stands_for_several(self.reads):
            return None
        if self.looked is not None:
            return self.looked.about_rows
        return None if self.reads.stat().st_size > _LARGE_FILE else 0

    def check(self) -> None:
        """Refuse what cannot work before the records are read: a mistake costs no waiting.

        A job is checked once, the first time that this is called.
        """
        _ = self._checks

    @cached_property
    def _checks(self) -> None:
        check_engine(self.engine, self.given_settings)
        if self.public and self.report is None:
            raise InputError("--public is about the report; say where to write it with --report.")
        if self.prices and (self.report is None or self.public):
            raise InputError(
                "--prices is about the board's report; say where to write it with --report."
            )
        paths = [place for place in (self.source, self.target) if isinstance(place, Path)]
        for path, _ in self.reports:
            check_report_target(path, *paths)
            paths += [path, path.with_suffix(".json")]
        self.plan.check_complete()
        self._check_ledger(*paths)
        if not (is_plain(self.source) and is_plain(self.target)):
            self._check_places(*paths)  # the rest once the table is at hand
            return
        if self.engine == "spark":
            from microagg.engines.spark.spark_session import check_spark

            check_spark()
            check_spark_source(self.reads)
        if self.engine not in (None, "memory"):
            check_plan_in_parts(self.plan, on_spark=self.engine == "spark")
        kind_of(self.reads)
        kind = self.kind_of_target
        self._check_target(self.writes, self.to_folder, *paths)
        if self.sheet is not None and not FORMATS[kind_of(self.reads)].has_sheets:
            raise InputError(
                f"--sheet is about Excel files; {shown(str(self.source), 300)} is none."
            )
        if self.escape_formulas and not FORMATS[kind].has_formulas:
            raise no_formulas(self.writes)
        opened = None if stands_for_several(self.reads) else self.looked
        if opened is not None:  # the header of a CSV file, or the footer of a Parquet file
            self.plan.roles(opened.names)  # which refuses columns that the table does not have
            if opened.kind == "parquet":
                self.check_analyses(opened.schema, self.plan)

    def _check_target(self, target: Path, folder: bool, *others: Path) -> None:
        """Refuse places that cannot be written to; ``others`` are files of the same job."""
        check_target(target.absolute(), folder, self.overwrite)
        if self.keep_rejected is None:
            return
        check_target(self.keep_rejected.absolute(), folder)
        if any(self.keep_rejected.resolve() == other.resolve() for other in (target, *others)):
            raise InputError(
                "--keep-rejected keeps a table apart from the files of the job; "
                f"{shown(str(self.keep_rejected), 300)} is one of them. Choose another name."
            )

    def _check_ledger(self, *taken: Path) -> None:
        """Refuse a ledger where it cannot take its name in one step with the release."""
        if self.ledger is None:
            if self.key is not None or self.leavers != "withhold":
                flag = "--leavers" if self.key is None else "--key"
                raise InputError(f"{flag} is about a ledger; say which with --ledger.")
            return
        if not is_plain(self.target) or is_folder_target(
            self.writes, self.reads if is_plain(self.source) else None
        ):
            raise InputError(
                "A ledger and its release take their names in one step, so that OUT is a local file; "
                f"{shown(str(self.target), 300)} is none. Write a file, and move it afterwards."
            )
        check_target(self.ledger.absolute())
        if any(self.ledger.resolve() == path.resolve() for path in taken):
            raise InputError(
                f"--ledger is a file of its own; {shown(str(self.ledger), 300)} is another file of the job. "
                "Choose another name."
            )

    def _check_places(self, *taken: Path) -> None:
        """Refuse places that cannot be read from or written to."""
        if self.engine == "spark":
            raise InputError(
                "The engine spark reads and writes local folders that all workers see. Use the engine memory "
                "or disk, or hand a data frame that Spark reads itself to microagg.spark.protect."
            )
        for place, writing in ((self.source, False), (self.target, True)):
            if is_plain(place) or place == STANDARD or not Path(plain_name(place)).suffix:
                continue  # an address without an ending is that of a folder
            kind_by_ending(Path(plain_name(place)), writing)  # refuses an unknown ending
        if is_plain(self.target):
            self._check_target(self.writes, is_folder_target(self.writes), *taken)
            return
        Destination(self.target, Path()).check(self.overwrite)
        if isinstance(self.target, Path) and self.target != STANDARD:
            self._check_target(self.target, False, *taken)

    @contextmanager
    def local_copies(self) -> Iterator[Job]:
        """Yield the same job with local files in place of all others, in a private folder."""
        if is_plain(self.source) and is_plain(self.target):
            yield self
            return
        with private_folder(Path(tempfile.gettempdir())) as folder:
            came, goes = folder / "in", folder / "out"
            with naming({came: self.source, goes: self.target}):
                job = self
                for directory in (came, goes):
                    directory.mkdir()
                if not is_plain(self.source):
                    path, sha256 = fetched(self.source, came)
                    origin = {"path": str(self.source), "sha256": sha256}
                    job = replace(job, source=path, origin=origin)
                if not is_plain(self.target):
                    name = "stdout.arrow" if kind_of(job.reads) == "arrow" else "stdout.csv"
                    name = name if self.target == STANDARD else plain_name(self.target)
                    sent = Destination(self.target, folder)
                    job = replace(job, target=goes / name, destination=sent)
                job.check()
                yield job

    def check_analyses(self, schema: Any, plan: Plan) -> None:
        """Refuse analyses that cannot be done with columns of these types."""
        gone = {*plan.drop, *plan.renumber}
        check_analyses(plan.analyses, Frame(schema.empty_table()), gone, whole=False)

    @property
    def to_folder(self) -> bool:
        """Whether the target is a folder of Parquet files."""
        return self.engine == "spark" or is_folder_target(self.writes, self.reads)

    @property
    def kind_of_target(self) -> str:
        """The format of the target."""
        return "parquet" if self.to_folder else kind_of(self.writes, writing=True)

    @property
    def given_settings(self) -> dict[str, bool]:
        """Which of the settings that not every engine uses were given, by flag."""
        csv, usual = self.csv or CsvFormat(), CsvFormat()
        return {
            "--memory": self.memory is not None,
            "--master": self.master is not None,
            "--sheet": self.sheet is not None,
            "--delimiter": csv.delimiter is not None,
            "--encoding": csv.encoding is not None,
            "--decimal": csv.decimal != usual.decimal,
            "--escape-formulas": self.escape_formulas,
            "--public": any(public for _, public in self.reports),
            "--prices": self.prices,
            "--ledger": self.ledger is not None,
            "--bound": any(block.bound for block in self.plan.blocks),
            "--time-limit": any("time_limit" in block.options for block in self.plan.blocks),
        }

    @property
    def reports(self) -> list[tuple[Path, bool]]:
        """The reports to write, and whether each is for readers of the target."""
        reports = [] if self.report is None else [(self.report, self.public)]
        return reports if self.public_report is None else [*reports, (self.public_report, True)]


def numbers_of(plan: Plan) -> list[Any]:
    """Columns that are numbers even if they look like codes, since the plan says so or computes with them.

    A column that is only named is read as what it looks like: 01067 stays a code, with its zero.
    """
    said = [
        name
        for name, column in plan.columns.items()
        if column.kind in QUANTITIES or (column.kind is None and column.transform is not None)
    ]
    said += [*plan.related, *(() if plan.weight is None else (plan.weight.column,))]
    said += [name for name in map(computed_with, plan.analyses) if name is not None]
    return [name for name in dict.fromkeys(said) if plan.column(name).kind not in _NO_NUMBERS]
