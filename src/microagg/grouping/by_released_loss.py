"""The last search for groups: by the loss of the values that they release.

It follows any search by the SSE, by auto, refine and under requirements, where columns release something else
than means; see :mod:`microagg.algorithms.refine.last_search`. Memory, disk and Spark begin it here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.progress import (
    DONE,
    STOP,
    Listener,
    State,
    new_state,
    run_watched,
    stop_after,
    tell_best,
)
from microagg.base.typing import Floats, Labels
from microagg.encode.release_rules import taken
from microagg.encode.space import Space
from microagg.grouping.partition import with_bound
from microagg.grouping.require.from_plan import within
from microagg.grouping.require.requirement import Requirement, demands_of
from microagg.kernels.labels import sum_of_squares
from microagg.plan.plan import Block
from microagg.plan.registry import find

__all__ = ["LAST", "is_plain", "is_searched", "search_by_release", "searched_by_release"]

LAST = 0.3  # of a time limit is for the last search


def is_plain(options: Mapping[str, Any]) -> bool:
    """Whether groups cost their SSE and nothing else."""
    return options.get("cost", "sse") == "sse" and not options.get("group_cost")


def is_searched(space: Space, block: Block, required: bool) -> bool:
    """Whether groups are searched for by the loss of what they release.

    So they are where any search is made: by auto, refine, and under requirements. Groups of a method as it
    was published stay as they are.
    """
    method = find(block.method)
    searched = method.name == "auto" or bool(block.refine) or (required and not method.closeness)
    return space.releases is not None and searched and is_plain(block.options)


def search_by_release(
    space: Space,
    rows: Labels | None,
    labels: Labels,
    k: int,
    requirements: Sequence[Requirement],
    *,
    weights: Floats | None,
    effort: str,
    seed: int | None,
    whole: int | None,
    state: State,
) -> Labels:
    """Make the last search among some records of a space, or all.

    ``requirements`` and ``weights`` are those of all records, ``labels`` those of the rows.
    """
    from microagg.algorithms.refine.last_search import lower_released_loss

    assert space.releases is not None
    X, releases = space.searched, space.releases
    if rows is not None:
        X, releases = np.ascontiguousarray(X[rows]), taken(releases, rows)
        weights = None if weights is None else weights[rows]
    return lower_released_loss(
        X,
        labels,
        k,
        releases,
        demands_of(within(requirements, rows), len(X)),
        weights=weights,
        effort=effort,
        random_state=seed,
        whole=whole,
        state=state,
    )


def searched_by_release(
    found: Partition,
    space: Space,
    rows: Labels | None,
    block: Block,
    requirements: Sequence[Requirement],
    *,
    weights: Floats | None,
    seed: int | None,
    whole: int | None,
    time_limit: float | None,
    watch: Listener | None,
) -> Partition:
    """Search groups of a low SSE further, and measure them in the space as it is."""
    started = time.perf_counter()
    X = space.matrix if rows is None else np.ascontiguousarray(space.matrix[rows])
    own = weights if weights is None or rows is None else weights[rows] / weights[rows].mean()
    state, labels = new_state(), found.labels
    state[DONE] = len(X)  # whoever watches was told that all records are done
    tell_best(state, found.sse)

    def work(state: State) -> Labels:
        with stop_after(state, None if time_limit is None else LAST * time_limit):
            return search_by_release(
                space,
                rows,
                found.labels,
                found.k,
                requirements,
                weights=weights,
                effort=block.options.get("effort", "balanced"),
                seed=seed,
                whole=whole,
                state=state,
            )

    if not found.stopped:
        labels = run_watched(work, watch, state=state, sst=found.sst)
    limit = {"time_limit": time_limit} if "time_limit" in found.options else {}
    result = replace(
        found,
        labels=labels,
        options={**found.options, **limit},
        sse=_squares(X, labels, own),
        sst=_squares(X, np.zeros(len(X), dtype=np.int64), own),
        seconds=found.seconds + time.perf_counter() - started,
        stopped=found.stopped or bool(state[STOP]),
    )
    return with_bound(result, X, own, block.bound, watch) if block.bound else result


def _squares(X: Floats, labels: Labels, weights: Floats | None) -> float:
    return sum_of_squares(X, labels) if weights is None else sum_of_squares(X, labels, weights)
