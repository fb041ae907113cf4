"""Spark DataFrames in, protected ones out: ``microagg.spark.protect`` and ``verify``.

Apache Spark and Java are needed: ``pip install "microagg[spark]"``. See the page on Spark for what moves
through a cluster and how large its workers should be.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from microagg.engines.spark.spark_session import check_spark, exposure_words
from microagg.errors import DisclosureRiskWarning
from microagg.evidence.cautions import warn_of
from microagg.plan.plan import UNSET, Plan, Promise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from microagg.engines.spark.spark_release import SparkRelease
    from microagg.measure.verify import Verification

__all__ = ["protect", "verify", "warm_up"]


def protect(
    df: DataFrame,
    k: int = UNSET,
    *,
    plan: Plan | None = None,
    block_records: int | None = None,
    **settings: Any,
) -> SparkRelease:
    """Protect a Spark DataFrame: replace values by those of groups of at least k similar records.

    Records never come to the driver. Groups are made when this is called; the released rows are worked out
    whenever ``data`` is asked for, and are the same each time.

    Parameters
    ----------
    df : Spark DataFrame
        The same rows whenever it is read; write it to a file first if something in it is random.
    k : int
        Least number of records (or units) that share their protected values.
    plan : Plan, optional
        The settings written down; those given override it.
    block_records : int, optional
        Records that one task works on, about. Fewer keep more processors busy and need less memory each, at a
        little more loss.
    **settings
        As for :func:`microagg.protect`. What they leave open is filled in by the first records.

    Returns
    -------
    SparkRelease
        ``data``, a DataFrame with the columns in their order; ``information_loss``, ``n_groups``,
        ``verify()``, ``evidence`` and ``cautions``.

    Warns
    -----
    DisclosureRiskWarning
        For every caution that a disclosure board should weigh, and for a session without authentication or
        encryption.
    """
    check_spark()
    from microagg.engines.capabilities import check_plan_in_parts
    from microagg.engines.parts import completed
    from microagg.engines.spark.on_spark import SparkParts, group_in_spark
    from microagg.engines.spark.spark_frames import on_spark, positional
    from microagg.engines.spark.spark_release import SparkRelease

    whole = (Plan() if plan is None else plan).override(k=k, **settings)
    check_plan_in_parts(whole, on_spark=True)
    leaf = None if block_records is None else max(int(block_records), 2 * (whole.k or 1))
    if words := exposure_words(df.sparkSession):
        warnings.warn(words, DisclosureRiskWarning, stacklevel=2)
    with on_spark():
        plan = completed(SparkParts(*positional(df)), whole).plan
    release = SparkRelease.of(group_in_spark(df, plan, leaf))
    warn_of(release.cautions)
    return release


def verify(
    df: DataFrame, k: int, columns: Iterable[str] | None = None, unit: str | None = None
) -> Verification:
    """Count in a Spark DataFrame how many units share each combination of values.

    Parameters
    ----------
    df : Spark DataFrame
    k : least number of units that must share a combination
    columns : names; by default all columns of numbers
    unit : column whose distinct values are the units; by default every record is one. All records in
        which it is missing count as one unit.
    """
    check_spark()
    from microagg.engines.spark.spark_counts import CountsOnSpark
    from microagg.engines.spark.spark_frames import on_spark
    from microagg.measure.verify import count_promises

    with on_spark():
        return count_promises(CountsOnSpark(df), [Promise(k, columns, unit)])[0][0]


def warm_up(
    session: SparkSession, k: int = UNSET, *, plan: Plan | None = None, **settings: Any
) -> int:
    """Compile on the machines of a cluster what :func:`protect` will need with the same settings.

    The first call on a new machine otherwise begins with compiling, a minute or two in every Python worker.
    Where workers cannot write to the folder of the package, set ``NUMBA_CACHE_DIR`` for them:
    ``spark.executorEnv.NUMBA_CACHE_DIR``.

    Returns
    -------
    int
        How many parts were compiled; 0: all was there.
    """
    check_spark()
    from microagg.engines.spark.on_spark import warm_executors

    return warm_executors(session, (Plan() if plan is None else plan).override(k=k, **settings))
