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

from microagg.engines.spark.spark_frames import on_spark, reduced
from microagg.formats.atomic import lock
from microagg.plan.plan import Plan
from microagg.warming.needed import needed
from microagg.warming.warm import Warming, notes_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def warm_executors(session: SparkSession, plan: Plan) -> int:
    """Compile what a plan needs on every machine; return how many kernels were compiled, on all of them.

    Spark spreads the tasks over its executors as it likes, most often over all; a machine that got none
    compiles when its work begins.
    """
    tasks = session.sparkContext.defaultParallelism
    frame = session.range(0, tasks, 1, tasks)
    parts = tuple(needed(plan, None, bound=False, engine="spark"))
    with on_spark():
        return reduced(frame, partial(_compiled, parts), operator.add) or 0


def _compiled(parts: tuple[str, ...], _: pa.Table) -> int:
    """Compile what is not there yet on some machine, one task at a time; the number of parts."""
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
