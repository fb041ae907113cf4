"""Groups of one cell: a method forms them, requirements change them, and the last search improves them.

The last search lowers the loss of the released values, where columns release something other than means; see
:mod:`microagg.algorithms.refine.last_search`. Memory, disk and Spark start it here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from microagg.algorithms.nominal_column import nominal_exact
from microagg.algorithms.result import Partition
from microagg.base.progress import DONE, Listener, State, new_state, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.encode.prepare import prepare
from microagg.encode.space import Space
from microagg.errors import InputError, shown
from microagg.grouping.partition import continued, partition, with_bound
from microagg.grouping.require.from_plan import whole_of, within
from microagg.grouping.require.requirement import Requirement, demands_of
from microagg.grouping.require.value_rules import Closeness
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.block import Block
from microagg.plan.registry import find
from microagg.plan.settings import settings_of

_LAST = 0.3  # share of a time limit that is for the last search
# The steps of the table are divided by this if a last search follows: both together take as long as one.
_SHARE = 4 / 3
_EXACT_FOR_CATEGORIES = ("auto", "optimal")  # methods that choose the exact way if there is one


@dataclass(frozen=True, eq=False)
class Problem:
    """Records to be grouped, and what their groups must satisfy."""

    space: Space
    block: Block  # with k, the method and all its settings
    requirements: Sequence[Requirement] = ()  # of every group in addition to k, for all records
    weights: Floats | None = None  # of all records of the space, in the objective; None: all alike
    seed: int | None = 0
    n_total: int | None = None  # records of the table that these are a part of; None: all of it
    span: tuple[float, float] = (0.0, 1.0)
    """From where to where in its search a method goes, if others continue it."""
    rows: Labels | None = None  # the records to be grouped; None: all of the space

    @property
    def k(self) -> int:
        """Least number of records in a group."""
        return self.block.k or 1

    @property
    def ends_by_release(self) -> bool:
        """Whether the last search is made here, and nobody continues it."""
        return self.space.releases is not None and self.span[1] == 1.0

    @property
    def required(self) -> Sequence[Requirement]:
        """The requirements of the records to be grouped."""
        return within(self.requirements, self.rows)

    @property
    def own_weights(self) -> Floats | None:
        """Weights of the records to be grouped."""
        return None if self.weights is None else self.of_rows(self.weights)

    def of_rows(self, values: Floats) -> Floats:
        """Return what belongs to the records to be grouped, of an array for all records."""
        return values if self.rows is None else np.ascontiguousarray(values[self.rows])

    def cell(self, rows: Labels) -> Problem:
        """Return the problem of some of the records."""
        n_total = len(self.space.matrix) if self.n_total is None else self.n_total
        return replace(self, rows=rows, n_total=n_total)


def with_least_effort(block: Block, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the least effort that a method has."""
    has = {option.name for option in find(block.method).options}
    return {**options, "effort": "fast"} if "effort" in has else dict(options)


def _is_sse(options: Mapping[str, Any]) -> bool:
    """Return whether groups cost their SSE and nothing else."""
    return options.get("cost", "sse") == "sse" and not options.get("group_cost")


def is_searched(space: Space, block: Block, required: bool) -> bool:
    """Return whether groups are searched for by the loss of their released values.

    They are wherever a search is made: by auto, by refine, and where ``required`` to satisfy more than k.
    Groups of a method as it was published stay as they are.
    """
    method = find(block.method)
    searched = method.name == "auto" or bool(block.refine) or (required and not method.closeness)
    return space.releases is not None and searched and _is_sse(block.options)


def solve(problem: Problem, options: Mapping[str, Any], watch: Listener | None = None) -> Partition:
    """Group the records of a problem with these options of the method."""
    if not problem.requirements:
        exact = _of_categories(problem)
        if exact is not None:
            return exact
    elif find(problem.block.method).closeness:
        return _published(problem)
    limit = options.get("time_limit")
    if problem.ends_by_release and limit is not None:
        options = {**options, "time_limit": (1 - _LAST) * limit}
    if problem.requirements:
        groups = _divided(problem, with_least_effort(problem.block, options), watch)
        groups = _satisfied(groups, problem, options, watch)
    else:
        groups = _divided(problem, options, watch)
    return _searched(groups, problem, limit, watch) if problem.ends_by_release else groups


def _divided(problem: Problem, options: Mapping[str, Any], watch: Listener | None) -> Partition:
    """Let the method form groups."""
    block, by_release = problem.block, problem.space.releases is not None
    X, n_total = problem.of_rows(problem.space.searched), problem.n_total
    if by_release and options.get("effort", "balanced") == "balanced":
        n_total = int(_SHARE * (n_total or len(X)))
    return partition(
        X,
        problem.k,
        weights=problem.own_weights,
        method=block.method,
        scale=problem.space.scale,
        random_state=problem.seed,
        refine=block.refine,
        bound=not by_release and (block.bound or False),
        n_total=n_total,
        span=problem.span,
        progress=watch,
        **options,
    )


def _of_categories(problem: Problem) -> Partition | None:
    """Best groups of one nominal column, proved; None if it is something else, or would take too long."""
    block, k, method = problem.block, problem.k, find(problem.block.method)
    plain = block.options.get("cost", "sse") == "sse"
    if not (method.categories or (method.name in _EXACT_FOR_CATEGORIES and plain)):
        return None
    started = time.perf_counter()
    levels = None if problem.weights is not None else problem.space.levels
    if levels is not None and problem.rows is not None:
        levels = levels[problem.rows]
    # If some values are missing, as in a joined pattern, these are no corners.
    corners = levels is not None and (levels.min() >= 0 or levels.max() < 0)
    labels = None
    if levels is not None and corners and len(levels) >= k:
        labels = nominal_exact(np.maximum(levels, 0), k)
    if labels is None:
        if not method.categories:
            return None
        fact = (
            "too many levels are rare for a search to end soon, or there are fewer than k records"
            if corners
            else "records without a value share groups with others"
            if levels is not None
            else "are other columns, several of them, more levels, weights or missing values as a state"
        )
        raise InputError(
            f"method {shown(method.name)} is for one nominal column or one of truth values, of up to 65 "
            f'levels and without weights; here {fact}. Say method = "auto".'
        )
    X = problem.of_rows(problem.space.matrix)
    groups = _measured(problem, X, labels, started)
    options = settings_of(method, dict(block.options), problem.seed)
    return replace(groups, options=options, lower_bound=groups.sse)


def _measured(problem: Problem, X: Floats, labels: Labels, started: float) -> Partition:
    """Make a partition of labels; records count alike."""
    labels = canonical_labels(labels)
    return Partition(
        labels=labels,
        k=problem.k,
        method=find(problem.block.method).name,
        scale=problem.block.scale,
        options={},
        sse=sum_of_squares(X, labels),
        sst=sum_of_squares(X, np.zeros(len(X), dtype=np.int64)),
        seconds=time.perf_counter() - started,
    )


def _published(problem: Problem) -> Partition:
    """Return groups of a published algorithm for closeness, merged if other requirements ask for it."""
    started = time.perf_counter()
    X = np.ascontiguousarray(problem.of_rows(problem.space.scaled))
    required = problem.required
    (close,) = [rule for rule in required if whole_of(rule, Closeness)]
    method = find(problem.block.method).function(X.shape[1] + 1)
    labels = method(X, problem.k, demands_of([close]))
    if len(required) > 1:
        from microagg.grouping.require.requirement_search import repair  # loads the compiler

        labels = repair(X, problem.k, required, labels)
    return _measured(problem, X, labels, started)


def _satisfied(
    groups: Partition, problem: Problem, options: Mapping[str, Any], watch: Listener | None
) -> Partition:
    """Change groups until they satisfy all requirements, at the least loss that a search finds."""
    space, weights = problem.space, problem.own_weights
    X = problem.of_rows(space.scaled if space.releases is None else space.searched)
    effort = options.get("effort", "balanced")

    def work(state: State) -> Labels:
        from microagg.grouping.require.requirement_search import repair, satisfy

        # The search minimises the SSE, and no other cost.
        if groups.stopped or not _is_sse(options):
            return repair(X, groups.k, problem.required, groups.labels, weights=weights)
        return satisfy(
            X,
            groups.k,
            problem.required,
            groups.labels,
            weights=weights,
            effort=effort,
            time_limit=options.get("time_limit"),
            random_state=problem.seed,
            n_total=problem.n_total,
            mixed=space.releases is not None,
            state=state,
        )

    kept = {"effort": effort} if "effort" in groups.options else {}
    return replace(continued(groups, work, X, weights, watch), options={**groups.options, **kept})


def search_by_release(problem: Problem, labels: Labels, effort: str, state: State) -> Labels:
    """Make the last search: from groups of a low SSE to groups, (m,), whose released values lose least.

    Parameters
    ----------
    problem : with the m records to be grouped
    labels : (m,) groups of a low SSE, 0, 1, …
    effort : "fast", "balanced" or "best"
    state : progress, and the wish to stop
    """
    from microagg.algorithms.refine.last_search import lower_released_loss

    releases = problem.space.releases
    assert releases is not None
    if problem.rows is not None:
        fields = ("X", "level", "value", "blank")
        of_rows = {name: getattr(releases, name)[problem.rows] for name in fields}
        releases = releases._replace(**of_rows)
    X = problem.of_rows(problem.space.searched)
    return lower_released_loss(
        X,
        labels,
        problem.k,
        releases,
        demands_of(problem.required, len(X)),
        weights=problem.own_weights,
        effort=effort,
        random_state=problem.seed,
        n_total=problem.n_total,
        state=state,
    )


def _searched(
    groups: Partition, problem: Problem, time_limit: float | None, watch: Listener | None
) -> Partition:
    """Make the last search, and measure its groups in the space as it is."""
    X, weights, block = problem.of_rows(problem.space.matrix), problem.own_weights, problem.block
    if weights is not None:
        weights = weights / weights.mean()
    state = new_state()
    state[DONE] = len(X)  # the progress has reported already that all records are done
    tell_best(state, groups.sse)

    def work(state: State) -> Labels:
        if groups.stopped:
            return groups.labels
        with stop_after(state, None if time_limit is None else _LAST * time_limit):
            effort = block.options.get("effort", "balanced")
            return search_by_release(problem, groups.labels, effort, state)

    limit = {"time_limit": time_limit} if "time_limit" in groups.options else {}
    result = replace(
        continued(groups, work, X, weights, watch, state),
        options={**groups.options, **limit},
        sst=sum_of_squares(X, np.zeros(len(X), dtype=np.int64), weights),
    )
    if not block.bound:
        return result
    return with_bound(result, prepare(X, result.k, "none", weights), block.bound, watch)
