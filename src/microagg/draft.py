"""The draft: a plan made of what the columns of a table look like, to be edited.

Quantities are protected, those with missing values too. Everything else is left, with a reason that says
what the column looks like and by which kind it could be protected; nothing is dropped by itself. What is
drafted can be carried out as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.encode.missing import join_rare
from microagg.encode.strata import strata_of
from microagg.errors import InputError, shown
from microagg.looks import Guess, guess
from microagg.plan import Block, Missing, Plan
from microagg.tables.exact import codes_as_written
from microagg.tables.frames import Frame
from microagg.tables.variable import variable_of
from microagg.words import percent

__all__ = ["Guess", "completed", "draft", "guess", "quantities"]

_K = 5  # where nobody says it
_SHOWN = 12  # columns named in the message that finds no quantity


def draft(frame: Any, *, k: int = _K) -> Plan:
    """Guess a plan from a table: its quantities are protected, everything else is left as known.

    Parameters
    ----------
    frame
        A data frame of pandas, polars or pyarrow.
    k
        The least number of records that share their values.

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
    >>> plan.blocks[0].columns
    ('income',)
    >>> plan.notes["income"]
    'A quantity: numbers with decimals, 6 distinct in 6 records.'
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    return completed(table, Plan(blocks=(Block(k=k),)))


def completed(table: Frame, plan: Plan) -> Plan:
    """Fill in what a plan leaves open by what a table looks like: columns, k, and how to treat gaps.

    Patterns of missing values that few records have are joined by blanking values. Where that would blank
    more than the plan allows, the draft takes the policy ``majority``, so that the plan can be carried out,
    and says so in a note; a plan that asks for anything else than the defaults is left as it is.
    """
    guesses = guess(table)
    notes = {name: found.reason for name, found in guesses.items()}
    blocks = [replace(block, k=_K if block.k is None else block.k) for block in plan.blocks]
    if blocks[0].columns is None:
        chosen = tuple(quantities(guesses, plan.spoken_for))
        blocks = [replace(blocks[0], columns=chosen)]
    whole = replace(plan, blocks=tuple(blocks), notes=notes)
    whole.roles(table.names)  # names that the table does not have are refused
    if replace(whole.missing, codes={}) != Missing() or whole.relations:
        return whole
    blanked = max(_blanked(table, whole, block) for block in blocks)
    if blanked <= whole.missing.most:
        return whole
    first = next(
        name
        for block in blocks
        for name in block.columns or ()
        if variable_of(table, name, whole.column(name)).missing.any()
    )
    notes[first] += (
        " Many patterns of missing values are rare: to have groups share one, "
        f"{percent(100 * blanked)} of the values would be blanked. So groups release what most of their "
        'records have, a value or none (majority); "pattern" with a larger most, or fewer columns, gives '
        "no record a value that it does not have."
    )
    return replace(whole, missing=replace(whole.missing, policy="majority"), notes=notes)


def _blanked(table: Frame, plan: Plan, block: Block) -> float:
    """Share of the values of a block that joining its rare patterns of missing values would blank."""
    sets: list[Sequence[Any]] = [block.columns or ()]
    if block.per_column:
        sets = [[name] for name in block.columns or ()]
    n, worst = len(table), 0.0
    strata = np.zeros(n, dtype=np.int64)
    if plan.strata_of(block).columns:
        strata, _ = strata_of(table, plan.strata_of(block).columns)
    unit = plan.unit_of(block).column
    units = None if unit is None else codes_as_written(table, unit, is_text=False)
    for names in sets:
        states = np.column_stack(
            [
                variable_of(table, name, plan.column(name), plan.missing.codes.get(name, ())).states
                for name in names
            ]
        )
        if states.any():
            found = join_rare(states, strata, block.k or 1, units)
            worst = max(worst, found.blanked / states.size)
    return worst


def quantities(guesses: Mapping[Any, Guess], aside: Collection[Any] = ()) -> list[Any]:
    """Return the columns to protect, those aside that have another role; refuse if there is none."""
    found = [
        name for name, column in guesses.items() if column.role == "protect" and name not in aside
    ]
    if not found:
        raise _no_quantity(guesses)
    return found


def _no_quantity(guesses: Mapping[Any, Guess]) -> InputError:
    found = [f"{shown(name)}: {found.reason}" for name, found in list(guesses.items())[:_SHOWN]]
    more = len(guesses) - len(found)
    tail = f" (and {more} more columns)" if more > 0 else ""
    return InputError(
        "Without named columns the quantities of a table are protected; none of its columns looks like "
        f"one that can be{tail}. {' '.join(found)} Name those to protect, categories too: columns=[...] or "
        "--columns, with their kinds where the reasons above say so."
    )
