"""Strata: records of different ones never share a group.

A stratum with fewer than k units is an error that names it. On request it is merged instead: with
the stratum that agrees with it in most of the columns and is nearest by its mean. Groups that then hold
records of several strata release the stratum that most of them have, so that it is shared like any other
value; how many records that changes is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from microagg.base.formatting import RECORDS, UnitWords, plural
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, shown
from microagg.kernels.labels import canonical_labels, combine
from microagg.tables.frame import Frame


def strata_of(
    frame: Frame, columns: Sequence[Any], text: Frame | None = None
) -> tuple[Labels, Labels]:
    """Return the stratum of each record, (n,), and the number of its value in each column, (n, columns).

    Strata, the combinations of values in ``columns`` of ``frame``, are numbered by first appearance.
    ``text`` is the same table as written in a CSV file, where 1.0 and 1.00 are two strata: everybody who has
    the file can tell them apart.
    """
    codes = [stratum_codes(frame, name, text)[0] for name in columns]
    return combine(codes), np.column_stack(codes)


def stratum_codes(frame: Frame, name: Any, text: Frame | None = None) -> tuple[Labels, list[Any]]:
    """Return the number of each value of the stratum ``name``, and the values; refuse missing ones.

    ``frame`` and ``text`` are as for :func:`strata_of`.
    """
    codes, values = frame.categories(name)
    if (codes < 0).any():
        raise InputError(
            f"Every record belongs to a stratum; column {shown(name)} is missing in row "
            f"{int(np.argmax(codes < 0)) + 1} (the first record is row 1). Fill it, give it a value of its "
            'own such as "unknown", or drop those records.'
        )
    return (codes, values) if text is None else text.categories(name)


def merge_small(
    strata: Labels,
    values: Labels,
    k: int,
    units: Labels | None,
    scaled: Floats,
    small: str,
    frame: Frame,
    columns: Sequence[Any],
    who: UnitWords = RECORDS,
) -> Labels:
    """Refuse strata with fewer than k units, or merge them; return the strata in which groups may form.

    Parameters
    ----------
    strata : (n,) stratum of each record
    values : (n, columns) number of the value in each column
    k : least number of units
    units : (n,) unit of each record; None: each is one
    scaled : (n, c) coordinates of the records
    small : "error" or "merge"
    frame, columns : the table, and its strata, for the error
    who : what units are called
    """
    strata = strata.copy()
    while True:
        g = int(strata.max()) + 1
        shared = count_units(strata, units, g)
        there = np.bincount(strata, minlength=g) > 0
        short = np.flatnonzero(there & (shared < k))
        if not len(short):
            return canonical_labels(strata)
        worst = int(short[np.argmin(shared[short])])
        row = int(np.argmax(strata == worst))
        if small != "merge" or there.sum() == 1:
            categories = [frame.categories(name) for name in columns]
            rows = [(stratum, int(np.argmax(strata == stratum))) for stratum in short.tolist()]
            names = {
                tuple(levels[codes[at]] for codes, levels in categories): int(shared[stratum])
                for stratum, at in rows
            }
            raise stratum_too_small(columns, names, k, who)
        members = strata == worst
        others = np.flatnonzero(there & (np.arange(g) != worst))
        first = np.array([int(np.argmax(strata == other)) for other in others])
        agree = (values[first] == values[row]).sum(axis=1)
        sizes = np.bincount(strata, minlength=g)[others]
        means = np.column_stack([np.bincount(strata, x, minlength=g)[others] for x in scaled.T])
        apart = np.square(means / sizes[:, None] - scaled[members].mean(axis=0)).sum(axis=1)
        strata[members] = others[np.lexsort((others, apart, -agree))[0]]


def count_units(sets: Labels, units: Labels | None, g: int | None = None) -> Labels:
    """Count the distinct units in each of g sets of records; None: each record is a unit.

    Parameters
    ----------
    sets : (n,) int64, the set of each record, 0..g−1
    units : (n,) int64, any numbers
    g : number of sets; None: as many as these say

    Returns
    -------
    (g,) int64

    >>> count_units(np.array([0, 0, 0, 2]), np.array([5, 5, 7, 5]), 3).tolist()
    [2, 0, 1]
    """
    if units is None or not len(sets):
        return np.bincount(sets, minlength=g or 0)
    pairs = combine([sets, canonical_labels(units)])
    set_of_pair = np.empty(int(pairs.max()) + 1, dtype=np.int64)
    set_of_pair[pairs] = sets
    return np.bincount(set_of_pair, minlength=g or 0)


def stratum_too_small(
    columns: Sequence[Any], units: Mapping[tuple[Any, ...], int], k: int, who: UnitWords = RECORDS
) -> InputError:
    """Return the error about strata with fewer than ``k`` units, called ``who``.

    ``units`` has the number of those of each stratum, by its values in ``columns``.
    """
    short = [values for values, count in units.items() if count < k]
    worst = min(short, key=lambda values: (units[values], repr(values)))
    named = [f"{shown(name)} = {shown(value)}" for name, value in zip(columns, worst, strict=True)]
    more = f", and {plural(len(short) - 1, 'more stratum', 'more strata')}" if short[1:] else ""
    return InputError(
        f"Groups never cross strata, so each stratum needs at least k = {k} {who}; that of "
        f"{', '.join(named)} has {units[worst]}{more}. Lower k, name coarser strata, or merge small ones, "
        'which the engine memory does: small = "merge" in the plan, --small-strata merge.'
    )
