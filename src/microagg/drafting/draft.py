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

from microagg.base.formatting import names, percent, plural
from microagg.drafting import name_words as say
from microagg.drafting.guess import Guess
from microagg.drafting.infer import guess
from microagg.encode.missing import join_patterns
from microagg.encode.strata import strata_of
from microagg.errors import InputError, shown
from microagg.plan.block import Block
from microagg.plan.column import Column
from microagg.plan.forms import join_names
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Missing, Weight
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.variable import column_of

_K = 5  # where nobody says it
_SHOWN = 12  # columns named in the message that finds nothing to protect
_NEARLY_ALL = 0.9  # an id may repeat in a few records
# Records for each value of an id, at most, so that it points to few: a year of months.
_RECORDS_OF_AN_ID = 12
_NAMED = 6  # columns whose looks an error describes


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

    Parameters
    ----------
    table : the records
    plan : stays as it is
    missing_words : texts of categories that mean missing
    coded : by column, what stands for missing numbers in the file that the table came from

    Returns
    -------
    Completed
        The plan with a role for every column, and the guesses behind it.
    """
    blocks = tuple(replace(b, k=_K) if b.k is None else b for b in plan.blocks)
    plan = replace(plan, blocks=blocks) if blocks != plan.blocks else plan
    if plan.blocks[0].columns is not None:
        plan.roles(table.names)  # names that the table does not have are refused
        check_pointing(table, plan, missing_words)
        known = (*plan.known, *_left_unnamed(plan, table.names))
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


def check_pointing(table: Frame, plan: Plan, missing_words: Sequence[str] = ("",)) -> None:
    """Refuse columns that point to single records and have no role, or are called confidential.

    An id, a name or a free text leads to one person whatever else is protected. Nobody leaves such a column
    in a file by oversight, and nobody can claim that no attacker knows it.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"name": [f"person {i}" for i in range(40)], "age": range(20, 60)})
    >>> check_pointing(Frame(people), Plan.of(k=5, columns=["age"], drop=["name"]))
    >>> check_pointing(Frame(people), Plan.of(k=5, columns=["age"]))
    Traceback (most recent call last):
    microagg.errors.InputError: A column that points to single records must have a role; name has none...
    """
    unnamed = _left_unnamed(plan, table.names)
    wanted = {*unnamed, *plan.confidential}
    if not wanted:
        return
    looks = guess(table, k=plan.k, names=wanted, missing_words=missing_words)

    def facts(columns: Sequence[Any]) -> str:
        """Describe columns, without values of records."""
        described = [
            f"{names([name])}: {looks[name].fact[:1].lower()}{looks[name].fact[1:]}"
            for name in columns[:_NAMED]
        ]
        rest = len(columns) - len(described)
        return "; ".join([*described, *([f"and {plural(rest, 'more column')}"] if rest else [])])

    def ways_out(columns: Sequence[Any]) -> str:
        flag = join_names([str(name) for name in columns])
        it, place = ("it", "its place") if len(columns) == 1 else ("them", "their place")
        return (
            f"Leave {it} out (--drop {flag}) or put random numbers in {place} (--renumber {flag})"
        )

    open_columns = [name for name in unnamed if _is_nearly_all_different(looks[name])]
    if open_columns:
        are, it = ("has", "it") if len(open_columns) == 1 else ("have", "them")
        raise InputError(
            f"A column that points to single records must have a role; {names(open_columns, _NAMED)} {are} "
            f"none ({facts(open_columns)}). {ways_out(open_columns)}, or, if an attacker may know {it}, say "
            f"so: --known {join_names([str(name) for name in open_columns])}."
        )
    claimed = [name for name in plan.confidential if _points(name, looks[name])]
    if claimed:
        raise InputError(
            "A column that points to single records can never be confidential: somebody always knows whose "
            f"record it is. {facts(claimed)}. {ways_out(claimed)}."
        )


def _left_unnamed(plan: Plan, table: Sequence[Any]) -> list[Any]:
    """List columns that a plan leaves as they are without naming them."""
    named = {*plan.known, *plan.all_strata, *plan.units}
    named |= set() if plan.weight is None else {plan.weight.column}
    return [name for name in plan.roles(table).known if name not in named]


def _is_nearly_all_different(looks: Guess) -> bool:
    """Return whether a column alone identifies single records."""
    return looks.points_to_records and looks.distinct >= _NEARLY_ALL * looks.present


def _points(name: Any, looks: Guess) -> bool:
    """Return whether a column is an id of few records each, a name of people, or a text."""
    if _is_nearly_all_different(looks):
        return True
    if looks.looks_like == "name or text":
        return any(word in say.NAME for word in say.words(name))
    return looks.points_to_records and looks.present <= _RECORDS_OF_AN_ID * looks.distinct


def _codes_as_nominal(table: Frame, plan: Plan) -> dict[str, Any]:
    """Give named codes the kind nominal, and numbers stored as text the kind number, unless they have one.

    Returns the changed fields of the plan.
    """
    may_be_codes = set()
    for name in (name for block in plan.blocks for name in block.columns or ()):
        setting = plan.columns.get(name, Column())
        says_the_kind = (setting.kind, setting.transform, setting.coarsen) != (None, None, None)
        digits = table.is_numeric(name) or table.kind_in_words(name) == "text"
        if digits and not says_the_kind and name not in plan.related:
            may_be_codes.add(name)
    if not may_be_codes:
        return {}
    columns, notes = dict(plan.columns), dict(plan.notes)
    for name, looks in guess(table, k=plan.k, names=may_be_codes).items():
        # Numbers that never repeat stand for nothing that records could share.
        is_code = looks.looks_like == "code" and looks.distinct < looks.present
        in_text = looks.looks_like == "number stored as text" and looks.kind == "number"
        if (is_code or (in_text and not looks.codes)) and not looks.unreadable:
            columns[name] = columns.get(name, Column()).of_kind(looks.kind)
            notes[name] = looks.reason
    return {"columns": columns, "notes": notes}


def _with_roles(plan: Plan, guesses: Mapping[Any, Guess]) -> Plan:
    """Give every column without a role in the plan that of the draft."""
    protected, drop, codes = [], list(plan.drop), dict(plan.missing.codes)
    columns, unit, weight = dict(plan.columns), plan.unit, plan.weight
    known, noun = list(plan.known), plan.unit_section.name
    wanted = {*plan.columns, *plan.missing.codes, *plan.related}
    notes = {}
    for name, looks in guesses.items():
        if name in plan.with_other_role:
            continue
        notes[name] = looks.reason
        if name in wanted or looks.role == "protect":
            protected.append(name)
            if (setting := _described(plan, name, looks)) is not None:
                columns[name] = setting
            if looks.codes and name not in wanted:
                codes[name] = looks.codes
        elif looks.role == "weight" and not plan.blocks[0].per_column:
            weighs = find(plan.blocks[0].method).weighted  # other methods group without it
            weight = Weight(name, grouping="weighted" if weighs else "plain")
        elif looks.role == "unit":
            unit, noun = name, looks.stands_for
            drop.append(name)
        else:
            (known if looks.role == "known" else drop).append(name)
    if not protected:
        first = [f"{shown(name)}: {looks.reason}" for name, looks in guesses.items()][:_SHOWN]
        more = len(guesses) - len(first)
        tail = f" (and {more} more columns)" if more > 0 else ""
        raise InputError(
            "Without named columns everything is protected but identifiers, names, texts and weights; this "
            f"table has nothing else{tail}. {' '.join(first)} Name the columns to protect: columns=[...] or "
            "--columns, with their kinds."
        )
    elsewhere = {*drop, *plan.renumber, *plan.confidential, *plan.known, *plan.all_strata}
    if unit is not None and unit not in elsewhere:
        drop.append(unit)
    return replace(
        plan,
        blocks=(replace(plan.blocks[0], columns=tuple(protected)),),
        columns=columns,
        drop=tuple(drop),
        known=tuple(known),
        unit_section=replace(plan.unit_section, column=unit, name=noun),
        weight=weight,
        missing=replace(plan.missing, codes=codes),
        notes=notes,
    )


def _described(plan: Plan, name: Any, looks: Guess) -> Column | None:
    """Return the settings of a protected column; None if its type or the plan implies them."""
    setting = plan.columns.get(name, Column())
    implied = looks.looks_like == "quantity" and looks.kind != "spiked"
    if setting.kind is not None or looks.kind is None or implied or name in plan.related:
        return None
    if setting.coarsen is not None and looks.kind not in setting.coarsen.kinds:
        return None
    if looks.looks_like == "date" and looks.kind == "integer" and setting.round is None:
        return setting.of_kind("integer", round="nearest")  # a year stays one
    if looks.kind == "spiked" and setting.release is None:
        return setting.of_kind("spiked", release="spike")
    return setting.of_kind(looks.kind, **({"levels": looks.levels} if looks.levels else {}))


def _with_policy(
    table: Frame, plan: Plan, missing_words: Sequence[str], coded: Mapping[Any, Coded]
) -> Plan:
    """Choose the policy majority if groups that share a pattern would blank too much.

    A plan with other settings than the defaults is not changed.
    """
    if replace(plan.missing, codes={}) != Missing() or plan.relations:
        return plan
    (block,) = plan.blocks
    # Where values are missing, and with which code, as in the grouping.
    states = {
        name: column_of(table, plan, name, missing_words, coded).states
        for name in block.columns or ()
    }
    strata, blanked = np.zeros(len(table), dtype=np.int64), 0.0
    if plan.strata_of(block).columns:
        strata = strata_of(table, plan.strata_of(block).columns)
    unit = plan.unit_of(block).column
    units = None if unit is None else codes_as_written(table, unit, from_csv=False)
    for columns in [[name] for name in states] if block.per_column else [[*states]]:
        together = np.column_stack([states[name] for name in columns])
        if together.any():
            joined = join_patterns(together, strata, block.k or 1, units)
            blanked = max(blanked, joined.blanked / together.size)
    if blanked <= plan.missing.most:
        return plan
    first = next(name for name, state in states.items() if state.any())
    notes = dict(plan.notes)
    notes[first] += (
        " Many patterns of missing values are rare: to have groups share one, "
        f"{percent(100 * blanked)} of the values would be blanked. So groups release what most of their "
        'records have, a value or none (majority). To give no record a value that it lacks, say "pattern" '
        "with a larger most, or protect fewer columns."
    )
    return replace(plan, missing=replace(plan.missing, policy="majority"), notes=notes)
