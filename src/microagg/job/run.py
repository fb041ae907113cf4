"""A job: from file to file, for command and page alike.

read → draft → protect → measure → write, read back, count → report; then all files take their names
at once. An observer hears of stages, progress and cautions; nothing travels through global state, so
that jobs in several threads do not mix.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.base.formatting import table_size
from microagg.base.progress import Listener
from microagg.comparing.plan_trials import Records
from microagg.comparing.prices import price_table
from microagg.delivering.delivery import Delivery, delivering
from microagg.delivering.observer import Observer
from microagg.drafting.draft import Guess
from microagg.engines.capabilities import check_engine, check_target_kind
from microagg.errors import DisclosureRiskWarning, RejectedError, StopSearch
from microagg.evidence.evidence import Evidence
from microagg.formats import FORMATS
from microagg.formats.addresses import Place, as_place
from microagg.formats.atomic import sha256
from microagg.formats.batches import open_batches
from microagg.formats.files import CsvFormat, FileFormat, Source, read_file, stands_for_several
from microagg.formats.format_limits import what_is_left
from microagg.formats.formulas import formula_cells
from microagg.grouping.partition import seconds_of_proof
from microagg.job.job import Job, numbers_of
from microagg.plan.plan import UNSET, Plan
from microagg.protecting.protect import Clock, protect_table
from microagg.protecting.release import Release
from microagg.report.html import draw, report_texts
from microagg.report.model import release_model
from microagg.tables.frame import Frame
from microagg.tables.released_metadata import left_out_words

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Job",
    "Observer",
    "Outcome",
    "completed_source",
    "numbers_of",
    "protect_file",
    "protect_source",
    "records_of",
    "run",
]


_NOTICED = 2.0  # seconds after which somebody asks what takes so long


@dataclass(frozen=True)
class Outcome:
    """What was done."""

    evidence: Evidence
    guesses: Mapping[Any, Guess] | None
    """What the draft made of the columns; None where they were named."""
    files: Sequence[Place]
    """The files that were written, the table first."""
    left_out: list[str] = field(default_factory=list)
    """What the source tells and the target has no place for, in words."""
    seconds: dict[str, float] = field(default_factory=dict)


def run(job: Job, observer: Observer | None = None) -> Outcome:
    """Do a job. Whatever fails before all files are complete, none of them takes its name."""
    hears = observer or Observer()
    job.check()
    if job.engine == "spark":
        return _run_on_spark(job, hears)
    hears.stage("reading")
    with job.at_hand() as local:
        return _run_from_disk(local, hears) if _from_disk(local) else _run_in_memory(local, hears)


def _run_in_memory(job: Job, hears: Observer) -> Outcome:
    """Do a job with a table that is read as a whole."""
    clock = Clock()
    with clock.time("read"):
        source = read_file(
            job.reads,
            job.numbers,
            job.csv,
            sheet=job.sheet,
            looked=None if job.looked is None else job.looked.text,
            hashed=True,
        )
        origin = job.origin or {"path": str(job.source), "sha256": source.sha256}
        if job.looked is None or stands_for_several(job.reads):  # else its header told
            job.check_names(source.as_written.column_names)
        left_out = what_is_left(source, job.writes, job.plan.drop)
    for words in left_out:
        hears.left_out(words)
    table = Frame(source.table)
    asked = sum(
        seconds_of_proof(block.bound or False, len(table), block.k, job.plan.weight is not None)
        for block in job.plan.blocks
        if block.k is not None and len(block.columns or "some") > 1 and not block.per_column
    )
    size = table_size(len(table), len(table.names))
    hears.stage("grouping", "; ".join(filter(None, [size, _words_of_proof(asked)])))
    release = protect_source(
        source,
        job.plan,
        lambda done: hears.progress("grouping", done, len(table)),
        lambda plan: hears.planned(plan, len(table)),
    )
    with clock.time("measure"):
        if job.report is not None and not job.public:  # no bound is shown in public
            hears.stage("bounding", _words_of_proof(release.seconds_of_bound()))
            release = _with_bound(release, hears)
        hears.stage("measuring")
        found = release.evidence_with(
            dominance=job.dominance,
            dominance_percent=job.dominance_percent,
        )
        evidence = replace(found, source=origin)
    if job.prices:
        hears.stage("pricing")
        with clock.time("price"):
            evidence = replace(evidence, prices=_prices(source, release, hears))
    kind = job.kind_of_target
    kept = source.kept_for(kind)
    released = release.outgoing.table(kind, kept)
    if FORMATS[kind].has_formulas and not job.escape_formulas:
        evidence = replace(evidence, formulas=formula_cells(released))
    for caution in evidence.cautions:
        hears.caution(caution)
    evidence, files = _write(job, source, release, released, evidence, clock, hears)
    metadata = release.left_out
    if kept is not None:
        metadata = left_out_words(source.table.schema, released.schema)
    left_out += _tell_metadata(metadata, kind, hears)
    return Outcome(evidence, release.drafted, files, left_out, {**clock.seconds, **release.seconds})


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
    escape_formulas : put an apostrophe in front of texts in a CSV file that a spreadsheet program would
        take for formulas
    strict : release the table only if the verdict is green
    keep_rejected : where to keep a table that is rejected
    overwrite : replace a target that exists, be it a file or a folder of Parquet files
    observer : hears of stages, progress and cautions

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
    >>> found.verdict, (folder / "out.csv").read_text().split()
    ('green', ['age', '31.66667', '31.66667', '31.66667', '64', '64', '64'])
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
        escape_formulas=escape_formulas,
        master=master,
        strict=strict,
        keep_rejected=None if keep_rejected is None else Path(keep_rejected),
        overwrite=overwrite,
    )
    found = run(job, observer).evidence
    if found.rejected:
        raise RejectedError(found.rejected, found)
    for caution in found.cautions:
        if caution.severity != "note" and caution.disclosure:
            warnings.warn(caution.sentence, DisclosureRiskWarning, stacklevel=2)
    return found


def _from_disk(job: Job) -> bool:
    """Whether a table is worked on in parts: as asked, or since it does not fit into memory."""
    if job.engine is not None:
        return job.engine == "disk"
    from microagg.engines.memory_needed import fits

    return job.looked is not None and not fits(job.looked, job.memory, job.plan)


def _run_from_disk(job: Job, hears: Observer) -> Outcome:
    """Do a job with a table that is never in memory as a whole."""
    from microagg.engines import disk_job
    from microagg.engines.complete_plan import completed
    from microagg.engines.disk import DiskParts
    from microagg.engines.memory_needed import memory_for
    from microagg.engines.passes import source_changed
    from microagg.engines.scratch import opened_scratch

    check_engine("disk", job.given_settings)  # which may not have been asked for
    clock = Clock()
    source = job.looked or open_batches(job.reads)  # which refuses other kinds
    job.check_names(source.names)
    folder, kind = job.to_folder, job.kind_of_target
    check_target_kind("disk", kind, job.target)
    with clock.time("draft"):
        drafted = completed(DiskParts(source), job.plan)
        plan = drafted.plan
        job.check_analyses(source.schema, plan)
    same = job.reads.suffix.lower() == job.writes.suffix.lower() and kind == source.kind
    form = source if same or folder else source.format.for_another(job.csv)
    digest = sha256(job.reads)
    owner = disk_job.owner_of(source, plan, job.numbers, digest)
    with opened_scratch(job.writes, owner) as scratch:

        def told(stage: str, done: int, total: int) -> None:
            hears.progress(stage, done, total)

        size = f"{table_size(source.rows, len(source.names))}, in parts"
        hears.stage("grouping", "; ".join(filter(None, [size, scratch.found])))
        hears.planned(plan, source.rows)
        with clock.time("partition"):
            table = disk_job.DiskTable.grouped(source, plan, scratch, memory_for(job.memory), told)
        with delivering(
            job.gate, job.writes, job.reports, hears, folder, outgoing=job.outgoing
        ) as delivery:
            hears.stage("writing")
            with clock.time("write"):
                measured, metadata = disk_job.write_release(
                    table,
                    delivery.table,
                    job.writes,
                    form,
                    hears,
                    escape=job.escape_formulas,
                    pictures=job.report is not None,
                    dominance=job.dominance,
                    dominance_percent=job.dominance_percent,
                )
            if sha256(job.reads) != digest:  # of which the report says that it was read
                raise source_changed(job.reads)
            origin = job.origin or {"path": str(job.source), "sha256": digest}
            evidence = Evidence.of(plan, replace(measured, source=origin))
            for caution in evidence.cautions:
                hears.caution(caution)
            left_out = _tell_metadata(metadata, kind, hears)
            evidence = _judged(job, None, evidence, delivery, clock, hears)
    return Outcome(evidence, drafted.guesses, delivery.files, left_out, clock.seconds)


def _tell_metadata(metadata: list[str], kind: str, hears: Observer) -> list[str]:
    """Say which metadata are not in the file; those without a place there were said before."""
    left_out = [] if FORMATS[kind].is_text else metadata
    for words in left_out:
        hears.left_out(words)
    return left_out


def _run_on_spark(job: Job, hears: Observer) -> Outcome:
    """Do a job on Spark, where records never come to this process."""
    from microagg.engines.spark.spark_job import protect_files

    clock = Clock()
    with clock.time("run"):
        evidence, guesses = protect_files(
            job.reads,
            job.writes,
            job.plan,
            job.master,
            hears,
            report=job.report,
            check_names=job.check_names,
            gate=job.gate,
            dominance=job.dominance,
            dominance_percent=job.dominance_percent,
        )
    reports = [] if job.report is None else [job.report, job.report.with_suffix(".json")]
    released = [] if evidence.rejected else [job.writes]
    return Outcome(evidence, guesses, [*released, *reports], [], clock.seconds)


def _words_of_proof(seconds: float | None) -> str:
    """Say how long a proof takes, where one has to wait for it."""
    if seconds is None or seconds < _NOTICED:
        return ""
    return (
        f"a proof of how near the optimum the groups are takes about {math.ceil(seconds)} seconds"
    )


def _with_bound(release: Release, hears: Observer) -> Release:
    n = len(release.parts[0].rows)
    try:
        return release.with_bound(lambda done: hears.progress("bounding", done, n))
    except StopSearch:  # who does not wait for the proof has the groups
        return release


def _prices(source: Source, release: Release, hears: Observer) -> dict[str, Any] | None:
    """Price other decisions; None if somebody does not wait for that."""
    try:
        found = price_table(
            records_of(source),
            release.plan,
            progress=lambda done, total: hears.progress("pricing", done, total),
            counted_loss=release.utility.information_loss,
        )
    except StopSearch:
        return None
    return found.for_report()


def protect_source(
    source: Source,
    plan: Plan,
    progress: Listener | None = None,
    on_plan: Callable[[Plan], None] | None = None,
) -> Release:
    """Protect a file that was read, with :func:`numbers_of` its plan; nothing is written."""
    return protect_table(
        Frame(source.table),
        plan,
        progress,
        None if source.kept_for(source.kind) is None else source.as_written,
        source.coded(),
        on_plan=on_plan,
    )


def records_of(source: Source) -> Records:
    """Return the table of a file that was read, for plans to be tried on it."""
    text = None if source.kept_for(source.kind) is None else source.as_written
    return Records(Frame(source.table), text, source.coded())


def completed_source(source: Source, plan: Plan) -> Plan:
    """Complete a plan for a file that was read, as :func:`protect_source` does."""
    return records_of(source).completed(plan).plan


def _write(
    job: Job,
    source: Source,
    release: Release,
    table: pa.Table,
    evidence: Evidence,
    clock: Clock,
    hears: Observer,
) -> tuple[Evidence, Sequence[Place]]:
    """Write table and report beside their targets, count, and let them take their names together."""
    form = _format(job, source, job.kind_of_target, release)
    extra = [] if form.fixed is None else [job.writes.with_suffix(".rda")]
    with delivering(
        job.gate, job.writes, job.reports, hears, job.to_folder, extra, job.outgoing
    ) as delivery:
        hears.stage("writing")
        with clock.time("write"):
            counted = release.outgoing.write(
                table, delivery.table, job.writes, form, job.escape_formulas
            )
        if form.fixed is not None:
            delivery.parts[-2].write_text(form.fixed.description.text(), encoding="utf-8")
        evidence = replace(evidence, counted=counted)
        evidence = _judged(job, release, evidence, delivery, clock, hears)
    return evidence, delivery.files


def _judged(
    job: Job,
    release: Release | None,
    evidence: Evidence,
    delivery: Delivery,
    clock: Clock,
    hears: Observer,
) -> Evidence:
    """Let the gate decide about a table that was written and counted, and write the reports.

    ``release`` is None where records are not in memory; then the evidence has all that is shown.
    """
    evidence = delivery.judge(evidence)
    if job.reports:
        hears.stage("reporting")
    for number, (_, public) in enumerate(job.reports):
        with clock.time("report"):
            if release is None:
                model = release_model(evidence)
            else:
                model = release.report_model(evidence, public, job.compare)
            pictures = draw(model)
            delivery.write_report(number, report_texts(model, pictures))
        if not public:
            hears.reported(model, pictures)
    return evidence


def _format(job: Job, source: Source, kind: str, release: Release) -> FileFormat:
    """Return the format to write: that of the source, as far as the target is of the same kind."""
    same = job.reads.suffix.lower() == job.writes.suffix.lower()
    if not same and (kind != source.kind or kind == "csv"):
        return source.format.for_another(job.csv)
    fixed = source.format.fixed
    if fixed is None:
        return source.format
    released = fixed.description.of(Frame(release.data).names, release.roles.renumbered)
    return replace(source.format, fixed=replace(fixed, description=released))
