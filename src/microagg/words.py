"""Numbers and names as a person reads them; command and report put them the same way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from microagg.errors import shown

__all__ = [
    "FIRST_RUN",
    "TRADE_OFF",
    "among_fewer",
    "few_digits",
    "names",
    "number",
    "percent",
    "plural",
    "share",
    "unit_words",
    "visible",
]

_LONGEST_NAME = 60

# Why there is something to compile.
FIRST_RUN = "for the first job of this kind on this machine"

# Said wherever loss and linkage stand side by side.
TRADE_OFF = (
    "At equal k, less loss comes with more linkage, since values nearer to the truth are easier to "
    "match: decide first which linkage you can accept, then take the least loss within it."
)


def percent(value: float | None) -> str:
    """A percentage with three digits but at most two decimals, or one digit of what would show as nothing.

    >>> [percent(value) for value in (53.14, 5.897, 100.0, 0.0, 0.0004, None)]
    ['53.1 %', '5.90 %', '100 %', '0 %', '0.0004 %', '–']
    """
    if value is None:
        return "–"
    if value == 0:
        return "0 %"
    if abs(value) >= 9.995:
        return f"{value:.1f} %" if abs(value) < 99.95 else f"{value:,.0f} %"
    return f"{value:.2f} %" if abs(value) >= 0.01 else f"{value:.1g} %"


def share(value: float | None) -> str:
    """A share as a percentage.

    >>> [share(value) for value in (0.1694, 1.0, 1e-6, 0.9999, 0.0)]
    ['16.9 %', '100 %', '0.0001 %', '99.9 %', '0 %']
    """
    if value is None:
        return "–"
    if value >= 1:
        return "100 %"
    if value > 0.999:
        return "99.9 %"  # not all of them
    if value >= 0.001:
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1g} %"


def number(value: float | int | None) -> str:
    """A number with three digits, thousands apart; a minus sign that is one.

    >>> [number(value) for value in (1234567, 0.01234, -0.5, 1e-17, 98765.4, 1e20)]
    ['1,234,567', '0.0123', '−0.5', '0', '98,800', '1e+20']
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1e-12:
        return "0"
    short = f"{value:.3g}"
    if 1000 <= abs(value) < 1e15:
        short = f"{float(short):,.0f}"
    return short.replace("-", "−")


def few_digits(value: Any, digits: int) -> Any:
    """Round every double in plain data, however deep, to significant digits; counts stay.

    >>> few_digits({"a": [0.123456, 7]}, 3)
    {'a': [0.123, 7]}
    """
    if isinstance(value, dict):
        return {key: few_digits(entry, digits) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [few_digits(entry, digits) for entry in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "record"), plural(2_000, "record"), plural(3, "household")
    ('1 record', '2,000 records', '3 households')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def names(columns: Iterable[Any], limit: int | None = None) -> str:
    """List column names for a person: as they are if harmless, else quoted and escaped.

    >>> names(["age", "net, gross"]), names("abcd", limit=2)
    ("age, 'net, gross'", 'a, b and 2 more')
    """
    every = [name if _is_plain(name) else shown(name) for name in columns]
    extra = 0 if limit is None else len(every) - limit
    return ", ".join(every[:limit]) + (f" and {extra} more" if extra > 0 else "")


def unit_words(unit: Any = None) -> str:
    """What k counts: records, or the different values of a column.

    >>> unit_words(), unit_words("household")
    ('records', 'different values of household')
    """
    return "records" if unit is None else f"different values of {names([unit])}"


def among_fewer(k: int, unit: Any = None) -> str:
    """Say among how few a record is; by the column whose values k counts, if there is one.

    >>> among_fewer(5)
    'among fewer than 5 that look alike'
    >>> among_fewer(5, "household")
    'among those of fewer than 5 different values of household that look alike'
    """
    if unit is None:
        return f"among fewer than {k:,} that look alike"
    return f"among those of fewer than {k:,} {unit_words(unit)} that look alike"


def _is_plain(name: Any) -> bool:
    return (
        isinstance(name, str)
        and name.isprintable()
        and 0 < len(name) <= _LONGEST_NAME
        and name == name.strip()
        and "," not in name
    )


def visible(text: Any) -> str:
    """Show control characters, and half signs that no encoding has, as what they are not.

    >>> visible("a" + chr(27) + "b")
    'a�b'
    """
    return "".join(sign if sign.isprintable() else "�" for sign in str(text))
