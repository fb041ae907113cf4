"""Compiling ahead on the machines of a Spark cluster.

Kernels are compiled when they are first called, and kept on disk for all processes of a machine. Without
that, each Python worker of a cluster begins with a minute or two of compiling, all of them the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from microagg.plan import Plan
from microagg.scale_out.spark import on_spark
from microagg.scale_out.worker_tables import streaming
from microagg.tables.atomic import lock
from microagg.warm import Warming, kept_in, lacking
from microagg.warm_parts import needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["warm_executors"]


def warm_executors(session: SparkSession, plan: Plan) -> int:
    """Compile what a plan needs on every machine; return how many kernels were compiled, on all of them.

    Spark spreads the tasks over its executors as it likes, most often over all; a machine that got none
    compiles when its work begins.
    """
    tasks = session.sparkContext.defaultParallelism
    frame = session.range(0, tasks, 1, tasks)
    parts = tuple(needed(plan, None, bound=False))
    with on_spark():
        rows = frame.mapInArrow(_Warm(parts), "compiled long").collect()
    return sum(row.compiled for row in rows)


@dataclass(frozen=True)
class _Warm:
    """A task on some machine → how many parts it compiled there."""

    parts: tuple[str, ...]

    @streaming
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Compile, one task at a time, what is not there yet."""
        for _ in batches:
            pass
        folder, compiled = kept_in(), 0
        if folder is not None:
            handle = os.open(folder / "warming.lock", os.O_RDWR | os.O_CREAT, 0o666)
            try:
                lock(handle)  # others of this machine wait, and find all done
                left = lacking(self.parts)
                if left:
                    with Warming(left) as warming:
                        warming.wait()
                compiled = len(left)
            finally:
                os.close(handle)
        yield pa.table({"compiled": [compiled]})
