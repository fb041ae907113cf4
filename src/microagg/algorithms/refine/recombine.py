"""Choosing the best groups of many partitions.

Problem   Given some partitions of a table, find one of lower SSE that may take its groups from
          all of them, and from groups that are nearly in them.
Idea      A partition is a choice of groups that hold each record exactly once: an integer program with a
          column for each candidate group. Its linear relaxation puts a price on each record. A
          group that costs less than its records pay would help; such groups are looked for
          among those one record away from the present ones (variants.py), until there are none.
          Then bundles are solved as integer programs, starting from what there is: some groups that
          the relaxed solution mixes, with the candidates inside that cost least in relation
          to what their records pay. Bundles grow when nothing is gained any more.
Cost      Depends on the data: seconds for a thousand records and small k. Larger tables are cut
          into patches first (best_search.py). A heuristic: each program is solved for some groups only.
Paper     None: our own.
Here      HiGHS solves the programs, each in one thread. Their work is limited by numbers of branches
          and not of seconds, so that without a time limit the result is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.refine.variants import (
    CandidateGroups,
    as_columns,
    measure_columns,
    new_columns,
    reduced_costs,
    variants,
)
from microagg.base.progress import STOP, State, seconds_left
from microagg.base.typing import Floats, Labels
from microagg.bounds.program import GroupProgram
from microagg.compile.threads import share_out
from microagg.kernels.labels import canonical_labels, labels_of, members_of, sum_of_squares

_NEAR = 20  # nearest neighbours of each member that a group's variants may take in
_SOURCES = 6  # columns whose variants are looked at in a round, for each group of the partition
_ROUNDS = 60  # of pricing at most; a dozen is usual for small k
_PATIENCE = 8  # rounds of pricing that must gain a little together
_NEW = 3_000  # columns added in a round of pricing at most
_ROOM = 2_000_000  # numbers that the variants of a round may take
_TINY = 1e-7  # of a group's mean SSE: gains below this are not followed up
_SMALL = 1e-3  # of a group's mean SSE: what records that pay nothing count as paying
_SECONDS = 15.0  # of an integer program, where there is a time limit; or
_SHARE = 0.25  # of the remaining time, if that is more
_SPREAD = 10.0  # the most that a candidate may cost beyond what is paid, in relation to that


class RecombineLimits(NamedTuple):
    """Limits on the work of a recombination."""

    columns: int  # candidates for each group of the partition
    groups: int  # in a bundle, to begin with
    largest: int  # the same at last
    nodes: int  # branches of an integer program


class _KnownRecords(NamedTuple):
    """Distances, weights and nearest neighbours of the records."""

    distance: Floats  # (n, n) squared, in units of a group's mean SSE
    weight: Floats | None  # (n,)
    near: NDArray[np.int32]  # (n, _NEAR) other records, nearest first
    word: NDArray[np.uint64]  # (n,) random
    k: int


class _Relaxation(NamedTuple):
    """Solution of the linear relaxation."""

    columns: CandidateGroups
    weight: Floats  # (columns,)
    price: Floats  # (n,)
    value: float


def _table(X: Floats, weight: Floats | None, k: int, unit: float) -> _KnownRecords:
    n = len(X)
    distance = np.zeros((n, n))
    for column in X.T:
        distance += (column[:, None] - column) ** 2
    distance /= unit
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1, kind="stable")[:, : min(_NEAR, n - 1)].astype(np.int32)
    np.fill_diagonal(distance, 0.0)
    word = np.random.default_rng(0).integers(0, 2**64, size=n, dtype=np.uint64)
    return _KnownRecords(distance, weight, near, word, k)


def _groups_of(table: _KnownRecords, labels: Labels) -> CandidateGroups:
    """Make columns of the groups of labels 0, 1, …; records of label −1 are left out."""
    columns = as_columns(members_of(labels, 2 * table.k - 1))
    measure_columns(table.distance, table.weight, table.word, columns)
    return columns


def _take(columns: CandidateGroups, which: Any) -> CandidateGroups:
    return CandidateGroups(*(field[which] for field in columns))


def _together(parts: Sequence[CandidateGroups]) -> CandidateGroups:
    """Join columns, the first of equal ones."""
    columns = CandidateGroups(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
    return _take(columns, np.sort(np.unique(columns.key, return_index=True)[1]))


def _relaxed(
    table: _KnownRecords, first: CandidateGroups, others: CandidateGroups, state: State
) -> _Relaxation | None:
    """Add columns until none costs less than its records pay, or it hardly matters."""
    columns, n_groups = _together([first, others]), len(first.size)
    program = GroupProgram(len(table.word), 2 * table.k - 1, state, most=1.0)
    program.add(columns.members, columns.sse)
    found = new_columns(_ROOM // (2 * table.k - 1), table.k)
    values: list[float] = []
    while True:
        solved = program.relax()
        if solved is None:
            return None
        # Columns that come later leave the solution feasible: go on from it by the primal method.
        program.set(simplex_strategy=4, presolve="off")
        value, price, _, weight, _ = solved
        values.append(value)
        lately = values[-_PATIENCE] - value if len(values) > _PATIENCE else np.inf
        if len(values) == _ROUNDS or _TINY < lately < 0.02 * (n_groups - value):
            break
        order = np.argsort(reduced_costs(columns, price), kind="stable")
        new = _variants(table, price, columns, order[: _SOURCES * n_groups], -_TINY, 0.0, found)
        if not len(new.size):
            break
        new = _take(new, np.argsort(reduced_costs(new, price), kind="stable")[:_NEW])
        program.add(new.members, new.sse)
        columns = _together([columns, new])
    return _Relaxation(columns, weight, price, value)


def _variants(
    table: _KnownRecords,
    price: Floats,
    columns: CandidateGroups,
    chosen: NDArray[np.intp],
    below: float,
    slope: float,
    found: CandidateGroups,
) -> CandidateGroups:
    """Find the variants of the chosen columns that are not among the columns yet."""
    *known, k = table
    count = variants(*known, price, columns, chosen, k, below, slope, found)
    new = _take(found, slice(0, count))
    first = np.unique(new.key, return_index=True)[1]
    return _take(new, first[~np.isin(new.key[first], columns.key)])


def _promising(
    table: _KnownRecords, relaxed: _Relaxation, room: float, wanted: int
) -> CandidateGroups:
    """Find about ``wanted`` columns that cost least in relation to what their records pay.

    In relation, since outliers pay a hundred times what others do, and the cheapest would
    all be in the crowd. Columns that cost ``room`` more than paid for are of no use.
    """
    columns, price = relaxed.columns, relaxed.price

    def excess(of: CandidateGroups) -> Floats:
        reduced = reduced_costs(of, price)
        relative = reduced / (np.abs(of.sse - reduced) + _SMALL)
        return np.where(reduced < room, relative, np.inf)

    found = new_columns(_ROOM // (2 * table.k - 1), table.k)
    spread, score = 0.02, excess(columns)
    while np.count_nonzero(score < np.inf) < wanted and spread < _SPREAD:
        chosen = np.flatnonzero(score < spread)
        new = _variants(table, price, columns, chosen, spread * _SMALL, spread, found)
        columns = _together([columns, new])
        score = excess(columns)
        spread *= 1.5
    best = np.argsort(score, kind="stable")[:wanted]
    return _take(columns, best[score[best] < np.inf])


def _linked_bundles(
    relaxed: _Relaxation, group: Labels, most: int, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Put groups that the relaxed solution mixes into one bundle, of at most ``most``."""
    columns, n_groups = relaxed.columns, int(group.max()) + 1
    links: list[set[int]] = [set() for _ in range(n_groups)]
    for c in np.flatnonzero(relaxed.weight > _TINY):
        met = set(group[columns.members[c, : columns.size[c]]].tolist())
        for g in met:
            links[g] |= met
    free = np.ones(n_groups, bool)
    bundles: list[NDArray[np.intp]] = []
    bundle: list[int] = []
    for start in rng.permutation(n_groups).tolist():
        if not free[start]:
            continue
        if len(bundle) > most // 2:
            bundles.append(np.array(bundle))
            bundle = []
        at, free[start] = len(bundle), False
        bundle.append(start)
        while at < len(bundle) and len(bundle) < most:
            near = [g for g in sorted(links[bundle[at]]) if free[g]][: most - len(bundle)]
            free[near] = False
            bundle += near
            at += 1
    return [*bundles, np.array(bundle)]


class _PricedCandidates(NamedTuple):
    """Columns to choose from."""

    columns: CandidateGroups
    reduced: Floats  # (columns,) what they cost beyond what their records pay


def _best_choice(
    candidates: _PricedCandidates, price: Floats, now: CandidateGroups, nodes: int, state: State
) -> CandidateGroups:
    """Choose the best columns for the records that the present ones hold."""
    inside = labels_of(now.members, len(price)) >= 0
    # What costs more beyond its price than all present groups together cannot help.
    room = now.sse.sum() - price[inside].sum()
    fits = np.append(inside, True)[candidates.columns.members].all(axis=1)  # −1 is the last
    columns = _together([now, _take(candidates.columns, fits & (candidates.reduced < room))])
    if len(columns.size) == len(now.size):
        return now
    n = int(np.count_nonzero(inside))
    place = np.append(np.cumsum(inside, dtype=np.int32) - 1, np.int32(-1))
    program = GroupProgram(
        n, columns.members.shape[1], state, most=1.0, mip_rel_gap=0.0, mip_max_nodes=nodes
    )
    program.add(place[columns.members], columns.sse)
    seconds = max(_SECONDS, _SHARE * seconds_left(state))
    best = _take(columns, program.choose(seconds, np.isin(columns.key, now.key)))
    held = np.count_nonzero(labels_of(best.members, len(price)) >= 0)
    covers = best.size.sum() == n == held
    return best if covers and best.sse.sum() < now.sse.sum() else now


def recombine(
    X: Floats,
    partitions: Sequence[Labels],
    k: int,
    limits: RecombineLimits,
    seed: Sequence[int],
    state: State,
    *,
    weights: Floats | None = None,
    alone: bool = True,
) -> Labels:
    """Choose groups for a table of some hundred records from partitions and their variants.

    Groups have k to 2k−1 records. The first partition covers all records; in the others −1 stands for records
    whose groups are not wholly in this table. The result never has a higher SSE than the first; when asked to
    stop, it is the best so far. ``alone`` tells that no other thread is at work, so that the work is shared
    out.
    """
    start, sse = partitions[0], sum_of_squares(X, partitions[0], weights)
    n_groups = int(start.max()) + 1
    if sse == 0 or n_groups == 1:
        return start
    table = _table(X, weights, k, sse / n_groups)
    now = _groups_of(table, start)
    others = [_groups_of(table, labels) for labels in partitions]
    relaxed = _relaxed(table, now, _together(others), state)
    if relaxed is None or relaxed.value > n_groups * (1 - _TINY):
        return start
    room = n_groups - relaxed.value
    columns = _promising(table, relaxed, room, limits.columns * n_groups)
    candidates = _PricedCandidates(columns, reduced_costs(columns, relaxed.price))
    rng, most = np.random.default_rng(seed), limits.groups
    while most <= limits.largest and not state[STOP]:
        bundles = _linked_bundles(relaxed, labels_of(now.members, len(X)), most, rng)
        parts = [_take(now, bundle) for bundle in bundles]

        def work(begin: int, end: int, _: int, parts: list[CandidateGroups] = parts) -> None:
            for c in range(begin, end):
                parts[c] = _best_choice(candidates, relaxed.price, parts[c], limits.nodes, state)

        if alone:
            share_out(work, len(bundles), state, at_once=1)
        else:
            work(0, len(bundles), 0)
        before, now = now.sse.sum(), _together(parts)
        if now.sse.sum() > before - _TINY * n_groups:
            most *= 2
    labels = canonical_labels(labels_of(now.members, len(X)))
    return labels if sum_of_squares(X, labels, weights) < sse else start
