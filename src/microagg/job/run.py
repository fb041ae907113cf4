"""A job: from file to file, for command and page alike, and on every engine.

read → complete the plan → group → write, read back, count → measure → judge → report; then all files take
their names at once. An observer hears of stages, progress and cautions; nothing travels through global
state, so that jobs in several threads do not mix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from microagg.base.formatting import table_size
from microagg.base.progress import Clock
from microagg.drafting.guess import Guess
from microagg.errors import RejectedError
from microagg.evidence.cautions import warn_of
from microagg.evidence.evidence import Evidence
from microagg.formats.addresses import Place, as_place
from microagg.formats.files import FORMATS
from microagg.formats.layouts import CsvFormat
from microagg.job.delivery import delivering
from microagg.job.earlier_reports import earlier_swap
from microagg.job.engine import Engine
from microagg.job.job import Job
from microagg.job.memory_engine import MemoryEngine
from microagg.job.observer import LoggingObserver, Observer
from microagg.plan.plan import UNSET, Plan
from microagg.report.html import report_texts


@dataclass(frozen=True)
class JobResult:
    """What was done."""

    evidence: Evidence
    guesses: Mapping[Any, Guess] | None
    """What the draft made of the columns; None where they were named."""
    files: Sequence[Place]
    """The files that were written, the table first."""
    left_out: list[str] = field(default_factory=list)
    """What the source tells and the target has no place for, in words."""
    seconds: dict[str, float] = field(default_factory=dict)


def run(job: Job, observer: Observer | None = None) -> JobResult:
    """Do a job. Whatever fails before all files are complete, none of them takes its name.

    Parameters
    ----------
    job : what to read, do and write
    observer : hears of stages, progress and cautions; None: nobody does
    """
    observer = observer or Observer()
    job.check()
    observer.stage("reading")
    clock = Clock()
    with job.local_copies() as local, ExitStack() as closing:
        return _walk(_engine(local)(local, observer, clock, closing))


def _engine(job: Job) -> type[Engine]:
    """Return the engine that was asked for; else memory where the table fits, or disk."""
    in_parts = job.engine in ("disk", "spark")
    if job.engine is None and job.looked is not None:
        from microagg.engines.memory_needed import fits

        in_parts = not fits(job.looked, job.memory, job.plan)
    if not in_parts:
        return MemoryEngine
    from microagg.job.engine_in_parts import DiskEngine, SparkEngine

    return SparkEngine if job.engine == "spark" else DiskEngine


def _walk(engine: Engine) -> JobResult:
    """Take a table from file to file."""
    job, observer, clock = engine.job, engine.observer, engine.clock
    with clock.time("read"):
        left_out = engine.read()
    for words in left_out:
        observer.left_out(words)
    with clock.time("check"):
        words = engine.prepare()
    size = table_size(engine.records, engine.columns) + (", in parts" if engine.in_parts else "")
    observer.stage("grouping", "; ".join(filter(None, [size, words])))
    engine.group()
    plan = engine.drafted.plan
    with delivering(job, observer) as delivery:
        observer.stage("writing")
        with clock.time("write"):
            counted = engine.write(delivery)
        observer.stage("measuring")
        with clock.time("measure"):
            measured = engine.measure()
            origin = job.origin or {"path": str(job.source), "sha256": engine.digest}
            history = engine.history(counted, delivery)
            before = ""
            if plan.is_swapped and history is None and isinstance(job.target, Path):
                folders, sha256 = job.report_folders, origin["sha256"]
                before = earlier_swap(folders, job.writes, sha256, job.earlier)
            measured = replace(
                measured, counted=counted, source=origin, history=history, swapped_before=before
            )
            evidence = Evidence.of(plan, measured)
            for caution in evidence.cautions:
                observer.caution(caution)
        if not FORMATS[job.kind_of_target].is_text:  # whose lack of place was reported before
            for words in engine.left_out:
                observer.left_out(words)
            left_out += engine.left_out
        evidence = delivery.judge(evidence)
        if job.reports:
            observer.stage("reporting")
        for number, (_, public) in enumerate(job.reports):
            with clock.time("report"):
                model = engine.report_model(evidence, public)
                delivery.write_report(number, report_texts(model))
            if not public:
                observer.reported(model)
        if delivery.ledger is not None and not evidence.rejected:
            engine.write_ledger(delivery.ledger)
    return JobResult(evidence, engine.drafted.guesses, delivery.files, left_out, clock.seconds)


def protect_file(
    source: str | Path,
    target: str | Path,
    k: int = UNSET,
    *,
    plan: Plan | None = None,
    engine: str | None = None,
    memory: int | None = None,
    master: str | None = None,
    report: str | Path | None = None,
    public_report: str | Path | None = None,
    csv: CsvFormat | None = None,
    ledger: str | Path | None = None,
    key: str | None = None,
    leavers: str = "withhold",
    escape_formulas: bool = False,
    strict: bool = False,
    keep_rejected: str | Path | None = None,
    overwrite: bool = True,
    observer: Observer | None = None,
    **settings: Any,
) -> Evidence:
    r"""Protect a file of any size, as the command does: it is read back and counted before it gets its name.

    Parameters
    ----------
    source, target : files whose endings tell their formats; folders or patterns of Parquet files; addresses
        such as ``s3://bucket/survey.parquet``
    k, plan, **settings
        As for :func:`microagg.protect`.
    engine : {"memory", "disk", "spark"}, optional
        "disk" works on Parquet and CSV files in parts, "spark" on Parquet files by a session of Spark. By
        default memory where the table fits, else disk.
    memory : int, optional
        Bytes that the job may take in memory; by default a share of what is free.
    master : str, optional
        Where Spark runs, such as ``local[2]``; by default the session there is, or what is configured.
    report, public_report : where to write the evidence for the board, and for readers of the target
    csv : delimiter, encoding and decimal sign of a CSV file
    ledger : private file that remembers groups, so that later releases of the same people use them too
    key : with a ledger, the column that tells people apart, if there is no unit
    leavers : with a ledger, "withhold" or "accept" groups that some of their members left
    escape_formulas : put an apostrophe in front of texts in a CSV file that a spreadsheet program would
        take for formulas
    strict : release the table only if the verdict is green
    keep_rejected : where to keep a table that is rejected
    overwrite : replace a target that exists, be it a file or a folder of Parquet files
    observer : hears of stages, progress and cautions; by default the logger "microagg" does

    Returns
    -------
    Evidence
        With ``counted``: what was found in the file that was written.

    Raises
    ------
    RejectedError
        If the release misses a limit of the plan (``accept``), or is not green with ``strict``: the target
        is as it was before, the reports are written.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.csv").write_text("age\n30\n31\n34\n61\n65\n66\n")
    >>> found = protect_file(folder / "in.csv", folder / "out.csv", k=3, columns=["age"], engine="disk")
    >>> found.verdict, sorted((folder / "out.csv").read_text().split())
    ('green', ['31.66667', '31.66667', '31.66667', '64', '64', '64', 'age'])
    """
    whole = (Plan() if plan is None else plan).override(k=k, **settings)
    job = Job(
        as_place(source),
        as_place(target),
        whole,
        csv=csv,
        report=None if report is None else Path(report),
        public_report=None if public_report is None else Path(public_report),
        engine=engine,
        memory=memory,
        ledger=None if ledger is None else Path(ledger),
        key=key,
        leavers=leavers,
        escape_formulas=escape_formulas,
        master=master,
        strict=strict,
        keep_rejected=None if keep_rejected is None else Path(keep_rejected),
        overwrite=overwrite,
    )
    evidence = run(job, observer or LoggingObserver()).evidence
    if evidence.rejected:
        raise RejectedError(evidence.rejected, evidence)
    warn_of(evidence.cautions)
    return evidence
