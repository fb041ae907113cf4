"""What the parts of a plan must agree on: one role a column, one mean weight, relations that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.block import Block
from microagg.plan.column import QUANTITIES
from microagg.plan.plan_settings import PlanSettings
from microagg.plan.relations import Relation


def check_plan(plan: PlanSettings) -> None:
    """Refuse settings that do not go together."""
    if not plan.blocks:
        raise InputError("A plan needs at least one block of columns to protect.")
    if len(plan.blocks) > 1 and any(block.columns is None for block in plan.blocks):
        raise InputError("With several blocks each must name its columns; one does not.")
    for name in plan.reasons:
        if name not in plan.confidential:
            raise InputError(
                f"reasons says why a column is confidential; {shown(name)} is not. Name it in "
                "confidential, or leave its reason out."
            )
    _check_roles(plan)
    _check_unit(plan)
    if plan.weight is not None and plan.weight.release == "mean":
        _check_one_group(
            plan,
            "The released weight is the mean of the group",
            'Say weight = { release = "keep" } or "drop", --weight-release keep.',
        )
    if any(plan.strata_of(block).small == "merge" for block in plan.blocks):
        _check_one_group(
            plan,
            "Where small strata are merged, a record is released with the stratum of its group",
            'Say strata = { small = "error" }, or name coarser strata.',
        )
    if plan.suppress.most and plan.weight is not None and not plan.suppress.weighted:
        raise InputError(
            f"Weighted totals stay what they are, and suppress leaves records out of them; the weight is "
            f"{shown(plan.weight.column)}. If the totals may change, say weighted = true in suppress "
            "(--suppress-weighted); else leave suppress out."
        )
    for relation in plan.relations:
        for reason, way_out in _breaking(plan, relation):
            raise InputError(
                f"The release must keep the relation {shown(relation.text, 200)}, but {reason}. {way_out}."
            )
    for block in plan.blocks:
        if block.is_swapped:
            _check_swapping(plan, block)


def _check_roles(plan: PlanSettings) -> None:
    """Refuse a column that is given two things to be."""
    seen: dict[Any, str] = {}
    protected = {f"block {i + 1}": b.columns or () for i, b in enumerate(plan.blocks)}
    if len(plan.blocks) == 1:
        protected = {"columns": plan.blocks[0].columns or ()}
    for role, names in (
        *protected.items(),
        ("drop", plan.drop),
        ("renumber", plan.renumber),
        ("confidential", plan.confidential),
        # A stratum is known to everybody, and may be said to be.
        ("known", [name for name in plan.known if name not in plan.all_strata]),
        ("strata", plan.all_strata),
        ("weight", () if plan.weight is None else (plan.weight.column,)),
    ):
        for name in names:
            if name in seen:
                way_out = "Name it once."
                if (seen[name], role) == ("drop", "weight"):
                    way_out = (
                        "Take it out of drop and say what becomes of the weight: "
                        'weight = { release = "drop" }.'
                    )
                raise InputError(
                    f"A column has one role; {shown(name)} is named in {seen[name]} and in {role}. {way_out}"
                )
            seen[name] = role
    for what, described in (
        ("columns describes how a column is read, recoded and protected", plan.columns),
        ("missing.codes tells what is missing in a protected column", plan.missing.codes),
    ):
        for name in described:
            if seen.get(name) == "strata" and name in plan.coarsened:
                continue
            if seen.get(name, "known") not in ("known", *protected):
                raise InputError(
                    f"{what}; {shown(name)} is in {seen[name]}. Leave it out there, or give it no other role."
                )


def _check_unit(plan: PlanSettings) -> None:
    """Refuse a unit that is something else, too."""
    chosen = {name for block in plan.blocks for name in block.columns or ()}
    for unit in plan.units:
        if unit in plan.coarsened:
            raise InputError(
                f"The unit {shown(unit)} tells whose record it is; recoded, it would not. Leave its coarsen "
                "out."
            )
        if unit in chosen:
            raise InputError(
                f"The unit {shown(unit)} tells whose record it is and cannot be protected by "
                "averaging. Leave it out of the columns; renumber or drop it before release."
            )
        if any(
            plan.unit_of(block).column == unit and unit in plan.strata_of(block).columns
            for block in plan.blocks
        ):
            raise InputError(
                f"A stratum must hold k units; {shown(unit)} is both the unit and in strata, so that each "
                "stratum would hold one. Name one of them."
            )
        if plan.weight is not None and unit == plan.weight.column:
            raise InputError(
                f"The unit tells whose record it is, the weight how many it stands for; {shown(unit)} is "
                "named as both. Name one of them."
            )


def _check_one_group(plan: PlanSettings, rule: str, way_out: str) -> None:
    """Refuse a plan by which a record is in several groups."""
    if len(plan.blocks) > 1:
        raise InputError(
            f"{rule}; the plan has several blocks, each with its own groups. {way_out}"
        )
    (block,) = plan.blocks
    if block.per_column and len(block.columns or ()) > 1:
        raise InputError(f"{rule}; per_column gives each column its own groups. {way_out}")


def _check_swapping(plan: PlanSettings, block: Block) -> None:
    """Refuse what cannot be swapped."""
    if plan.unit_of(block).mode == "together":
        raise InputError(
            "Households that move together are released with one value a household, which swapping would "
            'take apart. Say mode = "count" of the unit (--unit-mode count), or release = "mean".'
        )
    nodes = [n for n in block.columns or () if plan.column(n).release == "node"]
    if nodes:
        raise InputError(
            f"Swapped are the codes of a hierarchy, not nodes above them; {shown(nodes[0])} releases "
            'nodes. Leave its release out, or say release = "mean" of the block.'
        )
    for bundle in plan.bundles_of(block):
        if set(bundle) == set(block.columns or ()):
            raise InputError(
                "together and relations bind all columns of the block, so that whole records would be "
                "swapped and stay as they are. Protect a further column here, or unbind one."
            )


def _breaking(plan: PlanSettings, relation: Relation) -> Iterator[tuple[str, str]]:
    """Yield why a release would break a relation, each with the way out."""
    gone = dict.fromkeys(plan.drop, "dropped") | dict.fromkeys(plan.renumber, "renumbered")
    if plan.weight is not None and plan.weight.release != "keep":
        averaged = plan.weight.release == "mean"
        gone[plan.weight.column] = "released as a mean weight" if averaged else "dropped"
    for name in relation.columns:
        if name in plan.coarsened:
            how = plan.coarsened[name].in_words
            yield (
                f"column {shown(name)} is recoded ({how})",
                "Leave its coarsen or the relation out",
            )
        if name in gone:
            yield (f"column {shown(name)} is {gone[name]}", "Leave the column or the relation out")
    # Where nobody named the columns yet, those that the draft finds are checked when they are known.
    if plan.blocks[0].columns is None:
        return
    block_of = {
        name: next((block for block in plan.blocks if name in (block.columns or ())), None)
        for name in relation.columns
    }
    first = relation.columns[0]
    block = block_of[first]
    for name, block_of_name in block_of.items():
        if block_of_name is not block:
            how = "is protected in another block" if block and block_of_name else "is left as it is"
            protected, apart = (name, first) if block is None else (first, name)
            yield (
                f"column {shown(protected)} is protected and {shown(apart)} {how}",
                "Protect all its columns in one block, or none of them",
            )
    if block is not None:
        yield from _broken_by_release(plan, block, relation)


def _broken_by_release(
    plan: PlanSettings, block: Block, relation: Relation
) -> Iterator[tuple[str, str]]:
    """Yield what happens to protected columns and the relation does not outlive."""
    plain = relation.is_plain_order
    if block.per_column and len(relation.columns) > 1:
        yield "per_column forms other groups for each column", "Leave per_column out"
    outlived = ("mean", "median", "minimum", "maximum") if plain else ("mean",)
    if block.released not in outlived:
        yield f"groups release the {block.released}", f"Release the {' or the '.join(outlived)}"
    if isinstance(plan.digits, int) and not plain:
        yield "digits rounds each column by itself", "Leave digits out"
    if plan.missing.policy in ("majority", "fill"):
        yield (
            f"the policy {plan.missing.policy} gives records values that are missing, column by column",
            'Say missing = "pattern" or "drop"',
        )
    columns = {name: plan.column(name) for name in relation.columns}
    for name, column in columns.items():
        if column.kind is not None and column.kind not in QUANTITIES:
            yield (
                f"column {shown(name)} is of kind {column.kind}, which is not averaged",
                f"Relations are about columns of kind {', '.join(QUANTITIES)}",
            )
        if column.release is not None:
            yield (
                f"column {shown(name)} releases its {column.release} in place of the mean",
                "Leave its release out",
            )
    rounded = {name: column.round for name, column in columns.items() if column.round != "no"}
    all_nearest = len(rounded) == len(columns) and set(rounded.values()) == {"nearest"}
    way_out = 'Say round = "no" for its columns'
    if plain:
        way_out += ', or "nearest" for both'
        rounded = {} if all_nearest else rounded
    for name, way in rounded.items():
        yield f"column {shown(name)} is rounded ({way}) by itself", way_out
