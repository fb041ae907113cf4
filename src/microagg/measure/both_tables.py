"""Bring an original and its protected twin side by side, as measures and attackers compare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.categories import nominal_encoder
from microagg.encode.inertia import Corners, Encoder, LevelCounts
from microagg.encode.recoded_table import Recoded
from microagg.encode.space import encoder_of
from microagg.errors import InputError, listed, shown
from microagg.kernels.labels import combine
from microagg.measure.classes import classes
from microagg.measure.read_protected import has_bands, protected_values, weights_of
from microagg.plan.column import Column, columns_with
from microagg.tables.frame import Frame, choose_columns
from microagg.tables.matrix import as_matrix, is_frame
from microagg.tables.variable import Variable, variable_of

# Beyond this many standard deviations all is equally far, and squares do not overflow.
FAR = 1e100


class AttackerSpace(NamedTuple):
    """How values become coordinates, in which an attacker looks for the nearest record.

    A column becomes what it is for the grouping (see :mod:`microagg.encode.space`), fitted to the original
    and not weighted: an attacker compares records, and each is one. A missing value is at the column's mean.
    So that missingness itself counts, a column in which the original misses some values has further
    coordinates: the corners of a simplex, one for each state: there, missing, missing with a certain code.
    It is fitted to values in memory (:attr:`Pair.encoded`) or to summaries of them (engines/fit.py).
    """

    columns: Sequence[Encoder]
    states: Mapping[int, Encoder]
    """Of the columns in which some values are missing, by their places; see :func:`state_encoders`."""

    def place(self, values: Floats, states: Labels) -> Floats:
        """Return the coordinates of records, (n, c) C-contiguous, from values and states, (n, d) each."""
        columns = []
        for j, encoder in enumerate(self.columns):
            x = np.ascontiguousarray(values[:, j])
            if isinstance(encoder, Corners):
                x = np.where(x < len(encoder.points), x, np.nan)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                coordinates = np.clip(encoder.apply(x), -FAR, FAR)
            # What the column has no place for is at its mean.
            columns.append(np.where(np.isfinite(coordinates), coordinates, 0.0))
            if j in self.states:
                columns.append(self.states[j].apply(states[:, j].astype(np.float64)))
        return np.ascontiguousarray(np.hstack(columns))


def state_encoders(counts: Iterable[Labels]) -> dict[int, Encoder]:
    """Make an encoder of the states of each column in which original records differ, by its place.

    ``counts`` has for each column the number of records in each state.
    """
    return {
        j: nominal_encoder(len(often), LevelCounts(often, int(often.sum())))
        for j, often in enumerate(counts)
        if np.count_nonzero(often) > 1  # else the attacker's records do not differ in it
    }


@dataclass(frozen=True)
class Pair:
    """The same columns of both tables.

    Columns may be of any kind: numbers, instants or level numbers, NaN where a value is missing; released
    values are in the same numbering, nodes of a hierarchy after its levels, and what is neither after these.
    """

    variables: Sequence[Variable]
    """The original columns, typed."""
    protected: Floats
    """(n, d) released values."""
    before: Frame | None = field(default=None, repr=False)  # the tables with all their columns
    after: Frame | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    """(n,) weights with a mean of 1; None: all count alike."""
    labels: Labels | None = field(default=None, repr=False)
    """(n, d) group of each record by which each column was released; None: not known."""
    states: Labels | None = field(default=None, repr=False)
    """(n, d) state in which each value was released (see :attr:`Variable.states`); None: codes of missing
    values do not matter."""
    mean_weight: float = 1.0
    """What a weight of 1 stands for in the population."""
    shared: Labels | None = field(default=None, repr=False)
    """(n,) a number for each combination of strata and released weight, which groups share in addition to
    protected values; None: they share only these."""

    swapped: Labels | None = field(default=None, repr=False)
    """(n,) class of each record where rows that belong to the same people release different values: the
    groups of swapped columns, with the released values of the others; None: no column is swapped."""

    recoded_only: frozenset[Any] = frozenset()
    """Columns that no group shares: they lose what their recoding loses, whatever the groups are."""

    def __len__(self) -> int:
        return len(self.protected)

    def __reduce__(self) -> Any:
        raise TypeError(
            "Measures hold the original values and cannot be pickled, so that these do not leave this "
            "process. Pickle the result of as_dict()."
        )

    @cached_property
    def names(self) -> list[Any]:
        """Name of each column."""
        return [variable.name for variable in self.variables]

    @cached_property
    def original(self) -> Floats:
        """(n, d) original values."""
        return np.column_stack([variable.values for variable in self.variables])

    @cached_property
    def row_weights(self) -> Floats:
        """(n,) what each record counts: its weight, or 1."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @cached_property
    def both_there(self) -> NDArray[np.bool_]:
        """(n, d) where a value is there before and after."""
        return ~(np.isnan(self.original) | np.isnan(self.protected))

    def of_columns(self, chosen: Iterable[int]) -> Pair:
        """Return the pair of some columns only, by their places."""
        at = list(chosen)
        return replace(
            self,
            variables=[self.variables[j] for j in at],
            protected=self.protected[:, at],
            labels=None if self.labels is None else self.labels[:, at],
            states=None if self.states is None else self.states[:, at],
        )

    def changed(self, j: int) -> float:
        """Share of records whose category of column ``j`` changed, of those that have one in both tables.

        A category that the original one was merged into by recoding is no change.
        """
        there, variable = self.both_there[:, j], self.variables[j]
        x, y, w = self.original[there, j], self.protected[there, j], self.row_weights[there]
        wrong = x != y
        if variable.merged_from is not None:
            at = np.flatnonzero(wrong & (y >= len(variable.levels)))
            level, merged = x[at].astype(np.int64), y[at].astype(np.int64) - len(variable.levels)
            wrong[at] = variable.merged_from[merged, level] == 0
        return float(w @ wrong / w.sum()) if len(w) else 0.0

    @cached_property
    def encoded(self) -> tuple[Floats, Floats]:
        """Coordinates before and after, each C-contiguous of shape (n, c), see :class:`AttackerSpace`.

        >>> age = Variable("age", "number", np.array([30.0, np.nan, 50.0]))
        >>> before, after = Pair([age], np.array([[40.0], [40.0], [40.0]])).encoded
        >>> before[:, 0].round(3).tolist(), after[:, 0].tolist()
        ([-0.707, 0.0, 0.707], [0.0, 0.0, 0.0])
        >>> bool(before[1, 1] != before[0, 1]), before[0, 1] == after[0, 1] == after[1, 1]
        (True, np.True_)
        """
        if self.states is None:
            before, after = (
                np.isnan(table).astype(np.int64) for table in (self.original, self.protected)
            )
        else:
            before = np.column_stack([variable.states for variable in self.variables])
            after = self.states
        space = AttackerSpace(
            [encoder_of(variable) for variable in self.variables],
            state_encoders(np.bincount(column) for column in before.T),
        )
        return space.place(self.original, before), space.place(self.protected, after)

    @cached_property
    def varies(self) -> Any:
        """Which columns of the original are not constant; only these have a scale."""
        return np.fmin.reduce(self.original, axis=0) < np.fmax.reduce(self.original, axis=0)

    @cached_property
    def classes(self) -> Labels:
        """Class of each record by protected rows: equal ones, or rows among which values were swapped.

        Missing is a value.
        """
        return self.equal_rows if self.swapped is None else self.swapped

    @cached_property
    def equal_rows(self) -> Labels:
        """Class of each record by protected rows that are equal."""
        labels = classes(self.protected)
        if self.states is not None and (self.states > 1).any():
            return combine([labels, *self.states.T])
        return labels

    @cached_property
    def released_classes(self) -> Labels:
        """Class of each record by all that groups share: protected values, strata and released weight."""
        return self.classes if self.shared is None else combine([self.classes, self.shared])

    @cached_property
    def classes_before(self) -> Labels:
        """The same of the original rows."""
        labels = classes(self.original)
        if any(variable.tags is not None for variable in self.variables):
            return combine([labels, *(variable.states for variable in self.variables)])
        return labels

    def frames(self, purpose: str) -> tuple[Frame, Frame]:
        """Both tables with all their columns."""
        if self.before is None or self.after is None:
            raise InputError(
                f"{purpose} names columns, which arrays do not have. Pass two data frames."
            )
        return self.before, self.after


def against_original(
    both: Pair,
    recoded: Mapping[Any, Recoded],
    before: Frame | None,
) -> Pair:
    """Compare recoded columns, known ones and strata included, as they were before their recoding.

    Parameters
    ----------
    both : the recoded table before and after the release
    recoded : every recoded column, known ones and strata included
    before : the table before it was recoded
    """
    assert both.after is not None
    assert both.states is not None
    assert both.labels is not None  # who releases knows the groups
    arrays = both.protected.T, both.labels.T, both.states.T
    columns = {
        v.name: (v, *of_column) for v, *of_column in zip(both.variables, *arrays, strict=True)
    }
    bands = {}  # as the means of their values, for analyses of numbers
    for name, column in recoded.items():
        recoder = column.recoder
        if name not in columns:
            after = variable_of(
                both.after, name, recoder.after, recoder.codes, recoder.missing_words
            )
            group = np.unique(after.values, return_inverse=True)[1].reshape(-1)
            columns[name] = after, after.values, group, after.states
        variable, values, *others = columns[name]
        values = column.stands_for(values, variable)
        columns[name] = column.before, values, *others
        if recoder.how.bands is not None:
            bands[name] = both.after.doubles_like(name, values)
    variables, *of_columns = zip(*columns.values(), strict=True)
    protected, labels, states = map(np.column_stack, of_columns)
    return replace(
        both,
        variables=variables,
        protected=protected,
        labels=labels,
        states=states,
        before=before,
        recoded_only=frozenset(recoded) - frozenset(both.names),
        after=Frame(both.after.with_columns(bands)) if bands else both.after,
    )


def pair(
    original: Any,
    protected: Any,
    columns: Iterable[Any] | None = None,
    leave_out: Iterable[Any] = (),
    *,
    kinds: Mapping[Any, Any] | None = None,
    weights: Any = None,
) -> Pair:
    """Match two tables by column name and row position.

    Parameters
    ----------
    original, protected : two frames, or two array-likes, with the same rows in the same order
    columns : names to compare, of any kind; None: the numeric columns that both have
    leave_out : columns that are not compared unless they are named
    kinds : kind, levels or ``Column`` of columns whose type does not tell it
    weights : name of the original's column of weights, which is not compared

    Returns
    -------
    Pair
        Holds the original values: it cannot be pickled.
    """
    if is_frame(original) != is_frame(protected):
        raise InputError("Compare two frames or two arrays; one of each was given.")
    if not is_frame(original):
        if columns is not None or kinds or weights is not None:
            raise InputError("Columns have names in frames only; pick columns of arrays before.")
        first, second = as_matrix(original), as_matrix(protected)
        if first.shape != second.shape:
            raise InputError(
                "Both tables must have the same records in the same order; their shapes are "
                f"{first.shape} and {second.shape}."
            )
        return Pair([Variable(j, "number", x) for j, x in enumerate(first.T)], second)
    before, after = Frame(original), Frame(protected)
    aside = [*leave_out, *([] if weights is None else [weights])]
    names = _shared_columns(before, after, columns, aside)
    if len(before) != len(after):
        raise InputError(
            f"Both tables must have the same records in the same order; they have {len(before)} and "
            f"{len(after)}. Drop the records that only one of them has."
        )
    if not len(before):
        raise InputError("Both tables must have records; they have none. Check how they were read.")
    kinds = kinds or {}
    for name in kinds:
        if name not in names:
            raise InputError(
                f"A kind is given for a column that is compared; {shown(name)} is not one of "
                f"{listed(names, limit=40)}. Name it among the columns, or leave its kind out."
            )
    settings = columns_with({}, "kinds", kinds)
    variables = [variable_of(before, name, settings.get(name, Column())) for name in names]
    row_weights, mean_weight = (None, 1.0) if weights is None else weights_of(before, weights)
    return Pair(
        variables,
        np.column_stack([protected_values(variable, before, after) for variable in variables]),
        before,
        after,
        weights=row_weights,
        mean_weight=mean_weight,
    )


def align(original: Any, protected: Any, name: str) -> Any:
    """Bring the rows of ``protected`` into the order of ``original``, by ``name``, a column of ids in both.

    Both are Arrow tables; neither is changed.
    """
    ids = []
    for table, which in ((original, "original"), (protected, "protected")):
        if name not in table.column_names:
            raise InputError(
                f"There is no column {shown(name)} in the {which} file; it has "
                f"{listed(table.column_names, limit=40)}."
            )
        values = table[name].to_pylist()
        if None in values or len(set(values)) < len(values):
            raise InputError(
                f"Ids must be there and differ; in column {shown(name)} of the {which} file some are "
                "missing or occur twice. Name another column, or match records by position."
            )
        ids.append(values)
    index = {value: i for i, value in enumerate(ids[1])}
    alone = [value for value in ids[0] if value not in index]
    extra = len(index) - (len(ids[0]) - len(alone))
    if alone or extra:
        raise InputError(
            f"Both files must have the same records; {len(alone)} ids in column {shown(name)} are only in "
            f"the original and {extra} only in the protected file. Drop those records first."
        )
    return protected.take([index[value] for value in ids[0]])


def _shared_columns(
    before: Frame, after: Frame, columns: Iterable[Any] | None, leave_out: list[Any]
) -> list[Any]:
    if columns is not None:
        names = choose_columns(before, columns)
        choose_columns(after, names)
        both = [name for name in leave_out if name in names]
        if both:
            raise InputError(
                f"Column {shown(both[0])} is named as one to compare and as an id or a confidential "
                "one; it can be only one of them."
            )
        return names
    names = [
        name
        for name in choose_columns(before, None)
        if after.has(name) and name not in leave_out
        if after.is_numeric(name) or has_bands(after, name)
    ]
    if not names:
        raise InputError(
            f"The tables share no numeric column: {listed(before.names)} against {listed(after.names)}."
        )
    return names
