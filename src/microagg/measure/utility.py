"""Utility: how much of the original a protected table still tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.measure.analyses import Wanted, analyse
from microagg.measure.both_tables import Pair, pair
from microagg.measure.column_losses import Losses, losses
from microagg.measure.estimates import Analysis


@dataclass(frozen=True)
class Utility:
    """Measures of loss. Unless said otherwise, each is 0 for an untouched table, and lower is better.

    Columns are measured in units of the original's standard deviation s (denominator n−1);
    x is an original value, x' the protected one. Losses are of columns of any kind; what needs numbers
    is about numbers and dates, and about the records where both values are there. With weights
    every record counts by its weight.
    """

    information_loss: float
    """IL = 100·SSE/SST = 100·ΣΣ((x−x')/s)²/ΣΣ((x−x̄)/s)² of the released values x', rounding and
    categories included; 0 to 100 for group means. Under 5 is usually hard to notice, over 30 a coarse
    picture. :mod:`microagg.measure.column_losses` has the other kinds of columns."""
    by_column: Mapping[Any, float]
    """The same for each column alone."""
    group_loss: float
    """The same if each group released its exact centroid: the loss to which bounds and published figures
    refer. It equals the information loss if exact means are released. Where a group releases its most
    frequent category, the information loss is at most twice this loss."""
    group_loss_by_column: Mapping[Any, float]
    """The same for each column alone."""
    analyses: list[Analysis]
    """The user's own analyses on both tables, with the overlap of their confidence intervals: 1 is
    best, below 0 the intervals are apart."""
    changed: Mapping[Any, float]
    """Share of records whose category changed, of each column of categories, where both are there."""
    blanked: Mapping[Any, int]
    """Values of each column that are missing in the protected table only."""
    filled: Mapping[Any, int]
    """Values of each column that are missing in the original only."""
    groups_known: bool
    """Whether the loss of the groups is counted from the groups, and not assumed from equal values."""
    _inertia: Floats = field(repr=False, compare=False)
    """(d,) values of each column that are there, less one; 0 where they do not vary."""

    @property
    def even_loss(self) -> float:
        """The information loss if every column counted alike, whatever its importance."""
        total = float(self._inertia.sum())
        return float(np.array(list(self.by_column.values())) @ self._inertia) / (total or 1.0)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        by_column = ("by_column", "group_loss_by_column", "changed", "blanked", "filled")
        return {
            "information_loss": self.information_loss,
            "group_loss": self.group_loss,
            **{key: {str(n): x for n, x in getattr(self, key).items()} for key in by_column},
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
    figures = utility_of(pair(original, protected, columns, kinds=kinds, weights=weights), analyses)
    # Whose record is in which group is nothing to carry along.
    return replace(figures, analyses=[replace(each, _groups=None) for each in figures.analyses])


def utility_of(
    both: Pair, analyses: Iterable[Wanted] = (), shares: Losses | None = None
) -> Utility:
    """Measure the loss of ``both`` tables; ``analyses`` are as for :func:`utility`.

    ``shares`` are the losses of all records, if these are a sample of them.
    """
    shares = losses(both) if shares is None else shares
    there, there_after = (~np.isnan(values) for values in (both.original, both.protected))

    def by_name(figures: Any) -> dict[Any, Any]:
        return dict(zip(both.names, figures.tolist(), strict=True))

    if isinstance(analyses, str):
        analyses = [analyses]
    return Utility(
        information_loss=shares.overall(shares.released),
        by_column=by_name(100 * shares.released),
        group_loss=shares.overall(shares.within),
        group_loss_by_column=by_name(100 * shares.within),
        analyses=[analyse(both, wanted) for wanted in analyses],
        changed={v.name: both.changed(j) for j, v in enumerate(both.variables) if v.is_category},
        blanked=by_name((there & ~there_after).sum(axis=0)),
        filled=by_name((there_after & ~there).sum(axis=0)),
        groups_known=both.labels is not None,
        _inertia=np.where(both.varies, there.sum(axis=0) - 1.0, 0.0),
    )
