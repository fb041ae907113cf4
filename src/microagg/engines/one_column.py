"""One column of any size, cut optimally: the groups are those that one process would find in memory.

Problem   The best groups of one column are runs of its sorted values, and where they are cut is a
          computation from left to right over all of them (methods/univariate).
Idea      Records are dealt out to stretches of the order, by values of a sample, and each stretch is sorted
          by itself. It is then cut as if the values began a little before it. Where the partitions at its
          beginning meet those that the stretch before it found, back to a column through which all of
          them go, what lies before no longer matters (algorithms/univariate/chain.py has the argument),
          and the cuts are those of the whole column. Where they do not meet, the one before it goes
          on (algorithms/univariate/stretches.py).
Cost      O(n log n) time in all, the memory of a stretch; where partitions never meet, as with values that
          are evenly spaced, the memory of the whole column.
Same      Equal values are taken in the order of the keys of their rows, whichever engine deals them out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microagg.algorithms.univariate.chain import overlap_for
from microagg.base.typing import Floats, Labels
from microagg.engines.chunks import ChunkPlan, plan_chunks
from microagg.engines.encoding import Encoding, Records, Words
from microagg.plan.registry import find
from microagg.tables.variable import QUANTITIES

__all__ = [
    "STRETCH",
    "Splits",
    "is_one_column",
    "places_of",
    "plan_places",
    "sorted_words",
    "split_column",
]

STRETCH = 1 << 21  # records, about


def is_one_column(encoding: Encoding) -> bool:
    """Whether a plan asks for the optimal cut of one column of numbers."""
    block = encoding.block
    if len(encoding.coders) != 1 or encoding.unit is not None or block.require or encoding.weighs:
        return False
    if (
        encoding.state_encoders
    ):  # groups mix records with and without a value: that is another coordinate
        return False
    coder = encoding.coders[0]
    plain = coder.kind in QUANTITIES[:2] and coder.setting.transform is None
    options = {name: value for name, value in block.options.items() if name != "effort"}
    return bool(
        plain and not options and find(block.method).guarantee_for(1, weighted=False) == "exact"
    )


class Splits(NamedTuple):
    """Where the order of a column is split, for each cell: values, and keys among equal ones."""

    values: tuple[Floats, ...]
    keys: tuple[Words, ...]

    @property
    def first(self) -> list[int]:
        """First place of each cell, and their number."""
        return [0, *np.cumsum([len(own) + 1 for own in self.values]).tolist()]

    def assign(self, values: Floats, cells: Labels | None, keys: Words) -> Labels:
        """Place of each record."""
        which = np.zeros(len(values), dtype=np.int64) if cells is None else cells
        found = np.empty(len(values), dtype=np.int64)
        for cell, start in enumerate(self.first[:-1]):
            rows = np.flatnonzero(which == cell)
            own, borders, of_borders = values[rows], self.values[cell], self.keys[cell]
            place = np.searchsorted(borders, own)
            while True:  # equal to a border: by the key, past as many borders as that takes
                at = np.minimum(place, max(len(borders) - 1, 0))
                beyond = np.zeros(len(own), dtype=bool)
                if len(borders):
                    beyond = (place < len(borders)) & (own == borders[at])
                    beyond &= keys[rows, 0] >= of_borders[at]
                if not beyond.any():
                    break
                place = place + beyond
            found[rows] = start + place
        return found


def split_column(encoding: Encoding, sample: Words, stretch: int) -> Splits:
    """Plan the stretches of each cell from a sample of the records."""
    records = encoding.records_of(sample)
    apart = encoding.apart(records)
    cells = np.zeros(len(records), np.int64) if apart is None else apart
    stretch = max(stretch, 8 * overlap_for(encoding.k))
    values, borders = [], []
    for cell, size in enumerate(encoding.cell_sizes.tolist()):
        rows = np.flatnonzero(cells == cell)
        own, keys = records.values[rows, 0], records.keys[rows, 0]
        order = np.lexsort((keys, own))
        parts = max(1, min(-(-size // stretch), len(rows)))
        at = order[np.arange(1, parts) * len(rows) // parts]
        values.append(own[at])
        borders.append(keys[at])
    return Splits(tuple(values), tuple(borders))


def sorted_words(records: Records, words: Words) -> Words:
    """Words of records in the order of their values, equal ones by key."""
    values = np.ascontiguousarray(records.values[:, 0])
    order = np.argsort(values, kind="stable")
    values = values[order]
    tied = np.append(False, values[1:] == values[:-1])
    tied[:-1] |= tied[1:]
    rows = np.flatnonzero(tied)
    if len(rows):  # among equal values, which most columns have few of
        own, keys = order[rows], records.keys[order[rows]]
        order[rows] = own[np.lexsort((keys[:, 1], keys[:, 0], values[rows]))]
    return words[order]


def plan_places(
    encoding: Encoding, sample: Words, leaf: int, stretch: int = STRETCH
) -> ChunkPlan | Splits:
    """Plan, from a sample of the records, the stretches of one column, or chunks for all other plans."""
    if is_one_column(encoding):
        return split_column(encoding, sample, stretch)
    return plan_chunks(encoding, sample, leaf)


def places_of(encoding: Encoding, plan: ChunkPlan | Splits, words: Words) -> Labels:
    """Stretch, or chunk, of each record."""
    records = encoding.records_of(words)
    if isinstance(plan, Splits):
        where = np.ascontiguousarray(records.values[:, 0])
    else:
        where = encoding.coordinates(records)
    return plan.assign(where, encoding.apart(records), records.keys)
