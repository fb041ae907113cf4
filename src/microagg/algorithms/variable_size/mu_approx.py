"""mu-Approx: groups along nearest neighbours, with a proved factor to the optimum.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Grow a forest: while a tree has fewer than k records, its root, the one record that
          points to no other yet, points to the nearest record of another tree, whose root stays
          the root of both. Then cut the trees into groups: edges go, the longest first, where
          both sides keep k records. If 2k or more records still hang together, one of them is a
          hub all of whose branches have fewer than k; these are gathered into groups.
Cost      About O(n log n · d + n·k) for few columns: a k-d tree finds neighbours. O(n·d) memory.
          SSE is at most (4k − 2)·M² times the least possible, M = max(2k − 1, 3k − 3) being the
          largest size of a group; see Bound below.
Paper     Domingo-Ferrer, Sebé & Solanas 2008, after Aggarwal et al. 2005 ("Approximation
          algorithms for k-anonymity"), whose forest and decomposition it takes over.
Here      Groups are disjoint, as in Stamm & Schaub 2024, section 5.2: a hub belongs to one group
          even if others hang together only through it. The papers leave open which tree grows
          next: here the one with the shortest new edge (of two roots that point at each other,
          the one farther from the origin; then the lower row). They also leave open where
          a tree is cut, and leave trees of up to max(2k − 1, 3k − 5) records whole; here
          the longest edge goes first and all are cut that can be. Branches are gathered from the
          outside in: the one whose centroid is farthest from the hub, then those whose centroids
          are nearest to the group's, until it has k; if fewer than k were left they come along.

Bound     An edge u → v is no longer than the distance of u to its (k−1)-th nearest record, as
          fewer than k − 1 others are in its tree; so neither than that to the farthest member of
          its group O in an optimal partition, whose square is at most 2·SSE(O). O has at most
          2k − 1 members with one edge each: the squares of all edges sum to (4k − 2)·OPT at most.
          A group of s ≤ M records hangs together by edges that no other group uses, so the
          squared distance of each member to any one of them is at most s times the sum of these
          squares, and its SSE at most s² times.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.result import Outcome
from microagg.algorithms.variable_size.mst import cut_edges, link
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.compile.threads import share_out
from microagg.kernels.heap import new_heap, pop, put, take_out
from microagg.kernels.kd_search import nearest, nearest_one
from microagg.kernels.kd_tree import NO_ROW, build, for_thread
from microagg.kernels.label_loops import sum_up

_AT_ONCE = 4096  # records that a thread searches for before it takes the next ones
_WINDOW = 4  # branches are gathered among the outermost that hold 4k records


@lean_kernel
def _point(tree, X, start, stop, target, length, state):
    """Find the nearest other record for each of some."""
    for u in range(start, stop):
        if state[STOP]:
            return
        length[u], target[u] = nearest_one(tree, X[u], u, np.inf, NO_ROW, -1.0)


@lean_subkernel
def _nearest_outside(tree, point, tree_of, mine, size, distances, rows):
    """Squared distance and row of the nearest record that is not one of the ``size`` in tree ``mine``."""
    best, best_row = np.inf, -1
    for a in range(nearest(tree, point, size + 1, distances, rows)):
        distance, row = distances[a], rows[a]
        if tree_of[row] != mine and (distance < best or (distance == best and row < best_row)):
            best, best_row = distance, row
    return best, best_row


@kernel
def _grow(tree, X, k, target, length, parent, heap, state):
    """Grow the forest; ``parent[u]`` is where u points to, −1 for nowhere."""
    n = X.shape[0]
    tree_of, following, root = np.arange(n), np.arange(n), np.arange(n)
    size, distances, rows = np.ones(n, np.intp), np.empty(k), np.empty(k, np.intp)
    for u in range(n):
        outside = 0.0
        for j in range(X.shape[1]):
            outside += X[u, j] * X[u, j]
        put(heap, u, length[u], -outside)
    while heap.size[0] > 0:
        if state[STOP]:
            return
        u = pop(heap)
        v = target[u]
        parent[u] = v
        mine, theirs = tree_of[u], tree_of[v]
        r, small = root[theirs], size[theirs] < k
        grown = size[mine]
        # The smaller tree goes over to the other one; members of a tree are linked in a ring.
        less, both = (mine, theirs) if size[mine] <= size[theirs] else (theirs, mine)
        row = less  # a tree has the number of one of its records
        while tree_of[row] != both:
            tree_of[row] = both
            row = following[row]
        following[less], following[both] = following[both], following[less]
        size[both] += size[less]
        root[both] = r
        if size[both] >= k:
            take_out(heap, r)
            state[DONE] += size[both] if small else grown
        elif tree_of[target[r]] == both:
            length[r], target[r] = _nearest_outside(
                tree, X[r], tree_of, both, size[both], distances, rows
            )
            put(heap, r, length[r], heap.key[r, 1])


@lean_subkernel
def _walk(first, ends, start, without, side, origin):
    """Write the records on the side of ``start`` of the edge to ``without`` to ``side``.

    ``origin`` gets the place in ``side`` of the record that each one was reached from. Returns
    how many were found.
    """
    side[0], origin[0] = start, -1
    have = 1
    at = 0
    while at < have:
        i = side[at]
        before = without if origin[at] < 0 else side[origin[at]]
        for e in range(first[i], first[i + 1]):
            if ends[e] != before:
                side[have], origin[have] = ends[e], at
                have += 1
        at += 1
    return have


@lean_kernel
def _part(first, ends, k, labels, branch, hub_of, side, origin, below):
    """Label trees under 2k records; number the branches of the others, the hub one by itself.

    Returns the number of branches.
    """
    n = labels.size
    branches = 0
    for i in range(n):
        if labels[i] >= 0 or branch[i] >= 0:
            continue
        have = _walk(first, ends, i, NO_ROW, side, origin)
        if have < 2 * k:
            for at in range(have):
                labels[side[at]] = i
            continue
        below[:have] = 1
        for at in range(have - 1, 0, -1):
            below[origin[at]] += below[at]
        place = 0  # in ``side``, of the record all of whose branches have fewer than k records
        for at in range(1, have):  # of an edge that could not be cut, one side has fewer than k
            if below[at] >= k and origin[at] == place:
                place = at
        hub = side[place]
        branch[hub], hub_of[branches] = branches, hub
        branches += 1
        for e in range(first[hub], first[hub + 1]):
            have = _walk(first, ends, ends[e], hub, side, origin)
            for at in range(have):
                branch[side[at]] = branches
            hub_of[branches] = hub
            branches += 1
    return branches


@lean_kernel
def _measure(X, branch, hub_of, size, centroid, distance, least):
    """Sizes and centroids of the branches, and squared distances of these to the hub."""
    for i in range(X.shape[0] - 1, -1, -1):
        if branch[i] >= 0:
            least[branch[i]] = i
    sum_up(X, branch, size, centroid)
    for b in range(size.size):
        for j in range(X.shape[1]):
            centroid[b, j] /= size[b]
            distance[b] += (centroid[b, j] - X[hub_of[b], j]) ** 2


@lean_subkernel
def _next_branch(centre, centroid, size, following, head, most):
    """Return the list position before the branch with the nearest centroid.

    It is one of the outermost, which together hold ``most`` records.
    """
    best, where = np.inf, head
    before, seen = head, 0
    while following[before] >= 0 and seen < most:
        b = following[before]
        total = 0.0
        for j in range(centre.size):
            total += (centroid[b, j] - centre[j]) ** 2
        if total < best:
            best, where = total, before
        seen += size[b]
        before = b
    return where


@lean_kernel
def _gather(order, bounds, k, size, centroid, group, following, centre, state):
    """Gather the branches of each hub h, order[bounds[h]:bounds[h + 1]], outermost first, into groups.

    ``following`` and ``centre`` are scratch.
    """
    head = size.size  # of the list of branches left
    for h in range(bounds.size - 1):
        if state[STOP]:
            return
        start, stop, left = bounds[h], bounds[h + 1], 0
        following[head] = order[start]
        for a in range(start, stop):
            left += size[order[a]]
            following[order[a]] = order[a + 1] if a + 1 < stop else -1
        while left > 0:
            where, seed, have = head, following[head], 0
            while left > 0 and (have < k or left < k):
                if have > 0:
                    where = _next_branch(centre, centroid, size, following, head, _WINDOW * k)
                b = following[where]
                following[where] = following[b]
                group[b] = seed
                for j in range(centre.size):
                    total = size[b] * centroid[b, j]
                    if have > 0:
                        total += have * centre[j]
                    centre[j] = total / (have + size[b])
                have += size[b]
                left -= size[b]


def _split(X: Floats, k: int, parent: Labels, length: Floats, state: State) -> Labels:
    """Cut the forest into groups."""
    n, d = X.shape
    roots, tails = np.flatnonzero(parent < 0), np.flatnonzero(parent >= 0)
    tails = tails[np.argsort(-length[tails], kind="stable")]
    # The roots are strung together: the edges between them come first and are all cut.
    source = np.concatenate([roots[:-1], tails])
    target = np.concatenate([roots[1:], parent[tails]])
    first, ends = np.zeros(n + 1, np.intp), np.empty(2 * n, np.intp)
    group = cut_edges(source, target, n, k)
    uncut = tails[group[tails] == group[parent[tails]]]
    link(uncut, parent[uncut], first, ends)  # the neighbours of each record within its group
    side, origin = np.empty(n, np.intp), np.empty(n, np.intp)
    labels, branch, hub_of = np.full(n, -1), np.full(n, -1), np.empty(n, np.intp)
    m = _part(first, ends, k, labels, branch, hub_of, side, origin, np.empty(n, np.intp))
    size, centroid, distance = np.empty(m, np.intp), np.empty((m, d)), np.zeros(m)
    least, joined = np.empty(m, np.intp), np.empty(m, np.intp)
    _measure(X, branch, hub_of, size, centroid, distance, least)
    order = np.lexsort((least, -distance, hub_of[:m]))
    bounds = np.append(np.flatnonzero(np.diff(hub_of[order], prepend=-1)), m)
    following, centre = np.empty(m + 1, np.intp), np.empty(d)
    _gather(order, bounds, k, size, centroid, joined, following, centre, state)
    rest = branch >= 0
    labels[rest] = n + joined[branch[rest]]
    return labels


def mu_approx(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition along nearest neighbours.

    Returns
    -------
    Outcome: the group of each record, of k to max(2k − 1, 3k − 3) records.

    >>> mu_approx(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [0, 1, 0, 1, 0, 1]
    """
    state = new_state() if state is None else state
    n = len(X)
    everyone = np.arange(n)
    if k == 1:
        state[DONE] = n
        return Outcome(everyone)
    tree, parent = build(X, everyone), np.full(n, -1)
    target, length = np.empty(n, np.intp), np.empty(n)

    def point(start: int, stop: int, _: int) -> None:
        _point(for_thread(tree), X, start, stop, target, length, state)

    share_out(point, n, state, at_once=_AT_ONCE)
    _grow(tree, X, k, target, length, parent, new_heap(n), state)
    return Outcome(everyone if state[STOP] else _split(X, k, parent, length, state))
