"""Everything that pyreadstat tells about a file, read without any code of microagg."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from pyreadstat._readstat_parser import parser_entry_point

PARSERS = {".sav": "sav/zsav", ".zsav": "sav/zsav", ".dta": "dta", ".xpt": "xport"}
# When it was written is not what it holds; sets of value labels of SPSS have no names of their own.
_NOT_CONTENT = ("creation_time", "modification_time")


def everything(
    path: Path, user_missing: bool = True
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Values as text, so that NaN equals NaN, and all metadata."""
    data, meta = parser_entry_point(
        str(path),
        PARSERS[path.suffix],
        user_missing=user_missing,
        disable_datetime_conversion=True,
        output_format="dict",
    )
    values = {name: [repr(value) for value in column] for name, column in data.items()}
    facts = {
        field.name: getattr(meta, field.name)
        for field in dataclasses.fields(meta)
        if field.name not in _NOT_CONTENT
    }
    return values, facts


def differences(one: Path, other: Path) -> set[str]:
    """Columns whose values differ, and (name of the fact, column) for facts that do."""
    found: set[Any] = set()
    for user_missing in (True, False):
        (values, facts), (others, other_facts) = (
            everything(path, user_missing) for path in (one, other)
        )
        assert list(values) == list(others)
        found |= {name for name in values if values[name] != others[name]}
        for fact, told in facts.items():
            if told == other_facts[fact]:
                continue
            if isinstance(told, dict) and set(told) == set(other_facts[fact]):
                found |= {(fact, n) for n in told if told[n] != other_facts[fact][n]}
            else:
                found.add((fact, ""))
    return found
