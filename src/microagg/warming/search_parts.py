"""How the parts of the search for a lower loss are compiled; see :mod:`microagg.warming.parts`."""

from __future__ import annotations

from collections.abc import Callable
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
from microagg.base.progress import new_state
from microagg.grouping.improve import refine
from microagg.kernels.labels import sum_of_squares
from microagg.kernels.release_kinds import MODE, Releases
from microagg.warming.tiny_table import DEMANDS, FIXED_LABELS, LABELS, WEIGHTS, D, K, N, X


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


def _start(_: Any) -> None:
    mdav_in_blocks(X, K, new_state(), 0)
    groups = grouped(X, LABELS, N // K)
    split_groups(groups.centroid, 2, np.zeros(1, np.uint64))
    compacted(NewGroups(groups.rows, np.diff(groups.start), groups.centroid))


def _large_start(_: Any) -> None:
    plan, _, _ = plan_halvings(N, 2, np.zeros(1, np.uint64))
    groups, keys = np.arange(N), np.zeros(N)
    place_some(X, groups, keys, plan, 0, 0, N)
    part_placed(groups, keys, plan, 0)


SEARCH_PARTS: dict[str, Callable[[Any], object]] = {
    "best": lambda _: refine(X, LABELS, K, effort="best"),
    "large search": lambda weights: anneal_large_patches(X, weights, *_no_patches(2)),
    "large start": _large_start,
    "last search": _last_search,
    "pairs": lambda weights: part_pairs(X, weights, LABELS, K, 1, 0, new_state()),
    "search": _search,
    "start": _start,
}
