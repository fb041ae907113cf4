"""Utility: how much of the original a protected table still tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from microagg.encode.scale import fit_scale
from microagg.measure.pairs import Pair, pair

__all__ = ["Utility", "utility"]


@dataclass(frozen=True)
class Utility:
    """Measures of loss; each is 0 for an untouched table."""

    information_loss: float
    """IL = 100·SSE/SST over z-scored columns, 0 to 100 for group means; lower is better."""
    by_column: Mapping[Any, float]
    """The same for each column alone."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "information_loss": self.information_loss,
            "by_column": {str(name): loss for name, loss in self.by_column.items()},
        }


def utility(original: Any, protected: Any, columns: Iterable[Any] | None = None) -> Utility:
    """Measure what the protected table lost.

    Parameters
    ----------
    original, protected : frames or array-likes with the same rows in the same order
    columns : names to compare; by default the numeric columns that both have

    Returns
    -------
    Utility
        ``information_loss`` = 100·Σ(x−x')²/Σ(x−x̄)² with every column divided by the
        standard deviation of its original; columns that are constant do not count.

    >>> round(utility([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5]).information_loss, 6)
    20.0
    """
    return utility_of(pair(original, protected, columns))


def utility_of(both: Pair) -> Utility:
    """Measure the loss of a pair of matrices."""
    scaling = fit_scale(both.original)
    original = scaling.apply(both.original)
    moved = original - scaling.apply(both.protected)
    lost, total = np.einsum("ij,ij->j", moved, moved), np.einsum("ij,ij->j", original, original)
    share = np.divide(100 * lost, total, out=np.zeros_like(lost), where=total > 0)
    return Utility(
        information_loss=float(100 * lost.sum() / total.sum()) if total.sum() > 0 else 0.0,
        by_column=dict(zip(both.names, share.tolist(), strict=True)),
    )
