"""Other decisions that fit each column of a table: roles, recodings and importance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from microagg.drafting.guess import Guess
from microagg.encode.strata import strata_of
from microagg.engines.memory.table import Table
from microagg.errors import InputError, MicroaggError
from microagg.measure.classes import share_below
from microagg.plan.change_role import ROLE_WORDS, UNPRICED, decided, role_of
from microagg.plan.column import Column
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

IMPORTANCES = (2.0, 4.0, 8.0, 16.0, 32.0)
"""How much columns that analyses need may count."""
_MOST_STRATA = 30
_BANDS = 10  # of a recoding that is priced


def decisions(
    records: Table, plan: Plan, guesses: Mapping[Any, Guess]
) -> dict[tuple[Any, str], Plan | str]:
    """List the other decisions that fit each column: the plan with each, or why it cannot be made."""
    found: dict[tuple[Any, str], Plan | str] = {}
    for name, guessed in guesses.items():
        role = role_of(plan, name)
        if role in UNPRICED:
            continue
        points = guessed.role in ("drop", "unit")  # to single records
        if points:
            continue
        others = recodings(records, plan, name, guessed)
        if (larger := more_important(plan, name)) is not None:
            others.append(f"importance {larger:g}")
        for decision in (*others, "protect", "stratum", "drop", "confidential"):
            if decision == ROLE_WORDS.get(role, "protect"):
                continue
            if decision == "stratum" and not may_be_stratum(records, name):
                continue
            try:
                changed = decided(plan, name, decision, guessed.kind)
                if decision == "stratum":
                    check_stratum(records, changed)
                found[name, decision] = changed
            except MicroaggError as error:
                found[name, decision] = str(error)
    return found


def more_important(plan: Plan, name: Any) -> float | None:
    """Return a larger importance for a column of an analysis; None: there is none to try."""
    protected = any(name in (block.columns or ()) for block in plan.blocks)
    if not protected or name not in plan.analysed:
        return None
    now = plan.columns.get(name, Column()).importance
    return next((one for one in IMPORTANCES if one > now), None)


def recodings(records: Table, plan: Plan, name: Any, guessed: Guess) -> list[str]:
    """List decisions that make a column coarser: ten bands, rare levels together, or dates by month.

    A column that is dropped, confidential or recoded already gets none.
    """
    setting = plan.columns.get(name, Column())
    if setting.coarsen is not None or name in plan.drop or name in plan.confidential:
        return []
    kind = setting.kind or guessed.kind or "number"
    if kind in ("number", "integer") and records.frame.is_numeric(name):
        values = records.frame.doubles(name)
        low, high = np.nanquantile(values, [0.05, 0.95]) if len(values) else (0.0, 0.0)
        width = _round_number((high - low) / _BANDS)
        whole = bool((values[~np.isnan(values)] % 1 == 0).all())
        if width <= 0 or (whole and width < 2):
            return []
        width = int(width) if width >= 1 else width
        return [f"coarsen bands:{width}"]
    if kind == "nominal":
        codes, levels = records.frame.categories(name)
        rare = 2 * plan.k
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        some = bool(((counts > 0) & (counts < rare)).any()) and bool((counts >= rare).any())
        return [f"coarsen rare:{rare}"] if some else []
    return ["coarsen to:month"] if kind == "date" else []


def _round_number(value: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, 50 … (or .5, .2 …) up to a value; 0 for none.

    >>> _round_number(7.3), _round_number(1234.0), _round_number(0.0)
    (5.0, 1000.0, 0.0)
    """
    if not 0 < value < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(max(step * power for step in (1, 2, 5) if step * power <= value))


def may_be_stratum(records: Table, name: Any) -> bool:
    """Return whether a column has a few different values, and none is missing."""
    codes, levels = records.frame.categories(name)
    return bool((codes >= 0).all()) and 1 < len(levels) <= _MOST_STRATA


def check_stratum(records: Table, plan: Plan) -> None:
    """Refuse strata with fewer than k units; only the whole table shows them."""
    written = None if records.text is None else Frame(records.text)
    strata, _ = strata_of(records.frame, plan.strata.columns, written)
    if share_below(strata, plan.k, records.units(plan)):
        who = plan.words_of_unit(next(iter(plan.units), None))
        raise InputError(f"some strata have fewer than {who.counted(plan.k)}")
