"""How many units share what all files together show of them: group, known columns, presence."""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Labels

ABSENT = 0


def smallest_combination(groups: Labels, seen: Labels) -> int:
    """Count the units in the rarest combination of base group, known columns and presence over all files.

    Parameters
    ----------
    groups : (units,) base group of each
    seen : (units, files) what is known of each in each file; 0: it is not in it
    """
    there = np.isin(groups, groups[(seen != ABSENT).any(axis=1)])
    codes = _combinations(groups[there], seen[there])
    return int(np.bincount(codes).min(initial=len(groups)))


def rarest_of_groups(groups: Labels, seen: Labels, count: int) -> Labels:
    """Return the units in each group's rarest combination; groups without units have many.

    Parameters
    ----------
    groups, seen : as for :func:`smallest_combination`
    count : of groups
    """
    codes = _combinations(groups, seen)
    rarest = np.full(count, len(codes) + 1)
    np.minimum.at(rarest, groups, np.bincount(codes)[codes])
    return rarest


def _combinations(groups: Labels, seen: Labels) -> Labels:
    codes = np.unique(groups, return_inverse=True)[1].reshape(-1)
    for column in seen.T:
        values, which = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(values) + which.reshape(-1), return_inverse=True)[1]
        codes = codes.reshape(-1)
    return codes
