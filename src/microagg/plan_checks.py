"""Checks of what stands in a plan: words, numbers, names, and keys that nobody knows."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from microagg.errors import InputError, listed, shown

__all__ = [
    "check_bool",
    "check_keys",
    "check_number",
    "check_table",
    "check_word",
    "column_names",
    "no_column",
    "text_names",
    "unknown",
]

Names = tuple[Hashable, ...]


def column_names(what: str, given: Any) -> Names:
    """Make a tuple of names from one or several; refuse repetitions."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = (given,)
    found = tuple(given)
    seen = set()
    for name in found:
        try:
            again = name in seen
        except TypeError:
            raise InputError(f"{what} takes names of columns; got {shown(name)}.") from None
        if again:
            raise InputError(
                f"Column {shown(name)} is named twice in {what}. Name each column once."
            )
        seen.add(name)
    return found


def text_names(what: str, given: Any) -> list[str]:
    """Names as a file holds them: one text or a list of them."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} takes names of columns, a list of texts; got {shown(given)}.")
    return names


def check_table(what: str, given: Any) -> None:
    """Refuse anything but a table of names and values."""
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is a table of names and values; got {shown(given)}.")


def check_keys(what: str, given: Any, known: Collection[str]) -> None:
    """Refuse keys that are not known, naming the nearest that is."""
    check_table(what, given)
    for name in given:
        if name not in known:
            raise unknown(f"key of {what}", name, known)


def check_word(what: str, word: Any, known: tuple[str, ...]) -> None:
    """Refuse anything but one of some words."""
    if not isinstance(word, str) or word not in known:
        raise InputError(f"{what} is one of {listed(known)}; got {shown(word)}.")


def check_bool(what: str, value: Any) -> None:
    """Refuse anything but true and false."""
    if not isinstance(value, bool):
        raise InputError(f"{what} is true or false; got {shown(value)}.")


def check_number(what: str, value: Any, rule: str, low: float, high: float) -> None:
    """Refuse anything but None or a finite number within limits."""
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and low <= value <= high and math.isfinite(value)):
        raise InputError(f"{what} is {rule}; got {shown(value)}.")


def unknown(what: str, name: Any, known: Collection[str]) -> InputError:
    """Refuse a word that is not known, naming the nearest that is."""
    near = get_close_matches(str(name), sorted(known), 1, 0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}."
    return InputError(f"There is no {what} called {shown(name)}; {hint}")


def no_column(name: Any, names: Collection[Any]) -> InputError:
    """Refuse a column that the table does not have, naming the nearest that it has."""
    near = get_close_matches(str(name), [str(other) for other in names], 1, 0.6)
    hint = f" Did you mean {shown(near[0])}?" if near else ""
    return InputError(
        f"There is no column {shown(name)}; the table has {listed(names, limit=40)}.{hint}"
    )
