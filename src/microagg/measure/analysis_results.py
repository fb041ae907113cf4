"""Results of the user's analyses, and which of their estimates can be published together.

The overlap of two intervals is the mean of the shares of each that the other covers (Karr, Kohnen, Oganian,
Reiter & Sanil 2006): J = ½·[(min(u,u')−max(l,l'))/(u−l) + (min(u,u')−max(l,l'))/(u'−l')].
1: the same interval; 0: they touch; below 0: apart, the further the lower. An analysis has moved by 1 − J:
by this share of its interval, if both are equally wide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from microagg.base.formatting import number, share
from microagg.base.typing import Labels
from microagg.kernels.labels import combine, group_sizes

LEAST = 10
"""Least number of records of a group that is reported, or k if that is more. From the mean and interval of a
few whole numbers each of them could be computed."""


@dataclass(frozen=True)
class Estimate:
    """One number of an analysis with its 95 % intervals in both tables."""

    name: str
    records: int
    original: float
    original_interval: tuple[float, float]
    protected: float
    protected_interval: tuple[float, float]
    overlap: float


@dataclass(frozen=True)
class Analysis:
    """An analysis and what it gives in both tables."""

    formula: str
    kind: str
    """The statistic: regression, mean, quantile, share, gini or poverty."""
    estimates: list[Estimate]
    left_out: int
    """Groups with fewer than two records, which have no interval, and records of no group as one; also
    categories that only one of the tables has."""
    response: str = ""
    """The column that is explained; of quantiles and shares, these of it."""
    _groups: Labels | None = field(default=None, repr=False, compare=False)
    """The place of each original record's group among the estimates; −1: left out. Of the records
    that have a value to explain, which are the same for all analyses of a column. None: of a regression."""

    @property
    def overlap(self) -> float:
        """Mean overlap of the estimates' intervals; 1 is best."""
        return float(np.mean([estimate.overlap for estimate in self.estimates]))

    @property
    def worst(self) -> float:
        """Least overlap."""
        return float(min(estimate.overlap for estimate in self.estimates))

    @property
    def moved(self) -> float:
        """Share of its interval by which the analysis moved on average; 0 is best."""
        return 1 - self.overlap

    @property
    def before_after(self) -> str:
        """Its estimate in both tables, if it is one; empty if there are several.

        >>> one = Estimate("gini(x)", 9, 0.3, (0.2, 0.4), 0.25, (0.2, 0.3), 0.75)
        >>> Analysis("gini(x)", "gini", [one], 0).before_after
        '0.3 → 0.25'
        """
        if len(self.estimates) > 1:
            return ""
        put = share if self.kind in ("share", "poverty") else number
        return f"{put(self.estimates[0].original)} → {put(self.estimates[0].protected)}"

    @property
    def short(self) -> str:
        """The analysis and its estimate or, if it has several or quantiles, how far these moved."""
        moved = f"moved by {self.moved:.2f} of its 95 % intervals"
        value = "" if self.kind == "quantile" else self.before_after
        return f"{self.formula} {value or moved}"

    @property
    def words(self) -> str:
        """What became of the analysis: its estimate, if it is one, and how far intervals overlap."""
        only = self.before_after
        before_after = f"{only}; " if only else ""
        on_average = "" if only else f" on average, at worst {self.worst:.2f}"
        return (
            f"{self.formula}: {before_after}the 95 % intervals before and after overlap by "
            f"{self.overlap:.2f}{on_average} (1: the same, 0: they touch)"
        )

    def as_dict(self, keep: Collection[int] | None = None) -> dict[str, Any]:
        """Plain data for JSON: complete, for people who hold the originals, or only the estimates to keep."""
        shown = [e for i, e in enumerate(self.estimates) if keep is None or i in keep]
        return {
            "formula": self.formula,
            "kind": self.kind,
            "overlap": float(np.mean([e.overlap for e in shown])) if shown else None,
            "worst": min((e.overlap for e in shown), default=None),
            "left_out": self.left_out + len(self.estimates) - len(shown),
            "estimates": [asdict(estimate) for estimate in shown],
        }


def safe_together(analyses: Iterable[Analysis], least: int) -> list[dict[str, Any]]:
    """Return plain data of analyses, from which nothing about fewer than ``least`` records follows.

    Groups with fewer records are not reported. Their total would follow from the mean of all records, so that
    further groups are left out, the smallest first, until ``least`` records are in no reported group.
    Means of one column by several others could be subtracted from each other: an analysis is left out if it,
    together with those before, would separate fewer than ``least`` records. The same rule holds for the
    categories of shares, and for the values around quantiles.

    >>> few = [Estimate(name, 1, 0.0, (0, 0), 0.0, (0, 0), 1.0) for name in "ab"]
    >>> safe_together([Analysis("x by y", "mean", few, 0, "x", np.array([0, 1]))], 2)[0]["left_out"]
    2
    """
    safe = []
    apart: dict[str, Labels] = {}  # the sets of records that reported analyses of a column separate
    for analysis in analyses:
        groups = analysis._groups
        if groups is None:
            keep = {i for i, e in enumerate(analysis.estimates) if e.records >= least}
        else:
            keep = _reportable(analysis.estimates, groups, least)
            reported = np.where(np.isin(groups, list(keep)), groups, -1)
            before = apart.get(analysis.response, np.zeros_like(reported))
            together = combine([before, reported])
            if group_sizes(together).min() < least:
                keep = set()
            else:
                apart[analysis.response] = together
        safe.append({**analysis.as_dict(keep), "least": least})
    return safe


def _reportable(estimates: list[Estimate], groups: Labels, least: int) -> set[int]:
    """Choose the groups to report, such that no record or at least ``least`` are left over."""
    sizes = np.bincount(groups[groups >= 0], minlength=len(estimates))
    by_size = sorted(range(len(estimates)), key=lambda i: (sizes[i], i))
    keep = [i for i in by_size if min(sizes[i], estimates[i].records) >= least]
    left_over = len(groups) - int(sizes[keep].sum())
    while keep and 0 < left_over < least:
        left_over += int(sizes[keep.pop(0)])
    return set(keep)
