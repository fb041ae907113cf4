"""What the workers of a distributed engine do for one column that is cut optimally, stretch by stretch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.groups import Labels
from microagg.methods.univariate.chain import Starts, trace
from microagg.methods.univariate.stretches import Crossing, crossing
from microagg.scale_out.one_column import Splits, sorted_words, split_column
from microagg.scale_out.recipe import Recipe, Words
from microagg.scale_out.worker_tables import (
    Batches,
    all_words,
    gathered,
    guarded,
    pack,
    streaming,
    word_columns,
    words_of,
)
from microagg.scale_out.workers import Finish

__all__ = ["Cut", "Ends", "FinishColumn", "InOrder", "Place", "PlanSplits"]


@dataclass(frozen=True, eq=False)
class PlanSplits:
    """The whole sample → where the order of one column is split."""

    recipe: Recipe
    stretch: int

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        words = all_words(batches, self.recipe.width)
        yield pa.table({"packed": [pack(split_column(self.recipe, words, self.stretch))]})


@dataclass(frozen=True, eq=False)
class Place:
    """Records → the same with their stretch of the order."""

    recipe: Recipe
    splits: Splits
    joined: Labels
    """The stretch that each place belongs to."""

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            records = self.recipe.records_of(words_of(rows))
            values = np.ascontiguousarray(records.values[:, 0])
            found = self.splits.assign(values, self.recipe.apart(records), records.keys)
            yield rows.append_column("block", pa.array(self.joined[found]))


@dataclass(frozen=True, eq=False)
class InOrder:
    """All records of a stretch → the same in their order, with the column of each, and those lent to others.

    A stretch is cut as if the values began a little before it: the last records before it are lent to it.
    """

    recipe: Recipe
    begins: dict[int, int]
    """Column at which each stretch begins, counted over its cell."""
    borrowers: dict[int, tuple[tuple[int, int], ...]]
    """For each stretch: those that borrow from it, and from which column on."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        number, words = key[0].as_py(), words_of(rows)
        words = sorted_words(self.recipe.records_of(words), words)
        columns = self.begins[number] + np.arange(len(words))
        parts = [(words, columns, np.full(len(words), number))]
        for other, begin in self.borrowers.get(number, ()):
            lent = columns >= begin
            parts.append((words[lent], columns[lent], np.full(int(lent.sum()), other)))
        whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return pa.table({**word_columns(whole[0]), "group": whole[1], "block": whole[2]})


@dataclass(frozen=True, eq=False)
class Cut:
    """All records of a stretch, and those lent to it → what it tells of its cuts: columns, no values."""

    recipe: Recipe
    begins: dict[int, int]

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        return pa.table({"packed": [pack(self._cut(key, rows)[0])]})

    def _cut(self, key: Sequence[Any], rows: pa.Table) -> tuple[Crossing, Any, Words, Labels]:
        number, columns = key[0].as_py(), rows.column("group").to_numpy()
        order = np.argsort(columns, kind="stable")
        words, columns = words_of(rows)[order], columns[order]
        records, first = self.recipe.records_of(words), self.begins[number]
        apart = self.recipe.apart(records)
        values = np.ascontiguousarray(records.values[:, 0])
        if self.recipe.releases_no_value(0 if apart is None else int(apart[0])):
            values = columns.astype(np.float64)  # any records may go together
        found, back = crossing(number, values, int(columns[0]), first, self.recipe.k)
        return found, back, words, columns


@dataclass(frozen=True, eq=False)
class Ends(Cut):
    """The same → records of the stretch with the column at which their group ends, and where that lies."""

    entries: dict[int, int]
    """Column at which the groups after each stretch begin."""
    following: dict[int, tuple[int, int]]
    """For each stretch: end of the first group that ends after it, and the stretch in which it does."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        number = key[0].as_py()
        found, back, words, columns = self._cut(key, rows)
        starts = Starts(found.start, found.first, back)
        ends, _ = trace(starts, self.entries[number])
        own = columns >= found.first
        words, columns = words[own], columns[own]
        at = np.searchsorted(ends, columns, side="right")
        later, place = self.following.get(number, (0, number))
        groups = np.append(ends, later)[at]
        blocks = np.where(at < len(ends), number, place)
        return pa.table({**word_columns(words), "group": groups, "block": blocks})


@dataclass(frozen=True, eq=False)
class FinishColumn(Finish):
    """The same for one column, whose groups are known."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        words, groups = words_of(rows), rows.column("group").to_numpy()
        records = self.recipe.records_of(words)
        keys = records.keys
        order = np.lexsort((keys[:, 1], keys[:, 0], records.values[:, 0], groups))
        return self._finished(key, words[order], groups[order])
