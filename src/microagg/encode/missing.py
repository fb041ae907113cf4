"""Missing values: where they are is part of what the records of a group share.

By the policy ``pattern`` groups form within one pattern of missingness, so that nothing is imputed. A
pattern that fewer than k units have is joined with another: its values are blanked until both have the same,
and where the other is common, only as many of its records join as are needed. Each step takes the rarest
pattern and the way that blanks the fewest values.

By ``majority`` and ``fill`` groups form over all patterns, and each group has a value in a column if most of
its records have one, or if any has.

The state of a value is 0 if it is there, 1 if it is missing, 2 and more if it is missing with a code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.groups import Floats, Labels

__all__ = ["Joined", "group_states", "join_rare"]

_MISSING = 1


class Joined(NamedTuple):
    """Patterns after the rare ones were joined."""

    states: Labels  # (n, d) of the values, blanked ones as missing
    cells: Labels  # (n,) number of the stratum and pattern of each record
    blanked: int  # values, or codes of missing ones, that are released as missing


def join_rare(
    states: Labels,
    strata: Labels,
    k: int,
    units: Labels | None = None,
    near: Floats | None = None,
    enough: Callable[[Labels], bool] | None = None,
) -> Joined:
    """Join patterns of missingness within strata until each is shared by k units.

    Parameters
    ----------
    states : (n, d) state of each value
    strata : (n,) stratum of each record, each with at least k units
    k : least number of units that share a pattern
    units : (n,) unit of each record; None: each record is one
    near : (n, c) coordinates: records that join a pattern are those nearest to it
    enough : tells whether some records can be a group, where more is asked of one than k units

    >>> states = np.array([[0, 0]] * 5 + [[0, 1]])
    >>> found = join_rare(states, np.zeros(6, dtype=int), 2)
    >>> found.blanked, found.states.tolist()[3:]
    (1, [[0, 0], [0, 0], [0, 1]])
    """
    found = states.copy()
    cells = np.zeros(len(states), dtype=np.int64)
    count = 0
    order = np.argsort(strata, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        own = None if units is None else units[rows]
        at = None if near is None else near[rows]
        can = None if enough is None else lambda some, rows=rows: enough(rows[some])
        new, pattern = _join(states[rows], k, own, at, can)
        found[rows], cells[rows] = new, count + pattern
        count += int(pattern.max()) + 1
    return Joined(found, cells, int(np.count_nonzero(found != states)))


def _join(
    states: Labels,
    k: int,
    units: Labels | None,
    near: Floats | None,
    enough: Callable[[Labels], bool] | None = None,
) -> tuple[Labels, Labels]:
    """Join the patterns of one stratum; return the states and the pattern of each record."""
    patterns, which = np.unique(states, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(patterns) == 1:
        return states, which
    work = _Patterns(patterns, which, k, units, near, enough)
    while work.join_rarest():
        pass
    labels = np.unique(work.which, return_inverse=True)[1].reshape(-1)
    return work.patterns[work.which], labels


class _Patterns:
    """The patterns of a stratum while they are joined."""

    def __init__(
        self,
        patterns: Labels,
        which: Labels,
        k: int,
        units: Labels | None,
        near: Floats | None,
        enough: Callable[[Labels], bool] | None,
    ) -> None:
        self.patterns, self.which, self.k = patterns, which, k
        self.units, self.near, self.enough = units, near, enough
        self.sizes = np.bincount(which, minlength=len(patterns))
        self.shared = np.array([self._units_of(which == p) for p in range(len(patterns))])
        self.short = np.array([self._is_short(p) for p in range(len(patterns))])

    def _units_of(self, members: NDArray[np.bool_]) -> int:
        return int(members.sum()) if self.units is None else len(np.unique(self.units[members]))

    def _is_short(self, p: int) -> bool:
        """Whether the records of a pattern cannot be a group."""
        if not self.sizes[p] or self.shared[p] < self.k or self.enough is None:
            return bool(self.shared[p] < self.k)
        return not self.enough(np.flatnonzero(self.which == p))

    def join_rarest(self) -> bool:
        """Join the rarest pattern with another; tell whether there was one too rare."""
        there = np.flatnonzero(self.sizes > 0)
        rare = there[self.short[there]]
        if not len(rare) or len(there) == 1:
            return False
        p = int(rare[np.lexsort((rare, self.sizes[rare], self.shared[rare]))[0]])
        others = there[there != p]
        both = np.where(self.patterns[others] == self.patterns[p], self.patterns[p], _MISSING)
        of_p = (both != self.patterns[p]).sum(axis=1) * self.sizes[p]
        of_other = (both != self.patterns[others]).sum(axis=1)
        need = self.k - self.shared[p]
        # A common pattern lends the records that are needed, a rare one is joined as a whole.
        lends = (self.shared[others] >= self.k + need) & (of_other > 0) & (need > 0)
        lends &= self.enough is None
        records = np.where(lends, need, self.sizes[others])
        cost = of_p + of_other * records
        best = int(np.lexsort((others, -self.shared[others], cost))[0])
        self._merge(p, int(others[best]), both[best], int(need) if lends[best] else None)
        return True

    def _merge(self, p: int, other: int, target: Labels, lent: int | None) -> None:
        """Give a pattern's records, and those of another or some of them, the same states."""
        same = np.flatnonzero((self.patterns == target).all(axis=1))
        if len(same):
            to = int(same[0])
        else:
            to = len(self.patterns)
            self.patterns = np.vstack([self.patterns, target])
            self.sizes, self.shared = np.append(self.sizes, 0), np.append(self.shared, 0)
            self.short = np.append(self.short, False)
        moved = self.which == p
        if lent is None:
            moved |= self.which == other
        else:
            moved[self._nearest(p, other, lent)] = True
        self.which = np.where(moved, to, self.which)
        for at in {p, other, to}:
            members = self.which == at
            self.sizes[at], self.shared[at] = members.sum(), self._units_of(members)
            self.short[at] = self._is_short(at)

    def _nearest(self, p: int, other: int, count: int) -> Labels:
        """Records of a pattern that are nearest to those of another, each of a unit that is new there."""
        candidates = np.flatnonzero(self.which == other)
        if self.near is not None:
            centre = self.near[self.which == p].mean(axis=0)
            distance = np.square(self.near[candidates] - centre).sum(axis=1)
            candidates = candidates[np.argsort(distance, kind="stable")]
        if self.units is None:
            return candidates[:count]
        new = ~np.isin(self.units[candidates], self.units[self.which == p])
        candidates = candidates[new]
        first = np.sort(np.unique(self.units[candidates], return_index=True)[1])
        return candidates[first[:count]]


def group_states(states: Labels, labels: Labels, g: int, policy: str) -> Labels:
    """State in which each group releases each column, shape (g, d).

    A code is released only if all records of the group have it.

    >>> states = np.array([[0], [0], [1], [2], [2]])
    >>> group_states(states, np.array([0, 0, 0, 1, 1]), 2, "majority").tolist()
    [[0], [2]]
    """
    found = np.empty((g, states.shape[1]), dtype=np.int64)
    sizes = np.bincount(labels, minlength=g)
    for j, column in enumerate(states.T):
        present = np.bincount(labels[column == 0], minlength=g)
        low, high = np.full(g, np.iinfo(np.int64).max), np.full(g, -1)
        np.minimum.at(low, labels, column)
        np.maximum.at(high, labels, column)
        coded = np.where(low == high, high, _MISSING)
        if policy == "fill":
            has_value = present > 0
        elif policy == "majority":
            has_value = 2 * present > sizes
        else:  # all records of a group have the same state
            has_value = present == sizes
        found[:, j] = np.where(has_value, 0, np.where(coded == 0, _MISSING, coded))
    return found
