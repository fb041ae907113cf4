"""Patterns of missing values that too few records have, in a table that is read in parts.

Records of rare patterns are few, whatever the size of the table. They are collected, with some records of
each common pattern of their stratum, the ones with the lowest keys, and joined in memory as
:mod:`microagg.encode.missing` does it. What comes of it is a short list: keys of rows, and the cell that each
belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from microagg.base.typing import Labels
from microagg.encode.missing import join_enough, join_rare
from microagg.engines.chunks import broken_requirement, requirements
from microagg.engines.encoding import Encoding, Words
from microagg.engines.table_summary import Cell
from microagg.engines.verbs import Parts
from microagg.errors import InputError
from microagg.grouping.read_table import check_blanked_patterns
from microagg.grouping.require.from_plan import within

_LENT = 256  # records of each common pattern that may join a rare one, times k at least
_FEW = 64  # times k: patterns of fewer records may have too few units


class Rare:
    """Collects the records that are needed to join rare patterns."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        by_unit = encoding.unit is not None
        least = encoding.k * (_FEW if by_unit else 1)
        self._rare = np.flatnonzero(encoding.sizes < least)
        self._most = held_at_most(encoding)
        # Where more than k is required, small patterns may have to join others too, see join_enough.
        asked = bool(encoding.block.require) and bool(encoding.patterns.any())
        small = np.flatnonzero(encoding.sizes <= self._most) if asked else self._rare
        strata = encoding.strata
        near = np.isin(strata, strata[np.union1d(self._rare, small)])
        self._common = np.setdiff1d(np.flatnonzero(near), self._rare)
        self._held: dict[int, Words] = {}
        self.any = encoding.plan.missing.policy == "pattern" and any(
            any(pattern) for _, pattern in (list(encoding.cells)[cell] for cell in self._rare)
        )
        # A rare complete pattern next to others is as much a matter of missing values.
        few = len(self._rare) or (asked and len(small))
        if encoding.plan.missing.policy == "pattern" and few and encoding.patterns.any():
            self.any = True

    def add(self, words: Words) -> None:
        """Look through further records."""
        cells = self._encoding.records_of(words).cells
        assert cells is not None  # there are several
        for cell in np.intersect1d(np.unique(cells), np.append(self._rare, self._common)).tolist():
            held = words[cells == cell]
            if cell in self._held:
                held = np.concatenate([self._held[cell], held])
            if cell in self._common and len(held) > self._most:
                keys = self._encoding.records_of(held).keys
                held = held[np.lexsort((keys[:, 1], keys[:, 0]))[: self._most]]
            self._held[cell] = held

    def words(self) -> Words:
        """All records that were kept."""
        none = np.zeros((0, self._encoding.width), np.uint64)
        return np.concatenate([none, *(self._held[cell] for cell in sorted(self._held))])


def join_rare_patterns(parts: Parts, encoding: Encoding) -> Encoding:
    """Join rare patterns by blanking; refuse too many blanks, after strata that cannot be groups at all."""
    if not Rare(encoding).any:
        return encoding
    joined, blanked = parts.gather(
        encoding, partial(rare_records, encoding), partial(with_rare_joined, encoding)
    )
    try:
        check_blanked_patterns(encoding.patterns, encoding.sizes, blanked, encoding.plan)
    except InputError:
        if encoding.block.require:
            parts.gather(encoding, lambda words: words, partial(_check_strata, encoding))
        raise
    return joined


def _check_strata(encoding: Encoding, batches: Iterable[Words]) -> None:
    """Refuse a table or stratum that breaks a requirement even as one group; ``batches`` are all records."""
    broken = broken_requirement(encoding, np.concatenate(list(batches)), by_strata=True)
    if broken:
        raise InputError(broken)


def held_at_most(encoding: Encoding) -> int:
    """Return the records of a common pattern that are held; all of one that has no more."""
    return max(_LENT, 8 * encoding.k)


def rare_records(encoding: Encoding, words: Words) -> Words:
    """Return those of some records that are needed to join rare patterns."""
    rare = Rare(encoding)
    rare.add(words)
    return rare.words()


def with_rare_joined(encoding: Encoding, batches: Iterable[Words]) -> tuple[Encoding, int]:
    """Return the encoding by which no pattern has fewer than k units, and the fewest values to blank for it.

    ``batches`` are the words of all records; they are looked through only if some pattern is rare.
    """
    rare = Rare(encoding)
    if not rare.any:
        return encoding, 0
    for words in batches:
        rare.add(words)
    kept = rare.words()
    records = encoding.records_of(kept)
    # In the order of keys, so that it does not matter how the records came.
    order = np.lexsort((records.keys[:, 1], records.keys[:, 0]))
    records = records.taken(order)
    assert records.cells is not None
    strata = encoding.strata[records.cells]
    _, strata = np.unique(strata, return_inverse=True)
    units = None if records.units is None else np.unique(records.units, return_inverse=True)[1]
    states = encoding.patterns[records.cells]
    strata = strata.reshape(-1)
    joined = join_rare(states, strata, encoding.k, units, encoding.coordinates(records))
    if encoding.block.require:
        rules = requirements(encoding, records)
        some_of = encoding.sizes[records.cells] > held_at_most(encoding)
        some_of &= (joined.states == states).all(axis=1)

        def satisfied(rows: Labels) -> bool:
            return all(rule.feasible() for rule in within(rules, rows))

        joined = join_enough(joined, states, strata, satisfied, some_of)
    return _with_cells(encoding, records, joined.states), joined.blanked


def _with_cells(encoding: Encoding, records: Any, states: Labels) -> Encoding:
    """Give records with other states than their own a cell of these."""
    cells: dict[Cell, int] = dict(encoding.cells)
    listed = list(encoding.cells)
    sizes = encoding.sizes.copy()
    changed = np.flatnonzero((states != encoding.patterns[records.cells]).any(axis=1))
    moved = np.empty(len(changed), dtype=np.int64)
    for at, row in enumerate(changed.tolist()):
        old = int(records.cells[row])
        cell = (listed[old][0], tuple(int(state) for state in states[row]))
        if cell not in cells:
            cells[cell] = len(cells)
            sizes = np.append(sizes, 0)
        moved[at] = cells[cell]
        sizes[old] -= 1
        sizes[moved[at]] += 1
    order = np.lexsort((records.keys[changed, 1], records.keys[changed, 0]))
    patterns = np.array([cell[1] for cell in cells], dtype=np.int64).reshape(len(cells), -1)
    return replace(
        encoding,
        cells=cells,
        patterns=patterns,
        sizes=sizes,
        moved_keys=np.ascontiguousarray(records.keys[changed][order]),
        moved_cells=moved[order],
    )
