"""What is known of a method: its paper, its settings, what it guarantees, and where its function is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from microagg.plan.settings_table import Setting

Guarantee = Literal["exact", "approximation", "heuristic"]


@dataclass(frozen=True)
class Method:
    """One row of the registry."""

    name: str
    family: str
    time: str  # how the running time grows
    summary: str
    paper: str = ""
    guarantee: Guarantee = "heuristic"
    implementation: str = ""  # module:function for any number of columns, on scaled values
    univariate: str = ""  # the same for one column, on its values as they are
    order: str = ""  # module:function for an order; the optimal cut makes it a method
    order_needs_k: bool = False  # whether that order depends on k
    # Settings other than the data and k; those without a flag are given by --option.
    options: tuple[Setting, ...] = ()
    proves: bool = False  # whether every partition comes with a proved lower bound
    weighted: bool = False  # whether records may have weights in the SSE that it makes small
    categories: bool = False  # whether it is for one column of categories, and for no numbers
    closeness: bool = False  # whether it makes groups for t-closeness of a column
    most_records: int | None = None  # the largest table that it takes
    # Options of similar methods that this one does not take, and why.
    refuses: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def exact(self) -> bool:
        """Whether the partition is proved to have the least possible loss."""
        return self.guarantee == "exact"

    @property
    def for_numbers(self) -> bool:
        """Whether it groups numbers by k alone, as :func:`microagg.partition` does."""
        return not (self.categories or self.closeness)

    @property
    def one_column(self) -> bool:
        """Whether the method works on a single column only."""
        return not (self.implementation or self.order)

    def takes_raw(self, n_columns: int, weighted: bool = False) -> bool:
        """Return whether the method takes values as they are: exact methods are exact for those."""
        return n_columns == 1 and bool(self.univariate) and not weighted

    def guarantee_for(self, n_columns: int, weighted: bool = False) -> Guarantee:
        """Return what is proved for data of this width: one column is done exactly, by auto too.

        With weights nothing is: the univariate methods find the best runs of the sorted values, but
        other groups may lose less (algorithms/univariate/weighted.py).
        """
        if weighted:
            return "heuristic"
        return "exact" if self.takes_raw(n_columns) else self.guarantee

    def function(self, n_columns: int, weighted: bool = False) -> Callable[..., Any]:
        """Load the function ``(X, k, *, state=None, **options) -> Outcome`` for data of this width.

        One that takes raw values numbers the groups by first appearance. For records with weights it also
        takes ``weights=``.
        """
        if self.takes_raw(n_columns, weighted) or self.one_column:
            return _load(self.univariate)
        if self.implementation:
            return _load(self.implementation)
        return _load("microagg.algorithms.ordering.cut:cut_along")(self.order_function())  # type: ignore[no-any-return]

    def order_function(self) -> Callable[..., Any]:
        """Load the function ``(X, k, *, state=None, **options)`` that gives the order."""
        return _load(self.order)

    def as_dict(self) -> dict[str, object]:
        """Plain data, as ``microagg methods --json`` prints it."""
        facts = ["name", "family", "paper", "exact", "guarantee", "time", "summary", "one_column"]
        return {
            **{fact: getattr(self, fact) for fact in facts},
            "orders": bool(self.order),
            **{fact: getattr(self, fact) for fact in ("weighted", "categories", "closeness")},
            "options": {option.name: option.default for option in self.options},
        }


def _load(path: str) -> Callable[..., Any]:
    module, name = path.split(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
