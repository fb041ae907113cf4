"""The public variant of a report: nothing that could help to reveal a record.

It is read by those who may have the released file and know much else. So it has
no extreme quantiles of the original, no estimate of any group, no group under k and no
share of a single record. What is left are statistics of all records, to three digits, so that they
cannot be solved for a value. The hash of the input is left out too: who knows all records but one
could try values for that one.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

__all__ = ["without_what_reveals"]

_DIGITS = 3
_QUARTILES = ("0.25", "0.5", "0.75")
_EXACT = {"cuts", "created", "sha256"}  # known from the released file, or no number


def without_what_reveals(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model with what could reveal a record taken out."""
    found = dict(model)
    paths = [file["path"] for file in model["files"].values() if file]
    found["files"] = {
        name: file
        and {
            "path": Path(file["path"]).name,
            "sha256": file["sha256"] if name == "output" else None,
        }
        for name, file in model["files"].items()
    }
    found["repeat"] = _without_folders(model["repeat"], paths)
    if model["kind"] == "release":
        found["utility"] = _utility(model["utility"])
        found["risk"] = _risk(model["risk"])
        sizes = [row for row in model["pictures"]["class_sizes"] if row["size"] >= model["k"]]
        found["pictures"] = {**model["pictures"], "class_sizes": sizes}
        if model["alternatives"]:
            found["alternatives"] = _rounded(model["alternatives"])
    return {
        name: _rounded(value) if name in ("utility", "risk", "pictures", "comparison") else value
        for name, value in found.items()
    }


def _without_folders(repeat: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """Name files without the folders they are in, which tell about the machine."""
    words = repeat["words"]
    if words is None:
        return repeat
    import shlex

    plain = [Path(word).name if word in paths or word.endswith(".html") else word for word in words]
    return {**repeat, "words": plain, "command": shlex.join(plain)}


def _utility(utility: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in utility.items() if name != "quantile_deviations"}
    rows = [[row[q] for q in _QUARTILES] for row in utility["quantile_deviations"].values()]
    flat = [value for row in rows for value in row]
    found["quantile_deviation"] = sum(flat) / len(flat)
    found["analyses"] = [
        {name: value for name, value in analysis.items() if name not in ("estimates", "worst")}
        for analysis in utility["analyses"]
    ]
    return found


def _risk(risk: dict[str, Any]) -> dict[str, Any]:
    rules = {
        name: {"percent": rule["percent"], "holds": rule["holds"]}
        for name, rule in risk["dominance"].items()
    }
    secrets = {
        name: {key: column[key] for key in ("distinct_l", "entropy_l", "t")}
        for name, column in risk["diversity"].items()
    }
    return {**risk, "dominance": rules, "diversity": secrets}


def _rounded(value: Any, name: str = "") -> Any:
    """Numbers to three significant digits, however deep."""
    if isinstance(value, dict):
        return {key: _rounded(inner, key) for key, inner in value.items()}
    if isinstance(value, list) and name not in _EXACT:
        return [_rounded(inner, name) for inner in value]
    if isinstance(value, float) and value and math.isfinite(value):
        return float(f"{value:.{_DIGITS}g}")
    return value
