"""The caution about columns whose values cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microagg.base.formatting import names as listed_names
from microagg.drafting.guess import Guess
from microagg.evidence.sentences import Caution
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

_NAMED = 12  # columns in a sentence


def about_unreadable(table: Frame, guesses: Mapping[Any, Guess], plan: Plan) -> tuple[Caution, ...]:
    """Say which columns the draft drops since their values cannot be read, and where the fault is."""
    left = [name for name, one in guesses.items() if one.unreadable and name in plan.notes]
    if not left:
        return ()
    described, hints = [], set()
    for name in left[:_NAMED]:
        what: str = guesses[name].looks_like
        if what == "quantity":
            what = "infinite values"
        cells = table.odd_numbers(name) if what == "number stored as text" else None
        described.append(f"{listed_names([name])} ({what if cells is None else cells.in_words()})")
        hints.add("" if cells is None else cells.hint)
    more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    way_out = "Correct them to have them protected; the plan's notes say how."
    return (
        Caution(
            "warning",
            tuple(left),
            f"The draft drops columns whose values cannot be read: {', '.join(described)}{more}.",
            " ".join([*sorted(hints), way_out]).strip(),
        ),
    )
