"""Edits of a plan by the page's forms.

Each edit changes the plan's plain data (:meth:`Plan.as_dict`) and has the plan built of it again: every check
and every sentence about a mistake is the plan's own. Columns are named by their place in the table, so
that no name has to travel through a form and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.block import BLOCK_SETTINGS, Block, Require
from microagg.plan.change_role import decided, give_role
from microagg.plan.column import Column, fits_kind
from microagg.plan.forms import LIST, read_value
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

    Parameters
    ----------
    plan : stays as it is
    fields : of the form; ``what`` names the edit, ``column`` the place of a column, ``block`` that of a block
    names : of the table's columns
    kinds : those that the draft takes columns for
    """
    what = fields.get("what", "")
    if what == "text":  # the whole plan as a file
        changed = type(plan).from_toml_text(fields.get("text", ""))
    elif what == "decide":  # as a price or a caution's cure says it
        changed, edit = plan, _Edit({}, fields, names, kinds)
        for place in edit.text("column").split(","):  # a claim may be about several
            name = edit.column(place)
            changed = decided(changed, name, edit.text("decision"), kinds.get(name))
    else:
        edit = _Edit(deepcopy(plan.as_dict()), fields, names, kinds)
        if what == "whole":
            edit.whole(type(plan))
        elif what in _SECTIONS:
            edit.put_all(edit.data.setdefault(what, {}), _SECTIONS[what])
        elif what in _EDITS:
            _EDITS[what](edit)
        else:
            raise InputError(f"The page has no edit {shown(what)}. Reload it.")
        changed = type(plan).from_dict(edit.data)
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


class _Edit:
    """The plain data of a plan, and the fields of a form that changes them."""

    def __init__(
        self, data: Data, fields: Fields, names: Sequence[str], kinds: Mapping[str, Any]
    ) -> None:
        self.data, self._fields, self._names, self._kinds = data, fields, names, kinds

    def text(self, key: str) -> str:
        return self._fields.get(key, "").strip()

    def column(self, place: str | None = None) -> str:
        place = self.text("column") if place is None else place
        if not place.isdigit() or int(place) >= len(self._names):
            raise InputError(f"The table has no column number {shown(place)}. Reload the page.")
        return self._names[int(place)]

    def _block(self) -> Data:
        place, blocks = self.text("block"), self.data["block"]
        if not place.isdigit() or int(place) >= len(blocks):
            raise InputError(f"The plan has no block number {shown(place)}. Reload the page.")
        block: Data = blocks[int(place)]
        return block

    def _put(self, table: Data, row: Setting) -> None:
        """Set what is given; what is not goes back to its default."""
        text = self.text(row.name)
        table.pop(row.key, None)
        if row.is_switch and text == "yes":
            table[row.key] = True
        elif text and not row.is_switch:
            table[row.key] = text if row.choices else row.form.from_field(text)

    def put_all(self, table: Data, section: type[Section]) -> None:
        """Set all settings of a section that the page has a field for."""
        for row in rows_of(section):
            if row.label:
                self._put(table, row)

    def role(self) -> None:
        """Give a column a role; one to protect gets the kind that the draft names."""
        name = self.column()
        give_role(self.data, name, self.text("role"), self._kinds.get(name))

    def describe(self) -> None:
        """Set how a protected column is read, recoded, compared and released."""
        name, kind = self.column(), self.text("kind") or None
        columns = self.data.setdefault("columns", {})
        before = columns.pop(name, {})
        # What the page has no field for stays, unless the column is of another kind.
        column = {
            key: before[key] for key in ("parents",) if key in before and before["kind"] == kind
        }
        for row in rows_of(Column):
            fits = not row.fits or kind in row.fits
            if row.label and fits and fits_kind(row, self.text(row.name), kind):
                self._put(column, row)
        if column:
            columns[name] = column
        missing = self.data.setdefault("missing", {})
        codes = {**missing.pop("codes", {}), name: LIST.from_field(self.text("codes"))}
        if any(codes.values()):
            missing["codes"] = {key: value for key, value in codes.items() if value}
        if not missing:
            del self.data["missing"]

    def coarsen(self) -> None:
        """Set how a stratum, or a column left as it is, is recoded."""
        columns, column = self.data.setdefault("columns", {}), dict[str, Any]()
        self._put(column, next(row for row in rows_of(Column) if row.name == "coarsen"))
        columns.pop(self.column(), None)
        if column:
            columns[self.column()] = column

    def block(self) -> None:
        """Set what a block says."""
        block = self._block()
        _choose(block, self.text("method"))
        self.put_all(block, Block)
        if "effort" in {option.name for option in find(block["method"]).options}:
            block.pop("effort", None)
            if self.text("effort"):
                block["effort"] = self.text("effort")

    def k(self) -> None:
        """Set one k, and method if there is one, for all blocks: what a choice of the map says."""
        for block in self.data["block"]:
            self._put(block, BLOCK_SETTINGS["k"])
            if self.text("method"):
                _choose(block, self.text("method"))

    def require(self) -> None:
        """Add a requirement of a column or of the whole group, or take it out."""
        rule, block = self.text("rule"), self._block()
        if rule not in RULES:
            raise InputError(f"There is no requirement {shown(rule)}. Reload the page.")
        require = block.setdefault("require", {})
        is_by_column = RULES[rule].default == {}
        table = require.setdefault(rule, {}) if is_by_column else require
        name = self.column() if is_by_column else rule
        if self.text("what") == "no_longer_require":
            table.pop(name, None)
        else:
            values = LIST.from_field(self.text("value"))
            if not values:
                raise InputError(
                    f"{rule} asks for {RULES[rule].label}; nothing is given. Fill it in."
                )
            table[name] = values[0] if len(values) == 1 else values
        block["require"] = {key: value for key, value in require.items() if value != {}}
        if not block["require"]:
            del block["require"]

    def reason(self) -> None:
        """Set the reason why no attacker knows a confidential column."""
        claims, name = self.data.get("confidential", []), self.column()
        if name not in claims:
            raise InputError(
                f"A reason is given for a confidential column; {shown(name)} is not one. Make it one."
            )
        reasons = claims if isinstance(claims, dict) else dict.fromkeys(claims, "")
        self.data["confidential"] = {**reasons, name: self.text("reason")}

    def unit(self) -> None:
        """Set how units are grouped and called, and what becomes of their column in the file."""
        if "unit" not in self.data:
            raise InputError("No column is the unit. Give one the role unit.")
        unit, release = self.data["unit"], self.text("release") or "drop"
        self.put_all(unit, Unit)
        if release not in UNIT_RELEASES:
            raise InputError(f"A unit is released as one of {', '.join(UNIT_RELEASES)}.")
        for role in UNIT_RELEASES:
            self.data[role] = [name for name in self.data.get(role, []) if name != unit["column"]]
        self.data[release].append(unit["column"])

    def whole(self, settings: type[Plan]) -> None:
        """Set what the plan says about the whole release; analyses that are no text are not shown."""
        analyses = self.data.get("analyses", ())
        listed = [analysis for analysis in analyses if not isinstance(analysis, str)]
        self.put_all(self.data, settings)
        if listed:
            self.data["analyses"] = [*self.data.get("analyses", ()), *listed]


def _choose(block: Data, method: str) -> None:
    """Take another method; settings that it does not have fall away."""
    has = {option.name for option in find(method).options}
    for name in _OPTIONS - has:
        block.pop(name, None)
    block["method"] = method


_SECTIONS = {
    row.key: row.section
    for row in rows_of(Plan)
    if row.section is not None and row.section not in (Unit, Column, Block)
}
_EDITS = {
    "role": _Edit.role,
    "column": _Edit.describe,
    "coarsen": _Edit.coarsen,
    "block": _Edit.block,
    "k": _Edit.k,
    "require": _Edit.require,
    "no_longer_require": _Edit.require,
    "reason": _Edit.reason,
    "unit": _Edit.unit,
}
