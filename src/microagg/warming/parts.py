"""How each part is compiled: by calls with the types that it will meet and as little work as possible.

tests/warming/test_warm.py holds that nothing is left to compile after that. Only processes that compile
import this module: it loads numba and nearly all kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from microagg.base.progress import new_state
from microagg.grouping.improve import lower_bound
from microagg.grouping.partition import partition
from microagg.kernels import outside_in
from microagg.kernels.kd_tree import WIDTH, build, for_thread
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.nearer_counts import count_by_scan, count_by_tree, in_blocks
from microagg.kernels.remaining import all_left, none_left
from microagg.kernels.search_ahead import choose, eyes_of, look, new_ahead, rounds_ahead
from microagg.plan.registry import METHODS
from microagg.plan.settings import EXACT_K
from microagg.warming.needed import WEIGHTED
from microagg.warming.required_parts import REQUIRED_PARTS
from microagg.warming.search_parts import SEARCH_PARTS
from microagg.warming.tiny_table import FIXED_LABELS, LABELS, WEIGHTS, D, K, N, X

__all__ = ["compile_part"]

_FEWEST: dict[str, Any] = {
    "starts": 2,
    "n_projections": 2,
    "nodes": 0,
    "generations": 1,
}  # options of methods


def compile_part(name: str) -> None:
    """Compile a part: one of ``_PARTS``, with or without weights, or the kernels of a method."""
    plain = name.removeprefix(WEIGHTED)
    if plain in _PARTS:
        _PARTS[plain](WEIGHTS if plain != name else None)
        return
    method = METHODS[name]
    options = {one.name: _FEWEST[one.name] for one in method.options if one.name in _FEWEST}
    partition(X[:, :1] if method.one_column else X, K, method=name, **options)
    if name == "centroid":
        _rounds(none_left(X), np.empty((2, D)))


def _evaluation(_: Any) -> None:
    canonical_labels(LABELS[::-1].copy())
    canonical_labels(FIXED_LABELS)
    sum_of_squares(X, LABELS)


def _linkage(_: Any) -> None:
    rows, zeros = np.arange(N), np.zeros(N)
    blocks, sizes = in_blocks(X), np.ones(N, np.int64)
    count_by_scan(X, rows, zeros, zeros, blocks, sizes, rows, rows, np.empty(WIDTH), sizes.copy())


def _linkage_in_a_tree(_: Any) -> None:
    rows, zeros, sizes = np.arange(N), np.zeros(N), np.ones(N, np.int64)
    count_by_tree(X, rows, zeros, zeros, for_thread(build(X, rows)), sizes, sizes.copy())


def _rounds(left: Any, moving: Any = None, both: int | None = None) -> None:
    scratch = outside_in.scratch(K)
    outside_in.rounds(left, None, moving, both, 0, K, 2 * K, 0, 0, *scratch, new_state())


def _in_threads(weights: Any, moving: Any = None) -> None:
    """Compile the rounds of mdav for which threads search; with moving centres, those of centroid."""
    left, both = none_left(X, weights), 3 * K if moving is None else None
    ahead = new_ahead(N, 1, K, moving is not None)
    choose(left, ahead, 0, 0)
    look(eyes_of(left.tree, ahead), moving, left.X, both, ahead, 0, 0, 1)
    scratch = outside_in.scratch(K)
    rounds_ahead(left, ahead, moving, both, 0, K, 0, 0, *scratch, new_state())


def _one_column(_: Any) -> None:
    partition(X[:, :1], K)
    partition(np.random.default_rng(0).random(300_000), K)  # in several threads


def _tables_in_parts(_: Any) -> None:
    """Compile what only the disk and Spark engines need."""
    import pyarrow as pa

    from microagg.encode.batch_statistics import Moments
    from microagg.encode.inertia import Corners
    from microagg.kernels.halving_tree import leaves_of
    from microagg.measure.coordinates import AttackerSpace
    from microagg.measure.count_by_keys import ClassCounter
    from microagg.measure.linkage import ReleasedRows, Sought, count_near
    from microagg.measure.row_keys import row_keys

    Moments().add(X[:, 0].copy())
    leaves_of(X, np.zeros((1, D)), np.zeros(1), np.zeros(N, dtype=np.int64))
    keys = row_keys([pa.array([1.0, 2.0]), pa.array(["a", "b"])])
    with TemporaryDirectory() as folder:
        for distinct in (None, keys):
            counter = ClassCounter(Path(folder), 1 << 20, distinct=distinct is not None)
            counter.add(keys, distinct)
            counter.sizes()
    levels = np.arange(float(N))[:, None]
    released = ReleasedRows(levels, np.zeros(levels.shape, np.int64))
    count_near(AttackerSpace([Corners(X)], {}), Sought(X, X), [released])


_PARTS: dict[str, Callable[[Any], object]] = {
    **REQUIRED_PARTS,
    **SEARCH_PARTS,
    "bound": lambda _: lower_bound(X, K, effort="balanced"),
    "bound of larger k": lambda _: lower_bound(X, EXACT_K + 1, effort="balanced"),
    "centroid in threads": lambda _: _in_threads(None, np.empty((2, D))),
    "evaluation": _evaluation,
    "left": lambda weights: all_left(X, weights),
    "linkage in a tree": _linkage_in_a_tree,
    "linkage": _linkage,
    # Of many records: the shells and the tree are the part "left".
    "mdav": lambda weights: _rounds(none_left(X, weights), both=3 * K),
    "mdav in threads": _in_threads,
    "mdav of few": lambda weights: _rounds(all_left(X, weights, in_tree=False), both=3 * K),
    "one column": _one_column,
    "tables in parts": _tables_in_parts,
}
