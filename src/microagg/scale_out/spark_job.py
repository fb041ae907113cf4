"""From Parquet to Parquet on Spark: written beside the target, read back, counted, and then named."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from microagg.errors import TableError, VerificationError, shown
from microagg.evidence import Evidence
from microagg.observer import Observer
from microagg.plan import Plan
from microagg.report.html import check_report_target
from microagg.scale_out.blocks import LEAF
from microagg.scale_out.disk_job import refuse_broken
from microagg.scale_out.spark import check_named, group_in_spark, on_spark
from microagg.scale_out.spark_release import SparkRelease
from microagg.scale_out.spark_session import exposure_words, session_on
from microagg.scale_out.spark_warm import warm_executors
from microagg.scale_out.summaries import check_supported
from microagg.spark import check_spark
from microagg.tables.atomic import Parts, check_target, replacing_all, sha256
from microagg.tables.folders import parquet_files

__all__ = ["check_spark_job", "protect_files"]


def check_spark_job(source: Path, target: Path, plan: Plan) -> None:
    """Refuse what cannot work on Spark before it is started."""
    check_spark()
    plan.check_complete()
    check_named(plan)
    check_supported(plan)
    check_target(target.absolute(), folder=True)
    _check_source(source)


def protect_files(
    source: Path,
    target: Path,
    plan: Plan,
    master: str | None = None,
    observer: Observer | None = None,
    leaf: int = LEAF,
    report: Path | None = None,
    check_names: Callable[[Sequence[str]], object] | None = None,
    **measures: Any,
) -> Evidence:
    """Protect a Parquet file, or a folder of these, on Spark.

    Parameters
    ----------
    source : file or folder that all workers can read
    target : folder, new or empty, on a disk that all workers can write to. It takes its name when what was
        written has been read back and keeps the promise.
    plan : with the columns to protect named
    master : of the cluster, such as ``local[2]``; None: the session there is, or what is configured
    observer : hears of stages and cautions
    leaf : records in a block, about
    report : where to write the board's report, on the machine of the driver
    check_names : refuses columns that the table does not have
    **measures
        As for :meth:`microagg.release.Release.measure`: ``analyses``, ``dominance``.

    Raises
    ------
    VerificationError
        If the promise does not hold in what was written; there is no target then.
    """
    hears = observer or Observer()
    check_spark_job(source, target, plan)
    reports = []
    if report is not None:
        check_report_target(report, source, target)
        reports = [report, report.with_suffix(".json")]
    hears.stage("reading")
    with warnings.catch_warnings(), on_spark(), session_on(master) as session:
        warnings.simplefilter("ignore", FutureWarning)  # of Spark about versions of pandas
        if words := exposure_words(session):
            hears.exposed(words)
        frame = session.read.parquet(str(source.absolute()))
        (check_names or plan.roles)(frame.columns)  # before anything is compiled
        warm_executors(session, plan)
        hears.stage("grouping", f"{len(frame.columns)} columns")
        release = SparkRelease.of(group_in_spark(frame, plan, leaf))
        parts = Parts()
        try:
            # Within, lest a Java that answers no more be taken for a disk that cannot be written to.
            with replacing_all([*reports, target], folder=True) as parts, on_spark():
                hears.stage("writing")
                part = parts[-1]
                release.data.write.mode("append").parquet(str(part.absolute()))
                found = release.verify(session.read.parquet(str(part.absolute())))
                if found[0].records != release.records:
                    raise VerificationError(
                        f"What was written has {found[0].records:,} of {release.records:,} records. "
                        "Nothing was released; please report this."
                    )
                _tidy(part)
                counted = release.counted(str(target), sha256(part), found)
                refuse_broken(counted, target)
                hears.stage("measuring")
                origin = {"path": str(source), "sha256": sha256(source)}
                evidence, texts = release.gathered(
                    counted, origin, report=report is not None, **measures
                )
                for caution in evidence.cautions:
                    hears.caution(caution)
                for page, text in zip(parts, texts or (), strict=False):
                    page.write_text(text, encoding="utf-8", errors="backslashreplace")
        finally:
            if parts.named:  # also if an interrupt comes right after
                hears.written([target, *reports])
            with suppress(Exception):  # of a Spark that is gone
                release.unpersist()
    return evidence


def _check_source(path: Path) -> None:
    if path.is_dir():
        parquet_files(path)  # which says so if there are none
    elif not path.is_file() or path.suffix.lower() not in (".parquet", ".pq"):
        raise TableError(
            f"On Spark tables are Parquet files, or folders of these; {shown(str(path), 300)} is none. "
            "Convert it, or protect it in memory or from disk."
        )


def _tidy(folder: Path) -> None:
    """Remove what Spark leaves beside the table."""
    for path in [*folder.rglob("_SUCCESS"), *folder.rglob("*.crc")]:
        path.unlink()
