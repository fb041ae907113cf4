"""Inequalities that the shares of all partitions keep, which raise the semidefinite bound.

Charge    An inequality on Z (semidefinite.py) with a multiplier y ≥ 0 makes pairs dearer or cheaper: what
          groups pay then, less y times its right side, is no more than their SSE. This holds
          for any y, so that none must be right.
Search    Those that the semidefinite copy breaks most, a few for each record. Multipliers follow
          what is broken, and inequalities that cost nothing are dropped.
Kinds     stars.py and islands.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.bounds.rows import Blocks, Lists
from microagg.compile.jit import kernel, lean_subkernel

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
