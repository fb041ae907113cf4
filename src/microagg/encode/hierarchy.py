"""Codes with a hierarchy, such as branches of industry: codes that share many ancestors are near.

For each depth of the hierarchy, the ancestor at this depth is a category (see categories.py), and every depth
has an equal share of the inertia. A hierarchy of one depth is a nominal column. Depths at which nothing
differs, or nothing differs from the depth before, are left out.

Released is the admissible code that is nearest to the centroid of the group. If all codes of the group are
admissible it is one of these, since a code that the group does not have shares no more ancestors than one
that it has; otherwise it may be another code below one of their ancestors. With ``release = "node"`` it is
the deepest admissible ancestor that all records of the group have in common.
"""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.categories import MOST_COORDINATES, best_of_groups, levels_of_groups, simplex
from microagg.encode.inertia import Corners, Encoder, LevelCounts, corners
from microagg.errors import InputError, shown
from microagg.tables.variable import Variable

_ROOT = "*"  # the ancestor of codes that have none in common


def ancestors(variable: Variable) -> list[list[str]]:
    """List the ancestors of every level of ``variable`` for each depth, from the top down to the level.

    >>> from microagg.plan.column import Column
    >>> setting = Column("hierarchy", prefixes=(1,))
    >>> nace = Variable("nace", "hierarchy", np.zeros(1), setting, ("A1", "A2", "B1"))
    >>> ancestors(nace)
    [['A', 'A', 'B'], ['A1', 'A2', 'B1']]
    """
    depths: dict[tuple[int, ...], list[str]] = {}
    for names in _all_depths(variable):
        if len(set(names)) > 1:  # deeper nodes are more precise names of the same codes
            depths[tuple(numbered(names).tolist())] = names
    return list(depths.values()) or [[str(level) for level in variable.levels]]


def _all_depths(variable: Variable) -> list[list[str]]:
    """List the ancestors at every depth, also if all levels have the same."""
    codes = [str(level) for level in variable.levels]
    if variable.setting.parents is not None:
        known = {str(child): str(parent) for child, parent in variable.setting.parents.items()}
        nodes = {*known, *known.values()}
        chains = []
        for code, row in zip(codes, variable.rows, strict=True):
            if code not in nodes:
                raise InputError(
                    f"Every code of a hierarchy must be in its table; column {shown(variable.name)} has one "
                    f"that is not, in row {row + 1} (the first record is row 1). Add it with its parent, or "
                    "name it as a code for missing."
                )
            chain = [code]
            while chain[-1] in known:
                chain.append(known[chain[-1]])
            chains.append(chain[::-1])
        depth = max((len(chain) for chain in chains), default=1)
        return [[chain[min(d, len(chain) - 1)] for chain in chains] for d in range(depth)]
    lengths = variable.setting.prefixes
    if lengths is None:
        lengths = tuple(range(1, max(map(len, codes), default=1)))
    return [*([code[:length] for code in codes] for length in sorted(lengths)), codes]


def numbered(names: list[str]) -> Labels:
    """Return numbers for ``names``, by first appearance."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)


def inner_nodes(variable: Variable) -> list[str]:
    """List the nodes above the codes of ``variable``, from the top: they are numbered so after the levels."""
    shared = [names[0] for names in _all_depths(variable) if len(set(names)) == 1]
    nodes = [shared[-1] if shared else _ROOT]
    for names in ancestors(variable)[:-1]:
        nodes += sorted(set(names))
    return nodes


def node_members(variable: Variable) -> list[Labels]:
    """List the codes of ``variable`` below each node above them, in the order of :func:`inner_nodes`."""
    members = [np.arange(len(variable.levels))]
    for names in ancestors(variable)[:-1]:
        members += [np.flatnonzero([name == node for name in names]) for node in sorted(set(names))]
    return members


def encoder(variable: Variable, counts: LevelCounts) -> Encoder:
    """Encode the ancestor at each depth as a category; all depths have the same inertia, together m − 1.

    A node above the codes is where the mean of its codes is.
    """
    if not variable.levels:  # all values are missing
        return Corners(np.zeros((1, 1)))
    often, present = counts
    depths = []
    for names in ancestors(variable):
        number = numbered(names)
        of_nodes: Floats = np.bincount(number, weights=often).astype(np.float64)
        points_of = corners(simplex(len(of_nodes)), LevelCounts(of_nodes, present)).points
        depths.append(points_of[number])
    points = np.hstack(depths)
    if points.shape[1] > MOST_COORDINATES:
        width = points.shape[1]
        fewer = simplex(width + MOST_COORDINATES)[:width, :MOST_COORDINATES]
        points = np.einsum("ij,jk->ik", points, fewer)
    means = [points[below].mean(axis=0) for below in node_members(variable)]
    points = np.vstack([points, *means])
    with_nodes = np.zeros(len(points))  # which no record has
    with_nodes[: len(often)] = often
    return corners(points, LevelCounts(with_nodes, present))


def release(variable: Variable, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
    """Return the admissible level nearest to each centroid; ties go by overall frequency, then by order.

    NaN where all values of a group are missing, or no admissible level shares an ancestor with it. With
    ``release = "node"`` it is a common ancestor.
    """
    if variable.setting.release == "node":
        return _nodes(variable, labels, g)
    groups, leaves, mass, overall = levels_of_groups(
        variable.level_numbers, labels, weights, variable.often, len(variable.levels)
    )
    if not len(groups):
        return np.full(g, np.nan)
    total = np.bincount(groups, weights=mass, minlength=g)
    allowed, tried = _candidates(variable, groups, leaves, overall)
    score = np.zeros(len(allowed))
    for names in ancestors(variable):
        number = numbered(names)
        shares = np.bincount(number, weights=overall) / overall.sum()
        gini = 1 - np.square(shares).sum()
        if gini <= 0:
            continue
        width = int(number.max()) + 1
        nodes_there, back = np.unique(groups * width + number[leaves], return_inverse=True)
        within = np.append(np.bincount(back.reshape(-1), weights=mass), 0.0)
        wanted = allowed * width + number[tried]
        at = np.minimum(np.searchsorted(nodes_there, wanted), len(nodes_there) - 1)
        score += within[np.where(nodes_there[at] == wanted, at, -1)] / total[allowed] / gini
    return best_of_groups(allowed, tried, np.round(score, 12), overall, g)


def _candidates(
    variable: Variable, groups: Labels, leaves: Labels, overall: Floats
) -> tuple[Labels, Labels]:
    """List pairs of a group and an admissible level; the nearest level of each group is among them.

    Of the levels below an ancestor that the group has, the most frequent admissible one is enough: those
    that the group itself does not have are equally near.
    """
    if variable.admissible is None or variable.admissible[: len(overall)].all():
        return groups, leaves
    m = len(overall)
    fit = variable.admissible[:m]
    pairs = [(groups * m + leaves)[fit[leaves]]]
    by_frequency = np.lexsort((np.arange(m), -overall))
    by_frequency = by_frequency[fit[by_frequency]]
    for names in ancestors(variable):
        number = numbered(names)
        most_frequent = np.full(int(number.max()) + 1, -1)
        most_frequent[number[by_frequency[::-1]]] = by_frequency[::-1]
        other = most_frequent[number[leaves]]
        pairs.append((groups * m + other)[other >= 0])
    candidates = np.unique(np.concatenate(pairs))
    return candidates // m, candidates % m


def _nodes(variable: Variable, labels: Labels, g: int) -> Floats:
    """Return the number of the deepest admissible node that all records of a group share; NaN: none."""
    levels = variable.level_numbers
    there = levels >= 0
    group, level = labels[there], levels[there]
    released, m, inner = np.full(g, np.nan), len(variable.levels), inner_nodes(variable)
    fit = variable.admissible
    fit = np.ones(m + len(inner), dtype=bool) if fit is None else fit
    if not len(group) or not fit[m]:
        return released
    released[np.unique(group)] = m  # the root, which all share
    depths = ancestors(variable)
    node_number = {name: m + at for at, name in enumerate(inner)}
    above = [np.array([node_number[name] for name in names]) for names in depths[:-1]]
    for names, node_of_level in zip(depths, [*above, np.arange(m)], strict=True):
        number = numbered(names)
        low, high = np.full(g, m), np.full(g, -1)
        np.minimum.at(low, group, number[level])
        np.maximum.at(high, group, number[level])
        first = np.unique(number, return_index=True)[1]
        shared = np.flatnonzero(low == high)
        node = node_of_level[first[low[shared]]]
        released[shared[fit[node]]] = node[fit[node]]
    return released
