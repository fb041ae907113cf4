"""Compiling ahead on the machines of a Spark cluster.

Kernels are compiled when they are first called, and kept on disk for all processes of a machine. Without
that, each Python worker of a cluster begins with a minute or two of compiling, all of them the same.
"""

from __future__ import annotations

import operator
import os
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from microagg.compile.threads import limit_threads
from microagg.compile.warm import AFTER_GROUPING, Warming, lacking, needed, notes_folder
from microagg.engines.spark.spark_frames import on_spark, reduced
from microagg.engines.spark.spark_session import is_local
from microagg.formats.atomic import lock
from microagg.plan.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warm_executors(session: SparkSession, plan: Plan) -> int:
    """Compile what a plan needs on every machine; return how many kernels were compiled, on all of them.

    Spark spreads the tasks over its executors as it likes, most often over all; a machine that got none
    compiles when its work begins.

    Parameters
    ----------
    session : runs here or on a cluster
    plan : whose kernels are compiled
    """
    context = session.sparkContext
    tasks = context.defaultParallelism
    at_once = int(context.getConf().get("spark.executor.cores", "1"))
    frame = session.range(0, tasks, 1, tasks)
    parts = tuple(needed(plan, None, bound=False, engine="spark"))
    work = partial(_compiled, parts, tasks if is_local(context.master) else at_once)
    with on_spark():
        return reduced(frame, work, operator.add) or 0


def is_warm(session: SparkSession, plan: Plan) -> bool:
    """Tell whether Spark runs here and groups can be made without compiling.

    What is used after that, a command may be compiling meanwhile.
    """
    parts = needed(plan, None, bound=False, engine="spark")
    before = [part for part in parts if part not in AFTER_GROUPING]
    return is_local(session.sparkContext.master) and not lacking(before)


def _compiled(parts: tuple[str, ...], processes: int, _: pa.Table) -> int:
    """Compile what is not there yet on some machine, one task at a time; the number of parts.

    Other tasks wait, so that their processors can be used.
    """
    limit_threads(processes)
    folder = notes_folder()
    if folder is None:
        return 0
    handle = os.open(folder / "warming.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        lock(handle)  # others of this machine wait, and find all done
        with Warming() as warming:
            new = warming.ask(parts)
            warming.wait()
        return len(new)
    finally:
        os.close(handle)
