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
from microagg.plan.column import QUANTITIES
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
        others = [*_other_kinds(records, plan, name), *_recodings(records, plan, name, guessed)]
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


def _other_kinds(records: Table, plan: Plan, name: Any) -> list[str]:
    """List other kinds that fit a protected number: spiked where many records have the same, or not."""
    setting = plan.column(name)
    if setting.kind not in (None, *QUANTITIES, "spiked") or not records.frame.is_numeric(name):
        return []
    if setting.coarsen is not None or not role_of(plan, name).startswith("block-"):
        return []
    if setting.kind == "spiked":
        return ["kind number"]
    values = records.frame.doubles(name)
    is_zero = values[~np.isnan(values)] == 0
    many = setting.kind != "date" and len(is_zero) and is_zero.mean() >= _LEAST_ZEROS
    return ["kind spiked"] if many else []


def _recodings(records: Table, plan: Plan, name: Any, guessed: Guess) -> list[str]:
    """List decisions that make a column coarser: ten bands, rare levels merged, prefixes of codes, months.

    A column that is dropped, confidential or recoded already gets none.
    """
    setting = plan.column(name)
    if setting.coarsen is not None or name in plan.drop or name in plan.confidential:
        return []
    kind = setting.kind or guessed.kind or "number"
    if kind in ("number", "integer") and records.frame.is_numeric(name):
        values = records.frame.doubles(name)
        low, high = np.nanquantile(values, [0.05, 0.95]) if len(values) else (0.0, 0.0)
        width = (high - low) / _BANDS
        if not 0 < width < math.inf:
            return []
        power = 10.0 ** math.floor(math.log10(width))
        width = max(step * power for step in (1, 2, 5) if step * power <= width)
        if width < 2 and bool((values[~np.isnan(values)] % 1 == 0).all()):
            return []
        return [f"coarsen bands:{int(width) if width >= 1 else width}"]
    if kind not in ("nominal", "ordinal"):
        return ["coarsen to:month"] if kind == "date" else []
    codes, levels = records.frame.categories(name)
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    fewest = 2 if kind == "nominal" else 1  # one rare level of an order has a neighbour to join
    coarser = []
    for rare in sorted({2 * plan.k, len(codes) // _RARE_OF}):
        is_rare = (counts > 0) & (counts < rare)
        if rare > 1 and is_rare.sum() >= fewest and (counts >= rare).any():
            coarser.append(f"coarsen rare:{rare}")
    texts = [level for level in levels if isinstance(level, str)]
    length = len(texts[0]) if texts else 0
    # Codes are all equally long and have a digit.
    if kind == "nominal" and all(len(t) == length and any(map(str.isdigit, t)) for t in texts):
        left = {cut: len({text[:cut] for text in texts}) for cut in range(length - 1, 0, -1)}
        coarser += [f"coarsen prefix:{cut}" for cut, n in left.items() if 1 < n < len(texts)]
    return coarser


def _check_stratum(records: Table, plan: Plan) -> None:
    """Refuse strata with fewer than k units; only the whole table shows them."""
    written = None if records.text is None else Frame(records.text)
    strata = strata_of(records.frame, plan.strata.columns, written)
    if share_below(strata, plan.k, records.units(plan)):
        who = plan.words_of_unit(next(iter(plan.units), None))
        raise InputError(f"some strata have fewer than {who.counted(plan.k)}")
