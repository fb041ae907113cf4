"""Columns of finite numbers, or a refusal that names the first row at fault."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.errors import InputError, shown


def check_finite(values: Floats, name: object) -> None:
    """Refuse ``values`` of a column, ``name``, with a missing or infinite one."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one pass without a mask; finite numbers may sum to infinity
            return
    missing = np.isnan(values)
    if missing.any():
        raise InputError(
            f"Columns to work on must have no missing values; column {shown(name)} has "
            f"{int(missing.sum())}, the first in {first_row(missing)}. Fill them, drop those records, or "
            "name the columns to work on without this one."
        )
    check_not_infinite(values, name)


def check_not_infinite(values: Floats, name: object, purpose: str = "work on") -> None:
    """Refuse ``values`` of a column, ``name``, with an infinite one; ``purpose`` says what it is for."""
    infinite = np.isinf(values)
    if infinite.any():
        raise InputError(
            f"Columns to {purpose} must hold finite numbers; column {shown(name)} has an infinite value, "
            f"the first in {first_row(infinite)}. Replace it or drop the record."
        )


def first_row(mask: Any) -> str:
    """Name the first row of a mask, for messages.

    >>> first_row([False, True])
    'row 2 (the first record is row 1)'
    """
    return f"row {int(np.argmax(mask)) + 1} (the first record is row 1)"
