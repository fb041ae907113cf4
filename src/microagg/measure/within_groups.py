"""What averaging takes from variances and covariances, so that users of a released file can add it back.

The covariance of the original is that of the released group means plus the pooled covariance within groups,
W. With W, the variances of the whole file, its correlations and its linear regressions become those of the
original; nothing follows for parts of the file. W is a statistic of originals, so that it goes into the
public report under conditions: records exceed groups by 200 or more, no unit makes more than a tenth of a
column's entry (in a table of 45 firms W gave the largest one away), and each entry is rounded to a hundredth
of the product of the two columns' released standard deviations. A column that fails is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels

LEAST_MORE = 200
"""By how many records must exceed groups."""
LARGEST_SHARE = 0.1
"""Of an entry of the diagonal, that one unit may make."""
_DECIMALS = 2


class WithinGroups(NamedTuple):
    """The pooled covariance within groups of columns that were averaged by the same groups."""

    columns: list[Any]
    relative: Floats
    """(d, d) entries over the product of the two released standard deviations, rounded to hundredths."""


def within_groups(
    names: Sequence[Any],
    before: Floats,
    after: Floats,
    labels: Labels,
    weights: Floats | None = None,
    units: Labels | None = None,
) -> WithinGroups | None:
    """Return what may be told of the covariance within groups; None if that is nothing.

    Parameters
    ----------
    names : of the d columns
    before, after : (n, d) complete numbers and the means that their groups release, rows in the same order
    labels : (n,) group of each record
    weights : (n,) of the records; None: all count alike
    units : (n,) number of each record's unit; None: each record is one

    >>> x = np.arange(300.0)[:, None] * [1, -2]
    >>> labels = np.arange(300) // 3
    >>> found = within_groups(["a", "b"], x, x[labels * 3 + 1], labels)
    >>> found.columns, found.relative.tolist()  # groups of three neighbours: nearly nothing is lost
    (['a', 'b'], [[0.0, 0.0], [0.0, 0.0]])
    """
    n = len(before)
    if n - len(np.unique(labels)) < LEAST_MORE:
        return None
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    middle = shares @ after
    centred, moved = after - middle, before - after
    scale = np.sqrt(shares @ np.square(centred))
    squares = shares[:, None] * np.square(moved)
    unit = np.arange(n) if units is None else np.unique(units, return_inverse=True)[1].reshape(-1)
    total = squares.sum(axis=0)
    largest = np.array([np.bincount(unit, column).max() for column in squares.T])
    is_safe = (scale > 0) & (total > 0) & (largest <= LARGEST_SHARE * total)
    kept = np.flatnonzero(is_safe).tolist()
    if not len(kept):
        return None
    deviations = (before - shares @ before)[:, kept]
    restored = (deviations * shares[:, None]).T @ deviations
    released = (centred[:, kept] * shares[:, None]).T @ centred[:, kept]
    relative = (restored - released) / np.outer(scale[kept], scale[kept])
    return WithinGroups([names[j] for j in kept], np.round(relative, _DECIMALS) + 0.0)
