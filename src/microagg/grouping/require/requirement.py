"""Requirements: what every group must satisfy in addition to having k records.

Every requirement here is closed under union: if two groups satisfy it, so does their union. So merging groups
repairs any partition if the whole table satisfies the requirement, and no partition satisfies a requirement
that the whole table breaks. The docstring of each requirement has the proof.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError
from microagg.kernels.require_kinds import Demands


class Demand(NamedTuple):
    """A requirement as kernels need it; see :class:`microagg.kernels.require_kinds.Demands`."""

    kind: int
    level: float
    codes: Labels
    amounts: Floats
    extra: float = 0.0
    share: Floats = np.zeros(0)  # of each code in the whole table, where the requirement compares


class Requirement(ABC):
    """Something that every group must satisfy; made from arrays with one entry a record.

    ``codes`` are whole numbers, equal where values are equal; ``amounts`` and ``weights`` are numbers from 0
    up; ``units`` tell whose record it is, None: each is one; ``column`` is a name for messages.
    """

    column: str = ""
    larger_is_worse: ClassVar[bool] = False
    """Whether a group with a larger figure is further from what is asked."""

    @property
    def named(self) -> str:
        """The column in a sentence."""
        return self.column or "the column"

    @abstractmethod
    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""

    @abstractmethod
    def describe(self) -> str:
        """Say what every group satisfies."""

    @abstractmethod
    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out; for one that does."""

    def violation(self, rows: Any) -> float:
        """Return how far the group of these rows is from what is asked: 0 when it satisfies it."""
        from microagg.kernels.require_demands import violations

        group = np.asarray(rows, dtype=np.intp)
        ends = np.array([0, len(group)], dtype=np.intp)
        return float(violations(demands_of([self]), group, ends, 1)[0])

    def holds(self, labels: Labels) -> bool:
        """Return whether all groups 0, 1, … satisfy it."""
        return not violations_of(labels, 1, [self]).any()

    def figure(self, labels: Labels) -> float:
        """Return the figure of the worst of the groups 0, 1, …, which a board reads with pass or fail."""
        raise TypeError(f"{type(self).__name__} has no figure")

    def worse(self, one: float, other: float) -> float:
        """Return the worse of two figures."""
        return max(one, other) if self.larger_is_worse else min(one, other)

    def say(self, figure: float) -> str:
        """Write a figure of a group."""
        return f"{figure:.3g}"

    def feasible(self) -> bool:
        """Return whether the whole table satisfies it, and so at least one partition."""
        return self.violation(np.arange(len(self.demand().codes))) == 0


def demands_of(requirements: Sequence[Requirement], n: int | None = None) -> Demands:
    """Put requirements into one set of arrays; n is the number of records where there is none.

    Parameters
    ----------
    requirements : of one block, all for the same records
    n : number of records; None: as many as the first requirement has
    """
    wanted = [requirement.demand() for requirement in requirements]
    n = len(wanted[0].codes) if n is None else n
    codes, amounts = np.zeros((len(wanted), n), np.intp), np.ones((len(wanted), n))
    rule, table = np.zeros((len(wanted), 5)), [np.zeros((0, 2))]
    for r, demand in enumerate(wanted):
        if len(demand.codes) != n:
            raise InputError(
                f"A requirement has one entry for each record; the table has {plural(n, 'record')}, the "
                f"requirement {len(demand.codes)}. Make both from the same rows."
            )
        codes[r], amounts[r] = demand.codes, demand.amounts
        start = sum(map(len, table))
        rule[r] = demand.kind, demand.level, demand.extra, start, len(demand.share)
        before = np.append(0.0, np.cumsum(demand.share))
        table.append(np.column_stack([np.append(demand.share, 1.0), before]))
    return Demands(rule, np.concatenate(table), codes, amounts)


def violations_of(labels: Labels, k: int, requirements: Sequence[Requirement]) -> Floats:
    """Violation of each group 0, 1, …, summed over the requirements and too few records.

    >>> from microagg.grouping.require.value_rules import Distinct
    >>> violations_of(np.array([0, 0, 1, 1]), 2, [Distinct(np.array([7, 7, 7, 8]), 2)]).tolist()
    [0.5, 0.0]
    """
    from microagg.kernels.require_demands import violations

    rows = np.argsort(labels, kind="stable").astype(np.intp, copy=False)
    ends = np.append(0, np.cumsum(np.bincount(labels))).astype(np.intp)
    figures: Floats = violations(demands_of(requirements, len(labels)), rows, ends, k)
    return figures


def check_amounts(amounts: Floats, column: str, what: str) -> None:
    """Refuse amounts that are negative or not finite, with the row of the first."""
    wrong = np.flatnonzero(~(np.isfinite(amounts) & (amounts >= 0)))
    if len(wrong):
        raise InputError(
            f"{what} needs finite values from 0 up; {column or 'the column'} has another one in row "
            f"{wrong[0] + 1} (the first record is row 1). Correct or drop such records, or leave the "
            "requirement out."
        )


def check_feasible(requirements: Iterable[Requirement]) -> None:
    """Refuse requirements that the whole table breaks: then no partition could satisfy them.

    Each is closed under union, and the union of all groups is the whole table.
    """
    for requirement in requirements:
        if not requirement.feasible():
            raise InputError(requirement.reason())
