"""Groups from the outside in: the rounds of mdav, centroid and diameter.

In a round a record far out gathers k−1 others around it, and in some methods one on the other side
does so too. The methods differ in three things only, each of which is an argument:

``bounds``   None: the first record is the one farthest from the centroid of what is left, the second
             the one farthest from the first. Else the two are those farthest apart.
``moving``   None: a group takes the records nearest to its first one. Else, one at a time, the one
             nearest to its centroid, which moves with it (Laszlo & Mukherjee 2005, section 4.2,
             procedure ``gather``); sums of a group are taken in the order of joining.
``both``     How many records must be left for a second group in a round; None: there is never one.

What is None is left out of the machine code. Ties go to the lower row index. In large tables of many columns
other threads search ahead (search_ahead.py), which changes no group.
"""

from __future__ import annotations

import numpy as np

from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_kernel
from microagg.compile.threads import helpers
from microagg.kernels.farthest_pair import FarthestBounds, farthest_pair
from microagg.kernels.kd_tree import NO_ROW
from microagg.kernels.label_loops import sum_up
from microagg.kernels.remaining import (
    Remaining,
    farthest_remaining,
    form,
    in_rounds,
    outermost,
)
from microagg.kernels.search_ahead import Searchers, batch_of
from microagg.plan.settings import FEW_RECORDS

_AT_ONCE = 1_000  # groups, after which other threads may be free to help


@lean_kernel
def rounds(remaining, bounds, moving, both, m, k, least, group, until, distances, rows, state):
    """Form groups until fewer than ``least`` of the m records are left, or tree or shells are worn.

    Or until there are ``until`` groups. Returns the records left, the number of groups, and whether
    shells are worn.
    """
    X, worn = remaining.X, False
    while m >= least and m > remaining.enough and group < until and not worn and not state[STOP]:
        before, partner = m, NO_ROW
        if bounds is None:
            first, worn = outermost(remaining, m)
        else:
            first, partner = farthest_pair(X, remaining.labels, remaining.tree, bounds)
        form(remaining, moving, first, k, group, distances, rows)
        m -= k
        group += 1
        second = NO_ROW  # with too few records, or if it is in the first group
        if both is not None and before >= both:
            if bounds is None:
                second = farthest_remaining(remaining.tree, remaining.shells, X[first])
            elif remaining.labels[partner] < 0:
                second = partner
        if second >= 0:
            form(remaining, moving, second, k, group, distances, rows)
            m -= k
            group += 1
        state[DONE] = remaining.labels.size - m
    return m, group, worn


def outside_in(
    X: Floats,
    k: int,
    state: State,
    *,
    least: int,
    both: int | None = None,
    bounds: FarthestBounds | None = None,
    moving: bool = False,
    weights: Floats | None = None,
) -> tuple[Labels, int, int]:
    """Form groups 0, 1, … until fewer than ``least`` records are left, which have the label −1.

    With weights the centroid of what is left is the weighted one. Returns the labels, how many
    records are left, and the number of groups.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    k : size of a group
    state : progress in records, and the wish to stop
    least : records that must be left for another group
    both, bounds, moving : how rounds differ between methods, see the header
    weights : (n,) above 0
    """
    centres = np.empty((2, X.shape[1])) if moving else None
    scratch = np.empty(k), np.empty(k, np.intp)  # distances and rows of the nearest of a record
    in_tree = bounds is not None or len(X) > FEW_RECORDS  # pairs are sought in a tree
    searchers = Searchers(k, both, centres) if bounds is None and in_tree else None

    def go_on(remaining: Remaining, m: int, group: int) -> tuple[int, int]:
        worn = False
        while m >= least and m > remaining.enough and not worn and not state[STOP]:
            batch = batch_of(m, X.shape[1], k, 1 + helpers())
            if searchers is not None and batch:
                m, group, worn = searchers.rounds(remaining, m, group, batch, scratch, state)
            else:
                until = group + _AT_ONCE
                m, group, worn = rounds(
                    remaining, bounds, centres, both, m, k, least, group, until, *scratch, state
                )
        return m, group

    return in_rounds(X, least, go_on, state, weights, in_tree)


@kernel
def join_nearest(X, labels, n_groups):
    """Give each record without a label that of the group with the nearest centroid.

    Centroids are those before any of them joined, so that the order of rows does not matter; ties
    go to the older group.

    Parameters
    ----------
    X : (n, d) doubles
    labels : (n,) int64, groups 0..g−1, each with a record, and −1; filled in
    n_groups : g
    """
    n, d = X.shape
    total, size = np.empty((n_groups, d)), np.empty(n_groups)
    sum_up(X, labels, size, total)
    for i in range(n):
        if labels[i] >= 0:
            continue
        least = np.inf
        for group in range(n_groups):
            distance = 0.0
            for j in range(d):
                gap = X[i, j] - total[group, j] / size[group]
                distance += gap * gap
            if distance < least:
                labels[i], least = group, distance


# MDAV's groups, for the method and for all that lay out neighbouring records by it.
#
# The method itself, its paper and its cost are in algorithms/fixed_size.py.


def mdav_labels(X: Floats, k: int, state: State, weights: Floats | None = None) -> Labels:
    """Form the groups 0, 1, … of MDAV; those not formed when asked to stop are −1.

    With weights the centroid of what is left is the weighted one.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous, n ≥ k; never written to
    k : least size of a group
    state : progress in records, and the wish to stop
    weights : (n,) above 0

    Returns
    -------
    (n,) int64, the caller's

    >>> import numpy as np
    >>> from microagg.base.progress import new_state
    >>> mdav_labels(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2, new_state()).tolist()
    [1, 0, 2, 2, 1, 0]
    """
    labels, _, group = outside_in(X, k, state, least=2 * k, both=3 * k, weights=weights)
    if not state[STOP]:
        labels[labels < 0] = group
        state[DONE] = len(X)
    return labels
