"""The last search: records change places while that lowers the loss of the values that groups release.

Problem   The searches before minimise the SSE, which for a category is the Gini index of a group. But a group
          releases its mode; of levels with an order, the one nearest to the mean; of a spiked column the
          mean, which is no longer at the spike. That loses up to twice as much, and it is the loss that
          is reported.
Idea      Patches of neighbouring groups are searched separately (patches.py), then the table is split anew.
          In a patch, a random record and the group of one of its nearest records are looked at: it may move
          there, or swap places with one of its members. What that does to the loss of the released values
          follows from a few sums for each group and column: weight, sum and sum of squares; for a mode the
          weight of every level, with the largest two. A change is made if it lowers the loss; early in the
          search also if it raises the loss a little. Requirements are counted from the records, for changes
          that would be made. The best groups seen are returned, never groups that lose more than those given.
Cost      O(n) changes tried, each O(columns); O(n log n) to split. A heuristic.
Paper     None: our own.
Threads   A patch's random numbers depend on the seed, the pass and the patch alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.refine.anneal import Heat, demands_on, weights_of
from microagg.algorithms.refine.group_losses import (
    LOSS,
    Patch,
    count_group,
    exchange,
    lacks,
    rise,
    sse_of,
)
from microagg.algorithms.refine.patches import (
    PackedGroups,
    Patches,
    grouped,
    labelled,
    put_back,
    rows_of,
    take_rows,
)
from microagg.algorithms.refine.search_passes import (
    AnnealBudget,
    Run,
    best_of_passes,
    heat_of,
    search_patches_once,
)
from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel, subkernel
from microagg.kernels.labels import canonical_labels
from microagg.kernels.random_numbers import draw, draw_exponential
from microagg.kernels.release_kinds import MODE, Releases
from microagg.kernels.require_kinds import Demands

_NEAR = 24  # records among whose groups a record may change
_NOISE = 1e-12  # share of the sums of squares that may be rounding
_IN_A_PATCH = (16, 96)  # fewest and most groups


@lean_subkernel
def _anneal(patch, k, most, steps, heat, random, state):
    """Try changes that keep groups at k to ``most`` records."""
    label, size = patch.label, patch.size
    for step in range(steps):
        if state[STOP]:
            break
        x = int(draw(random) * label.size)
        g, h = label[x], label[patch.near[x, int(draw(random) * patch.near.shape[1])]]
        if g == h:
            continue
        temperature = (heat.hot + (heat.cold - heat.hot) * step / steps) * heat.unit
        allowed = -_NOISE * (heat.unit + patch.squares[g] + patch.squares[h])
        if temperature > 0:
            allowed = temperature * draw_exponential(random)
        best, partner = np.inf, -1
        for a in range(-1, size[h]):  # first a move, then swaps
            if a < 0 and (size[g] <= k or size[h] >= most):
                continue
            y = patch.members[h, a] if a >= 0 else -1
            more = rise(patch, g, h, x, y)
            if more < best:
                best, partner = more, y
        if best < allowed and not lacks(patch, g, h, x, partner):
            exchange(patch, g, h, x, partner)


@subkernel
def _find_near(X, near):
    """List the records nearest to each; of those equally near, the lower ones."""
    m, count = X.shape[0], near.shape[1]
    values, squares, distance = np.empty((X.shape[1], m)), np.empty(m), np.empty(count)
    for y in range(m):
        for j in range(X.shape[1]):
            values[j, y] = X[y, j]
    for x in range(m):
        for y in range(m):
            squares[y] = 0.0
        for j in range(X.shape[1]):  # column by column, so that a processor adds several at once
            value = values[j, x]
            for y in range(m):
                gap = values[j, y] - value
                squares[y] += gap * gap
        have = 0
        for y in range(m):
            if y == x or (have == count and squares[y] >= distance[count - 1]):
                continue
            have = min(have + 1, count)
            a = have - 1
            while a > 0 and distance[a - 1] > squares[y]:
                distance[a], near[x, a] = distance[a - 1], near[x, a - 1]
                a -= 1
            distance[a], near[x, a] = squares[y], y


@subkernel
def _levels_of(releases, rows):
    """Return the levels of some rows, those of modes numbered through all columns, and their number."""
    columns, largest, count = releases.kind.size, 0, 0
    levels = np.empty((rows.size, columns), np.intp)
    for c in range(columns):
        for a in range(rows.size):
            levels[a, c] = releases.level[rows[a], c]
            largest = max(largest, levels[a, c])
    number = np.full(largest + 1, -1, np.intp)
    for c in range(columns):
        if releases.kind[c] != MODE:
            continue
        for a in range(rows.size):
            if levels[a, c] >= 0:
                number[levels[a, c]] = -1
        for a in range(rows.size):
            level = levels[a, c]
            if level >= 0 and number[level] < 0:
                number[level] = count
                count += 1
            if level >= 0:
                levels[a, c] = number[level]
    return levels, count


@subkernel
def _form(X, weights, releases, demands, rows, labels, k):
    """Make a patch of some rows, whose values are X, with the labels 0, 1, … of their groups."""
    m, columns, n_groups, largest = rows.size, releases.kind.size, 0, 0
    for a in range(m):
        n_groups = max(n_groups, labels[a] + 1)
    size = np.zeros(n_groups, np.intp)
    for a in range(m):
        size[labels[a]] += 1
        largest = max(largest, size[labels[a]])
    room = 1 + max(2 * largest, 2 * k)
    level, levels = _levels_of(releases, rows)
    near = np.empty((m, min(_NEAR, m - 1)), np.intp)
    _find_near(X, near)
    # Copies throughout: threads that share an array wait for each other to count its users.
    releases_here = Releases(
        take_rows(releases.X, rows),
        releases.kind.copy(),
        releases.unit.copy(),
        releases.origin.copy(),
        releases.points.copy(),
        releases.start.copy(),
        level,
        take_rows(releases.value, rows),
        take_rows(releases.blank, rows),
        releases.majority,
    )
    patch = Patch(
        releases_here,
        weights_of(weights, rows),
        demands_on(demands, rows),
        near,
        labels,
        np.empty((n_groups, room), np.intp),
        np.zeros(n_groups, np.intp),
        np.empty(n_groups),
        np.empty((n_groups, releases.X.shape[1])),
        np.empty(n_groups),
        np.empty((n_groups, columns, 7)),
        np.empty((n_groups, columns), np.intp),
        np.zeros((n_groups, levels)),
        np.empty((4, room), np.intp),
        np.empty(room),
    )
    for a in range(m):
        g = labels[a]
        patch.members[g, patch.size[g]] = a
        patch.size[g] += 1
    for g in range(n_groups):
        count_group(patch, g)
    return patch


@kernel
def search_patches(X, weights, releases, demands, patches, begin, end, k, steps, heat, state):
    """Search some patches by what their groups release; write the new groups and what they lose.

    A patch has as many groups as before.

    Parameters
    ----------
    releases : what groups release of each column, of the n records
    steps : for each record
    X, weights, demands, patches, begin, end, k, heat, state : as for
        :func:`microagg.algorithms.refine.anneal.anneal_patches`; there are always demands
    """
    for at in range(begin, end):
        rows, labels, n_groups = rows_of(patches, at)
        records = take_rows(X, rows)
        patch = _form(records, weights, releases, demands, rows, labels, k)
        # Requirements may need groups of any size; without them two groups of k are never worse than one.
        most = 2 * k - 1 if len(demands.rule) == 0 else patch.members.shape[1] - 1
        if n_groups > 1:
            random = np.array([patches.seeds[at]], np.uint64)
            _anneal(patch, k, most, int(np.ceil(steps * rows.size)), heat, random, state)
        patches.loss[at] = 0.0
        for g in range(n_groups):
            patches.loss[at] += sse_of(patch, g)
            for c in range(releases.kind.size):
                patches.loss[at] += patch.stats[g, c, LOSS]
        put_back(records, rows, labels, n_groups, k, patches, at)


# Steps are counted for each record, temperatures in units of the mean loss of a group.
_BUDGETS = {
    "fast": AnnealBudget(5, 20_000, 30, 2, 0.0),
    "balanced": AnnealBudget(30, 120_000, 150, 6, 0.02),
    "best": AnnealBudget(200, 2_400_000, 1_200, 16, 0.02),
}


def lower_released_loss(
    X: Floats,
    labels: Labels,
    k: int,
    releases: Releases,
    demands: Demands,
    *,
    weights: Floats | None = None,
    effort: str = "balanced",
    random_state: int | None = 0,
    n_total: int | None = None,
    state: State,
) -> Labels:
    """Improve a partition by the loss of the values that its groups release; never worse than given.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous, by which records are near; never written to
    labels : (n,) int64, groups that satisfy the demands; never written to
    k : least size of a group
    releases : what groups release of each column, of the n records
    demands : requirements in addition to k, of the n records; may be empty
    weights, effort, random_state, n_total, state : as for :func:`microagg.algorithms.refine.refine.refine`

    Returns
    -------
    (n,) int64, the caller's, numbered by first appearance
    """
    labels = canonical_labels(labels)
    n_groups = int(labels.max()) + 1
    if n_groups < 2:
        return labels
    seed = int(np.random.default_rng(random_state).integers(2**62))
    mass = np.ones(len(X)) if weights is None else weights
    run, budget = Run(X, k, seed, state, mass, demands), _BUDGETS[effort]
    steps = min(budget.each + budget.table / (len(X) if n_total is None else n_total), budget.most)
    groups_before, passes = grouped(X, labels, n_groups), budget.passes

    def search_once(old: PackedGroups, turn: int) -> tuple[PackedGroups, float]:
        each, heat = 0.0, Heat(0.0, 0.0, 1.0)
        if turn < passes:
            each, heat = steps / passes, heat_of(turn, passes, budget.hot, least / n_groups)

        def work(patches: Patches, begin: int, end: int) -> None:
            search_patches(X, mass, releases, demands, patches, begin, end, k, each, heat, state)

        return search_patches_once(run, old, turn, _IN_A_PATCH, work)

    _, least = search_once(groups_before, passes)  # no steps: what they lose
    best, _ = best_of_passes(state, groups_before, least, range(passes), search_once)
    return labelled(best)
