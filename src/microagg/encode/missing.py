"""Missing values: where they are is part of what the records of a group share.

By the policy ``pattern`` groups form within one pattern of missingness, so that nothing is imputed. A
pattern that fewer than k units have is joined with another: values are blanked until both are the same, and
if the other is common, only as many of its records join as are needed.

By ``majority`` and ``fill`` groups form over all patterns, and each group has a value in a column if most of
its records have one, or if any has.

The state of a value is 0 if it is there, 1 if it is missing, 2 and more if it is missing with a code.

The search for the joins that blank the fewest values:

Problem   Patterns (rows of states) with the number of records and units of each. Records may be given the
          common part of two patterns, which is missing wherever they differ. Each pattern must end with no
          record or with k units; the fewest values are to be blanked. It is a clustering problem, hard
          in general.
Idea      Step by step a pattern that is too rare joins another one: as a whole, or of the other only as many
          records as are needed, if it can spare them. The step with the fewest blanked values is taken, less
          what the other would have to pay by itself if it is helped, too, and less what the pattern would
          have to pay for its second best step. Of equal ones it is that with the rarest or the most common
          other pattern, and the rarest pattern may always go first: the rule that blanks the fewest values.
Cost      O(r²·p·d) for r rare patterns out of p, d columns, whatever the number of records; with many
          patterns, of which only the rarest is looked at in each step, O(r·p·d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.strata import count_units
from microagg.kernels.labels import combine

_MISSING = 1
_WORK = 30_000_000  # comparisons of values up to which all rules are tried
_RULES = ((False, 1), (False, -1), (True, 1))
"""Whether the rarest pattern goes first; of equal steps, 1: with the rarest other, −1: the most common."""


class JoinedPatterns(NamedTuple):
    """Patterns after the rare ones were joined."""

    states: Labels  # (n, d) of the values, blanked ones as missing
    cells: Labels  # (n,) number of the stratum and pattern of each record
    blanked: int  # values, or codes of missing ones, that are released as missing


def join_patterns(
    states: Labels,
    strata: Labels,
    k: int,
    units: Labels | None = None,
    near: Floats | None = None,
    enough: Callable[[Labels], bool] | None = None,
    some_of: NDArray[np.bool_] | None = None,
) -> JoinedPatterns:
    """Join patterns of missingness within strata until the records of each can be a group.

    Parameters
    ----------
    states : (n, d) state of each value
    strata : (n,) stratum of each record, each with at least k units; a whole stratum can be a group
    k : least number of units that share a pattern
    units : (n,) unit of each record; None: each record is one
    near : (n, c) coordinates: records that join a pattern are those nearest to it
    enough : whether the records of some rows can be a group, if that takes more than k units: whole
        patterns are then joined further
    some_of : (n,) whether a record is of a pattern with more records than are given: its records that stay
        as they are count as enough, though others may join them; None: all records are given

    >>> states = np.array([[0, 0]] * 5 + [[0, 1]])
    >>> joined = join_patterns(states, np.zeros(6, dtype=int), 2)
    >>> joined.blanked, joined.states.tolist()[3:]
    (1, [[0, 0], [0, 0], [0, 1]])
    >>> states, strata = np.array([[0], [0], [1], [1]]), np.zeros(4, dtype=int)
    >>> join_patterns(states, strata, 2, enough=lambda rows: len(rows) > 2).blanked
    2
    """
    joined = states.copy()
    cells = np.zeros(len(states), dtype=np.int64)
    count = 0
    for rows in rows_of_each(strata):
        units_here = None if units is None else units[rows]
        near_here = None if near is None else near[rows]
        joined[rows], numbers = _join(states[rows], k, units_here, near_here)
        cells[rows] = count + numbers
        count += int(numbers.max()) + 1
    if some_of is not None:
        some_of = some_of & (joined == states).all(axis=1)
    # Whole patterns are joined until the records of each can be a group.
    waiting = [] if enough is None else list(range(count))
    while waiting:
        cell = waiting.pop()
        rows = np.flatnonzero(cells == cell)
        is_some = some_of is not None and some_of[rows].any()
        if not len(rows) or is_some or enough is None or enough(rows):
            continue
        others = np.unique(cells[(strata == strata[rows[0]]) & (cells != cell)])
        pattern = joined[rows[0]]
        first = np.array([int(np.argmax(cells == other)) for other in others], dtype=np.int64)
        both = np.where(joined[first] == pattern, pattern, _MISSING)
        changes = (both != joined[first]).sum(axis=1)
        cost = (both != pattern).sum(axis=1) * len(rows) + changes * np.bincount(cells)[others]
        allowed = np.ones(len(others), dtype=bool)
        if some_of is not None:
            stays = np.array([some_of[cells == other].any() for other in others], dtype=bool)
            allowed = ~stays | (changes == 0)
        if not allowed.any():
            continue
        best = int(np.argmin(np.where(allowed, cost, np.iinfo(np.int64).max)))
        cells[rows] = others[best]
        joined[cells == others[best]] = both[best]
        waiting.append(int(others[best]))
    cells = np.unique(cells, return_inverse=True)[1].reshape(-1)
    return JoinedPatterns(joined, cells, int(np.count_nonzero(joined != states)))


def rows_of_each(cells: Labels) -> list[Labels]:
    """List the rows of each cell; ``cells`` has the number of that of each record.

    >>> [rows.tolist() for rows in rows_of_each(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    order = np.argsort(cells, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)


def distinct_rows(states: Labels) -> tuple[Labels, Labels]:
    """Return the distinct rows of ``states``, small whole numbers, ascending, and which of them each row is.

    >>> rows, which = distinct_rows(np.array([[1, 0], [0, 2], [1, 0]]))
    >>> rows.tolist(), which.tolist()
    ([[0, 2], [1, 0]], [1, 0, 1])
    """
    if not len(states):
        return states, np.zeros(0, dtype=np.int64)
    code = combine(list(states.T))
    first = np.empty(int(code.max()) + 1, dtype=np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    order = np.lexsort(states[first].T[::-1])
    return states[first[order]], np.argsort(order)[code]


def group_states(states: Labels, labels: Labels, g: int, policy: str) -> Labels:
    """Return the state of each column in the release of each group, shape (g, d).

    A code is released only if all records of the group have it.

    Parameters
    ----------
    states : (n, d) int64; 0 is a value, others are codes of missing values
    labels : (n,) int64, groups 0..g−1
    g : number of groups
    policy : of missing values, as in a plan

    >>> states = np.array([[0], [0], [1], [2], [2]])
    >>> group_states(states, np.array([0, 0, 0, 1, 1]), 2, "majority").tolist()
    [[0], [2]]
    """
    by_group = np.empty((g, states.shape[1]), dtype=np.int64)
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
        by_group[:, j] = np.where(has_value, 0, np.where(coded == 0, _MISSING, coded))
    return by_group


def _join(
    states: Labels, k: int, units: Labels | None, near: Floats | None
) -> tuple[Labels, Labels]:
    """Join the patterns of one stratum; return the states and the pattern of each record."""
    patterns, which = distinct_rows(states)
    rows, shared = [[cell] for cell in rows_of_each(which)], count_units(which, units)
    rare = np.flatnonzero(shared < k).tolist()
    people: dict[int, frozenset[int]] | None = None
    if units is not None:
        people = {p: frozenset(units[rows[p][0]].tolist()) for p in rare}
    rules = _RULES if len(rare) ** 2 * patterns.size <= _WORK else (None,)
    tried = [_Joining(patterns, np.bincount(which), shared, people, k).run(rule) for rule in rules]
    best = min(tried, key=lambda joining: joining.blanked)
    for pattern, other, lent, to in best.steps:
        moved, rows[pattern] = rows[pattern], []
        if lent is None:
            moved, rows[other] = moved + rows[other], []
        else:
            leavers, candidates = np.concatenate(moved), np.sort(np.concatenate(rows[other]))
            lenders = _nearest(leavers, candidates, lent, units, near)
            moved, rows[other] = [leavers, lenders], [candidates[~np.isin(candidates, lenders)]]
        if to == len(rows):
            rows.append([])
        rows[to] = rows[to] + moved
    labels = np.empty(len(states), dtype=np.int64)
    for number, cell in enumerate(rows):
        for some in cell:
            labels[some] = number
    return best.states[labels], np.unique(labels, return_inverse=True)[1].reshape(-1)


class _Joining:
    """The patterns of a stratum while rare ones are joined."""

    def __init__(
        self,
        states: Labels,
        sizes: Labels,
        shared: Labels,
        people: Mapping[int, frozenset[int]] | None,
        k: int,
    ) -> None:
        self.k, self.states, self.blanked = k, states, 0
        self.sizes = sizes.copy()  # records
        self.shared = shared.copy()  # units, or at least so many
        self.by_units = people is not None
        self.people = dict(people or {})  # the units of patterns, where they are known one by one
        self.steps: list[tuple[int, int, int | None, int]] = []
        """A pattern, the other, how many of its records move (None: all), and the pattern afterwards."""

    def run(self, rule: tuple[bool, int] | None) -> _Joining:
        """Take steps by one of the rules until no pattern is too rare; the same object comes back.

        Without a rule only the rarest pattern is looked at, which takes less time.
        """
        rarest_first, tie = rule or (True, -1)
        while True:
            rare = np.flatnonzero((self.sizes > 0) & (self.shared < self.k))
            if not len(rare) or np.count_nonzero(self.sizes) == 1:
                return self
            rarest = np.lexsort((rare, self.sizes[rare], self.shared[rare]))[:1]
            costs, lends = self.costs(rare if rule else rare[rarest])
            value, tried = costs, rarest if rarest_first else np.arange(len(rare))
            if rule:
                value = costs[tried] - self.saved(rare, costs, tried)
                costs, lends = costs[tried], lends[tried]
            order = np.tile(tie * self.shared, len(tried))
            best = np.lexsort((order, value.reshape(-1)))[0]
            at, other = divmod(int(best), len(self.sizes))
            self.blanked += int(costs[at, other])
            self.join(int(rare[tried[at]]), other, bool(lends[at, other]))

    def costs(self, tried: Labels) -> tuple[Floats, NDArray[np.bool_]]:
        """Count the values blanked by joining each of some patterns (rows) with each of all (columns).

        Infinite for the pattern itself and for those without records. Also returns whether the other lends
        some records instead of joining as a whole.
        """
        rare, all_ = self.states[tried][:, None, :], self.states[None, :, :]
        differ = rare != all_
        of_own = (differ & (rare != _MISSING)).sum(axis=2) * self.sizes[tried][:, None]
        of_other = (differ & (all_ != _MISSING)).sum(axis=2)
        need = (self.k - self.shared[tried])[:, None]
        enough = self.shared[None, :] >= self.k + need
        if not self.by_units:  # a rare one lends, too, so that its records go to several
            enough |= (self.shared < self.k) & (self.shared > need)
        lends = enough & (of_other > 0)
        total = of_own + of_other * np.where(lends, need, self.sizes[None, :])
        total = total.astype(np.float64)
        total[:, self.sizes == 0] = np.inf
        total[np.arange(len(tried)), tried] = np.inf
        return total, lends

    def saved(self, rare: Labels, costs: Floats, tried: Labels) -> Floats:
        """Return what need not be paid later for each join of some of the rare patterns (rows) with any.

        ``costs`` are those of all rare patterns; ``tried`` are the places of some among them.
        """
        least, second = np.partition(costs, 1, axis=1)[:, :2].T
        cheapest = costs.argmin(axis=1)
        saving = np.zeros((len(tried), costs.shape[1]))
        saving += np.where(np.isfinite(second), second, 0.0)[tried, None]
        for at, p in enumerate(rare[tried].tolist()):
            alone = np.where(cheapest == p, second, least)  # the cost of each rare one by itself
            helped = (self.shared[rare] + self.shared[p] >= self.k) & np.isfinite(alone)
            if self.by_units:
                helped &= [len(self.people[q] | self.people[p]) >= self.k for q in rare.tolist()]
            saving[at, rare] += np.where(helped, alone, 0.0)
        return saving

    def join(self, p: int, other: int, lends: bool) -> None:
        """Take a step: give the records of p, and of the other all or those it lends, their common part."""
        target = np.where(self.states[p] == self.states[other], self.states[p], _MISSING)
        same = np.flatnonzero((self.states == target).all(axis=1))
        to = int(same[0]) if len(same) else len(self.states)
        if not len(same):
            self.states = np.vstack([self.states, target])
            self.sizes, self.shared = np.append(self.sizes, 0), np.append(self.shared, 0)
            self.people[to] = frozenset()
        known = [self.people.get(p), self.people.get(other)]
        shared, size = int(self.shared[[p, other]].max()), int(self.sizes[[p, other]].sum())
        need = int(self.k - self.shared[p])
        self.steps.append((p, other, need if lends else None, to))
        if lends:
            shared, size, known = self.k, int(self.sizes[p]) + need, [None]
            self.sizes[other] -= need
            self.shared[other] -= need  # at least: a unit may have other records there
            self.people.pop(other, None)
        for left in (p,) if lends else (p, other):
            self.sizes[left] = self.shared[left] = 0
            self.people[left] = frozenset()
        known.append(self.people.get(to))
        people = [units for units in known if units is not None]
        self.sizes[to] += size
        if not self.by_units:
            self.shared[to] = self.sizes[to]
        elif len(people) == len(known):
            self.people[to] = frozenset().union(*people)
            self.shared[to] = len(self.people[to])
        else:
            self.people.pop(to, None)
            self.shared[to] = max(int(self.shared[to]), shared)


def _nearest(
    leavers: Labels, candidates: Labels, count: int, units: Labels | None, near: Floats | None
) -> Labels:
    """Return the candidates nearest to the mean of some records, each of a unit that these lack."""
    if units is not None:
        candidates = candidates[~np.isin(units[candidates], units[leavers])]
    if near is not None:
        distance = np.square(near[candidates] - near[leavers].mean(axis=0)).sum(axis=1)
        candidates = candidates[np.argsort(distance, kind="stable")]
    if units is None:
        return candidates[:count]
    first = np.sort(np.unique(units[candidates], return_index=True)[1])
    return candidates[first[:count]]
