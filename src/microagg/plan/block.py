"""A block of the plan: columns with one partition, one k, and requirements other than k."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Self

from microagg.errors import InputError, shown
from microagg.plan.checks import (
    Check,
    Name,
    Names,
    check_keys,
    check_table,
    column_names,
    number,
    unknown,
)
from microagg.plan.forms import RULES, SETS_OF_NAMES, SHARE, SWITCH, Form
from microagg.plan.registry import METHODS, find
from microagg.plan.sections import Strata, Unit
from microagg.plan.settings import (
    AGGREGATE_OF_COST,
    AGGREGATES,
    EFFORTS,
    SCALES,
    check_count,
    check_effort,
    check_k,
    settings_of,
)
from microagg.plan.settings_table import Section, rows_of, setting

_PERCENTAGE = number("a percentage above 0 and below 100", lambda x: 0 < x < 100)
_SHARE = number("a share above 0 and up to 1", lambda x: 0 < x <= 1)


@dataclass(frozen=True)
class Dominance(Section):
    """(n, k) rule: the n largest contributors of a group have at most k percent of its total."""

    title = "n_k"

    n: int = setting(MISSING, check=check_count, help="How many contributors.")
    k: float = setting(
        MISSING, check=_PERCENTAGE, help="Their largest share of the total, in percent."
    )

    @classmethod
    def checked(cls, what: str, given: Any) -> Self:
        """Build the rule from a table or [n, k]; the message about a mistake begins with what it is about."""
        if isinstance(given, list | tuple) and len(given) == 2:
            given = dict(zip(("n", "k"), given, strict=True))
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            check_keys(what, given, ("n", "k"))
        if not isinstance(given, Mapping) or len(given) != 2:
            raise InputError(f"{what} has two numbers, n and k; got {shown(given)}.")
        try:
            return cls(**given)
        except InputError as error:
            raise InputError(f"{what}: {error}") from None


def _by_column(check: Check) -> Check:
    """Return the check of a requirement that names columns, from that of its value for one."""

    def check_all(what: str, value: Any) -> dict[Name, Any]:
        check_table(f"require.{what}", value)
        return {name: check(f"{what} of column {shown(name)}", v) for name, v in value.items()}

    return check_all


@dataclass(frozen=True)
class Require(Section):
    """What every group must satisfy other than k, column by column.

    Examples
    --------
    >>> Require(distinct={"diagnosis": 3}, n_k={"turnover": (2, 85)}).n_k
    {'turnover': Dominance(n=2, k=85)}
    >>> Require.changed(Require(distinct={"diagnosis": 3}), {"population": 100}).distinct
    {'diagnosis': 3}
    """

    distinct: Mapping[Name, int] = setting(
        dict,
        check=_by_column(lambda what, value: check_count(what, value, 2)),
        help="Least number of different values.",
        label="least number of different values",
    )
    entropy: Mapping[Name, float] = setting(
        dict,
        check=_by_column(number("a number above 1", lambda x: x > 1)),
        help="Entropy l-diversity: the entropy of the values is at least log l.",
        label="l of entropy l-diversity",
    )
    closeness: Mapping[Name, float] = setting(
        dict,
        check=_by_column(_SHARE),
        help="t-closeness: largest distance of the group's distribution from that of the table.",
        label="t, largest distance from 0 to 1",
    )
    hidden: Mapping[Name, float] = setting(
        dict,
        check=_by_column(_PERCENTAGE),
        help="No group gives a value away, a number to within this percentage; common values are free.",
        label="how near a number may not be given away, in percent",
    )
    p_percent: Mapping[Name, float] = setting(
        dict,
        check=_by_column(_PERCENTAGE),
        help="No contributor can be estimated more closely than to p percent.",
        label="p in percent",
    )
    n_k: Mapping[Name, Dominance] = setting(
        dict,
        check=_by_column(Dominance.checked),
        help="Dominance: the n largest contributors have at most k percent.",
        label="n, k in percent",
    )
    population: float | None = setting(
        None,
        check=number("a number above 0", lambda x: x > 0),
        help="Least sum of weights: how many of the population a group stands for.",
        label="least sum of weights",
    )
    individual_risk: float | None = setting(
        None,
        check=_SHARE,
        help="Largest estimated risk of a record to be identified, 0 to 1.",
        label="largest risk, 0 to 1",
    )

    def __bool__(self) -> bool:
        return self != Require()

    @property
    def diverse(self) -> Names:
        """Columns whose values must differ within a group, which protecting them would undo."""
        rules = (self.distinct, self.entropy, self.closeness, self.hidden)
        return tuple(dict.fromkeys(name for rule in rules for name in rule))

    @property
    def columns(self) -> Names:
        """All columns that a requirement names."""
        return tuple(dict.fromkeys([*self.diverse, *self.p_percent, *self.n_k]))


def _check_together(what: str, value: Any) -> tuple[Names, ...]:
    """Read sets of columns, each of two or more, none in two sets."""
    if not isinstance(value, list | tuple) or any(isinstance(names, str) for names in value):
        raise InputError(
            f'{what} is a list of sets of columns, such as [["age", "birth_year"]]; got {shown(value)}.'
        )
    sets = tuple(column_names(what, names) for names in value)
    every = [name for names in sets for name in names]
    for names in sets:
        if len(names) < 2:
            raise InputError(
                f"Each set of {what} has two columns or more; got {shown(list(names))}."
            )
    for name in every:
        if every.count(name) > 1:
            raise InputError(
                f"{what} names {shown(name)} twice. Put all that goes with it into one set."
            )
    return sets


def _check_effort(what: str, value: Any) -> bool | str:
    return value if isinstance(value, bool) else check_effort(value, what)


@dataclass(frozen=True)
class Block(Section):
    """Columns with one partition and one promise."""

    flags = "--"

    columns: Names | None = setting(
        None,
        flag="--columns, -c",
        help="Columns to protect, separated by commas (names with commas in double quotes). If left out, "
        "every column gets a role that protects people: ids and names are dropped.",
    )
    k: int | None = setting(
        None,
        check=lambda _, given: check_k(given, sys.maxsize),
        flag="--k, -k",
        help="Least number of records (or units) that share their values.",
        label="k",
        hint="Least number of records, or units, that share their values.",
    )
    require: Require = setting(
        Require,
        section=Require,
        flag="--require",
        form=RULES,
        help="What each group must satisfy other than k. Of a column: distinct:job=3 (l-diversity; also "
        "entropy), closeness:job=0.2, hidden:job=5, p_percent:tax=10, n_k:tax=2,85. Of a "
        "group: population=100, or individual_risk with a number up to 1. May be given several times.",
    )
    method: str = setting(
        "auto",
        check=lambda _, given: find(given).name,
        flag="--method, -m",
        help="See: microagg methods; auto if left out.",
        choices={name: name for name in METHODS},
        label="Method",
    )
    options: Mapping[str, Any] = setting(
        dict,
        # An option of None is one that was left out.
        check=lambda _, given: {name: value for name, value in given.items() if value is not None},
        help="Settings of the method, such as effort or gamma, each a key of its own.",
    )
    refine: bool | str = setting(
        False,
        check=lambda what, given: _check_effort(what, "balanced" if given is True else given),
        help="Improve what the method found by local search: fast, balanced or best.",
        choices={effort: effort for effort in EFFORTS},
        label="Groups refined afterwards",
        placeholder="no",
    )
    bound: bool | str | None = setting(
        None,
        check=_check_effort,
        flag="--bound/--no-bound",
        form=SWITCH,
        help="Prove how much less any method could lose; with a report, done where it takes seconds.",
    )
    aggregate: str | None = setting(
        None,
        help="What a group releases: mean, median, midrange, maximum or minimum; the mean, or what fits "
        "the cost, if left out.",
        choices={how: how for how in AGGREGATES},
        label="A group releases its",
        placeholder="mean, or what fits its cost",
    )
    release: str = setting(
        "mean",
        help="mean: all rows of a group release the same values, k equal rows. swap: the values of a group "
        "are dealt to its rows at random, column by column: tables, spreads and analyses survive, and k may "
        "be larger. The default is mean.",
        choices={"mean": "one value for all its rows", "swap": "its values, swapped at random"},
        label="A group releases",
    )
    categories: str = setting(
        "mode",
        help="What a group releases of categories, where it releases means. mode: its most frequent one. "
        "draw: that of one member, drawn at random for each column; rare categories keep their share. The "
        "default is mode.",
        choices={"mode": "the most frequent", "draw": "that of a random member"},
        label="Of categories a group releases",
    )
    together: tuple[Names, ...] = setting(
        (),
        check=_check_together,
        form=SETS_OF_NAMES,
        help="Columns whose values are swapped together, such as age,birth_year, so that no row contradicts "
        "itself. May be given several times.",
    )
    standing: float | None = setting(
        None,
        check=_SHARE,
        form=SHARE,
        help="With swapping: merge groups that agree in nearly all columns until at most this share of the "
        "rows, such as 0.001, is expected to equal a record by chance.",
        label="Rows equal to a record by chance",
        hint="With swapping: the largest share, 0 to 1. Groups that agree in nearly all columns are merged.",
        placeholder="as many as there are",
    )
    scale: str = setting(
        "zscore",
        help="How columns are made comparable: zscore (if left out), range, robust or none.",
        choices={how: how for how in SCALES},
        label="Columns made comparable by",
    )
    per_column: bool = setting(
        False,
        help="Each column by itself: loses less, but is no k-anonymity of records.",
        label="Each column by itself",
        hint="Loses far less; k then holds for each column, not for their combination.",
    )
    unit: Unit | None = setting(
        None,
        section=Unit,
        help="Whose distinct values k counts here; by default the unit of the plan.",
    )
    strata: Strata | None = setting(
        None,
        section=Strata,
        form=Form(to_file=lambda strata: strata or []),
        help="Of this block; by default the strata of the plan.",
    )

    def check_together(self) -> None:
        """Refuse requirements that protection would break, and options that the method does not have."""
        chosen = set(self.columns or ())
        if self.columns == ():
            raise InputError(
                "No column was named. Name at least one, or leave columns out to have every column "
                "protected that is no identifier."
            )
        for name in self.require.diverse:
            if name in chosen:
                raise InputError(
                    f"require keeps the values of a column different within a group; {shown(name)} is "
                    "protected in this block, whose groups are of like values. Take it out of the columns, "
                    "or out of require."
                )
        self._check_swapping(chosen)
        for name, value in self.options.items():
            if not isinstance(value, str | int | float | bool) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise InputError(
                    f"A plan holds no data: option {shown(name)} must be a number or a word; got a "
                    f"{type(value).__name__}. Use microagg.partition for options that are data."
                )
        settings_of(find(self.method), dict(self.options), None)

    def _check_swapping(self, chosen: set[Name]) -> None:
        """Refuse what swapping cannot do, and what only swapping does."""
        if not self.is_swapped:
            for setting_name in ("together", "standing"):
                if getattr(self, setting_name):
                    raise InputError(
                        f"{setting_name} is about values that are swapped; this block releases means. Say "
                        f'release = "swap", --release swap, or leave {setting_name} out.'
                    )
            return
        if self.aggregate not in (None, "mean"):
            raise InputError(
                f'aggregate says what all rows of a group release; with release = "swap" they release the '
                f"group's values. Leave aggregate = {shown(self.aggregate)} out."
            )
        if self.draws:
            raise InputError(
                'categories = "draw" says what all rows of a group release; with release = "swap" they '
                "release the group's values. Leave categories out."
            )
        if self.per_column and len(chosen) > 1:
            raise InputError(
                "per_column gives each column its own groups, in whose intersections people are alone: "
                "swapped values would go back to their owners. Leave per_column out."
            )
        for names in self.together if self.columns is not None else ():
            for name in names:
                if name not in chosen:
                    raise InputError(
                        f"together names columns of this block; {shown(name)} is not one. Protect it here, "
                        "or take it out of together."
                    )

    @property
    def is_swapped(self) -> bool:
        """Whether values are swapped within groups instead of aggregated."""
        return self.release == "swap"

    @property
    def draws(self) -> bool:
        """Whether groups release the category of a random member instead of the most frequent one."""
        return self.categories == "draw"

    @property
    def released(self) -> str:
        """What a group releases."""
        cost = str(self.options.get("cost", "sse"))
        return self.aggregate or AGGREGATE_OF_COST.get(cost, "mean")

    def as_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data, options of the method as keys of their own."""
        data = super().as_dict()
        options = data.pop("options", {})
        return {**data, **options}

    @classmethod
    def from_dict(cls, given: Any) -> Self:
        """Build a block from what :meth:`as_dict` gives; unknown keys are refused."""
        check_table("block", given)
        method = find(given.get("method", "auto"))
        has = {option.name for option in method.options} - {"random_state"}
        settings, options = {}, {}
        for name, value in given.items():
            if name in BLOCK_SETTINGS:
                settings[name] = BLOCK_SETTINGS[name].read(value)
            elif name in has or name in method.refuses:
                options[name] = value
            else:
                raise unknown("key of a block", name, BLOCK_SETTINGS.keys() | has)
        return cls(**settings, options=options)


BLOCK_SETTINGS = {row.name: row for row in rows_of(Block) if row.name != "options"}
# Sections of the whole plan that a block may have of its own.
OWN_SECTIONS = ("unit", "strata")
