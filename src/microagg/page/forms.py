"""What fields of the page's forms say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from microagg.page.desk import OpenTable
from microagg.page.tasks import Opened
from microagg.plan.column import fits_kind
from microagg.plan.flag_values import SWITCH, read_value
from microagg.plan.settings_table import Section, Setting, plain, rows_of


def opened_by(path: Path, form: dict[str, str]) -> Opened:
    """Return how the form says to read a file."""
    return Opened(
        path,
        delimiter=form.get("delimiter") or None,
        encoding=form.get("encoding") or None,
        decimal=form.get("decimal", "."),
        sheet=form.get("sheet") or None,
    )


def drafted_kinds(table: OpenTable) -> dict[str, Any]:
    """Kinds that the draft names for columns that it does not protect by itself."""
    return {c["name"]: c["kind"] for c in table.columns if c["role"] != "protect" and c["kind"]}


def place_of_mistake(form: dict[str, str]) -> str:
    """Return the key of the place where a mistake is shown: next to the field that it is about."""
    what = form.get("what", "plan")
    if what in ("decide", "found"):
        return "plan"
    if what in ("role", "column", "reason", "coarsen", "block"):
        return f"{what}-{form.get('block' if what == 'block' else 'column', '')}"
    return "require" if what == "no_longer_require" else what


class Field(NamedTuple):
    """A field of the page for one setting, as the templates show it."""

    name: str
    id: str
    label: str
    hint: str
    placeholder: str
    value: str
    choices: list[tuple[str, str]]
    is_switch: bool
    is_long: bool
    is_number: bool


def fields_of(section: Section, place: int | str = "") -> dict[str, Field]:
    """Return the fields of a section's settings by name; those of a column are the ones that fit its kind.

    ``place`` is the number of the column or block.
    """
    kind = getattr(section, "kind", None)
    return {
        row.name: _field(row, plain(row.of(section)), f"-{place}" if place != "" else "", kind)
        for row in rows_of(type(section))
        if row.label and (not row.fits or kind in row.fits)
    }


def _field(row: Setting, value: Any, end: str, kind: Any) -> Field:
    choices = [(word, words) for word, words in row.choices.items() if fits_kind(row, word, kind)]
    if choices and row.placeholder:
        choices.insert(0, ("", row.placeholder))
    is_default = value in (None, [], {}, False) or value == row.default
    typed = "" if value is None and row.default is None else row.typed.write(value)
    return Field(
        name=row.name,
        id=(row.argument or row.name).replace("_", "-") + end,
        label=row.label,
        hint=row.hint,
        placeholder=row.placeholder,
        value="" if is_default and row.placeholder else str(value) if choices else typed,
        choices=choices,
        is_switch=row.form is SWITCH,
        is_long=row.typed.is_long,
        is_number=row.form.type in (int, float),
    )


def number_in(form: dict[str, str], key: str) -> Any:
    """Read a number of the form; None where nothing is given."""
    text = form.get(key, "").strip()
    return read_value(text) if text else None
