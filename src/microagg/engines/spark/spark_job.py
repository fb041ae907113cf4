"""From Parquet to Parquet on Spark: written beside the target, read back, counted, and then named."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from microagg.delivering.delivery import Gate, delivering
from microagg.delivering.observer import Observer
from microagg.delivering.write_and_count import refuse_broken
from microagg.drafting.draft import Guess
from microagg.engines.blocks import LEAF
from microagg.engines.capabilities import check_plan_in_parts, check_source
from microagg.engines.spark.on_spark import completed_on_spark, group_in_spark
from microagg.engines.spark.spark_frames import on_spark
from microagg.engines.spark.spark_release import SparkRelease
from microagg.engines.spark.spark_session import check_spark, exposure_words, session_on
from microagg.engines.spark.spark_warm import warm_executors
from microagg.evidence.evidence import Evidence
from microagg.formats.atomic import sha256
from microagg.formats.batches import open_batches
from microagg.measure.analyses import check_analyses
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target, report_texts
from microagg.report.model import release_model
from microagg.tables.frame import Frame

__all__ = ["check_spark_job", "protect_files"]


def check_spark_job(source: Path, plan: Plan) -> None:
    """Refuse what cannot work on Spark before it is started."""
    check_spark()
    plan.check_complete()
    check_plan_in_parts(plan)
    check_source("spark", source)


def protect_files(
    source: Path,
    target: Path,
    plan: Plan,
    master: str | None = None,
    observer: Observer | None = None,
    leaf: int = LEAF,
    report: Path | None = None,
    check_names: Callable[[Sequence[str]], object] | None = None,
    gate: Gate | None = None,
    **measures: Any,
) -> tuple[Evidence, Mapping[Any, Guess] | None]:
    """Protect a Parquet file, or a folder of these, on Spark.

    Parameters
    ----------
    source : file or folder that all workers can read
    target : folder on a disk that all workers can write to. It takes its name when what was
        written has been read back and keeps the promise.
    plan : what it leaves open is filled in by the first records
    master : of the cluster, such as ``local[2]``; None: the session there is, or what is configured
    observer : hears of stages and cautions
    leaf : records in a block, about
    report : where to write the board's report, on the machine of the driver
    check_names : refuses columns that the table does not have
    gate : decides whether what was written takes the name of the target
    **measures
        As for :meth:`microagg.protecting.release.Release.measure`: ``dominance``.

    Returns
    -------
    The evidence, and what the draft made of the columns, or None where they were named.

    Raises
    ------
    VerificationError
        If the promise does not hold in what was written; there is no target then.
    """
    hears = observer or Observer()
    gate = gate or Gate()
    gate.check(target, True)
    check_spark_job(source, plan)
    if report is not None:
        check_report_target(report, source, target)
    reports = [] if report is None else [(report, False)]
    hears.stage("reading")
    with warnings.catch_warnings(), on_spark(), session_on(master) as session:
        warnings.simplefilter("ignore", FutureWarning)  # of Spark about versions of pandas
        if words := exposure_words(session):
            hears.exposed(words)
        frame = session.read.parquet(str(source.absolute()))
        (check_names or plan.roles)(frame.columns)  # before anything is compiled
        drafted = completed_on_spark(frame, plan, _fields(source))
        plan = drafted.plan
        if plan.analyses:
            types = Frame(frame.limit(0).toArrow())
            check_analyses(plan.analyses, types, {*plan.drop, *plan.renumber}, whole=False)
        warm_executors(session, plan)
        hears.stage("grouping", f"{len(frame.columns)} columns")
        release = SparkRelease.of(group_in_spark(frame, plan, leaf))
        try:
            # Within, lest a Java that answers no more be taken for a disk that cannot be written to.
            with delivering(gate, target, reports, hears, True) as delivery, on_spark():
                hears.stage("writing")
                part = delivery.table
                release.data.write.mode("append").parquet(str(part.absolute()))
                found = release.verify(session.read.parquet(str(part.absolute())))
                _tidy(part)
                counted = release.counted(str(target), sha256(part), found)
                refuse_broken(counted, target, release.records)
                hears.stage("measuring")
                origin = {"path": str(source), "sha256": sha256(source)}
                measured = release.measured(pictures=report is not None, **measures)
                evidence = Evidence.of(
                    release.plan, replace(measured, counted=counted, source=origin)
                )
                for caution in evidence.cautions:
                    hears.caution(caution)
                evidence = delivery.judge(evidence)
                if report is not None:
                    delivery.write_report(0, report_texts(release_model(evidence)))
        finally:
            with suppress(Exception):  # of a Spark that is gone
                release.unpersist()
    return evidence, drafted.guesses


def _fields(source: Path) -> dict[str, Any]:
    """Metadata of the columns, such as value labels, which Spark does not hand on."""
    return {field.name: field.metadata for field in open_batches(source).schema if field.metadata}


def _tidy(folder: Path) -> None:
    """Remove what Spark leaves beside the table."""
    for path in [*folder.rglob("_SUCCESS"), *folder.rglob("*.crc")]:
        path.unlink()
