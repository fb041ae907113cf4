"""The column-generation bound: the best that prices of records can prove.

Bound     Give each record a price (dual). When no group costs less than its records pay together, no
          partition costs less than the sum of all prices. When some do, by at most
          −floor(i) for the groups whose member of highest price is i, a partition with its
          n // k groups at most loses no more than the n // k lowest floors: so
              SSE ≥ Σ prices − Σ penalties of cuts · groups that may pay them
                    + (sum of the n // k lowest of min(0, floor)).
          This holds for any prices whatever (Lagrange), so every round gives a valid bound.
Idea      The best prices are the duals of the linear program over all groups of k to 2k−1 records
          (larger ones can be split, which never raises the SSE). It is solved with few groups;
          pricing (price_groups.py) finds groups that are worth adding, until there are none.
          First a quick pricing among few candidates, then the exact one. Prices are
          smoothed with the best so far, and held in boxes (program.py).
Cuts      Those of cuts.py that the linear program breaks are added to it, round after round.
Rounding  Floors are lowered by what pricing may be wrong (price_groups.allowance), prices are taken as the
          floats that they are, sums are correctly rounded (math.fsum) and then lowered by a part in
          2⁵⁰ of their terms. The linear program itself proves nothing: a wrong price gives low floors.
"""

from __future__ import annotations

import math

import numpy as np

from microagg.base.progress import STOP
from microagg.base.typing import Floats, Labels, Members
from microagg.bounds.cuts import NO_CUTS, Cuts, DualPrices, broken_cuts
from microagg.bounds.price_groups import allowance
from microagg.bounds.program import Master, RelaxedProgram
from microagg.bounds.repeated_pricing import MANY, Pricer
from microagg.kernels.labels import members_of

_CLOSE = 1e-7  # the bound is this near to the linear program's value when the search ends
_OF_THE_GAP = 0.05  # the same before cuts are added, as a part of the gap to a partition
_NEAR = 24  # candidates of a seed in quick pricing
ROUNDS_OF_CUTS = 60
_CUTS_AT_ONCE = 150  # of each kind
_WORTH = 2e-3  # a round of cuts must close this part of the gap, or no more are added


def proved(pricer: Pricer, duals: Floats, cuts: Cuts, floors: Floats) -> float:
    """Return the lower bound on the SSE that prices prove, given the floors of all seeds."""
    n, d = pricer.X.shape
    low = np.sort(np.minimum(floors - allowance(d, pricer.k, duals, cuts), 0.0))[: n // pricer.k]
    paid = -cuts.penalties * cuts.sets.most
    terms = [*duals.tolist(), *paid.tolist(), *low.tolist()]
    if not np.isfinite(terms).all():
        return -math.inf
    return math.fsum(terms) - 2.0**-50 * math.fsum(map(abs, terms))


def shares(X: Floats, groups: Members) -> Floats:
    """Return what each record adds to its group's SSE: half of its squared distances, over the size."""
    share = np.zeros(len(X))
    for row in groups:
        members = row[row >= 0]
        values = X[members]
        squares = ((values[:, None] - values[None]) ** 2).sum(axis=2)
        share[members] = squares.sum(axis=1) / (2 * len(members))
    return share


class Generation:
    """The column generation of one table, which can be gone on with after cuts are added."""

    def __init__(self, pricer: Pricer, partitions: list[Labels], best: DualPrices) -> None:
        self.pricer = pricer
        k = pricer.k
        groups = [members_of(labels, 2 * k - 1) for labels in partitions]
        typical = shares(pricer.X, groups[0])
        floor = pricer.near[:, k - 1] / (2 * k)  # the neighbour bound's prices
        self._close = np.inf  # of the last run
        high = 2 * np.maximum(typical, 0.1 * typical.mean())
        self.master = Master(pricer.X, 2 * k - 1, 0.5 * floor, high, pricer.state)
        for each in groups:
            self.master.add_new(each)
        self.best, self.centre = best, best.duals
        self.solved: RelaxedProgram | None = None
        self.master.add_new(pricer.price(typical, width=_NEAR, nodes=2000)[0].members)

    def run(self, nodes: int = MANY, close: float = _CLOSE) -> None:
        """Go on until the bound is that of the linear program but for a part, or the time is up."""
        n = len(self.pricer.X)
        weight, self._close = 0.3, close  # the weight of the best prices so far
        while not self.pricer.state[STOP]:
            solved = self.master.relax()
            if solved is None:
                return
            self.solved = solved
            # Prices between the best so far and those of the linear program.
            duals = weight * self.centre + (1 - weight) * solved.duals
            penalties = (1 - weight) * solved.penalties
            penalties[: len(self.best.cuts.penalties)] += weight * self.best.cuts.penalties
            cuts = Cuts(self.master.sets, penalties)
            limit = -1e-10 * max(float(np.abs(duals).mean()), 1e-300)
            groups, _ = self.pricer.price(duals, cuts, limit=limit, width=_NEAR, nodes=2000, each=4)
            new = self.master.add_new(groups.members)
            if new > n // 20:
                continue
            groups, floors = self.pricer.price(duals, cuts, limit=limit, width=n, nodes=nodes)
            new += self.master.add_new(groups.members)
            bound = proved(self.pricer, duals, cuts, floors)
            if bound > self.best.bound:
                self.best = DualPrices(duals, cuts, bound)
                self.centre = duals
            near = solved.value - self.best.bound <= close * solved.value
            if near and close > _CLOSE:
                return
            if self.master.widen(solved):
                continue
            if near:
                return
            if weight == 0 and new == 0:
                return  # floors stay low, since pricing was cut short
            if new <= n // 10:
                weight = weight / 3 if weight > 0.05 else 0.0

    def cut(self, upper: float, nodes: int = MANY) -> bool:
        """Add cuts that the linear program breaks, and go on; whether that was worth it.

        ``upper`` is the SSE of a partition: a part of the gap to it must be closed.
        """
        if self.solved is None or self.pricer.state[STOP]:
            return False
        before, x = self.best.bound, self.solved.x
        members = self.master.members[: len(x)]
        sets = broken_cuts(len(self.pricer.X), self.pricer.k, members, x, _CUTS_AT_ONCE)
        if len(sets.need):
            self.master.cut(sets)
        elif self._close == _CLOSE:
            return False
        closes = (self.close_to(upper), _CLOSE) if len(sets.need) else (_CLOSE,)
        for close in closes:  # in doubt, to the end
            self.run(nodes, close)
            if self.best.bound - before > _WORTH * (upper - before):
                return True
        return False

    def close_to(self, upper: float) -> float:
        """Return how near the linear program a run must come: most of the gap is for cuts to close."""
        return max(_CLOSE, _OF_THE_GAP * (upper - self.best.bound) / upper)


# Subgradient ascent: better prices from good ones, without a linear program.
#
# Idea      Charge records that the cheapest groups do not hold more, those that several hold less;
#           the step is Polyak's towards a partition's SSE, and is halved when the bound does not rise
#           (Held & Karp 1971). Pricing looks at few candidates, so that a round takes about n² steps.

_ROUNDS = 60
_BRANCHES = 300  # of a seed in a round
_PATIENCE = 4  # rounds without a better bound, after which steps are halved
_MEMORY = 0.6  # how much of the direction before is kept


def ascend(pricer: Pricer, start: DualPrices, upper: float, *, width: int) -> DualPrices:
    """Raise the bound that prices prove, from some prices on; ``upper`` is the SSE of a partition."""
    n, k = len(pricer.X), pricer.k
    best, duals, direction = start, start.duals, np.zeros(n)
    unit = np.maximum(duals, 0.1 * duals.mean())  # outliers have high prices, and need large steps
    step, idle = 1.0, 0
    for _ in range(_ROUNDS + 1):
        groups, floors = pricer.price(duals, width=width, nodes=_BRANCHES, each=1)
        if pricer.state[STOP]:
            break
        bound = proved(pricer, duals, NO_CUTS, floors)
        if bound > best.bound:
            best, idle = DualPrices(duals, NO_CUTS, bound), 0
        else:
            idle += 1
            if idle == _PATIENCE:
                step, idle, duals, direction = step / 2, 0, best.duals, np.zeros(n)
                continue
        cheapest = np.argsort(groups.reduced, kind="stable")[: n // k]
        rows = groups.members[cheapest]
        cover = np.bincount(rows[rows >= 0], minlength=n)
        direction = _MEMORY * direction + (1.0 - cover)
        length = float(direction @ (unit * direction))
        if length == 0:
            break
        duals = duals + step * (upper - bound) / length * unit * direction
    return best
