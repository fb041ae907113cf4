"""The best groups of one nominal column: exact, where few levels are rare.

Problem   n records have one of M categories. A group with a₁, …, a_M records of each, s in all, has an SSE
          proportional to f(a) = s − Σa²/s. Partition the records into groups of at least k with the
          least sum of f.
Idea      Only counts matter, not which records. Levels with k records or more can stay by themselves at
          no loss; rare ones need company. A search over what is left of each level, with a table of what
          was solved before, forms one mixed group at a time.
Why few   f is concave, f(ta) = t·f(a), and so f(a) + f(b) ≤ f(a + b). Take a best partition with the most
groups    groups: none has 2k or more records, since its halves would be one group more. The counts of each
          level in each group are a point of a transport polytope (levels have their totals, groups at
          least k), and a concave sum is least at a corner of it. At a corner counts are whole, and the graph
          that joins a level with the groups that have some of it has no cycle. In each of its trees the
          group farthest from the root shares one level at most with other mixed groups: of all
          its other levels it has what is left of them, or leaves k or more, which stay pure. So the
          search need only form such groups.
Lenders   f rises with every record that is added to a group. So rare levels want no more company than fills
          up to k, of one level only. If such lenders were never short, the corner would have one group
          at most in each tree that borrows or has more than k; let it be the root. All others then are k
          records of rare levels, all of them whole but one, and the root has whole levels only. What
          is found so is a lower bound on every partition, since borrowed records of several levels become
          cheaper when they are of one. If the common levels can lend it (each group from one
          level, which keeps k or nothing was asked of it), it is a best partition. Else the search is
          done once more with all levels as they are.
Pruning   A record of a level with r < k records left loses at least 1 − r/k. Candidates whose loss with this
          bound on the rest is not below the best so far are left out.
Numbers   All losses are whole multiples of 1/lcm(k, …, 2k−1), and are computed as whole numbers: no rounding.
Cost      Exponential in the number of rare levels, at worst; the number of candidates is limited, and where
          it does not suffice the answer is None. Which groups are found never depends on time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Labels

STEPS = 100_000  # candidates that a search may look at, about a second
_MOST_SHORT = 400  # rare records; the search is as deep as there are groups of them

State = tuple[int, ...]  # what is left of each level, descending
Taken = tuple[tuple[int, int], ...]  # pairs: left of a level, taken of it


class _MixedGroup(NamedTuple):
    taken: Taken
    borrowed: int


class _TooLarge(Exception):  # noqa: N818 - an answer, not an error
    """The search would take too many steps."""


def nominal_exact(levels: Labels, k: int, steps: int = STEPS) -> Labels | None:
    """Partition the records of one nominal column with the least SSE; None if that takes too long.

    Parameters
    ----------
    levels : (n,) level number of each record; never written to
    k : least size of a group
    steps : candidates that are looked at, at most

    Returns
    -------
    (n,) int64, the caller's; records of one level go to groups in row order

    >>> nominal_exact(np.array([0, 0, 1, 0, 2, 0, 0]), 3).tolist()
    [0, 1, 0, 1, 0, 1, 1]
    """
    counts = np.bincount(levels)
    solution = best_counts(counts.tolist(), k, steps)
    if solution is None:
        return None
    labels = np.empty(len(levels), dtype=np.int64)
    rows = np.split(np.argsort(levels, kind="stable"), np.cumsum(counts)[:-1])
    used = [0] * len(counts)
    for number, group in enumerate(solution):
        for level, count in enumerate(group):
            labels[rows[level][used[level] : used[level] + count]] = number
            used[level] += count
    return labels


def best_counts(counts: Sequence[int], k: int, steps: int = STEPS) -> list[list[int]] | None:
    """Find groups of least SSE as records of each level, mixed ones first; None if that takes too long.

    >>> best_counts([1, 1, 5], 3)
    [[1, 1, 1], [0, 0, 4]]
    >>> best_counts([2, 2], 3)
    [[2, 2]]
    """
    counts = list(counts)
    rare = [count for count in counts if 0 < count < k]
    if sum(rare) > _MOST_SHORT:
        return None
    mixed: list[list[int]] | None = []
    if rare:
        try:
            mixed = _lent(counts, k, steps) if len(rare) < sum(c > 0 for c in counts) else None
            if mixed is None:
                mixed = _MixedGroupSearch(k, steps, lenders=False).run(counts)
        except _TooLarge:
            return None
    assert mixed is not None, "n ≥ k records always have a partition"
    left = [count - sum(group[level] for group in mixed) for level, count in enumerate(counts)]
    for pure, count in enumerate(left):
        groups = count // k  # as many as there can be; their sizes differ by one at most
        for at in range(groups):
            size = (count + at) // groups
            mixed.append([size if level == pure else 0 for level in range(len(counts))])
    return mixed


def _lent(counts: list[int], k: int, steps: int) -> list[list[int]] | None:
    """Mixed groups where rare levels borrow from common ones; None if those have too little to lend."""
    rare = [count if count < k else 0 for count in counts]
    mixed = _MixedGroupSearch(k, steps, lenders=True).run(rare)
    assert mixed is not None, "with lenders every state has groups"
    spare = [count - k if count >= k else 0 for count in counts]
    # Large loans first, each from the level that has most to spare.
    wanted = sorted(((k - sum(group), at) for at, group in enumerate(mixed)), reverse=True)
    for loan, at in wanted:
        if loan <= 0:
            continue
        lender = max(range(len(spare)), key=lambda level: (spare[level], -level))
        if spare[lender] < loan:
            return None
        spare[lender] -= loan
        mixed[at][lender] += loan
    return mixed


class _MixedGroupSearch:
    """Best mixed groups for what is left of each level."""

    def __init__(self, k: int, steps: int, lenders: bool) -> None:
        self.k, self.steps, self.lenders = k, steps, lenders
        self.unit = math.lcm(*range(k, 2 * k))
        self.solved: dict[State, tuple[float, _MixedGroup | None, State]] = {}

    def run(self, counts: Sequence[int]) -> list[list[int]] | None:
        """Best mixed groups as records of each level, borrowed ones not counted; None: there are none."""
        state: State = tuple(sorted((c for c in counts if c), reverse=True))
        if math.isinf(self.least(state)):
            return None
        left = list(counts)
        member_lists: list[list[int]] = []
        while True:
            _, group, state = self.solved[state]
            if group is None:
                return member_lists
            members = [0] * len(left)
            for there, count in group.taken:
                level = next(i for i, c in enumerate(left) if c == there and not members[i])
                members[level] = count
            left = [before - count for before, count in zip(left, members, strict=True)]
            member_lists.append(members)

    def least(self, state: State) -> float:
        """Least loss, in whole units; infinite if what is left cannot be grouped."""
        known = self.solved.get(state)
        if known is not None:
            return known[0]
        short = [left for left in state if left < self.k]
        best: tuple[float, _MixedGroup | None, State] = (math.inf, None, ())
        if not short:
            best = (0, None, ())
        elif self.lenders or sum(state) >= self.k:
            candidates = []
            for group in self.groups(state):
                rest = _without(state, group.taken)
                cost = self.cost(group)
                candidates.append((cost + self.bound(rest), cost, rest, group))
            candidates.sort()
            for bound, cost, rest, group in candidates:
                if bound >= best[0]:
                    break
                loss = cost + self.least(rest)
                if loss < best[0]:
                    best = loss, group, rest
        self.solved[state] = best
        return best[0]

    def cost(self, group: _MixedGroup) -> int:
        size = group.borrowed + sum(count for _, count in group.taken)
        squares = group.borrowed**2 + sum(count**2 for _, count in group.taken)
        return self.unit * size - squares * (self.unit // size)

    def bound(self, state: State) -> int:
        each = self.unit // self.k
        return sum(each * left * (self.k - left) for left in state if left < self.k)

    def groups(self, state: State) -> Iterator[_MixedGroup]:
        """Candidates for the group farthest from the root of its tree."""
        k = self.k
        for choice in _choices(state, 2 * k - 1, k, shared=not self.lenders):
            self.steps -= 1
            if self.steps < 0:
                raise _TooLarge
            size = sum(count for _, count in choice)
            if self.lenders:
                yield _MixedGroup(choice, max(0, k - size))
            elif len(choice) > 1 and size >= k:
                yield _MixedGroup(choice, 0)
            if self.lenders and size < k:  # and filled up by a part of one more level
                for left in sorted(set(_without(state, choice))):
                    if left > k - size:
                        yield _MixedGroup((*choice, (left, k - size)), 0)


def _choices(
    state: State, room: int, k: int, shared: bool, at: int = 0, choice: Taken = ()
) -> Iterator[Taken]:
    """Ways to take up to ``room`` records of levels: all that is left, or so that k or more are left.

    With ``shared``, any number may be taken of one of the levels. From the level ``at`` on, others are added
    to the ``choice`` made so far.
    """
    if choice:
        yield choice
    for index in range(at, len(state)):
        left, limit = state[index], room
        if index > at and left == state[index - 1]:
            continue  # of equal levels the first ones are taken, and the most of them
        if index == at and choice and choice[-1][0] == left:
            limit = min(room, choice[-1][1])
        for count in range(min(left, limit), 0, -1):
            partly = 0 < left - count < k
            if shared or not partly:
                rest, more = shared and not partly, (*choice, (left, count))
                yield from _choices(state, room - count, k, rest, index + 1, more)


def _without(state: State, choice: Taken) -> State:
    """Return what remains of the levels."""
    left = list(state)
    for there, count in choice:
        left.remove(there)
        if there > count:
            left.append(there - count)
    return tuple(sorted(left, reverse=True))
