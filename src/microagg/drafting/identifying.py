"""Columns that point to single records must have a role, and can never be confidential.

An id, a name or a free text leads to one person whatever else is protected. Nobody leaves such a column in a
file by oversight, and nobody can claim that no attacker knows it: it is refused before any work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microagg.base.formatting import names, plural
from microagg.drafting import name_words as say
from microagg.drafting.guess import Guess
from microagg.drafting.infer import guess
from microagg.errors import InputError
from microagg.plan.flag_values import join_names
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

_NEARLY_ALL = 0.9  # an id may repeat in a few records
# Records for each value of an id, at most, so that it points to few: a year of months.
_RECORDS_OF_AN_ID = 12
_NAMED = 6  # columns whose looks an error describes


def left_unnamed(plan: Plan, table: Sequence[Any]) -> list[Any]:
    """List columns that a plan leaves as they are without naming them."""
    said = {*plan.known, *plan.all_strata, *plan.units}
    said |= set() if plan.weight is None else {plan.weight.column}
    return [name for name in plan.roles(table).known if name not in said]


def check_pointing(table: Frame, plan: Plan, missing_words: Sequence[str] = ("",)) -> None:
    """Refuse columns that point to single records and have no role, or are called confidential.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"name": [f"person {i}" for i in range(40)], "age": range(20, 60)})
    >>> check_pointing(Frame(people), Plan.of(k=5, columns=["age"], drop=["name"]))
    >>> check_pointing(Frame(people), Plan.of(k=5, columns=["age"]))
    Traceback (most recent call last):
    microagg.errors.InputError: A column that points to single records must have a role; name has none...
    """
    unnamed = left_unnamed(plan, table.names)
    wanted = {*unnamed, *plan.confidential}
    if not wanted:
        return
    looks = guess(table, k=plan.k, names=wanted, missing_words=missing_words)
    open_ones = [name for name in unnamed if _is_nearly_all_different(looks[name])]
    if open_ones:
        are = "has" if len(open_ones) == 1 else "have"
        raise InputError(
            f"A column that points to single records must have a role; {names(open_ones, _NAMED)} {are} none "
            f"({_described(open_ones, looks)}). {_ways_out(open_ones)}, or, if an attacker may know "
            f"{_it(open_ones)}, say so: --known {_argument(open_ones)}."
        )
    claimed = [name for name in plan.confidential if _points(name, looks[name])]
    if claimed:
        raise InputError(
            "A column that points to single records can never be confidential: somebody always knows whose "
            f"record it is. {_described(claimed, looks)}. {_ways_out(claimed)}."
        )


def _is_nearly_all_different(looks: Guess) -> bool:
    """Return whether a column alone identifies single records."""
    return looks.points_to_records and looks.distinct >= _NEARLY_ALL * looks.present


def _points(name: Any, looks: Guess) -> bool:
    """Return whether a column is an id of few records each, a name of people, or a text."""
    if _is_nearly_all_different(looks):
        return True
    if looks.looks_like == "name or text":
        return any(word in say.NAME for word in say.words(name))
    return looks.points_to_records and looks.present <= _RECORDS_OF_AN_ID * looks.distinct


def _described(columns: Sequence[Any], looks: Mapping[Any, Guess]) -> str:
    """Describe columns, without values of records."""
    described = [f"{names([name])}: {_lower(looks[name].fact)}" for name in columns[:_NAMED]]
    rest = len(columns) - len(described)
    return "; ".join([*described, *([f"and {plural(rest, 'more column')}"] if rest else [])])


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _ways_out(columns: Sequence[Any]) -> str:
    argument = _argument(columns)
    return (
        f"Leave {_it(columns)} out (--drop {argument}) or put random numbers in {_place(columns)} "
        f"(--renumber {argument})"
    )


def _it(columns: Sequence[Any]) -> str:
    return "it" if len(columns) == 1 else "them"


def _place(columns: Sequence[Any]) -> str:
    return "its place" if len(columns) == 1 else "their place"


def _argument(columns: Sequence[Any]) -> str:
    """Return names as the value of a flag."""
    return join_names([str(name) for name in columns])
