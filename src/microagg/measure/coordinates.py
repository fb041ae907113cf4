"""The space in which an attacker looks for the nearest record, whatever the kinds of the columns.

A column becomes what it is for the grouping (see :mod:`microagg.encode.space`), fitted to the original and
not weighted: an attacker compares records, and each is one. A missing value is at the column's mean. So that
missingness itself counts, a column in which the original misses some values has further coordinates: the
corners of a simplex, one for each state: there, missing, missing with a certain code. Where all values are
in memory the space is fitted to them (:func:`encoded`), elsewhere to summaries of them (engines/fit.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.categories import nominal_encoder
from microagg.encode.inertia import Corners, Encoder, LevelCounts
from microagg.encode.space import encoder_of
from microagg.tables.variable import Variable

# Beyond this many standard deviations all is equally far, and squares do not overflow.
FAR = 1e100


class AttackerSpace(NamedTuple):
    """How values, original or released, become coordinates for an attacker."""

    columns: Sequence[Encoder]
    states: Mapping[int, Encoder]
    """Of the columns in which some values are missing, by their places; see :func:`state_encoders`."""

    def place(self, values: Floats, states: Labels) -> Floats:
        """Return the coordinates of records, (n, c) C-contiguous, from values and states, (n, d) each."""
        columns = []
        for j, encoder in enumerate(self.columns):
            columns.append(_placed(encoder, np.ascontiguousarray(values[:, j])))
            if j in self.states:
                columns.append(self.states[j].apply(states[:, j].astype(np.float64)))
        return np.ascontiguousarray(np.hstack(columns))


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
    original = np.column_stack([variable.values for variable in variables])
    if states is None:
        before, states = np.isnan(original).astype(np.int64), np.isnan(protected).astype(np.int64)
    else:
        before = np.column_stack([variable.states for variable in variables])
    space = AttackerSpace(
        [encoder_of(variable) for variable in variables],
        state_encoders(np.bincount(column) for column in before.T),
    )
    return space.place(original, before), space.place(protected, states)


def complete_numbers(variables: Sequence[Variable], protected: Floats) -> bool:
    """Return whether coordinates are the scaled values: numbers and dates, none missing or transformed."""
    return not np.isnan(protected).any() and all(
        variable.kind in ("number", "integer", "date")
        and variable.setting.transform is None
        and not variable.missing.any()
        for variable in variables
    )


def _placed(encoder: Encoder, values: Floats) -> Floats:
    """Coordinates of values; what the column has no place for is at its mean."""
    if isinstance(encoder, Corners):
        values = np.where(values < len(encoder.points), values, np.nan)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        coordinates = np.clip(encoder.apply(values), -FAR, FAR)
    return np.where(np.isfinite(coordinates), coordinates, 0.0)


def state_encoders(counts: Iterable[Labels]) -> dict[int, Encoder]:
    """Make an encoder of the states of each column in which original records differ, by its place.

    ``counts`` has for each column the number of records in each state.
    """
    return {
        j: nominal_encoder(len(often), LevelCounts(often, int(often.sum())))
        for j, often in enumerate(counts)
        if np.count_nonzero(often) > 1  # else the attacker's records do not differ in it
    }
