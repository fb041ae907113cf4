"""The linear program over the groups found so far, kept by the solver between rounds.

It is that of program.py, in fractions. Prices from a program with few groups are wild. So each
price is held in a box by two more columns: one that covers the record for the upper end of its
box, one that takes cover away for the lower end. A box that binds is widened, until none does: then
the program is that without boxes. The lower ends stay below the shares of the neighbour bound, which
no group can undercut; so the program is never unbounded.
"""

from __future__ import annotations

import numpy as np

from microagg.base.progress import State
from microagg.base.typing import Floats, Members
from microagg.bounds.program import GroupProgram, RelaxedProgram

_BINDS = 1e-7  # a box's column used this much binds


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
            self.price_alone(end, float(self._ends[end]))
        return bool(binding)
