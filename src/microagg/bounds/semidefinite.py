"""The semidefinite bound: what partitions lose at least, when shares need only be convex.

Bound     Let Z(i, j) be 1/s for two members of the same group of s, else 0. A partition's SSE is
          Σ H(i, j)·Z(i, j) with H half the squared distances. Z is symmetric and positive
          semidefinite, and its rows are as rows.py says. So for any W that is positive
          semidefinite and any A with A(i, j) = −A(j, i),
              SSE ≥ Σ (H − W + A)·Z ≥ Σᵢ (least cost of row i under H − W + A).
          With W = A = 0 this is the neighbour bound. What a row costs at least can be taken as the price
          of its record: no group costs less than its records pay.
Idea      The best W and A are the dual of a semidefinite program, with two copies of Z: one with the right
          rows, one that is symmetric and semidefinite. They are brought together by the method of
          multipliers (``Solver``): rows are projected, the other copy loses its negative
          eigenvalues, which are, times ρ, the W of the next round.
Blocks    W may be a sum of matrices, each for a few records. Groups are small and near, so
          that blocks of neighbours, which overlap, prove nearly as much as one of all records, in a
          time that is linear in their number. Tables of many records are cut into regions,
          each with blocks of its own records only.
Cuts      What holds for all partitions raises the bound further: see inequalities.py. With islands the sum
          of prices is proved, but not that no group costs less than its records pay.
Paper     None: the relaxation of Peng & Wei 2007 for k-means, here with bounds on group sizes, which
          take the place of a fixed number of groups; the method of multipliers as in Wen, Goldfarb
          & Yin 2010.
Rounding  See ``Solver``. Prices are summed without error (math.fsum).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from microagg.base.progress import DONE, STOP, State, part
from microagg.base.typing import Floats
from microagg.bounds.inequalities import Charge, Islands, Shares, Stars
from microagg.bounds.program import solver_unit
from microagg.bounds.rows import Blocks, Lists, least_costs, list_pairs, project_rows
from microagg.compile.threads import share_out
from microagg.kernels.block_tree import nearest_rows
from microagg.kernels.halve import halves
from microagg.kernels.labels import canonical_labels
from microagg.kernels.outside_in import mdav_labels

_REGION = 1_600_000  # records of a region, times those of a block
_OVERLAP = 6  # blocks that hold a record, about


def semidefinite_prices(X: Floats, k: int, size: Size, seconds: float, state: State) -> Floats:
    """Prices of records such that no partition costs less than their sum.

    Without islands no group of k to 2k−1 costs less than its records pay.

    After some seconds, or when asked to stop, the prices are those proved so far.

    >>> from microagg.base.progress import new_state
    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> prices = semidefinite_prices(X, 2, Size(4, 40, 0.0), math.inf, new_state())
    >>> prices.round(2).tolist()
    [0.25, 0.25, 1.0, 1.0]
    """
    from threadpoolctl import threadpool_limits

    deadline = time.monotonic() + seconds
    # Products are kept in single precision, which a power of two keeps from overflow.
    factor = solver_unit(float(np.mean(X**2)))
    X = X * factor
    length = min(k - 1 if len(X) <= size.block else size.block, len(X) - 1)
    near, cost = nearest_rows(X, length, state)
    cost /= 2
    if state[STOP]:
        return np.zeros(len(X))
    # The neighbour bound's: for records that are not reached in time.
    prices: Floats = (
        cost[:, : k - 1].sum(axis=1) / k * (1 - (X.shape[1] + k + 9) * 2.0**-52) - UNDERFLOW
    )
    rows, first = halves(X, 1, max(2 * size.block, _REGION // size.block))
    # Blocks and rows are shared out to threads; those of the matrix library would wait in vain.
    with threadpool_limits(1):
        for number, (begin, end) in enumerate(pairwise(first)):
            left = deadline - time.monotonic()
            if state[STOP] or left <= 0:
                break
            members = np.sort(rows[begin:end])
            ends = time.monotonic() + left / (len(first) - 1 - number)
            better = Solver(X, members, near, cost, k, size, state).run(ends, int(begin))
            if better.sum() > prices[members].sum():
                prices[members] = better
            state[DONE] = end
    return prices / factor**2


def proved_by(prices: Floats) -> float:
    """Return the lower bound on the SSE that such prices prove."""
    rounding = 2.0**-52 * math.fsum(np.abs(prices)) + len(prices) * 2.0**-1074
    return max(0.0, math.fsum(prices) - rounding)


def _blocks_of(X: Floats, m: int, state: State) -> tuple[Any, Any]:
    """Find the m records nearest to the centre of each of some cells, ascending; none when stopped.

    Also the cell of each record, which is the number of a block that holds it.
    """
    n = len(X)
    if n <= m:
        return np.arange(n, dtype=np.int32)[None], np.zeros(n, np.int64)
    with part(state, 0.0):
        labels = mdav_labels(X, max(1, m // _OVERLAP), state)
    if state[STOP]:
        return np.empty((0, m), np.int32), labels
    labels = canonical_labels(labels)
    sums = np.stack([np.bincount(labels, values) for values in X.T], axis=1)
    centres = sums / np.bincount(labels)[:, None]
    squares = (X**2).sum(axis=1)
    members = np.empty((len(centres), m), np.int32)
    for c, cell in enumerate(centres):
        away = squares - 2 * (X @ cell)
        away[labels == c] = -np.inf  # a cell is in its block, so that all records are in one
        members[c] = np.sort(np.argpartition(away, m - 1)[:m])
    return members, labels


# The method of multipliers for the semidefinite bound, in one region.
#
# Rounds    Rows are moved to least cost near the second copy (rows.py), the second copy is made symmetric and
#           loses its negative eigenvalues, and the multipliers of both being equal follow. Those of
#           inequalities follow too (inequalities.py).
# Proof     After some rounds W is taken from the multipliers, and the rows' least costs are proved.
# Settled   After the first rounds only those blocks go on whose records pay most: where a few outliers pay
#           nearly all, the others would take nearly all the time. What was found for them stays.
# Rounding  W is taken as VVᵀ for the floats V, whatever the solver did, and A as the floats it has,
#           so both are what they must be. Each pair's cost is then lowered by what its
#           computation may be wrong: (d + m + b + c + 2k + 20) roundings at most of the terms' sizes, with
#           m records in a block, b blocks and c inequalities with the pair.

_POWER = 0.35  # of a record's distances to its neighbours in its unit; outliers need larger steps
_SMALLEST = 0.01  # of the mean distance: records with copies have units too
_NOTHING = 1e-30  # a mean cost that is too small for single precision
UNDERFLOW = 1e-300  # more than what is lost where products underflow
_RHO = 0.5  # the weight of the multipliers at first
_RELAX = 1.6  # how far beyond the projected rows to go
_PROVE = 20  # rounds between two proofs
_AT_ONCE = 4  # blocks
_FEW_POSITIVE = 300  # records of a block from which on its positive eigenvalues are sought alone
_ADAPT = 5  # rounds between two looks at the weight of the multipliers
_SETTLED = 100  # rounds after which the looks are rarer
_CUT_BY = 60  # rounds that inequalities have before it is asked whether more are worth it
# Rounds after which only the blocks go on that hold this part of all prices.
_DEAR_AFTER, _DEAR = 40, 0.97


class Size(NamedTuple):
    """How much work a bound may be."""

    block: int  # records
    rounds: int
    worth: float  # relative gain of _PROVE rounds below which no more are done
    stars: bool = False
    islands: bool = False


def _positive_parts(matrices: Any) -> Any:
    """Symmetric matrices without their negative eigenvalues."""
    if matrices.shape[1] < _FEW_POSITIVE:
        values, vectors = np.linalg.eigh(matrices)
        return (vectors * np.maximum(values, 0)[:, None]) @ vectors.transpose(0, 2, 1)
    from scipy.linalg import eigh

    # After some rounds there are about as many positive ones as groups: to find these alone takes a third
    # of the time. Before, many can lie so close together that this driver gives up.
    parts = np.empty_like(matrices)
    for matrix, positive in zip(matrices, parts, strict=True):
        try:
            values, vectors = eigh(matrix, driver="evr", subset_by_value=(0, np.inf))
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(matrix)
        np.matmul(vectors * np.maximum(values, 0), vectors.T, out=positive)
    return parts


class Solver:
    """The method of multipliers for one region."""

    def __init__(
        self, X: Floats, rows: Any, near: Any, near_cost: Floats, k: int, size: Size, state: State
    ) -> None:
        """List the pairs of a region and lay out its blocks.

        Parameters
        ----------
        X : (n, d) all records
        rows : those of the region, ascending
        near, near_cost : (n, l) nearest records of each, and half their squared distances, rising
        k : least size of a group
        size : of blocks, and how much work it may be
        state : the wish to stop, and progress
        """
        self.k, self.size, self.state = k, size, state
        number = np.full(len(X), -1, np.int32)  # in the region; −1: outside
        number[rows] = np.arange(len(rows))
        complete = len(X) <= size.block or near.shape[1] == len(X) - 1
        # What all other pairs cost at least.
        self.limit = np.full(len(rows), np.inf) if complete else near_cost[rows, -1]
        X = np.ascontiguousarray(X[rows])
        members, self.home = _blocks_of(X, size.block, state)
        first, own, count, column, cost, place, first_held, held = list_pairs(
            members, len(X), number[near[rows]], near_cost[rows]
        )
        row = np.repeat(np.arange(len(X)), np.diff(first))
        known = np.zeros(len(row))
        for values in X.T:
            known += (values[row] - values[column]) ** 2
        cost = np.where(column < 0, cost, known / 2)
        typical = near_cost[rows, : k - 1].mean(axis=1)
        self.mean = float(typical.mean())
        self.tall = np.maximum(typical / (self.mean or 1.0), _SMALLEST) ** _POWER
        partner = np.where(column < 0, row, column)
        scale = (self.tall[row] * self.tall[partner]).astype(np.float32)
        share, added = np.zeros(len(row), np.float32), np.zeros(len(row))
        self.lists = Lists(first, own, cost, scale, count, share, added)
        shape = (*members.shape, members.shape[1])
        convex = np.zeros(shape, np.float32)
        diagonal = np.arange(members.shape[1])
        convex[:, diagonal, diagonal] = (self.tall**2 / k)[members]
        dual = np.zeros(shape, np.float32)
        self.blocks = Blocks(members, place, first_held, held, convex, dual)
        shares = Shares(k, self.blocks, self.home, self.tall)
        self.stars = Stars(shares) if size.stars else None
        self.islands = Islands(shares) if size.islands else None
        self.kinds = [kind for kind in (self.stars, self.islands) if kind is not None]
        self.moving = np.ones(len(members), np.bool_)
        self.rows = np.arange(len(X))  # those in blocks that move
        self.roundings = X.shape[1] + shape[1] + shape[0] + 2 * k + 20
        self.best = self._least(np.zeros(shape), np.zeros(members.shape))

    def run(self, deadline: float, done: int = 0) -> Floats:
        """Iterate until gains are small; return the best prices. ``done`` records were done before."""
        if self.mean >= _NOTHING and len(self.blocks.members):
            # Eigenvalues that are not found end it: what was proved until then stays.
            with suppress(np.linalg.LinAlgError):
                self._go_on(deadline, done)
        return self.best

    def _go_on(self, deadline: float, done: int) -> None:
        lists, blocks, k = self.lists, self.blocks, self.k
        rho, prices = _RHO * k * self.mean, np.zeros(len(self.best))
        begun = time.monotonic()
        for turn in range(1, self.size.rounds + 1):

            def rows(begin: int, end: int, _: int, rho: float = rho) -> None:
                project_rows(lists, blocks, k, rho, prices, self.rows[begin:end])

            share_out(rows, len(self.rows), self.state)
            apart, moved = self._project_blocks(rho)
            if self.state[STOP]:
                break
            for kind in self.kinds:
                kind.follow(turn, rho, self.moving)
            if self.kinds:
                lists.added[:] = self._charge().added
            self.state[DONE] = done + len(prices) * turn // self.size.rounds
            now = time.monotonic()
            late = now + 2 * (now - begun) / turn > deadline  # a proof takes longer than a round
            if turn % _PROVE == 0 or turn == self.size.rounds or late:
                before = self.best.sum()
                self._prove()
                idle = self.best.sum() < before * (1 + self.size.worth)
                if late or (idle and (turn >= _CUT_BY or not self.kinds)):
                    break
            if turn == _DEAR_AFTER:
                self._leave_cheap_blocks()
            if turn % (_ADAPT if turn <= _SETTLED else _PROVE) == 0 and moved > 0:
                rho *= min(max(math.sqrt(apart / moved), 1 / 1.5), 1.5)

    def _charge(self) -> Charge:
        """Return what all inequalities add to the costs of pairs."""
        pairs = len(self.lists.cost)
        charge = Charge(np.zeros(pairs), np.zeros(pairs), np.zeros(pairs, np.int32))
        for kind in self.kinds:
            kind.charge(charge)
        return charge

    def _leave_cheap_blocks(self) -> None:
        """Go on with the blocks whose records at home pay nearly all."""
        blocks = self.blocks
        paid = np.bincount(self.home, np.maximum(self.best, 0), minlength=len(blocks.members))
        dearest = np.argsort(-paid, kind="stable")
        before = np.cumsum(paid[dearest]) - paid[dearest]
        self.moving[dearest[before >= _DEAR * paid.sum()]] = False
        self.rows = np.unique(blocks.members[self.moving]).astype(np.intp)

    def _each(self, work: Callable[[Any], object], numbers: Any) -> None:
        """Call ``work`` for some of these blocks at a time, in threads."""

        def some(begin: int, end: int, _: int) -> None:
            work(numbers[begin:end])

        share_out(some, len(numbers), self.state, at_once=_AT_ONCE)

    def _project_blocks(self, rho: float) -> tuple[float, float]:
        """Make the second copy symmetric and semidefinite; how far the copies are apart, how far it moved."""
        lists, blocks = self.lists, self.blocks
        squares = np.zeros((4, len(blocks.members)))

        def work(some: Any) -> None:
            share, before = lists.share[blocks.place[some]], blocks.convex[some]
            mixed = _RELAX * share + (1 - _RELAX) * before + blocks.dual[some] / np.float32(rho)
            convex = _positive_parts((mixed + mixed.transpose(0, 2, 1)) / 2)
            dual = np.float32(rho) * (mixed - convex)
            for number, each in enumerate((share - convex, convex, convex - before, dual)):
                squares[number, some] = (each.astype(np.float64) ** 2).sum(axis=(1, 2))
            blocks.convex[some], blocks.dual[some] = convex, dual

        self._each(work, np.flatnonzero(self.moving))
        apart, size, moved, dual = np.sqrt(squares.sum(axis=1))
        return float(apart * dual), float(rho * moved * size)

    def _prove(self) -> None:
        """See what the multipliers prove; keep the prices if they are better."""
        blocks, tall = self.blocks, self.tall
        added, reach = np.zeros(blocks.dual.shape), np.zeros(blocks.members.shape)

        def work(some: Any) -> None:
            dual, unit = blocks.dual[some].astype(np.float64), tall[blocks.members[some]]
            turned = dual.transpose(0, 2, 1)
            values, vectors = np.linalg.eigh((dual + turned) / 2)
            V = vectors * np.sqrt(np.maximum(-values, 0))[:, None] * unit[:, :, None]
            A = (dual - turned) / 2 * (unit[:, :, None] * unit[:, None, :])
            added[some] = A - V @ V.transpose(0, 2, 1)
            reach[some] = np.sqrt((V**2).sum(axis=2))

        self._each(work, np.arange(len(blocks.members)))
        prices = self._least(added, reach)
        if not self.state[STOP] and prices.sum() > self.best.sum():
            self.best = prices

    def _least(self, added: Floats, reach: Floats) -> Floats:
        """Return what the rows cost at least, with this and what inequalities add to the distances."""
        costs, charge = np.zeros(len(self.limit)), self._charge()
        slack = (self.roundings + int(charge.terms.max(initial=0))) * 2.0**-52

        def work(begin: int, end: int, _: int) -> None:
            terms = self.lists, charge, self.blocks, added, reach
            least_costs(*terms, slack, self.limit, self.k, costs, begin, end)

        share_out(work, len(costs), self.state)
        if self.islands is not None:
            costs -= self.islands.right_sides()
        return costs - UNDERFLOW
