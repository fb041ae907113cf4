"""Check the records, k, the scale and the weights before any grouping; then scale the records."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from microagg.base.formatting import plural
from microagg.base.typing import Floats
from microagg.encode.scale import fit_scale, total_squares
from microagg.errors import InputError, shown
from microagg.plan.checks import check_word
from microagg.plan.settings import SCALES, check_k
from microagg.tables.finite import first_row
from microagg.tables.frame import Frame
from microagg.tables.matrix import as_matrix, is_frame

# Where one record weighs this many times as much as another, sums of weights lose the lighter one.
_WIDEST = 1e9


@dataclass(frozen=True, eq=False)
class Prepared:
    """Records that can be grouped; scaled when first needed, since one column may need no scaling."""

    values: Floats  # (n, d) as given, maybe the caller's own array: nobody must write to it
    k: int
    scale: str
    weights: Floats | None = None  # (n,) of mean 1; None where all records weigh the same

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def scaled(self) -> Floats:
        """The records in the scaled space, C-contiguous of shape (n, d)."""
        return fit_scale(self.values, self.scale, self.weights).apply(self.values)

    @cached_property
    def sst(self) -> float:
        """Sum of (weighted) squared distances to the mean of all, in the scaled space."""
        return total_squares(self.values, self.scale, self.weights)


def prepare(X: Any, k: Any, scale: str, weights: Any = None) -> Prepared:
    """Refuse a scale, records or a k that break a rule; return them ready for any method.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
    k : int, 1 ≤ k ≤ n
    scale : {"zscore", "range", "robust", "none"}
    weights : array-like of shape (n,), optional
        Finite numbers above 0; equal ones are the same as none.

    >>> records = prepare([1, 2, 3], k=2, scale="zscore")
    >>> len(records), records.k, records.scaled.tolist(), records.sst
    (3, 2, [[-1.0], [0.0], [1.0]], 2.0)
    """
    check_word("scale", scale, SCALES)
    values = as_matrix(X)
    k = check_k(k, len(values))
    return Prepared(values, k, scale, as_weights(weights, len(values)))


def as_weights(weights: Any, n: int) -> Floats | None:
    """Return the weights of n records with a mean of 1; None if all are equal, or there are none.

    >>> as_weights([2, 4, 6], 3).tolist(), as_weights([7, 7, 7], 3)
    ([0.5, 1.0, 1.5], None)
    """
    if weights is None:
        return None
    if is_frame(weights):
        column = as_matrix(weights)
        column = column[:, 0] if column.shape[1] == 1 else column
    else:
        if isinstance(weights, np.ma.MaskedArray):
            weights = np.ma.filled(weights.astype(np.float64), np.nan)
        column = np.asarray(weights)
        values: list[Any] = [] if column.dtype.kind in "iuf" else column.reshape(-1).tolist()
        for i, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, Real | Decimal | None):
                raise InputError(
                    f"Weights must be numbers; row {i + 1} (the first record is row 1) holds a value of type "
                    f"{type(value).__name__}. Convert the column to numbers."
                )
        column = column.astype(np.float64)
    if column.shape != (n,):
        raise InputError(
            f"Weights must be {n} numbers, one for each record; got shape {column.shape}. Pass them in "
            "the order of the rows."
        )
    _check_weights(column)
    least, most = float(column.min()), float(column.max())
    if least == most:
        return None
    if most / least > _WIDEST:
        raise InputError(
            f"The largest weight may be {_WIDEST:g} times the least at most, since sums of weights lose "
            f"lighter records; it is {most / least:.3g} times. The least is in row "
            f"{int(column.argmin()) + 1} (the first record is row 1): raise it, or leave that record out."
        )
    # A power of two keeps the sum from overflowing or vanishing, and is exact.
    near_one = np.ldexp(column, -int(np.frexp(most)[1]))
    scaled: Floats = near_one / near_one.mean()
    return scaled


def weights_of(table: Frame, name: Any) -> Floats:
    """Read survey weights from the column ``name`` of ``table``, all of them finite and above 0."""
    if not table.is_numeric(name):
        raise InputError(
            f"Weights are numbers; column {shown(name)} holds {table.kind_in_words(name)}. Name another."
        )
    weights = table.doubles(name)
    _check_weights(weights, f"column {shown(name)}, ")
    return weights


def _check_weights(values: Floats, column: str = "") -> None:
    """Refuse weights that are missing, infinite or not above 0."""
    wrong = ~(np.isfinite(values) & (values > 0))
    if not wrong.any():
        return
    value = values[int(np.argmax(wrong))]
    fact = "missing" if np.isnan(value) else "infinite" if value > 0 else "not above 0"
    more = f", and so are {plural(int(wrong.sum()) - 1, 'other')}" if wrong.sum() > 1 else ""
    raise InputError(
        f"Weights are finite numbers above 0, one for each record; in {column}{first_row(wrong)}, the weight "
        f"is {fact}{more}. Correct the weights, or leave out those records."
    )
