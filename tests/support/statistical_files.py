"""Everything that pyreadstat tells about a file, read without any code of microagg."""

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


def differences(one: Path, other: Path, released: bool = False) -> set[Any]:
    """Columns whose values differ, and (name of the fact, column) for facts that do.

    With ``released``, the second file may lack what a release does not need: labels and notes of the file,
    and labels and missing codes that none of its records has.
    """
    found: set[Any] = set()
    for user_missing in (True, False):
        (values, facts), (others, other_facts) = (
            everything(path, user_missing) for path in (one, other)
        )
        assert list(values) == list(others)
        found |= {name for name in values if values[name] != others[name]}
        if released:
            facts, other_facts = _needed(facts, everything(other)[0]), _needed(other_facts, {})
        for fact, told in facts.items():
            if told == other_facts[fact]:
                continue
            if isinstance(told, dict) and set(told) == set(other_facts[fact]):
                found |= {(fact, n) for n in told if told[n] != other_facts[fact][n]}
            else:
                found.add((fact, ""))
    return found


def _needed(facts: dict[str, Any], values: dict[str, list[Any]]) -> dict[str, Any]:
    """What a release keeps: of labels and missing codes those of these values; {}: keep them all."""
    kept = dict(facts)
    # Sets of labels are told by column too, and pyreadstat makes up a name for a table of SAS.
    for of_file in ("value_labels", "variable_to_label", "table_name"):
        del kept[of_file]
    if not values:
        return kept
    kept |= {"file_label": None, "notes": []}
    labels = {
        name: {v: label for v, label in own.items() if repr(v) in _spelled(values[name])}
        for name, own in facts["variable_value_labels"].items()
    }
    missing = {
        name: [one for one in own if _occurs(one, values[name])]
        for name, own in facts["missing_ranges"].items()
    }
    kept["variable_value_labels"] = {name: own for name, own in labels.items() if own}
    kept["missing_ranges"] = {name: own for name, own in missing.items() if own}
    return kept


def _spelled(values: list[str]) -> set[str]:
    """Values as text, whole numbers with and without a point."""
    return {*values, *(v.removesuffix(".0") for v in values), *(f"{v}.0" for v in values)}


def _occurs(missing: Any, values: list[str]) -> bool:
    low, high = (missing["lo"], missing["hi"]) if isinstance(missing, dict) else (missing, missing)
    if isinstance(low, str):
        return repr(low) in values
    numbers = [float(v) for v in values if v not in ("nan", "None") and not v.startswith("'")]
    return any(low <= number <= high for number in numbers)
