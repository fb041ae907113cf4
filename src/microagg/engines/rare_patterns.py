"""Patterns of missing values that too few records have, in a table that is read in parts.

Records of rare patterns are few, whatever the size of the table. They are collected, with some records of
each common pattern of their stratum, the ones with the lowest keys, and joined in memory as
:mod:`microagg.encode.missing` does it. What comes of it is a short list: keys of rows, and the cell that each
belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Labels
from microagg.encode.missing import join_enough, join_rare
from microagg.engines.chunks import broken_requirement, requirements
from microagg.engines.encoding import Encoding, PackedRows
from microagg.engines.table_summary import Cell
from microagg.engines.verbs import Parts
from microagg.errors import InputError
from microagg.grouping.read_table import check_blanked_patterns
from microagg.grouping.require.from_plan import within

_LENT = 256  # records of each common pattern that may join a rare one, times k at least
_FEW = 64  # times k: patterns of fewer records may have too few units


class _NeededCells(NamedTuple):
    """Cells whose records are needed to join rare patterns."""

    rare: Labels
    """All of whose records are needed."""
    common: Labels
    """Others of the same strata, of which the records with the lowest keys are needed, some of each."""

    def records(self, encoding: Encoding, packed: PackedRows) -> PackedRows:
        """Return those of some records that are needed."""
        cells = encoding.records_of(packed).cells
        assert cells is not None  # there are several
        needed = [packed[np.isin(cells, self.rare)]]
        for cell in np.intersect1d(cells, self.common).tolist():
            held = packed[cells == cell]
            if len(held) > _held_at_most(encoding):
                keys = encoding.records_of(held).keys
                held = held[np.lexsort((keys[:, 1], keys[:, 0]))[: _held_at_most(encoding)]]
            needed.append(held)
        return np.concatenate(needed)


def _needed_cells(encoding: Encoding) -> _NeededCells | None:
    """Find the cells that are rare, and those near to them; None: no pattern has to be joined."""
    by_pattern = encoding.plan.missing.policy == "pattern" and encoding.has_cells
    if not by_pattern or not encoding.patterns.any():
        return None
    rare = np.flatnonzero(encoding.sizes < encoding.k * (1 if encoding.unit is None else _FEW))
    small = rare
    if encoding.block.require:  # small patterns may have to join others too, see join_enough
        small = np.flatnonzero(encoding.sizes <= _held_at_most(encoding))
    near = np.isin(encoding.strata, encoding.strata[np.union1d(rare, small)])
    if not near.any():
        return None
    return _NeededCells(rare, np.setdiff1d(np.flatnonzero(near), rare))


def join_rare_patterns(parts: Parts, encoding: Encoding) -> Encoding:
    """Join rare patterns by blanking; refuse too many blanks, after strata that cannot be groups at all."""
    cells = _needed_cells(encoding)
    if cells is None:
        return encoding
    choose = partial(cells.records, encoding)

    def join(batches: Iterable[PackedRows]) -> tuple[Encoding, int]:
        none = np.zeros((0, encoding.width), np.uint64)
        needed = reduce(lambda held, packed: choose(np.concatenate([held, packed])), batches, none)
        return _with_rare_joined(encoding, needed)

    joined, blanked = parts.gather(encoding, choose, join)
    try:
        check_blanked_patterns(encoding.patterns, encoding.sizes, blanked, encoding.plan)
    except InputError:
        if encoding.block.require:
            parts.gather(encoding, lambda packed: packed, partial(_check_strata, encoding))
        raise
    return joined


def _check_strata(encoding: Encoding, batches: Iterable[PackedRows]) -> None:
    """Refuse a table or stratum that breaks a requirement even as one group; ``batches`` are all records."""
    broken = broken_requirement(encoding, np.concatenate(list(batches)), by_strata=True)
    if broken:
        raise InputError(broken)


def _held_at_most(encoding: Encoding) -> int:
    """Return the records of a common pattern that are held; all of one that has no more."""
    return max(_LENT, 8 * encoding.k)


def _with_rare_joined(encoding: Encoding, packed: PackedRows) -> tuple[Encoding, int]:
    """Return the encoding by which no pattern has fewer than k units, and the fewest values to blank for it.

    ``packed`` are the records of :func:`_needed_cells`.
    """
    records = encoding.records_of(packed)
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
        some_of = encoding.sizes[records.cells] > _held_at_most(encoding)
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
