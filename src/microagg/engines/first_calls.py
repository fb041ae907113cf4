"""A process that compiles kernels in advance: by calls with the types that they will meet, and little work.

:mod:`microagg.compile.warm` starts it and names the parts. Nothing else imports this module: it loads numba
and nearly all kernels.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.algorithms.auto import mdav_in_blocks
from microagg.algorithms.fixed_size import mdav
from microagg.algorithms.refine.anneal import Heat, PoolSettings, anneal_patches
from microagg.algorithms.refine.large import anneal_large_patches, part_pairs
from microagg.algorithms.refine.last_search import search_patches
from microagg.algorithms.refine.patches import (
    NewGroups,
    PackedGroups,
    Patches,
    compacted,
    grouped,
    split_groups,
)
from microagg.algorithms.required.grow_and_merge import grown, merge
from microagg.algorithms.required.soria_comas import k_first, t_first
from microagg.base.progress import new_state
from microagg.compile.warm import COMPILED, WEIGHTED, note, notes_folder
from microagg.encode.batch_statistics import Moments
from microagg.grouping.partition import lower_bound, partition, refine
from microagg.grouping.require.requirement import demands_of
from microagg.grouping.require.value_rules import Closeness, Units
from microagg.kernels.attack_loops import count_by_scan, count_by_tree
from microagg.kernels.halve import leaves_of
from microagg.kernels.kd_tree import build, for_thread
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.release_kinds import MODE, Releases
from microagg.kernels.require_demands import violations
from microagg.measure.count_by_keys import ClassCounter
from microagg.measure.row_keys import row_keys
from microagg.plan.registry import METHODS
from microagg.plan.settings import EXACT_K

# A small table of the types that kernels meet.
N, K, D = 24, 3, 2  # records, k and columns
X = np.random.default_rng(0).normal(size=(N, D))
WEIGHTS = np.linspace(0.5, 1.5, N)
LABELS = np.arange(N) // K
# So many that a tree is searched, and several threads search ahead.
MANY = np.random.default_rng(1).normal(size=(16 * 130 * 2 + 100, 8))
FIXED_LABELS = LABELS.copy()  # of a partition, which nobody may change: another type to numba
FIXED_LABELS.flags.writeable = False
IN_THREADS = np.random.default_rng(0).random(300_000)  # a column that is cut in several threads
DEMANDS = demands_of([Units(np.arange(N), 1)], N)  # at least one unit in each group
CLOSENESS = demands_of([Closeness(np.arange(N) % 4, 0.5)], N)

# Options of methods.
_FEWEST: dict[str, Any] = {"starts": 2, "n_projections": 2, "nodes": 0, "generations": 1}


def compile_part(name: str) -> None:
    """Compile a part: one of ``_PARTS``, with or without weights, or the kernels of a method."""
    plain = name.removeprefix(WEIGHTED)
    if plain in _PARTS:
        _PARTS[plain](WEIGHTS if plain != name else None)
        return
    method = METHODS[name]
    names = {option.name for option in method.options} & {*_FEWEST}
    options = {name: _FEWEST[name] for name in names}
    partition(X[:, :1] if method.one_column else X, K, method=name, **options)
    if name == "centroid":
        partition(MANY, 2, method=name)


def _start(_: Any) -> None:
    mdav_in_blocks(X, K, new_state(), 0)
    groups = grouped(X, LABELS, N // K)
    split_groups(groups.centroid, 2, np.zeros(1, np.uint64))
    compacted(NewGroups(groups.rows, np.diff(groups.start), groups.centroid))
    canonical_labels(LABELS[::-1].copy())
    canonical_labels(FIXED_LABELS)
    sum_of_squares(X, LABELS)


def _no_patches(*given: Any) -> tuple[Any, ...]:
    """Return the arguments of a pass over no patch."""
    count = N // K
    old = PackedGroups(np.arange(N), np.arange(0, N + 1, K), np.zeros((count, D)))
    new = NewGroups(np.zeros(N, np.intp), np.zeros(count, np.intp), np.zeros((count, D)))
    groups, first, seeds = np.arange(count), np.array([0, count]), np.zeros(1, np.uint64)
    patches = Patches(old, groups, first, np.zeros(2, np.intp), seeds, new, np.zeros(1))
    return patches, 0, 0, K, *given, 1.0, Heat(1.0, 0.0, 1.0), new_state()


def _search(weights: Any) -> None:
    """Compile the search; with weights it is also that under requirements."""
    demands = None if weights is None else DEMANDS
    anneal_patches(X, weights, demands, *_no_patches(PoolSettings(2, N, True, 0.0)))
    if weights is not None:
        sum_of_squares(X, LABELS, weights)


def _large_search(weights: Any) -> None:
    anneal_large_patches(X, weights, *_no_patches(2))
    part_pairs(X, weights, LABELS, K, 1, 0, new_state())


def _last_search(_: Any) -> None:
    numbers = np.zeros((N, 1))
    releases = Releases(
        X=X,
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
    grouped(X, FIXED_LABELS, N // K)
    search_patches(X, WEIGHTS, releases, DEMANDS, *_no_patches())


def _required_merging(_: Any) -> None:
    violations(DEMANDS, np.arange(N), np.arange(0, N + 1, K), K)
    merge(X, WEIGHTS, DEMANDS, np.arange(N), K)
    sum_of_squares(X, LABELS, WEIGHTS)


def _tables_in_parts(_: Any) -> None:
    """Compile what only the disk and Spark engines need."""
    Moments().add(X[:, 0].copy())
    leaves_of(X, np.zeros((1, D)), np.zeros(1), np.zeros(N, dtype=np.int64))
    keys = row_keys([pa.array([1.0, 2.0]), pa.array(["a", "b"])])
    with TemporaryDirectory() as folder:
        for distinct in (None, keys):
            counter = ClassCounter(Path(folder), 1 << 20, distinct=distinct is not None)
            counter.add(keys, distinct)
            counter.sizes()


# Arguments of kernels of linkage.
_ROWS, _ZEROS, _SIZES = np.arange(N), np.zeros(N), np.ones(N, np.int64)

_PARTS: dict[str, Callable[[Any], object]] = {
    "best": lambda _: refine(X, LABELS, K, effort="best"),
    "bound": lambda _: lower_bound(X, K, effort="balanced"),
    "bound of larger k": lambda _: lower_bound(X, EXACT_K + 1, effort="balanced"),
    "closeness": lambda _: [method(X, K, CLOSENESS) for method in (k_first, t_first)],
    "large search": _large_search,
    "last search": _last_search,
    "linkage": lambda _: count_by_scan(X, _ROWS, _ZEROS, _ZEROS, X, _SIZES, _SIZES.copy()),
    "linkage in a tree": lambda _: count_by_tree(
        X, _ROWS, _ZEROS, _ZEROS, for_thread(build(X, _ROWS)), _SIZES, _SIZES.copy()
    ),
    "many records": lambda weights: mdav(
        MANY, 2, weights=None if weights is None else np.ones(len(MANY))
    ),
    "mdav": lambda weights: mdav(X, K, weights=weights),
    "one column": lambda _: [partition(column, K) for column in (X[:, :1], IN_THREADS)],
    "required merging": _required_merging,
    "required start": lambda _: grown(X, WEIGHTS, DEMANDS, K, new_state()),
    "search": _search,
    "start": _start,
    "tables in parts": _tables_in_parts,
}


def serve() -> None:
    """Compile the parts named on stdin, one a line, and answer on stdout."""
    gc.set_threshold(2_000_000)  # nearly all that compiling makes stays
    for line in sys.stdin:
        part, answer = line.strip(), COMPILED
        try:
            compile_part(part)
            folder = notes_folder()
            if folder is not None:
                (folder / note(part)).touch()
        except Exception as error:
            answer = " ".join(f"{type(error).__name__}: {error}".split())
        print(answer, flush=True)
