"""Utility: how much of the original a protected table still tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.measure.analyses import Wanted, analyse
from microagg.measure.analysis_results import Analysis
from microagg.measure.both_tables import Pair, pair, replace_keeping_cache
from microagg.measure.column_losses import losses


@dataclass(frozen=True)
class Utility:
    """Measures of loss. Unless said otherwise, each is 0 for an untouched table, and lower is better.

    Columns are measured in units of the original's standard deviation s (denominator n−1);
    x is an original value, x' the protected one. Losses are of columns of any kind; what needs numbers
    is about numbers and dates, and about the records where both values are there. With weights
    every record counts by its weight. All but the losses are computed when first asked for.
    """

    information_loss: float
    """IL = 100·SSE/SST = 100·ΣΣ((x−x')/s)²/ΣΣ((x−x̄)/s)² of the released values x', rounding and
    categories included; 0 to 100 for group means. Under 5 is usually hard to notice, over 30 a coarse
    picture. See :mod:`microagg.measure.column_losses` for columns that are not numbers."""
    by_column: Mapping[Any, float]
    """The same for each column alone."""
    group_loss: float
    """The same if each group released its exact centroid: the loss to which bounds and published figures
    refer. It equals the information loss if exact means are released. Where a group releases its most
    frequent category, the information loss is at most twice this loss. If the groups are not known, see
    :mod:`microagg.measure.column_losses`."""
    group_loss_by_column: Mapping[Any, float]
    """The same for each column alone."""
    analyses: list[Analysis]
    """The user's own analyses on both tables, with the overlap of their confidence intervals: 1 is
    best, below 0 the intervals are apart."""
    _pair: Pair = field(repr=False, compare=False)

    @property
    def even_loss(self) -> float:
        """The information loss if every column counted alike, whatever its importance."""
        values = self._pair.original
        counts = np.count_nonzero(~np.isnan(values), axis=0) - 1.0
        varies = np.fmax.reduce(values, axis=0) > np.fmin.reduce(values, axis=0)
        inertia = np.where(varies, counts, 0.0)
        lost = float(np.array(list(self.by_column.values())) @ inertia)
        return lost / float(inertia.sum()) if varies.any() else 0.0

    @property
    def groups_known(self) -> bool:
        """Whether the loss of the groups is counted from the groups, and not assumed from equal values."""
        return self._pair.labels is not None

    @cached_property
    def changed(self) -> dict[Any, float]:
        """Share of records whose category changed, of each column of categories, where both are there."""
        both, shares = self._pair, {}
        for j in np.flatnonzero(both.is_category).tolist():
            there = both.both_there[:, j]
            w, wrong = both.row_weights[there], both.wrong_categories(j)[there]
            shares[both.names[j]] = float(w @ wrong / w.sum()) if len(w) else 0.0
        return shares

    @cached_property
    def blanked(self) -> dict[Any, int]:
        """Values of each column that are missing in the protected table only."""
        return self._count(np.isnan(self._pair.protected) & ~np.isnan(self._pair.original))

    @cached_property
    def filled(self) -> dict[Any, int]:
        """Values of each column that are missing in the original only."""
        return self._count(np.isnan(self._pair.original) & ~np.isnan(self._pair.protected))

    def _count(self, where: Any) -> dict[Any, int]:
        return dict(zip(self._pair.names, where.sum(axis=0).tolist(), strict=True))

    def without_records(self) -> Utility:
        """Return the same measures without the records, which may be pickled."""
        self.as_dict()  # computes all that is computed when first asked for
        return replace_keeping_cache(self, _pair=self._pair.without_records())

    def as_dict(self, full: bool = True) -> dict[str, object]:
        """Plain data for JSON; without ``full``, what costs no time alone."""

        def named(values: Mapping[Any, Any]) -> dict[str, Any]:
            return {str(name): value for name, value in values.items()}

        short = {
            "information_loss": self.information_loss,
            "group_loss": self.group_loss,
            "by_column": named(self.by_column),
        }
        if not full:
            return short
        mixed = {}
        if self._pair.variables is not None:  # more than complete numbers
            mixed = {
                "group_loss_by_column": named(self.group_loss_by_column),
                "changed": named(self.changed),
                "blanked": named(self.blanked),
                "filled": named(self.filled),
            }
        return {
            **short,
            **mixed,
            "analyses": [analysis.as_dict() for analysis in self.analyses],
        }


def utility(
    original: Any,
    protected: Any,
    columns: Iterable[Any] | None = None,
    *,
    analyses: Iterable[Wanted] = (),
    kinds: Mapping[Any, Any] | None = None,
    weights: Any = None,
) -> Utility:
    """Measure what the protected table lost.

    Parameters
    ----------
    original, protected : frames or array-likes with the same rows in the same order
    columns : names to compare, of any kind; by default the numeric columns that both have
    analyses : your own; their confidence intervals in both tables are compared: means by
        the groups of a column, ``"income by region"``, and linear regressions,
        ``"income ~ age + rent"``; or as lists, ``["income", "~", "age", "rent"]``
    kinds : of some columns, where their type does not say it: a word such as ``"nominal"``, the levels of
        an ordinal column from low to high, or a ``Column``
    weights : name of the original's column of weights; every record then counts by its weight

    Returns
    -------
    Utility
        ``information_loss`` = 100·Σ(x−x')²/Σ(x−x̄)² of the released values x', with every column divided
        by the standard deviation of its original; columns that are constant do not count.

    >>> u = utility([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5])
    >>> round(u.information_loss, 6)
    20.0
    """
    return utility_of(pair(original, protected, columns, kinds=kinds, weights=weights), analyses)


def utility_of(both: Pair, analyses: Iterable[Wanted] = ()) -> Utility:
    """Measure the loss of a pair of matrices."""
    if both.variables is None and both.labels is None and both.weights is None:
        released, released_shares = _plain_loss(both)
        within, within_shares = released, released_shares
    else:
        shares = losses(both)
        released, released_shares = shares.overall(shares.released), 100 * shares.released
        within, within_shares = shares.overall(shares.within), 100 * shares.within
    if isinstance(analyses, str):
        analyses = [analyses]
    return Utility(
        information_loss=released,
        by_column=both.by_name(released_shares),
        group_loss=within,
        group_loss_by_column=both.by_name(within_shares),
        analyses=[analyse(both, wanted) for wanted in analyses],
        _pair=both,
    )


def _plain_loss(both: Pair) -> tuple[float, Floats]:
    """Measure the loss of complete numbers without known groups, over all columns and of each."""
    before, after = both.scaled
    moved = before - after
    lost, total = np.einsum("ij,ij->j", moved, moved), np.einsum("ij,ij->j", before, before)
    share = np.divide(100 * lost, total, out=np.zeros_like(lost), where=total > 0)
    return float(100 * lost.sum() / total.sum()) if total.sum() > 0 else 0.0, share
