"""RepOrdMic: repeated record ordering.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Any clustering gives a sequence: visit its groups one by one, each along a short path
          through its records, then the group of the nearest record not yet seen. The optimal
          cut of the sequence gives new groups, which give a new sequence, and so on while
          the SSE falls. It never rises, since the old groups are runs of the new sequence.
          Many clusterings by k-means are tried as a start, the best result is kept.
Cost      An iteration takes O(n·k·d) for cut and paths, and n/k searches for the nearest unseen
          record. Nearly all end in lists of 32 neighbours, found once for all starts; the others
          ask a tree of the records left, or a list of these while such searches are few. A group
          that is the same as in the last iteration, entered at the same record, has the same
          path. The first ordering of a start with c clusters takes O(n²/c · d), k-means O(n·c·d).
Paper     Mortazavi 2020, Algorithm 1.
Here      Step 12-1 goes to step 13, not 14, or the last sequence would not be cut. The text
          inserts the record nearest to the path at its best place, Algorithm 1 the record
          and place of least cost; we follow the algorithm. Equal costs go to the lower row, then
          to the place after the lower row. An improvement below 1e-7 ends the iteration for
          z-scored data; for other scales the limit is in proportion to the mean variance.
          Numbers of clusters run from 1 to 200 as in the paper, but not beyond n/2, and not so low
          that clusters have more than 5000 records on average (then up to 200 more than that).
          With fewer starts the numbers are spread evenly, the largest among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.ordering.cut import Order, labels_along
from microagg.algorithms.ordering.group_walk import (
    WalkBuffers,
    neighbour_lists,
    new_buffers,
    order_by_groups,
)
from microagg.algorithms.ordering.mhm import farthest_from_centroid
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel
from microagg.compile.threads import best_of
from microagg.errors import InputError
from microagg.kernels.label_loops import sum_up
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.settings import check_count

_LIMIT = 1e-7  # an improvement below this is none, for columns of variance 1
_MOST_CLUSTERS = 200
_LARGEST_CLUSTER = 5000


class Iteration(NamedTuple):
    """A sequence, its optimal cut, and what that loses."""

    sse: float
    order: Order
    labels: Labels


def iterations(
    X: Floats, k: int, labels: Labels, buffers: WalkBuffers, state: State
) -> Iterator[Iteration]:
    """Order and cut again and again, from any labels, while the SSE falls."""
    first = farthest_from_centroid(X)
    spread = float(np.var(X, axis=0, ddof=1).mean()) if len(X) > 1 else 1.0
    before = np.inf
    while not state[STOP]:
        order = order_by_groups(X, canonical_labels(labels), first, buffers, state)
        labels = labels_along(X, order, k, new_state())
        sse = sum_of_squares(X, labels)
        yield Iteration(sse, order, labels)
        if not before - sse > _LIMIT * spread:
            return
        before = sse


def numbers_of_clusters(n: int, starts: int) -> list[int]:
    """Numbers of clusters to start from.

    >>> numbers_of_clusters(1000, 200) == list(range(1, 201)), numbers_of_clusters(1000, 2)
    (True, [100, 200])
    >>> numbers_of_clusters(12, 200), numbers_of_clusters(64_000, 4)
    ([1, 2, 3, 4, 5, 6], [62, 112, 162, 212])
    """
    low = -(-n // _LARGEST_CLUSTER) - 1
    most = max(min(_MOST_CLUSTERS, n // 2), 1)
    return sorted({low + -(-i * most // starts) for i in range(1, starts + 1)})


def rep_ord_mic_order(
    X: Floats,
    k: int,
    *,
    starts: int = 200,
    start_labels: Any = None,
    random_state: int | None = 0,
    state: State | None = None,
) -> Order:
    """Order records by repeated ordering and cutting; the cut for k is that of the best start.

    Parameters
    ----------
    starts : int
        How many clusterings by k-means to start from; each runs in a thread.
    start_labels : array-like of n labels, optional
        A clustering of your own to start from instead; its groups may have any size.
    random_state : seed of k-means

    >>> X = np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]])
    >>> rep_ord_mic_order(X, 2).tolist()
    [5, 1, 3, 2, 4, 0]
    """
    n, start = len(X), None
    starts = check_count("starts", starts)
    if start_labels is not None:
        # A copy can be written to: for labels that cannot, as a partition's, kernels would be compiled again.
        start = np.array(start_labels)
        if start.shape != (n,) or start.dtype.kind not in "iu":
            raise InputError(
                f"start_labels must be {n} whole numbers, one a record; they have shape {start.shape} "
                f"and type {start.dtype}."
            )
        start = canonical_labels(start)
    state = new_state() if state is None else state
    near = neighbour_lists(X, state)
    seed = int(np.random.default_rng(random_state).integers(2**62))  # all starts share it

    def attempt(n_clusters: int, attempt_state: State) -> tuple[float, Order]:
        labels = k_means(X, n_clusters, seed, attempt_state) if start is None else start
        sse, order = np.inf, np.zeros(n, dtype=np.int64)
        steps = iterations(X, k, labels, new_buffers(near, X), attempt_state)
        for t, (sse, order, _) in enumerate(steps, 1):  # noqa: B007 - the last ones are returned
            attempt_state[DONE] = n * t // (t + 8)  # some ten iterations are usual
        return sse, order

    return best_of([0] if start is not None else numbers_of_clusters(n, starts), attempt, n, state)


# k-means by Lloyd's iterations from records drawn at random, without threads of its own.
#
# scikit-learn's is made for large tables: for a thousand records its checks take longer than the work,
# and the last bits of its sums depend on the number of threads. Here the centres stand column by
# column, so that the distances of a record to all of them are short loops over neighbours in memory.

# The clusters are a start for something better: they need not be settled to the last record. Iterations
# end when fewer than one record in a thousand changes, and the centres of a large table
# come from a sample of its records.
_ITERATIONS = 100
_SETTLED = 0.001
_SAMPLE = 8192


@lean_kernel
def _assign(X, centres, labels, distance):
    """Give each record the label of its nearest centre, the lowest of equals; count changes."""
    n, d = X.shape
    changed = 0
    for i in range(n):
        for c in range(distance.size):
            distance[c] = 0.0
        for j in range(0, d - 1, 2):  # two columns at a time: half as often is the sum stored
            x, y, first, second = X[i, j], X[i, j + 1], centres[j], centres[j + 1]
            for c in range(distance.size):
                so_far = distance[c] + (first[c] - x) * (first[c] - x)
                distance[c] = so_far + (second[c] - y) * (second[c] - y)
        if d % 2 == 1:
            x, first = X[i, d - 1], centres[d - 1]
            for c in range(distance.size):
                distance[c] += (first[c] - x) * (first[c] - x)
        best, least = 0, distance[0]
        for c in range(1, distance.size):
            if distance[c] < least:
                best, least = c, distance[c]
        if labels[i] != best:
            labels[i] = best
            changed += 1
    return changed


@lean_kernel
def _lloyd(X, labels, centres, distance, size, sums, state):
    """Assign records and move each centre to the mean of its own, by turns; one without any stays."""
    for _ in range(_ITERATIONS):
        if state[STOP] or _assign(X, centres, labels, distance) <= _SETTLED * labels.size:
            break
        sum_up(X, labels, size, sums)
        for c in range(size.size):
            for j in range(X.shape[1] if size[c] > 0 else 0):
                centres[j, c] = sums[c, j] / size[c]


def k_means(X: Floats, n_clusters: int, seed: int, state: State) -> Labels:
    """Cluster records; labels from 0 to n_clusters − 1, not all of which need occur.

    At most 100 iterations of O(min(n, 8192) · n_clusters · d) each, and one for all records.

    >>> from microagg.base.progress import new_state
    >>> k_means(np.array([[0.0], [0.1], [5.0]]), 2, 0, new_state()).tolist()
    [0, 0, 1]
    """
    (n, d), rng = X.shape, np.random.default_rng([seed, n_clusters])
    drawn = rng.choice(n, size=n_clusters, replace=False)
    sample = X if n <= _SAMPLE else X[np.sort(rng.choice(n, size=_SAMPLE, replace=False))]
    centres, distance = np.ascontiguousarray(X[drawn].T), np.empty(n_clusters)
    labels = np.full(len(sample), -1, dtype=np.int64)
    size, sums = np.empty(n_clusters, dtype=np.int64), np.empty((n_clusters, d))
    _lloyd(sample, labels, centres, distance, size, sums, state)
    if n > _SAMPLE and not state[STOP]:
        labels = np.full(n, -1, dtype=np.int64)
        _assign(X, centres, labels, distance)
    return labels if labels[0] >= 0 and len(labels) == n else np.zeros(n, dtype=np.int64)
