"""The formulas of analyses that must survive a release: how they are written and read.

``income ~ age + sex`` is a linear regression, ``income by region`` a mean in each region. The other
statistics are written like functions, with or without groups: ``mean(income)``, ``median(income) by
region``, ``quantile(income, 0.9)``, ``share(status)``, ``gini(income)``, ``poverty(income)``. As a list,
for names with signs in them: ``["income", "~", "age", "rent + heating"]``, ``["quantile", "net (income)",
0.9, "by", "region"]``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.checks import number

# Statistics and the number that each takes: its default, None if it takes none.
_STATISTICS = {
    **dict.fromkeys(("mean", "median", "share", "gini")),
    "quantile": 0.5,
    "poverty": 0.6,
}
_CALL = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*(?:\sby\s(.*))?", re.DOTALL)
_WRITTEN = (
    "An analysis is written 'income ~ age + sex', 'income by region' or 'poverty(income) by region', with "
    "mean, median, quantile, share, gini or poverty; or as a list ['income', '~', 'age']"
)


@dataclass(frozen=True)
class Formula:
    """One analysis, read."""

    statistic: str  # regression, mean, quantile, share, gini or poverty
    response: Any  # the column that is explained or summarised
    others: tuple[Any, ...] = ()  # of a regression: the columns that explain
    by: Any = None  # column whose values are the groups; None: all records are one
    number: float | None = None
    """Which quantile, from 0 to 1; of poverty, the share of the median below which somebody is poor."""

    @property
    def columns(self) -> list[Any]:
        """All columns that are named."""
        return [self.response, *self.others, *([] if self.by is None else [self.by])]

    @property
    def words(self) -> str:
        """The formula as text.

        >>> read_formula(["quantile", "income", 0.9, "by", "region"]).words
        'quantile(income, 0.9) by region'
        """
        if self.statistic == "regression":
            return f"{self.response} ~ {' + '.join(map(str, self.others))}"
        by = "" if self.by is None else f" by {self.by}"
        if self.statistic == "mean" and by:
            return f"{self.response}{by}"
        usual = self.number == _STATISTICS[self.statistic]
        if self.statistic == "quantile" and usual:
            return f"median({self.response}){by}"
        number = "" if usual else f", {self.number:g}"
        return f"{self.statistic}({self.response}{number}){by}"


def formulas_of(value: Any) -> tuple[Any, ...]:
    """Return the analyses of a plan as they are written, one or several; refuse what is no formula."""
    if value is None:
        return ()
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        value = (value,)
    formulas = list(value)
    for formula in formulas:
        if not isinstance(formula, str | list | tuple):
            raise _no_formula(formula)
        read_formula(formula)
    return tuple(formula if isinstance(formula, str) else tuple(formula) for formula in formulas)


def computed_with(wanted: Any) -> Any:
    """Return the column of numbers that ``wanted``, a formula, computes with; None: it counts categories."""
    formula = read_formula(wanted)
    return None if formula.statistic == "share" else formula.response


@contextmanager
def naming_formula(wanted: Any) -> Iterator[None]:
    """Say of an error within the block that ``wanted``, the formula of an analysis, is at fault."""
    try:
        yield
    except InputError as error:
        raise InputError(f"The analysis {shown(wanted)} cannot be done: {error}") from None


def read_formula(wanted: str | Sequence[Any]) -> Formula:
    """Read ``wanted``, the formula of an analysis as the user wrote it.

    >>> read_formula("income ~ age + rent").columns
    ['income', 'age', 'rent']
    >>> read_formula("poverty(eqIncome, 0.5) by region")
    Formula(statistic='poverty', response='eqIncome', others=(), by='region', number=0.5)
    """
    parts = _split(wanted) if isinstance(wanted, str) else list(wanted)
    if not parts or "" in parts or not all(isinstance(word, Hashable) for word in parts):
        raise _no_formula(wanted)
    if len(parts) >= 3 and parts[1] == "~":
        return Formula("regression", parts[0], tuple(parts[2:]))
    if len(parts) == 3 and parts[1] == "by":
        return Formula("mean", parts[0], by=parts[2])
    by = None
    if len(parts) >= 4 and parts[-2] == "by":
        by, parts = parts[-1], parts[:-2]
    if not isinstance(parts[0], str) or parts[0] not in _STATISTICS or not 2 <= len(parts) <= 3:
        raise _no_formula(wanted)
    name, usual = parts[0], _STATISTICS[parts[0]]
    with naming_formula(wanted):
        if (len(parts) == 2 and name == "quantile") or (len(parts) == 3 and usual is None):
            takes = "a column and a number, as in quantile(income, 0.9)" if usual else "one column"
            raise InputError(f"{name} takes {takes}.")
        share = usual
        if len(parts) == 3:
            given: Any = parts[2]
            with suppress(ValueError):
                given = float(given) if isinstance(given, str) else given
            rule = "a number between 0 and 1, such as 0.9"
            share = number(rule, lambda x: 0 < x < 1)(f"The number of {name}", given)
    if name == "median":
        name, share = "quantile", 0.5
    return Formula(name, parts[1], by=by, number=share)


def _split(text: str) -> list[Any]:
    """Split the text of an analysis into the parts of the list that says the same; empty: it is none."""
    left, sign, right = text.partition("~")
    if sign:
        return [left.strip(), "~", *(name.strip() for name in right.split("+"))]
    called = _CALL.fullmatch(text)
    if called is not None and called[1] in _STATISTICS:
        by = [] if called[3] is None else ["by", called[3].strip()]
        return [called[1], *(word.strip() for word in called[2].split(",")), *by]
    left, sign, right = text.partition(" by ")
    return [left.strip(), "by", right.strip()] if sign else []


def _no_formula(wanted: Any) -> InputError:
    return InputError(f"{_WRITTEN}; got {shown(wanted)}.")
