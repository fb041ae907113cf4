"""Programs of choice: of some groups, take those that hold each record once and cost least.

    minimise   Σ cost(G)·x(G)
    such that  Σ x(G) over the groups with record i = 1              for each record i
               Σ x(G) over the groups that count for a set ≤ its most   for each cut (cuts.py)

HiGHS solves them, in fractions or in whole numbers, and goes on from what it had when groups or cuts
are added. It ends when the run is asked to stop or its time is over. Nothing that is proved
relies on its word: see column_generation.py and algorithms/optimal/optimal.py.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used, as few jobs do
from numpy.typing import NDArray

from microagg.base.progress import STOP, State, seconds_left
from microagg.base.typing import Floats, Members
from microagg.bounds.cuts import NO_SETS, Sets


class RelaxedProgram(NamedTuple):
    """The best choice of fractions of groups."""

    value: float
    duals: Floats  # (n,) prices of the records
    penalties: Floats  # (cuts,) at least 0
    x: Floats  # (groups,)
    alone: Floats  # of the columns of single records


def solver_unit(mean: float) -> float:
    """Return a power of two by which to multiply records, so that groups of this mean SSE have about 1.

    The solver's tolerances are absolute. A power of two changes no digit of a value.

    >>> solver_unit(1e-8), solver_unit(3.0), solver_unit(0.0)
    (8192.0, 0.5, 1.0)
    """
    return 2.0 ** -max(-500, math.frexp(mean)[1] // 2) if mean > 0 else 1.0  # its square is finite


class GroupProgram:
    """A program of n records and groups of up to ``width``, each chosen ``most`` times at most.

    Columns of single records come first, if there are any, then those of groups.

    >>> from microagg.base.progress import new_state
    >>> program = GroupProgram(3, 2, new_state())
    >>> program.add(np.array([[0, 1], [1, 2], [0, 2], [2, -1]], np.int32), np.array([1.0, 1, 1, 2]))
    >>> program.relax().x.tolist(), program.choose().tolist()
    ([0.5, 0.5, 0.5, 0.0], [0, 3])
    """

    def __init__(
        self, n: int, width: int, state: State, *, most: float = np.inf, **options: Any
    ) -> None:
        import highspy  # here, for the sake of a fast import

        self.n, self._state = n, state
        self._singles, self._most = 0, most
        self.members, self.sets = np.empty((0, width), np.int32), NO_SETS
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # has no types
        # One thread, so that results are the same everywhere.
        self.set(output_flag=False, threads=1, parallel="off", **options)

        def answer(event: Any) -> None:
            if state[STOP]:
                event.interrupt()

        for asks in (self._highs.cbSimplexInterrupt, self._highs.cbMipInterrupt):
            asks.subscribe(answer)
        ones, none = np.ones(n), np.empty(0, np.int32)
        self._highs.addRows(n, ones, ones, 0, np.zeros(n, np.int32), none, np.empty(0))

    def set(self, **options: Any) -> None:
        """Set options of the solver."""
        for option, value in options.items():
            self._highs.setOptionValue(option, value)

    def add_alone(self, costs: Floats, cover: float = 1.0) -> None:
        """Let each record be covered by itself at a cost; a cover of −1 takes it away."""
        rows = np.arange(self.n, dtype=np.int32)
        self._add(costs, rows, rows, np.full(self.n, cover))
        self._singles += self.n

    def add(self, members: Members, costs: Floats) -> None:
        """Add groups to choose from."""
        owner, position = np.nonzero(members >= 0)
        rows = members[owner, position]
        if len(self.sets.need):
            held, cut = self.sets.counting(members).nonzero()
            owner, rows = np.concatenate([owner, held]), np.concatenate([rows, self.n + cut])
            order = np.argsort(owner, kind="stable")
            owner, rows = owner[order], rows[order]
        starts = np.searchsorted(owner, np.arange(len(members)))
        self._add(costs, starts, rows, np.ones(len(rows)))
        self.members = np.concatenate([self.members, members])

    def _add(self, costs: Floats, starts: Any, rows: Any, values: Floats) -> None:
        count, starts, rows = len(costs), starts.astype(np.int32), rows.astype(np.int32)
        low, high = np.zeros(count), np.full(count, self._most)
        self._highs.addCols(count, costs, low, high, len(rows), starts, rows, values)

    def cut(self, sets: Sets) -> scipy.sparse.csr_matrix:
        """Allow no more of the groups that count for a set than whole groups could; return which do."""
        held = sets.counting(self.members)
        cut, group = held.T.tocsr().nonzero()
        count, columns = len(sets.need), self._columns()[group]
        starts = np.searchsorted(cut, np.arange(count)).astype(np.int32)
        low, high = np.full(count, -np.inf), sets.most.astype(float)
        self._highs.addRows(count, low, high, len(cut), starts, columns, np.ones(len(cut)))
        self.sets = self.sets.extended(sets)
        return held

    def allow(self, allowed: NDArray[np.bool_]) -> None:
        """Forbid all other groups."""
        columns, high = self._columns(), np.where(allowed, self._most, 0.0)
        self._highs.changeColsBounds(len(columns), columns, np.zeros(len(columns)), high)

    def _columns(self) -> NDArray[np.int32]:
        """Numbers of the groups' columns."""
        return self._singles + np.arange(len(self.members), dtype=np.int32)

    def _run(self, seconds: float) -> bool:
        """Run the solver for so long at most; False when there is no time."""
        if seconds <= 0 or self._state[STOP]:
            return False
        if seconds < np.inf:
            self.set(time_limit=self._highs.getRunTime() + seconds)
        self._highs.run()
        return True

    def relax(self) -> RelaxedProgram | None:
        """Solve it in fractions; None when stopped, or when the solver gives up."""
        if not self._run(seconds_left(self._state)):
            return None
        status = self._highs.getModelStatus()
        if status != type(status).kOptimal:
            return None
        solution = self._highs.getSolution()
        duals, x = np.array(solution.row_dual), np.array(solution.col_value)
        return RelaxedProgram(
            float(self._highs.getInfo().objective_function_value),
            duals[: self.n],
            np.maximum(-duals[self.n :], 0.0),
            x[self._singles :],
            x[: self._singles],
        )

    def choose(
        self, seconds: float = np.inf, first: NDArray[np.bool_] | None = None
    ) -> NDArray[np.intp]:
        """Solve it in whole numbers, from a first choice: the groups chosen, none if stopped."""
        columns = self._columns()
        count = len(columns)
        self._highs.changeColsIntegrality(count, columns, np.ones(count, np.uint8))
        if first is not None:
            self._highs.setSolution(count, columns, first.astype(float))
        # Within its heuristics the solver looks at the clock but does not ask whether to stop.
        if not self._run(min(seconds, seconds_left(self._state))):
            return np.empty(0, np.intp)
        x = np.array(self._highs.getSolution().col_value)[self._singles :]
        return np.flatnonzero(x > 0.5)


# The linear program over the groups found so far, in fractions, kept by the solver between rounds.
#
# Prices from a program with few groups are wild. So each
# price is held in a box by two more columns: one that covers the record for the upper end of its
# box, one that takes cover away for the lower end. A box that binds is widened, until none does: then
# the program is that without boxes. The lower ends stay below the shares of the neighbour bound, which
# no group can undercut; so the program is never unbounded.

_BINDS = 1e-7  # a box's column used this much binds


def costs_of(X: Floats, members: Members) -> Floats:
    """Return the SSE, (m,), of groups of the records X, whose ``members`` (m, w) are filled up with −1.

    Parameters
    ----------
    X : (n, d) scaled records
    members : (m, w) records of each group

    >>> costs_of(np.array([[0.0], [2.0], [7.0]]), np.array([[0, 1, -1]], dtype=np.int32)).tolist()
    [2.0]
    """
    costs = np.empty(len(members))
    sizes = np.count_nonzero(members >= 0, axis=1)
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        values = X[members[chosen, :size]]
        costs[chosen] = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
    return costs


class Master(GroupProgram):
    """The linear program, warm-started from round to round."""

    def __init__(self, X: Floats, width: int, low: Floats, high: Floats, state: State) -> None:
        # Primal simplex: a basis stays feasible when columns are added.
        super().__init__(len(X), width, state, presolve="off", simplex_strategy=4)
        self.X = X
        self._known: set[bytes] = set()
        self._ends = np.concatenate([high, -low])  # of the boxes, as costs of their columns
        self._step = np.maximum(high - low, 0.1 * high.mean()) / 2
        self.add_alone(high)
        self.add_alone(-low, -1.0)

    def add_new(self, members: Members) -> int:
        """Add the groups that are not there yet; return how many."""
        fresh = []
        for a, row in enumerate(members):
            name = row.tobytes()
            if name not in self._known:
                self._known.add(name)
                fresh.append(a)
        if fresh:
            self.add(members[fresh], costs_of(self.X, members[fresh]))
        return len(fresh)

    def widen(self, solved: RelaxedProgram) -> bool:
        """Widen the boxes whose ends bind, by more each time; False if none does."""
        binding = np.flatnonzero(solved.alone > _BINDS).tolist()
        for end in binding:
            self._step[end % self.n] *= 2
            self._ends[end] += self._step[end % self.n]
            self._highs.changeColCost(end, float(self._ends[end]))
        return bool(binding)
