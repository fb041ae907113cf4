"""What fields of the page's forms say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microagg.page.desk import Table
from microagg.page.tasks import Opened
from microagg.plan.flag_values import read_value

__all__ = ["drafted_kinds", "number_in", "opened_by", "place_of_mistake"]


def opened_by(path: Path, form: dict[str, str]) -> Opened:
    """A file, read as the form says."""
    delimiter = form.get("delimiter") or None
    return Opened(
        path,
        delimiter="\t" if delimiter in ("\\t", "tab") else delimiter,
        encoding=form.get("encoding") or None,
        decimal=form.get("decimal", "."),
        sheet=form.get("sheet") or None,
    )


def drafted_kinds(table: Table) -> dict[str, Any]:
    """Kinds that the draft names for columns that it does not protect by itself."""
    return {c["name"]: c["kind"] for c in table.columns if c["role"] != "protect" and c["kind"]}


def place_of_mistake(form: dict[str, str]) -> str:
    """Where a mistake is shown: beside the field that it is about."""
    what = form.get("what", "plan")
    if what in ("decide", "found"):
        return "plan"
    places = {
        "role": "column",
        "column": "column",
        "reason": "column",
        "coarsen": "column",
        "block": "block",
    }
    place = places.get(what)
    what = "require" if what == "no_longer_require" else what
    return what if place is None else f"{what}-{form.get(place, '')}"


def number_in(form: dict[str, str], key: str) -> Any:
    """A number of the form; None where nothing is given."""
    text = form.get(key, "").strip()
    return read_value(text) if text else None
