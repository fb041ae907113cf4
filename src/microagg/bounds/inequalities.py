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
from microagg.bounds.rows import Blocks, Lists
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel

_FROM, _EVERY = 20, 10  # rounds in which broken ones are sought


class Shares(NamedTuple):
    """What records share, where to look for it, and in what units."""

    k: int
    lists: Lists
    blocks: Blocks
    home: Any  # (n,) a block that holds the record
    tall: Floats  # (n,) the record's unit


class Charge(NamedTuple):
    """What inequalities add to the costs of pairs."""

    added: Floats  # (pairs,)
    sizes: Floats  # (pairs,) the sum of what was added, all taken as positive
    terms: Any  # (pairs,) how many numbers were added


def no_charge(pairs: int) -> Charge:
    """Nothing added to any pair."""
    return Charge(np.zeros(pairs), np.zeros(pairs), np.zeros(pairs, np.int32))


@lean_subkernel
def add(charge, a, value):
    """Add a value to what a pair costs."""
    charge.added[a] += value
    charge.sizes[a] += abs(value)
    charge.terms[a] += 1


@kernel
def _in_real_units(convex, members, tall):
    """Return what the records of a block share."""
    share = np.empty(convex.shape)
    for p in range(members.size):
        for q in range(members.size):
            share[p, q] = convex[p, q] / (tall[members[p]] * tall[members[q]])
    return share


class Inequalities(ABC):
    """Inequalities of one kind in one region, and their multipliers."""

    def __init__(self, shares: Shares, width: int) -> None:
        self.shares = shares
        # One in a row: its block, then what tells it from others, then positions in the block,
        # filled up with −1.
        self.rows, self.multipliers = np.empty((0, width), np.int32), np.empty(0)

    def follow(self, turn: int, rho: float, moving: Any) -> None:
        """Seek in some rounds, and let the multipliers follow what is broken in blocks that move."""
        if turn >= _FROM:
            if turn % _EVERY == 0:
                self._seek(moving)
            self._raise(rho, moving)

    def _seek(self, moving: Any) -> None:
        """Drop those that cost nothing, and add those that are broken in blocks that move."""
        blocks, tall = self.shares.blocks, self.shares.tall
        kept = self.multipliers > 0
        pieces = [self.rows[kept]]
        for number in np.flatnonzero(moving):
            members = blocks.members[number]
            share = _in_real_units(blocks.convex[number], members, tall)
            at_home = np.flatnonzero(self.shares.home[members] == number)
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

    @abstractmethod
    def _raise(self, rho: float, moving: Any) -> None:
        """Let multipliers follow how much is broken."""

    @abstractmethod
    def charge(self, charge: Charge) -> None:
        """Add what the multipliers make pairs cost."""


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
                    same &= rows[c, 2 + a] == star[a]
                known |= same
            if known:
                continue
            a = have if have < each else each - 1
            while a > 0 and best[a - 1] < excess:
                best[a] = best[a - 1]
                for s in range(2 + arms):  # assigning a row to a row takes seconds to compile
                    rows[count + a, s] = rows[count + a - 1, s]
                a -= 1
            best[a] = excess
            rows[count + a, 0], rows[count + a, 1] = number, i
            for s in range(arms):
                rows[count + a, 2 + s] = star[s]
            have = min(have + 1, each)
        count += have
    return count


@lean_kernel
def _raise_stars(stars, multipliers, moving, blocks, tall, step):
    """Let multipliers follow how much the stars are broken."""
    for t in range(multipliers.size):
        b, p = stars[t, 0], stars[t, 1]
        if not moving[b]:
            continue
        convex, members = blocks.convex[b], blocks.members[b]
        i = tall[members[p]]
        excess, size = -convex[p, p] / (i * i), i**-4
        for x in range(2, stars.shape[1]):
            q = stars[t, x]
            if q < 0:
                break
            j = tall[members[q]]
            excess += convex[p, q] / (i * j)
            size += (i * j) ** -2
            for y in range(2, x):
                r = stars[t, y]
                h = tall[members[r]]
                excess -= convex[q, r] / (j * h)
                size += 0.5 * (j * h) ** -2
        multipliers[t] = max(0.0, multipliers[t] + step * excess / size)


@lean_kernel
def _charge_stars(stars, multipliers, place, charge):
    """Add what the multipliers make pairs cost."""
    for t in range(multipliers.size):
        b, p, value = stars[t, 0], stars[t, 1], multipliers[t]
        if value <= 0:
            continue
        add(charge, place[b, p, p], -value)
        for x in range(2, stars.shape[1]):
            q = stars[t, x]
            if q < 0:
                break
            add(charge, place[b, p, q], value)
            for y in range(2, x):
                r = stars[t, y]
                add(charge, place[b, q, r], -value / 2)  # half on either side
                add(charge, place[b, r, q], -value / 2)


class Stars(Inequalities):
    """The stars of one region, and their multipliers."""

    def __init__(self, shares: Shares) -> None:
        super().__init__(shares, 2 + _ARMS)
        self._room = np.empty((shares.blocks.members.shape[1] * _OF_A_RECORD, 2 + _ARMS), np.int32)

    def _broken(self, number: int, share: Floats, at_home: Any) -> Any:
        least = _STAR_BROKEN / self.shares.k
        count = broken_stars(number, share, at_home, least, _ARMS, _OF_A_RECORD, self._room)
        return self._room[:count].copy()

    def _raise(self, rho: float, moving: Any) -> None:
        shares = self.shares
        _raise_stars(
            self.rows, self.multipliers, moving, shares.blocks, shares.tall, rho * _STAR_STEP
        )

    def charge(self, charge: Charge) -> None:
        """Add what the multipliers make pairs cost."""
        _charge_stars(self.rows, self.multipliers, self.shares.blocks.place, charge)


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


@kernel
def _raise_islands(sets, multipliers, moving, blocks, tall, weights, sides, step):
    """Let multipliers follow how much the sets are broken."""
    inverse = np.empty(sets.shape[1])
    for t in range(multipliers.size):
        number, c = sets[t, 0], weights[sets[t, 1]]
        if not moving[number]:
            continue
        convex, members = blocks.convex[number], blocks.members[number]
        excess, length, own_length, size = 0.0, 0.0, 0.0, 0
        for x in range(2, sets.shape[1]):
            p = sets[t, x]
            if p < 0:
                break
            i = inverse[size] = 1 / tall[members[p]]
            row = 0.0
            for y in range(size):
                row += convex[p, sets[t, 2 + y]] * inverse[y]
            size += 1
            excess += 2 * row * i + (1 + c) * convex[p, p] * i * i
            length += i**2
            own_length += i**4
        length = length * length + ((1 + c) ** 2 - 1) * own_length
        excess -= sides[sets[t, 1], size]
        multipliers[t] = max(0.0, multipliers[t] + step * excess / length)


@lean_kernel
def _charge_islands(sets, multipliers, weights, place, charge):
    """Add what the multipliers make pairs cost."""
    for t in range(multipliers.size):
        number, value = sets[t, 0], multipliers[t]
        if value <= 0:
            continue
        for x in range(2, sets.shape[1]):
            p = sets[t, x]
            if p < 0:
                break
            add(charge, place[number, p, p], weights[sets[t, 1]] * value)
            for y in range(2, sets.shape[1]):
                q = sets[t, y]
                if q < 0:
                    break
                add(charge, place[number, p, q], value)


def _pairs(sets: Any) -> Any:
    """Count the pairs of each set."""
    return np.count_nonzero(sets[:, 2:] >= 0, axis=1) ** 2


class Islands(Inequalities):
    """The sets of one region, and their multipliers."""

    def __init__(self, shares: Shares) -> None:
        k, m = shares.k, shares.blocks.members.shape[1]
        largest = min(m, _LARGEST * k)
        super().__init__(shares, 2 + largest)
        self._weights = np.geomspace(0.25, 4 * k, _WEIGHTS)
        self._sides = right_sides(k, largest, self._weights)
        self._room = np.empty((m * len(_PARTS), 2 + largest), np.int32)
        self._by = np.empty(len(self._room))

    def _broken(self, number: int, share: Floats, at_home: Any) -> Any:
        shares = self.shares
        count = broken_islands(
            number,
            share,
            shares.tall[shares.blocks.members[number]],
            at_home,
            shares.k,
            self._sides,
            self._weights,
            _PARTS,
            _ISLAND_BROKEN,
            self._room,
            self._by,
        )
        kept = self.rows[(self.rows[:, 0] == number) & (self.multipliers > 0)]
        room = _PAIRS * len(share) ** 2 - _pairs(kept).sum()
        worst = np.argsort(-self._by[:count], kind="stable")
        return self._room[worst[np.cumsum(_pairs(self._room[worst])) <= room]]

    def _raise(self, rho: float, moving: Any) -> None:
        shares, step = self.shares, rho * _ISLAND_STEP
        _raise_islands(
            self.rows,
            self.multipliers,
            moving,
            shares.blocks,
            shares.tall,
            self._weights,
            self._sides,
            step,
        )

    def charge(self, charge: Charge) -> None:
        """Add what the multipliers make pairs cost."""
        _charge_islands(
            self.rows, self.multipliers, self._weights, self.shares.blocks.place, charge
        )

    def right_sides(self) -> Floats:
        """Return what the records of the sets are charged for the right sides."""
        charged = np.zeros(len(self.shares.tall))
        for row, value in zip(self.rows, self.multipliers, strict=True):
            places = row[2:][row[2:] >= 0]
            side = value * self._sides[row[1], len(places)] / len(places) * _RAISED
            charged[self.shares.blocks.members[row[0], places]] += side
        return charged
