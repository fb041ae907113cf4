"""A block of the plan: columns with one partition, one k, and what groups must satisfy beside it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.checks import (
    as_plain,
    check_bool,
    check_keys,
    check_table,
    column_names,
    field_names,
    real,
    text_name,
    text_names,
    unknown,
)
from microagg.plan.registry import find
from microagg.plan.sections import Strata, Unit, strata_with, unit_with
from microagg.plan.settings import (
    AGGREGATE_OF_COST,
    check_aggregate,
    check_count,
    check_effort,
    check_k,
    check_options,
    check_scale,
    check_time_limit,
)

__all__ = [
    "BLOCK_SETTINGS",
    "OWN_PARTS",
    "Block",
    "Dominance",
    "Recursive",
    "Require",
    "block_as_dict",
    "block_from_dict",
    "check_names_of_part",
    "require_with",
]

Name = Hashable
Names = tuple[Name, ...]


@dataclass(frozen=True)
class Recursive:
    """Recursive (c, l)-diversity.

    The most frequent value of a group is rarer than c times all values from the l-th most frequent on
    together.
    """

    c: float
    """How many times the rest the most frequent value may be."""
    l: int  # noqa: E741 - the letter of the literature
    """From which most frequent value on the rest is counted."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "c", real("c, of recursive,", self.c, "a number above 0", _above(0))
        )
        object.__setattr__(self, "l", check_count("l, of recursive,", self.l, 2))


@dataclass(frozen=True)
class Dominance:
    """(n, k) rule: the n largest contributors of a group have at most k percent of its total."""

    n: int
    """How many contributors."""
    k: float
    """Their largest share of the total, in percent."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_count("n, of n_k,", self.n))
        rule = "a percentage above 0 and below 100"
        object.__setattr__(self, "k", real("k, of n_k,", self.k, rule, lambda x: 0 < x < 100))


@dataclass(frozen=True)
class Require:
    """What every group must satisfy beside k, column by column.

    Examples
    --------
    >>> Require(distinct={"diagnosis": 3}, n_k={"turnover": (2, 85)}).n_k
    {'turnover': Dominance(n=2, k=85)}
    """

    distinct: Mapping[Name, int] = field(default_factory=dict)
    """Least number of different values."""
    entropy: Mapping[Name, float] = field(default_factory=dict)
    """Entropy l-diversity: the entropy of the values is at least log l."""
    recursive: Mapping[Name, Recursive] = field(default_factory=dict)
    """Recursive (c, l)-diversity: the two numbers."""
    closeness: Mapping[Name, float] = field(default_factory=dict)
    """t-closeness: largest distance of the group's distribution from that of the table."""
    p_percent: Mapping[Name, float] = field(default_factory=dict)
    """No contributor can be estimated more closely than to p percent."""
    n_k: Mapping[Name, Dominance] = field(default_factory=dict)
    """Dominance: the n largest contributors have at most k percent."""
    population: float | None = None
    """Least sum of weights: how many of the population a group stands for."""
    individual_risk: float | None = None
    """Largest estimated risk of a record to be identified, 0 to 1."""

    def __post_init__(self) -> None:
        for rule, check in _CHECKS.items():
            given = getattr(self, rule)
            check_table(f"require.{rule}", given)
            checked = {
                name: check(f"{rule} of column {shown(name)}", v) for name, v in given.items()
            }
            object.__setattr__(self, rule, checked)
        if self.population is not None:
            found = real("population", self.population, "a number above 0", _above(0))
            object.__setattr__(self, "population", found)
        if self.individual_risk is not None:
            found = _share("individual_risk", self.individual_risk)
            object.__setattr__(self, "individual_risk", found)

    def __bool__(self) -> bool:
        return self != Require()

    @property
    def diverse(self) -> Names:
        """Columns whose values must differ within a group, which protecting them would undo."""
        rules = (self.distinct, self.entropy, self.recursive, self.closeness)
        return tuple(dict.fromkeys(name for rule in rules for name in rule))

    @property
    def columns(self) -> Names:
        """All columns that a requirement names."""
        return tuple(dict.fromkeys([*self.diverse, *self.p_percent, *self.n_k]))


def _above(low: float) -> Callable[[float], bool]:
    return lambda x: x > low


def _share(what: str, value: Any) -> float:
    return real(what, value, "a share above 0 and up to 1", lambda x: 0 < x <= 1)


def _pair_of(part: type[Recursive] | type[Dominance]) -> Callable[[str, Any], Any]:
    """A check of two numbers, given as a table or in the order of the rule's name."""

    def check(what: str, value: Any) -> Recursive | Dominance:
        if isinstance(value, part):
            return value
        names = list(part.__dataclass_fields__)
        if isinstance(value, list | tuple) and len(value) == 2:
            value = dict(zip(names, value, strict=True))
        rule = f"{what} has two numbers, {names[0]} and {names[1]}"
        if not isinstance(value, Mapping):
            raise InputError(f"{rule}; got {shown(value)}.")
        check_keys(what, value, names)
        if len(value) != 2:
            raise InputError(f"{rule}; got {shown(dict(value))}.")
        try:
            return part(**value)
        except InputError as error:
            raise InputError(f"{what}: {error}") from None

    return check


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "distinct": lambda what, value: check_count(what, value, 2),
    "entropy": lambda what, value: real(what, value, "a number above 1", _above(1)),
    "recursive": _pair_of(Recursive),
    "closeness": _share,
    "p_percent": lambda what, value: real(
        what, value, "a percentage above 0 and below 100", lambda x: 0 < x < 100
    ),
    "n_k": _pair_of(Dominance),
}


def require_with(before: Require, given: Any) -> Require:
    """Make requirements from a table; rules and columns not named stay; None: no requirement.

    >>> require_with(Require(distinct={"diagnosis": 3}), {"population": 100}).distinct
    {'diagnosis': 3}
    """
    if given is None:
        return Require()
    if isinstance(given, Require):
        return given
    check_keys("require", given, field_names(Require))
    changes = dict(given)
    for rule in _CHECKS.keys() & changes.keys():
        check_table(f"require.{rule}", changes[rule])
        changes[rule] = {**getattr(before, rule), **changes[rule]}
    return replace(before, **changes)


@dataclass(frozen=True)
class Block:
    """Columns with one partition and one promise."""

    columns: Names | None = None
    """None: every column that the draft protects, see :func:`microagg.draft`."""
    k: int | None = None
    """Least number of units that share their values."""
    method: str = "auto"
    """See microagg methods."""
    aggregate: str | None = None
    """None: what fits the cost, the mean as a rule."""
    scale: str = "zscore"
    """How numbers are made comparable: zscore, range, robust, none."""
    per_column: bool = False
    """Each column by itself: less loss, no k for their combination."""
    refine: bool | str = False
    """Local search after the method: true, or an effort."""
    bound: bool | str | None = None
    """None: in a report, where it takes seconds."""
    unit: Unit | None = None
    """Whose distinct values k counts here; None: the unit of the plan."""
    strata: Strata | None = None
    """None: the strata of the plan."""
    require: Require = field(default_factory=Require)
    """What every group satisfies beside k."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method, such as effort or gamma."""

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", column_names("columns", self.columns))
            if not self.columns:
                raise InputError(
                    "No column was named. Name at least one, or leave columns out to have every column "
                    "protected that is no identifier."
                )
        if self.k is not None:
            object.__setattr__(self, "k", check_k(self.k, sys.maxsize))
        object.__setattr__(self, "method", find(self.method).name)
        check_scale(self.scale)
        if self.aggregate is not None:
            check_aggregate(self.aggregate)
        check_bool("per_column", self.per_column)
        if self.refine is True:
            object.__setattr__(self, "refine", "balanced")
        elif self.refine is not False:
            check_effort(self.refine)
        if self.bound is not None and not isinstance(self.bound, bool):
            check_effort(self.bound)
        if self.unit is not None:
            object.__setattr__(self, "unit", unit_with(Unit(), self.unit))
        if self.strata is not None:
            object.__setattr__(self, "strata", strata_with(Strata(), self.strata))
        object.__setattr__(self, "require", require_with(Require(), self.require))
        self._check_require()
        # An option of None is one that was left out.
        given = {name: value for name, value in self.options.items() if value is not None}
        object.__setattr__(self, "options", given)
        self._check_options()

    def _check_require(self) -> None:
        chosen = set(self.columns or ())
        for name in self.require.diverse:
            if name in chosen:
                raise InputError(
                    f"require keeps the values of a column different within a group; {shown(name)} is "
                    "protected in this block, which makes them equal. Take it out of the columns, or out "
                    "of require."
                )

    def _check_options(self) -> None:
        known = check_options(find(self.method), self.options)
        for name, value in self.options.items():
            if name == "random_state":
                raise InputError(
                    "The seed is a setting of the whole plan; give random_state, --seed or seed there."
                )
            if not isinstance(value, str | int | float | bool | None) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise InputError(
                    f"A plan holds no data: option {shown(name)} must be a number or a word; got a "
                    f"{type(value).__name__}. Use microagg.partition for options that are data."
                )
        if "effort" in known and "effort" in self.options:
            check_effort(self.options["effort"])
        if "time_limit" in known:
            check_time_limit(self.options.get("time_limit"))

    @property
    def released(self) -> str:
        """What a group releases."""
        cost = str(self.options.get("cost", "sse"))
        return self.aggregate or AGGREGATE_OF_COST.get(cost, "mean")


BLOCK_SETTINGS = field_names(Block) - {"options"}
# Settings of the whole plan that a block may have of its own.
OWN_PARTS = ("unit", "strata")


def block_as_dict(block: Block) -> dict[str, Any]:
    """Plain data: what differs from the defaults, the options of the method beside it."""
    found = as_plain(block)
    if block.strata is not None:  # also where it says that this block has none
        found["strata"] = as_plain(block.strata) if block.strata.columns else []
    given: dict[str, Any] = found.pop("options", {})
    require = found.pop("require", None)
    # What is required is a table of its own, which stands last in a file.
    return {**found, **given, **({} if require is None else {"require": require})}


def block_from_dict(given: Any) -> Block:
    """Build a block from what :func:`block_as_dict` gives; unknown keys are refused."""
    check_table("block", given)
    method = find(given.get("method", "auto"))
    has = {option.name for option in method.options} - {"random_state"}
    for name in given:
        if name not in BLOCK_SETTINGS | has and name not in method.refuses:
            raise unknown("key of a block", name, BLOCK_SETTINGS | has)
    for part in OWN_PARTS:
        if part in given:
            check_names_of_part(part, given[part])
    settings = {name: value for name, value in given.items() if name in BLOCK_SETTINGS}
    if "columns" in given:
        settings["columns"] = text_names("columns", given["columns"])
    return Block(
        **settings,
        options={name: value for name, value in given.items() if name not in BLOCK_SETTINGS},
    )


def check_names_of_part(part: str, given: Any) -> None:
    """Refuse names of columns in a part that are not texts, as those of a file are."""
    key = "columns" if part == "strata" else "column"
    table = given if isinstance(given, Mapping) else {key: given}
    if key in table:
        (text_names if part == "strata" else text_name)(part, table[key])
