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
from microagg.plan.change_role import decided, give_role
from microagg.plan.flag_values import read_value, split_coarsen, split_names
from microagg.plan.plan import Plan
from microagg.plan.registry import METHODS, find
from microagg.plan.sections import Accept
from microagg.plan.settings_table import rows_of

__all__ = ["RULES", "UNIT_RELEASES", "edited"]

Fields = Mapping[str, str]
Data = dict[str, Any]

# Requirements: those of a column, with what is asked for, and those of the whole group.
RULES = {
    "distinct": "least number of different values",
    "entropy": "l of entropy l-diversity",
    "recursive": "c, l",
    "closeness": "t, largest distance from 0 to 1",
    "p_percent": "p in percent",
    "n_k": "n, k in percent",
    "population": "least sum of weights",
    "individual_risk": "largest risk, 0 to 1",
}
UNIT_RELEASES = {"drop": "not at all", "renumber": "as random numbers", "known": "as it is"}
_OF_NO_COLUMN = ("population", "individual_risk")
# Settings of a block that only some methods have.
_OPTIONS = {option.name for method in METHODS.values() for option in method.options}


def edited(plan: Plan, fields: Fields, names: Sequence[str], kinds: Mapping[str, Any]) -> Plan:
    """Return the plan with one edit made.

    Parameters
    ----------
    fields : of the form; ``what`` names the edit
    names : columns of the table
    kinds : what the draft takes each column for
    """
    what = fields.get("what", "")
    if what == "text":  # the whole plan as a file
        changed = Plan.from_toml_text(fields.get("text", ""))
    elif what == "decide":  # as a price or a caution's cure says it
        form = _Form(fields, names, kinds)
        changed = decided(plan, form.column(), form.text("decision"), kinds.get(form.column()))
    elif what in _EDITS:
        data = deepcopy(plan.as_dict())
        _EDITS[what](data, _Form(fields, names, kinds))
        changed = Plan.from_dict(data)
    else:
        raise InputError(f"The page has no edit {shown(what)}. Reload it.")
    changed.roles(names)  # names that the table does not have are refused
    return replace(changed, notes=plan.notes)


class _Form:
    """The fields of a form, read as what they are about."""

    def __init__(self, fields: Fields, names: Sequence[str], kinds: Mapping[str, Any]) -> None:
        self._fields, self._names, self.kinds = fields, names, kinds

    def text(self, key: str) -> str:
        return self._fields.get(key, "").strip()

    def value(self, key: str) -> Any:
        """A number or a word; the plan tells what it cannot be. None where nothing is given."""
        return read_value(self.text(key)) if self.text(key) else None

    def values(self, key: str) -> list[Any]:
        """Values separated by commas or lines."""
        found = split_names([line for line in self.text(key).splitlines() if line.strip()])
        return [read_value(word.strip()) for word in found or [] if word.strip()]

    def recoding(self) -> Any:
        """How a column is recoded, written as the flag has it; None where nothing is given."""
        how = self.text("coarsen").replace(" ", "")
        return split_coarsen(how) if how else None

    def column(self, key: str = "column") -> str:
        place = self.text(key)
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


def _put(table: Data, key: str, value: Any) -> None:
    """Set what is given; what is not goes back to its default."""
    if value is None or value == "":
        table.pop(key, None)
    else:
        table[key] = value


def _role(data: Data, form: _Form) -> None:
    # A column that does not look like a quantity is protected by the kind that the draft names.
    give_role(data, form.column(), form.text("role"), form.kinds.get(form.column()))


def _column(data: Data, form: _Form) -> None:
    """How a protected column is read, recoded, compared and released."""
    name, kind = form.column(), form.text("kind")
    columns = data.setdefault("columns", {})
    before = columns.get(name, {})
    # Of another kind the settings fall away that only the former kind has.
    own = before if before.get("kind", "") == kind else {}
    column = {key: own[key] for key in ("parents", "release", "spike") if key in own}
    _put(column, "kind", kind)
    _put(column, "importance", form.value("importance"))
    _put(column, "transform", form.text("transform"))
    _put(column, "round", form.text("round"))
    _put(column, "coarsen", form.recoding())
    if kind in ("ordinal", "nominal"):
        _put(column, "levels", form.values("levels") or None)
    if kind == "hierarchy":
        _put(column, "prefixes", form.values("prefixes") or None)
    if kind == "spiked":
        _put(column, "spike", form.value("spike"))
    if kind in ("ordinal", "hierarchy", "spiked"):
        _put(column, "release", form.text("release"))
    columns.pop(name, None)
    if column:
        columns[name] = column
    codes = form.values("codes")
    missing = data.setdefault("missing", {})
    kept = {key: value for key, value in missing.get("codes", {}).items() if key != name}
    _put(missing, "codes", {**kept, **({name: codes} if codes else {})} or None)
    if not missing:
        del data["missing"]


def _coarsen(data: Data, form: _Form) -> None:
    """How a stratum, or a column left as it is, is recoded."""
    columns, name, how = data.setdefault("columns", {}), form.column(), form.recoding()
    columns.pop(name, None)
    _put(columns, name, how and {"coarsen": how})


def _block(data: Data, form: _Form) -> None:
    block, method = form.block(data), form.text("method")
    _choose(block, method)
    _put(block, "k", form.value("k"))
    if "effort" in {option.name for option in find(method).options}:
        _put(block, "effort", form.text("effort"))
    _put(block, "scale", form.text("scale"))
    _put(block, "aggregate", form.text("aggregate"))
    _put(block, "per_column", form.text("per_column") == "yes" or None)
    _put(block, "refine", "balanced" if form.text("refine") == "yes" else None)


def _choose(block: Data, method: str) -> None:
    """Take another method; settings that it does not have fall away."""
    has = {option.name for option in find(method).options}
    for name in _OPTIONS - has:
        block.pop(name, None)
    block["method"] = method


def _k(data: Data, form: _Form) -> None:
    """One k, and method if there is one, for all blocks: what a choice of the map says."""
    for block in data["block"]:
        _put(block, "k", form.value("k"))
        if form.text("method"):
            _choose(block, form.text("method"))


def _require(data: Data, form: _Form) -> None:
    rule, block = form.text("rule"), form.block(data)
    require = block.setdefault("require", {})
    if rule not in RULES:
        raise InputError(f"There is no requirement {shown(rule)}. Reload the page.")
    values = form.values("value")
    value = values[0] if len(values) == 1 else values
    if not values:
        raise InputError(f"{rule} asks for {RULES[rule]}; nothing is given. Fill it in.")
    if rule in _OF_NO_COLUMN:
        require[rule] = value
    else:
        require.setdefault(rule, {})[form.column()] = value


def _no_longer_require(data: Data, form: _Form) -> None:
    rule, block = form.text("rule"), form.block(data)
    require = block.get("require", {})
    if rule in _OF_NO_COLUMN:
        require.pop(rule, None)
    else:
        require.get(rule, {}).pop(form.column(), None)
        if not require.get(rule, True):
            del require[rule]
    if not require:
        block.pop("require", None)


def _unit(data: Data, form: _Form) -> None:
    """How units are grouped and called, and what becomes of their column in the file."""
    if "unit" not in data:
        raise InputError("No column is the unit. Give one the role unit.")
    unit, release = data["unit"], form.text("release") or "drop"
    unit["mode"] = form.text("mode") or "count"
    _put(unit, "name", form.text("name"))
    if release not in UNIT_RELEASES:
        raise InputError(f"A unit is released as one of {', '.join(UNIT_RELEASES)}.")
    for role in UNIT_RELEASES:
        data[role] = [name for name in data.get(role, []) if name != unit["column"]]
    data[release].append(unit["column"])


def _reason(data: Data, form: _Form) -> None:
    """Why no attacker knows a confidential column."""
    claims = data.get("confidential", [])
    if form.column() not in claims:
        raise InputError(
            f"A reason is given for a confidential column; {shown(form.column())} is not one. Make it one."
        )
    reasons = claims if isinstance(claims, dict) else dict.fromkeys(claims, "")
    data["confidential"] = {**reasons, form.column(): form.text("reason")}


def _strata(data: Data, form: _Form) -> None:
    data.setdefault("strata", {"columns": []})["small"] = form.text("small")


def _weight(data: Data, form: _Form) -> None:
    given = {"release": form.text("release"), "grouping": form.text("grouping")}
    data["weight"] = {**data.get("weight", {}), **given}


def _missing(data: Data, form: _Form) -> None:
    missing = data.setdefault("missing", {})
    _put(missing, "policy", form.text("policy"))
    _put(missing, "most", form.value("most"))


def _accept(data: Data, form: _Form) -> None:
    accept = data.setdefault("accept", {})
    for row in rows_of(Accept):
        _put(accept, row.name, form.value(row.name))


def _whole(data: Data, form: _Form) -> None:
    for key in ("round", "digits", "seed"):
        _put(data, key, form.value(key))
    _put(data, "shuffle", form.text("shuffle") == "yes" or None)


def _relations(data: Data, form: _Form) -> None:
    lines = [line.strip() for line in form.text("relations").splitlines() if line.strip()]
    _put(data, "relation", [{"holds": line} for line in lines] or None)


def _analyses(data: Data, form: _Form) -> None:
    lines = [line.strip() for line in form.text("analyses").splitlines() if line.strip()]
    listed = [one for one in data.get("analyses", ()) if not isinstance(one, str)]
    _put(data, "analyses", [*lines, *listed] or None)


_EDITS: dict[str, Callable[[Data, _Form], None]] = {
    "role": _role,
    "column": _column,
    "coarsen": _coarsen,
    "block": _block,
    "k": _k,
    "require": _require,
    "no_longer_require": _no_longer_require,
    "reason": _reason,
    "unit": _unit,
    "strata": _strata,
    "weight": _weight,
    "missing": _missing,
    "accept": _accept,
    "whole": _whole,
    "relations": _relations,
    "analyses": _analyses,
}
