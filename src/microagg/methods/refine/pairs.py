"""Large groups, parted anew two by two.

Problem   Improve a partition whose groups are too large for tables of all their distances.
Idea      Two neighbouring groups a and b with centroids A and B lose least when |a|·|b|·|A − B|² is
          largest, since the rest of their SSE depends on their union alone. For given centroids the
          best parting sorts the records of both along the line from A to B and cuts where they are
          nearer to the other end, or where a size forbids to go on. That moves the centroids;
          repeat while it gains. A second try begins from a line through two random records.
Cost      O(k·d) for a pair, O(n·d) for a sweep over the pairs of all groups and their neighbours.
Paper     None: our own. 2-means with bounds on the sizes.
Threads   Pairs that share no group are parted at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.groups import Floats, Labels
from microagg.kernels.halve import select
from microagg.kernels.jit import inner, kernel
from microagg.kernels.neighbours import nearest_rows
from microagg.kernels.threads import share_out
from microagg.methods.refine.pool import draw
from microagg.progress import DONE, State, new_state

_NEIGHBOURS = 8
_ROUNDS = 30  # of parting two groups again, at most
_PIECES = 8  # of the pairs of one turn, for threads
_FEW = 128  # pairs that are done sooner than threads start
_NOISE = 1e-9  # gains below this share may be rounding


class _Groups(NamedTuple):
    members: Any  # (groups, 2k − 1)
    size: Any  # (groups,)
    centroid: Any  # (groups, d)
    changed: Any  # (groups,) last sweep that changed it


@kernel
def _form(X, labels, groups):  # type: ignore[no-untyped-def]
    """Fill in the groups of labels that count from 0."""
    for i in range(labels.size):
        g = labels[i]
        groups.members[g, groups.size[g]] = i
        groups.size[g] += 1
        for j in range(X.shape[1]):
            groups.centroid[g, j] += X[i, j]
    for g in range(groups.size.size):
        for j in range(X.shape[1]):
            groups.centroid[g, j] /= groups.size[g]


@inner
def _centres(X, rows, cut, m, ends):  # type: ignore[no-untyped-def]
    """Centroids of rows[:cut] and rows[cut:m]; return what is to be made large."""
    total = 0.0
    for j in range(X.shape[1]):
        low = high = 0.0
        for x in range(cut):
            low += X[rows[x], j]
        for x in range(cut, m):
            high += X[rows[x], j]
        ends[0, j], ends[1, j] = low / cut, high / (m - cut)
        total += (ends[0, j] - ends[1, j]) ** 2
    return total * cut * (m - cut)


@inner
def _sort_along(X, rows, m, k, ends, keys):  # type: ignore[no-untyped-def]
    """Cut the rows where they are nearer to the second end, within the bounds; return the cut."""
    cut = 0
    for x in range(m):
        keys[x] = 0.0
        for j in range(X.shape[1]):
            middle = 0.5 * (ends[0, j] + ends[1, j])
            keys[x] += (X[rows[x], j] - middle) * (ends[1, j] - ends[0, j])
        cut += keys[x] < 0
    cut = min(max(cut, k, m - (2 * k - 1)), m - k, 2 * k - 1)
    select(keys, rows, 0, m, cut)
    return cut


@inner
def _part(X, rows, m, k, ends, keys):  # type: ignore[no-untyped-def]
    """Part the rows from given ends on while it gains; return what was made large, and the cut."""
    gain, best = -1.0, 0
    for _ in range(_ROUNDS):
        cut = _sort_along(X, rows, m, k, ends, keys)
        now = _centres(X, rows, cut, m, ends)
        best = cut
        if now <= gain * (1 + _NOISE):
            break
        gain = now
    return _centres(X, rows, best, m, ends), best


@inner
def _keep(groups, g, rows, begin, end, centre):  # type: ignore[no-untyped-def]
    groups.size[g] = end - begin
    for x in range(begin, end):
        groups.members[g, x - begin] = rows[x]
    for j in range(centre.size):
        groups.centroid[g, j] = centre[j]


@kernel
def _part_pairs(X, groups, k, begin, end, pairs, seeds, sweep):  # type: ignore[no-untyped-def]
    """Part the groups of the pairs begin..end−1 anew; no two of them share a group."""
    rows, keys = np.empty(4 * k, np.intp), np.empty(4 * k)
    ends, random = np.empty((2, X.shape[1])), np.empty(1, np.uint64)
    for p in range(begin, end):
        a, b = pairs[p, 0], pairs[p, 1]
        random[0] = seeds[p]
        m = groups.size[a] + groups.size[b]
        for attempt in range(2):
            for x in range(groups.size[a]):
                rows[x] = groups.members[a, x]
            for x in range(groups.size[b]):
                rows[groups.size[a] + x] = groups.members[b, x]
            before = _centres(X, rows, groups.size[a], m, ends)
            if attempt == 1:
                one, other = rows[int(draw(random) * m)], rows[int(draw(random) * m)]
                for j in range(X.shape[1]):
                    ends[0, j], ends[1, j] = X[one, j], X[other, j]
            after, cut = _part(X, rows, m, k, ends, keys)
            if after > before * (1 + _NOISE):
                _keep(groups, a, rows, 0, cut, ends[0])
                _keep(groups, b, rows, cut, m, ends[1])
                groups.changed[a] = groups.changed[b] = sweep


@kernel
def _turns(pairs, turn, n_groups):  # type: ignore[no-untyped-def]
    """Give each pair a turn, so that no two pairs of one turn share a group; return their number."""
    free = np.zeros(n_groups, np.intp)
    count = 0
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        turn[p] = max(free[a], free[b])
        free[a] = free[b] = turn[p] + 1
        count = max(count, turn[p] + 1)
    return count


def _neighbouring(groups: _Groups, sweep: int) -> NDArray[np.intp]:
    """List the pairs of neighbouring groups of which one changed in the sweep before."""
    g = len(groups.size)
    near = nearest_rows(groups.centroid, min(_NEIGHBOURS, g - 1), new_state())
    one, other = np.repeat(np.arange(g), near.shape[1]), near.reshape(-1).astype(np.intp)
    pairs = np.unique(np.sort(np.column_stack([one, other]), axis=1), axis=0)
    fresh = groups.changed[pairs].max(axis=1) >= sweep - 1
    return np.ascontiguousarray(pairs[fresh])


def part_pairs(
    X: Floats,
    labels: Labels,
    k: int,
    sweeps: int,
    seed: int,
    state: State,
    over: Callable[[], bool],
) -> Labels:
    """Improve groups of k to 2k−1 records, labelled 0, 1, …, until nothing gains or it is over."""
    g = int(labels.max()) + 1
    groups = _Groups(
        np.empty((g, 2 * k - 1), np.intp),
        np.zeros(g, np.intp),
        np.zeros((g, X.shape[1])),
        np.zeros(g, np.intp),
    )
    _form(X, labels, groups)
    rng = np.random.default_rng(seed)
    for sweep in range(1, sweeps + 1):
        pairs = _neighbouring(groups, sweep)
        if over() or not len(pairs):
            break
        turn = np.empty(len(pairs), np.intp)
        for t in range(_turns(pairs, turn, g)):
            mine = np.ascontiguousarray(pairs[turn == t])
            seeds = rng.integers(0, 2**63, size=len(mine), dtype=np.uint64)

            def work(
                begin: int,
                end: int,
                _: int,
                now: tuple[Any, Any, int] = (mine, seeds, sweep),
            ) -> None:
                if not over():
                    _part_pairs(X, groups, k, begin, end, *now)

            share_out(work, len(mine), state, at_once=max(-(-len(mine) // _PIECES), _FEW))
        state[DONE] = max(state[DONE], len(X) * sweep // sweeps)
    new = np.empty_like(labels)
    for group in range(g):
        new[groups.members[group, : groups.size[group]]] = group
    return new
