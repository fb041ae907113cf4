"""Give a column of a plan another role, as the page's menu, the table of prices and the search do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microagg.base.formatting import names
from microagg.errors import InputError, shown
from microagg.plan.block import Block
from microagg.plan.column import Coarsen, Column
from microagg.plan.forms import read_value, split_coarsen
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import LISTS
from microagg.plan.sections import Strata, Unit, Weight

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
    if name is None and what in ("release", "categories", "k"):
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


_WORDS = {
    "protect": "protect {column}",
    "known": "leave {column} as it is",
    "confidential": "call {column} confidential",
    "drop": "drop {column}",
    "renumber": "renumber {column}",
    "stratum": "make {column} a stratum",
    "unit": "make {column} the unit",
    "weight": "make {column} the weight",
    "release swap": "swap values within groups instead of averaging them",
    "release mean": "release the means of groups",
    "categories draw": "release a random member's category instead of the most frequent one",
    "k": "k = {value}",
    "kind": "take {column} as {value}",
    "coarsen": "make {column} coarser: {value}",
    "importance": "raise the importance of {column} to {value}",
    "require distinct": "require {value} different values of {column}",
    "require hidden": "let no group give {column} away",
    "require": "require {value} of {column}",
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
    what, _, value = decision.partition(" ")
    if what == "coarsen":
        value = Coarsen(**split_coarsen(value)).in_words
    if what == "require":
        rule, _, least = value.partition(":")
        named = f"require {rule}" in _WORDS
        what, value = (f"require {rule}", least) if named else (what, f"{least} ({rule})")
    words = _WORDS.get(decision) or _WORDS[what]
    return words.format(column="it" if name is None else names([name]), value=value)


def with_role(plan: Plan, name: Any, role: str, kind: str | None = None) -> Plan:
    """Return the plan with one column in another role.

    The role is one of ``ROLE_WORDS``, ``"block-0"`` to protect the column in the first block, or
    ``"block-new"``; ``kind`` is that of a column to protect, unless the plan has one.

    >>> plan = Plan.of(k=5, columns=["age", "region"])
    >>> with_role(plan, "region", "strata").strata.columns
    ('region',)
    """
    lists: dict[str, Any] = {each: [c for c in getattr(plan, each) if c != name] for each in LISTS}
    strata: Any = [column for column in plan.strata.columns if column != name]
    unit = Unit() if plan.unit == name else plan.unit_section
    weight = None if plan.weight is None or plan.weight.column == name else plan.weight
    blocks = [
        replace(block, unit=None) if block.unit and block.unit.column == name else block
        for block in plan.blocks
    ]
    protected: list[Any] = [
        b.columns and [column for column in b.columns if column != name] for b in blocks
    ]
    columns, codes = dict(plan.columns), dict(plan.missing.codes)
    number = role.removeprefix("block-") if role.startswith("block-") else ""
    if number == "new":
        blocks.append(Block(k=blocks[0].k or 5))
        protected.append([name])
    elif number.isdigit() and int(number) < len(blocks):
        protected[int(number)] = [*(protected[int(number)] or ()), name]
    elif number:
        raise InputError(f"The plan has no block number {shown(number)}.")
    elif role in LISTS:
        lists[role].append(name)
    elif role == "strata":
        strata.append(name)
    elif role == "unit":  # dropped too: k counts it all the same
        unit = replace(unit, column=name, name=None)
        lists["drop"].append(name)
    elif role == "weight":
        if weight is not None:  # a release has one weight
            lists["drop"].append(weight.column)
        weight = Weight(name) if weight is None else replace(weight, column=name)
    else:
        raise InputError(f"A column has no role {shown(role)}. Roles are {', '.join(ROLE_WORDS)}.")
    if not number:
        coarsen = columns.pop(name, Column()).coarsen
        if role in ("known", "strata") and coarsen is not None:  # which are recoded too
            columns[name] = Column(coarsen=coarsen)
        codes.pop(name, None)
    elif kind is not None:
        columns.setdefault(name, Column(kind))
    remaining = [pair for pair in zip(blocks, protected, strict=True) if pair[1] != []]
    return replace(
        plan,
        **lists,
        reasons={c: reason for c, reason in plan.reasons.items() if c in lists["confidential"]},
        unit_section=unit,
        strata=replace(plan.strata, columns=strata) if strata else Strata(),
        weight=weight,
        missing=replace(plan.missing, codes=codes),
        columns=columns,
        blocks=tuple(replace(block, columns=c) for block, c in remaining or [(blocks[0], [])]),
    )


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
