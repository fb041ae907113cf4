"""Check the records, k and the scale before any grouping; then scale the records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from microagg.base.typing import Floats
from microagg.encode.scale import fit_scale, total_squares
from microagg.encode.weights import as_weights
from microagg.plan.settings import check_k, check_scale
from microagg.tables.matrix import as_matrix

__all__ = ["Prepared", "prepare"]


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
    check_scale(scale)
    values = as_matrix(X)
    k = check_k(k, len(values))
    return Prepared(values, k, scale, as_weights(weights, len(values)))
