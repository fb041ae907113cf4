"""optimal: a partition with the least SSE, proved, or as near to it as time allows.

Problem   Partition n records into groups of at least k, with the least possible SSE.
Idea      Choose, of all groups of k to 2k−1 records, those that hold each record once and cost least:
          set partitioning. A search from auto gives an upper bound. Column generation
          (bounds/column_generation.py) gives a lower one, cuts (bounds/cuts.py) raise it. A group whose
          reduced cost exceeds the gap between the two is in no better partition: all others are listed,
          and a branch and bound over the list (below) finds the best partition or proves that there is
          none better.
          When the list would be too long, the best of the groups seen so far is chosen instead,
          and the gap that stays open is reported.
Cost      Not polynomial: the problem is NP-hard for two or more columns.
Paper     Our own. Column generation for this problem: Aloise, Hansen, Rocha & Santi 2014; the cuts are
          those of Jepsen et al. 2008, the branching that of Ryan & Foster 1981.
Proof     The bound is proved in exact arithmetic for the scaled values: neither the linear
          nor the integer solver is believed (see column_generation.py, price_groups.py, IntegerProgram). A
          partition counts as optimal when the bound is within a part in 10⁹ of its SSE.
"""

from __future__ import annotations

import heapq
import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from microagg.algorithms.auto import auto
from microagg.algorithms.result import PROOF, Outcome
from microagg.base.formatting import plural
from microagg.base.progress import (
    DONE,
    STOP,
    State,
    new_state,
    part,
    rest_of,
    seconds_left,
    stop_after,
    tell_best,
)
from microagg.base.typing import Floats, Labels, Members
from microagg.bounds.by_effort import first_prices
from microagg.bounds.column_generation import ROUNDS_OF_CUTS, Generation
from microagg.bounds.cuts import NO_SETS, DualPrices, Sets, broken_cuts
from microagg.bounds.neighbour_bound import neighbour_bound
from microagg.bounds.program import GroupProgram, costs_of, solver_unit
from microagg.bounds.repeated_pricing import MANY, Pricer
from microagg.errors import InputError
from microagg.kernels.labels import canonical_labels, labels_of, sum_of_squares
from microagg.plan.settings import EXACT_K, check_count

_EASY = 100  # records up to which the start need not be the best
_GROUPS_LISTED = 150  # for each record
_BRANCHES_FOR_LARGE_K = 3000  # of pricing, for each record

# Records that are within reach for a k: from measurements on tables of 11 to 13 columns.
_REACH = {2: 5000, 3: 5000, 4: 2000, 5: 1500, 6: 400, 7: 200, 8: 100}
_REACH_BEYOND = 60


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
    nodes = check_count("nodes", nodes, least=0)
    n, reach = len(X), _REACH.get(k, _REACH_BEYOND)
    if n > reach and n >= 2 * k and k > 1:
        raise InputError(
            f"method 'optimal' with k={k} takes up to {plural(reach, 'record')} of several columns; the data "
            f"have {n:,}. Use method 'auto' with effort 'best', and microagg.lower_bound with effort "
            "'balanced' or 'best' for a proof of how near the optimum it is."
        )
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


# Branch and bound over a list of groups, to choose a partition from them.
#
# Problem   Of the groups given, choose those that hold each record once and cost least.
# Idea      The linear program bounds from below; broken cuts (bounds/cuts.py) sharpen it. Two records that
#           share a group by a fraction are put together in one branch and kept apart in the other
#           (Ryan & Foster 1981), which only takes groups off the list. The branch of lowest bound goes first.
# Safe      A node is closed by what its duals prove, not by the solver's word: reduced costs of
#           all groups of the node are recomputed from the duals, and what falls below 0 is subtracted for
#           as many groups as a partition can have, with an allowance for rounding.

_ROUNDS_OF_CUTS = 12
_CUTS_AT_ONCE = 100
_GROUPS_OF_HEURISTIC = 4  # for each record; with more, the integer solver takes minutes
_TIME_OF_HEURISTIC = 0.3  # of what is left
_WORTH_OF_A_NODE = 1e-3  # of its gap, which a round of cuts must close, or branching goes on


class _Node(NamedTuple):
    """A part of the choices, by pairs of records that share a group or do not."""

    bound: float
    number: int
    pairs: tuple[tuple[int, int, bool], ...]  # (record, record, together?)


class _NodeBound(NamedTuple):
    """What the linear program of a node says."""

    bound: float  # proved
    x: Floats
    reduced: Floats


class IntegerProgram:
    """The integer program over a list of groups of k or more of the records of a table.

    ``upper`` is what a partition at hand costs; ``lower`` is proved for choices from the list;
    ``best`` has the columns of a better partition, if one was found.
    """

    def __init__(
        self, X: Floats, k: int, members: Members, costs: Floats, upper: float, state: State
    ) -> None:
        self._state = state
        (self.n, self.d), self.k = X.shape, k
        self.groups, self.upper, self.lower = self.n // k, upper, 0.0
        self.best: Members = members[:0]
        self.nodes = 0
        self._load(members, costs, NO_SETS)

    def solve(self, most_nodes: int, heuristic_nodes: int) -> None:
        """Search until the best choice is proved, or time or nodes are used up."""
        heap = [_Node(0.0, 0, ())]
        closed = math.inf  # the lowest bound of the nodes that are closed
        while heap and heap[0].bound < self._goal():
            node = heapq.heappop(heap)
            look = self._look(node) if self.nodes < most_nodes else None
            if look is None:
                heapq.heappush(heap, node)
                break
            self.nodes += 1
            bound = max(node.bound, look.bound)
            if not node.pairs:
                self.lower = bound
                look = self._at_the_root(look, heuristic_nodes)
                if look is None:
                    heap.append(node._replace(bound=bound))
                    break
                bound = max(bound, look.bound)
            pair = None if bound >= self._goal() else self._pair(look.x)
            if pair is None:
                closed = min(closed, bound)
                continue
            for together in (True, False):
                number = 2 * self.nodes + together
                heapq.heappush(heap, _Node(bound, number, (*node.pairs, (*pair, together))))
            self.lower = max(self.lower, min(heap[0].bound, closed, self.upper))
        lowest = heap[0].bound if heap else math.inf
        self.lower = max(self.lower, min(closed, lowest, self.upper))

    def _goal(self) -> float:
        """Return the bound from which on a node holds nothing better."""
        return self.upper * (1 - PROOF / 4)

    def _load(self, members: Members, costs: Floats, sets: Sets) -> None:
        """Give the solver the groups and cuts as they are now."""
        self.members, self.costs = members, costs
        self._program = self._new_program(members, costs, presolve="off")
        self._column, position = np.nonzero(members >= 0)
        self._row = members[self._column, position]
        self._held = csr_matrix((len(costs), 0))
        self._add_cuts(sets)

    def _new_program(self, members: Members, costs: Floats, **options: Any) -> GroupProgram:
        """Make a program; records may stay out for more than all are worth, so it has a solution."""
        program = GroupProgram(self.n, members.shape[1], self._state, **options)
        program.add_alone(np.full(self.n, self.upper))
        program.add(members, costs)
        return program

    def _add_cuts(self, sets: Sets) -> None:
        if len(sets.need):
            held = self._program.cut(sets)
            self._held = hstack([self._held, held], format="csr")

    def _look(self, node: _Node) -> _NodeBound | None:
        """Solve a node's linear program, with cuts while they help; None when time is up."""
        allowed = np.ones(len(self.costs), dtype=bool)
        for i, j, together in node.pairs:
            first, second = (self.members == i).any(axis=1), (self.members == j).any(axis=1)
            allowed &= (first == second) if together else ~(first & second)
        self._program.allow(allowed)
        best: _NodeBound | None = None
        for turn in range(_ROUNDS_OF_CUTS if node.pairs else 5 * _ROUNDS_OF_CUTS):
            solved = self._program.relax()
            if solved is None:
                return best
            _, duals, penalties, x, _ = solved
            paid = np.bincount(self._column, duals[self._row], minlength=len(self.costs))
            reduced: Floats = self.costs - paid + self._held @ penalties
            bound = self._proved(duals, penalties, reduced[allowed])
            before = -math.inf if best is None else best.bound
            if best is None or bound >= before:
                best = _NodeBound(bound, x, reduced)
            self._try(np.flatnonzero(x > 0.5))
            gap = self.upper - before
            if bound >= self._goal() or (turn > 0 and bound - before < _WORTH_OF_A_NODE * gap):
                break
            sets = broken_cuts(self.n, self.k, self.members, x, _CUTS_AT_ONCE)
            if not len(sets.need):
                break
            self._add_cuts(sets)
        return best

    def _proved(self, duals: Floats, penalties: Floats, reduced: Floats) -> float:
        """Return the bound that duals prove for a node, from the reduced costs of its groups."""
        width = self.members.shape[1]
        paid = penalties * self._program.sets.most
        size = width * float(np.abs(duals).max()) + float(penalties.sum())
        size += float(self.costs.max(initial=0.0))
        terms_of_one = width * (self.d + 2) + len(penalties) + 8
        error = 4 * terms_of_one * 2.0**-53 * size
        low = np.sort(np.minimum(reduced - error, 0.0))[: self.groups]
        terms = [*duals.tolist(), *(-paid).tolist(), *low.tolist()]
        return math.fsum(terms) - 2.0**-50 * math.fsum(map(abs, terms))

    def _try(self, chosen: NDArray[np.intp]) -> None:
        """Take groups as the new best partition, if they are one and better."""
        rows = self.members[chosen]
        cover = np.bincount(rows[rows >= 0], minlength=self.n)
        cost = math.fsum(self.costs[chosen])
        if (cover == 1).all() and cost < self.upper:
            self.upper, self.best = cost, rows

    def _at_the_root(self, look: _NodeBound, heuristic_nodes: int) -> _NodeBound | None:
        """Search for a better partition, then drop the groups that are in none."""
        if len(self.costs) and heuristic_nodes:
            # The solver's own integer search chooses from the best groups; it proves nothing.
            few = np.sort(np.argsort(look.reduced, kind="stable")[: _GROUPS_OF_HEURISTIC * self.n])
            limits = {"mip_max_nodes": heuristic_nodes, "objective_bound": self.upper}
            program = self._new_program(self.members[few], self.costs[few], **limits)
            self._try(few[program.choose(_TIME_OF_HEURISTIC * seconds_left(self._state))])
        self._drop(look)
        if look.bound < self._goal() and len(self.costs):
            again = self._look(_Node(0.0, 0, ()))
            if again is None:
                return None
            self.lower = max(self.lower, min(again.bound, self.upper))
            self._drop(again)
            return self._look(_Node(0.0, 0, ()))
        return look

    def _drop(self, look: _NodeBound) -> None:
        """Take off the list the groups whose reduced cost alone exceeds the gap."""
        keep = look.reduced <= (self.upper - look.bound) * (1 + 1e-9) + 1e-9 * self.upper
        if not keep.all():
            self._load(self.members[keep], self.costs[keep], self._program.sets)

    def _pair(self, x: Floats) -> tuple[int, int] | None:
        """Return the pair of records that about half a group shares; None without fractions."""
        weights: dict[tuple[int, int], float] = {}
        for column in np.flatnonzero((x > 1e-7) & (x < 1 - 1e-7)):
            rows = [int(row) for row in self.members[column] if row >= 0]
            for a, i in enumerate(rows):
                for j in rows[a + 1 :]:
                    weights[i, j] = weights.get((i, j), 0.0) + float(x[column])
        split = {pair: weight for pair, weight in weights.items() if 1e-6 < weight < 1 - 1e-6}
        if not split:
            return None
        return min(split, key=lambda pair: (round(abs(split[pair] - 0.5), 9), pair))
