"""Stars: what a record may share with several others, by what these share with each other.

Cuts      Z(i, j) is 1/s for two members of the same group of s, else 0 (semidefinite.py). For a record i
          and a set T of others, a of them in its group, a − a(a−1)/2 is 1 at most:
              Σ Z(i, j) over j in T − Σ Z(j, h) over the pairs of T ≤ Z(i, i).
          With two others it is the triangle: who shares with both lets them share too.
Search    From each record with a share of i's, or some of many, take the one that adds most, while any adds.
Paper     The inequalities for two sets of Grötschel & Wakabayashi 1990, with one record in the first;
          triangles as in Peng & Wei 2007, and Piccialli, Sudoso & Wiegele 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.bounds.inequalities import Charge, Inequalities, Shares, add
from microagg.compile.jit import kernel, lean_kernel

_ARMS = 4  # records of T at most
_STEP = 0.3  # of the multipliers; with larger ones they swing
_OF_A_RECORD = 8  # stars found at once
_BROKEN = 1e-3  # of 1/k: a star that is broken by less is no cut
_BEGIN = 128  # records from which stars around another are begun, about
_APART = 0.02  # of its share with itself: who shares less with a record is in none of its stars


@kernel
def broken_stars(number, share, at_home, least, arms, each, found):
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
            excess, size, taken = -centre, 0, begin
            while taken >= 0 and size < arms:
                excess += gain[taken]
                gain[taken] = -np.inf
                # Ascending, so that the same star is known again.
                a = size
                while a > 0 and star[a - 1] > near[taken]:
                    star[a] = star[a - 1]
                    a -= 1
                star[a] = near[taken]
                size += 1
                after, most = -1, 0.0
                for a in range(used):
                    gain[a] -= share[near[taken], near[a]]
                    if gain[a] > most:
                        after, most = a, gain[a]
                taken = after
            if excess <= least or (have == each and excess <= best[each - 1]):
                continue
            known = False
            for c in range(count, count + have):
                same = True
                for a in range(arms):
                    same &= found[c, 2 + a] == star[a]
                known |= same
            if known:
                continue
            a = have if have < each else each - 1
            while a > 0 and best[a - 1] < excess:
                best[a] = best[a - 1]
                for s in range(2 + arms):  # assigning a row to a row takes seconds to compile
                    found[count + a, s] = found[count + a - 1, s]
                a -= 1
            best[a] = excess
            found[count + a, 0], found[count + a, 1] = number, i
            for s in range(arms):
                found[count + a, 2 + s] = star[s]
            have = min(have + 1, each)
        count += have
    return count


@lean_kernel
def _raise(stars, multipliers, moving, blocks, tall, step):
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
def _charge(stars, multipliers, place, charge):
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
        least = _BROKEN / self.shares.k
        count = broken_stars(number, share, at_home, least, _ARMS, _OF_A_RECORD, self._room)
        return self._room[:count].copy()

    def _raise(self, rho: float, moving: Any) -> None:
        shares = self.shares
        _raise(self.rows, self.multipliers, moving, shares.blocks, shares.tall, rho * _STEP)

    def charge(self, charge: Charge) -> None:
        """Add what the multipliers make pairs cost."""
        _charge(self.rows, self.multipliers, self.shares.blocks.place, charge)
