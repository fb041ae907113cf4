"""The plan as text: a TOML file with comments."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microagg.errors import InputError, TableError, shown
from microagg.plan.checks import name_in_file

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
    except RecursionError:
        raise InputError(
            "Lists and tables of a plan are at most four deep; these are deeper. Remove brackets."
        ) from None


def write_toml(data: Mapping[str, Any], notes: Mapping[Any, str], known: Mapping[Any, str]) -> str:
    """Write a plan as :meth:`Plan.as_dict` gives it; notes and what is known become comments."""
    tables = ("block", "columns", "accept", "relation")
    rest = {key: value for key, value in data.items() if key not in tables}
    lines = [_HEADER]
    for key, value in rest.items():
        lines.append(_entry(key, value, {} if key == "analyses" else notes))
    for name, column in data.get("columns", {}).items():
        lines += ["", f"[columns.{_key(name)}]", *_entries(column)]
    if "accept" in data:
        lines += ["", "[accept]", *_entries(data["accept"])]
    for block in data["block"]:
        settings = {key: value for key, value in block.items() if key != "require"}
        lines += ["", "[[block]]", *_entries(settings, notes)]
        if "require" in block:
            lines += ["[block.require]", *_entries(block["require"])]
    for relation in data.get("relation", ()):
        lines += ["", "[[relation]]", *_entries(relation)]
    if known:
        lines += ["", "# Left as they are, and taken as known to an attacker:"]
        lines += [f"#   {_comment(name)}: {_comment(note)}" for name, note in known.items()]
    return "\n".join(lines) + "\n"


def _entries(table: Mapping[str, Any], notes: Mapping[Any, str] | None = None) -> list[str]:
    return [_entry(key, value, notes or {}) for key, value in table.items()]


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
    """Write the name of a setting or column; bare where TOML lets it be."""
    text = name_in_file(name)
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _string(text)


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
    return _string(name_in_file(value))


def _string(text: str) -> str:
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InputError(f"A plan file is text in UTF-8, which {shown(text)} is not. Rename it.")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
