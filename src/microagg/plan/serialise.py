"""The plan as text: a TOML file with comments, and the flags of the command."""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microagg.errors import InputError, TableError, shown

__all__ = [
    "PART_FLAGS",
    "flags",
    "join_claims",
    "join_coarsen",
    "join_names",
    "join_pair",
    "read_plan_file",
    "read_toml",
    "read_value",
    "split_claims",
    "split_coarsen",
    "split_names",
    "split_pair",
    "write_toml",
]

_HEADER = """\
# What is protected and how. Edit it, then: microagg protect IN OUT --plan THIS_FILE
# Columns that are named nowhere are left as they are and taken as known to an attacker.
"""


def read_plan_file(path: str | Path) -> str:
    """Read the text of a plan file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TableError(f"A plan is text in UTF-8; {shown(str(path), 300)} is not.") from None
    except OSError as error:
        raise TableError(
            f"Cannot read the plan {shown(str(path), 300)}: {error.strerror}."
        ) from None


def read_toml(text: str) -> dict[str, Any]:
    """Parse a plan file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The plan is not a TOML file: {error}.") from None


def write_toml(data: Mapping[str, Any], notes: Mapping[Any, str], known: Mapping[Any, str]) -> str:
    """Write a plan as :meth:`Plan.as_dict` gives it; notes and what is known become comments."""
    tables = ("block", "columns", "accept", "relation")
    rest = {key: value for key, value in data.items() if key not in tables}
    lines = [_HEADER]
    for key, value in rest.items():
        lines.append(_entry(key, value, {} if key == "analyses" else notes))
    for name, column in data.get("columns", {}).items():
        lines += ["", f"[columns.{_key(name)}]"]
        lines += [_entry(key, value, {}) for key, value in column.items()]
    if "accept" in data:
        lines += [
            "",
            "[accept]",
            *(_entry(key, value, {}) for key, value in data["accept"].items()),
        ]
    for block in data["block"]:
        own = {key: value for key, value in block.items() if key != "require"}
        lines += ["", "[[block]]", *(_entry(key, value, notes) for key, value in own.items())]
        if "require" in block:
            lines.append("[block.require]")
            lines += [_entry(key, value, {}) for key, value in block["require"].items()]
    for relation in data.get("relation", ()):
        lines += ["", "[[relation]]", *(_entry(key, value, {}) for key, value in relation.items())]
    if known:
        lines += ["", "# Left as they are, and taken as known to an attacker:"]
        lines += [f"#   {_comment(name)}: {_comment(note)}" for name, note in known.items()]
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, notes: Mapping[Any, str]) -> str:
    """One setting; a list of columns takes a line for each that has a note."""
    if notes and isinstance(value, list) and any(name in notes for name in value):
        rows = [(f"    {_value(name)},", notes.get(name)) for name in value]
        width = min(max(len(row) for row, _ in rows), 40)
        body = "\n".join(
            row if note is None else f"{row:<{width}}  # {_comment(note)}" for row, note in rows
        )
        return f"{key} = [\n{body}\n]"
    return f"{key} = {_value(value)}"


def _comment(text: Any) -> str:
    """Text that stays on its line, whatever a column is called."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in str(text))


def _key(name: Any) -> str:
    """The name of a setting or column; bare where TOML lets it be."""
    text = _text_name(name)
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _string(text)


def _text_name(name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(
            f"Names of columns in a plan file are text; {shown(name)} is a {type(name).__name__}. Rename "
            "the column."
        )
    return name


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value))  # a float of numpy has another repr
    if isinstance(value, list):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items())
            + " }"
        )
    return _string(_text_name(value))


def _string(text: str) -> str:
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    found = []
    for sign in text:
        code = ord(sign)
        if 0xD800 <= code <= 0xDFFF:
            raise InputError(
                f"A plan file is text in UTF-8, which {shown(text)} is not. Rename it."
            )
        plain = code >= 0x20 and code != 0x7F
        found.append(escaped.get(sign) or (sign if plain else f"\\u{code:04x}"))
    return '"' + "".join(found) + '"'


_SWITCHES = {"per_column", "shuffle", "round"}
_LISTS = {"columns", "drop", "renumber", "known"}
_NAMED = {
    "k",
    "refine",
    "method",
    "aggregate",
    "scale",
    "digits",
    "max_loss",
    "max_linkage",
    "max_agreeing",
    "max_moved",
}
_OPTIONS_WITH_FLAGS = {"effort", "time_limit", "cost"}
# Parts of a plan, and the flag of each of their settings.
PART_FLAGS = {
    "strata": {"columns": "--strata", "small": "--small-strata"},
    "weight": {
        "column": "--weight",
        "release": "--weight-release",
        "grouping": "--weight-grouping",
    },
    "unit": {"column": "--unit", "mode": "--unit-mode", "name": "--unit-name"},
    "missing": {"policy": "--missing", "most": "--missing-most", "codes": "--missing-code"},
    "suppress": {"most": "--suppress", "weighted": "--suppress-weighted"},
}


class _NoFlagError(Exception):
    """A setting that only a plan file can say."""


def flags(settings: Mapping[str, Any]) -> list[str] | None:
    """Put keywords as flags of the command; None where some have no flag and a plan file is needed."""
    try:
        return [word for name, value in settings.items() for word in _flags_of(name, value)]
    except _NoFlagError:
        return None


def _flags_of(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if name in _SWITCHES:
        if value is not True:
            raise _NoFlagError
        return [flag]
    if name in _LISTS:
        return _with_value(flag, join_names(value))
    if name == "confidential":
        return [word for claim in join_claims(value) for word in _with_value(flag, claim)]
    if name in PART_FLAGS:
        return _flags_of_part(name, value)
    if name == "random_state":
        return ["--seed", "fresh" if value is None else str(value)]
    if name == "kinds":
        return [word for column, kind in value.items() for word in _flags_of_column(column, kind)]
    if name == "coarsen":
        said = [(column, join_coarsen(how)) for column, how in value.items()]
        return [w for column, how in said for w in _with_value(flag, join_pair(column, how))]
    if name == "require":
        return [word for rule, given in value.items() for word in _flags_of_rule(rule, given)]
    if name == "analyses":
        if not all(isinstance(one, str) for one in value):
            raise _NoFlagError
        return [word for text in value for word in _with_value("--analysis", text)]
    if name == "relations":
        return [word for text in value for word in _with_value("--relation", text)]
    if name == "bound" and isinstance(value, bool):
        return ["--bound" if value else "--no-bound"]
    if name == "bound":
        return ["--bound-effort", str(value)]
    if name in _NAMED | _OPTIONS_WITH_FLAGS:
        return _with_value(flag, str(value))
    return _with_value("--option", f"{name}={value}")


def _flags_of_part(name: str, value: Any) -> list[str]:
    """Flags of strata, weight, unit and missing, given in short or as a table."""
    named = PART_FLAGS[name]
    table = value if isinstance(value, Mapping) else {next(iter(named)): value}
    words = []
    for key, setting in table.items():
        if key == "columns":
            words += _with_value(named[key], join_names(setting))
        elif key == "column":
            words += _with_value(named[key], _text_name(setting))
        elif key == "codes":
            for column, codes in setting.items():
                words += _with_value(named[key], join_pair(column, _join_values(codes)))
        elif isinstance(setting, bool):
            words.append(named[key])
        else:
            words += _with_value(named[key], str(setting))
    return words


def _flags_of_column(name: Any, described: Any) -> list[str]:
    """Flags of a kind, of levels in order, or of a table of settings, not all of which have one."""
    if isinstance(described, list):
        return _with_value("--kind", join_pair(name, _join_values(described)))
    if not isinstance(described, Mapping):
        return _with_value("--kind", join_pair(name, str(described)))
    rest = dict(described)
    words = []
    if rest.get("kind") == "ordinal" and "levels" in rest:
        words += _flags_of_column(name, rest.pop("levels"))
        del rest["kind"]
    for key in ("kind", "importance", "transform"):
        if key in rest:
            words += _with_value(f"--{key}", join_pair(name, str(rest.pop(key))))
    if rest:
        raise _NoFlagError
    # A column of which nothing is said is said to count as much as any.
    return words or _with_value("--importance", join_pair(name, "1.0"))


def join_coarsen(how: Mapping[str, Any]) -> str:
    """Put a recoding as the value of its flag; a list of edges has slashes.

    >>> join_coarsen({"bands": 5, "top": 80}), join_coarsen({"bands": [0, 18]}), join_coarsen({"bands": [18]})
    ('bands:5,top:80', 'bands:0/18', 'bands:18/')
    """
    told = []
    for name, value in how.items():
        several = value if isinstance(value, list) else [value]
        end = "/" if isinstance(value, list) and len(value) == 1 else ""
        told.append(f"{name}:{'/'.join(map(str, several))}{end}")
    return ",".join(told)


def split_coarsen(word: str) -> tuple[str, dict[str, Any]]:
    """Read the value of the flag for a recoding: a column, and its settings.

    >>> split_coarsen("age=bands:0/18/65")
    ('age', {'bands': [0, 18, 65]})
    """
    example = "age=bands:5,top:80"
    name, told = split_pair("--coarsen", word, example)
    found: dict[str, Any] = {}
    for part in told.split(","):
        key, sign, value = part.strip().partition(":")
        if not sign or key in found:
            raise InputError(
                f"--coarsen takes a column and how it is recoded, each setting once, such as {example}; got "
                f"{shown(word)}."
            )
        values = [read_value(one) for one in value.removesuffix("/").split("/")]
        found[key] = values if "/" in value else values[0]
    return name, found


def _flags_of_rule(rule: str, given: Any) -> list[str]:
    """Flags of a requirement: of each column that it names, or of the whole group."""
    if not isinstance(given, Mapping):
        return ["--require", f"{rule}={given}"]
    words = []
    for column, value in given.items():
        numbers = list(value.values()) if isinstance(value, Mapping) else [value]
        pair = join_pair(column, ",".join(str(number) for number in numbers))
        words += ["--require", f"{rule}:{pair}"]
    return words


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def read_value(word: str) -> str | float:
    """Read a value as a flag gives it: a number, or a text; a number with a leading zero is a code.

    >>> [read_value(word) for word in ("-8", "0.5", "1e3", "007", "low", "nan")]
    [-8, 0.5, 1000.0, '007', 'low', 'nan']
    """
    if not _NUMBER.fullmatch(word):
        return word
    try:
        return int(word)
    except ValueError:
        return float(word)


def _join_values(values: list[Any]) -> str:
    """Values as one argument that reads back as they are; a text that looks like a number does not."""
    for value in values:
        if isinstance(value, bool) or read_value(str(value)) != value:
            raise _NoFlagError
    return join_names([str(value) for value in values])


def join_pair(name: Any, value: str) -> str:
    """Put a column and what is said of it as one argument: COLUMN=VALUE.

    >>> join_pair("age", "number"), join_pair("a=b", "number")
    ('age=number', '"a=b"=number')
    """
    text = _text_name(name)
    if "=" in text or text.startswith('"'):
        doubled = text.replace('"', '""')
        text = f'"{doubled}"'
    return f"{text}={value}"


def split_pair(flag: str, word: str, example: str) -> tuple[str, str]:
    """Split COLUMN=VALUE at the first sign of equality outside of double quotes.

    >>> split_pair("--kind", '"a=b"=number', "a=number")
    ('a=b', 'number')
    """
    quoted = re.fullmatch(r'"((?:[^"]|"")*)"=(.*)', word, re.DOTALL)
    if quoted is not None:
        return quoted[1].replace('""', '"'), quoted[2]
    name, sign, value = word.partition("=")
    if not sign:
        raise InputError(f"{flag} takes a name and a value, such as {example}; got {shown(word)}.")
    return name, value


def _with_value(flag: str, value: str) -> list[str]:
    """A flag and its value; as one word where the value would be taken for a flag itself."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def join_names(names: list[Any]) -> str:
    """Put names as one argument: separated by commas, quoted where they need it."""
    if names == [""]:
        return '""'
    out = io.StringIO()
    # The module csv would leave a name with a line end unquoted and not read it again.
    plain = all(name == str(name).strip() and name.isprintable() for name in names)
    writer = csv.writer(
        out, lineterminator="", quoting=csv.QUOTE_MINIMAL if plain else csv.QUOTE_ALL
    )
    writer.writerow([_text_name(name) for name in names])
    return out.getvalue()


def join_claims(claims: Mapping[Any, str] | list[Any]) -> list[str]:
    """Put confidential columns as arguments: names, or NAME=REASON for each that has a reason.

    >>> join_claims({"diagnosis": "medical file, in no register", "income": ""})
    ['diagnosis=medical file, in no register', 'income']
    """
    if not isinstance(claims, Mapping):
        return [_join_quoted(claims)]
    return [
        _join_quoted([name]) + (f"={reason}" if reason else "") for name, reason in claims.items()
    ]


def _join_quoted(names: list[Any]) -> str:
    """Names as one argument, all in quotes where one has a sign of equality."""
    if not any("=" in _text_name(name) for name in names):
        return join_names(names)
    return ",".join('"' + name.replace('"', '""') + '"' for name in names)


def split_claims(words: list[str]) -> list[str] | dict[str, str]:
    """Read confidential columns: names, or names and a reason after a sign of equality outside of quotes.

    >>> split_claims(["diagnosis,drug=medical file, in no register", "income"])
    {'diagnosis': 'medical file, in no register', 'drug': 'medical file, in no register', 'income': ''}
    >>> split_claims(["diagnosis,drug", '"a=b"'])
    ['diagnosis', 'drug', 'a=b']
    """
    found: list[tuple[str, str]] = []
    for word in words:
        quotes = re.match(r'(?:[^"=]|"(?:[^"]|"")*")*', word, re.DOTALL)
        end = len(word) if quotes is None else quotes.end()
        claimed, reason = (
            (word, "") if word[end : end + 1] != "=" else (word[:end], word[end + 1 :])
        )
        found += [(name, reason) for name in split_names([claimed]) or ()]
    columns = [name for name, _ in found]
    if len(set(columns)) < len(columns) or not any(reason for _, reason in found):
        return columns  # a column that is named twice is refused by the plan
    return dict(found)


def split_names(words: list[str] | None) -> list[str] | None:
    """Split arguments at commas; a name with a comma, quote or line end stands in double quotes.

    >>> split_names(["age,income", '"net, gross"'])
    ['age', 'income', 'net, gross']
    """
    if words is None:
        return None
    try:
        return [
            name
            for word in words
            for line in csv.reader([word], strict=True)
            for name in (line or [""])
        ]
    except csv.Error as error:
        raise InputError(
            f"Names of columns are separated by commas, those with commas, quotes or line ends in "
            f"double quotes; {shown(words)} is not ({error})."
        ) from None
