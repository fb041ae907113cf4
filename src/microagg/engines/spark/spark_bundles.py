"""Many records in one row of Spark.

To hand a row to a Python worker and to take it back, Spark needs far more time than the worker needs for its
record. So records travel in bundles: a row holds some dozens of them, and each of its columns the bytes of
as many whole numbers. Records of a bundle go the same way: to one chunk, or to one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.encoding import PackedRows
from microagg.engines.spark.spark_frames import mapped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORDS = 1 << 10  # of a bundle, about; Spark hands 10,000 rows at a time to a worker


def bundle_schema(names: Iterable[str], way: str = "chunk") -> str:
    """Spark's schema of bundles; ``way`` is the column that says where they go."""
    return ", ".join([f"{way} long", *(f"`{name}` binary" for name in names)])


def word_names(width: int, letter: str = "w") -> list[str]:
    """Names of the columns of packed records."""
    return [f"{letter}{j}" for j in range(width)]


def word_columns(packed: PackedRows, letter: str = "w") -> dict[str, Labels]:
    """Packed records as columns of whole numbers."""
    signed, names = packed.view(np.int64), word_names(packed.shape[1], letter)
    return {name: signed[:, j] for j, name in enumerate(names)}


def in_bundles(
    columns: Mapping[str, Labels], ways: Labels | None = None, way: str = "chunk"
) -> pa.Table:
    """Put records into bundles.

    Parameters
    ----------
    columns : whole numbers of each record
    ways : where each record goes; None: all go to 0
    way : name of the column that says so

    >>> table = in_bundles({"w0": np.array([5, 6, 7])}, np.array([1, 0, 1]))
    >>> table["chunk"].to_pylist(), numbers_of(table["w0"]).tolist()
    ([0, 1], [6, 5, 7])
    """
    n = len(next(iter(columns.values())))
    places = np.zeros(n, dtype=np.int64) if ways is None else ways
    order = None if ways is None else np.argsort(ways, kind="stable")
    places = places if order is None else places[order]
    new = np.flatnonzero(np.append(True, places[1:] != places[:-1])[:n])
    at = np.arange(n) - np.repeat(new, np.diff(np.append(new, n)))
    begins = np.flatnonzero(at % max(1, _WORDS // len(columns)) == 0)
    offsets = pa.py_buffer((8 * np.append(begins, n)).astype(np.int32))
    bundles = {way: pa.array(places[begins], pa.int64())}
    for name, values in columns.items():
        ordered = np.ascontiguousarray(values if order is None else values[order]).view(np.int64)
        buffers = [None, offsets, pa.py_buffer(ordered)]
        bundles[name] = pa.Array.from_buffers(pa.binary(), len(begins), buffers)
    return pa.table(bundles)


def numbers_of(column: pa.ChunkedArray) -> Labels:
    """Read the whole numbers of a column of bundles."""
    pieces = [np.zeros(0, dtype=np.int64)]
    for chunk in column.cast(pa.binary()).chunks:
        _, offsets, data = chunk.buffers()
        if len(chunk) and data is not None:
            bounds = np.frombuffer(offsets, np.int32)[chunk.offset :][[0, len(chunk)]]
            pieces.append(np.frombuffer(data, np.uint8)[slice(*bounds)].view(np.int64))
    return np.concatenate(pieces)


def packed_of(table: pa.Table, letter: str = "w") -> PackedRows:
    """Read what :func:`word_columns` gave from bundles."""
    names = [name for name in table.column_names if name[0] == letter and name[1:].isdigit()]
    names.sort(key=lambda name: int(name[1:]))
    columns = [numbers_of(table.column(name)) for name in names]
    return np.column_stack(columns).view(np.uint64)


def unbundled(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return some columns of bundles, with a row for each record."""

    def apart(rows: pa.Table) -> pa.Table:
        return pa.table({name: numbers_of(rows.column(name)) for name in names})

    schema: Any = ", ".join(f"`{name}` long" for name in names)
    return mapped(frame.select(*names), apart, schema)
