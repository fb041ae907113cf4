"""What pictures of both tables show, as counts: no bin with fewer than k records, no end of the original."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.groups import Floats, Labels

__all__ = ["bin_cuts", "class_sizes", "correlations", "distribution", "ends"]

_BINS = 24
_MIDDLE = (0.01, 0.99)


def distribution(x: Floats, y: Floats, k: int) -> dict[str, Any]:
    """Counts of both columns in common bins of at least k original and protected records.

    Bins are cut by protected values alone; the outermost are open, so that no end of the original
    shows. ``ends`` are the least and the greatest protected value, which are in the file.
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
        "ends": ends(y),
        "before": [a for a, _ in counts],
        "after": [b for _, b in counts],
    }


def bin_cuts(y: Floats) -> Floats:
    """Cut a protected column into bins of equal width; what lies far out goes to the open ones.

    They reach from the quantile 1 % to 99 %, or to the end of the column where that is no farther off
    than a bin is wide: amounts that start at 0 have bins that start there. No cut is at an end.
    """
    least, most = ends(y)
    low, high = np.quantile(y, _MIDDLE)
    if not high > low:
        return np.array([low])
    width = (high - low) / _BINS
    low = least if low - least <= width else low
    high = most if most - high <= width else high
    cuts = np.unique(np.linspace(low, high, _BINS + 1))
    return cuts[(cuts > least) & (cuts < most)]


def ends(y: Floats) -> list[float]:
    """The least and the greatest value."""
    return [float(y.min()), float(y.max())]


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
