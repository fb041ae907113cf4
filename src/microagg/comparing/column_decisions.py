"""Other decisions that fit a table: kinds, recodings, importance and roles of columns, kinds of release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from microagg.drafting.guess import Guess
from microagg.encode.strata import strata_of
from microagg.engines.memory.table import Table
from microagg.errors import InputError, MicroaggError
from microagg.measure.classes import share_below
from microagg.plan.change_role import ROLE_WORDS, UNPRICED, decided, role_of
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

Decision = tuple[Any, str]
"""A column, or None for the whole plan, and a decision for :func:`microagg.plan.change_role.decided`."""

IMPORTANCES = (2.0, 4.0, 8.0, 16.0, 32.0)
"""How much columns that analyses need may count."""
_MOST_STRATA = 30
_BANDS = 10  # of a recoding that is priced
_RARE_OF = 50  # a level is rare, too, if fewer than one record in so many has it
_LEAST_ZEROS = 0.05  # share of zeros from which on a number may be spiked


def decisions(
    records: Table, plan: Plan, guesses: Mapping[Any, Guess]
) -> dict[Decision, Plan | str]:
    """List the other decisions that fit each column, those that keep it first.

    ``records`` are the whole table, ``plan`` has a role for every column, and ``guesses`` are of the columns
    to decide about. For each column and decision: the plan with it, or why it cannot be made.
    """
    plans: dict[Decision, Plan | str] = {}
    for name, guessed in guesses.items():
        role = role_of(plan, name)
        if role in UNPRICED or guessed.role in ("drop", "unit"):  # it points to single records
            continue
        others = _other_values(records, plan, name, guessed)
        if (larger := more_important(plan, name)) is not None:
            others.append(f"importance {larger:g}")
        codes, levels = records.frame.categories(name)
        is_short = bool((codes >= 0).all()) and 1 < len(levels) <= _MOST_STRATA
        for decision in (*others, "protect", *["stratum"] * is_short, "drop", "confidential"):
            if decision == ROLE_WORDS.get(role, "protect"):
                continue
            try:
                plans[name, decision] = changed = decided(plan, name, decision, guessed.kind)
                if decision == "stratum":
                    _check_stratum(records, changed)
            except MicroaggError as error:
                plans[name, decision] = str(error)
    return plans


def releases(plan: Plan) -> dict[Decision, Plan]:
    """List other kinds of release for the whole plan: values swapped, or categories of random members."""
    changed: dict[Decision, Plan] = {}
    for decision in () if plan.is_swapped else ("release swap", "categories draw"):
        what, value = decision.split()
        if any(getattr(block, what) != value for block in plan.blocks):
            with suppress(MicroaggError):  # a setting of the plan does not go with it
                changed[None, decision] = decided(plan, None, decision)
    return changed


def more_important(plan: Plan, name: Any) -> float | None:
    """Return a larger importance for a column of an analysis; None: there is none to try."""
    protected = any(name in (block.columns or ()) for block in plan.blocks)
    larger = (value for value in IMPORTANCES if value > plan.column(name).importance)
    return next(larger, None) if protected and name in plan.analysed else None


def _other_values(records: Table, plan: Plan, name: Any, guessed: Guess) -> list[str]:
    """List other kinds and coarser values that fit a column; none for one dropped, confidential or recoded.

    A protected number may be spiked where many values are 0. Coarser are ten bands, prefixes of codes,
    months, and levels of which the rare ones are merged.
    """
    setting, is_number = plan.column(name), records.frame.is_numeric(name)
    if setting.coarsen is not None or name in plan.drop or name in plan.confidential:
        return []
    others = list[str]()
    values = records.frame.doubles(name) if is_number else np.zeros(0)
    there = values[~np.isnan(values)]
    if is_number and role_of(plan, name).startswith("block-"):
        if setting.kind == "spiked":
            others.append("kind number")
        elif setting.kind in (None, "number", "integer") and len(there):
            others += ["kind spiked"] * bool((there == 0).mean() >= _LEAST_ZEROS)
    kind = setting.kind or guessed.kind or "number"
    if kind in ("number", "integer") and is_number:
        low, high = np.nanquantile(values, [0.05, 0.95]) if len(values) else (0.0, 0.0)
        width = (high - low) / _BANDS
        if not 0 < width < math.inf:
            return others
        power = 10.0 ** math.floor(math.log10(width))
        width = max(step * power for step in (1, 2, 5) if step * power <= width)
        if width < 2 and bool((there % 1 == 0).all()):
            return others
        return [*others, f"coarsen bands:{int(width) if width >= 1 else width}"]
    if kind not in ("nominal", "ordinal"):
        return [*others, "coarsen to:month"] if kind == "date" else others
    codes, levels = records.frame.categories(name)
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    fewest = 2 if kind == "nominal" else 1  # one rare level of an order has a neighbour to join
    for rare in sorted({2 * plan.k, len(codes) // _RARE_OF}):
        is_rare = (counts > 0) & (counts < rare)
        if rare > 1 and is_rare.sum() >= fewest and (counts >= rare).any():
            others.append(f"coarsen rare:{rare}")
    texts = [level for level in levels if isinstance(level, str)]
    length = len(texts[0]) if texts else 0
    # Codes are all equally long and have a digit.
    if kind == "nominal" and all(len(t) == length and any(map(str.isdigit, t)) for t in texts):
        left = {cut: len({text[:cut] for text in texts}) for cut in range(length - 1, 0, -1)}
        others += [f"coarsen prefix:{cut}" for cut, n in left.items() if 1 < n < len(texts)]
    return others


def _check_stratum(records: Table, plan: Plan) -> None:
    """Refuse strata with fewer than k units; only the whole table shows them."""
    written = None if records.text is None else Frame(records.text)
    strata = strata_of(records.frame, plan.strata.columns, written)
    if share_below(strata, plan.k, records.units(plan)):
        who = plan.words_of_unit(next(iter(plan.units), None))
        raise InputError(f"some strata have fewer than {who.counted(plan.k)}")
