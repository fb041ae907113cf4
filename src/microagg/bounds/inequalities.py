"""Inequalities that the shares of all partitions keep, which raise the semidefinite bound.

Charge    An inequality on Z (semidefinite.py) with a multiplier y ≥ 0 makes pairs dearer or cheaper: what
          groups pay then, less y times its right side, is no more than their SSE. This holds
          for any y, so that none must be right.
Search    Those that the semidefinite copy breaks most, a few for each record. Multipliers follow
          what is broken, and inequalities that cost nothing are dropped.
Stars     What a record may share with several others, by what these share with each other. Z(i, j) is 1/s
          for two members of the same group of s, else 0. For a record i
          and a set T of others, a of them in its group, a − a(a−1)/2 is 1 at most:
              Σ Z(i, j) over j in T − Σ Z(j, h) over the pairs of T ≤ Z(i, i).
          With two others it is the triangle: who shares with both lets them share too. They are sought from
          each record with a share of i's, or some of many, by taking the one that adds most, while any adds.
Islands   How whole groups divide a set of records. Of a set S of m records let groups hold p₁, p₂, … A group
          of s with p of them adds p²/s to the sum of Z over all pairs of S, and p/s to that over its
          records. So
              Σ Z(i, j) over S × S + c·Σ Z(i, i) over S ≤ max Σ f(p), with f(p) = (p² + c·p) / max(p, k),
          the maximum over all ways to write m as such a sum. Fractions could have m + c·m/k: twelve
          months of a utility are one group of ten or more, not 1.2. The maxima come from a table by m.
          They are sought, for each record, among those who have more than some part of its share with itself,
          with the c for which this set breaks its inequality most. Where groups are large so are sets, and
          their pairs would take most of the time: then those that are broken least are left out.
          The right side is charged to the records of the set in equal parts, so
          that prices prove a bound by their sum, but single groups may cost less than their records pay.
          Right sides are raised by more than rounding can have lowered them.
Paper     Stars: the inequalities for two sets of Grötschel & Wakabayashi 1990, with one record in the first;
          triangles as in Peng & Wei 2007, and Piccialli, Sudoso & Wiegele 2022. Islands: our own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.bounds.rows import Blocks
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel

_FROM, _EVERY = 20, 10  # rounds in which broken ones are sought


class Shares(NamedTuple):
    """What records share in blocks, and in what units."""

    k: int
    blocks: Blocks
    home: Any  # (n,) a block that holds the record
    tall: Floats  # (n,) the record's unit


class Charge(NamedTuple):
    """What inequalities add to the costs of pairs."""

    added: Floats  # (pairs,)
    sizes: Floats  # (pairs,) the sum of what was added, all taken as positive
    terms: Any  # (pairs,) how many numbers were added


@lean_subkernel
def _add(charge, a, value):
    """Add a value to what a pair costs."""
    charge.added[a] += value
    charge.sizes[a] += abs(value)
    charge.terms[a] += 1


@lean_subkernel
def _factors(c, x):
    """Return how often the share of the record at x with itself counts, that with others, from which on.

    ``c`` is that of an island; −1: a star, whose centre is at 0.
    """
    if c >= 0:
        return 1.0 + c, 1.0, 0
    if x == 0:
        return -1.0, 1.0, 0
    return 0.0, -0.5, 1  # half on either side


@lean_subkernel
def _size(rows, t):
    """Return how many records an inequality has."""
    size = 0
    while 2 + size < rows.shape[1] and rows[t, 2 + size] >= 0:
        size += 1
    return size


@lean_kernel
def _raise(rows, multipliers, moving, blocks, units, weights, sides, step):
    """Let multipliers follow how much the inequalities are broken; ``units`` are those of shares."""
    for t in range(multipliers.size):
        b, w, size = rows[t, 0], rows[t, 1], _size(rows, t)
        if not moving[b]:
            continue
        convex, members = blocks.convex[b], blocks.members[b]
        c, excess = (weights[w], -sides[w, size]) if w >= 0 else (-1.0, 0.0)
        length = 0.0
        for x in range(size):
            p = rows[t, 2 + x]
            i = units[members[p]]
            alone, together, begin = _factors(c, x)
            excess += alone * convex[p, p] * i * i
            length += (alone * i * i) ** 2
            for y in range(begin, size):
                if y != x:
                    q = rows[t, 2 + y]
                    factor = together * i * units[members[q]]
                    excess += factor * convex[p, q]
                    length += factor * factor
        multipliers[t] = max(0.0, multipliers[t] + step * excess / length)


@lean_kernel
def _charge(rows, multipliers, weights, place, charge):
    """Add what the multipliers make pairs cost."""
    for t in range(multipliers.size):
        b, w, value, size = rows[t, 0], rows[t, 1], multipliers[t], _size(rows, t)
        if value <= 0:
            continue
        c = weights[w] if w >= 0 else -1.0
        for x in range(size):
            p = rows[t, 2 + x]
            alone, together, begin = _factors(c, x)
            if alone != 0:
                _add(charge, place[b, p, p], alone * value)
            for y in range(begin, size):
                if y != x:
                    _add(charge, place[b, p, rows[t, 2 + y]], together * value)


class Inequalities(ABC):
    """Inequalities of one kind in one region, and their multipliers.

    One in a row: its block, the number of its c (−1: it is a star), then positions in the block, filled up
    with −1.
    """

    def __init__(
        self, shares: Shares, width: int, step: float, weights: Floats, sides: Floats
    ) -> None:
        self.shares, self._step, self._weights, self._sides = shares, step, weights, sides
        self.rows, self.multipliers = np.empty((0, 2 + width), np.int32), np.empty(0)

    def follow(self, turn: int, rho: float, moving: Any) -> None:
        """Seek in some rounds, and let the multipliers follow what is broken in blocks that move."""
        if turn < _FROM:
            return
        if turn % _EVERY == 0:
            self._seek(moving)
        blocks, units = self.shares.blocks, 1 / self.shares.tall
        how = self._weights, self._sides, rho * self._step
        _raise(self.rows, self.multipliers, moving, blocks, units, *how)

    def _seek(self, moving: Any) -> None:
        """Drop those that cost nothing, and add those that are broken in blocks that move."""
        blocks = self.shares.blocks
        kept = self.multipliers > 0
        pieces = [self.rows[kept]]
        for number in np.flatnonzero(moving):
            members = blocks.members[number]
            tall = self.shares.tall[members]
            at_home = np.flatnonzero(self.shares.home[members] == number)
            share = blocks.convex[number] / np.outer(tall, tall)
            pieces.append(self._broken(int(number), share, at_home))
        together = np.concatenate(pieces)
        _, first = np.unique(together, axis=0, return_index=True)
        first.sort()  # those kept come first, and stay where they are
        multipliers = np.zeros(len(first))
        multipliers[: len(pieces[0])] = self.multipliers[kept]
        self.rows, self.multipliers = together[first], multipliers

    @abstractmethod
    def _broken(self, number: int, share: Floats, at_home: Any) -> Any:
        """Find the inequalities that shares in a block break, for its records at home."""

    def charge(self, charge: Charge) -> None:
        """Add what the multipliers make pairs cost."""
        _charge(self.rows, self.multipliers, self._weights, self.shares.blocks.place, charge)


# Stars.

_ARMS = 4  # records of T at most
_STAR_STEP = 0.3  # of the multipliers; with larger ones they swing
_OF_A_RECORD = 8  # stars found at once
_STAR_BROKEN = 1e-3  # of 1/k: a star that is broken by less is no cut
_BEGIN = 128  # records from which stars around another are begun, about
_APART = 0.02  # of its share with itself: who shares less with a record is in none of its stars


@kernel
def broken_stars(number, share, at_home, least, arms, each, rows):
    """Write the most broken stars around the records at home in a block; return how many."""
    m, count = len(share), 0
    near, gain = np.empty(m, np.intp), np.empty(m)
    star, best = np.empty(arms, np.int32), np.empty(each)
    for i in at_home:
        centre, used, have = share[i, i], 0, 0
        for j in range(m):
            if j != i and share[i, j] > _APART * centre:
                near[used] = j
                used += 1
        for begin in range(0, used, 1 + used // _BEGIN):
            for a in range(used):
                gain[a] = share[i, near[a]]
            for a in range(arms):
                star[a] = -1
            excess, size, arm = -centre, 0, begin
            while arm >= 0 and size < arms:
                excess += gain[arm]
                gain[arm] = -np.inf
                # Ascending, so that the same star is known again.
                a = size
                while a > 0 and star[a - 1] > near[arm]:
                    star[a] = star[a - 1]
                    a -= 1
                star[a] = near[arm]
                size += 1
                after, most = -1, 0.0
                for a in range(used):
                    gain[a] -= share[near[arm], near[a]]
                    if gain[a] > most:
                        after, most = a, gain[a]
                arm = after
            if excess <= least or (have == each and excess <= best[each - 1]):
                continue
            known = False
            for c in range(count, count + have):
                same = True
                for a in range(arms):
                    same &= rows[c, 3 + a] == star[a]
                known |= same
            if known:
                continue
            a = have if have < each else each - 1
            while a > 0 and best[a - 1] < excess:
                best[a] = best[a - 1]
                for s in range(3 + arms):  # assigning a row to a row takes seconds to compile
                    rows[count + a, s] = rows[count + a - 1, s]
                a -= 1
            best[a] = excess
            rows[count + a, 0], rows[count + a, 1], rows[count + a, 2] = number, -1, i
            for s in range(arms):
                rows[count + a, 3 + s] = star[s]
            have = min(have + 1, each)
        count += have
    return count


class Stars(Inequalities):
    """The stars of one region, and their multipliers."""

    def __init__(self, shares: Shares) -> None:
        super().__init__(shares, 1 + _ARMS, _STAR_STEP, np.empty(0), np.empty((0, 0)))
        m = shares.blocks.members.shape[1]
        self._room = np.empty((m * _OF_A_RECORD, 3 + _ARMS), np.int32)

    def _broken(self, number: int, share: Floats, at_home: Any) -> Any:
        least = _STAR_BROKEN / self.shares.k
        count = broken_stars(number, share, at_home, least, _ARMS, _OF_A_RECORD, self._room)
        return self._room[:count].copy()


# Islands.

_PARTS = np.array([0.02, 0.1, 0.3])  # of a record's share with itself
_WEIGHTS = 24  # values of c
_LARGEST = 6  # times k: records of a set
_PAIRS = 32  # times those of a block: pairs of its sets, all together
_ISLAND_STEP = 1.0  # of the multipliers
_ISLAND_BROKEN = 0.01  # a set that is broken by less is no cut
_RAISED = 1 + 1e-12


def right_sides(k: int, largest: int, weights: Floats) -> Floats:
    """Return the right sides for each c and each number of records up to the largest: shape (weights, m + 1).

    >>> right_sides(10, 12, np.array([8.0]))[0, [10, 12]].round(9).tolist()
    [18.0, 20.0]
    """
    held = np.arange(1, 2 * k)
    sides = np.zeros((len(weights), largest + 1))
    worth = (held**2 + weights[:, None] * held) / np.maximum(held, k)
    for m in range(1, largest + 1):
        most = min(m, 2 * k - 1)
        sides[:, m] = (sides[:, m - most : m][:, ::-1] + worth[:, :most]).max(axis=1)
    return sides * _RAISED


@kernel
def broken_islands(number, share, unit, at_home, k, sides, weights, parts, least, rows, by):
    """Write the broken sets around the records at home in a block, and how far they are; return how many."""
    m, largest, count = len(share), sides.shape[1] - 1, 0
    held = np.empty(m, np.int32)
    for i in at_home:
        before = 0
        for part in parts:
            size = 0
            for j in range(m):
                if share[i, j] > part * share[i, i]:
                    held[size] = j
                    size += 1
            # Sets of up to k records, or of whole groups, break nothing.
            if size <= k or size > largest or size % k == 0 or size == before:
                continue
            before = size
            together, alone, length, own_length = 0.0, 0.0, 0.0, 0.0
            for a in range(size):
                p = held[a]
                alone += share[p, p]
                length += unit[p] ** -2
                own_length += unit[p] ** -4
                for b in range(size):
                    together += share[p, held[b]]
            length *= length  # the sum over all pairs
            best, most = -1, 0.0
            for w in range(weights.size):
                c = weights[w]
                excess = together + c * alone - sides[w, size]
                far = excess / np.sqrt(length + ((1 + c) ** 2 - 1) * own_length)
                if excess > least and far > most:
                    best, most = w, far
            if best >= 0:
                rows[count, 0], rows[count, 1], by[count] = number, best, most
                for a in range(rows.shape[1] - 2):
                    rows[count, 2 + a] = held[a] if a < size else -1
                count += 1
    return count


def _pairs(sets: Any) -> Any:
    """Count the pairs of each set."""
    return np.count_nonzero(sets[:, 2:] >= 0, axis=1) ** 2


class Islands(Inequalities):
    """The sets of one region, and their multipliers."""

    def __init__(self, shares: Shares) -> None:
        k, m = shares.k, shares.blocks.members.shape[1]
        largest, weights = min(m, _LARGEST * k), np.geomspace(0.25, 4 * k, _WEIGHTS)
        sides = right_sides(k, largest, weights)
        super().__init__(shares, largest, _ISLAND_STEP, weights, sides)
        self._room = np.empty((m * len(_PARTS), 2 + largest), np.int32)
        self._by = np.empty(len(self._room))

    def _broken(self, number: int, share: Floats, at_home: Any) -> Any:
        tall, k = self.shares.tall[self.shares.blocks.members[number]], self.shares.k
        limits = k, self._sides, self._weights, _PARTS, _ISLAND_BROKEN
        count = broken_islands(number, share, tall, at_home, *limits, self._room, self._by)
        kept = self.rows[(self.rows[:, 0] == number) & (self.multipliers > 0)]
        room = _PAIRS * len(share) ** 2 - _pairs(kept).sum()
        worst = np.argsort(-self._by[:count], kind="stable")
        return self._room[worst[np.cumsum(_pairs(self._room[worst])) <= room]]

    def right_sides(self) -> Floats:
        """Return what the records of the sets are charged for the right sides."""
        charged = np.zeros(len(self.shares.tall))
        for row, value in zip(self.rows, self.multipliers, strict=True):
            places = row[2:][row[2:] >= 0]
            side = value * self._sides[row[1], len(places)] / len(places) * _RAISED
            charged[self.shares.blocks.members[row[0], places]] += side
        return charged
