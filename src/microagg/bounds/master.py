"""The linear program over the groups found so far, kept by HiGHS between rounds.

    minimise   Σ SSE(G)·x(G)
    such that  Σ x(G) over the groups with record i = 1      for each record i   (dual: its price)
               Σ x(G) over the groups with ≥ 2 of a triple ≤ 1   for each cut    (dual: −penalty)

Prices from a linear program with few columns are wild. So each price is held in a box by two more
columns: one that covers the record for the upper end of its box, one that takes cover away for the
lower end. A box that binds is widened, until none does: then the program is the one above.
The lower ends stay below the shares of the neighbour bound, which no group can undercut; so the
program is never unbounded.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.bounds.pricing import NO_CUTS, Cuts
from microagg.groups import Floats, Members
from microagg.progress import STOP, State


def costs_of(X: Floats, members: Members) -> Floats:
    """SSE of each group, given as rows of record numbers filled up with −1.

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


def touches(members: Members, triples: Members) -> NDArray[np.bool_]:
    """Which groups hold two or more records of which cuts: shape (groups, cuts)."""
    out = np.zeros((len(members), len(triples)), dtype=bool)
    for c, triple in enumerate(triples):
        out[:, c] = np.isin(members, triple).sum(axis=1) >= 2
    return out


def add_cut_rows(program: Any, held: NDArray[np.bool_], first: int) -> None:
    """Allow at most one of the groups that touch a cut; the groups' columns begin at ``first``."""
    cut, column = np.nonzero(held.T)
    count = held.shape[1]
    starts = np.searchsorted(cut, np.arange(count)).astype(np.int32)
    index = (first + column).astype(np.int32)
    low, high = np.full(count, -np.inf), np.ones(count)
    program.addRows(count, low, high, len(cut), starts, index, np.ones(len(cut)))


def new_program(state: State, **options: Any) -> Any:
    """A program of HiGHS that says nothing and stops when asked to.

    It has one thread, so that results are the same everywhere.
    """
    import highspy  # here, for the sake of a fast import

    program: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in {"output_flag": False, "threads": 1, **options}.items():
        program.setOptionValue(option, value)

    def answer(event: Any) -> None:
        if state[STOP]:
            event.interrupt()

    for asks in (program.cbSimplexInterrupt, program.cbMipInterrupt):
        asks.subscribe(answer)
    return program


def solver_unit(mean: float) -> float:
    """A power of two by which to multiply records, so that groups of this mean SSE have about 1.

    The solver's tolerances are absolute. A power of two changes no digit of a value.

    >>> solver_unit(1e-8), solver_unit(3.0), solver_unit(0.0)
    (8192.0, 0.5, 1.0)
    """
    return 2.0 ** -(math.frexp(mean)[1] // 2) if mean > 0 else 1.0


class Solved(NamedTuple):
    """A solution of the linear program."""

    value: float
    duals: Floats  # (n,)
    penalties: Floats  # (cuts,)
    x: Floats  # (columns,)
    boxed: NDArray[np.bool_]  # (2n,) the boxes' ends that bind


class Master:
    """The linear program, warm-started from round to round."""

    def __init__(self, X: Floats, width: int, low: Floats, high: Floats, state: State) -> None:
        n = len(X)
        self.X, self.n = X, n
        self.members = np.empty((0, width), np.int32)
        self.costs = np.empty(0)
        self.cuts = NO_CUTS
        self._known: set[bytes] = set()
        self._low, self._high = low.copy(), high.copy()
        self._step = np.maximum(high - low, 0.1 * high.mean()) / 2
        # Primal simplex: a basis stays feasible when columns are added.
        self._lp = new_program(state, presolve="off", simplex_strategy=4)
        none = np.empty(0, np.int32)
        ones = np.ones(n)
        self._lp.addRows(n, ones, ones, 0, np.zeros(n, np.int32), none, np.empty(0))
        rows = np.arange(n, dtype=np.int32)
        for cost, sign in ((self._high, ones), (-self._low, -ones)):
            self._lp.addCols(n, cost, np.zeros(n), np.full(n, np.inf), n, rows, rows, sign)

    def add(self, members: Members) -> int:
        """Add the groups that are not there yet; return how many."""
        fresh = []
        for a, row in enumerate(members):
            name = row.tobytes()
            if name not in self._known:
                self._known.add(name)
                fresh.append(a)
        if not fresh:
            return 0
        new = members[fresh]
        costs = costs_of(self.X, new)
        sizes = np.count_nonzero(new >= 0, axis=1)
        rows, owner = new[new >= 0], np.repeat(np.arange(len(new)), sizes)
        if len(self.cuts.triples):
            held, cut = np.nonzero(touches(new, self.cuts.triples))
            rows = np.concatenate([rows, self.n + cut])
            owner = np.concatenate([owner, held])
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(len(new))).astype(np.int32)
        self._lp.addCols(
            len(new),
            costs,
            np.zeros(len(new)),
            np.full(len(new), np.inf),
            len(rows),
            starts,
            rows[order].astype(np.int32),
            np.ones(len(rows)),
        )
        self.members = np.concatenate([self.members, new])
        self.costs = np.concatenate([self.costs, costs])
        return len(new)

    def add_cuts(self, triples: Members) -> None:
        """Allow at most one of the groups that hold two or more records of a triple."""
        add_cut_rows(self._lp, touches(self.members, triples), 2 * self.n)
        self.cuts = Cuts(
            np.concatenate([self.cuts.triples, triples]), np.zeros(len(self._rows()) - self.n)
        )

    def _rows(self) -> range:
        return range(self._lp.getNumRow())

    def solve(self, deadline: float) -> Solved | None:
        """Solve from where the last round ended; None when the time is up or the solver gives up."""
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        lp: Any = self._lp
        if np.isfinite(left):
            lp.setOptionValue("time_limit", lp.getRunTime() + left)
        lp.run()
        if lp.getModelStatus() != type(lp.getModelStatus()).kOptimal:
            return None
        solution = lp.getSolution()
        duals, x = np.array(solution.row_dual), np.array(solution.col_value)
        penalties = np.maximum(-duals[self.n :], 0.0)
        return Solved(
            lp.getInfo().objective_function_value,
            duals[: self.n],
            penalties,
            x[2 * self.n :],
            x[: 2 * self.n] > _BINDS,
        )

    def widen(self, boxed: NDArray[np.bool_]) -> None:
        """Widen the boxes whose ends bind, by more each time."""
        for i in np.flatnonzero(boxed):
            row = int(i) % self.n
            self._step[row] *= 2
            if i < self.n:
                self._high[row] += self._step[row]
                self._lp.changeColCost(int(i), float(self._high[row]))
            else:
                self._low[row] -= self._step[row]
                self._lp.changeColCost(int(i), float(-self._low[row]))


_BINDS = 1e-7  # a box's column used this much binds
