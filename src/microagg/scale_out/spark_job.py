"""From Parquet to Parquet on Spark: written beside the target, read back, counted, and then named."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from microagg.errors import TableError, VerificationError, shown
from microagg.job import Observer
from microagg.plan import Plan
from microagg.report.html import check_report_target
from microagg.scale_out.blocks import LEAF
from microagg.scale_out.spark import group_in_spark, on_spark
from microagg.scale_out.spark_release import SparkEvidence, SparkRelease
from microagg.scale_out.spark_warm import warm_executors
from microagg.tables.atomic import check_target, replacing_all, sha256
from microagg.tables.folders import parquet_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["protect_files", "session_on"]


def session_on(master: str | None = None) -> SparkSession:
    """Return the session there is, or start one on a master, whose workers use this very Python."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName("microagg").config(
        "spark.ui.showConsoleProgress", "false"
    )
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")  # what goes wrong is said in our own words
    return session


def protect_files(
    source: Path,
    target: Path,
    plan: Plan,
    master: str | None = None,
    observer: Observer | None = None,
    leaf: int = LEAF,
    report: Path | None = None,
) -> SparkEvidence:
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

    Raises
    ------
    VerificationError
        If the promise does not hold in what was written; there is no target then.
    """
    hears = observer or Observer()
    plan.check_complete()
    check_target(target.absolute(), folder=True)
    _check_source(source)
    reports = []
    if report is not None:
        check_report_target(report, source, target)
        reports = [report, report.with_suffix(".json")]
    session = session_on(master)
    hears.stage("reading")
    frame = session.read.parquet(str(source.absolute()))
    warm_executors(session, plan)
    hears.stage("grouping", f"{len(frame.columns)} columns")
    release = SparkRelease.of(group_in_spark(frame, plan, leaf))
    try:
        for caution in release.cautions:
            hears.caution(caution)
        with replacing_all([*reports, target], folder=True) as parts, on_spark():
            hears.stage("writing")
            part = parts[-1]
            release.data.write.mode("append").parquet(str(part.absolute()))
            counted = release.verify(session.read.parquet(str(part.absolute())))
            if counted[0].records != release.records:
                raise VerificationError(
                    f"What was written has {counted[0].records:,} of {release.records:,} records. Nothing "
                    "was released; please report this."
                )
            if not all(one.holds for one in counted):
                raise VerificationError(
                    f"k = {counted[0].k:,} does not hold in what was written: the rarest combination is "
                    f"shared by {counted[0].smallest:,}. Nothing was released; please report this."
                )
            _tidy(part)
            hears.stage("measuring")
            evidence = release.evidence_of(counted)
            if report is not None:
                hears.stage("reporting")
                origin = {"path": str(source), "sha256": sha256(source)}
                texts = release.report_texts(evidence, (str(target), sha256(part)), origin)
                for page, text in zip(parts, texts, strict=False):
                    page.write_text(text, encoding="utf-8", errors="backslashreplace")
        hears.written([target, *reports])
    finally:
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
