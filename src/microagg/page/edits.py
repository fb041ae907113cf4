"""Edits of a plan by the page's forms.

Each edit changes the plan's plain data (:meth:`Plan.as_dict`) and has the plan built of it again: every check
and every sentence about a mistake is the plan's own. Columns are named by their place in the table, so
that no name has to travel through a form and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.block import BLOCK_SETTINGS, Block, Require
from microagg.plan.change_role import decided, give_role
from microagg.plan.column import Column, fits_kind
from microagg.plan.flag_values import LIST, SWITCH, read_value
from microagg.plan.plan import Plan
from microagg.plan.registry import METHODS, find
from microagg.plan.sections import Unit
from microagg.plan.settings_table import Section, Setting, rows_of

Fields = Mapping[str, str]
Data = dict[str, Any]

RULES = {row.name: row for row in rows_of(Require)}
"""Requirements, each with the label of what is asked for."""
UNIT_RELEASES = {"drop": "not at all", "renumber": "as random numbers", "known": "as it is"}
# Settings of a block that only some methods have.
_OPTIONS = {option.name for method in METHODS.values() for option in method.options}


def edited(plan: Plan, fields: Fields, names: Sequence[str], kinds: Mapping[str, Any]) -> Plan:
    """Return the plan with one edit made.

    The field ``what`` names the edit; ``kinds`` are those that the draft takes columns for.
    """
    what = fields.get("what", "")
    if what == "text":  # the whole plan as a file
        changed = type(plan).from_toml_text(fields.get("text", ""))
    elif what == "decide":  # as a price or a caution's cure says it
        changed, form = plan, _FormFields(fields, names, kinds, type(plan))
        for place in form.text("column").split(","):  # a claim may be about several
            name = form.column_at(place)
            changed = decided(changed, name, form.text("decision"), kinds.get(name))
    elif what in _EDITS:
        data = deepcopy(plan.as_dict())
        _EDITS[what](data, _FormFields(fields, names, kinds, type(plan)))
        changed = type(plan).from_dict(data)
    else:
        raise InputError(f"The page has no edit {shown(what)}. Reload it.")
    changed.roles(names)  # names that the table does not have are refused
    return replace(changed, notes=plan.notes)


def place_of_mistake(form: Fields) -> str:
    """Return the key of the place where a mistake is shown: next to the field that it is about."""
    what = form.get("what", "plan")
    if what in ("decide", "found"):
        return "plan"
    if what in ("role", "column", "reason", "coarsen", "block"):
        return f"{what}-{form.get('block' if what == 'block' else 'column', '')}"
    return "require" if what == "no_longer_require" else what


def number_in(form: Fields, key: str) -> Any:
    """Read a number of the form; None where nothing is given."""
    text = form.get(key, "").strip()
    return read_value(text) if text else None


class _FormFields:
    """The fields of a form, read as what they are about."""

    def __init__(
        self, fields: Fields, names: Sequence[str], kinds: Mapping[str, Any], settings: type[Plan]
    ) -> None:
        self._fields, self._names, self.kinds, self.settings = fields, names, kinds, settings

    def text(self, key: str) -> str:
        return self._fields.get(key, "").strip()

    def put(self, table: Data, row: Setting) -> None:
        """Set what is given; what is not goes back to its default."""
        text = self.text(row.name)
        table.pop(row.key, None)
        if row.form is SWITCH and text == "yes":
            table[row.key] = True
        elif text and row.form is not SWITCH:
            table[row.key] = text if row.choices else row.typed.read(text)

    def put_all(self, table: Data, section: type[Section]) -> None:
        """Set all settings of a section that the page has a field for."""
        for row in rows_of(section):
            if row.label:
                self.put(table, row)

    def column(self, key: str = "column") -> str:
        return self.column_at(self.text(key))

    def column_at(self, place: str) -> str:
        if not place.isdigit() or int(place) >= len(self._names):
            raise InputError(f"The table has no column number {shown(place)}. Reload the page.")
        return self._names[int(place)]

    def block(self, data: Data) -> Data:
        place = self.text("block")
        blocks = data["block"]
        if not place.isdigit() or int(place) >= len(blocks):
            raise InputError(f"The plan has no block number {shown(place)}. Reload the page.")
        found: Data = blocks[int(place)]
        return found


def _role(data: Data, form: _FormFields) -> None:
    # A column that does not look like a quantity is protected by the kind that the draft names.
    give_role(data, form.column(), form.text("role"), form.kinds.get(form.column()))


def _column(data: Data, form: _FormFields) -> None:
    """Set how a protected column is read, recoded, compared and released."""
    name, kind = form.column(), form.text("kind") or None
    columns = data.setdefault("columns", {})
    before = columns.pop(name, {})
    # What the page has no field for stays, unless the column is of another kind.
    column = {key: before[key] for key in ("parents",) if key in before and before["kind"] == kind}
    for row in rows_of(Column):
        fits = not row.fits or kind in row.fits
        if row.label and fits and fits_kind(row, form.text(row.name), kind):
            form.put(column, row)
    if column:
        columns[name] = column
    codes = LIST.read(form.text("codes"))
    missing = data.setdefault("missing", {})
    every = {**missing.pop("codes", {}), name: codes}
    if any(every.values()):
        missing["codes"] = {key: value for key, value in every.items() if value}
    if not missing:
        del data["missing"]


def _coarsen(data: Data, form: _FormFields) -> None:
    """Set how a stratum, or a column left as it is, is recoded."""
    columns = data.setdefault("columns", {})
    column: Data = {}
    form.put(column, next(row for row in rows_of(Column) if row.name == "coarsen"))
    columns.pop(form.column(), None)
    if column:
        columns[form.column()] = column


def _block(data: Data, form: _FormFields) -> None:
    block = form.block(data)
    _choose(block, form.text("method"))
    form.put_all(block, Block)
    if "effort" in {option.name for option in find(block["method"]).options}:
        block.pop("effort", None)
        if form.text("effort"):
            block["effort"] = form.text("effort")


def _choose(block: Data, method: str) -> None:
    """Take another method; settings that it does not have fall away."""
    has = {option.name for option in find(method).options}
    for name in _OPTIONS - has:
        block.pop(name, None)
    block["method"] = method


def _k(data: Data, form: _FormFields) -> None:
    """Set one k, and method if there is one, for all blocks: what a choice of the map says."""
    for block in data["block"]:
        form.put(block, BLOCK_SETTINGS["k"])
        if form.text("method"):
            _choose(block, form.text("method"))


def _require(data: Data, form: _FormFields) -> None:
    rule, block = form.text("rule"), form.block(data)
    require = block.setdefault("require", {})
    if rule not in RULES:
        raise InputError(f"There is no requirement {shown(rule)}. Reload the page.")
    values = LIST.read(form.text("value"))
    if not values:
        raise InputError(f"{rule} asks for {RULES[rule].label}; nothing is given. Fill it in.")
    value = values[0] if len(values) == 1 else values
    if _is_by_column(rule):
        require.setdefault(rule, {})[form.column()] = value
    else:
        require[rule] = value


def _is_by_column(rule: str) -> bool:
    """Return whether a requirement is about a column, and not about the whole group."""
    return rule in RULES and RULES[rule].default == {}


def _no_longer_require(data: Data, form: _FormFields) -> None:
    rule, block = form.text("rule"), form.block(data)
    require = block.get("require", {})
    if _is_by_column(rule):
        require.get(rule, {}).pop(form.column(), None)
    if not _is_by_column(rule) or not require.get(rule):
        require.pop(rule, None)
    if not require:
        block.pop("require", None)


def _unit(data: Data, form: _FormFields) -> None:
    """Set how units are grouped and called, and what becomes of their column in the file."""
    if "unit" not in data:
        raise InputError("No column is the unit. Give one the role unit.")
    unit, release = data["unit"], form.text("release") or "drop"
    form.put_all(unit, Unit)
    if release not in UNIT_RELEASES:
        raise InputError(f"A unit is released as one of {', '.join(UNIT_RELEASES)}.")
    for role in UNIT_RELEASES:
        data[role] = [name for name in data.get(role, []) if name != unit["column"]]
    data[release].append(unit["column"])


def _reason(data: Data, form: _FormFields) -> None:
    """Set the reason why no attacker knows a confidential column."""
    claims = data.get("confidential", [])
    if form.column() not in claims:
        raise InputError(
            f"A reason is given for a confidential column; {shown(form.column())} is not one. Make it one."
        )
    reasons = claims if isinstance(claims, dict) else dict.fromkeys(claims, "")
    data["confidential"] = {**reasons, form.column(): form.text("reason")}


def _whole(data: Data, form: _FormFields) -> None:
    """Set what the plan says about the whole release."""
    listed = [one for one in data.get("analyses", ()) if not isinstance(one, str)]
    form.put_all(data, form.settings)
    if listed:  # analyses that are no text, which the page does not show
        data["analyses"] = [*data.get("analyses", ()), *listed]


def _section(key: str, section: type[Section]) -> Callable[[Data, _FormFields], None]:
    """Return the edit that sets a section."""

    def edit(data: Data, form: _FormFields) -> None:
        form.put_all(data.setdefault(key, {}), section)

    return edit


_EDITS: dict[str, Callable[[Data, _FormFields], None]] = {
    **{
        row.key: _section(row.key, row.section)
        for row in rows_of(Plan)
        if row.section not in (None, Column, Block)
    },
    "role": _role,
    "column": _column,
    "coarsen": _coarsen,
    "block": _block,
    "k": _k,
    "require": _require,
    "no_longer_require": _no_longer_require,
    "reason": _reason,
    "unit": _unit,
    "whole": _whole,
}
