"""Patches of neighbouring groups, each annealed by itself: no two of them touch the same record."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Labels
from microagg.compile.jit import kernel, lean_kernel, subkernel
from microagg.compile.threads import helpers, share_growing
from microagg.kernels.halve import select
from microagg.kernels.labels import canonical_labels
from microagg.kernels.random_numbers import draw

_HALF = 0.6  # of a table at most: cuts are not at the very middle
_MANY = 8_192  # groups from which on threads split them faster than one


class PackedGroups(NamedTuple):
    """A partition as the rows of group 0, then of group 1, …, and the centroids."""

    rows: Any  # (n,)
    start: Any  # (groups + 1,) where each begins and the last ends
    centroid: Any  # (groups, d)


class NewGroups(NamedTuple):
    """Where the patches of a pass put their new groups; a size of 0 marks an empty place."""

    rows: Any  # (n,)
    size: Any  # (n // k,)
    centroid: Any  # (n // k, d)


class Patches(NamedTuple):
    """The patches of a pass: the groups that each begins with, and its new groups.

    A patch has as many records afterwards as before, so that its rows have their place among the new ones;
    its groups begin at that place over k.
    """

    old: PackedGroups
    groups: Any  # (groups,) patch after patch
    first: Any  # (patches + 1,) where the groups of each patch begin and those of the last end
    records: Any  # (patches,) number of records in the patches before
    seeds: Any  # (patches,)
    new: NewGroups
    loss: Any  # (patches,) of the new groups


def groups_in_a_patch(n_groups: int, least: int, most: int) -> int:
    """Return how many groups a patch may have: a small table has two patches at least, for threads."""
    return min(most, max(least, int(_HALF * n_groups)))


@kernel
def grouped(X, labels, n_groups):
    """List the rows of group 0, 1, … of labels that count from 0, and the centroids.

    Parameters
    ----------
    X : (n, d) records
    labels : (n,) int64, writeable, groups 0..n_groups − 1
    n_groups : how many there are
    """
    start = np.zeros(n_groups + 1, np.intp)
    for label in labels:
        start[label + 1] += 1
    for g in range(n_groups):
        start[g + 1] += start[g]
    rows, at = np.empty(labels.size, np.intp), start.copy()
    for i in range(labels.size):
        rows[at[labels[i]]] = i
        at[labels[i]] += 1
    d = X.shape[1]
    centroid = np.zeros((n_groups, d))
    for g in range(n_groups):
        for a in range(start[g], start[g + 1]):
            for j in range(d):
                centroid[g, j] += X[rows[a], j]
        for j in range(d):
            centroid[g, j] /= start[g + 1] - start[g]
    return PackedGroups(rows, start, centroid)


class _Halvings(NamedTuple):
    """The halvings of a list of groups, by place in the list; each comes before those of its halves."""

    start: Any  # (halvings,) of the part that is halved
    stop: Any
    middle: Any  # where its second half begins
    one: Any  # places of the two groups that the line to halve along goes through
    other: Any
    after: Any  # the first halving that is none of the part's own


@kernel
def _plan_halvings(plan, n_groups, most, random):
    """Draw the halvings; return their number and the places between which the patches are."""
    count, patches, first = 0, 0, np.zeros(n_groups + 1, np.intp)
    ends = np.empty(64, np.intp)  # of what is still to be split, the nearest on top
    ends[0], top = n_groups, 1
    while top > 0:
        at, stop = first[patches], ends[top - 1]
        if stop - at > most:
            plan.start[count], plan.stop[count] = at, stop
            plan.one[count] = at + int(draw(random) * (stop - at))
            plan.other[count] = at + int(draw(random) * (stop - at))
            # Not at the very middle, so that the patches of the next pass have other borders.
            plan.middle[count] = at + int((0.4 + 0.2 * draw(random)) * (stop - at))
            ends[top] = plan.middle[count]
            top, count = top + 1, count + 1
        else:
            patches, top = patches + 1, top - 1
            first[patches] = stop
    for a in range(count - 1, -1, -1):
        after = a + 1
        if plan.middle[a] - plan.start[a] > most:
            after = plan.after[after]
        if plan.stop[a] - plan.middle[a] > most:
            after = plan.after[after]
        plan.after[a] = after
    return count, first[: patches + 1]


@lean_kernel
def _halve(centroid, groups, keys, plan, begin, end):
    """Make the halvings begin..end−1: groups are in two parts along the line through two of them."""
    for h in range(begin, end):
        first, second = groups[plan.one[h]], groups[plan.other[h]]
        for a in range(plan.start[h], plan.stop[h]):
            keys[a] = 0.0
            for j in range(centroid.shape[1]):
                keys[a] += centroid[groups[a], j] * (centroid[second, j] - centroid[first, j])
        select(keys, groups, plan.start[h], plan.stop[h], plan.middle[h])


def split_groups(centroid: Any, most: int, random: Any) -> tuple[Any, Any]:
    """Split groups into patches of neighbours.

    Parameters
    ----------
    centroid : (groups, d)
    most : groups of a patch, at most; one has 2 at least
    random : (1,) uint64, state of the random numbers; written to

    Returns
    -------
    the groups patch by patch, and where each patch begins and the last ends
    """
    n_groups = len(centroid)
    groups, keys = np.arange(n_groups), np.empty(n_groups)
    plan = _Halvings(*np.empty((6, n_groups), np.intp))
    count, first = _plan_halvings(plan, n_groups, most, random)
    threads = 1 + (helpers() if n_groups >= _MANY else 0)
    if threads == 1 or count == 0:
        _halve(centroid, groups, keys, plan, 0, count)
        return groups, first

    def work(h: int) -> list[int]:
        """Make a halving; return those of its two parts, unless they are patches or were made too."""
        after = int(plan.after[h])
        if plan.stop[h] - plan.start[h] <= max(most, n_groups // (2 * threads)):
            _halve(centroid, groups, keys, plan, h, after)
            return []
        _halve(centroid, groups, keys, plan, h, h + 1)
        if plan.middle[h] - plan.start[h] <= most:
            return [h + 1] if h + 1 < after else []
        second = int(plan.after[h + 1])
        return [h + 1, second] if second < after else [h + 1]

    share_growing(work, [0])
    return groups, first


@subkernel
def take_rows(table, rows):
    """Copy some rows of a table."""
    chosen = np.empty((rows.size, table.shape[1]))
    for a in range(rows.size):
        for j in range(table.shape[1]):
            chosen[a, j] = table[rows[a], j]
    return chosen


@subkernel
def rows_of(patches, patch):
    """List the rows of a patch's groups and their labels, which count from 0; return also how many."""
    mine, start = patches.groups[patches.first[patch] : patches.first[patch + 1]], patches.old.start
    m = 0
    for g in mine:
        m += start[g + 1] - start[g]
    rows, labels = np.empty(m, np.intp), np.empty(m, np.intp)
    m = 0
    for a in range(mine.size):
        for b in range(start[mine[a]], start[mine[a] + 1]):
            rows[m], labels[m] = patches.old.rows[b], a
            m += 1
    return rows, labels, mine.size


@subkernel
def put_back(X, rows, labels, count, k, patches, patch):
    """Write the ``count`` new groups of a patch's rows, whose values are X, to their place."""
    before, begin, new = grouped(X, labels, count), patches.records[patch], patches.new
    for a in range(rows.size):
        new.rows[begin + a] = rows[before.rows[a]]
    for g in range(count):
        slot = begin // k + g
        new.size[slot] = before.start[g + 1] - before.start[g]
        for j in range(X.shape[1]):
            new.centroid[slot, j] = before.centroid[g, j]


@kernel
def compacted(new):
    """Return the groups of ``new`` without the empty places.

    What is in use moves up within ``new``, so that nothing large is copied.
    """
    start, count = np.zeros(new.size.size + 1, np.intp), 0
    for slot in range(new.size.size):
        if new.size[slot] == 0:
            continue
        start[count + 1] = start[count] + new.size[slot]
        if count < slot:
            for j in range(new.centroid.shape[1]):
                new.centroid[count, j] = new.centroid[slot, j]
        count += 1
    return PackedGroups(new.rows, start[: count + 1], new.centroid[:count])


def labelled(groups: PackedGroups) -> Labels:
    """Turn a list of groups into labels, numbered by first appearance."""
    labels = np.empty(len(groups.rows), dtype=np.int64)
    labels[groups.rows] = np.repeat(np.arange(len(groups.start) - 1), np.diff(groups.start))
    return canonical_labels(labels)
