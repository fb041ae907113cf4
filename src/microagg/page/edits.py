"""Edits of a plan by the page's forms.

The texts of a form become settings as those of a file do: every check and every sentence about a mistake is
the plan's own. Columns are named by their place in the table, so that no name has to travel through a form
and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from microagg.errors import InputError, shown
from microagg.plan.block import BLOCK_SETTINGS, Block, Require
from microagg.plan.change_role import decided, with_role
from microagg.plan.column import Column, columns_with, fits_kind
from microagg.plan.forms import LIST
from microagg.plan.plan import UNSET, Plan
from microagg.plan.registry import find
from microagg.plan.sections import Unit
from microagg.plan.settings_table import Section, Setting, rows_of

Fields = Mapping[str, str]

RULES = {row.name: row for row in rows_of(Require)}
"""Requirements, each with the label of what is asked for."""
UNIT_RELEASES = {"drop": "not at all", "renumber": "as random numbers", "known": "as it is"}


def edited(plan: Plan, fields: Fields, names: Sequence[str], kinds: Mapping[str, Any]) -> Plan:
    """Return the plan with one edit made.

    Of the fields, ``what`` names the edit, ``column`` the place of a column among the table's ``names``, and
    ``block`` that of a block. The ``kinds`` are those that the draft takes columns for.
    """
    form = _Form(fields, names)
    what = form.text("what")
    if what == "text":  # the whole plan as a file
        changed = type(plan).from_toml_text(fields.get("text", ""))
    elif what == "role":  # a column to protect gets the kind that the draft names
        name = form.column()
        changed = with_role(plan, name, form.text("role"), kinds.get(name))
    elif what == "decide":  # as a price or a caution's cure says it
        changed = plan
        for place in form.text("column").split(","):  # a claim may be about several
            name = form.column(place)
            changed = decided(changed, name, form.text("decision"), kinds.get(name))
    elif what in _SECTIONS:
        section: Any = getattr(plan, what) or _SECTIONS[what]()
        whole: Any = {what: replace(section, **form.settings(rows_of(type(section))))}
        changed = replace(plan, **whole)
    elif what in _EDITS:
        changed = _EDITS[what](plan, form)
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


class _Form(NamedTuple):
    """The fields of a form about a table with columns of some names."""

    fields: Fields
    names: Sequence[str]

    def text(self, key: str) -> str:
        return self.fields.get(key, "").strip()

    def column(self, place: str | None = None) -> str:
        place = self.text("column") if place is None else place
        if not place.isdigit() or int(place) >= len(self.names):
            raise InputError(f"The table has no column number {shown(place)}. Reload the page.")
        return self.names[int(place)]

    def block(self, plan: Plan) -> Block:
        place = self.text("block")
        if not place.isdigit() or int(place) >= len(plan.blocks):
            raise InputError(f"The plan has no block number {shown(place)}. Reload the page.")
        return plan.blocks[int(place)]

    def in_file(self, row: Setting) -> Any:
        """Return what a file would hold of a setting; its default where nothing is given."""
        text = self.text(row.name)
        if row.is_switch:
            return True if text == "yes" else row.default
        if not text:
            return row.default
        return text if row.choices else row.form.from_field(text)

    def settings(self, rows: Sequence[Setting]) -> dict[str, Any]:
        """Return the settings that have a field, by name."""
        return {
            row.name: row.read(self.in_file(row)) if self.text(row.name) else self.in_file(row)
            for row in rows
            if row.label
        }


def _describe(plan: Plan, form: _Form) -> Plan:
    """Set how a protected column is read, recoded, compared and released."""
    name, kind = form.column(), form.text("kind") or None
    table = {
        row.name: form.in_file(row)
        for row in rows_of(Column)
        if row.label
        and (not row.fits or kind in row.fits)
        and fits_kind(row, form.text(row.name), kind)
    }
    before = plan.columns.get(name, Column())
    if before.kind == kind:  # what the page has no field for stays
        table["parents"] = before.parents
    codes = {**plan.missing.codes, name: LIST.from_field(form.text("codes"))}
    missing = replace(plan.missing, codes={n: values for n, values in codes.items() if values})
    return replace(plan, columns=_columns(plan, name, table), missing=missing)


def _coarsen(plan: Plan, form: _Form) -> Plan:
    """Set how a stratum, or a column left as it is, is recoded."""
    (row,) = (row for row in rows_of(Column) if row.name == "coarsen")
    return replace(plan, columns=_columns(plan, form.column(), {"coarsen": form.in_file(row)}))


def _columns(plan: Plan, name: str, table: dict[str, Any]) -> dict[Any, Column]:
    """Return how columns are described, one of them by a table; if that says nothing, it is left out."""
    columns = {**plan.columns, **columns_with({}, "columns", {name: table})}
    return {key: column for key, column in columns.items() if column != Column()}


def _edit_block(plan: Plan, form: _Form) -> Plan:
    """Set what a block says."""
    block, settings = form.block(plan), form.settings(list(BLOCK_SETTINGS.values()))
    has = {option.name for option in find(form.text("method")).options}
    options = {**block.options, "effort": form.text("effort") or None}
    options = {name: value for name, value in options.items() if name in has}
    return _with_block(plan, block, replace(block, **settings, options=options))


def _with_block(plan: Plan, block: Block, changed: Block) -> Plan:
    return replace(plan, blocks=tuple(changed if b is block else b for b in plan.blocks))


def _edit_k(plan: Plan, form: _Form) -> Plan:
    """Set one k, and method if there is one, for all blocks: what a choice of the map says."""
    k = form.in_file(BLOCK_SETTINGS["k"])
    return plan.override(k=k, method=form.text("method") or UNSET)


def _require(plan: Plan, form: _Form) -> Plan:
    """Add a requirement of a column or of the whole group, or take it out."""
    rule, block = form.text("rule"), form.block(plan)
    if rule not in RULES:
        raise InputError(f"There is no requirement {shown(rule)}. Reload the page.")
    value: Any = None
    if form.text("what") == "require":
        values = LIST.from_field(form.text("value"))
        if not values:
            raise InputError(f"{rule} asks for {RULES[rule].label}; nothing is given. Fill it in.")
        value = values[0] if len(values) == 1 else values
    if RULES[rule].default == {}:  # by column
        columns = {**getattr(block.require, rule), form.column(): value}
        value = {name: least for name, least in columns.items() if least is not None}
    rules: Any = {rule: value}
    return _with_block(plan, block, replace(block, require=replace(block.require, **rules)))


def _reason(plan: Plan, form: _Form) -> Plan:
    """Set the reason why no attacker knows a confidential column."""
    name = form.column()
    if name not in plan.confidential:
        raise InputError(
            f"A reason is given for a confidential column; {shown(name)} is not one. Make it one."
        )
    return replace(plan, reasons={**plan.reasons, name: form.text("reason")})


def _edit_unit(plan: Plan, form: _Form) -> Plan:
    """Set how units are grouped and called, and what becomes of their column in the file."""
    if plan.unit is None:
        raise InputError("No column is the unit. Give one the role unit.")
    release = form.text("release") or "drop"
    if release not in UNIT_RELEASES:
        raise InputError(f"A unit is released as one of {', '.join(UNIT_RELEASES)}.")
    lists: dict[str, Any] = {
        role: [name for name in getattr(plan, role) if name != plan.unit] for role in UNIT_RELEASES
    }
    lists[release].append(plan.unit)
    unit = replace(plan.unit_section, **form.settings(rows_of(Unit)))
    return replace(plan, unit_section=unit, **lists)


def _edit_whole(plan: Plan, form: _Form) -> Plan:
    """Set what the plan says about the whole release; analyses that are no text are not shown."""
    settings = form.settings(rows_of(type(plan)))
    listed = [analysis for analysis in plan.analyses if not isinstance(analysis, str)]
    return replace(plan, **{**settings, "analyses": [*settings["analyses"], *listed]})


_SECTIONS: dict[str, type[Section]] = {
    row.key: row.section
    for row in rows_of(Plan)
    if row.section is not None and row.section not in (Unit, Column, Block)
}
_EDITS = {
    "column": _describe,
    "coarsen": _coarsen,
    "block": _edit_block,
    "k": _edit_k,
    "require": _require,
    "no_longer_require": _require,
    "reason": _reason,
    "unit": _edit_unit,
    "whole": _edit_whole,
}
