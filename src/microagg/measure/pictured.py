"""What pictures of both tables show, as counts: no bin with fewer than k records, no end of the original."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.groups import Floats, Labels

__all__ = ["class_sizes", "correlations", "distribution"]

_BINS = 24
_MIDDLE = (0.01, 0.99)


def distribution(x: Floats, y: Floats, k: int) -> dict[str, Any]:
    """Counts of both columns in common bins of at least k original and protected records.

    Bins are cut by protected values alone, between their quantiles 1 and 99 %; the outermost
    are open, so that no end of the original shows.
    """
    cuts = bin_cuts(y)
    before, after = (
        np.bincount(np.searchsorted(cuts, v, "right"), minlength=len(cuts) + 1) for v in (x, y)
    )
    keep, counts = [], [[0, 0]]
    for cut, a, b in zip([*cuts, None], before.tolist(), after.tolist(), strict=True):
        counts[-1][0] += a
        counts[-1][1] += b
        if cut is not None and min(counts[-1]) >= k:
            keep.append(float(cut))
            counts.append([0, 0])
    while len(counts) > 1 and min(counts[-1]) < k:  # what is left goes to the bin before
        a, b = counts.pop()
        counts[-1][0] += a
        counts[-1][1] += b
        keep.pop()
    return {
        "cuts": keep,
        "before": [a for a, _ in counts],
        "after": [b for _, b in counts],
    }


def bin_cuts(y: Floats) -> Floats:
    """Cut the middle of a protected column into bins of equal width."""
    low, high = np.quantile(y, _MIDDLE)
    if not high > low:
        return np.array([low])
    return np.unique(np.linspace(low, high, _BINS + 1))


def correlations(before: Floats, after: Floats) -> dict[str, Any]:
    """Both matrices and their difference."""
    return {
        "before": before.tolist(),
        "after": after.tolist(),
        "difference": (after - before).tolist(),
    }


def class_sizes(sizes: Labels) -> list[dict[str, int]]:
    """How many classes there are of each size."""
    found, counts = np.unique(sizes, return_counts=True)
    return [
        {"size": int(size), "classes": int(count)}
        for size, count in zip(found, counts, strict=True)
    ]
