"""Give a column of a plan another role, as the page's menu, the table of prices and the search do."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from microagg.base.formatting import names
from microagg.errors import InputError, shown
from microagg.plan.coarsen import Coarsen
from microagg.plan.forms import read_value, split_coarsen
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import LISTS

ROLE_WORDS = {
    "known": "known",
    "confidential": "confidential",
    "drop": "drop",
    "renumber": "renumber",
    "strata": "stratum",
    "unit": "unit",
    "weight": "weight",
}
"""Roles of a column other than being protected in a block, and how people call them."""
UNPRICED = ("unit", "weight", "renumber")
"""Roles of columns about which no other decision is priced."""
_ROLES = {words: role for role, words in ROLE_WORDS.items()} | {"protect": "block-0"}
_OF_THE_PLAN = ("release", "categories", "k")


def decided(plan: Plan, name: Any, decision: str, kind: str | None = None) -> Plan:
    """Return the plan with one decision, in the words of a price or of a caution's cure.

    Parameters
    ----------
    plan : stays as it is
    name : the column; None: the decision is about the whole plan: "release swap", "categories draw", "k 10"
    decision : "protect", a role as people call it ("stratum", "drop" …), or a setting with its value: "kind
        spiked", "coarsen bands:5", "importance 5", "require distinct:2"
    kind : of a column to protect, unless the plan has one

    >>> plan = Plan.of(k=5, columns=["age", "region"])
    >>> decided(plan, "age", "coarsen bands:5").columns["age"].coarsen.in_words
    'bands of 5'
    """
    what, _, value = decision.partition(" ")
    if name is None and what in _OF_THE_PLAN:
        return plan.override(**{what: read_value(value)})
    if what in _ROLES and not value:
        return with_role(plan, name, _ROLES[what], kind)
    if what == "coarsen":
        return plan.override(coarsen={name: split_coarsen(value)})
    if what == "kind":
        return plan.override(kinds={name: value})
    if what == "importance":
        return plan.override(kinds={name: {"importance": read_value(value)}})
    if what == "require":
        rule, _, least = value.partition(":")
        return plan.override(require={rule: {name: read_value(least)}})
    raise InputError(
        f"There is no decision {shown(decision)} about a column. Decisions are {', '.join(_ROLES)}, and "
        "settings such as kind spiked, coarsen bands:5, importance 5 and require distinct:2."
    )


_ASKS = {
    "protect": "protect {}",
    "known": "leave {} as it is",
    "confidential": "call {} confidential",
    "drop": "drop {}",
    "renumber": "renumber {}",
    "stratum": "make {} a stratum",
    "unit": "make {} the unit",
    "weight": "make {} the weight",
}


def decision_words(decision: str, name: Any = None) -> str:
    """Say what a decision does with a column; without a name, with "it".

    Parameters
    ----------
    decision : a word and, after a space, its value, as in prices: "coarsen bands:5"
    name : the column

    >>> decision_words("stratum", "region"), decision_words("coarsen bands:5")
    ('make region a stratum', 'make it coarser: bands of 5')
    """
    column = "it" if name is None else names([name])
    what, _, value = decision.partition(" ")
    if what == "release":
        return (
            "swap values within groups instead of averaging them"
            if value == "swap"
            else "release the means of groups"
        )
    if what == "categories":
        return "release a random member's category instead of the most frequent one"
    if what == "k":
        return f"k = {value}"
    if what == "kind":
        return f"take {column} as {value}"
    if what == "coarsen":
        how = Coarsen(**split_coarsen(value))
        return f"make {column} coarser: {how.in_words}"
    if what == "importance":
        return f"raise the importance of {column} to {value}"
    if what == "require":
        rule, _, least = value.partition(":")
        if rule == "hidden":
            return f"let no group give {column} away"
        what = "different values" if rule == "distinct" else f"({rule})"
        return f"require {least} {what} of {column}"
    return _ASKS[what].format(column)


def with_role(plan: Plan, name: Any, role: str, kind: str | None = None) -> Plan:
    """Return the plan with one column in another role.

    The role is one of ``ROLE_WORDS``, ``"block-0"`` to protect the column in the first block, or
    ``"block-new"``; ``kind`` is that of a column to protect, unless the plan has one.

    >>> plan = Plan.of(k=5, columns=["age", "region"])
    >>> with_role(plan, "region", "strata").strata.columns
    ('region',)
    """
    data = deepcopy(plan.as_dict())
    give_role(data, name, role, kind)
    return replace(Plan.from_dict(data), notes=plan.notes)


def role_of(plan: Plan, name: Any) -> str:
    """Return the role of column ``name`` in ``plan``; of a protected one with its block, as "block-0"."""
    if name in plan.units:  # which is dropped, renumbered or left as it is besides
        return "unit"
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
    """Give a column another role in the plain data of a plan, in place.

    Parameters
    ----------
    data : of :meth:`Plan.as_dict`; changed
    name, role, kind : as for :func:`with_role`
    """
    _take_out(data, name)
    if role.startswith("block-"):
        _block_of(data, role.removeprefix("block-"))["columns"].append(name)
        if kind is not None and name not in data.get("columns", {}):
            data.setdefault("columns", {})[name] = {"kind": kind}
    elif role == "confidential" and isinstance(data.get(role), dict):  # with reasons
        data[role][name] = ""
    elif role in LISTS:
        data[role] = [*data.get(role, []), name]
    elif role == "strata":
        strata = data.setdefault("strata", {"columns": []})
        strata["columns"] = [*strata["columns"], name]
    elif role == "unit":  # dropped too: k counts it all the same
        data["unit"] = {**data.get("unit", {}), "column": name}
        data["unit"].pop("name", None)
        data["drop"] = [*data.get("drop", []), name]
    elif role == "weight":
        former = data.get("weight", {})
        if former:  # a release has one weight
            data["drop"] = [*data.get("drop", []), former["column"]]
        data["weight"] = {**former, "column": name}
    else:
        raise InputError(f"A column has no role {shown(role)}. Roles are {', '.join(ROLE_WORDS)}.")
    data["block"] = [b for b in data["block"] if b.get("columns") != []] or data["block"]
    if not role.startswith("block-"):
        described = data.get("columns", {}).pop(name, {})
        if role in ("known", "strata") and "coarsen" in described:  # which are recoded too
            data["columns"][name] = {"coarsen": described["coarsen"]}
        data.get("missing", {}).get("codes", {}).pop(name, None)


def _block_of(data: dict[str, Any], which: str) -> dict[str, Any]:
    """Return a block by its number, or a new one with the k of the first."""
    blocks = data["block"]
    if which == "new":
        blocks.append({"k": blocks[0].get("k", 5), "columns": []})
        return blocks[-1]  # type: ignore[no-any-return]
    if not which.isdigit() or int(which) >= len(blocks):
        raise InputError(f"The plan has no block number {shown(which)}.")
    block: dict[str, Any] = blocks[int(which)]
    block["columns"] = list(block.get("columns", ()))
    return block


def _take_out(data: dict[str, Any], name: Any) -> None:
    """Take a column out of all roles."""
    for table in (data, *data["block"]):
        if table.get("unit", {}).get("column") == name:
            del table["unit"]
    for role in LISTS:
        if isinstance(data.get(role), dict):
            data[role].pop(name, None)
        elif role in data:
            data[role] = [column for column in data[role] if column != name]
    if name in data.get("strata", {}).get("columns", ()):
        remaining = [column for column in data["strata"]["columns"] if column != name]
        data["strata"]["columns"] = remaining
        if not remaining:
            del data["strata"]
    if data.get("weight", {}).get("column") == name:
        del data["weight"]
    for block in data["block"]:
        if name in block.get("columns", ()):
            block["columns"] = [column for column in block["columns"] if column != name]
