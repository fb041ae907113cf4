"""The space in which records are near or far: every column becomes a few coordinates.

A column has an inertia of importance·(n − 1), whatever its kind: numbers and dates are one coordinate, the
value over its spread; categories are corners of a simplex; see the file of each kind. Squared distances
add up over columns, and so do the SSE and every bound on it, so that all methods work on the matrix as
they do on numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode import hierarchy
from microagg.encode.categories import (
    MOST_COORDINATES,
    nominal_encoder,
    ordinal_encoder,
    release_level,
    release_mode,
)
from microagg.encode.inertia import Encoder, LevelCounts, by_present, count_levels, present_means
from microagg.encode.number import (
    NumberFigures,
    figures_of,
    group_aggregates,
    number_encoder,
    release_spiked,
    spiked_encoder,
)
from microagg.encode.scale import fit_scale
from microagg.encode.strata import count_units
from microagg.kernels.release_kinds import Releases
from microagg.tables.variable import Variable

_RELEASES: Mapping[str, Callable[[Variable, Labels, int, Floats | None], Floats]] = {
    "boolean": release_mode,
    "nominal": release_mode,
    "ordinal": release_level,
    "spiked": release_spiked,
    "hierarchy": hierarchy.release,
}


class Axes(NamedTuple):
    """How a column becomes coordinates."""

    values: Encoder
    states: Encoder | None = None  # Where missing or not is a coordinate of its own
    importance: float = 1.0

    def place(self, values: Floats, states: Labels | None) -> list[Floats]:
        """Return the coordinates of values and of states, where these have some."""
        factor = np.sqrt(self.importance)
        coordinates = [self.values.apply(values) * factor]
        if self.states is not None and states is not None:
            coordinates.append(self.states.apply(states.astype(np.float64)) * factor)
        return coordinates

    @property
    def widths(self) -> tuple[int, int]:
        """Number of coordinates: of values, and of states."""
        each = [part.shape[1] for part in self.place(np.full(1, np.nan), np.zeros(1, np.int64))]
        return each[0], sum(each[1:])


@dataclass(frozen=True, eq=False)
class Space:
    """Coordinates of the records."""

    matrix: Floats  # (n, c) C-contiguous: coordinates, or plain numbers that a method scales itself
    scale: str  # how a method has to scale the matrix; "none" for coordinates
    encoded: bool = True
    levels: Labels | None = None
    """Level of each record, −1: missing, where the coordinates are the corners of one category and nothing
    else: then only the counts of levels in a group matter."""
    axes: tuple[Axes, ...] = ()  # of the columns, where they are encoded
    releases: Releases | None = None
    """What groups release, if that loses more than the SSE says; see :mod:`microagg.encode.release_rules`."""
    factors: Floats | None = None
    """(c,) of the coordinates in a search by the SSE, so that groups lose little by what they release."""

    @cached_property
    def searched(self) -> Floats:
        """The matrix in which groups of a low SSE are searched for."""
        return self.matrix if self.factors is None else self.matrix * self.factors

    @cached_property
    def scaled(self) -> Floats:
        """The coordinates."""
        return (
            self.matrix if self.encoded else fit_scale(self.matrix, self.scale).apply(self.matrix)
        )


def space_of(
    variables: Sequence[Variable],
    scale: str = "zscore",
    weights: Floats | None = None,
    states: bool = False,
) -> Space:
    """Encode variables.

    Parameters
    ----------
    variables : of one table
    scale : how numbers are scaled; categories always have the inertia of a z-score
    weights : with a mean of 1
    states : whether missing or not is a coordinate of its own, for policies that let both share a group

    >>> age = Variable("age", "number", np.array([30.0, 40.0, 50.0]))
    >>> space_of([age]).scaled.tolist()
    [[-1.0], [0.0], [1.0]]
    """
    if are_plain(variables) and weights is None:
        return Space(np.column_stack([v.values for v in variables]), scale, encoded=False)
    axes, coordinates = [], []
    for variable in variables:
        codes, of_states = None, None
        if states and variable.missing.any():
            codes = variable.states
            counts = count_levels(codes, int(codes.max()) + 1, weights)
            of_states = nominal_encoder(len(counts.often), counts)
        encoder = encoder_of(variable, scale, weights)
        axes.append(Axes(encoder, of_states, variable.setting.importance))
        coordinates += axes[-1].place(variable.values, codes)
    matrix = np.ascontiguousarray(np.hstack(coordinates))
    first = variables[0]
    only_corners = len(coordinates) == 1 and first.kind in ("boolean", "nominal")
    only_corners = only_corners and len(first.levels) <= MOST_COORDINATES + 1
    levels = first.level_numbers if only_corners else None
    return Space(matrix, "none", levels=levels, axes=tuple(axes))


def are_plain(variables: Sequence[Variable]) -> bool:
    """Return whether all ``variables`` are numbers without missing values that count alike."""
    return all(
        variable.kind in ("number", "integer")
        and variable.setting.transform is None
        and variable.setting.importance == 1
        and not variable.missing.any()
        for variable in variables
    )


def encoder_of(variable: Variable, scale: str = "zscore", weights: Floats | None = None) -> Encoder:
    """Fit the encoder of ``variable``, which takes its values, original or released, to coordinates.

    ``scale`` is that of numbers; ``weights``, (n,), have a mean of 1 over the table.
    """
    return fitted_encoder(variable, counted(variable, scale, weights))


def counted(
    variable: Variable, scale: str = "zscore", weights: Floats | None = None
) -> LevelCounts | NumberFigures:
    """Count the levels of ``variable``, or compute its figures: what its encoder is fitted to.

    ``scale`` is that of numbers; ``weights``, (n,), have a mean of 1 over the table.
    """
    if variable.is_category:
        return count_levels(variable.level_numbers, max(len(variable.levels), 1), weights)
    return figures_of(variable, "zscore" if variable.kind == "spiked" else scale, weights)


def fitted_encoder(variable: Variable, fitted_to: LevelCounts | NumberFigures) -> Encoder:
    """Fit the encoder of ``variable``, whatever its values, to ``fitted_to``: counts of levels or figures."""
    if isinstance(fitted_to, NumberFigures):
        if variable.kind == "spiked":
            return spiked_encoder(variable, fitted_to)
        return number_encoder(fitted_to)
    if variable.kind == "ordinal":
        return ordinal_encoder(variable, fitted_to)
    if variable.kind == "hierarchy":
        return hierarchy.encoder(variable, fitted_to)
    return nominal_encoder(len(variable.levels), fitted_to)


def released_values(
    variable: Variable,
    labels: Labels,
    g: int,
    aggregate: str = "mean",
    weights: Floats | None = None,
) -> Floats:
    """Return the value that each group releases, (g,): the admissible one nearest to its centroid.

    It is in the unit of the variable, or the number of a level; NaN: there is none.

    Parameters
    ----------
    variable : a column of n records; never written to
    labels : (n,) int64, groups 0..g−1
    g : number of groups
    aggregate : for numbers and dates
    weights : (n,) above 0
    """
    if variable.kind not in ("number", "integer", "date"):
        return _RELEASES[variable.kind](variable, labels, g, weights)
    if aggregate == "mean":
        return present_means(variable.values, labels, g, weights)
    return by_present(
        variable.values,
        labels,
        g,
        lambda values, groups, _: group_aggregates(values, groups, aggregate),
    )


def with_admissible(
    variable: Variable,
    k: int,
    units: Labels | None = None,
    held: Callable[[Sequence[Any]], int] | None = None,
) -> Variable:
    """Return a column of categories that releases only what at least k units of the table hold.

    Otherwise a group would release, for all its records, the category of one person.

    Parameters
    ----------
    variable : all records of the table
    k : least number of units, or of records where no units are given
    units : (n,) the unit of each record
    held : counts the units that hold one of some levels, where the values are not in memory

    >>> job = Variable("job", "nominal", np.array([0.0, 0.0, 1.0]), levels=("clerk", "mayor"))
    >>> with_admissible(job, 2).admissible.tolist()
    [True, False]
    """
    if not variable.is_category:
        return variable
    nodes = []  # above the levels, where these are released
    if variable.kind == "hierarchy" and variable.setting.release == "node":
        nodes = hierarchy.node_members(variable)
    if held is not None:
        sets = [*np.arange(len(variable.levels))[:, None], *nodes]
        counts = [held([variable.levels[at] for at in members]) for members in sets]
        return replace(variable, admissible=np.array(counts, dtype=np.int64) >= k)
    levels = variable.level_numbers
    there = levels >= 0
    own_units = np.flatnonzero(there) if units is None else units[there]
    units_of_level = count_units(levels[there], own_units, len(variable.levels))
    of_nodes = [len(np.unique(own_units[np.isin(levels[there], leaves)])) for leaves in nodes]
    return replace(variable, admissible=np.append(units_of_level, of_nodes) >= k)


def names_of_levels(variable: Variable) -> list[Any]:
    """List the names of all values that ``variable``, a category, may release."""
    names = list(variable.levels)
    if variable.kind == "hierarchy" and variable.setting.release == "node":
        names += hierarchy.inner_nodes(variable)
    return [*names, *variable.merged]
