"""Triangles: what three records may share in the semidefinite bound.

Cuts      Z(i, j) is 1/s for two members of the same group of s, else 0 (semidefinite.py). Who shares
          with both j and h shares them with each other:
              Z(i, j) + Z(i, h) − Z(j, h) ≤ Z(i, i).
Charge    A cut with a multiplier y ≥ 0 makes pairs dearer or cheaper: what groups pay then is no more
          than their SSE. This holds for any y, so none must be right.
Search    The triangles that the semidefinite copy breaks most, a few for each record. Multipliers
          follow what is broken, and triangles that cost nothing are dropped.
Paper     Peng & Wei 2007; Piccialli, Sudoso & Wiegele 2022.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.bounds.rows import Blocks, Lists
from microagg.groups import Floats
from microagg.kernels.jit import kernel, subkernel

_FROM, _EVERY = 20, 10  # rounds in which triangles are sought
_STEP = 0.3  # of the multipliers; with larger ones they swing
_OF_A_RECORD = 8  # triangles found at once
_BROKEN = 1e-3  # of 1/k: a triangle that is broken by less is no cut
_APART = 0.02  # of its share with itself: who shares less with a record is in none of its triangles


class Charge(NamedTuple):
    """What triangles add to the costs of pairs."""

    added: Floats  # (pairs,)
    sizes: Floats  # (pairs,) the sum of what was added, all taken as positive
    terms: Any  # (pairs,) how many numbers were added


@kernel
def _broken(convex, members, tall, home, number, least, each, found):
    """Write the triangles of the records at home in a block, as positions in it; return how many."""
    m, count = members.size, 0
    near, best = np.empty(m, np.intp), np.empty(each)
    share = np.empty((m, m), np.float32)
    for i in range(m):
        for j in range(m):
            share[i, j] = convex[i, j] / (tall[members[i]] * tall[members[j]])
    for i in range(m):
        if home[members[i]] != number:
            continue
        own, used, have = share[i, i], 0, 0
        for j in range(m):
            if j != i and share[i, j] > _APART * own:
                near[used] = j
                used += 1
        for p in range(used):
            for q in range(p):
                j, h = near[q], near[p]
                excess = share[i, j] + share[i, h] - share[j, h] - own
                if excess <= least or (have == each and excess <= best[each - 1]):
                    continue
                a = have if have < each else each - 1
                while a > 0 and best[a - 1] < excess:
                    best[a] = best[a - 1]
                    for s in range(4):  # assigning a row to a row takes seconds to compile
                        found[count + a, s] = found[count + a - 1, s]
                    a -= 1
                best[a] = excess
                found[count + a, 0], found[count + a, 1] = number, i
                found[count + a, 2], found[count + a, 3] = j, h
                have = min(have + 1, each)
        count += have
    return count


@kernel
def _raise(triangles, multipliers, blocks, tall, step):
    """Let multipliers follow how much the triangles are broken."""
    for t in range(multipliers.size):
        b, p, q, r = triangles[t, 0], triangles[t, 1], triangles[t, 2], triangles[t, 3]
        i, j, h = tall[blocks.members[b, p]], tall[blocks.members[b, q]], tall[blocks.members[b, r]]
        convex = blocks.convex[b]
        excess = convex[p, q] / (i * j) + convex[p, r] / (i * h) - convex[q, r] / (j * h)
        excess -= convex[p, p] / (i * i)
        size = (i * j) ** -2 + (i * h) ** -2 + i**-4 + 0.5 * (j * h) ** -2
        multipliers[t] = max(0.0, multipliers[t] + step * excess / size)


@subkernel
def _add(charge, a, value):
    """Add a value to what a pair costs."""
    charge.added[a] += value
    charge.sizes[a] += abs(value)
    charge.terms[a] += 1


@kernel
def _charge(triangles, multipliers, place, charge):
    """Add what the multipliers make pairs cost."""
    for t in range(multipliers.size):
        b, p, q, r = triangles[t, 0], triangles[t, 1], triangles[t, 2], triangles[t, 3]
        if multipliers[t] > 0:
            _add(charge, place[b, p, q], multipliers[t])
            _add(charge, place[b, p, r], multipliers[t])
            _add(charge, place[b, p, p], -multipliers[t])
            _add(charge, place[b, q, r], -multipliers[t] / 2)  # half on either side
            _add(charge, place[b, r, q], -multipliers[t] / 2)


class Triangles:
    """The triangles of one region, and their multipliers."""

    def __init__(self, k: int, lists: Lists, blocks: Blocks, home: Any, tall: Floats) -> None:
        self._k, self._lists, self._blocks = k, lists, blocks
        self._home, self._tall = home, tall  # a block that holds the record, and its unit
        self.triangles, self.multipliers = np.empty((0, 4), np.int32), np.empty(0)

    def follow(self, turn: int, rho: float) -> None:
        """Seek triangles in some rounds; let the multipliers follow, and charge the pairs."""
        if turn < _FROM:
            return
        if turn % _EVERY == 0:
            self._seek()
        _raise(self.triangles, self.multipliers, self._blocks, self._tall, rho * _STEP)
        self._lists.added[:] = self.charge().added

    def charge(self) -> Charge:
        """What the triangles add to the costs of pairs."""
        pairs = len(self._lists.cost)
        charge = Charge(np.zeros(pairs), np.zeros(pairs), np.zeros(pairs, np.int32))
        _charge(self.triangles, self.multipliers, self._blocks.place, charge)
        return charge

    def _seek(self) -> None:
        """Drop triangles that cost nothing, and add those that are broken."""
        members = self._blocks.members
        kept = self.multipliers > 0
        found = [self.triangles[kept]]
        room = np.empty((members.shape[1] * _OF_A_RECORD, 4), np.int32)
        for number, block in enumerate(members):
            count = _broken(
                self._blocks.convex[number],
                block,
                self._tall,
                self._home,
                number,
                _BROKEN / self._k,
                _OF_A_RECORD,
                room,
            )
            found.append(room[:count].copy())
        together = np.concatenate(found)
        _, first = np.unique(together, axis=0, return_index=True)
        first.sort()  # those kept come first, and stay where they are
        multipliers = np.zeros(len(first))
        multipliers[: len(found[0])] = self.multipliers[kept]
        self.triangles, self.multipliers = together[first], multipliers
