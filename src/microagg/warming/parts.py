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

from microagg.algorithms.auto import mdav_in_blocks
from microagg.algorithms.refine.anneal import Heat, PoolSettings, anneal_patches
from microagg.algorithms.refine.large import anneal_large_patches
from microagg.algorithms.refine.last_search import search_patches
from microagg.algorithms.refine.pairs import part_pairs
from microagg.algorithms.refine.patches import (
    NewGroups,
    PackedGroups,
    Patches,
    compacted,
    grouped,
    part_placed,
    place_some,
    plan_halvings,
    split_groups,
)
from microagg.algorithms.required import start as required_start
from microagg.algorithms.required.merge import merge
from microagg.algorithms.required.soria_comas import k_first, t_first
from microagg.base.progress import new_state
from microagg.bounds.repeated_pricing import EXACT_K
from microagg.grouping.improve import lower_bound, refine
from microagg.grouping.partition import partition
from microagg.grouping.require.requirement import demands_of
from microagg.grouping.require.value_rules import Closeness, Units
from microagg.kernels import outside_in
from microagg.kernels.kd_tree import WIDTH, build, for_thread
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.nearer_counts import count_by_scan, count_by_tree, in_blocks
from microagg.kernels.release_kinds import MODE, Releases
from microagg.kernels.remaining import all_left, none_left
from microagg.kernels.require_demands import violations
from microagg.kernels.search_ahead import choose, eyes_of, look, new_ahead, rounds_ahead
from microagg.plan.registry import METHODS
from microagg.warming.needed import WEIGHTED

__all__ = ["compile_part"]

_N, _K, _D = 24, 3, 2  # records, k and columns
_X = np.random.default_rng(0).normal(size=(_N, _D))
_WEIGHTS = np.linspace(0.5, 1.5, _N)
_LABELS = np.arange(_N) // _K
_FIXED_LABELS = _LABELS.copy()  # of a partition, which nobody may change: another type to numba
_FIXED_LABELS.flags.writeable = False
_DEMANDS = demands_of([Units(np.arange(_N), 1)], _N)  # at least one unit in each group

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
        _PARTS[plain](_WEIGHTS if plain != name else None)
        return
    method = METHODS[name]
    options = {one.name: _FEWEST[one.name] for one in method.options if one.name in _FEWEST}
    partition(_X[:, :1] if method.one_column else _X, _K, method=name, **options)
    if name == "centroid":
        _rounds(none_left(_X), np.empty((2, _D)))


def _no_patches(*given: Any) -> tuple[Any, ...]:
    """Return the arguments of a pass over no patch."""
    count = _N // _K
    old = PackedGroups(np.arange(_N), np.arange(0, _N + 1, _K), np.zeros((count, _D)))
    new = NewGroups(np.zeros(_N, np.intp), np.zeros(count, np.intp), np.zeros((count, _D)))
    groups, first, seeds = np.arange(count), np.array([0, count]), np.zeros(1, np.uint64)
    patches = Patches(old, groups, first, np.zeros(2, np.intp), seeds, new, np.zeros(1))
    return patches, 0, 0, _K, *given, 1.0, Heat(1.0, 0.0, 1.0), new_state()


def _search(weights: Any) -> None:
    """Compile the search; with weights it is also that under requirements."""
    demands = None if weights is None else _DEMANDS
    anneal_patches(_X, weights, demands, *_no_patches(PoolSettings(2, _N, True, 0.0)))
    if weights is not None:
        sum_of_squares(_X, _LABELS, weights)


def _last_search(_: Any) -> None:
    numbers = np.zeros((_N, 1))
    releases = Releases(
        X=_X,
        kind=np.array([MODE], np.intp),
        unit=np.ones(1),
        origin=np.zeros(1),
        points=np.zeros(0),
        start=np.zeros(2, np.intp),
        level=numbers.astype(np.intp),
        value=numbers,
        blank=numbers,
        majority=False,
    )
    grouped(_X, _FIXED_LABELS, _N // _K)
    search_patches(_X, _WEIGHTS, releases, _DEMANDS, *_no_patches())


def _required_start(_: Any) -> None:
    required_start.rounds(none_left(_X), _WEIGHTS, _DEMANDS, 0, _K, _N, 0, new_state())


def _required_merging(_: Any) -> None:
    violations(_DEMANDS, np.arange(_N), np.arange(0, _N + 1, _K), _K)
    merge(_X, _WEIGHTS, _DEMANDS, np.arange(_N), _K)
    sum_of_squares(_X, _LABELS, _WEIGHTS)


def _evaluation(_: Any) -> None:
    canonical_labels(_LABELS[::-1].copy())
    canonical_labels(_FIXED_LABELS)
    sum_of_squares(_X, _LABELS)


def _start(_: Any) -> None:
    mdav_in_blocks(_X, _K, new_state(), 0)
    groups = grouped(_X, _LABELS, _N // _K)
    split_groups(groups.centroid, 2, np.zeros(1, np.uint64))
    compacted(NewGroups(groups.rows, np.diff(groups.start), groups.centroid))


def _large_start(_: Any) -> None:
    plan, _, _ = plan_halvings(_N, 2, np.zeros(1, np.uint64))
    groups, keys = np.arange(_N), np.zeros(_N)
    place_some(_X, groups, keys, plan, 0, 0, _N)
    part_placed(groups, keys, plan, 0)


def _linkage(_: Any) -> None:
    rows, zeros = np.arange(_N), np.zeros(_N)
    blocks, sizes = in_blocks(_X), np.ones(_N, np.int64)
    count_by_scan(_X, rows, zeros, zeros, blocks, sizes, rows, rows, np.empty(WIDTH), sizes.copy())


def _linkage_in_a_tree(_: Any) -> None:
    rows, zeros, sizes = np.arange(_N), np.zeros(_N), np.ones(_N, np.int64)
    count_by_tree(_X, rows, zeros, zeros, for_thread(build(_X, rows)), sizes, sizes.copy())


def _rounds(left: Any, moving: Any = None, both: int | None = None) -> None:
    scratch = outside_in.scratch(_K)
    outside_in.rounds(left, None, moving, both, 0, _K, 2 * _K, 0, 0, *scratch, new_state())


def _in_threads(weights: Any, moving: Any = None) -> None:
    """Compile the rounds of mdav for which threads search; with moving centres, those of centroid."""
    left, both = none_left(_X, weights), 3 * _K if moving is None else None
    ahead = new_ahead(_N, 1, _K, moving is not None)
    choose(left, ahead, 0, 0)
    look(eyes_of(left.tree, ahead), moving, left.X, both, ahead, 0, 0, 1)
    scratch = outside_in.scratch(_K)
    rounds_ahead(left, ahead, moving, both, 0, _K, 0, 0, *scratch, new_state())


def _closeness(_: Any) -> None:
    demands = demands_of([Closeness(np.arange(_N) % 4, 0.5)], _N)
    for method in (k_first, t_first):
        method(_X, _K, demands)


def _bound(_: Any) -> None:
    for k, effort in ((_K, "fast"), (_K, "balanced"), (EXACT_K + 1, "balanced")):
        lower_bound(_X, k, effort=effort)


def _one_column(_: Any) -> None:
    partition(_X[:, :1], _K)
    partition(np.random.default_rng(0).random(300_000), _K)  # in several threads


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

    Moments().add(_X[:, 0].copy())
    leaves_of(_X, np.zeros((1, _D)), np.zeros(1), np.zeros(_N, dtype=np.int64))
    keys = row_keys([pa.array([1.0, 2.0]), pa.array(["a", "b"])])
    with TemporaryDirectory() as folder:
        for distinct in (None, keys):
            counter = ClassCounter(Path(folder), 1 << 20, distinct=distinct is not None)
            counter.add(keys, distinct)
            counter.sizes()
    levels = np.arange(float(_N))[:, None]
    released = ReleasedRows(levels, np.zeros(levels.shape, np.int64))
    count_near(AttackerSpace([Corners(_X)], {}), Sought(_X, _X), [released])


_PARTS: dict[str, Callable[[Any], object]] = {
    "best": lambda _: refine(_X, _LABELS, _K, effort="best"),
    "bound": _bound,
    "centroid in threads": lambda _: _in_threads(None, np.empty((2, _D))),
    "closeness": _closeness,
    "evaluation": _evaluation,
    "large search": lambda weights: anneal_large_patches(_X, weights, *_no_patches(2)),
    "large start": _large_start,
    "last search": _last_search,
    "left": lambda weights: all_left(_X, weights),
    "linkage in a tree": _linkage_in_a_tree,
    "linkage": _linkage,
    # Of many records: the shells and the tree are the part "left".
    "mdav": lambda weights: _rounds(none_left(_X, weights), both=3 * _K),
    "mdav in threads": _in_threads,
    "mdav of few": lambda weights: _rounds(all_left(_X, weights, in_tree=False), both=3 * _K),
    "one column": _one_column,
    "pairs": lambda weights: part_pairs(_X, weights, _LABELS, _K, 1, 0, new_state()),
    "required merging": _required_merging,
    "required start": _required_start,
    "search": _search,
    "start": _start,
    "tables in parts": _tables_in_parts,
}
