"""How values of settings are written: as words of the command, in a plan file, in fields of the page."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from microagg.errors import InputError, shown
from microagg.plan.checks import (
    Check,
    check_bool,
    column_name,
    column_names,
    name_in_file,
    text_names,
)

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def read_value(word: str) -> str | float:
    """Read ``word``, a value as a flag gives it: a number, or a text; one with a leading zero is a code.

    >>> [read_value(word) for word in ("-8", "0.5", "1e3", "007", "low", "nan")]
    [-8, 0.5, 1000.0, '007', 'low', 'nan']
    """
    if not _NUMBER.fullmatch(word):
        return word
    try:
        return int(word)
    except ValueError:
        return float(word)


def join_names(names: list[Any]) -> str:
    """Put ``names`` of columns as one argument: separated by commas, quoted where they need it."""
    written = []
    for name in map(name_in_file, names):
        is_plain = name == name.strip() and name.isprintable() and not {",", '"'} & set(name)
        written.append(name if name and is_plain else '"' + name.replace('"', '""') + '"')
    return ",".join(written)


def split_names(words: list[str] | None) -> list[str] | None:
    """Split ``words`` at commas; a name with a comma, quote or line end stands in double quotes.

    >>> split_names(["age,income", '"net, gross"'])
    ['age', 'income', 'net, gross']
    """
    if words is None:
        return None
    try:
        lines = [line for word in words for line in csv.reader([word], strict=True)]
        return [name for line in lines for name in (line or [""])]
    except csv.Error as error:
        raise InputError(
            f"Names of columns are separated by commas, those with commas, quotes or line ends in "
            f"double quotes; {shown(words)} is not ({error})."
        ) from None


def _split_values(word: str) -> list[Any]:
    return [read_value(value) for value in split_names([word]) or ()]


def split_pair(flag: str, word: str, example: str) -> tuple[str, str]:
    """Split ``word``, COLUMN=VALUE, at the first sign of equality outside of double quotes.

    The message about any other word names the ``flag`` and shows an ``example``.
    """
    quoted = re.fullmatch(r'"((?:[^"]|"")*)"=(.*)', word, re.DOTALL)
    if quoted is not None:
        return quoted[1].replace('""', '"'), quoted[2]
    name, sign, value = word.partition("=")
    if not sign:
        raise InputError(f"{flag} takes a name and a value, such as {example}; got {shown(word)}.")
    return name, value


def join_coarsen(how: Mapping[str, Any]) -> str:
    """Put a recoding as the value of its flag; a list of edges has slashes.

    >>> join_coarsen({"bands": 5, "top": 80}), join_coarsen({"bands": [0, 18]}), join_coarsen({"bands": [18]})
    ('bands:5,top:80', 'bands:0/18', 'bands:18/')
    """
    written = []
    for name, value in how.items():
        edges = [*value, *[""] * (len(value) == 1)] if isinstance(value, list) else [value]
        written.append(f"{name}:{'/'.join(map(str, edges))}")
    return ",".join(written)


_EXAMPLE = "age=bands:5,top:80"


def split_coarsen(text: str) -> dict[str, Any]:
    """Read a recoding, as :func:`join_coarsen` writes it."""
    recoding: dict[str, Any] = {}
    for setting in text.split(","):
        key, sign, value = setting.strip().partition(":")
        if not sign or key in recoding:
            raise InputError(
                f"--coarsen takes a column and how it is recoded, each setting once, such as {_EXAMPLE}; "
                f"got {shown(text)}."
            )
        values = [read_value(number) for number in value.removesuffix("/").split("/")]
        recoding[key] = values if "/" in value else values[0]
    return recoding


def _read_claims(_: str, words: list[str]) -> list[str] | dict[str, str]:
    """Read confidential columns: names, or names and a reason after a sign of equality outside of quotes."""
    claims: list[tuple[str, str]] = []
    for word in words:
        quotes = re.match(r'(?:[^"=]|"(?:[^"]|"")*")*', word, re.DOTALL)
        end = len(word) if quotes is None else quotes.end()
        claimed, reason = word[:end], word[end + 1 :]
        if word[end : end + 1] != "=":
            claimed, reason = word, ""
        claims += [(name, reason) for name in split_names([claimed]) or ()]
    columns = [name for name, _ in claims]
    if len(set(columns)) < len(columns) or not any(reason for _, reason in claims):
        return columns  # a column that is named twice is refused by the plan
    return dict(claims)


def _read_rules(flag: str, words: list[str]) -> dict[str, Any]:
    """Read rules, each of a column (distinct:diagnosis=3) or of the whole group (population=100)."""
    rules: dict[str, Any] = {}
    for word in words:
        rule, sign, rest = word.partition(":")
        table: Any = rules
        if sign and "=" not in rule:
            name, value = split_pair(flag, rest, "distinct:diagnosis=3")
            table = rules.setdefault(rule, {})
        else:
            name, value = split_pair(flag, word, "distinct:diagnosis=3 or population=100")
            rule = name
        if not isinstance(table, dict) or name in table:
            raise InputError(
                f"Each requirement of a column is given once; {flag} gives {shown(rule)} twice. "
                "Leave one out."
            )
        numbers = [read_value(number) for number in value.split(",")]
        table[name] = numbers[0] if len(numbers) == 1 else numbers
    return rules


def _whole_number_or(word: str) -> Callable[[str, str], int | str]:
    """Return the reader of a flag that takes a whole number or one word."""

    def read(flag: str, text: str) -> int | str:
        try:
            return word if text == word else int(text)
        except ValueError:
            raise InputError(
                f"{flag} takes a whole number, or {word}; got {shown(text)}."
            ) from None

    return read


def split_lines(text: str) -> list[str]:
    """Return the lines of ``text`` that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


class Form(NamedTuple):
    """How the values of some settings are written, and checked where a setting has no check of its own."""

    type: Any = str  # what the command line gives
    metavar: str | None = None  # what stands for the value in the help; None: the type
    read: Callable[[str, Any], Any] = lambda _, value: value
    """Makes the value of the flag, which is named, from what the command line gives."""
    check: Check | None = None
    """Returns a value as the plan holds it, or refuses it; gets the setting's name for its message."""
    from_file: Check | None = None
    """Makes the value from what a file holds, where that is not the value itself or its section."""
    to_file: Callable[[Any], Any] = lambda value: value  # makes what a file holds from plain data
    from_field: Callable[[str], Any] = read_value
    """Makes what a file would hold from the text in a field of the page."""
    to_field: Callable[[Any], str] = str
    is_long: bool = False  # whether the field has several lines


def _by_column(
    metavar: str, example: str, read: Callable[[str], Any], may_repeat: bool = False
) -> Form:
    """Return the form of a flag that says something of single columns: COLUMN=VALUE."""

    def read_all(flag: str, words: list[str]) -> dict[str, Any]:
        by_column: dict[str, Any] = {}
        for word in words:
            name, text = split_pair(flag, word, example)
            value = read(text)
            if name in by_column and not may_repeat:
                raise InputError(
                    f"{flag} is given twice for column {shown(name)}. Give all of it once, as in {example}."
                )
            by_column[name] = by_column[name] + value if name in by_column else value
        return by_column

    return Form(list[str], metavar, read_all)


WORD, COUNT, NUMBER, SHARE = Form(), Form(int), Form(float), Form(float, "SHARE")
SWITCH = Form(bool, "", check=check_bool)
FILE = Form(Path)
NAME = Form(check=column_name, from_file=lambda what, value: column_name(what, value, str))
NAMES = Form(
    list[str],
    "COLUMNS",
    lambda _, words: split_names(words),
    check=column_names,
    from_file=text_names,
)
FORM_OF_TYPE = {
    "bool": SWITCH,
    "int": COUNT,
    "float": NUMBER,
    "Path": FILE,
    "Name": NAME,
    "Names": NAMES,
}
"""How a value is written, by the type of its setting; of other types as a word."""
CLAIMS = NAMES._replace(
    read=_read_claims,
    from_file=lambda what, given: given if isinstance(given, Mapping) else text_names(what, given),
)
SETS_OF_NAMES = Form(list[str], "COLUMNS", lambda _, words: [split_names([word]) for word in words])
TEXTS = Form(list[str], "TEXT", from_field=split_lines, to_field="\n".join, is_long=True)
RULES = Form(list[str], "RULE=NUMBER", _read_rules)
LIST = Form(
    from_field=lambda text: [
        read_value(name.strip()) for name in split_names(split_lines(text)) or () if name.strip()
    ],
    to_field=lambda values: join_names([str(value) for value in values]),
)
FRESH = "fresh"  # a seed of None, for which TOML and flags have no word
SEED = Form(read=_whole_number_or(FRESH), to_file=lambda seed: FRESH if seed is None else seed)
DIGITS = Form(read=_whole_number_or("exact"))
CODES = _by_column("COLUMN=CODES", "income=-8", _split_values, may_repeat=True)
KIND = _by_column(
    "COLUMN=KIND", "sector=nominal", lambda text: _split_values(text) if "," in text else text
)
NUMBER_BY_COLUMN = _by_column("COLUMN=VALUE", "income=2", read_value)
WORD_BY_COLUMN = _by_column("COLUMN=HOW", "income=log", str)
COARSEN = _by_column("COLUMN=HOW", _EXAMPLE, split_coarsen)._replace(
    from_field=lambda text: split_coarsen(text.replace(" ", "")), to_field=join_coarsen
)
