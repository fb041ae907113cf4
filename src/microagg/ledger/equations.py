"""What the sums of a base group, released in several files, give away together.

A file that releases a group's mean of a column is an equation: the sum over the members that have a value.
A member whose value changed enters with another version of it, that is, as another unknown. A combination of
files in which everybody but B cancels out is a sum over B alone. So the files may be released only if no
combination is left with fewer than k members, unless it is left with none. In other words: for every set B of
fewer than k members, the matrix of files × (member, version) keeps its rank when B's columns are left out.

The factors that a member brings along (its weight) are the same in every file, since entry weights are
frozen; dividing a column by its factor changes no rank, so that all entries are 0 or 1 and arithmetic is
exact. Members with the same pattern of versions are one class: a combination cancels all of them or none.

An equation in which k or more members have a version that is in no other equation is in no combination over
fewer than k: such equations are left out first, again and again. So a wave of new values needs no search.
Equations without common members are searched apart.

The search over classes lets a combination cancel a class, which takes away a dimension, or not, which uses up
members; a class of k or more is always cancelled. Groups and numbers of files are small, and equal patterns
are looked up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from microagg.base.typing import Floats, Labels

NOT_IN_SUM = -1
_LEAST_OF_OTHERS = 0.1  # of a member's change, what the others' changes must add up to
_MOST_STEPS = 2_000  # of a search; a group that needs more keeps its old value
_MOST_EQUATIONS = 16  # that are searched together; likewise

_Vectors = tuple[tuple[int, ...], ...]


def gives_few_away(versions: Labels, k: int) -> bool:
    """Tell whether a combination of equations is a sum over fewer than k members.

    Parameters
    ----------
    versions : (members, equations) the version of each member's value in each equation; −1: it is not in it
    k : least number of members

    Returns
    -------
    bool
        True also where the search would take too long.

    >>> gives_few_away(np.array([[0, 0], [0, 0], [0, 1]]), 2)
    True
    >>> gives_few_away(np.array([[0, 0], [0, 1], [0, 1]]), 2)
    False
    """
    large = np.ones(versions.shape[1], bool)
    while large.any():  # such equations are in no combination over fewer than k
        same = (versions[:, :, None] == versions[:, None, :]).sum(axis=2)
        large = ((same == 1) & (versions != NOT_IN_SUM)).sum(axis=0) >= k
        versions = versions[:, ~large]
    is_in = versions != NOT_IN_SUM
    together = is_in.T @ is_in  # equations that have members in common, then also by others
    for _ in range(versions.shape[1].bit_length()):
        together = together @ together
    for part in {part.tobytes(): part for part in together}.values():
        equations = int(part.sum())
        often = Counter(_canonical(pattern) for pattern in versions[:, part].tolist())
        if equations > _MOST_EQUATIONS or _search(tuple(sorted(often.items())), equations, k):
            return True
    return False


def has_dominant_change(new: Floats, old: Floats) -> bool:
    """Tell whether one member makes nearly all of the change of a sum.

    Parameters
    ----------
    new, old : (members,) what each adds to the sum in two files; 0: nothing

    >>> has_dominant_change(np.array([1.0, 1.0, 1e6]), np.zeros(3))
    True
    >>> has_dominant_change(np.array([1.0, 1.0, 2.0]), np.zeros(3))
    False
    """
    change = new - old
    largest = np.abs(change)
    if not largest.any():
        return False
    others = np.abs(change.sum() - change)
    alone = (largest > 0) & (others < _LEAST_OF_OTHERS * largest)
    return bool(alone.any() or largest.max() > (1 - _LEAST_OF_OTHERS) * largest.sum())


def _canonical(pattern: Sequence[int]) -> tuple[int, ...]:
    """Return versions numbered by first appearance: only which of them are the same matters."""
    number: dict[int, int] = {NOT_IN_SUM: NOT_IN_SUM}
    return tuple(number.setdefault(version, len(number) - 1) for version in pattern)


@lru_cache(maxsize=100_000)
def _search(classes: tuple[tuple[tuple[int, ...], int], ...], equations: int, k: int) -> bool:
    sizes = [count for _, count in classes]
    columns = [
        [
            [int(version == wanted) for version in pattern]
            for wanted in sorted({*pattern} - {NOT_IN_SUM})
        ]
        for pattern, _ in classes
    ]
    steps = 0

    def few(space: _Vectors, uncancelled: frozenset[int]) -> bool:
        nonlocal steps
        steps += 1
        if steps > _MOST_STEPS:
            return True
        left = [
            at
            for at in range(len(classes))
            if any(_dot(vector, column) for vector in space for column in columns[at])
        ]
        others = [at for at in left if at not in uncancelled]
        if not others:
            return bool(left)
        chosen = max(others, key=lambda at: sizes[at])
        if few(_cancelled(space, columns[chosen]), uncancelled):
            return True
        used = sum(sizes[at] for at in uncancelled) + sizes[chosen]
        return used < k and few(space, uncancelled | {chosen})

    every = (tuple(int(i == j) for j in range(equations)) for i in range(equations))
    return few(tuple(every), frozenset())


def _dot(vector: Sequence[int], column: Sequence[int]) -> int:
    return sum(x for x, y in zip(vector, column, strict=True) if y)


def _cancelled(space: _Vectors, columns: Sequence[Sequence[int]]) -> _Vectors:
    """Return a basis of the combinations in a space that give 0 for each of some columns."""
    for column in columns:
        products = [_dot(vector, column) for vector in space]
        pivot = next((at for at, product in enumerate(products) if product), None)
        if pivot is None:
            continue
        base, factor = space[pivot], products[pivot]
        basis = []
        for at, (vector, product) in enumerate(zip(space, products, strict=True)):
            if product and at != pivot:
                sums = [factor * x - product * y for x, y in zip(vector, base, strict=True)]
                divisor = math.gcd(*sums)
                vector = tuple(x // divisor for x in sums)
            if at != pivot:
                basis.append(vector)
        space = tuple(basis)
    return space
