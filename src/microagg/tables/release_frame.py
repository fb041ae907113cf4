"""The frame that leaves the house: new values in, identifiers out or renumbered; a random order of rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.tables.as_written import codes_as_written
from microagg.tables.file_metadata import label_alone
from microagg.tables.frame import Frame
from microagg.tables.released_metadata import released_table


def released_frame(
    frame: Frame,
    columns: Mapping[Any, Any],
    *,
    drop: Collection[Any] = (),
    renumber: Collection[Any] = (),
    text: Frame | None = None,
) -> Any:
    """Return a native frame of the caller's type, rows in the order given.

    Of metadata it has what a release needs, see :mod:`microagg.tables.released_metadata`.

    Parameters
    ----------
    frame : the original table, which stays as it is
    columns : native columns that take the place of those of the same name
    drop : columns to leave out
    renumber : columns of identifiers; numbers in their place are drawn by :func:`random_order`
    text : the same table as a CSV file holds it, in which long ids differ that are one double
    """
    native = frame.with_columns(columns)
    for name in renumber:
        codes = codes_as_written(frame if text is None else text, name, text is not None)
        numbers = 1 + random_order(int(codes.max(initial=-1)) + 1)
        missing = codes < 0
        new = np.zeros(len(codes), dtype=np.int64)
        new[~missing] = numbers[codes[~missing]]
        native = _with_whole_numbers(native, frame.names.index(name), new, missing)
    if drop:
        kept = [j for j, name in enumerate(frame.names) if name not in drop]
        native = nw.from_native(native, eager_only=True)[:, kept].to_native()
    if isinstance(native, pa.Table):  # other frames have no metadata any more
        native = released_table(native)
    return native


def random_order(n: int) -> Labels:
    """Draw an order of n rows, all orders with the same chance.

    The random numbers are the operating system's, never those of a seed: who knows the seed could undo
    the order.

    Parameters
    ----------
    n : int

    Returns
    -------
    int64 (n,)
        A permutation of 0, …, n − 1: the row that comes first, the one that comes second, and so on.
    """
    # Two of n numbers of 64 bits are equal with a chance of n²/2⁶⁵.
    return np.argsort(np.frombuffer(os.urandom(8 * n), np.uint64)).astype(np.int64)


def _with_whole_numbers(native: Any, at: int, values: Labels, missing: Any) -> Any:
    array = pa.array(values, mask=missing)
    if isinstance(native, pa.Table):
        label = label_alone(native.schema.field(at))
        return native.set_column(
            at, pa.field(native.column_names[at], pa.int64(), metadata=label), array
        )
    wrapped = nw.from_native(native, eager_only=True)
    if wrapped.implementation.is_pandas():
        series = native.iloc[:, at]
        kind = "Int64" if missing.any() else "int64"
        new = type(series)(values, index=native.index).astype(kind)
        new[missing] = None if missing.any() else new[missing]
        result = native.copy(deep=False)
        result.isetitem(at, new)
        return result
    series = nw.new_series(
        wrapped.columns[at], array.to_pylist(), nw.Int64(), backend=wrapped.implementation
    )
    return wrapped.with_columns(series).to_native()


def reordered(native: Any, order: Labels) -> Any:
    """Return a native frame of some rows, in the order given."""
    wrapped = nw.from_native(native, eager_only=True)
    result = wrapped[order, :].to_native()
    if wrapped.implementation.is_pandas():
        index = native.index
        automatic = type(index).__name__ == "RangeIndex" and index.name is None
        return result.reset_index(drop=True) if automatic else result
    return result
