"""Strata: records of different ones never share a group; and how many units sets of records have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from microagg.base.formatting import RECORDS, UnitWords, plural
from microagg.base.typing import Labels
from microagg.errors import InputError, shown
from microagg.kernels.labels import canonical_labels, combine
from microagg.tables.finite import first_row
from microagg.tables.frame import Frame


def strata_of(frame: Frame, columns: Sequence[Any], text: Frame | None = None) -> Labels:
    """Return the stratum of each record, (n,), the combination of its values, by first appearance.

    ``text`` is the same table as written in a CSV file, where 1.0 and 1.00 are two strata: everybody who has
    the file can tell them apart.
    """
    return combine([stratum_codes(frame, name, text)[0] for name in columns])


def stratum_codes(frame: Frame, name: Any, text: Frame | None = None) -> tuple[Labels, list[Any]]:
    """Return the number of each value of the stratum ``name``, and the values; refuse missing ones.

    ``frame`` and ``text`` are as for :func:`strata_of`.
    """
    codes, values = frame.categories(name)
    if (codes < 0).any():
        raise InputError(
            f"Every record belongs to a stratum; column {shown(name)} is missing in {first_row(codes < 0)}. "
            'Fill it, give it a value of its own such as "unknown", or drop those records.'
        )
    return (codes, values) if text is None else text.categories(name)


def count_units(sets: Labels, units: Labels | None, g: int | None = None) -> Labels:
    """Count the distinct units in each of g sets of records.

    Parameters
    ----------
    sets : (n,) int64, the set of each record, 0..g−1
    units : (n,) int64, any numbers; None: each record is a unit
    g : number of sets; None: as many as these say

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
