"""Islands: how whole groups divide a set of records.

Cuts      Of a set S of m records let groups hold p₁, p₂, … With Z as in semidefinite.py, a group of s with
          p of them adds p²/s to the sum of Z over all pairs of S, and p/s to that over its records. So
              Σ Z(i, j) over S × S + c·Σ Z(i, i) over S ≤ max Σ f(p), with f(p) = (p² + c·p) / max(p, k),
          the maximum over all ways to write m as such a sum. Fractions could have m + c·m/k: twelve
          months of a utility are one group of ten or more, not 1.2. The maxima come from a table by m.
Search    For each record, those who have more than some part of its share with itself; the c for which
          this set breaks its inequality most. Where groups are large so are sets, and their pairs would
          take most of the time: then those that are broken least are left out.
Charge    As in inequalities.py. The right side is charged to the records of the set in equal parts, so
          that prices prove a bound by their sum, but single groups may cost less than their records pay.
Rounding  The right sides are raised by more than rounding can have lowered them.
Paper     Our own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.bounds.inequalities import Charge, Inequalities, Shares, add
from microagg.compile.jit import kernel, lean_kernel

_PARTS = np.array([0.02, 0.1, 0.3])  # of a record's share with itself
_WEIGHTS = 24  # values of c
_LARGEST = 6  # times k: records of a set
_PAIRS = 32  # times those of a block: pairs of its sets, all together
_STEP = 1.0  # of the multipliers
_BROKEN = 0.01  # a set that is broken by less is no cut
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
def broken_islands(number, share, unit, at_home, k, sides, weights, parts, least, found, by):
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
                found[count, 0], found[count, 1], by[count] = number, best, most
                for a in range(found.shape[1] - 2):
                    found[count, 2 + a] = held[a] if a < size else -1
                count += 1
    return count


@kernel
def _raise(sets, multipliers, moving, blocks, tall, weights, sides, step):
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
def _charge(sets, multipliers, weights, place, charge):
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
            _BROKEN,
            self._room,
            self._by,
        )
        kept = self.rows[(self.rows[:, 0] == number) & (self.multipliers > 0)]
        room = _PAIRS * len(share) ** 2 - _pairs(kept).sum()
        worst = np.argsort(-self._by[:count], kind="stable")
        return self._room[worst[np.cumsum(_pairs(self._room[worst])) <= room]]

    def _raise(self, rho: float, moving: Any) -> None:
        shares, step = self.shares, rho * _STEP
        _raise(
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
        _charge(self.rows, self.multipliers, self._weights, self.shares.blocks.place, charge)

    def right_sides(self) -> Floats:
        """Return what the records of the sets are charged for the right sides."""
        charged = np.zeros(len(self.shares.tall))
        for row, value in zip(self.rows, self.multipliers, strict=True):
            places = row[2:][row[2:] >= 0]
            side = value * self._sides[row[1], len(places)] / len(places) * _RAISED
            charged[self.shares.blocks.members[row[0], places]] += side
        return charged
