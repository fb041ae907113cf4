"""Households together: one record for each household, whose members share all groups with the same others.

Problem   Where persons of a household are protected one by one, their groups overlap: who finds one member
          by what is known of the household finds the others. And values of a household, such as its income,
          come out differently for its members.
Idea      The members' values are laid side by side: a household of three with columns a and b is one
          record a₁ b₁ a₂ b₂ a₃ b₃. Households are grouped with others of the same size, so that there is no
          padding; the members at one place of the households of a group share their released values.
          A size with fewer than k households, or whose households as one group do not satisfy what is
          required other than k, is pooled with the next smaller one (or larger, for the smallest): there, the
          places of a smaller household that do not exist are filled with its own last member, who counts
          once more for the distance but has only one row. In a group of households of several sizes the
          members beyond the smallest size share the values of its last place, so that every value is
          still shared by persons of all its households.
Order     Which member stands first must not depend on the order of rows: members are sorted by their
          values, column by column, in descending order; only members with equal values are taken in the
          order of rows, and exchanging them changes nothing.
Cost      O(n log n).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError


class Households(NamedTuple):
    """Households of one class of sizes: a record of each."""

    matrix: Floats  # (households, members·columns)
    rows: Labels  # (households, members) the row of each member, −1 where there is none


def household_records(
    X: Floats,
    households: Labels,
    k: int = 1,
    enough: Callable[[Households], bool] | None = None,
) -> list[Households]:
    """Lay the members of each household side by side, one class for each size.

    ``X`` are the scaled persons; ``enough`` tells whether a class, as one group, satisfies the requirements
    other than k. Classes come by size, the smallest first, each with k households; one that was pooled has
    the largest of its sizes. Households are in the order of their first rows. Refused are fewer than k
    households, and households that all together are not enough.

    >>> X = np.array([[30.0], [8.0], [40.0], [50.0], [7.0]])
    >>> for one in household_records(X, np.array([1, 1, 2, 3, 3])):
    ...     print(one.matrix.tolist(), one.rows.tolist())
    [[40.0]] [[2]]
    [[30.0, 8.0], [50.0, 7.0]] [[0, 1], [3, 4]]
    """
    _, first, own, sizes = np.unique(
        households, return_index=True, return_inverse=True, return_counts=True
    )
    own = own.reshape(-1)
    if len(sizes) < k:
        raise InputError(
            f"k={k} needs at least {plural(k, 'household')}; the table has {len(sizes):,}. Lower k or add "
            "households."
        )
    # The last key sorts first: household, then the columns from the first on, descending.
    order = np.lexsort((*(-X.T[::-1]), own))
    start = np.cumsum(sizes) - sizes

    def side_by_side(chosen: Labels) -> Households:
        chosen = chosen[np.argsort(first[chosen])]
        position = np.arange(int(sizes[chosen].max()))
        exists = position < sizes[chosen][:, None]
        member = start[chosen][:, None] + np.minimum(position, sizes[chosen][:, None] - 1)
        person = order[member]
        matrix = np.ascontiguousarray(X[person].reshape(len(chosen), -1))
        return Households(matrix, np.where(exists, person, -1))

    # The largest sizes are the first to be pooled with the next smaller ones.
    classes: list[Labels] = []
    waiting = np.empty(0, dtype=np.int64)
    for size in np.unique(sizes)[::-1]:
        waiting = np.concatenate([waiting, np.flatnonzero(sizes == size)])
        if len(waiting) >= k and (enough is None or enough(side_by_side(waiting))):
            classes.append(waiting)
            waiting = waiting[:0]
    if len(waiting) and not classes:
        raise InputError(
            "Whole units move together, and their members at each place must satisfy the requirements other "
            "than k; all units as one group do not. Ask for less."
        )
    if len(waiting):  # the smallest sizes have too few: they join the last class
        classes[-1] = np.concatenate([classes[-1], waiting])
    return [side_by_side(chosen) for chosen in classes[::-1]]


def person_labels(classes: list[Households], labels: list[Labels]) -> Labels:
    """Label the groups of persons that share values: those at one place of a group of households.

    ``labels`` has, for each class of :func:`household_records`, the group of each household. A group of
    persons has a person or more of every household of its group; exactly one where the households are of one
    size.

    >>> X = np.array([[30.0], [8.0], [50.0], [7.0]])
    >>> classes = household_records(X, np.array([1, 1, 3, 3]))
    >>> person_labels(classes, [np.array([0, 0])]).tolist()
    [0, 1, 0, 1]
    """
    n = sum(int((household_class.rows >= 0).sum()) for household_class in classes)
    person_groups = np.empty(n, dtype=np.int64)
    offset = 0
    for household_class, groups in zip(classes, labels, strict=True):
        width = household_class.rows.shape[1]
        exists = household_class.rows >= 0
        smallest = np.full(int(groups.max()) + 1, width)
        np.minimum.at(smallest, groups, exists.sum(axis=1))
        position = np.minimum(np.arange(width), smallest[groups][:, None] - 1)
        number = offset + groups[:, None] * width + position
        person_groups[household_class.rows[exists]] = number[exists]
        offset += (int(groups.max()) + 1) * width
    return person_groups
