"""Read the columns of a protected frame in the numbering of its original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.encode.bands import ends_of_label
from microagg.encode.hierarchy import inner_nodes
from microagg.encode.prepare import weights_of as given_weights
from microagg.errors import InputError, MicroaggError, shown
from microagg.plan.column import Column, columns_with
from microagg.tables.dates import instants
from microagg.tables.finite import check_not_infinite
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.variable import Variable, variable_of

_DAY = 86_400  # seconds


class ComparedColumn(NamedTuple):
    """A column of both tables, in one numbering; NaN is missing."""

    name: Any
    before: Floats
    after: Floats
    is_category: bool


def weights_of(frame: Frame, name: Any) -> tuple[Floats, float]:
    """Weights of the records with a mean of 1, and their mean.

    >>> import pyarrow as pa
    >>> weights, mean = weights_of(Frame(pa.table({"w": [2.0, 6.0]})), "w")
    >>> weights.tolist(), mean
    ([0.5, 1.5], 4.0)
    """
    if not frame.has(name):
        raise InputError(f"There is no column {shown(name)} for the weights. Name another.")
    values = given_weights(frame, name)
    mean = float(values.mean())
    return values / mean, mean


def protected_values(variable: Variable, before: Frame, after: Frame) -> Floats:
    """Values that the protected frame has in a column, as the original's variable counts them.

    A level that the original does not have gets a number of its own after all others.

    >>> import pyarrow as pa
    >>> from microagg.tables.variable import variable_of
    >>> first, second = (Frame(pa.table({"size": sizes})) for sizes in (["S", "L"], ["L", "XL"]))
    >>> protected_values(variable_of(first, "size"), first, second).tolist()
    [0.0, 2.0]
    """
    name = variable.name
    if variable.is_category:
        return _levels(variable, after)
    # A column without any value may be text, since a CSV file tells no type of it.
    if values_as_written(after, name, from_csv=True).null_count == len(after):
        return np.full(len(after), np.nan)
    if variable.kind == "date":
        return _dates(variable, before, after)
    if not after.is_numeric(name):
        if not has_bands(after, name):
            raise after.not_numbers(name)
        return _bands(variable, after)
    values = after.doubles(name)
    check_not_infinite(values, name, "compare with the original")
    return values


def compared_columns(
    before: Frame, after: Frame, names: Iterable[Any], kinds: Mapping[Any, Any]
) -> list[ComparedColumn]:
    """Read columns of two tables in one numbering.

    Parameters
    ----------
    before, after : the tables; their rows need not correspond
    names : columns that both have
    kinds : of some of them, as for :func:`microagg.utility`
    """
    settings, columns = columns_with({}, "kinds", kinds), []
    for name in names:
        try:
            variable = variable_of(before, name, settings.get(name, Column()))
            first, second = variable.values, protected_values(variable, before, after)
            is_category = variable.is_category
        except MicroaggError:
            # Of no kind, or written in another way: its values are told apart as texts.
            cells = [frame.arrow_column(name).to_pylist() for frame in (before, after)]
            texts = [[None if cell is None else str(cell) for cell in column] for column in cells]
            distinct = sorted({text for column in texts for text in column if text is not None})
            numbers: dict[str | None, float] = {text: i for i, text in enumerate(distinct)}
            first, second = (np.array([numbers.get(t, np.nan) for t in column]) for column in texts)
            is_category = True
        columns.append(ComparedColumn(name, first, second, is_category))
    return columns


def has_bands(frame: Frame, name: Any) -> bool:
    """Return whether a column holds names of bands of numbers, see :mod:`microagg.encode.recode`."""
    if frame.kind_in_words(name) not in ("text", "categories"):
        return False
    levels = frame.categories(name)[1]
    return bool(levels) and all(ends_of_label(str(level)) is not None for level in levels)


def _bands(variable: Variable, after: Frame) -> Floats:
    """Bands of numbers as the means of the original values in them."""
    codes, levels = after.categories(variable.name)
    means = []
    for low, high in (ends_of_label(str(level)) or (0.0, 0.0) for level in levels):
        members = variable.values[(variable.values >= low) & (variable.values < high)]
        middle = low if high == np.inf else high if low == -np.inf else (low + high) / 2
        means.append(float(members.mean()) if len(members) else middle)
    return np.array([*means, np.nan])[codes]


def _levels(variable: Variable, after: Frame) -> Floats:
    codes, categories = after.categories(variable.name)
    known: list[Any] = list(variable.levels)
    if variable.kind == "hierarchy":
        known += inner_nodes(variable)
    number_of: dict[Any, int] = {}
    for number, level in [*enumerate(known), *enumerate(str(level).strip() for level in known)]:
        number_of.setdefault(level, number)
    numbers = []
    for value in categories:
        at = number_of.get(value, number_of.get(str(value).strip()))
        if at is None:
            at = len(known)
            known.append(value)
        numbers.append(float(at))
    return np.array([*numbers, np.nan])[codes]  # −1, missing, is the last


def _dates(variable: Variable, before: Frame, after: Frame) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    name = variable.name
    column = after.arrow_column(name)
    try:
        if variable.format is not None:  # which a few texts alone might not tell
            texts = pc.utf8_trim_whitespace(column)
            texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
            column = pc.strptime(texts, format=variable.format, unit="s")
        else:
            column = column.cast(before.arrow_column(name).type)
        dates = instants(column)
    except pa.ArrowException:
        dates = None
    if dates is None:
        raise InputError(
            f"A column of dates must be written in the same way in both tables; column {shown(name)} of the "
            "protected one is not. Write it as the original has it, or leave it out."
        )
    daily = variable.format is not None and "%H" not in variable.format
    values = dates.values + dates.origin
    return np.asarray(values / (_DAY if daily else 1) - variable.origin)
