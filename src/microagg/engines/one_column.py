"""One column of any size, cut optimally: the groups are those that one process would find in memory.

Problem   The best groups of one column are runs of its sorted values, and where they are cut is a
          computation from left to right over all of them (algorithms/univariate).
Idea      Records are dealt out to stretches of the order, by values of a sample, and each stretch is sorted
          by itself. It is then cut as if the values began a little before it. Where the partitions at its
          beginning meet those that the stretch before it found, back to a column through which all of
          them go, what lies before no longer matters (algorithms/univariate/chain.py has the argument),
          and the cuts are those of the whole column. Where they do not meet, the stretch before goes on into
          this one.
Cost      O(n log n) time in all, the memory of a stretch; where partitions never meet, as with values that
          are evenly spaced, the memory of the whole column.
Same      Equal values are taken in the order of the keys of their rows, whichever engine deals them out.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from microagg.algorithms.univariate.chain import overlap_for
from microagg.algorithms.univariate.sorted_cut import cut_stretches
from microagg.base.typing import Floats, Labels
from microagg.engines.encoding import Encoding, PackedRows, Records
from microagg.engines.scratch import Shelf
from microagg.measure.row_keys import Keys

STRETCH = 1 << 21  # records, about


class Splits(NamedTuple):
    """Where the order of a column is split, for each cell: values, and keys among equal ones."""

    values: tuple[Floats, ...]
    keys: tuple[Keys, ...]

    @property
    def first(self) -> list[int]:
        """First place of each cell, and their number."""
        return [0, *np.cumsum([len(borders) + 1 for borders in self.values]).tolist()]

    def places_of(self, encoding: Encoding, packed: PackedRows) -> Labels:
        """Stretch of each record."""
        records = encoding.records_of(packed)
        values, keys = np.ascontiguousarray(records.values[:, 0]), records.keys
        cells = encoding.cell_of(records)
        places = np.empty(len(values), dtype=np.int64)
        for cell, start in enumerate(self.first[:-1]):
            rows = np.flatnonzero(cells == cell)
            column, borders = values[rows], self.values[cell]
            place = start + np.searchsorted(borders, column)
            for border, key in zip(borders, self.keys[cell], strict=True):
                place += (column == border) & (keys[rows, 0] >= key)
            places[rows] = place
        return places


def split_column(encoding: Encoding, sample: PackedRows, stretch: int) -> Splits:
    """Plan the stretches of each cell from a sample of the records."""
    records = encoding.records_of(sample)
    cells = encoding.cell_of(records)
    stretch = max(stretch, 8 * overlap_for(encoding.k))
    values, borders = [], []
    for cell, size in enumerate(encoding.cell_sizes.tolist()):
        rows = np.flatnonzero(cells == cell)
        column, keys = records.values[rows, 0], records.keys[rows, 0]
        order = np.lexsort((keys, column))
        parts = max(1, min(-(-size // stretch), len(rows)))
        at = order[np.arange(1, parts) * len(rows) // parts]
        values.append(column[at])
        borders.append(keys[at])
    return Splits(tuple(values), tuple(borders))


def in_value_order(records: Records, packed: PackedRows) -> PackedRows:
    """Return packed records in the order of their values, equal ones by key."""
    values = np.ascontiguousarray(records.values[:, 0])
    order = np.argsort(values, kind="stable")
    values = values[order]
    tied = np.append(False, values[1:] == values[:-1])
    tied[:-1] |= tied[1:]
    rows = np.flatnonzero(tied)
    if len(rows):  # among equal values, which most columns have few of
        ordered, keys = order[rows], records.keys[order[rows]]
        order[rows] = ordered[np.lexsort((keys[:, 1], keys[:, 0], values[rows]))]
    return packed[order]


def ends_by_stretch(
    encoding: Encoding, splits: Splits, in_order: Shelf, most: int, folder: Path
) -> dict[int, Labels]:
    """Find the ends of the groups that end in each stretch, counted from its first record.

    ``in_order`` has the records of each stretch in their order; at most some number of stretches is cut at
    a time, and what does not meet goes to the folder.
    """
    counts = in_order.counts(splits.first[-1])
    ends = {place: np.zeros(0, dtype=np.int64) for place in range(len(counts))}
    for low, high in pairwise(splits.first):
        sizes = counts[low:high]
        begins = np.cumsum(sizes) - sizes

        def values_of(at: int, low: int = low, begins: Labels = begins) -> Floats:
            """Return the values by which the records of a stretch are cut."""
            records = encoding.records_of(in_order.take([low + at]))
            cell = encoding.cell_of(records)[:1]
            # Where records release no value, any of them may go together: their numbers are cut.
            if len(cell) and encoding.patterns[encoding.cell_numbers == cell, 0].all():
                return np.asarray(begins[at] + np.arange(len(records), dtype=np.float64))
            return np.ascontiguousarray(records.values[:, 0])

        if sizes.any():
            cut = cut_stretches(sizes.tolist(), values_of, encoding.k, most=most, folder=folder)
            ends |= {low + at: ends_there - begins[at] for at, ends_there in enumerate(cut)}
    return ends
