"""Groups that satisfy requirements: a start, the repair, the search.

Problem   Given scaled records, k and requirements, find groups that violate nothing at a low SSE.
Idea      Several starts; the best one goes on: given groups, repaired by merging (merge.py); groups
          grown with the requirements in mind (start.py); for t-closeness, groups with a record of each
          quantile (soria_comas.py). The search then anneals patches of neighbouring groups as
          algorithms/refine does, but every group it keeps satisfies all (anneal.py).
          So the result is never worse, by (violation, SSE), than the repaired groups.
Cost      O(n) for a pass, but for O(n log n) of splitting; a step costs more than without requirements,
          the more so for those that look at all values of a group (t-closeness, dominance). A heuristic.
Threads   A patch's random numbers depend on the seed, the pass and the patch alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from microagg.base.formatting import plural
from microagg.base.progress import DONE, STOP, State, new_state, rest_of, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError
from microagg.grouping.require.requirement import Requirement, check_feasible, demands_of
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.require_kinds import Demands
from microagg.plan.settings import check_effort, check_k, check_time_limit


def _checked(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels | None,
    weights: Floats | None,
) -> tuple[Demands, Floats]:
    """Refuse what cannot be searched; return the requirements and weights as kernels need them."""
    check_k(k, len(X))
    for name, array in (("labels", labels), ("weights", weights)):
        if array is not None and np.shape(array) != (len(X),):
            raise InputError(
                f"{name} have one entry for each record; the table has {plural(len(X), 'record')}, "
                f"{name} have shape {np.shape(array)}. Make both from the same rows."
            )
    check_feasible(requirements)
    if weights is None:
        return demands_of(requirements, len(X)), np.ones(len(X))
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(wrong):
        raise InputError(
            f"Weights of records are finite numbers above 0; row {wrong[0]} has another one, "
            f"{len(wrong)} in all. Drop these records or leave the weights out."
        )
    return demands_of(requirements, len(X)), np.ascontiguousarray(weights, dtype=np.float64)


def repair(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels,
    *,
    weights: Floats | None = None,
) -> Labels:
    """Merge groups of scaled records until each satisfies all requirements and has k records.

    Parameters
    ----------
    X, k, requirements, weights : as for :func:`satisfy`
    labels : (n,) groups to merge

    Returns
    -------
    (n,) labels from 0 by first appearance; each group is a union of given ones. A requirement that the whole
    table breaks is refused, since no groups could satisfy it.

    Examples
    --------
    >>> from microagg.grouping.require.value_rules import Distinct
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [14.0], [15.0]])
    >>> diverse = Distinct(np.array([0, 1, 2, 2, 3, 4]), 2)
    >>> repair(X, 2, [diverse], np.array([0, 0, 1, 1, 2, 2])).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    from microagg.algorithms.required.merge import merge

    demands, mass = _checked(X, k, requirements, labels, weights)
    return merge(np.ascontiguousarray(X), mass, demands, canonical_labels(labels), k)


def satisfy(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels | None = None,
    *,
    weights: Floats | None = None,
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    n_total: int | None = None,
    mixed: bool = False,
    state: State | None = None,
) -> Labels:
    """Find groups of at least k records that satisfy all requirements, at a low SSE.

    Parameters
    ----------
    X : (n, d) scaled coordinates, which stay as they are
    k : least number of records of a group
    requirements : rules other than k, made for the same n records
    labels : (n,) groups to begin with; None: the method makes some
    weights : (n,) weights of the records in the SSE; None: all count alike
    effort : "fast", "balanced" or "best"
    time_limit : seconds after which the best groups so far are returned
    n_total : records of the table of which these are a part: it decides the number of steps
    mixed : whether columns are of several kinds; the search is then longer where groups are many
    state : progress, and the wish to stop

    Returns
    -------
    (n,) labels from 0 by first appearance. Their SSE is not above that of :func:`repair` for ``labels``,
    which also refuses the same.

    Examples
    --------
    >>> from microagg.grouping.require.value_rules import Units
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> households = Units(np.array([1, 1, 2, 3, 3, 4]), 2)
    >>> satisfy(X, 2, [households]).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from microagg.algorithms.refine.search_passes import Run
    from microagg.algorithms.required.merge import merge
    from microagg.algorithms.required.required_search import search_required, starts_for

    check_effort(effort)
    check_time_limit(time_limit)
    demands, mass = _checked(X, k, requirements, labels, weights)
    X = np.ascontiguousarray(X, dtype=np.float64)
    state = new_state() if state is None else state
    started = time.monotonic()
    seed = int(np.random.default_rng(random_state).integers(2**62))
    starts = starts_for(X, mass, demands, k, labels, effort, seed, state)
    repaired = [merge(X, mass, demands, start, k) for start in starts]
    best = min(repaired, key=lambda start: sum_of_squares(X, start, mass))
    tell_best(state, sum_of_squares(X, best, mass))
    found, remaining = best, rest_of(time_limit, started)
    with stop_after(state, remaining, len(X)):
        if not state[STOP]:
            found = search_required(
                Run(X, k, seed, state, mass, demands),
                demands,
                best,
                effort,
                endless=remaining is not None,
                n_total=n_total,
                mixed=mixed and effort == "balanced",
            )
    # Sums that are kept up to date are rounded: groups right at a threshold are counted again.
    found = merge(X, mass, demands, found, k)
    if sum_of_squares(X, found, mass) < sum_of_squares(X, best, mass):
        best = found
    state[DONE] = len(X)
    return best
