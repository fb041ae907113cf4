"""Equivalence classes: records that agree in all of some columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.groups import Floats, Labels, canonical_labels

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["classes", "combine", "count_combinations"]

_LARGEST = 2**62


def count_combinations(table: pa.Table, columns: Sequence[Any]) -> Labels:
    """Count the records of each combination of values that occurs, ascending."""
    picked = _plain(table, columns)
    counted = picked.group_by(picked.column_names).aggregate([([], "count_all")])
    return np.sort(counted["count_all"].to_numpy().astype(np.int64))


def classes(X: Floats) -> Labels:
    """Label the records so that two have the same label exactly if their rows are equal.

    >>> classes(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    import pyarrow as pa

    table = _plain(pa.table({str(j): column for j, column in enumerate(X.T)}))
    keys = table.column_names
    table = table.append_column("row", pa.array(np.arange(len(X))))
    rows = table.group_by(keys).aggregate([("row", "list")])["row_list"].combine_chunks()
    sizes = np.diff(rows.offsets.to_numpy())
    labels = np.empty(len(X), dtype=np.int64)
    labels[rows.flatten().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    return canonical_labels(labels)


def combine(columns: Sequence[Labels]) -> Labels:
    """Label the records so that two have the same label exactly if they agree in all columns.

    Columns hold whole numbers from −1 up. Labels are numbered 0, 1, … by first appearance in row order.

    >>> combine([np.array([0, 1, 0, 1]), np.array([-1, 5, -1, 7])]).tolist()
    [0, 1, 0, 2]
    """
    labels = np.zeros(len(columns[0]), dtype=np.int64)
    combinations = 1  # that the labels can tell apart
    for column in columns:
        levels = int(column.max()) + 2
        if combinations > _LARGEST // levels:
            labels = _dense(labels)
            combinations = int(labels.max()) + 1
        labels = labels * levels + (column + 1)
        combinations *= levels
    return _dense(labels)


def _dense(labels: Labels) -> Labels:
    """Number the distinct values by first appearance."""
    import pyarrow as pa

    return pa.array(labels).dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _plain(table: pa.Table, columns: Sequence[Any] | None = None) -> pa.Table:
    """Pick columns, name them by number, and make −0 and 0 one value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    picked = table if columns is None else table.select([str(name) for name in columns])
    return pa.table(
        {
            str(j): pc.add(column.cast(pa.float64()), 0.0)
            if pa.types.is_floating(column.type)
            else column
            for j, column in enumerate(picked.columns)
        }
    )
