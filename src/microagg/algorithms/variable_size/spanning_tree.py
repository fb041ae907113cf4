"""The Euclidean minimum spanning tree, made once and cut for many k.

Problem   Connect n records of d columns by n−1 edges of least total length.
Idea      Borůvka's rounds over a tree of blocks, see ``boruvka``. Records that are equal
          hang on the first of them by edges of length 0, so that only one of them is searched for.
          One column needs no more than sorting.
Cost      About O(n log n) time in few columns, O(n²·d) at worst in many; O(n·d) memory.
Here      Edges are ordered by (length, lower row, higher row), which makes the tree unique. In two
          columns the same search is several times faster than a Delaunay triangulation.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from microagg.base.formatting import table_size
from microagg.base.progress import DONE, STOP, Listener, State, run_watched
from microagg.base.typing import Floats
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.compile.threads import share_out, thread_count
from microagg.encode.prepare import prepare
from microagg.errors import InputError, shown
from microagg.kernels.block_tree import (
    DEPTH,
    LEAF,
    Indices,
    build_tree,
    nearest_neighbours,
    push_children,
    to_box,
    to_leaf,
)


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """The minimum spanning tree of some scaled records, for ``partition(..., tree=tree)``.

    Edge e joins the rows ``first[e]`` < ``second[e]``; the longest edge comes first, ties in the
    order of rows.
    """

    first: Indices = field(repr=False)  # (n−1,)
    second: Indices = field(repr=False)  # (n−1,)
    length: Floats = field(repr=False)  # (n−1,)
    shape: tuple[int, int]  # of the data
    scale: str
    fingerprint: str = field(repr=False)  # of the scaled data

    def __post_init__(self) -> None:
        for array in (self.first, self.second, self.length):
            array.setflags(write=False)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, without the edges."""
        return {"shape": list(self.shape), "scale": self.scale, "fingerprint": self.fingerprint}


def minimum_spanning_tree(
    X: Any, scale: str = "zscore", *, progress: Listener | None = None
) -> SpanningTree:
    """Build the Euclidean minimum spanning tree of the scaled records.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
        The records, one a row.
    scale : {"zscore", "range", "robust", "none"}
        As in :func:`microagg.partition`, which takes the tree for this scale only.
    progress : callable, optional
        Called about ten times a second with the number of records done.

    Returns
    -------
    SpanningTree
        With n−1 edges ``first``, ``second`` and their ``length``, the longest first.

    >>> import microagg
    >>> X = [[0, 0], [0, 1], [1, 1], [7, 7], [7, 8], [8, 8]]
    >>> tree = microagg.minimum_spanning_tree(X, scale="none")
    >>> [(int(a), int(b)) for a, b in zip(tree.first, tree.second)]
    [(2, 3), (0, 1), (1, 2), (3, 4), (4, 5)]
    >>> microagg.partition(X, 3, method="mst", scale="none", tree=tree).labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    records = prepare(X, 1, scale)
    edges = run_watched(lambda state: spanning_edges(records.scaled, state), progress)
    return SpanningTree(*edges, records.scaled.shape, scale, _fingerprint(records.scaled))


def check_tree(tree: object, X: Floats) -> tuple[Indices, Indices, Floats]:
    """Return the edges of a tree, as :func:`spanning_edges` does; refuse that of other records."""
    if not isinstance(tree, SpanningTree):
        raise InputError(
            f"tree= takes what microagg.minimum_spanning_tree returns; got {shown(tree)}."
        )
    way_out = "Build it from the same rows in the same order, with the scale of the partition."
    if tree.shape != X.shape:
        raise InputError(
            f"tree= belongs to other data: it has {table_size(*tree.shape)}; "
            f"the data have {table_size(*X.shape)}. {way_out}"
        )
    if tree.fingerprint != _fingerprint(X):
        raise InputError(
            f"tree= belongs to other data of the same shape, or to another scale: it was built "
            f"with scale={shown(tree.scale)}. {way_out}"
        )
    return tree.first, tree.second, tree.length


def _fingerprint(X: Floats) -> str:
    """Name of the scaled values: other values, another order or another scale give another."""
    return hashlib.blake2b(X.data.cast("B"), digest_size=16).hexdigest()


def _hash_rows(bits: Any) -> Any:
    hashes = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        hashes = (hashes ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _first_equal_rows(X: Floats) -> Indices:
    """Find the first row that equals each row: itself for most.

    Rows with the same hash that differ stay as they are: they cost time, not correctness.
    """
    bits = (X + 0.0).view(np.uint64)  # one zero only
    hashes = _hash_rows(bits)
    order = np.argsort(hashes, kind="stable")
    begins = np.append(True, np.diff(hashes[order]) != 0)
    firsts = order[np.maximum.accumulate(np.where(begins, np.arange(len(X)), 0))]
    others = np.flatnonzero(~begins)
    equal = (bits[order[others]] == bits[firsts[others]]).all(axis=1)
    out = np.arange(len(X), dtype=np.intp)
    out[order[others[equal]]] = firsts[others[equal]]
    return out


def spanning_edges(X: Floats, state: State) -> tuple[Indices, Indices, Floats]:
    """Edges of the tree of scaled records: ``first``, ``second``, ``length``, the longest first.

    Stops with fewer edges when asked to.
    """
    n = len(X)
    rows = np.arange(n, dtype=np.intp)
    equal = _first_equal_rows(X)
    different = rows[equal == rows]
    distinct = X if len(different) == n else X[different]
    if len(different) == 1:
        one = other = rows[:0]
        square = np.empty(0)
    elif X.shape[1] == 1:
        order = np.argsort(distinct[:, 0], kind="stable")
        one, other = order[:-1], order[1:]
        square = np.square(np.diff(distinct[order, 0]))
    else:
        one, other, square = boruvka(distinct, state)
    if not state[STOP]:
        state[DONE] = n
    copies = rows[equal != rows]
    one = np.concatenate([different[one], equal[copies]])
    other = np.concatenate([different[other], copies])
    first, second = np.minimum(one, other), np.maximum(one, other)
    length = np.sqrt(np.concatenate([square, np.zeros(len(copies))]))
    order = np.lexsort((second, first, -length))
    return first[order], second[order], length[order]


# Borůvka's Euclidean minimum spanning tree over a block tree.
#
# In every round each component joins the nearest one. What a component's best edge is comes first from
# lists of the nearest neighbours, made once: the first listed neighbour outside is a record's
# nearest outside. Where a list is used up, the tree is searched for all records of a leaf at
# once, but only if the record could still beat the best edge known for its component:
# its floor, below which it is known to have no neighbour outside, never sinks while
# components grow. Nodes that lie wholly in the searching component are passed over.
#
# Edges are ordered by (length, lower row, higher row). No two are equal, so the tree is unique,
# and neither threads nor the order of the search can change it.

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
    return Edges(np.full(shape, np.inf), *np.full((2, *shape), -1, dtype=np.intp))


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


@lean_subkernel
def _scan(
    rows, block, leaf, other, component, owner, limit, wanted, best, nearest, outside, squares
):
    """Offer the edges from the records of a leaf to those of another; whether one was taken."""
    start, end = other * LEAF, min((other + 1) * LEAF, rows.size)
    improved = False
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
                improved |= _offer(rows, best, c, square, p, q)
                if square < nearest[p]:
                    nearest[p], outside[p] = square, q
    return improved


@kernel
def _search(tree, leaves, listed, records, owner, best):
    """Search the tree for the best edges out of some leaves."""
    # Inner functions get arrays: passing tuples of them costs more than what they do.
    rows, first, child, low, high = tree.rows, tree.first, tree.child, tree.low, tree.high
    block, component = tree.block, records.component
    near, out = records.nearest, records.outside
    squares, wanted, limit = np.empty(LEAF), np.empty(LEAF), np.empty(LEAF)
    stack, gaps = np.empty(DEPTH, np.intp), np.empty(DEPTH)
    for leaf in leaves:
        home = tree.node[leaf]
        reach = _limits(tree, leaf, listed, records, best, limit)
        stack[0], gaps[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if gaps[top] > reach or (owner[node] >= 0 and owner[node] == owner[home]):
                continue
            if child[node] >= 0:
                top = push_children(child[node], low, high, home, reach, stack, gaps, top)
                continue
            to_box(block[leaf], low[node], high[node], wanted)
            other, own = first[node], owner[node]
            if _scan(
                rows, block, leaf, other, component, own, limit, wanted, best, near, out, squares
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
def _join(rows, bests, records, edges, count):
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
            edges.square[count] = best.square[c]
            edges.one[count], edges.other[count] = best.one[c], best.other[c]
            count += 1
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
    return count


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
    edges, owner = _no_edges(n - 1), np.empty(len(tree.child), dtype=np.intp)
    count, threads = 0, 1  # lists answer for all records in the first round
    base = int(state[DONE])

    def work(begin: int, end: int, thread: int) -> None:
        best = Edges(*(array[thread] for array in bests))
        _search(tree, leaves[begin:end], listed, records, owner, best)

    while count < n - 1:
        bests = _no_edges(threads, n - count)
        _offer_known(tree.rows, lists, records, Edges(*(array[0] for array in bests)))
        if count > 0:  # search for better edges than those known, wherever there may be one
            matters = records.used == listed
            matters &= records.floor <= bests.square[0][records.component]
            leaves = np.unique(np.flatnonzero(matters) // LEAF)
            for array in bests:
                array[1:] = array[0]
            _label_nodes(tree, records, owner)
            share_out(work, len(leaves), state, at_once=32)
        if state[STOP]:
            break
        count = _join(tree.rows, bests, records, edges, count)
        state[DONE] = max(base, count)
        threads = thread_count()
    return tree.rows[edges.one[:count]], tree.rows[edges.other[:count]], edges.square[:count]
