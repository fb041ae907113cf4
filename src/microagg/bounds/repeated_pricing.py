"""Pricing the groups of one table again and again, by the search of price_groups.py, in threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.progress import STOP, State, new_state
from microagg.base.typing import Floats, Members
from microagg.bounds.cuts import NO_CUTS, Cuts
from microagg.bounds.price_groups import FoundGroups, PricedRecords, price_seeds
from microagg.compile.threads import share_out
from microagg.kernels.block_tree import nearest_rows

Indices = NDArray[np.intp]

# Up to EXACT_K the search of a seed ends by itself, nearly always within MANY branches. With
# larger groups it would not end: callers cut it short sooner, and get floors that are low but true.
MANY = 10**7
_CANDIDATES = 400  # most of a seed's candidates that are searched; the rest only count in the floor


class Priced(NamedTuple):
    """Groups as rows of record numbers, ascending, filled up with −1."""

    members: Members  # (m, 2k − 1)
    reduced: Floats  # (m,) reduced costs, as computed


class Pricer:
    """Prices the groups of one table again and again.

    >>> X = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> found, floors = Pricer(X, 2).price(np.array([1.0, 0.25, 1.0, 1.5]))
    >>> found.members.tolist(), found.reduced.tolist()
    ([[2, 3, -1], [0, 1, -1]], [-0.5, -0.75])
    """

    def __init__(self, X: Floats, k: int, state: State | None = None) -> None:
        self.X, self.k = X, k
        self.state = new_state() if state is None else state
        # For each record the sums of the squared distances to its 0, 1, … 2k − 3 nearest.
        most = min(2 * k - 3, len(X) - 1)
        self.near = np.zeros((len(X), 2 * k - 2))
        if most > 0:
            self.near[:, 1 : most + 1] = np.cumsum(nearest_rows(X, most, self.state)[1], axis=1)
            self.near[:, most + 1 :] = np.inf  # groups with more than all records do not exist

    def _table(self, duals: Floats, cuts: Cuts) -> tuple[Indices, PricedRecords]:
        order = np.argsort(-duals, kind="stable")
        position = np.empty(len(order), np.intp)
        position[order] = np.arange(len(order))
        cut, at = np.nonzero(cuts.sets.members >= 0)
        rows = position[cuts.sets.members[cut, at]]
        by_row = np.argsort(rows, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(order)))])
        table = PricedRecords(
            np.ascontiguousarray(self.X[order]),
            duals[order],
            self.near[order],
            first.astype(np.intp),
            cut[by_row],
            np.ascontiguousarray(cuts.penalties, dtype=np.float64),
            cuts.sets.need,
        )
        return order, table

    def price(
        self,
        duals: Floats,
        cuts: Cuts = NO_CUTS,
        *,
        limit: float = 0.0,
        width: int = _CANDIDATES,
        nodes: int = 10**9,
        each: int = 8,
    ) -> tuple[Priced, Floats]:
        """Find groups of reduced cost below the limit, at most ``each`` of a seed, the lowest.

        Also returns the floor of each record as a seed, at most the limit: no group whose member of
        highest dual it is has a lower reduced cost, but for :func:`allowance`.
        """
        order, table = self._table(duals, cuts)
        n = len(order)
        floors, floor_of = np.full(n, -np.inf), np.empty(n)  # by falling dual, and by record
        pieces: dict[int, Priced] = {}

        def work(begin: int, end: int, _: int) -> None:
            groups = self._room((end - begin) * each)
            price_seeds(
                table, self.k, begin, end, limit, width, nodes, each, groups, floors, self.state
            )
            pieces[begin] = _used(groups, order)

        share_out(work, n, self.state, at_once=8)
        floor_of[order] = floors
        return _joined(pieces, 2 * self.k - 1), floor_of

    def within(
        self, duals: Floats, slack: float, most: int, cuts: Cuts = NO_CUTS, nodes: int = MANY
    ) -> Priced | None:
        """Find all groups of reduced cost below ``slack``; None if there are more than ``most``.

        None also if the search of a seed takes more than ``nodes`` nodes.
        """
        order, table = self._table(duals, cuts)
        floors = np.empty(len(order))
        pieces: dict[int, Priced] = {}
        n, full = len(order), [False]

        def work(begin: int, end: int, _: int) -> None:
            if full[0] or sum(len(piece.reduced) for piece in pieces.copy().values()) > most:
                full[0] = True
                return
            room = 1024
            while True:
                groups = self._room(min(room, most + 1))
                if price_seeds(
                    table, self.k, begin, end, slack, n, nodes, 0, groups, floors, self.state
                ):
                    break
                if room > most or groups.count[0] < room:
                    full[0] = True
                    return
                room *= 8
            pieces[begin] = _used(groups, order)

        share_out(work, n, self.state, at_once=8)
        everything = _joined(pieces, 2 * self.k - 1)
        too_many = full[0] or len(everything.reduced) > most
        return None if too_many or self.state[STOP] else everything

    def _room(self, most: int) -> FoundGroups:
        members = np.empty((most, 2 * self.k - 1), np.int32)
        return FoundGroups(members, np.empty(most), np.zeros(1, np.intp))


def _used(groups: FoundGroups, order: Indices) -> Priced:
    """Return the columns in use, with the numbers of records as rows of the table, ascending."""
    count, large = int(groups.count[0]), np.iinfo(np.int32).max  # in the place of the filling
    members = groups.members[:count]
    rows = np.sort(np.where(members >= 0, order[members], large), axis=1)
    members = np.where(rows == large, -1, rows).astype(np.int32)
    return Priced(members, groups.reduced[:count].copy())


def _joined(pieces: dict[int, Priced], width: int) -> Priced:
    if not pieces:
        return Priced(np.empty((0, width), np.int32), np.empty(0))
    ordered = [pieces[begin] for begin in sorted(pieces)]
    return Priced(
        np.concatenate([piece.members for piece in ordered]),
        np.concatenate([piece.reduced for piece in ordered]),
    )
