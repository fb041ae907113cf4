"""Complete a plan for a table that is read in parts: by its first records, as a table in memory is by all.

What the draft says about all records, that a column has one value throughout, is looked up in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.draft import Completed, complete
from microagg.errors import InputError
from microagg.plan import Plan
from microagg.scale_out.counting import row_keys
from microagg.tables.frames import MISSING_WORDS, Frame
from microagg.words import names

__all__ = ["DRAFTED", "check_constant", "complete_from_head", "no_records", "some_keys"]

DRAFTED = 1 << 16  # records by which columns are judged


def no_records() -> InputError:
    """Say that there is nothing to protect."""
    return InputError(
        "A table to protect has at least one record; this one has none. Check that it was read whole."
    )


def complete_from_head(
    head: pa.Table, plan: Plan, is_csv: bool = False
) -> tuple[Completed, list[Any]]:
    """Fill in what a plan leaves open by the first records; also name the columns kept as constant ones."""
    found = complete(Frame(head), plan, MISSING_WORDS if is_csv else ("",))
    drafted = set(found.plan.known) - set(plan.known) if found.guesses else set()
    return found, [name for name in head.column_names if name in drafted]


def some_keys(table: pa.Table, columns: Sequence[Any]) -> list[set[int]]:
    """Keys of the values of each column: of all, or of some if there are several."""
    return [set(np.unique(row_keys([table[name]])[:, 0])[:2].tolist()) for name in columns]


def check_constant(columns: Sequence[Any], found: Iterable[Sequence[set[int]]]) -> None:
    """Refuse a draft that keeps columns as constant if they are not; ``found`` has the keys of each batch."""
    seen: list[set[int]] = [set() for _ in columns]
    for batch in found:
        for all_keys, own in zip(seen, batch, strict=True):
            all_keys |= own
    varying = [name for name, keys in zip(columns, seen, strict=True) if len(keys) > 1]
    if varying:
        has, it = ("has", "it") if len(varying) == 1 else ("have", "them")
        raise InputError(
            f"Without named columns, columns are judged by the first {DRAFTED:,} records; {names(varying)} "
            f"{has} one value there and others later. Say what to do: name a kind to protect {it} "
            f"(--kind), leave {it} out (--drop), or keep {it} although an attacker may know {it} (--known)."
        )
