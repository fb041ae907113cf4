"""The plan as text: a TOML file with comments, and the flags of the command."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microagg.errors import InputError, TableError, shown

__all__ = ["flags", "read_plan_file", "read_toml", "split_names", "write_toml"]

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
    rest = {key: value for key, value in data.items() if key not in ("block", "columns", "accept")}
    lines = [_HEADER, *(_entry(key, value, notes) for key, value in rest.items())]
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
        lines += ["", "[[block]]", *(_entry(key, value, notes) for key, value in block.items())]
    if known:
        lines += ["", "# Left as they are, and taken as known to an attacker:"]
        lines += [f"#   {_comment(name)}: {_comment(note)}" for name, note in known.items()]
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, notes: Mapping[Any, str]) -> str:
    """One setting; a list of columns takes a line for each that has a note."""
    if isinstance(value, list) and any(name in notes for name in value):
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
    return _value(_text_name(name))


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
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(entry)}" for key, entry in value.items()) + " }"
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
_LISTS = {"columns", "drop", "renumber", "confidential"}
_NAMED = {
    "k",
    "refine",
    "method",
    "aggregate",
    "scale",
    "unit",
    "digits",
    "max_loss",
    "max_linkage",
}
_OPTIONS_WITH_FLAGS = {"effort", "time_limit", "cost"}


def flags(settings: Mapping[str, Any]) -> list[str]:
    """Put keywords as flags of the command."""
    words: list[str] = []
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        if name in _SWITCHES:
            words.append(flag)
        elif name in _LISTS:
            words += _with_value(flag, join_names(value))
        elif name == "unit":
            words += _with_value(flag, _text_name(value))
        elif name == "random_state":
            words += ["--seed", "fresh" if value is None else str(value)]
        elif name == "kinds":
            for column, kind in value.items():
                words += _with_value("--kind", f"{_text_name(column)}={kind}")
        elif name == "bound" and isinstance(value, bool):
            words.append("--bound" if value else "--no-bound")
        elif name == "bound":
            words += ["--bound-effort", str(value)]
        elif name in _NAMED | _OPTIONS_WITH_FLAGS:
            words += _with_value(flag, str(value))
        else:
            words += _with_value("--option", f"{name}={value}")
    return words


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
