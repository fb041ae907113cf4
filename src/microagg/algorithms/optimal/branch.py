"""Branch and bound over a list of groups, to choose a partition from them.

Problem   Of the groups given, choose those that hold each record once and cost least.
Idea      The linear program bounds from below; broken cuts (bounds/cuts.py) sharpen it. Two records that
          share a group by a fraction are put together in one branch and kept apart in the other
          (Ryan & Foster 1981), which only takes groups off the list. The branch of lowest bound goes first.
Safe      A node is closed by what its duals prove, not by the solver's word: reduced costs of
          all groups of the node are recomputed from the duals, and what falls below 0 is subtracted for
          as many groups as a partition can have, with an allowance for rounding.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from microagg.algorithms.result import PROOF
from microagg.base.progress import State, seconds_left
from microagg.base.typing import Floats, Members
from microagg.bounds.cuts import NO_SETS, Sets, broken_cuts
from microagg.bounds.program import GroupProgram

_ROUNDS_OF_CUTS = 12
_CUTS_AT_ONCE = 100
_GROUPS_OF_HEURISTIC = 4  # for each record; with more, the integer solver takes minutes
_TIME_OF_HEURISTIC = 0.3  # of what is left
_WORTH = 1e-3  # a round of cuts must close this part of a node's gap, or branching goes on


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
        self._column, place = np.nonzero(members >= 0)
        self._row = members[self._column, place]
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

    def _allowed(self, pairs: tuple[tuple[int, int, bool], ...]) -> NDArray[np.bool_]:
        """Mark the groups that a node may use."""
        allowed = np.ones(len(self.costs), dtype=bool)
        for i, j, together in pairs:
            first, second = (self.members == i).any(axis=1), (self.members == j).any(axis=1)
            allowed &= (first == second) if together else ~(first & second)
        return allowed

    def _look(self, node: _Node) -> _NodeBound | None:
        """Solve a node's linear program, with cuts while they help; None when time is up."""
        allowed = self._allowed(node.pairs)
        self._program.allow(allowed)
        best: _NodeBound | None = None
        for turn in range(_ROUNDS_OF_CUTS if node.pairs else 5 * _ROUNDS_OF_CUTS):
            solved = self._program.relax()
            if solved is None:
                return best
            _, duals, penalties, x, _ = solved
            reduced = self._reduced(duals, penalties)
            bound = self._proved(duals, penalties, reduced[allowed])
            before = -math.inf if best is None else best.bound
            if best is None or bound >= before:
                best = _NodeBound(bound, x, reduced)
            self._try(np.flatnonzero(x > 0.5))
            gap = self.upper - before
            if bound >= self._goal() or (turn > 0 and bound - before < _WORTH * gap):
                break
            sets = broken_cuts(self.n, self.k, self.members, x, _CUTS_AT_ONCE)
            if not len(sets.need):
                break
            self._add_cuts(sets)
        return best

    def _reduced(self, duals: Floats, penalties: Floats) -> Floats:
        paid = np.bincount(self._column, weights=duals[self._row], minlength=len(self.costs))
        reduced: Floats = self.costs - paid + self._held @ penalties
        return reduced

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
        self._heuristic(look.reduced, heuristic_nodes)
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

    def _heuristic(self, reduced: Floats, nodes: int) -> None:
        """Let the solver's own integer search choose from the best groups; it proves nothing."""
        if not len(self.costs) or nodes == 0:
            return
        few = np.sort(np.argsort(reduced, kind="stable")[: _GROUPS_OF_HEURISTIC * self.n])
        limits = {"mip_max_nodes": nodes, "objective_bound": self.upper}
        program = self._new_program(self.members[few], self.costs[few], **limits)
        self._try(few[program.choose(_TIME_OF_HEURISTIC * seconds_left(self._state))])

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
