"""Partitioning of a minimum spanning tree: methods M, M-d and M-c.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Connect the records by their minimum spanning tree. Look at its edges from the longest
          to the shortest and cut each whose two sides both keep at least k records. What hangs
          together is a group: natural clusters stay whole and apart. M-d and M-c then
          split groups of 2k or more by the diameter or the centroid method.
Cost      The tree, about O(n log n) in few columns and O(n²·d) at worst, is nearly all of it and
          can be given, for many k. Cutting is O(n log n) for any k; O(n·d) memory. A
          heuristic: no bound on its loss is proved.
Paper     Laszlo & Mukherjee 2005, section 3 (M) and 4.2 (M-d, M-c).
Here      Ties in length go to the lower rows. The paper walks from an edge up to the root of its
          tree for each edge, which is quadratic. Here the records below an edge are counted by a
          Fenwick tree over the records in preorder, where those below an edge stand side by side;
          a cut takes its count off all records above within the group by changing two places.
          Which group a record is in is kept by renaming the smaller side of each cut.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microagg.algorithms.fixed_size import centroid, diameter
from microagg.algorithms.result import Outcome
from microagg.algorithms.variable_size.spanning_tree import check_tree, spanning_edges
from microagg.base.progress import STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.kernels.block_tree import Indices
from microagg.kernels.labels import split_large


@lean_kernel
def link(first, second, start, neighbour):
    """List the neighbours of each record along some edges: neighbour[start[i] : start[i + 1]].

    ``start`` holds zeros before.
    """
    for e in range(first.size):
        start[first[e]] += 1
        start[second[e]] += 1
    for i in range(1, start.size):
        start[i] += start[i - 1]
    for e in range(first.size):  # the lists fill from their ends, to which ``start`` points so far
        a, b = first[e], second[e]
        start[a] -= 1
        start[b] -= 1
        neighbour[start[a]], neighbour[start[b]] = b, a


@kernel
def _preorder(first, second, number, above, size):
    """Renumber the records from row 0 so that all records below one follow it side by side.

    ``number`` is by row; the number of the record ``above`` (−1 for the root) and the ``size`` of
    what is below, the record itself included, are by number.
    """
    n = number.size
    start, neighbour = np.zeros(n + 1, np.intp), np.empty(2 * (n - 1), np.intp)
    link(first, second, start, neighbour)
    number[:] = -1
    stack, top = np.empty(n, np.intp), 1
    reached = np.empty(n, np.intp)  # the number of the record from which a row was reached
    stack[0], reached[0] = 0, -1
    for p in range(n):
        top -= 1
        row = stack[top]
        number[row], above[p], size[p] = p, reached[row], 1
        for s in range(start[row], start[row + 1]):
            other = neighbour[s]
            if number[other] < 0:
                stack[top], reached[other] = other, p
                top += 1
    for p in range(n - 1, 0, -1):
        size[above[p]] += size[p]


@lean_subkernel
def _add(counts, p, amount):
    p += 1
    while p < counts.size:
        counts[p] += amount
        p += p & -p


@lean_subkernel
def _sum_before(counts, p):
    total = 0
    while p > 0:
        total += counts[p]
        p -= p & -p
    return total


@kernel
def _cut(below, above, size, k, group):
    """Cut edges in the order given, each while both sides keep k; name groups by record.

    ``below`` is the lower end of each edge; all are numbers in preorder.
    """
    n = size.size
    counts = np.empty(n + 1, np.intp)
    for p in range(n + 1):
        counts[p] = p & -p  # one for each record
    is_top = np.zeros(n, np.bool_)
    top, members = np.zeros(n // k, np.intp), np.zeros(n // k, np.intp)
    members[0] = n
    groups = 1
    group[:] = 0
    for v in below:
        g = group[v]
        if members[g] < 2 * k:
            continue
        under = _sum_before(counts, v + size[v]) - _sum_before(counts, v)
        if under < k or members[g] - under < k:
            continue
        # Records above v lose what is under it, up to the top of the group and no farther.
        _add(counts, above[v], -under)
        if top[g] > 0:
            _add(counts, above[top[g]], under)
        is_top[v] = True
        if 2 * under <= members[g]:
            top[groups], members[groups] = v, under
        else:
            top[groups], members[groups] = top[g], members[g] - under
            top[g] = v
        members[g] -= members[groups]
        # The new group is named from its topmost record on, passing over what was cut off below it.
        first = top[groups]
        group[first] = groups
        p = first + 1
        while p < first + size[first]:
            if is_top[p]:
                p += size[p]
            else:
                group[p] = groups
                p += 1
        groups += 1


def cut_edges(first: Indices, second: Indices, n: int, k: int) -> Labels:
    """Form the groups left by the edges of a spanning tree of n records, the longest edge first."""
    number, above, size = (np.empty(n, dtype=np.intp) for _ in range(3))
    _preorder(first, second, number, above, size)
    below = np.maximum(number[first], number[second])  # what is reached later is farther down
    group = np.empty(n, dtype=np.int64)
    _cut(below, above, size, k, group)
    return group[number]


def _partition(
    X: Floats, k: int, tree: object, state: State | None, split: Callable[..., Outcome] | None
) -> Outcome:
    state = new_state() if state is None else state
    n = len(X)
    first, second, _ = spanning_edges(X, state) if tree is None else check_tree(tree, X)
    if state[STOP]:
        return Outcome(np.zeros(n, dtype=np.int64))
    labels = cut_edges(first, second, n, k)
    if split is not None:
        split_large(labels, k, lambda rows: split(X[rows], k).labels, state)
    return Outcome(labels)


def mst(X: Floats, k: int, *, tree: object = None, state: State | None = None) -> Outcome:
    """Partition by cutting the minimum spanning tree (M).

    Parameters
    ----------
    tree : SpanningTree of the same data, see :func:`microagg.minimum_spanning_tree`

    >>> mst(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [0, 1, 0, 1, 0, 1]
    """
    return _partition(X, k, tree, state, None)


def mst_d(X: Floats, k: int, *, tree: object = None, state: State | None = None) -> Outcome:
    """Partition as :func:`mst` does, groups of 2k or more split by the diameter method (M-d)."""
    return _partition(X, k, tree, state, diameter)


def mst_c(X: Floats, k: int, *, tree: object = None, state: State | None = None) -> Outcome:
    """Partition as :func:`mst` does, groups of 2k or more split by the centroid method (M-c)."""
    return _partition(X, k, tree, state, centroid)
