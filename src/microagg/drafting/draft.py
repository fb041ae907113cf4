"""The draft: a plan to be edited, which decides all open questions in favour of the people in the table.

Every column gets a role: identifiers, names and texts are dropped, an identifier of people that repeats is
the unit that k counts, a survey weight is the weight, and everything else is protected by its kind. So the
draft can be carried out as it is and ends green. :func:`complete` is the one way in which plans are
completed, for files and frames, in memory, on disk and on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from microagg.base.formatting import percent
from microagg.base.typing import Labels
from microagg.drafting.guess import Guess
from microagg.drafting.identifying import check_pointing, left_unnamed
from microagg.drafting.infer import guess
from microagg.encode.missing import join_rare
from microagg.encode.strata import strata_of
from microagg.errors import InputError, shown
from microagg.plan.block import Block
from microagg.plan.column import Column
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Missing, Weight
from microagg.tables.as_written import codes_as_written
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import Frame
from microagg.tables.variable import QUANTITIES, variable_of

_K = 5  # where nobody says it
_SHOWN = 12  # columns named in the message that finds nothing to protect


@dataclass(frozen=True)
class Completed:
    """A plan whose columns all have a role, and the guesses behind it."""

    plan: Plan
    guesses: Mapping[Any, Guess] | None
    """What the draft made of each column; None where somebody named the columns to protect."""


def draft(frame: Any, *, k: int = _K) -> Plan:
    """Draft a plan from a table: every column gets a role that protects the people in it.

    Parameters
    ----------
    frame
        A data frame of pandas, polars or pyarrow.
    k
        The least number of records, or units, that share their values.

    Returns
    -------
    Plan
        With the reason for each column in its ``notes``, which :meth:`Plan.to_toml` writes as comments.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"person": [1, 2, 3, 4, 5, 6], "sex": [1, 2, 2, 1, 2, 1],
    ...                       "income": [21.5, 30.25, 18.0, 44.1, 27.3, 25.0]})
    >>> plan = draft(frame, k=3)
    >>> plan.drop, plan.blocks[0].columns, plan.columns["sex"].kind
    (('person',), ('sex', 'income'), 'nominal')
    >>> plan.notes["income"]
    'A quantity: numbers with decimals, 6 distinct in 6 records.'
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    return complete(table, Plan(blocks=(Block(k=k),))).plan


def complete(
    table: Frame,
    plan: Plan,
    missing_words: Sequence[str] = ("",),
    coded: Mapping[Any, Coded] | None = None,
) -> Completed:
    """Fill in what a plan leaves open, by the values and names of the columns.

    Where no columns are named, every column without a role gets one, and rare patterns of missing values
    make the draft choose the policy ``majority``, so that it can be carried out. Where columns are
    named, only they are protected; those that are codes and have no kind become nominal, since codes are not
    averaged, and columns that nobody spoke of become ``known``. What the plan says is never changed.

    Refused are columns that point to single records, if they have no role or are called confidential.

    ``missing_words`` are the texts of categories that mean missing, ``coded`` what stands for missing numbers
    in the file that the table came from.
    """
    if any(block.k is None for block in plan.blocks):
        blocks = tuple(replace(b, k=_K) if b.k is None else b for b in plan.blocks)
        plan = replace(plan, blocks=blocks)
    if plan.blocks[0].columns is not None:
        plan.roles(table.names)  # names that the table does not have are refused
        check_pointing(table, plan, missing_words)
        known = (*plan.known, *left_unnamed(plan, table.names))
        return Completed(replace(plan, known=known, **_codes_as_nominal(table, plan)), None)
    unit, weight = next(iter(plan.units), None), plan.weight
    guesses = guess(
        table,
        k=plan.k,
        unit=unit,
        weight=None if weight is None else weight.column,
        other_roles=plan.with_other_role,
        missing_words=missing_words,
    )
    whole = _with_roles(plan, guesses)
    whole.roles(table.names)
    check_pointing(table, whole, missing_words)
    return Completed(_with_policy(table, whole, missing_words, coded or {}), guesses)


def _codes_as_nominal(table: Frame, plan: Plan) -> dict[str, Any]:
    """Give named codes the kind nominal, and numbers stored as text the kind number, unless they have one.

    Returns the changed fields of the plan.
    """
    open_ones = [
        name
        for block in plan.blocks
        for name in block.columns or ()
        if _may_be_codes(table, plan, name)
    ]
    if not open_ones:
        return {}
    found = guess(table, k=plan.k, names=set(open_ones))
    columns, notes = dict(plan.columns), dict(plan.notes)
    for name, one in found.items():
        # Numbers that never repeat stand for nothing that records could share.
        is_code = one.looks_like == "code" and one.distinct < one.present
        in_text = one.looks_like == "number stored as text" and one.kind == "number"
        if (is_code or (in_text and not one.codes)) and not one.unreadable:
            columns[name] = columns.get(name, Column()).of_kind(one.kind)
            notes[name] = one.reason
    return {"columns": columns, "notes": notes}


def _may_be_codes(table: Frame, plan: Plan, name: Any) -> bool:
    """Return whether a column has numbers, or text that may be digits, and no setting says its kind."""
    said = plan.columns.get(name, Column())
    settled = said.kind is not None or said.transform is not None or name in plan.related
    settled = settled or said.coarsen is not None  # which says what it is
    return not settled and (table.is_numeric(name) or table.kind_in_words(name) == "text")


def _with_roles(plan: Plan, guesses: Mapping[Any, Guess]) -> Plan:
    """Give every column without a role in the plan that of the draft."""
    protected, drop, codes = [], list(plan.drop), dict(plan.missing.codes)
    columns, unit, weight = dict(plan.columns), plan.unit, plan.weight
    known, noun = list(plan.known), plan.unit_section.name
    wanted = {*plan.columns, *plan.missing.codes, *plan.related}
    notes = {}
    for name, found in guesses.items():
        if name in plan.with_other_role:
            continue
        notes[name] = found.reason
        if name in wanted or found.role == "protect":
            protected.append(name)
            columns.update(_described(plan, name, found))
            if found.codes and name not in wanted:
                codes[name] = found.codes
        elif found.role == "weight" and not plan.blocks[0].per_column:
            weight = _weight(plan, name)
        elif found.role == "unit":
            unit, noun = name, found.stands_for
            drop.append(name)
        else:
            (known if found.role == "known" else drop).append(name)
    if not protected:
        raise _nothing(guesses)
    elsewhere = {*drop, *plan.renumber, *plan.confidential, *plan.known, *plan.all_strata}
    if unit is not None and unit not in elsewhere:
        drop.append(unit)
    block = replace(plan.blocks[0], columns=tuple(protected))
    return replace(
        plan,
        blocks=(block,),
        columns=columns,
        drop=tuple(drop),
        known=tuple(known),
        unit_section=replace(plan.unit_section, column=unit, name=noun),
        weight=weight,
        missing=replace(plan.missing, codes=codes),
        notes=notes,
    )


def _described(plan: Plan, name: Any, found: Guess) -> dict[Any, Column]:
    """Return the settings of a protected column, unless its type implies them."""
    given = plan.columns.get(name)
    if given is not None and given.kind is not None:
        return {}
    implied = found.looks_like == "quantity" and found.kind != "spiked"
    if found.kind is None or implied or name in plan.related:
        return {}
    own = given or Column()
    if own.coarsen is not None and found.kind not in own.coarsen.kinds:
        return {}
    if found.looks_like == "date" and found.kind == "integer" and own.round is None:
        return {name: own.of_kind("integer", round="nearest")}  # a year stays one
    if found.kind == "spiked" and own.release is None:
        return {name: own.of_kind("spiked", release="spike")}
    return {name: own.of_kind(found.kind, **({"levels": found.levels} if found.levels else {}))}


def _weight(plan: Plan, name: Any) -> Weight:
    """Return the weight; methods that cannot weigh records group without it."""
    weighs = find(plan.blocks[0].method).weighted
    return Weight(name, grouping="weighted" if weighs else "plain")


def _with_policy(
    table: Frame, plan: Plan, missing_words: Sequence[str], coded: Mapping[Any, Coded]
) -> Plan:
    """Choose the policy majority if groups that share a pattern would blank too much.

    A plan with other settings than the defaults is not changed.
    """
    if replace(plan.missing, codes={}) != Missing() or plan.relations:
        return plan
    (block,) = plan.blocks
    states = {
        name: _states(table, plan, name, missing_words, coded.get(name))
        for name in block.columns or ()
    }
    blanked = _blanked(table, plan, block, states)
    if blanked <= plan.missing.most:
        return plan
    first = next(name for name, own in states.items() if own.any())
    notes = dict(plan.notes)
    notes[first] += (
        " Many patterns of missing values are rare: to have groups share one, "
        f"{percent(100 * blanked)} of the values would be blanked. So groups release what most of their "
        'records have, a value or none (majority). To give no record a value that it lacks, say "pattern" '
        "with a larger most, or protect fewer columns."
    )
    return replace(plan, missing=replace(plan.missing, policy="majority"), notes=notes)


def _states(
    table: Frame, plan: Plan, name: Any, missing_words: Sequence[str], coded: Coded | None
) -> Labels:
    """Return where values of a column are missing, and with which code, as in the grouping."""
    codes = plan.missing.codes.get(name, ())
    one = variable_of(table, name, plan.column(name), codes, missing_words)
    if coded is not None and not codes and one.kind in QUANTITIES:
        one = replace(one, codes=coded.codes, tags=coded.tags)
    return one.states


def _blanked(table: Frame, plan: Plan, block: Block, states: Mapping[Any, Labels]) -> float:
    """Return the share of values that joining rare patterns of missing values would blank."""
    sets = [[name] for name in states] if block.per_column else [list(states)]
    n, worst = len(table), 0.0
    strata = np.zeros(n, dtype=np.int64)
    if plan.strata_of(block).columns:
        strata, _ = strata_of(table, plan.strata_of(block).columns)
    unit = plan.unit_of(block).column
    units = None if unit is None else codes_as_written(table, unit, from_csv=False)
    for names in sets:
        together = np.column_stack([states[name] for name in names])
        if together.any():
            found = join_rare(together, strata, block.k or 1, units)
            worst = max(worst, found.blanked / together.size)
    return worst


def _nothing(guesses: Mapping[Any, Guess]) -> InputError:
    found = [f"{shown(name)}: {found.reason}" for name, found in list(guesses.items())[:_SHOWN]]
    more = len(guesses) - len(found)
    tail = f" (and {more} more columns)" if more > 0 else ""
    return InputError(
        "Without named columns everything is protected but identifiers, names, texts and weights; this table "
        f"has nothing else{tail}. {' '.join(found)} Name the columns to protect: columns=[...] or --columns, "
        "with their kinds."
    )
