"""Choosing the best groups of many partitions.

Problem   Given some partitions of a table, find one of lower SSE that may take its groups from
          all of them, and from groups that are nearly in them.
Idea      A partition is a choice of groups that hold each record exactly once: an integer program with a
          column for each candidate group. Its linear relaxation puts a price on each record. A
          group that costs less than its records pay would help; such groups are looked for
          among those one record away from the present ones (``variants``), until there are none.
          Then bundles are solved as integer programs, starting from what there is: some groups that
          the relaxed solution mixes, with the candidates inside that cost least in relation
          to what their records pay. Bundles grow when nothing is gained any more.
Cost      Depends on the data: seconds for a thousand records and small k. Larger tables are cut
          into patches first (refine.py). A heuristic: each program is solved for some groups only.
Paper     None: our own.
Here      HiGHS solves the programs, each in one thread. Their work is limited by numbers of branches
          and not of seconds, so that without a time limit the result is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.refine.pool import weight_of
from microagg.base.progress import STOP, State, seconds_left
from microagg.base.typing import Floats, Labels, Members
from microagg.bounds.program import GroupProgram
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
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


def _take(columns: CandidateGroups, which: Any) -> CandidateGroups:
    return CandidateGroups(*(field[which] for field in columns))


def _together(parts: Sequence[CandidateGroups]) -> CandidateGroups:
    """Join columns, the first of equal ones."""
    columns = CandidateGroups(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
    return _take(columns, np.sort(np.unique(columns.key, return_index=True)[1]))


def _relaxed(
    table: _KnownRecords, columns: CandidateGroups, n_groups: int, state: State
) -> _Relaxation | None:
    """Add columns until none costs less than its records pay, or it hardly matters."""
    program = GroupProgram(len(table.word), 2 * table.k - 1, state, most=1.0)
    program.add(columns.members, columns.sse)
    filled = new_columns(_ROOM // (2 * table.k - 1), table.k)
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
        new = _variants(table, price, columns, order[: _SOURCES * n_groups], -_TINY, 0.0, filled)
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
    filled: CandidateGroups,
) -> CandidateGroups:
    """Find the variants of the chosen columns that are not among the columns yet."""
    *known, k = table
    count = variants(*known, price, columns, chosen, k, below, slope, filled)
    new = _take(filled, slice(0, count))
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
    filled = new_columns(_ROOM // (2 * table.k - 1), table.k)
    spread = 0.02
    while True:
        reduced = reduced_costs(columns, price)
        relative = reduced / (np.abs(columns.sse - reduced) + _SMALL)
        score = np.where(reduced < room, relative, np.inf)
        if np.count_nonzero(score < np.inf) >= wanted or spread >= _SPREAD:
            break
        chosen = np.flatnonzero(score < spread)
        new = _variants(table, price, columns, chosen, spread * _SMALL, spread, filled)
        columns = _together([columns, new])
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


def _best_choice(
    candidates: CandidateGroups,
    reduced: Floats,
    price: Floats,
    now: CandidateGroups,
    nodes: int,
    state: State,
) -> CandidateGroups:
    """Choose the best columns for the records that the present ones hold.

    ``reduced`` is what the candidates cost beyond what their records pay.
    """
    inside = labels_of(now.members, len(price)) >= 0
    # What costs more beyond its price than all present groups together cannot help.
    room = now.sse.sum() - price[inside].sum()
    fits = np.append(inside, True)[candidates.members].all(axis=1)  # −1 is the last
    columns = _together([now, _take(candidates, fits & (reduced < room))])
    if len(columns.size) == len(now.size):
        return now
    n = int(np.count_nonzero(inside))
    number = np.append(np.cumsum(inside, dtype=np.int32) - 1, np.int32(-1))
    program = GroupProgram(
        n, columns.members.shape[1], state, most=1.0, mip_rel_gap=0.0, mip_max_nodes=nodes
    )
    program.add(number[columns.members], columns.sse)
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
    groups = [as_columns(members_of(labels, 2 * k - 1)) for labels in partitions]
    for columns in groups:
        measure_columns(table.distance, table.weight, table.word, columns)
    now, relaxed = groups[0], _relaxed(table, _together(groups), n_groups, state)
    if relaxed is None or relaxed.value > n_groups * (1 - _TINY):
        return start
    room = n_groups - relaxed.value
    candidates = _promising(table, relaxed, room, limits.columns * n_groups)
    reduced = reduced_costs(candidates, relaxed.price)
    rng, most = np.random.default_rng(seed), limits.groups
    while most <= limits.largest and not state[STOP]:
        bundles = _linked_bundles(relaxed, labels_of(now.members, len(X)), most, rng)
        parts = [_take(now, bundle) for bundle in bundles]

        def work(begin: int, end: int, _: int, parts: list[CandidateGroups] = parts) -> None:
            for c in range(begin, end):
                of_bundle = parts[c], limits.nodes, state
                parts[c] = _best_choice(candidates, reduced, relaxed.price, *of_bundle)

        if alone:
            share_out(work, len(bundles), state, at_once=1)
        else:
            work(0, len(bundles), 0)
        before, now = now.sse.sum(), _together(parts)
        if now.sse.sum() > before - _TINY * n_groups:
            most *= 2
    labels = canonical_labels(labels_of(now.members, len(X)))
    return labels if sum_of_squares(X, labels, weights) < sse else start


# Groups that differ from given ones by one record: the candidates of a recombination.
#
# The SSE of a group of s records is the sum of the squared distances over its pairs, divided by s; so
# what a group costs with a record added, dropped or exchanged follows from a few sums. With weights a pair
# counts by the product of its weights, and the sum is divided by the weight of the group; the ``weight`` is
# None where all records weigh the same. A group's key is the sum of its records' random words, so that equal
# groups have equal keys.


class CandidateGroups(NamedTuple):
    """Candidate groups, one a row."""

    members: Any  # (columns, 2k − 1) int32, filled up with −1
    size: Any  # (columns,) int32
    sse: Any  # (columns,)
    key: Any  # (columns,) uint64


def as_columns(members: Members) -> CandidateGroups:
    """Make columns of groups; SSE and key are still to be measured."""
    count = len(members)
    size = np.count_nonzero(members >= 0, axis=1).astype(np.int32)
    return CandidateGroups(members, size, np.empty(count), np.empty(count, np.uint64))


def new_columns(count: int, k: int) -> CandidateGroups:
    """Allocate ``count`` columns."""
    return as_columns(np.full((count, 2 * k - 1), -1, np.int32))


@lean_kernel
def measure_columns(distance, weight, word, columns):
    """Compute SSE and key of the groups from their members."""
    for c in range(columns.size.size):
        total, key = 0.0, np.uint64(0)
        for a in range(columns.size[c]):
            x = columns.members[c, a]
            key += word[x]
            for b in range(a):
                y = columns.members[c, b]
                total += weight_of(weight, x) * (weight_of(weight, y) * distance[x, y])
        columns.sse[c] = total / _mass_of(columns.members[c], columns.size[c], weight)
        columns.key[c] = key


@lean_subkernel
def _mass_of(members, size, weight):
    """Return the weight of a group, by which the sum over its pairs is divided."""
    mass = 0.0
    for a in range(size):
        mass += weight_of(weight, members[a])
    return mass


@kernel
def reduced_costs(columns, price):
    """Return the SSE of each group less what its records pay."""
    reduced = np.empty(columns.size.size)
    for c in range(columns.size.size):
        paid = 0.0
        for a in range(columns.size[c]):
            paid += price[columns.members[c, a]]
        reduced[c] = columns.sse[c] - paid
    return reduced


@lean_subkernel
def _look_around(distance, weight, near, columns, c, others, to_group, to_own, mark):
    """Collect the records near to a group; return their number.

    Sums of the squared distances to the members, each by its weight, go to ``to_group``, those of the members
    themselves to ``to_own``; ``mark`` is the last group that met a record.
    """
    size, members, m = columns.size[c], columns.members[c], 0
    for a in range(size):
        mark[members[a]] = c
    for a in range(size):
        x = members[a]
        to_own[a] = 0.0
        for b in range(size):
            to_own[a] += weight_of(weight, members[b]) * distance[x, members[b]]
        for t in range(near.shape[1]):
            y = near[x, t]
            if mark[y] != c:
                mark[y] = c
                others[m], to_group[m] = y, 0.0
                for b in range(size):
                    w = weight_of(weight, members[b])
                    to_group[m] += w * distance[y, members[b]]
                m += 1
    return m


@lean_subkernel
def _note(filled, count, columns, c, without, extra, sse, key):
    """Note the group less the member at ``without``, plus ``extra``; −1 stands for none."""
    m = 0
    for a in range(columns.size[c]):
        if a != without:
            filled.members[count, m] = columns.members[c, a]
            m += 1
    if extra >= 0:
        filled.members[count, m] = extra
        m += 1
    filled.members[count, m:] = -1
    filled.size[count], filled.sse[count], filled.key[count] = m, sse, key
    return count + 1


@kernel
def variants(distance, weight, near, word, price, columns, chosen, k, below, slope, filled):
    """Fill ``filled`` with groups one record away from the chosen ones; return their number.

    Noted are groups whose SSE less the prices of their records is under ``below`` plus ``slope``
    times those prices; without a slope, for each member only the best exchange. Other records
    come from the lists of those ``near`` to the members. Ends early when there is no room left
    for the next group's variants.
    """
    n = distance.shape[0]
    others, to_group = np.empty(n, np.intp), np.empty(n)
    to_own, mark, count = np.empty(2 * k - 1), np.full(n, -1), 0
    for c in chosen:
        m = _look_around(distance, weight, near, columns, c, others, to_group, to_own, mark)
        size, members, key = columns.size[c], columns.members[c], columns.key[c]
        if count + (size + 1) * (m + 1) > filled.size.size:
            break
        mass = _mass_of(members, size, weight)
        within, paid = columns.sse[c] * mass, 0.0
        for a in range(size):
            paid += price[members[a]]
        for b in range(m if size < 2 * k - 1 else 0):
            y = others[b]
            w, pays = weight_of(weight, y), paid + price[y]
            sse = (within + w * to_group[b]) / (mass + w)
            if sse - pays < below + slope * abs(pays):
                count = _note(filled, count, columns, c, -1, y, sse, key + word[y])
        for a in range(size):
            x = members[a]
            if size > k:
                v, pays = weight_of(weight, x), paid - price[x]
                sse = (within - v * to_own[a]) / (mass - v)
                if sse - pays < below + slope * abs(pays):
                    count = _note(filled, count, columns, c, a, -1, sse, key - word[x])
            before, least = count, below
            for b in range(m):
                y = others[b]
                if weight is None:
                    sse = (within - to_own[a] + to_group[b] - distance[x, y]) / mass
                else:
                    v, w = weight[x], weight[y]
                    sse = within - v * to_own[a] + w * (to_group[b] - v * distance[x, y])
                    sse /= mass - v + w
                pays = paid - price[x] + price[y]
                if slope > 0 and sse - pays < below + slope * abs(pays):
                    count = _note(filled, count, columns, c, a, y, sse, key - word[x] + word[y])
                elif slope == 0 and sse - pays < least:
                    least = sse - pays
                    count = _note(filled, before, columns, c, a, y, sse, key - word[x] + word[y])
    return count
