"""What a plan may ask for with a ledger; everything else is refused before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microagg.base.formatting import names
from microagg.errors import InputError, shown
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles


def with_plain_means(plan: Plan, decided: Plan) -> Plan:
    """Let columns with many zeros release means of all members, unless somebody decided otherwise.

    The draft lets them release the mean of the members that are not 0, which may be fewer than k.

    Parameters
    ----------
    plan : with a role for every column
    decided : what was said before the draft
    """
    drafted = {
        name: column
        for name, column in plan.columns.items()
        if column.release == "spike" and name not in decided.columns
    }
    reason = "Protected as spiked: with a ledger a group releases its mean."
    return replace(
        plan,
        columns={**plan.columns, **{n: replace(c, release=None) for n, c in drafted.items()}},
        notes={**plan.notes, **{name: reason for name in drafted if name in plan.notes}},
    )


def check_supported(
    plan: Plan, roles: Roles, named: Any, about: Mapping[str, Any], leavers: str
) -> Any:
    """Refuse what a ledger does not cover; return the column that tells units apart.

    Parameters
    ----------
    plan, roles : of the table
    named : the column that ``--key`` names, or None
    about : of the ledger; empty if this is its first release
    leavers : what becomes of groups that some members left
    """
    block = plan.blocks[0]
    unit = plan.unit_of(block).column
    spikes = [name for name, column in plan.columns.items() if column.release == "spike"]
    untouched = {*roles.known} & {*plan.coarsened}
    swapped, weight, released = block.is_swapped, plan.weight, block.released
    requires_more = bool(block.require) or block.standing is not None
    released_weight = None if weight is None else weight.release
    lacks = (
        (len(plan.blocks) > 1, "one block of columns", "the plan has several"),
        (block.per_column, "one partition of the records", "per_column asks for one a column"),
        (not swapped and released != "mean", "means", f"the plan releases the {released}"),
        (
            not swapped and bool(spikes),
            "means of all members",
            f'{names(spikes)} would release the mean of some (release = "spike")',
        ),
        (plan.unit_of(block).mode == "together", "units that are counted", "mode is together"),
        (plan.strata_of(block).small == "merge", "strata of k units", "small is merge"),
        (plan.suppress.most > 0, "all records", "suppress leaves some out"),
        (plan.missing.policy == "drop", "all records", "missing is drop"),
        (plan.keep_order is True, "rows in random order", "keep_order is true"),
        (bool(untouched), "known columns as they are", f"coarsen names {names(list(untouched))}"),
        (swapped and bool(plan.bundles_of(block)), "columns dealt one by one", "some are bound"),
        (swapped and requires_more, "swapped groups of k alone", "the plan requires more"),
        (swapped and weight is not None, "swapped files without a weight", "the plan has one"),
        (released_weight == "keep", "a weight that is released as a mean or dropped", "it is kept"),
        (
            leavers == "accept" and released_weight == "mean",
            "a weight that is dropped where leavers are accepted",
            "it is released as a mean",
        ),
    )
    for lacking, rule, fact in lacks:
        if lacking:
            raise InputError(
                f"A release with a ledger has {rule}, for what it says together with earlier ones is counted "
                f"that way; {fact}. Change that, or release without --ledger once and for all."
            )
    column = unit if named is None else named
    if column is None:
        raise InputError(
            "A ledger must know whose record it is. Name the column by --unit, or by --key if each of its "
            "values has one record."
        )
    if unit is not None and column != unit:
        raise InputError(
            f"With a unit that is whom the ledger knows; the unit is {shown(unit)}, and --key names "
            f"{shown(column)}. Leave --key out."
        )
    if column not in (*roles.dropped, *roles.renumbered):
        raise InputError(
            f"Whoever reads two files must not find the same person by an id; {shown(column)} would be "
            "released. Name it in --drop or --renumber."
        )
    if not about:
        return column
    now = {"key": str(column), "weight": None if weight is None else str(weight.column)}
    for name in now:
        if about[name] != now[name]:
            raise InputError(
                f"All releases of a ledger have the same {name}, since other groups or sums could be solved "
                f"against them; it is {shown(about[name])} in the ledger and {shown(now[name])} in the plan. "
                "Say the same, or start another ledger for other people."
            )
    for name in roles.protected:
        before = about["release"].get(str(name), block.release)
        if block.is_swapped and before != "swap":
            raise InputError(
                f"A column whose means were released is not swapped later, for the swapped values could be "
                f"solved against the means; {shown(name)} has release {shown(before)} in the ledger. Release "
                "means, or leave the column out."
            )
    return column
