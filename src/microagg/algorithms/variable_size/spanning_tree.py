"""The Euclidean minimum spanning tree, made once and cut for many k.

Problem   Connect n records of d columns by n−1 edges of least total length.
Idea      Borůvka's rounds over a tree of blocks, see :mod:`microagg.kernels.boruvka`.
          Records that are equal hang on the first of them by edges of length 0, so that only
          one of them is searched for. One column needs no more than sorting.
Cost      About O(n log n) time in few columns, O(n²·d) at worst in many; O(n·d) memory.
Here      Edges are ordered by (length, lower row, higher row), which makes the tree unique. In two
          columns the same search is several times faster than a Delaunay triangulation.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from microagg.base.formatting import table_size
from microagg.base.progress import DONE, STOP, Listener, State, run_watched
from microagg.base.typing import Floats
from microagg.compile.no_refcount import lean_kernel
from microagg.encode.prepare import prepare
from microagg.errors import InputError, shown
from microagg.kernels.block_tree import Indices
from microagg.kernels.boruvka import boruvka


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


def check_tree(tree: object, X: Floats) -> SpanningTree:
    """Refuse what is not the tree of these scaled records."""
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
    return tree


def _fingerprint(X: Floats) -> str:
    """Name of the scaled values: other values, another order or another scale give another."""
    return hashlib.blake2b(X.data.cast("B"), digest_size=16).hexdigest()


@lean_kernel
def _hash_rows(bits, out):
    n, d = bits.shape
    for i in range(n):
        h = np.uint64(0)
        for j in range(d):
            h = (h ^ bits[i, j]) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        out[i] = h


@lean_kernel
def _first_equals(bits, hashes, order, out):
    """Set ``out`` to the first row that equals a row; ``order`` sorts rows by hash, then number.

    Rows with the same hash that differ stay as they are: they cost time, not correctness.
    """
    start = 0
    for a in range(order.size):
        if hashes[order[a]] != hashes[order[start]]:
            start = a
        i, first = order[a], order[start]
        out[i] = first
        for j in range(bits.shape[1]):
            if bits[i, j] != bits[first, j]:
                out[i] = i
                break


def _first_equal_rows(X: Floats) -> Indices:
    """Find the first row that equals each row: itself for most."""
    bits = (X + 0.0).view(np.uint64)  # one zero only
    hashes = np.empty(len(X), dtype=np.uint64)
    _hash_rows(bits, hashes)
    out = np.empty(len(X), dtype=np.intp)
    _first_equals(bits, hashes, np.argsort(hashes, kind="stable"), out)
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
    ends = np.stack(
        [
            np.concatenate([different[one], equal[copies]]),
            np.concatenate([different[other], copies]),
        ]
    )
    first, second = ends.min(axis=0), ends.max(axis=0)
    length = np.sqrt(np.concatenate([square, np.zeros(len(copies))]))
    order = np.lexsort((second, first, -length))
    return first[order], second[order], length[order]
