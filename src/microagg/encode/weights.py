"""The weight of each record: checked, and brought to a mean of 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.errors import InputError
from microagg.tables.matrix import as_matrix, is_frame

__all__ = ["as_weights"]

# Where one record weighs this many times as much as another, sums of weights lose the lighter one.
_WIDEST = 1e9


def as_weights(weights: Any, n: int) -> Floats | None:
    """Return the weights of n records, of mean 1; None where all are equal: these weigh nothing.

    Parameters
    ----------
    weights : array-like of shape (n,), or None
        Finite numbers above 0, in any unit. Never changed.
    n : int

    >>> as_weights([2, 4, 6], 3).tolist(), as_weights([7, 7, 7], 3)
    ([0.5, 1.0, 1.5], None)
    """
    if weights is None:
        return None
    given = _one_column(weights, n)
    wrong = np.flatnonzero(~(given > 0) | np.isinf(given))
    if len(wrong):
        value = given[wrong[0]]
        fact = "none" if np.isnan(value) else "an infinite one" if value > 0 else "one of 0 or less"
        raise InputError(
            f"Weights must be finite numbers above 0; row {wrong[0] + 1} (the first record is row 1) "
            f"has {fact}. Leave out records that shall not count, or give each a weight."
        )
    least, most = float(given.min()), float(given.max())
    if least == most:
        return None
    if most / least > _WIDEST:
        raise InputError(
            f"The largest weight may be {_WIDEST:g} times the least at most, since sums of weights lose "
            f"lighter records; it is {most / least:.3g} times. The least is in row "
            f"{int(given.argmin()) + 1} (the first record is row 1): raise it, or leave that record out."
        )
    # A power of two keeps the sum from overflowing or vanishing, and is exact.
    near_one = np.ldexp(given, -int(np.frexp(most)[1]))
    scaled: Floats = near_one / near_one.mean()
    return scaled


def _one_column(weights: Any, n: int) -> Floats:
    """Turn the weights into doubles, NaN for missing ones; refuse what is no column of n numbers."""
    if is_frame(weights):
        array = as_matrix(weights)
        array = array[:, 0] if array.shape[1] == 1 else array
    else:
        if isinstance(weights, np.ma.MaskedArray):
            weights = np.ma.filled(weights.astype(np.float64), np.nan)
        array = _doubles(weights)
    if array.shape != (n,):
        raise InputError(
            f"Weights must be {n} numbers, one for each record; got shape {array.shape}. Pass them in "
            "the order of the rows."
        )
    return array


def _doubles(weights: Any) -> Floats:
    """Convert to doubles; None counts as missing."""
    array = np.asarray(weights)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    for i, value in enumerate(array.reshape(-1).tolist()):
        if isinstance(value, str | bytes | bool | complex) or not _is_real(value):
            raise InputError(
                f"Weights must be numbers; row {i + 1} (the first record is row 1) holds a value of type "
                f"{type(value).__name__}. Convert the column to numbers."
            )
    return array.astype(np.float64)


def _is_real(value: object) -> bool:
    """Whether a Python object is a number or a missing one."""
    if value is None:
        return True
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True
