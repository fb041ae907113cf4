"""Codes with a hierarchy, such as branches of industry: near are those that share many ancestors.

For each depth of the hierarchy, the ancestor at this depth is a category (see nominal.py), and every depth
has an equal share of the inertia. A hierarchy of one depth is a nominal column. Depths at which nothing
differs, or nothing differs from the depth before, are left out.

Released is the code of the group that is nearest to its centroid: it is the best leaf, since a code that
the group does not have shares no more ancestors than one that it has. With ``release = "node"`` it is the
deepest ancestor that all records of the group have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from microagg.encode.inertia import Corners, Encoder, corners
from microagg.encode.nominal import MOST_COORDINATES, simplex
from microagg.errors import InputError, shown
from microagg.groups import Floats, Labels
from microagg.tables.variable import Variable

__all__ = ["ancestors", "encoder", "inner_nodes", "nodes", "release"]

_ROOT = "*"  # the ancestor of codes that have none in common


def ancestors(variable: Variable) -> list[list[str]]:
    """Ancestors of every level from the top down to the level itself, one list for each depth.

    >>> from microagg.plan import Column
    >>> setting = Column("hierarchy", prefixes=(1,))
    >>> nace = Variable("nace", "hierarchy", np.zeros(1), setting, ("A1", "A2", "B1"))
    >>> ancestors(nace)
    [['A', 'A', 'B'], ['A1', 'A2', 'B1']]
    """
    codes = [str(level) for level in variable.levels]
    distinct: list[list[str]] = []
    for names in _all_depths(variable):
        if len(set(names)) > 1 and (not distinct or _numbers(names) != _numbers(distinct[-1])):
            distinct.append(names)
        elif distinct and _numbers(names) == _numbers(distinct[-1]):
            distinct[-1] = names  # the more precise name of the same codes
    return distinct or [codes]


def _all_depths(variable: Variable) -> list[list[str]]:
    """Ancestors at every depth, also where nothing differs."""
    codes = [str(level) for level in variable.levels]
    if variable.setting.parents is not None:
        chains = [
            _chain(variable, code, row) for code, row in zip(codes, variable.rows, strict=True)
        ]
        depth = max((len(chain) for chain in chains), default=1)
        return [[chain[min(d, len(chain) - 1)] for chain in chains] for d in range(depth)]
    lengths = variable.setting.prefixes
    if lengths is None:
        lengths = tuple(range(1, max(map(len, codes), default=1)))
    return [*([code[:length] for code in codes] for length in sorted(lengths)), codes]


def _numbers(names: list[str]) -> list[int]:
    place: dict[str, int] = {}
    return [place.setdefault(name, len(place)) for name in names]


def _chain(variable: Variable, code: str, row: int) -> list[str]:
    parents: Mapping[Any, Any] = variable.setting.parents or {}
    known = {str(child): str(parent) for child, parent in parents.items()}
    if code not in known and code not in known.values():
        raise InputError(
            f"Every code of a hierarchy must be in its table; column {shown(variable.name)} has one that is "
            f"not, in row {row + 1} (the first record is row 1). Add it with its parent, or name it as a "
            "code for missing."
        )
    found = [code]
    while found[-1] in known:
        found.append(known[found[-1]])
    return found[::-1]


def inner_nodes(variable: Variable) -> list[str]:
    """Nodes above the codes, from the top; a released node is numbered after the levels, in this order."""
    shared = [names[0] for names in _all_depths(variable) if len(set(names)) == 1]
    found = [shared[-1] if shared else _ROOT]
    for names in ancestors(variable)[:-1]:
        found += sorted(set(names))
    return found


def encoder(variable: Variable, weights: Floats | None = None) -> Encoder:
    """One-hot of the ancestor at each depth, all depths with the same inertia, m − 1 together.

    A node above the codes is where the mean of its codes is.
    """
    if not variable.levels:  # all values are missing
        return Corners(np.zeros((1, 1)))
    levels = variable.level_numbers
    depths, above = [], [np.ones(len(variable.levels), dtype=bool)]
    for names in ancestors(variable):
        number = np.array(_numbers(names))
        of_records = np.append(number, -1)[levels]
        depths.append(corners(simplex(int(number.max()) + 1), of_records, weights).points[number])
        above += [np.array([name == node for name in names]) for node in sorted(set(names))]
    points = np.hstack(depths)
    if points.shape[1] > MOST_COORDINATES:
        width = points.shape[1]
        points = points @ simplex(width + MOST_COORDINATES)[:width, :MOST_COORDINATES]
    nodes_above = above[: len(inner_nodes(variable))]  # codes themselves come last
    of_nodes = [points[under].mean(axis=0) for under in nodes_above]
    return corners(np.vstack([points, *of_nodes]), levels, weights)


def release(variable: Variable, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
    """Level of each group that is nearest to its centroid; ties by overall frequency, then by order."""
    levels = variable.level_numbers
    there = levels >= 0
    found = np.full(g, np.nan)
    if not there.any():
        return found
    level, group = levels[there], labels[there]
    w = np.ones(len(level)) if weights is None else weights[there]
    m = len(variable.levels)
    pairs, place = np.unique(group * m + level, return_inverse=True)
    mass = np.bincount(place.reshape(-1), weights=w)
    groups, leaves = pairs // m, pairs % m
    total = np.bincount(groups, weights=mass, minlength=g)
    score = np.zeros(len(pairs))
    for names in ancestors(variable):
        number = np.array(_numbers(names))
        shares = np.bincount(number[level], weights=w) / w.sum()
        gini = 1 - np.square(shares).sum()
        if gini <= 0:
            continue
        width = int(number.max()) + 1
        back = np.unique(groups * width + number[leaves], return_inverse=True)[1].reshape(-1)
        within = np.bincount(back, weights=mass)[back]
        score += within / total[groups] / gini
    overall = np.bincount(level, weights=w, minlength=m)
    best = np.lexsort((leaves, -overall[leaves], -np.round(score, 12), groups))
    first = np.unique(groups[best], return_index=True)[1]
    found[groups[best][first]] = leaves[best][first]
    return found


def nodes(variable: Variable, labels: Labels, g: int) -> Floats:
    """Deepest node that all records of a group share, by its number; NaN where all are missing."""
    levels = variable.level_numbers
    there = levels >= 0
    group, level = labels[there], levels[there]
    found = np.full(g, np.nan)
    if not len(group):
        return found
    m = len(variable.levels)
    found[np.unique(group)] = m  # the root, which all share
    depths = ancestors(variable)
    place = {name: m + at for at, name in enumerate(inner_nodes(variable))}
    for names in depths:
        number = np.array(_numbers(names))
        low, high = np.full(g, m), np.full(g, -1)
        np.minimum.at(low, group, number[level])
        np.maximum.at(high, group, number[level])
        own = np.arange(m) if names is depths[-1] else np.array([place[name] for name in names])
        first = np.unique(number, return_index=True)[1]
        shared = np.flatnonzero(low == high)
        found[shared] = own[first[low[shared]]]
    return found
