"""V-MDAV: maximum distance to the average vector, with groups that grow where the data do.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      The record farthest from the centroid of the whole table, among those without a group,
          and its k−1 nearest form a group. It is extended, up to 2k−1 records, while the record
          nearest to any member is nearer to the group than to all other records without a group,
          up to a gain factor gamma: 0 extends never, 1.1 readily. The last records, fewer than
          k, join the group of the record nearest to them.
Cost      O(n²/k · d) time at most, in few dimensions about O(n log n · d); O(n·d) memory. A
          heuristic: no bound on its loss is proved. With gamma="auto" one run for each gamma tried, in
          threads.
Paper     Solanas & Martínez-Ballesté 2006, sections 2.1 to 2.3.
Here      Gamma compares squared distances, and the last records go by their nearest record,
          not by centroids: the paper says neither, but so its Table 1 comes out to all digits.
          Ties go to the lower row index. A last record with no other one left is
          infinitely far from others. The paper leaves the choice of gamma open;
          "auto" tries some and keeps the partition that loses least.

          The nearest neighbours of members are remembered while a group grows, and looked for
          again only when they could matter. Whether the nearest record is to join is known as
          soon as one other record is found near enough to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.result import Outcome
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.compile.threads import share_out
from microagg.errors import InputError, shown
from microagg.kernels.doubled_sums import add_row
from microagg.kernels.kd_search import nearest, nearest_one
from microagg.kernels.kd_tree import NO_ROW, WIDTH, build, remove
from microagg.kernels.labels import sum_of_squares
from microagg.plan.checks import as_number

# The two of the paper, for scattered and for clustered data, and what lies around them.
GAMMAS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.7, 1.1, 1.5)

# A search for a member's nearest record goes so much farther, in squared distance, than is needed
# now, since the next record to join will be farther away.
_AHEAD = 1.5
_MANY = 2_000  # records from which on several gammas are tried at the same time


class _GrowingGroup(NamedTuple):
    """The group at hand, up to 2k−1 records."""

    rows: Any
    other: Any  # nearest record without a group, by member; −1 when it is not known
    gap: Any  # squared distance to it; when it is not known, it is at least that far


@lean_subkernel
def _join(labels, tree, members, size, row, group):
    members.rows[size], members.other[size], members.gap[size] = row, -1, 0.0
    labels[row] = group
    remove(tree, row)


@lean_subkernel
def _found(X, labels, tree, members, seed, k, group, distances, rows):
    """Form a group of a record and its k−1 nearest."""
    _join(labels, tree, members, 0, seed, group)
    have = nearest(tree, X[seed], k, distances, rows)
    if have == k:  # the last of them comes first, and stays out
        members.other[0], members.gap[0] = rows[0], distances[0]
    for a in range(1, k):
        _join(labels, tree, members, a, rows[have - a], group)


@lean_subkernel
def _nearest_to_group(X, labels, tree, members, size):
    """Squared distance and row of the record without a group that is nearest to any member."""
    best, best_row = np.inf, -1
    for a in range(size):
        row = members.other[a]
        if row >= 0 and labels[row] >= 0:
            members.other[a] = -1
        elif row >= 0 and (members.gap[a] < best or (members.gap[a] == best and row < best_row)):
            best, best_row = members.gap[a], row
    for a in range(size):
        if members.other[a] >= 0 or members.gap[a] > best:
            continue
        gap, row = nearest_one(tree, X[members.rows[a]], NO_ROW, _AHEAD * best, labels.size, -1.0)
        members.gap[a] = gap
        if row < labels.size:
            members.other[a] = row
            if gap < best or (gap == best and row < best_row):
                best, best_row = gap, row
    return best, best_row


@lean_subkernel
def _extend(X, labels, tree, members, m, k, gamma, group):
    """Let records join the group while they are nearer to it than to the m left."""
    size = k
    while size < 2 * k - 1 and m > 0:
        inside, row = _nearest_to_group(X, labels, tree, members, size)
        enough = inside / gamma * (1 - 1e-12)
        outside, other = nearest_one(tree, X[row], row, np.inf, NO_ROW, enough)
        if not inside < gamma * outside:
            break
        _join(labels, tree, members, size, row, group)
        members.other[size], members.gap[size] = other, outside
        size += 1
        m -= 1
    return size


@kernel
def _rounds(X, labels, tree, outward, k, gamma, where, few, state, done, run):
    """Form groups until fewer than k records, or no more than ``few``, are left.

    ``where`` holds the next place in outward, the records left and the number of groups;
    ``done`` the records done of all runs, which may be made at the same time.
    """
    n = X.shape[0]
    distances, rows = np.empty(k), np.empty(k, np.intp)
    members = _GrowingGroup(np.empty(2 * k, np.intp), np.empty(2 * k, np.intp), np.empty(2 * k))
    while where[1] >= k and where[1] > few and not state[STOP]:
        while labels[outward[where[0]]] >= 0:
            where[0] += 1
        _found(X, labels, tree, members, outward[where[0]], k, where[2], distances, rows)
        size = k
        if gamma > 0.0:
            size = _extend(X, labels, tree, members, where[1] - k, k, gamma, where[2])
        where[1] -= size
        where[2] += 1
        done[run] = n - where[1]
        state[DONE] = max(state[DONE], done.sum() // done.size)


@lean_kernel
def _join_nearest(X, labels, tree):
    """Give each record without a label that of the record of the tree nearest to it."""
    for i in range(labels.size):
        if labels[i] < 0:
            labels[i] = labels[nearest_one(tree, X[i], NO_ROW, np.inf, NO_ROW, -1.0)[1]]


@kernel
def _distances_to_centroid(X):
    n, d = X.shape
    high, low, out = np.zeros(d), np.zeros(d), np.zeros(n)
    for i in range(n):
        add_row(high, low, X[i], 1.0)
    for i in range(n):
        for j in range(d):
            gap = X[i, j] - (high[j] + low[j]) / n
            out[i] += gap * gap
    return out


def _run(
    X: Floats, k: int, gamma: float, outward: Any, state: State, done: Any, run: int
) -> Labels:
    """Partition with one gamma."""
    labels = np.full(len(X), -1)
    where = np.array([0, len(X), 0])
    while where[1] >= k and not state[STOP]:
        tree = build(X, np.flatnonzero(labels < 0))
        few = tree.rows.size // 2 - WIDTH
        _rounds(X, labels, tree, outward, k, gamma, where, few, state, done, run)
    if where[1] > 0 and not state[STOP]:
        _join_nearest(X, labels, build(X, np.flatnonzero(labels >= 0)))
    return labels


def v_mdav(
    X: Floats, k: int, *, gamma: float | str = "auto", state: State | None = None
) -> Outcome:
    """Partition by maximum distance to the average vector, with groups of variable size.

    Parameters
    ----------
    gamma : float, at least 0, or "auto"
        How readily a group is extended beyond k records: a record joins when its squared
        distance to the group is less than gamma times that to the nearest other record without a
        group. The paper uses 0.2 for scattered data and 1.1 for clustered data. "auto"
        tries several, these among them, and keeps the partition with the least SSE.

    >>> import numpy as np
    >>> X = np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [9.5]])
    >>> v_mdav(X, 2, gamma=1.1).labels.tolist()
    [1, 0, 1, 0, 1, 0]
    """
    tries = GAMMAS
    if not (isinstance(gamma, str) and gamma == "auto"):
        number = as_number(gamma)
        if number is None or not 0 <= number < np.inf:
            raise InputError(
                f"gamma={shown(gamma)} is not a finite number of at least 0; use 0.2 for scattered data, "
                "1.1 for clustered data, or 'auto'."
            )
        tries = (number,)
    state = new_state() if state is None else state
    outward = np.argsort(-_distances_to_centroid(X), kind="stable")
    done = np.zeros(len(tries), np.int64)
    results: dict[int, tuple[float, Labels]] = {}

    def work(begin: int, end: int, _: int) -> None:
        for run in range(begin, end):
            labels = _run(X, k, tries[run], outward, state, done, run)
            if not state[STOP]:
                results[run] = sum_of_squares(X, labels) if len(tries) > 1 else 0.0, labels

    share_out(work, len(tries), state, at_once=1 if len(X) >= _MANY else len(tries))
    if not results:
        return Outcome(np.zeros(len(X), dtype=np.int64))
    best = min(results, key=lambda run: (results[run][0], run))
    return Outcome(results[best][1])
