"""Checks of what stands in a plan: words, numbers, names, and keys that nobody knows.

A check gets ``what``, the setting as messages call it, and then what was given for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from microagg.errors import InputError, listed, shown

_RENAMED = {"shuffle": "keep_order"}  # settings of former versions, and what says the same now

Name = Hashable
Names = tuple[Name, ...]
Check = Callable[[str, Any], Any]
"""Returns the value of a setting as the plan holds it, or refuses it; gets its name for the message."""


def column_names(what: str, value: Any) -> Names:
    """Return ``value``, one or several names of columns, as a tuple; ``what`` is the setting in errors."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    columns = tuple(value)
    seen = set()
    for name in columns:
        try:
            again = name in seen
        except TypeError:
            raise InputError(f"{what} takes names of columns; got {shown(name)}.") from None
        if again:
            raise InputError(
                f"Column {shown(name)} is named twice in {what}. Name each column once."
            )
        seen.add(name)
    return columns


def column_name(what: str, value: Any, kind: Any = Hashable) -> Any:
    """Return the name of one column, of this ``kind``; refuse several, and none."""
    if value is None or not isinstance(value, kind):
        raise InputError(f"{what} is the name of one column; got {shown(value)}.")
    return value


def text_names(what: str, value: Any) -> list[str]:
    """Names as a file holds them: one text or a list of them."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} takes names of columns, a list of texts; got {shown(value)}.")
    return names


def name_in_file(name: Any) -> str:
    """Return the name of a column to be written into a file or command; refuse what is no text."""
    if not isinstance(name, str):
        raise InputError(
            f"Names of columns in a plan file are text; {shown(name)} is a {type(name).__name__}. Rename "
            "the column."
        )
    return name


def check_table(what: str, value: Any) -> None:
    """Refuse anything but a table of names and values."""
    if not isinstance(value, Mapping):
        raise InputError(f"{what} is a table of names and values; got {shown(value)}.")


def check_keys(what: str, value: Any, known: Collection[str]) -> None:
    """Refuse keys that are not known, naming the nearest that is."""
    check_table(what, value)
    for name in value:
        if name not in known:
            raise unknown(f"key of {what}", name, known)


def check_word(what: str, word: Any, known: tuple[str, ...]) -> None:
    """Refuse anything but one of the words that are known."""
    if not isinstance(word, str) or word not in known:
        raise InputError(f"{what} is one of {listed(known)}; got {shown(word)}.")


def check_bool(what: str, value: Any) -> bool:
    """Return true or false; refuse all else."""
    if not isinstance(value, bool):
        raise InputError(f"{what} is true or false; got {shown(value)}.")
    return value


def number(
    rule: str, fits: Callable[[float], bool] = lambda _: True
) -> Callable[[str, Any], float]:
    """Return the check of a setting that is a finite number, which it returns as Python's own.

    All else is refused, also true and false.

    Parameters
    ----------
    rule : what the setting must be, for the message
    fits : tells whether a number keeps the rule
    """

    def check(what: str, value: Any) -> float:
        number = _plain_number(value)
        if number is None or not fits(number):
            raise InputError(f"{what} is {rule}; got {shown(value)}.")
        return number

    return check


def as_number(value: Any) -> float | None:
    """Return ``value`` as a float; None if it is no real number that a float can hold, or is yes or no."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _plain_number(value: Any) -> float | None:
    """Any finite real number as an int or float, which all files can hold; None for all else."""
    number = as_number(value)
    if number is None or not math.isfinite(number):
        return None
    return int(value) if isinstance(value, Integral) else number


def distinct_values(
    what: str, values_given: Any, least: int, bools: bool = False
) -> tuple[str | float | bool, ...]:
    """Return texts and numbers (and truth values) that differ from each other; refuse all else."""
    rule = f"a list of at least {least} different {'values' if least > 1 else 'value'}"
    if not isinstance(values_given, list | tuple | np.ndarray):
        raise InputError(f"{what} is {rule}; got {shown(values_given)}.")
    values: dict[str | float | bool, None] = {}
    for entry in values_given:
        value = entry.item() if isinstance(entry, np.generic) else entry
        if not isinstance(value, str) and not (bools and isinstance(value, bool)):
            value = _plain_number(value)
        if value is None:
            kinds = "texts, numbers or truth values" if bools else "texts or numbers"
            raise InputError(f"{what} is {rule}, {kinds}; got {shown(entry)} in it.")
        if value in values:
            raise InputError(f"{what} is {rule}; {shown(entry)} is in it twice. Name it once.")
        values[value] = None
    if len(values) < least:
        raise InputError(f"{what} is {rule}; got {len(values)}.")
    return tuple(values)


def unknown(what: str, name: Any, known: Collection[str]) -> InputError:
    """Refuse a word that is not known, naming the nearest that is."""
    near = get_close_matches(str(name), sorted(known), 1, 0.5)
    near = [_RENAMED[name]] if _RENAMED.get(str(name)) in known else near
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}."
    return InputError(f"There is no {what} called {shown(name)}; {hint}")


def no_column(name: Any, names: Collection[Any]) -> InputError:
    """Refuse column ``name``, which a table with the columns ``names`` does not have; tell the nearest."""
    near = get_close_matches(str(name), [str(name_there) for name_there in names], 1, 0.6)
    hint = f" Did you mean {shown(near[0])}?" if near else ""
    return InputError(
        f"There is no column {shown(name)}; the table has {listed(names, limit=40)}.{hint}"
    )
