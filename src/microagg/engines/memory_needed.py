"""Memory that a job takes, and whether it is there.

The model is fitted to the largest resident memory of whole jobs, by ``python -m benchmarks memory``: what
Python and its libraries take, and bytes for each record, each value and each coordinate of a category.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.free_memory import free_memory
from microagg.encode.categories import MOST_COORDINATES
from microagg.engines.chunks import COPIES, LEAF
from microagg.formats.batches import BatchSource
from microagg.plan.column import CATEGORIES
from microagg.plan.plan import Plan
from microagg.tables.numbers_in_text import NumberTest

_BASE = 330 << 20  # Python, its libraries, and compiled code
_RECORD = 140  # bytes for each record: labels, classes, order
# For each value of a protected column: before, encoded, after, and what measures compute.
_VALUE = 165
_KNOWN = 55  # for each value of another column
_COORDINATE = 60  # for each coordinate of a category beyond the first
_TEXT = 2.5  # copies of the text of a CSV file
_TIMES = 6.0  # what a table takes for each byte of its Arrow table, while it is only counted
_SHARE_OF_FREE = 0.6


def needed(source: BatchSource, plan: Plan, looked: bool = True) -> int:
    """Bytes of memory that a job takes at most if the whole table is read.

    The coordinates of categories are estimated by the levels that the first records have, or, unless these
    are ``looked`` at, are the most that there can be.
    """
    named = {name for block in plan.blocks for name in block.columns or ()} or {*source.names}
    protected = [name for name in source.names if name in named and name not in plan.drop]
    coordinates = (MOST_COORDINATES - 1) * len(protected)
    if looked:
        head, column = source.head, plan.column
        coordinates = sum(_coordinates(source, head[n], column(n).kind) for n in protected)
    others = len(source.names) - len(protected)
    per_record = _RECORD + _VALUE * len(protected) + _KNOWN * others + _COORDINATE * coordinates
    text = _TEXT * source.bytes_in_memory if source.is_text else 0
    return int(_BASE + source.about_rows * per_record + text)


def _coordinates(source: BatchSource, column: pa.ChunkedArray, kind: str | None) -> int:
    """Coordinates of a protected column beyond the first; numbers, orders and dates have one."""
    has_levels = kind in CATEGORIES and kind != "ordinal"
    if kind is None:
        types = pa.types
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        has_levels = is_text or types.is_dictionary(column.type)
        if has_levels and source.is_text:
            test = NumberTest(source.format.csv.decimal, codes_are_text=True)
            test.add(column)
            has_levels = test.way is None
    if not has_levels:
        return 0
    levels = int(pc.count_distinct(column).as_py())
    return min(max(levels - 2, 0), MOST_COORDINATES - 1)


def fits(source: BatchSource, memory: int | None, plan: Plan | None = None) -> bool:
    """Tell whether a job can be done in memory; without a plan: whether a table can be counted there.

    Parameters
    ----------
    source : the table, opened
    memory : bytes that may be taken; None: a share of what is free now
    plan : what will be done with it
    """
    room = free_memory() * _SHARE_OF_FREE if memory is None else float(memory)
    if plan is None:
        return source.bytes_in_memory * _TIMES <= room
    # A small table fits whatever it holds, and is not opened once more to look into it.
    return needed(source, plan, looked=False) <= room or needed(source, plan) <= room


def least_in_parts(records: int, columns: int, memory: int | None) -> str:
    """Say what a job on disk takes at least if less memory is given; empty: enough, or nothing, is given.

    Measured: 200,000 records of 10 columns took 570 MiB where 100 were given, 550 by this model.

    Parameters
    ----------
    records, columns : of the table; only columns that are read
    memory : bytes that are given; None: as much as there is
    """
    chunk = 8 * COPIES * min(records, LEAF) * (columns + 8)
    least = _BASE + chunk
    if memory is None or memory >= least:
        return ""
    return (
        f"--memory gives {memory / 2**20:,.0f} MiB, and this job takes about {least / 2**20:,.0f} MiB at "
        "least: Python with its libraries, and one chunk of records"
    )


def memory_for(memory: int | None) -> int:
    """Return the bytes for tables of counts, out of ``memory`` for the job; None: out of what is free."""
    whole = min(free_memory(), 1 << 31) if memory is None else memory
    return max(whole // 4, 1 << 26)
