"""Numbers and names as a person reads them; command and report put them the same way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from microagg.errors import shown

_LONGEST_NAME = 60

# Why there is something to compile.
FIRST_RUN = "for the first job of this kind on this machine"

# Said wherever loss and linkage stand side by side.
TRADE_OFF = (
    "At equal k, less loss comes with more linkage, since values nearer to the truth are easier to "
    "match. Decide first which linkage you can accept, then take the least loss within it."
)


def percent(value: float | None) -> str:
    """Write a percentage with three digits but at most two decimals; with one digit if it is tiny.

    >>> [percent(value) for value in (53.14, 5.897, 100.0, 0.0, 0.0004, 3e-14, None)]
    ['53.1 %', '5.90 %', '100 %', '0 %', '0.0004 %', '0 %', '–']
    """
    if value is None:
        return "–"
    value = round(value, 9)  # further digits are of the order in which it was added up
    if value == 0:
        return "0 %"
    if abs(value) >= 9.995:
        return f"{value:.1f} %" if abs(value) < 99.95 else f"{value:,.0f} %"
    return f"{value:.2f} %" if abs(value) >= 0.01 else f"{value:.1g} %"


def share(value: float | None) -> str:
    """Write a share as a percentage.

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
    """Write a number with three digits, thousands separators and a real minus sign.

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
    """Round every double in ``value``, plain data however deep, to significant ``digits``; counts stay.

    >>> few_digits({"a": [0.123456, 7]}, 3)
    {'a': [0.123, 7]}
    """
    if isinstance(value, dict):
        return {key: few_digits(entry, digits) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [few_digits(entry, digits) for entry in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write ``count`` with its noun, ``one`` of them or ``many``, which is by default ``one`` with an s.

    >>> plural(1, "record"), plural(2_000, "record"), plural(3, "household")
    ('1 record', '2,000 records', '3 households')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def with_noun(figure: str, noun: str) -> str:
    """Write a figure that is no count with its noun.

    >>> with_noun("1", "point"), with_noun("0.25", "point")
    ('1 point', '0.25 points')
    """
    return f"{figure} {noun if figure == '1' else noun + 's'}"


def byte_size(size: int) -> str:
    """Write ``size``, a number of bytes.

    >>> byte_size(900), byte_size(2_100_000), byte_size(500_000_000)
    ('900 bytes', '2.1 MB', '500 MB')
    """
    if size < 1000:
        return plural(size, "byte")
    if size < 1_000_000:
        return f"{size / 1e3:.3g} kB"
    return f"{size / 1e6:.3g} MB" if size < 1e9 else f"{size / 1e9:.3g} GB"


def table_size(records: int, columns: int) -> str:
    """Say how large a table with this number of ``records`` and ``columns`` is.

    >>> table_size(2_000, 1)
    '2,000 records, 1 column'
    """
    return f"{plural(records, 'record')}, {plural(columns, 'column')}"


def names(columns: Iterable[Any], limit: int | None = None) -> str:
    """List ``columns`` for a person, up to ``limit``: names as they are if harmless, else quoted and escaped.

    >>> names(["age", "net, gross"]), names("abcd", limit=2)
    ("age, 'net, gross'", 'a, b and 2 more')
    """

    def is_plain(name: Any) -> bool:
        fits = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME
        return fits and name == name.strip() and "," not in name

    every = [name if is_plain(name) else shown(name) for name in columns]
    extra = 0 if limit is None else len(every) - limit
    return ", ".join(every[:limit]) + (f" and {extra} more" if extra > 0 else "")


class UnitWords(NamedTuple):
    """The noun for what k counts; as text, the plural."""

    one: str
    many: str

    def __str__(self) -> str:
        return self.many

    def counted(self, count: int) -> str:
        """Write a number of them: 1 household, 5 households."""
        return plural(count, self.one, self.many)


RECORDS = UnitWords("record", "records")


def unit_words(unit: Any = None, name: str | None = None) -> UnitWords:
    """Return the noun for what k counts: records, or the units that a column tells apart.

    ``unit`` is the column whose distinct values are counted, None for records; ``name`` the noun that the
    plan gives the unit. :meth:`microagg.Plan.words_of_unit` gives the noun for a plan.

    >>> unit_words().many, unit_words("db030", "household").counted(5), unit_words("db030").many
    ('records', '5 households', 'units (db030)')
    """
    if unit is None:
        return RECORDS
    if name is None:
        return UnitWords(f"unit ({names([unit])})", f"units ({names([unit])})")
    return UnitWords(name, _plural_of(name))


_IRREGULAR = {"person": "people", "child": "children", "man": "men", "woman": "women"}


def _plural_of(noun: str) -> str:
    """Return the plural of an English noun; of several words, of the last.

    >>> [_plural_of(noun) for noun in ("family", "business", "day", "sick person")]
    ['families', 'businesses', 'days', 'sick people']
    """
    before, last = noun[: noun.rfind(" ") + 1], noun[noun.rfind(" ") + 1 :]
    if last.lower() in _IRREGULAR:
        return before + _IRREGULAR[last.lower()]
    if last.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    if last.endswith("y") and last[-2:-1].lower() not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def narrowed_down(below: float, k: int, units: UnitWords = RECORDS) -> str:
    """Say that an attacker can narrow down the share ``below`` of the records to fewer than k ``units``.

    >>> narrowed_down(1.0, 5)
    'every record can be narrowed down to fewer than 5'
    >>> narrowed_down(0.169, 5, unit_words("db030", "household"))
    '16.9 % of the records can be narrowed down to fewer than 5 households'
    """
    who = {0.0: "no record", 1.0: "every record"}.get(below, f"{share(below)} of the records")
    return f"{who} can be narrowed down to {fewer_than(k, units)}"


def fewer_than(k: int, units: UnitWords = RECORDS) -> str:
    """Name a number below k of ``units``, which k counts.

    >>> fewer_than(5), fewer_than(5, unit_words("db030", "household"))
    ('fewer than 5', 'fewer than 5 households')
    """
    return f"fewer than {k:,}" + ("" if units == RECORDS else f" {units}")


def spread(least: int, most: int, noun: str = "record") -> str:
    """Name the sizes of groups, from ``least`` to ``most`` of a ``noun``.

    >>> spread(5, 9), spread(8, 8), spread(1, 1)
    ('5 to 9 records', '8 records', '1 record')
    """
    return plural(most, noun) if least == most else f"{least:,} to {plural(most, noun)}"


def visible(text: Any) -> str:
    """Return ``text`` with a mark in the place of control characters, and of half signs that no encoding has.

    >>> visible("a" + chr(27) + "b")
    'a�b'
    """
    return "".join(sign if sign.isprintable() else "�" for sign in str(text))


def lost_words(loss: float) -> str:
    """Say that a column has a ``loss`` of so many percent; above 100 % a percentage tells nothing.

    >>> lost_words(61.04), lost_words(113.0)
    ('61.0 %', "worse than the column's mean for everybody: drop it")
    """
    return percent(loss) if loss < 100.5 else "worse than the column's mean for everybody: drop it"
