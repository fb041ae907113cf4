"""Which patterns of missing values join which, so that each is shared by k units and few values are blanked.

Problem   Patterns (rows of states) with the number of records and units of each. Records may be given the
          common part of two patterns, which is missing wherever they differ. Each pattern must end with no
          record or with k units; the fewest values are to be blanked. It is a clustering problem, hard
          in general.
Idea      Step by step a pattern that is too rare joins another one: a rare one as a whole; of a common one
          only as many records as are needed, if it keeps k. Rules say which step is next: the rarest
          pattern or the cheapest step first; by what it costs, or less what the other would have to pay
          by itself, where both are helped at once; and whether a rare pattern may lend, too, so that its
          records go to several. The plan that blanks the fewest values is taken.
Cost      O(r²·p·d) for r rare patterns out of p, d columns, whatever the number of records. With many
          patterns only the costs of the rarest are looked at in each step, O(r·p·d).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Labels

_MISSING = 1
_WORK = 30_000_000  # comparisons of values up to which all rules are tried


class Patterns(NamedTuple):
    """The patterns of a stratum: states, records and units."""

    states: Labels  # (p, d)
    sizes: Labels  # (p,) records
    shared: Labels  # (p,) units
    people: Mapping[int, frozenset[int]]  # units of each rare pattern; empty: records are units


class Join(NamedTuple):
    """One join."""

    pattern: int  # all of whose records move
    other: int  # all of whose records move, or some
    lent: int | None  # how many of them; None: all
    to: int  # pattern that they have afterwards


class JoinPlan(NamedTuple):
    """All joins of a stratum."""

    steps: list[Join]
    patterns: Labels  # those that there were, and new ones after them
    blanked: int


def best_plan(given: Patterns, k: int) -> JoinPlan:
    """Find joins after which each pattern is shared by k units.

    >>> states = np.array([[0, 0], [0, 1], [1, 0]])
    >>> plan = best_plan(Patterns(states, np.array([1, 4, 2]), np.array([1, 4, 2]), {}), 3)
    >>> plan.blanked, plan.steps
    (1, [Join(pattern=0, other=2, lent=None, to=2)])
    """
    rare = int((given.shared < k).sum())
    if rare * rare * given.states.size > _WORK:
        return _Joining(given, k).run(rarest_first=True, credit=False)
    plans = [
        _Joining(given, k, split).run(rarest_first, credit)
        for split in ((False,) if given.people else (False, True))
        for rarest_first in (True, False)
        for credit in (True, False)
    ]
    return min(plans, key=lambda plan: plan.blanked)


class _JoinCosts(NamedTuple):
    """Values blanked by joining each of some patterns (rows) with each of all patterns (columns)."""

    total: NDArray[np.float64]  # infinite for the pattern itself and for those without records
    lends: NDArray[np.bool_]  # whether the other lends some records instead of joining as a whole


class _Joining:
    """The patterns while they are joined."""

    def __init__(self, given: Patterns, k: int, split: bool = False) -> None:
        self.k, self.split = k, split
        self.states, self.sizes, self.shared = given.states, given.sizes.copy(), given.shared.copy()
        self.by_units = bool(given.people)
        self.people = dict(given.people)
        self.steps: list[Join] = []
        self.blanked = 0

    def run(self, rarest_first: bool, credit: bool) -> JoinPlan:
        """Take steps until no pattern is too rare."""
        while True:
            there = self.sizes > 0
            rare = np.flatnonzero(there & (self.shared < self.k))
            if not len(rare) or there.sum() == 1:
                return JoinPlan(self.steps, self.states, self.blanked)
            if rarest_first:
                first = np.lexsort((rare, self.sizes[rare], self.shared[rare]))[0]
                tried = rare[first : first + 1]
            else:
                tried = rare
            costs = self.costs(tried)
            value = costs.total
            if credit:
                value = value - self.spared(tried, rare, costs)
            if credit and not rarest_first:  # by how much better than what it would take later
                later = _two_least(costs.total)[1][:, None]
                value = value - np.where(np.isfinite(later), later, 0.0)
            best = np.lexsort((np.tile(-self.shared, len(tried)), value.reshape(-1)))[0]
            at, other = divmod(int(best), len(self.sizes))
            self.blanked += int(costs.total[at, other])
            self.join(int(tried[at]), other, bool(costs.lends[at, other]))

    def costs(self, tried: Labels) -> _JoinCosts:
        """Count the values that each join would blank."""
        rare, all_ = self.states[tried][:, None, :], self.states[None, :, :]
        differ = rare != all_
        of_own = (differ & (rare != _MISSING)).sum(axis=2) * self.sizes[tried][:, None]
        of_other = (differ & (all_ != _MISSING)).sum(axis=2)
        need = (self.k - self.shared[tried])[:, None]
        enough = self.shared[None, :] >= self.k + need
        if self.split:
            enough |= (self.shared < self.k) & (self.shared > need)
        lends = enough & (of_other > 0)
        total = of_own + of_other * np.where(lends, need, self.sizes[None, :])
        total = total.astype(np.float64)
        total[:, self.sizes == 0] = np.inf
        total[np.arange(len(tried)), tried] = np.inf
        return _JoinCosts(total, lends)

    def spared(self, tried: Labels, rare: Labels, costs: _JoinCosts) -> NDArray[np.float64]:
        """Return what the other pattern would have cost by itself, if the join helps it too."""
        saving = np.zeros(costs.total.shape)
        others = self.costs(rare).total if len(tried) < len(rare) else costs.total
        least, second = _two_least(others)
        cheapest = others.argmin(axis=1)
        for at, p in enumerate(tried):
            alone = np.where(cheapest == p, second, least)
            enough = self.shared[rare] + self.shared[p] >= self.k
            if self.by_units:
                enough &= [len(self.people[int(q)] | self.people[int(p)]) >= self.k for q in rare]
            saving[at, rare] = np.where(enough & np.isfinite(alone), alone, 0.0)
        return saving

    def join(self, p: int, other: int, lends: bool) -> None:
        """Take a step."""
        target = np.where(self.states[p] == self.states[other], self.states[p], _MISSING)
        same = np.flatnonzero((self.states == target).all(axis=1))
        if len(same):
            to = int(same[0])
        else:
            to = len(self.states)
            self.states = np.vstack([self.states, target])
            self.sizes, self.shared = np.append(self.sizes, 0), np.append(self.shared, 0)
            self.people[to] = frozenset()
        need = int(self.k - self.shared[p])
        self.steps.append(Join(p, other, need if lends else None, to))
        if lends:
            size, shared = int(self.sizes[p]) + need, self.k
            self.sizes[other] -= need
            self.shared[other] -= need  # at least: a unit may have other records there
            self.empty(p)
            self.add(to, size, shared, None)
            return
        size = int(self.sizes[p] + self.sizes[other])
        of_both = [self.people.get(at) for at in (p, other)]
        shared, people = max(int(self.shared[p]), int(self.shared[other])), None
        if not self.by_units:
            shared = size
        elif of_both[0] is not None and of_both[1] is not None:
            people = of_both[0] | of_both[1]
            shared = len(people)
        self.empty(p)
        self.empty(other)
        self.add(to, size, shared, people)

    def empty(self, at: int) -> None:
        self.sizes[at] = self.shared[at] = 0
        self.people[at] = frozenset()

    def add(self, to: int, size: int, shared: int, people: frozenset[int] | None) -> None:
        """Add records to a pattern; ``people`` is None if their units are not known one by one."""
        before = self.people.get(to)
        self.sizes[to] += size
        if not self.by_units:
            self.shared[to] += shared
        elif people is not None and before is not None:
            self.people[to] = before | people
            self.shared[to] = len(self.people[to])
        else:
            self.people.pop(to, None)
            self.shared[to] = max(int(self.shared[to]), shared)


def _two_least(costs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and second least of each row."""
    if costs.shape[1] < 2:
        return costs[:, 0], np.full(len(costs), np.inf)
    two = np.partition(costs, 1, axis=1)
    return two[:, 0], two[:, 1]
