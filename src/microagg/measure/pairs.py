"""Bring an original and its protected twin side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from microagg.encode.scale import fit_scale
from microagg.errors import InputError, listed, shown
from microagg.groups import Floats, Labels, group_sizes
from microagg.measure.classes import classes
from microagg.tables.frames import Frame, is_frame
from microagg.tables.matrix import as_matrix, columns_matrix
from microagg.tables.roles import choose_columns

__all__ = ["Pair", "align", "pair", "positions"]

# Beyond this many standard deviations all is equally far, and squares do not overflow.
_FAR = 1e100


@dataclass(frozen=True)
class Pair:
    """The same columns of both tables, as matrices of the same shape.

    What several measures need is computed once, when first asked for.
    """

    names: list[Any]
    original: Floats
    protected: Floats
    before: Frame | None = field(default=None, repr=False)  # the tables with all their columns
    after: Frame | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.original)

    def __reduce__(self) -> Any:
        raise TypeError(
            "Measures hold the original values and are not pickled, lest they travel. Pickle what "
            "their as_dict() returns."
        )

    @cached_property
    def scaled(self) -> tuple[Floats, Floats]:
        """Both in units of the original: mean 0 and standard deviation 1, constant columns 0."""
        scaling = fit_scale(self.original)
        with np.errstate(over="ignore"):
            after = np.clip(scaling.apply(self.protected), -_FAR, _FAR)
        return scaling.apply(self.original), after

    @cached_property
    def varies(self) -> Any:
        """Which columns of the original are not constant; only these have a scale."""
        return self.original.min(axis=0) < self.original.max(axis=0)

    @cached_property
    def classes(self) -> Labels:
        """Class of equal protected rows of each record."""
        return classes(self.protected)

    @cached_property
    def distinct(self) -> tuple[Floats, Labels]:
        """The scaled protected rows without repetitions, in order of classes, and their records."""
        first = np.unique(self.classes, return_index=True)[1]
        return self.scaled[1][first], group_sizes(self.classes)

    @cached_property
    def orders(self) -> tuple[Labels, Labels]:
        """What sorts each column of the original and of the distinct protected rows; (d, n), (d, g)."""
        before, after = self.scaled[0], self.distinct[0]
        return np.argsort(before.T, axis=1), np.argsort(after.T, axis=1)

    @cached_property
    def sorted(self) -> tuple[Floats, Floats]:
        """The scaled columns, each by itself in ascending order; shape (d, n)."""
        rows, sizes = self.distinct
        first, second = self.orders
        before = np.take_along_axis(np.ascontiguousarray(self.scaled[0].T), first, axis=1)
        after = np.empty_like(before)
        for j, order in enumerate(second):
            after[j] = np.repeat(rows[order, j], sizes[order])
        return before, after

    def by_name(self, values: Any) -> dict[Any, float]:
        """One number a column, under the column's name."""
        return dict(zip(self.names, map(float, values), strict=True))

    def frames(self, purpose: str) -> tuple[Frame, Frame]:
        """Both tables with all their columns."""
        if self.before is None or self.after is None:
            raise InputError(
                f"{purpose} names columns, which arrays do not have. Pass two data frames."
            )
        return self.before, self.after


def positions(values: Floats, order: Labels, among: Floats) -> tuple[Labels, Labels]:
    """How many of the sorted values ``among`` are below each of ``values``, and how many up to it.

    ``order`` sorts ``values``: looked up one after the other, they find their place in the cache.
    """
    queries = values[order]
    below = np.empty(len(values), dtype=np.int64)
    upto = np.empty_like(below)
    below[order] = np.searchsorted(among, queries)
    upto[order] = np.searchsorted(among, queries, "right")
    return below, upto


def pair(
    original: Any,
    protected: Any,
    columns: Iterable[Any] | None = None,
    leave_out: Iterable[Any] = (),
) -> Pair:
    """Match two tables by column name and row position.

    Without ``columns``, all numeric ones that both have are taken, but those to ``leave_out``.
    """
    if is_frame(original) != is_frame(protected):
        raise InputError("Compare two frames or two arrays; one of each was given.")
    if is_frame(original):
        before, after = Frame(original), Frame(protected)
        names = _shared_columns(before, after, columns, list(leave_out))
        _check_rows(len(before), len(after))
        result = Pair(
            names, columns_matrix(before, names), columns_matrix(after, names), before, after
        )
    else:
        if columns is not None:
            raise InputError("Columns have names in frames only; pick columns of arrays before.")
        first, second = as_matrix(original), as_matrix(protected)
        result = Pair(list(range(first.shape[1])), first, second)
    if result.original.shape != result.protected.shape:
        raise InputError(
            "Both tables must have the same records in the same order; their shapes are "
            f"{result.original.shape} and {result.protected.shape}."
        )
    return result


def align(original: Any, protected: Any, name: str) -> Any:
    """Bring the rows of one Arrow table into the order of another's, by a column of ids in both."""
    ids = []
    for table, which in ((original, "original"), (protected, "protected")):
        if name not in table.column_names:
            raise InputError(
                f"There is no column {shown(name)} in the {which} file; it has "
                f"{listed(table.column_names, limit=40)}."
            )
        values = table[name].to_pylist()
        if None in values or len(set(values)) < len(values):
            raise InputError(
                f"Ids must be there and differ; in column {shown(name)} of the {which} file some are "
                "missing or occur twice. Name another column, or match records by position."
            )
        ids.append(values)
    place = {value: i for i, value in enumerate(ids[1])}
    alone = [value for value in ids[0] if value not in place]
    extra = len(place) - (len(ids[0]) - len(alone))
    if alone or extra:
        raise InputError(
            f"Both files must have the same records; {len(alone)} ids in column {shown(name)} are only in "
            f"the original and {extra} only in the protected file. Drop those records first."
        )
    return protected.take([place[value] for value in ids[0]])


def _shared_columns(
    before: Frame, after: Frame, columns: Iterable[Any] | None, leave_out: list[Any]
) -> list[Any]:
    if columns is not None:
        names = choose_columns(before, columns)
        choose_columns(after, names)
        both = [name for name in leave_out if name in names]
        if both:
            raise InputError(
                f"Column {shown(both[0])} is named as one to compare and as an id or a confidential "
                "one; it can be only one of them."
            )
        return names
    names = [
        name
        for name in choose_columns(before, None)
        if after.has(name) and after.is_numeric(name) and name not in leave_out
    ]
    if not names:
        raise InputError(
            f"The tables share no numeric column: {listed(before.names)} against {listed(after.names)}."
        )
    return names


def _check_rows(before: int, after: int) -> None:
    if before != after:
        raise InputError(
            f"Both tables must have the same records in the same order; they have {before} and "
            f"{after}. Drop the records that only one of them has."
        )
