"""Give a column of a plan another role, as the page's menu, the table of prices and the search do."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan import Plan
from microagg.plan_forms import LISTS

__all__ = ["ROLE_WORDS", "give_role", "role_of", "with_role"]

ROLE_WORDS = {
    "known": "known",
    "confidential": "confidential",
    "drop": "drop",
    "renumber": "renumber",
    "strata": "stratum",
    "weight": "weight",
}
"""Roles of a column other than being protected in a block, and how people call them."""


def with_role(plan: Plan, name: Any, role: str, kind: str | None = None) -> Plan:
    """Return the plan with one column in another role.

    Parameters
    ----------
    role : one of ``ROLE_WORDS``, ``"block-0"`` to protect it in the first block, ``"block-new"`` in a new one
    kind : of a column to protect, unless the plan has one

    >>> plan = Plan.of(k=5, columns=["age", "region"])
    >>> with_role(plan, "region", "strata").strata.columns
    ('region',)
    """
    data = deepcopy(plan.as_dict())
    give_role(data, name, role, kind)
    return replace(Plan.from_dict(data), notes=plan.notes)


def role_of(plan: Plan, name: Any) -> str:
    """Return the role of a column; of a protected one with its block, as "block-0"."""
    for number, block in enumerate(plan.blocks):
        if name in (block.columns or ()):
            return f"block-{number}"
    if name in plan.strata.columns:  # which may be said to be known too
        return "strata"
    for role in LISTS:
        if name in getattr(plan, role):
            return role
    return "weight" if plan.weight is not None and plan.weight.column == name else "known"


def give_role(data: dict[str, Any], name: Any, role: str, kind: str | None = None) -> None:
    """Give a column another role in the plain data of a plan (:meth:`Plan.as_dict`), in place."""
    _take_out(data, name)
    if role.startswith("block-"):
        _block_of(data, role.removeprefix("block-"))["columns"].append(name)
        if kind is not None and name not in data.get("columns", {}):
            data.setdefault("columns", {})[name] = {"kind": kind}
    elif isinstance(data.get(role), dict):  # confidential, with reasons
        data[role][name] = ""
    elif role in LISTS:
        data[role] = [*data.get(role, []), name]
    elif role == "strata":
        strata = data.setdefault("strata", {"columns": []})
        strata["columns"] = [*strata["columns"], name]
    elif role == "weight":
        data["weight"] = {**data.get("weight", {}), "column": name}
    else:
        raise InputError(f"A column has no role {shown(role)}. Roles are {', '.join(ROLE_WORDS)}.")
    data["block"] = [b for b in data["block"] if b.get("columns") != []] or data["block"]
    if not role.startswith("block-"):
        described = data.get("columns", {}).pop(name, {})
        if role in ("known", "strata") and "coarsen" in described:  # which are recoded too
            data["columns"][name] = {"coarsen": described["coarsen"]}
        data.get("missing", {}).get("codes", {}).pop(name, None)


def _block_of(data: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a block by its number, or a new one with the k of the first."""
    blocks = data["block"]
    if place == "new":
        blocks.append({"k": blocks[0].get("k", 5), "columns": []})
        return blocks[-1]  # type: ignore[no-any-return]
    if not place.isdigit() or int(place) >= len(blocks):
        raise InputError(f"The plan has no block number {shown(place)}.")
    found: dict[str, Any] = blocks[int(place)]
    found["columns"] = list(found.get("columns", ()))
    return found


def _take_out(data: dict[str, Any], name: Any) -> None:
    """Take a column out of all roles but that of the unit."""
    for role in LISTS:
        if isinstance(data.get(role), dict):
            data[role].pop(name, None)
        elif role in data:
            data[role] = [other for other in data[role] if other != name]
    if name in data.get("strata", {}).get("columns", ()):
        remaining = [other for other in data["strata"]["columns"] if other != name]
        data["strata"]["columns"] = remaining
        if not remaining:
            del data["strata"]
    if data.get("weight", {}).get("column") == name:
        del data["weight"]
    for block in data["block"]:
        if name in block.get("columns", ()):
            block["columns"] = [other for other in block["columns"] if other != name]
