"""Coordinates of both tables for an attacker who looks for the nearest record, whatever the kinds.

A column becomes what it is for the grouping (see :mod:`microagg.encode.space`), fitted to the original and
not weighted: an attacker compares records, and each is one. A missing value is at the column's mean. So that
missingness itself counts, a column in which the original misses some values has further coordinates: the
corners of a simplex, one for each state: there, missing, missing with a certain code. Tables that are read in
parts have the same coordinates (see :mod:`microagg.engines.encoding`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import Corners, Encoder
from microagg.encode.nominal import simplex
from microagg.encode.scale import fit_scale
from microagg.encode.space import encoder_of
from microagg.tables.variable import Variable

# Beyond this many standard deviations all is equally far, and squares do not overflow.
_FAR = 1e100


def encoded(
    variables: Sequence[Variable], protected: Floats, states: Labels | None = None
) -> tuple[Floats, Floats]:
    """Coordinates before and after, each C-contiguous of shape (n, c).

    Released values have the numbering of the originals, NaN where missing; without ``states`` codes of
    missing values do not matter.

    >>> age = Variable("age", "number", np.array([30.0, np.nan, 50.0]))
    >>> before, after = encoded([age], np.array([[40.0], [40.0], [40.0]]))
    >>> before[:, 0].round(3).tolist(), after[:, 0].tolist()
    ([-0.707, 0.0, 0.707], [0.0, 0.0, 0.0])
    >>> bool(before[1, 1] != before[0, 1]), before[0, 1] == after[0, 1] == after[1, 1]
    (True, np.True_)
    """
    if complete_numbers(variables, protected):
        original = np.column_stack([variable.values for variable in variables])
        scaling = fit_scale(original)
        with np.errstate(over="ignore"):
            return scaling.apply(original), np.clip(scaling.apply(protected), -_FAR, _FAR)
    first, second = [], []
    for j, variable in enumerate(variables):
        encoder = encoder_of(variable)
        first.append(encoder.apply(variable.values))
        second.append(placed(encoder, protected[:, j]))
        for coordinates, found in zip(
            (first, second),
            _states(variable, protected[:, j], None if states is None else states[:, j]),
            strict=True,
        ):
            coordinates.append(found)
    return np.ascontiguousarray(np.hstack(first)), np.ascontiguousarray(np.hstack(second))


def complete_numbers(variables: Sequence[Variable], protected: Floats) -> bool:
    """Return whether coordinates are the scaled values: numbers and dates, none missing or transformed."""
    return not np.isnan(protected).any() and all(
        variable.kind in ("number", "integer", "date")
        and variable.setting.transform is None
        and not variable.missing.any()
        for variable in variables
    )


def placed(encoder: Encoder, values: Floats) -> Floats:
    """Coordinates of released values; what the column has no place for is at its mean."""
    if isinstance(encoder, Corners):
        values = np.where(values < len(encoder.points), values, np.nan)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = np.clip(encoder.apply(values), -_FAR, _FAR)
    return np.where(np.isfinite(found), found, 0.0)


def _states(variable: Variable, released: Floats, states: Labels | None) -> tuple[Floats, Floats]:
    """Coordinates of the states before and after; none where every value is there."""
    n = len(variable)
    if states is None:
        before, after = variable.missing.astype(np.int64), np.isnan(released).astype(np.int64)
    else:
        before, after = variable.states, states
    together = np.concatenate([before, after])
    if not together.any():
        return np.zeros((n, 0)), np.zeros((n, 0))
    often = np.bincount(before, minlength=int(together.max()) + 1)
    if np.count_nonzero(often) == 1:  # the attacker's records do not differ in it
        return np.zeros((n, 0)), np.zeros((n, 0))
    points = state_encoder(often).apply(together.astype(np.float64))
    return points[:n], points[n:]


def state_encoder(often: Labels) -> Encoder:
    """Take the states of a column to corners of a simplex, with an inertia of n − 1 for n records.

    ``often`` is the number of records in each state.

    >>> state_encoder(np.array([2, 2])).apply(np.array([0.0, 1.0])).round(3).tolist()
    [[-0.866], [0.866]]
    """
    n, points = int(often.sum()), simplex(len(often))
    points = points - often @ points / n
    total = float(often @ np.square(points).sum(axis=1))
    return Corners(points * np.sqrt((n - 1) / total if total > 0 else 0.0))
