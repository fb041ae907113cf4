"""Borůvka's Euclidean minimum spanning tree over a block tree.

In every round each component joins the nearest one. What a component's best edge is comes first from
lists of the nearest neighbours, made once: the first listed neighbour outside is a record's
nearest outside. Where a list is used up, the tree is searched for all records of a leaf at
once, but only if the record could still beat the best edge known for its component:
its floor, below which it is known to have no neighbour outside, never sinks while
components grow. Nodes that lie wholly in the searching component are passed over.

Edges are ordered by (length, lower row, higher row). No two are equal, so the tree is unique,
and neither threads nor the order of the search can change it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats
from microagg.compile.jit import kernel
from microagg.compile.no_refcount import lean_kernel, lean_subkernel
from microagg.compile.threads import share_out, thread_count
from microagg.kernels.block_tree import (
    DEPTH,
    LEAF,
    BlockTree,
    Indices,
    build_tree,
    push_children,
    to_box,
    to_leaf,
)
from microagg.kernels.nearest_neighbours import nearest_neighbours

# Eight neighbours leave little to search for: more take longer to find than they save.
_LISTED = 8


class TreeRecords(NamedTuple):
    """What is known of each record, by position in the tree."""

    component: Indices  # (n,) numbered from 0
    used: Indices  # (n,) listed neighbours that lie in the record's own component
    floor: Floats  # (n,) no record outside its component is nearer (squared)
    nearest: Floats  # (n,) distance to a record outside, found by search; infinite if none
    outside: Indices  # (n,) that record


class Edges(NamedTuple):
    """Edges by the positions of their ends; −1 and infinite where there is none."""

    square: Floats
    one: Indices
    other: Indices


def _no_edges(*shape: int) -> Edges:
    return Edges(
        np.full(shape, np.inf),
        np.full(shape, -1, dtype=np.intp),
        np.full(shape, -1, dtype=np.intp),
    )


@lean_subkernel
def _offer(rows, best, c, square, one, other):
    """Make an edge the best of component c if it comes first; return whether it did."""
    if square > best.square[c]:
        return False
    if square == best.square[c] and best.one[c] >= 0:
        a, b = rows[one], rows[other]
        low, high = min(a, b), max(a, b)
        a, b = rows[best.one[c]], rows[best.other[c]]
        if low > min(a, b) or (low == min(a, b) and high >= max(a, b)):
            return False
    best.square[c], best.one[c], best.other[c] = square, one, other
    return True


@lean_kernel
def _offer_known(rows, lists, records, best):
    """Offer each component the edges that lists and earlier searches know of."""
    n, listed = lists.square.shape
    for p in range(n):
        c = records.component[p]
        s = records.used[p]
        while s < listed and records.component[lists.position[p, s]] == c:
            s += 1
        records.used[p] = s
        if s < listed:
            _offer(rows, best, c, lists.square[p, s], p, lists.position[p, s])
        elif records.outside[p] >= 0:
            if records.component[records.outside[p]] == c:
                records.outside[p], records.nearest[p] = -1, np.inf
            else:
                _offer(rows, best, c, records.nearest[p], p, records.outside[p])


@lean_kernel
def _label_nodes(tree, records, owner):
    """Set ``owner`` to the component that a node lies in as a whole, or −1."""
    for node in range(owner.size - 1, -1, -1):
        child = tree.child[node]
        if child >= 0:
            owner[node] = owner[child] if owner[child] == owner[child + 1] else -1
            continue
        start = tree.first[node] * LEAF
        owner[node] = records.component[start]
        for p in range(start, min(start + LEAF, tree.rows.size)):
            if records.component[p] != owner[node]:
                owner[node] = -1
                break


@lean_subkernel
def _limits(tree, leaf, listed, records, best, limit):
    """Up to what squared distance a search can matter to each record of a leaf; −1 if it cannot.

    Returns the largest.
    """
    largest = -1.0
    for slot in range(min(LEAF, tree.rows.size - leaf * LEAF)):
        p = leaf * LEAF + slot
        limit[slot] = -1.0
        if records.used[p] == listed and records.floor[p] <= best.square[records.component[p]]:
            limit[slot] = best.square[records.component[p]]
            largest = max(largest, limit[slot])
    return largest


@kernel
def _leaves_to_search(tree, listed, records, best, out):
    count = 0
    limit = np.empty(LEAF)
    for leaf in range(tree.node.size):
        if _limits(tree, leaf, listed, records, best, limit) >= 0.0:
            out[count] = leaf
            count += 1
    return count


@lean_subkernel
def _scan(
    rows, block, leaf, other, component, owner, limit, wanted, best, nearest, outside, squares
):
    """Offer the edges from the records of a leaf to those of another; whether one was taken."""
    start, end = other * LEAF, min((other + 1) * LEAF, rows.size)
    taken = False
    for slot in range(min(LEAF, rows.size - leaf * LEAF)):
        if wanted[slot] > limit[slot]:
            continue
        p = leaf * LEAF + slot
        c = component[p]
        reach = min(limit[slot], best.square[c])
        if c == owner or not to_leaf(block[leaf], slot, block[other], reach, squares):
            continue
        for q in range(start, end):
            square = squares[q - start]
            if square <= best.square[c] and component[q] != c:
                taken |= _offer(rows, best, c, square, p, q)
                if square < nearest[p]:
                    nearest[p], outside[p] = square, q
    return taken


@kernel
def _search(tree, leaves, listed, records, owner, best):
    """Search the tree for the best edges out of some leaves."""
    # Inner functions get arrays: passing tuples of them costs more than what they do.
    rows, first, child, low, high = tree.rows, tree.first, tree.child, tree.low, tree.high
    block, component = tree.block, records.component
    nearest, outside = records.nearest, records.outside
    squares, wanted, limit = np.empty(LEAF), np.empty(LEAF), np.empty(LEAF)
    stack, gaps = np.empty(DEPTH, np.intp), np.empty(DEPTH)
    for leaf in leaves:
        own = tree.node[leaf]
        reach = _limits(tree, leaf, listed, records, best, limit)
        stack[0], gaps[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if gaps[top] > reach or (owner[node] >= 0 and owner[node] == owner[own]):
                continue
            if child[node] >= 0:
                top = push_children(child[node], low, high, own, reach, stack, gaps, top)
                continue
            to_box(block[leaf], low[node], high[node], wanted)
            if _scan(
                rows,
                block,
                leaf,
                first[node],
                component,
                owner[node],
                limit,
                wanted,
                best,
                nearest,
                outside,
                squares,
            ):
                reach = _limits(tree, leaf, listed, records, best, limit)
        for p in range(leaf * LEAF, min((leaf + 1) * LEAF, rows.size)):
            if records.used[p] == listed:
                records.floor[p] = max(records.floor[p], best.square[component[p]])


@lean_subkernel
def _root(parent, c):
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = parent[c]
    return c


@kernel
def _join(rows, bests, records, edges, found):
    """Join components along their best edges; return how many edges there are now.

    ``bests`` holds what each thread found. Components are numbered anew.
    """
    threads, components = bests.square.shape
    parent = np.arange(components)
    for c in range(components):
        best = Edges(bests.square[0], bests.one[0], bests.other[0])
        for t in range(1, threads):
            if bests.one[t, c] >= 0:
                _offer(rows, best, c, bests.square[t, c], bests.one[t, c], bests.other[t, c])
        a = _root(parent, records.component[best.one[c]])
        b = _root(parent, records.component[best.other[c]])
        if a != b:
            parent[max(a, b)] = min(a, b)
            edges.square[found] = best.square[c]
            edges.one[found], edges.other[found] = best.one[c], best.other[c]
            found += 1
    number = np.empty(components, np.intp)
    left = 0
    for c in range(components):
        root = _root(parent, c)
        if root == c:
            number[c] = left
            left += 1
        else:
            number[c] = number[root]  # roots come first: the lower number is the root
    for p in range(records.component.size):
        records.component[p] = number[records.component[p]]
    return found


def _round(tree: BlockTree, listed: int, records: TreeRecords, bests: Edges, state: State) -> None:
    """Search for better edges than those known, wherever there may be one."""
    leaves = np.empty(len(tree.node), dtype=np.intp)
    known = Edges(*(part[0] for part in bests))
    leaves = leaves[: _leaves_to_search(tree, listed, records, known, leaves)]
    if not len(leaves):
        return
    for part in bests:
        part[1:] = part[0]
    owner = np.empty(len(tree.child), dtype=np.intp)
    _label_nodes(tree, records, owner)

    def work(begin: int, end: int, thread: int) -> None:
        best = Edges(*(part[thread] for part in bests))
        _search(tree, leaves[begin:end], listed, records, owner, best)

    share_out(work, len(leaves), state, at_once=32)


def boruvka(X: Floats, state: State) -> tuple[Indices, Indices, Floats]:
    """Find the minimum spanning tree of the rows of X, at least two.

    Returns the ends of its n−1 edges as rows of X, and their squared lengths, in no
    particular order. Stops with fewer edges when asked to. About O(n log n) time in few
    columns; O(n²) where boxes do not part the records, as in many columns. O(n·d) memory.
    """
    n = len(X)
    tree = build_tree(X)
    lists = nearest_neighbours(tree, min(_LISTED, n - 1), state, n // 2)
    listed = lists.square.shape[1]
    records = TreeRecords(
        component=np.arange(n, dtype=np.intp),
        used=np.zeros(n, dtype=np.intp),
        floor=lists.square[:, -1].copy(),
        nearest=np.full(n, np.inf),
        outside=np.full(n, -1, dtype=np.intp),
    )
    edges = _no_edges(n - 1)
    found, threads = 0, 1  # lists answer for all records in the first round
    base = int(state[DONE])
    while found < n - 1:
        bests = _no_edges(threads, n - found)
        known = Edges(*(part[0] for part in bests))
        _offer_known(tree.rows, lists, records, known)
        if found > 0:
            _round(tree, listed, records, bests, state)
        if state[STOP]:
            break
        found = _join(tree.rows, bests, records, edges, found)
        state[DONE] = max(base, found)
        threads = thread_count()
    return tree.rows[edges.one[:found]], tree.rows[edges.other[:found]], edges.square[:found]
