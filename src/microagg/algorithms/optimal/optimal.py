"""optimal: a partition with the least SSE, proved, or as near to it as time allows.

Problem   Partition n records into groups of at least k, with the least possible SSE.
Idea      Choose, of all groups of k to 2k−1 records, those that hold each record once and cost least:
          set partitioning. A search from auto gives an upper bound. Column generation
          (bounds/column_generation.py) gives a lower one, cuts (bounds/cuts.py) raise it. A group whose
          reduced cost exceeds the gap between the two is in no better partition: all others are listed,
          and a branch and bound over the list (branch.py) finds the best partition or proves that there is
          none better.
          When the list would be too long, the best of the groups seen so far is chosen instead,
          and the gap that stays open is reported.
Cost      Not polynomial: the problem is NP-hard for two or more columns.
Paper     Our own. Column generation for this problem: Aloise, Hansen, Rocha & Santi 2014; the cuts are
          those of Jepsen et al. 2008, the branching that of Ryan & Foster 1981.
Proof     The bound is proved in exact arithmetic for the scaled values: neither the linear
          nor the integer solver is believed (see column_generation.py, price_groups.py, branch.py). A
          partition counts as optimal when the bound is within a part in 10⁹ of its SSE.
"""

from __future__ import annotations

import time

import numpy as np

from microagg.algorithms.auto import auto
from microagg.algorithms.optimal.branch import IntegerProgram
from microagg.algorithms.result import PROOF, Outcome
from microagg.base.formatting import plural
from microagg.base.progress import (
    DONE,
    STOP,
    State,
    new_state,
    part,
    rest_of,
    stop_after,
    tell_best,
)
from microagg.base.typing import Floats, Labels, Members
from microagg.bounds.by_effort import first_prices
from microagg.bounds.column_generation import ROUNDS_OF_CUTS, Generation
from microagg.bounds.cuts import DualPrices
from microagg.bounds.neighbour_bound import neighbour_bound
from microagg.bounds.program import costs_of, solver_unit
from microagg.bounds.repeated_pricing import MANY, Pricer
from microagg.errors import InputError
from microagg.kernels.labels import canonical_labels, labels_of, sum_of_squares
from microagg.plan.settings import EXACT_K, check_count, check_time_limit

_EASY = 100  # records up to which the start need not be the best
_GROUPS_LISTED = 150  # for each record
_BRANCHES_FOR_LARGE_K = 3000  # of pricing, for each record

# Records that are within reach for a k: from measurements on tables of 11 to 13 columns.
_REACH = {2: 5000, 3: 5000, 4: 2000, 5: 1500, 6: 400, 7: 200, 8: 100}
_REACH_BEYOND = 60


def check_reach(n: int, k: int) -> None:
    """Refuse a problem that is out of reach."""
    reach = _REACH.get(k, _REACH_BEYOND)
    if n > reach and n >= 2 * k and k > 1:
        raise InputError(
            f"method 'optimal' with k={k} takes up to {plural(reach, 'record')} of several columns; the data "
            f"have {n:,}. Use method 'auto' with effort 'best', and microagg.lower_bound with effort "
            "'balanced' or 'best' for a proof of how near the optimum it is."
        )


def optimal(
    X: Floats,
    k: int,
    *,
    time_limit: float | None = None,
    random_state: int | None = 0,
    nodes: int = 10_000,
    state: State | None = None,
) -> Outcome:
    """Find a partition of least SSE, and prove how near the optimum it is.

    Parameters
    ----------
    time_limit : seconds after which the best so far is returned
    random_state : seed of the search that comes first
    nodes : parts into which branch and bound may split the problem; 0 for the bound at its root

    Returns
    -------
    Outcome: the group of each record, and a proved lower bound on the SSE.

    >>> X = np.array([[0.0, 0], [9, 9], [0, 1], [1, 0], [9, 8], [8, 9]])
    >>> optimal(X, 3).labels.tolist()
    [0, 1, 0, 0, 1, 1]
    """
    check_time_limit(time_limit)
    nodes = check_count("nodes", nodes, least=0)
    check_reach(len(X), k)
    state = new_state() if state is None else state
    if len(X) < 2 * k or k == 1:
        labels = np.arange(len(X)) if k == 1 else np.zeros(len(X), np.int64)
        # The only partition: its SSE, but for the rounding of n·d terms.
        outcome = Outcome(labels, sum_of_squares(X, labels) * (1 - 4 * (X.size + 9) * 2.0**-53))
    else:
        started = time.monotonic()
        search = _ExactSearch(X, k, _starts(X, k, time_limit, random_state, state), state)
        with stop_after(state, rest_of(time_limit, started)):
            outcome = search.run(nodes)
    state[DONE] = len(X)
    return outcome


def _starts(
    X: Floats, k: int, time_limit: float | None, random_state: int | None, state: State
) -> list[Labels]:
    """Partitions to begin with, the best first; when asked to stop, there is one at least."""
    seed = int(np.random.default_rng(random_state).integers(2**31))
    started = time.monotonic()
    partitions: list[Labels] = []
    for effort in ("best" if len(X) > _EASY else "balanced", "fast", "fast", "fast"):
        rest = rest_of(time_limit, started)
        if partitions and (rest == 0 or state[STOP]):
            break
        with part(state, 0.0 if partitions else 1 / 4):
            refined = auto(
                X,
                k,
                effort=effort,
                time_limit=None if rest is None else rest / 4,
                random_state=seed + len(partitions),
                state=state,
            )
        partitions.append(canonical_labels(refined.labels))
    return sorted(partitions, key=lambda labels: sum_of_squares(X, labels))


class _ExactSearch:
    """The best partition and the best bound so far."""

    def __init__(self, X: Floats, k: int, partitions: list[Labels], state: State) -> None:
        self.k, self.partitions, self.state = k, partitions, state
        self.depth = MANY if k <= EXACT_K else _BRANCHES_FOR_LARGE_K
        self.labels = partitions[0]
        upper = sum_of_squares(X, self.labels)
        self.unit = solver_unit(upper / (int(self.labels.max()) + 1))
        self.X, self.upper = X * self.unit, upper * self.unit**2
        self.lower = neighbour_bound(self.X, k)  # to its end, so that there is one when stopped
        self._tell()

    def _tell(self) -> None:
        tell_best(self.state, self.upper / self.unit**2, self.lower / self.unit**2)

    def run(self, nodes: int) -> Outcome:
        """Bound, cut, list, branch: until nothing is open or time is up."""
        if self._over():  # nothing is lost, or there is no time
            return self._proved()
        n = len(self.X)
        with part(self.state, 1 / 4):
            first = first_prices(self.X, self.k, self.state, 1 / 4)
        self._learn(first)
        generation = Generation(Pricer(self.X, self.k, self.state), self.partitions, first)
        generation.run(self.depth)
        self._learn(generation.best)
        self.state[DONE] = n // 2
        listed_at = np.inf
        for turn in range(ROUNDS_OF_CUTS + 1):
            if self._over():
                break
            if turn % 4 == 0:
                self._choose(generation.master.members, 1, 50)
            gap = self.upper - self.lower
            if gap < 0.8 * listed_at:
                listed_at = gap
                if self._settle(generation, nodes):
                    break
            worth = generation.cut(self.upper, self.depth)
            self._learn(generation.best)
            if not worth:
                if listed_at > gap:
                    self._settle(generation, nodes)
                break
            self.state[DONE] = n // 2 + (n // 2) * turn // (ROUNDS_OF_CUTS + 1)
        if not self._over():
            self._choose(generation.master.members, 1, 200)
        return self._proved()

    def _proved(self) -> Outcome:
        return Outcome(self.labels, max(min(self.lower, self.upper), 0.0) / self.unit**2)

    def _over(self) -> bool:
        closed = self.upper - self.lower <= PROOF / 2 * self.upper
        return bool(closed or self.state[STOP])

    def _learn(self, prices: DualPrices) -> None:
        self.lower = max(self.lower, prices.bound)
        self._tell()

    def _settle(self, generation: Generation, nodes: int) -> bool:
        """List all groups that a better partition can have, and choose; False if there are too many."""
        best = generation.best
        slack = (self.upper - best.bound) * (1 + 1e-9) + 1e-12 * self.upper
        groups = generation.pricer.within(
            best.duals, slack, _GROUPS_LISTED * len(self.X), best.cuts, self.depth
        )
        if groups is None:
            return False
        program = self._choose(groups.members, nodes, 200)
        self.lower = max(self.lower, min(program.lower, self.upper))
        self._tell()
        return True

    def _choose(self, members: Members, nodes: int, heuristic_nodes: int) -> IntegerProgram:
        """Choose the best partition from a list of groups; keep it if it is better."""
        costs = costs_of(self.X, members)
        program = IntegerProgram(self.X, self.k, members, costs, self.upper, self.state)
        program.solve(max(nodes, 1), heuristic_nodes)
        if len(program.best):
            labels = canonical_labels(labels_of(program.best, len(self.X)))
            sse = sum_of_squares(self.X, labels)
            if sse < self.upper:
                self.labels, self.upper = labels, sse
                self._tell()
        return program
