"""A variable: one column of a table, typed, as numbers that can be encoded and released.

Numbers stay numbers, dates become whole numbers of their own unit, categories the numbers of their levels.
Where a value is missing it is NaN, with the tag of its code where the plan names codes such as −8 or
"refused" as missing. What is released becomes a column of the original type again in
``releasing/release_values.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, listed, shown
from microagg.plan.column import CATEGORIES, Column
from microagg.plan.plan import Plan
from microagg.tables.dates import dates_in_text, first_no_date, instants
from microagg.tables.file_metadata import Coded
from microagg.tables.finite import check_not_infinite, first_row
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import is_text
from microagg.tables.numbers_in_text import reads_as_number

QUANTITIES = ("number", "integer", "spiked")

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Variable:
    """One typed column."""

    name: Any
    kind: str  # number, integer, spiked, date, boolean, nominal, ordinal or hierarchy
    values: Floats  # numbers, instants in the column's unit, or level numbers; NaN where missing
    setting: Column = field(default_factory=Column)  # what the plan says of the column
    levels: tuple[Any, ...] = ()  # of categories; of a declared order, also those nobody has
    rows: Labels = field(default_factory=lambda: _NONE)  # record with each level; −1: none
    codes: tuple[Any, ...] = ()  # values that mean missing, by the plan
    tags: Labels | None = None  # number of the code for missing, −1: none; None: none occurs
    origin: int = 0  # of dates: what an instant of 0 stands for
    format: str | None = None  # of dates written as text: how
    often: Floats | None = None  # of each level in the whole table; None: these are all its records
    admissible: NDArray[np.bool_] | None = None  # that enough units hold; None: all
    places: Floats | None = None  # of ordered levels: where each stands; None: at its number
    share: float = 1.0  # of the column's inertia; the rest was lost when it was recoded
    merged: tuple[Any, ...] = ()  # released levels that several became, numbered after all others
    merged_from: Floats | None = None  # (merged, levels) share of levels in the records of each

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_category(self) -> bool:
        """Whether the values are level numbers."""
        return self.kind in CATEGORIES

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return np.isnan(self.values)

    @property
    def states(self) -> Labels:
        """0: there is a value; 1: it is missing; 2 and more: missing, with a code."""
        states = self.missing.astype(np.int64)
        return states if self.tags is None else np.where(self.tags >= 0, 2 + self.tags, states)

    @property
    def level_numbers(self) -> Labels:
        """Level of each record; −1: missing."""
        return np.where(self.missing, -1, np.nan_to_num(self.values)).astype(np.int64)

    @property
    def releasable(self) -> NDArray[np.bool_]:
        """Which levels some record has and enough units hold."""
        occurs = self.rows >= 0
        return occurs if self.admissible is None else occurs & self.admissible

    def take(self, rows: Labels) -> Variable:
        """Return the variable of some records only; levels stay the same."""
        tags = None if self.tags is None else self.tags[rows]
        return replace(self, values=self.values[rows], tags=tags)


def variable_of(
    frame: Frame,
    name: Any,
    setting: Column | None = None,
    codes: Sequence[Any] = (),
    missing_words: Sequence[str] = ("",),
) -> Variable:
    """Read a column as what the plan says, or as what its type says.

    Parameters
    ----------
    frame, name : the table and the column
    setting : what the plan says of the column; None: nothing
    codes : values that mean missing
    missing_words : texts of categories that mean missing, such as NA in a CSV file

    >>> size = variable_of(Frame(pa.table({"size": ["S", None, "L"]})), "size")
    >>> size.kind, size.levels, size.values.tolist()
    ('nominal', ('L', 'S'), [1.0, nan, 0.0])
    """
    setting = setting or Column()
    if not frame.is_numeric(name):
        _check_type(frame, name)
    kind = setting.kind or _kind(frame, name, codes)
    rounded = setting.round in ("nearest", "totals")
    if kind == "number" and rounded and frame.is_integer(name):
        kind = "integer"  # the same coordinates, and whole numbers keep their type
    variable = Variable(name, kind, np.zeros(0), setting, codes=tuple(codes))
    if kind in CATEGORIES:
        return _categories(frame, variable, missing_words)
    if kind == "date":
        return _dates(frame, variable)
    if frame.is_numeric(name):
        values = frame.doubles(name)
        tags = _tags(values, codes)
    else:
        numbers = _numbers_in_text(frame, name, codes)
        if numbers is None:
            raise frame.not_numbers(name)
        values, tags = numbers
    values = values if tags is None else np.where(tags >= 0, np.nan, values)
    check_not_infinite(values, name, "protect")
    if kind == "integer" and (broken := ~np.isnan(values) & (values != np.rint(values))).any():
        raise InputError(
            f"A column of kind integer holds whole numbers; column {shown(name)} has a fraction, the first "
            f"in {first_row(broken)}. Say kind number."
        )
    return replace(variable, values=values, tags=tags)


def column_of(
    frame: Frame,
    plan: Plan,
    name: Any,
    missing_words: Sequence[str] = ("",),
    coded: Mapping[Any, Coded] | None = None,
    in_batches: bool = False,
) -> Variable:
    """Read a column as what a plan says of it, or as what its type says.

    Parameters
    ----------
    frame, name : the table, or a batch of it, and the column
    plan : with settings and codes for missing values, by column
    missing_words : texts of categories that mean missing
    coded : for quantities of which the plan names no codes, those of the file that the table came from
    in_batches : whether only all batches together tell what texts without a kind are: they are categories for
        now
    """
    setting, codes = plan.column(name), plan.missing.codes.get(name, ())
    if in_batches and setting.kind is None and not frame.is_numeric(name):
        # Numbers with codes for missing ones are numbers in every batch.
        is_number = bool(codes) and frame.odd_numbers(name) is not None
        if frame.kind_in_words(name) in ("text", "categories") and not is_number:
            setting = replace(setting, kind="nominal", round="no")
    variable = variable_of(frame, name, setting, codes, missing_words)
    if coded and name in coded and not codes and variable.kind in QUANTITIES:
        return replace(variable, codes=coded[name].codes, tags=coded[name].tags)
    return variable


def _kind(frame: Frame, name: Any, codes: Sequence[Any]) -> str:
    """Infer the kind of a column from its type."""
    if frame.is_numeric(name):
        return "integer" if frame.is_integer(name) else "number"
    described = frame.kind_in_words(name)
    if described == "truth values":
        return "boolean"
    if described == "dates or times":
        return "date"
    if described == "categories":
        return "ordinal" if frame.is_ordered(name) else "nominal"
    if described == "text":
        if frame.odd_numbers(name) is not None:
            if codes and _numbers_in_text(frame, name, codes) is not None:
                return "number"
            raise InputError(
                f"{frame.not_numbers(name)} If it is a category, say so: kind nominal, or ordinal with its "
                "levels; cells that mean missing can be named as codes."
            )
        return "date" if dates_in_text(frame.arrow_column(name)) is not None else "nominal"
    # Python objects that are all dates or truth values, and types that only Arrow knows.
    kind = frame.arrow_column(name).type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return "date"
    if pa.types.is_string_view(kind):
        return "nominal"
    if pa.types.is_boolean(kind):
        return "boolean"
    raise _strange(name, described)


def _check_type(frame: Frame, name: Any) -> None:
    """Refuse a type whose values are neither numbers nor categories nor dates."""
    kind, types = frame.arrow_column(name).type, pa.types
    inner = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_null(inner):
        raise _strange(name, "no value at all")
    is_bytes = (
        types.is_binary(inner)
        or types.is_large_binary(inner)
        or types.is_binary_view(inner)
        or types.is_fixed_size_binary(inner)
    )
    is_extended = isinstance(inner, pa.BaseExtensionType)
    if is_bytes or is_extended or types.is_nested(inner) or types.is_interval(inner):
        raise _strange(name, frame.kind_in_words(name))


def _strange(name: Any, words: str) -> InputError:
    return InputError(
        "Columns to protect hold numbers, categories, truth values or dates; column "
        f"{shown(name)} holds {words}. Leave it out, or turn it into one of these first."
    )


def _tags(values: Floats, codes: Sequence[Any]) -> Labels | None:
    """Return the number of the code that each value is, −1: none; None if no code occurs."""
    tags = np.full(len(values), -1)
    for tag, code in enumerate(codes):
        number = _as_number(code)
        if number is not None:
            tags[values == number] = tag
    return tags if (tags >= 0).any() else None


def _as_number(code: Any) -> float | None:
    if isinstance(code, bool):
        return None
    if isinstance(code, int | float):
        return float(code)
    text = str(code).strip()
    return float(text) if reads_as_number(text) else None


def _numbers_in_text(
    frame: Frame, name: Any, codes: Sequence[Any]
) -> tuple[Floats, Labels | None] | None:
    """Read numbers that stand as text among codes for missing ones, such as "refused"; None: others do."""
    texts = frame.trimmed_texts(name)
    if texts is None:
        return None
    spelled = {str(code).strip(): tag for tag, code in enumerate(codes)}
    values, tags = np.full(len(texts), np.nan), np.full(len(texts), -1)
    for row, text in enumerate(texts):
        if text is None:
            continue
        if text in spelled:
            tags[row] = spelled[text]
        elif reads_as_number(text):
            values[row] = float(text)
        else:
            return None
    by_number = _tags(values, codes)
    if by_number is not None:
        tags = np.where(tags < 0, by_number, tags)
    return values, (tags if (tags >= 0).any() else None)


def _dates(frame: Frame, variable: Variable) -> Variable:
    name, codes = variable.name, variable.codes
    column = frame.arrow_column(name)
    dates = instants(column, codes)
    if dates is None:
        why = ""
        if is_text(column.type):
            row = first_no_date(column, codes)
            if not pc.any(pc.not_equal(pc.utf8_trim_whitespace(column), "")).as_py():
                why = " without a single value"
            elif row is None:
                why = " written in several ways, or with day and month in an order that nobody can know"
            else:
                why = f", in row {row + 1} (the first record is row 1) one that is no date"
        raise InputError(
            "A column of kind date holds dates or times, or texts such as 2024-03-31 all written in one "
            f"way; column {shown(name)} holds {frame.kind_in_words(name)}{why}. Say another kind."
        )
    tags = None if dates.coded is None or (dates.coded < 0).all() else dates.coded
    return replace(
        variable, values=dates.values, tags=tags, origin=dates.origin, format=dates.format
    )


def _categories(frame: Frame, variable: Variable, missing_words: Sequence[str]) -> Variable:
    name, kind = variable.name, variable.kind
    numbers, categories = frame.categories(name, missing_words)
    tags: Labels | None = None
    tag_of = np.full(len(categories) + 1, -1)
    for tag, code in enumerate(variable.codes):
        level = _matching(code, categories)
        if level is not None:
            tag_of[level] = tag
    if (tag_of[numbers] >= 0).any():
        tags = tag_of[numbers]
        numbers = np.where(tags >= 0, -1, numbers)
    occurs = np.bincount(numbers[numbers >= 0], minlength=len(categories)) > 0
    if kind == "ordinal" and frame.is_ordered(name):
        # Levels that do not occur keep their place, but a code for missing values is no level.
        occurs = tag_of[:-1] < 0
    occurring = np.flatnonzero(occurs)
    if kind == "boolean" and len(occurring) > 2:
        third = ~np.isin(numbers, [-1, *dict.fromkeys(numbers[numbers >= 0])][:3])
        raise InputError(
            f"A column of kind boolean has two values; column {shown(name)} has {len(occurring)}, the third "
            f"first in {first_row(third)}. Say nominal."
        )
    rank_of = np.full(len(categories) + 1, -1)
    levels = [categories[level] for level in occurring]
    rank_of[occurring] = np.arange(len(occurring))
    if variable.setting.levels is not None:  # in the order in which they are declared
        levels, rank_of = list(variable.setting.levels), np.full_like(rank_of, -1)
        for rank, declared in enumerate(variable.setting.levels):
            match = _matching(declared, categories)
            if match is not None:
                rank_of[match], levels[rank] = rank, categories[match]
        strange = occurring[rank_of[occurring] < 0]
        if len(strange):
            raise InputError(
                f"Every value of column {shown(name)} must be among its declared levels, "
                f"{listed(variable.setting.levels, limit=12)}; "
                f"{plural(len(strange), 'other occurs', 'others occur')}, the first in "
                f"{first_row(np.isin(numbers, strange))}. "
                "Add them to the levels, or name them as codes for missing."
            )
    elif kind == "ordinal" and not (frame.is_ordered(name) or frame.is_numeric(name)):
        raise no_order(name)
    ranks = rank_of[numbers]
    values = np.where(numbers < 0, np.nan, ranks)
    there = np.flatnonzero(numbers >= 0)[::-1]
    rows = np.full(len(levels), -1)
    rows[ranks[there]] = there  # the first record of each level is written last
    return replace(variable, values=values, levels=tuple(levels), rows=rows, tags=tags)


def no_order(name: Any) -> InputError:
    """Return the error about ``name``, an ordinal column whose levels nobody put in order."""
    return InputError(
        f"An ordinal column needs its order: column {shown(name)} is text. Give its levels from low to "
        f'high, as in kinds={{{shown(name)}: ["low", "middle", "high"]}}, --kind or levels in the plan.'
    )


def _matching(level: Any, categories: Sequence[Any]) -> int | None:
    """Find the value that a level of the plan means: the same value, or the same text or number."""
    text, number = str(level).strip(), _as_number(level)
    for at, value in enumerate(categories):
        if type(value) is type(level) and value == level:
            return at
    for at, value in enumerate(categories):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if str(value).strip() == text or (
            is_number and number is not None and float(value) == number
        ):
            return at
    return None
