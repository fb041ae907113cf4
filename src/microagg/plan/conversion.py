"""A plan as keywords, and as plain data for JSON and TOML, in and out; defaults are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from microagg.errors import InputError, shown
from microagg.plan.analyses import as_lists
from microagg.plan.block import block_as_dict, block_from_dict, check_names_of_part
from microagg.plan.checks import as_plain, check_keys, check_table, field_names, text_names
from microagg.plan.relations import Relation
from microagg.plan.sections import (
    Accept,
    Column,
    Missing,
    Strata,
    Suppress,
    Unit,
    claims_of,
    columns_with,
    missing_with,
    strata_with,
    suppress_with,
    unit_with,
    weight_with,
)

if TYPE_CHECKING:
    from microagg.plan.plan import Plan

__all__ = ["ACCEPTED", "LISTS", "SHORT", "as_data", "as_keywords", "fields_of_data"]

FORMAT = 1  # version of the plan file
_FRESH = "fresh"  # a seed of None, which TOML has no word for

# Roles that are lists of columns.
LISTS = ("drop", "renumber", "confidential", "known")
# What the board accepts; as a keyword each is called max_...
ACCEPTED = tuple(f.name for f in fields(Accept))
# Parts of the plan, with the setting that may stand for the part where it says nothing else.
SHORT = {
    "strata": "columns",
    "weight": "column",
    "unit": "column",
    "missing": "policy",
    "suppress": "most",
}
_KEYS = {
    "microagg",
    "seed",
    *LISTS,
    *SHORT,
    "shuffle",
    "round",
    "digits",
    "analyses",
    "columns",
    "accept",
    "relation",
    "block",
}


def as_keywords(plan: Plan) -> dict[str, Any]:
    """Return the keywords that build this plan, defaults left out; only of a plan with one block."""
    if len(plan.blocks) > 1:
        raise InputError("Keywords describe one block; this plan has several.")
    found = block_as_dict(plan.blocks[0]) | _lists_as_data(plan)
    parts = _parts_as_data(plan)
    for name, key in SHORT.items():
        if name in parts:
            found[name] = parts[name][key] if set(parts[name]) == {key} else parts[name]
    if plan.analyses:
        found["analyses"] = as_lists(plan.analyses)
    if plan.relations:
        found["relations"] = [relation.text for relation in plan.relations]
    if plan.shuffle:
        found["shuffle"] = True
    if plan.round != "no":
        found["round"] = True if plan.round == "nearest" else plan.round
    if plan.digits is not None:
        found["digits"] = plan.digits
    said = {
        name: _in_short(replace(column, coarsen=None))
        for name, column in plan.columns.items()
        if column.coarsen is None or replace(column, coarsen=None) != Column()
    }
    if said:
        found["kinds"] = said
    if plan.coarsened:
        found["coarsen"] = {name: as_plain(how) for name, how in plan.coarsened.items()}
    if plan.seed != 0:
        found["random_state"] = plan.seed
    return found | {f"max_{name}": limit for name, limit in as_plain(plan.accept).items()}


def as_data(plan: Plan) -> dict[str, Any]:
    """Plain data for JSON and TOML: what differs from the defaults, and every block."""
    found: dict[str, Any] = {"microagg": FORMAT}
    if plan.seed != 0:
        found["seed"] = _FRESH if plan.seed is None else plan.seed
    found |= _lists_as_data(plan)
    found |= _parts_as_data(plan)
    if plan.shuffle:
        found["shuffle"] = True
    if plan.round != "no":
        found["round"] = plan.round
    if plan.digits is not None:
        found["digits"] = plan.digits
    if plan.analyses:
        found["analyses"] = as_lists(plan.analyses)
    if plan.columns:
        found["columns"] = {name: as_plain(column) for name, column in plan.columns.items()}
    accepted = as_plain(plan.accept)
    if accepted:
        found["accept"] = accepted
    if plan.relations:
        found["relation"] = [{"holds": relation.text} for relation in plan.relations]
    found["block"] = [block_as_dict(block) for block in plan.blocks]
    return found


def _lists_as_data(plan: Plan) -> dict[str, Any]:
    """Roles that are lists of columns; confidential is a table where reasons are given."""
    found: dict[str, Any] = {
        name: list(getattr(plan, name)) for name in LISTS if getattr(plan, name)
    }
    if plan.reasons:
        found["confidential"] = {name: plan.reasons.get(name, "") for name in plan.confidential}
    return found


def _parts_as_data(plan: Plan) -> dict[str, dict[str, Any]]:
    """Strata, weight, unit, missing values and suppression as tables, those that say anything."""
    found = {}
    if plan.strata.columns:
        found["strata"] = as_plain(plan.strata)
    if plan.weight is not None:
        found["weight"] = {**as_plain(plan.weight), "column": plan.weight.column}
    if plan.unit is not None:
        unit = Unit(plan.unit, plan.unit_mode, plan.unit_name)
        found["unit"] = {**as_plain(unit), "column": plan.unit}
    if plan.missing != Missing():
        found["missing"] = as_plain(plan.missing)
    if plan.suppress != Suppress():
        found["suppress"] = as_plain(plan.suppress)
    return found


def _in_short(column: Column) -> Any:
    """A column as the keyword ``kinds`` takes it: a kind, levels in order, or a table of settings."""
    found = as_plain(column)
    if found.keys() == {"kind"}:
        return found["kind"]
    if found.keys() == {"kind", "levels"} and column.kind == "ordinal":
        return found["levels"]
    return found


def fields_of_data(given: Any) -> dict[str, Any]:
    """Read the fields of a plan from what :func:`as_data` gives; unknown keys are refused."""
    check_table("A plan", given)
    version = given.get("microagg", "missing")
    if version != FORMAT or isinstance(version, bool):
        raise InputError(
            f"A plan begins with the version of its format, microagg = {FORMAT}; here it is "
            f"{shown(version)}."
        )
    check_keys("a plan", given, _KEYS)
    whole: dict[str, Any] = {}
    for name in LISTS:
        if name == "confidential" and isinstance(given.get(name), Mapping):
            whole["confidential"], whole["reasons"] = claims_of(given[name])
        elif name in given:
            whole[name] = text_names(name, given[name])
    for name in ("shuffle", "round", "digits", "analyses"):
        if name in given:
            whole[name] = given[name]
    if "seed" in given:
        whole["seed"] = None if given["seed"] == _FRESH else given["seed"]
    for name in ("strata", "weight", "unit"):
        if name in given:
            check_names_of_part(name, given[name])
    if "strata" in given:
        whole["strata"] = strata_with(Strata(), given["strata"])
    if "weight" in given:
        whole["weight"] = weight_with(None, given["weight"])
    if "unit" in given:
        unit = unit_with(Unit(), given["unit"])
        whole |= {"unit": unit.column, "unit_mode": unit.mode, "unit_name": unit.name}
    if "missing" in given:
        whole["missing"] = missing_with(Missing(), given["missing"])
    if "suppress" in given:
        whole["suppress"] = suppress_with(Suppress(), given["suppress"])
    if "relation" in given:
        whole["relations"] = _relations_of_tables(given["relation"])
    if "accept" in given:
        check_keys("accept", given["accept"], field_names(Accept))
        whole["accept"] = Accept(**given["accept"])
    if "columns" in given:
        check_table("columns", given["columns"])
        for name, column in given["columns"].items():
            check_table(f"What columns says of {shown(name)}", column)
        whole["columns"] = columns_with({}, "columns", given["columns"])
    blocks = given.get("block", [{}])
    if not isinstance(blocks, list):
        raise InputError("Blocks are written [[block]], with two brackets, one for each block.")
    whole["blocks"] = tuple(block_from_dict(block) for block in blocks)
    return whole


def _relations_of_tables(given: Any) -> tuple[Relation, ...]:
    """Relations as a file holds them: [[relation]] with holds = "gross = net + tax"."""
    if not isinstance(given, list):
        raise InputError(
            "Relations are written [[relation]], with two brackets, one for each relation."
        )
    for table in given:
        check_keys("relation", table, {"holds"})
        if "holds" not in table:
            raise InputError('A relation says what holds: holds = "gross = net + tax".')
    return tuple(Relation(table["holds"]) for table in given)
