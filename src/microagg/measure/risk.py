"""Risk: what someone who knows the true values of a record can still find out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from microagg.encode.scale import fit_scale
from microagg.groups import group_sizes
from microagg.measure.classes import classes
from microagg.measure.pairs import Pair, pair

__all__ = ["Risk", "risk"]


@dataclass(frozen=True)
class Risk:
    """Measures of disclosure risk; shares of records are from 0 to 1, lower is safer."""

    smallest_class: int
    """Records in the smallest class of equal protected values: the k that really holds."""
    mean_class: float
    """Records over classes."""
    unique_before: float
    """Share of records whose original values no other record has."""
    unique_after: float
    """The same in the protected table."""
    prosecutor: float
    """Largest chance to pick a given person's record out of its class: 1/smallest class."""
    marketer: float
    """Mean of that chance over all records: classes over records."""
    blind_guess: float
    """Share of records that an attacker links who guesses without looking: 1/n."""
    _pair: Pair = field(repr=False, compare=False)

    @cached_property
    def record_linkage(self) -> float:
        """Share of records that an attacker with the true values links to their protected twin.

        Computed when first asked for, since it needs a nearest-neighbour search.
        """
        return _record_linkage(self._pair)

    def as_dict(self, linkage: bool = True) -> dict[str, object]:
        """Plain data for JSON; without ``linkage`` its place holds None."""
        return {
            "smallest_class": self.smallest_class,
            "mean_class": self.mean_class,
            "unique_before": self.unique_before,
            "unique_after": self.unique_after,
            "prosecutor": self.prosecutor,
            "marketer": self.marketer,
            "record_linkage": self.record_linkage if linkage else None,
            "blind_guess": self.blind_guess,
        }


def risk(original: Any, protected: Any, columns: Iterable[Any] | None = None) -> Risk:
    """Measure what an attacker gains from the protected table.

    Parameters
    ----------
    original, protected : frames or array-likes with the same rows in the same order
    columns : names to compare; by default the numeric columns that both have

    Returns
    -------
    Risk
        ``record_linkage`` is distance-based: each original record is compared with all
        protected ones (z-scores of the original) and guessed to be one of the nearest; if
        its own is among m equally near ones, that counts 1/m.

    >>> r = risk([1.0, 2.0, 8.0, 9.0], [1.5, 1.5, 8.5, 8.5])
    >>> r.smallest_class, r.unique_before, r.unique_after, r.record_linkage
    (2, 1.0, 0.0, 0.5)
    """
    return risk_of(pair(original, protected, columns))


def risk_of(both: Pair) -> Risk:
    """Measure the risk of a pair of matrices."""
    n = len(both.original)
    before = group_sizes(classes(both.original))
    after = group_sizes(classes(both.protected))
    return Risk(
        smallest_class=int(after.min()),
        mean_class=n / len(after),
        unique_before=float(np.sum(before == 1) / n),
        unique_after=float(np.sum(after == 1) / n),
        prosecutor=float(1 / after.min()),
        marketer=len(after) / n,
        blind_guess=1 / n,
        _pair=both,
    )


# Distances that differ by less than this, relatively, count as equal: they do but for rounding.
_EQUAL = 1e-9
# Beyond this many standard deviations all is equally far, and squares do not overflow.
_FAR = 1e100


def _record_linkage(both: Pair) -> float:
    """Distance-based record linkage, m equally near records counted as 1/m."""
    from scipy.spatial import cKDTree

    scaling = fit_scale(both.original)
    original = scaling.apply(both.original)
    protected = np.clip(scaling.apply(both.protected), -_FAR, _FAR)
    own = classes(protected)
    points = protected[np.unique(own, return_index=True)[1]]
    sizes = group_sizes(own)
    tree = cKDTree(points)
    nearest, _ = tree.query(original, workers=-1)
    distance = np.sqrt(np.square(original - protected).sum(axis=1))
    reach = distance * (1 + _EQUAL)
    linked = np.flatnonzero(distance <= nearest * (1 + _EQUAL))
    rivals = tree.query_ball_point(original[linked], reach[linked], workers=-1)
    return float(sum(1 / sizes[near].sum() for near in rivals) / len(original))
