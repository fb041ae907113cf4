"""The parts of a plan: small tables of settings, each checked when it is made.

``..._with`` functions make a part from what a keyword, a flag or a file gives: what is named changes, the
rest stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.checks import (
    check_bool,
    check_keys,
    check_number,
    check_table,
    check_word,
    column_name,
    column_names,
    distinct_values,
    field_names,
    real,
)
from microagg.plan.coarsen import Coarsen, coarsen_of

__all__ = [
    "CATEGORIES",
    "KINDS",
    "QUANTITIES",
    "ROUNDINGS",
    "Accept",
    "Coarsen",
    "Column",
    "Missing",
    "Roles",
    "Strata",
    "Suppress",
    "Unit",
    "Weight",
    "claims_of",
    "columns_with",
    "missing_with",
    "strata_with",
    "suppress_with",
    "unit_with",
    "weight_with",
]

Name = Hashable
Names = tuple[Name, ...]

KINDS = ("number", "integer", "boolean", "nominal", "ordinal", "date", "spiked", "hierarchy")
CATEGORIES = ("boolean", "nominal", "ordinal", "hierarchy")
QUANTITIES = ("number", "integer", "date", "spiked")
ROUNDINGS = ("no", "nearest", "totals")
TRANSFORMS = ("log", "rank")
_RELEASED_BY = {"median": "ordinal", "node": "hierarchy", "spike": "spiked"}
SMALL_STRATA = ("error", "merge")
WEIGHT_RELEASES = ("mean", "keep", "drop")
GROUPINGS = ("weighted", "plain")
UNIT_MODES = ("count", "together")
POLICIES = ("pattern", "majority", "fill", "drop", "error")


@dataclass(frozen=True)
class Column:
    """How one column is read, recoded, compared and released.

    Examples
    --------
    >>> Column("ordinal", levels=["low", "middle", "high"]).levels
    ('low', 'middle', 'high')
    >>> Column("hierarchy", prefixes=[1, 2, 4]).prefixes
    (1, 2, 4)
    """

    kind: str | None = None
    """One of KINDS, or None: what the table says."""
    levels: tuple[str | float | bool, ...] | None = None
    """The values of an ordinal column from lowest to highest, or those of a nominal one; None: what
    the table says."""
    importance: float = 1.0
    """How much the column counts in the distance of records, against 1 of the others."""
    transform: str | None = None
    """"log" or "rank": what is compared in place of the values, which are released all the same."""
    round: str | None = None
    """"no", "nearest" (whole numbers stay whole), "totals" (and their sum too), or None: as the plan
    says."""
    release: str | None = None
    """"median" of an ordinal column, "node" (the common ancestor) of a hierarchy, "spike" (for the whole
    group) of a spiked one; None: the admissible value nearest to the mean."""
    spike: float | None = None
    """The value that many records of a spiked column share; None: 0."""
    prefixes: tuple[int, ...] | None = None
    """Lengths of the prefixes of a code that are the levels of its hierarchy."""
    parents: Mapping[str, str] | None = None
    """The parent of each code of a hierarchy; a code without one is a root."""
    coarsen: Coarsen | None = None
    """How its values become coarser before groups are formed, see :class:`Coarsen`; also of strata and of
    columns left as they are."""

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_word("kind", self.kind, KINDS)
        if self.levels is not None:
            _set(self, "levels", distinct_values("levels", self.levels, 2, bools=True))
        _set(self, "importance", _importance(self.importance))
        if self.transform is not None:
            check_word("transform", self.transform, TRANSFORMS)
        if self.round is not None:
            check_word("round", self.round, ROUNDINGS)
        if self.release is not None:
            check_word("release", self.release, tuple(_RELEASED_BY))
        if self.spike is not None:
            _set(self, "spike", real("spike", self.spike, "a number", lambda x: True))
        if self.prefixes is not None:
            _set(self, "prefixes", _check_prefixes(self.prefixes))
        if self.parents is not None:
            _set(self, "parents", _check_parents(self.parents))
        _set(self, "coarsen", coarsen_of(self.coarsen))
        if self.prefixes is not None and self.parents is not None:
            raise InputError("A hierarchy has prefixes or parents; both are given. Leave one out.")
        for name, kinds in self._kinds_that_settings_need().items():
            if self.kind not in kinds:
                given = "it has none" if self.kind is None else f"it is {shown(self.kind)}"
                named = [kind for kind in kinds if kind is not None]
                raise InputError(
                    f"{name} is a setting of columns whose kind is {' or '.join(named)}; {given}. Give the "
                    f"column such a kind, or leave {name} out."
                )

    def _kinds_that_settings_need(self) -> dict[str, tuple[str | None, ...]]:
        """The settings that are given and fit some kinds only, with those kinds."""
        quantity = (None, *QUANTITIES)
        needs: dict[str, tuple[str | None, ...]] = {
            "levels": ("ordinal", "nominal"),
            "transform": quantity,
            "round": (*KINDS, None) if self.round == "no" else quantity,
            "release": () if self.release is None else (_RELEASED_BY[self.release],),
            "spike": ("spiked",),
            "prefixes": ("hierarchy",),
            "parents": ("hierarchy",),
            "coarsen": () if self.coarsen is None else (None, *self.coarsen.kinds),
        }
        return {name: kinds for name, kinds in needs.items() if getattr(self, name) is not None}

    def of_kind(self, kind: str | None, **given: Any) -> Column:
        """Return the column as another kind; settings that do not fit it fall away.

        >>> Column("spiked", importance=2, spike=-1).of_kind("number")
        Column(kind='number', levels=None, importance=2, transform=None, round=None, ...)
        """
        needs = self._kinds_that_settings_need()
        gone = {name: None for name, kinds in needs.items() if kind not in kinds}
        return replace(self, **{**gone, **given, "kind": kind})

    def completed(self, rounding: str) -> Column:
        """Return the column with the rounding of the plan where it says none and can have one."""
        if self.round is not None:
            return self
        return replace(self, round=rounding if self.kind in (None, *QUANTITIES) else "no")


def _importance(value: Any) -> float:
    rule = "a number above 0 (2: the column counts twice as much as one of importance 1)"
    return real("importance", value, rule, lambda x: x > 0)


def _check_prefixes(given: Any) -> tuple[int, ...]:
    """Check lengths of prefixes: each longer than the one before."""
    rule = (
        "prefixes is a list of lengths of 1 or more, each longer than the one before, as [1, 2, 4]"
    )
    if not isinstance(given, list | tuple) or not given:
        raise InputError(f"{rule}; got {shown(given)}.")
    before = 0
    for length in given:
        if isinstance(length, bool) or not isinstance(length, int) or length <= before:
            raise InputError(f"{rule}; got {shown(list(given))}.")
        before = length
    return tuple(given)


def _check_parents(given: Any) -> dict[str, str]:
    """Check a table of child and parent: no code is its own ancestor."""
    check_table("parents", given)
    if not given:
        raise InputError("parents names the parent of each code; it names none. Leave it out.")
    for child, parent in given.items():
        for code in (child, parent):
            if not isinstance(code, str):
                raise InputError(
                    f"parents is a table of codes, which are texts; got {shown(code)}. Put it in quotes."
                )
    safe: set[str] = set()
    for child in given:
        way, code = {child}, child
        while code in given and code not in safe:
            code = given[code]
            if code in way:
                raise InputError(
                    f"A hierarchy ends in roots; by parents, {shown(child)} leads to {shown(code)} again and "
                    "again. Take one parent on the way out."
                )
            way.add(code)
        safe |= way
    return dict(given)


def columns_with(columns: Mapping[Any, Column], what: str, given: Any) -> dict[Any, Column]:
    """Change how some columns are described: by a kind, by levels in order, or by a table of settings.

    >>> found = columns_with({}, "kinds", {"education": ["low", "high"], "sector": "nominal"})
    >>> found["education"].kind, found["sector"].kind
    ('ordinal', 'nominal')
    """
    check_table(what, given)
    found = dict(columns)
    for name, setting in given.items():
        before = found.get(name, Column())
        if isinstance(setting, list | tuple):
            setting = {"kind": "ordinal", "levels": setting}
        elif not isinstance(setting, Mapping):
            setting = {"kind": setting}
        check_keys(f"{what}, of column {shown(name)},", setting, field_names(Column))
        try:
            if "coarsen" in setting:
                setting = {**setting, "coarsen": coarsen_of(setting["coarsen"], before.coarsen)}
            kind = setting.get("kind", before.kind)
            if kind is not None:
                check_word("kind", kind, KINDS)
            found[name] = before.of_kind(kind, **{k: v for k, v in setting.items() if k != "kind"})
        except InputError as error:
            raise InputError(f"Column {shown(name)}: {error}") from None
    return found


@dataclass(frozen=True)
class Strata:
    """Parts of the table that never share a group."""

    columns: Names = ()
    """Whose values tell the stratum of a record."""
    small: str = "error"
    """What becomes of a stratum with fewer than k units: "error" names it, "merge" joins it to another."""

    def __post_init__(self) -> None:
        names = () if self.columns is None else column_names("strata", self.columns)
        _set(self, "columns", names)
        check_word("small, of strata,", self.small, SMALL_STRATA)
        if not self.columns and self.small != "error":
            raise InputError(
                "small says what becomes of small strata; no strata are named. Name their columns, or leave "
                "small out."
            )


def strata_with(before: Strata, given: Any) -> Strata:
    """Make strata from names of columns or a table of settings; None: no strata.

    >>> strata_with(Strata(("region",), small="merge"), ["sector"])
    Strata(columns=('sector',), small='merge')
    """
    if isinstance(given, Strata):
        return given
    if isinstance(given, Mapping):
        check_keys("strata", given, field_names(Strata))
        return replace(before, **given)
    names = () if given is None else column_names("strata", given)
    return replace(before, columns=names) if names else Strata()


@dataclass(frozen=True)
class Weight:
    """The column of survey weights: how many records of the population a record stands for."""

    column: Name
    """Of the weights."""
    release: str = "mean"
    """"mean" of the group, which keeps all totals; "keep" as it is (then known); "drop"."""
    grouping: str = "weighted"
    """"weighted": only methods whose objective can be; "plain": groups are formed without weights."""

    def __post_init__(self) -> None:
        column_name("weight", self.column)
        check_word("release, of the weight,", self.release, WEIGHT_RELEASES)
        check_word("grouping, of the weight,", self.grouping, GROUPINGS)


def weight_with(before: Weight | None, given: Any) -> Weight | None:
    """Make the weight from the name of its column or a table of settings; None: no weight.

    >>> weight_with(None, "w")
    Weight(column='w', release='mean', grouping='weighted')
    """
    if given is None:
        return None
    changes = given if isinstance(given, Mapping) else {"column": given}
    check_keys("weight", changes, field_names(Weight))
    if before is None and "column" not in changes:
        raise InputError('weight names a column: weight = { column = "w" }, --weight w.')
    return Weight(**{**({} if before is None else vars(before)), **changes})


@dataclass(frozen=True)
class Unit:
    """The column that tells whose record it is."""

    column: Name | None = None
    """Whose distinct values are the units."""
    mode: str = "count"
    """"count": k distinct units in each group; "together": all records of a unit in one group."""
    name: str | None = None
    """The noun for a unit, singular, such as "household"; sentences use it."""

    def __post_init__(self) -> None:
        if self.column is not None:
            column_name("unit", self.column)
        if self.name is not None:
            _set(self, "name", _check_noun(self.name))
            if self.column is None:
                raise InputError(
                    f"name is the noun for the unit; no unit is named. Name its column, as by --unit "
                    f"household, or leave the name {shown(self.name)} out."
                )
        check_word("mode, of the unit,", self.mode, UNIT_MODES)
        if self.column is None and self.mode != "count":
            raise InputError(
                "mode says how the records of a unit are grouped; no unit is named. Name its column, as by "
                "--unit household."
            )


_LONGEST_NOUN = 40


def _check_noun(given: Any) -> str:
    """Return a noun that fits into a sentence."""
    noun = given.strip() if isinstance(given, str) else ""
    if not noun or len(noun) > _LONGEST_NOUN or not noun.isprintable():
        raise InputError(
            'name, of the unit, is the noun for one unit, such as "household" or "firm", of at most '
            f"{_LONGEST_NOUN} characters; got {shown(given)}."
        )
    return noun


def unit_with(before: Unit, given: Any) -> Unit:
    """Make the unit from the name of its column or a table of settings; None: no unit.

    Another column is another unit, so that the noun of the former one is dropped.

    >>> unit_with(Unit("household"), {"mode": "together"})
    Unit(column='household', mode='together', name=None)
    """
    if given is None:
        return Unit()
    if isinstance(given, Unit):
        return given
    changes = given if isinstance(given, Mapping) else {"column": given}
    check_keys("unit", changes, field_names(Unit))
    if before.column is None and changes.get("column") is None:
        raise InputError('unit names a column: unit = { column = "household" }, --unit household.')
    if changes.get("column", before.column) != before.column:
        before = replace(before, name=None)
    return replace(before, **changes)


@dataclass(frozen=True)
class Missing:
    """What becomes of missing values in protected columns."""

    policy: str = "pattern"
    """"pattern": groups share what is missing; "majority": a group releases what most have; "fill": the
    group's value for all; "drop": such records are left out; "error": they are refused."""
    most: float = 0.01
    """Largest share of the values that joining rare patterns may blank."""
    codes: Mapping[Name, tuple[str | float, ...]] = field(default_factory=dict)
    """Values of a column that mean missing, such as −8."""

    def __post_init__(self) -> None:
        check_word("missing", self.policy, POLICIES)
        rule = "a share of the values from 0 to 1 (for 1 % write 0.01)"
        _set(self, "most", real("most, of missing,", self.most, rule, lambda x: 0 <= x <= 1))
        check_table("codes, of missing,", self.codes)
        codes: dict[Name, tuple[str | float, ...]] = {}
        one_or_several: Mapping[Name, Any] = self.codes
        for name, given in one_or_several.items():
            several = [given] if isinstance(given, str | int | float) else given
            codes[name] = distinct_values(f"missing.codes of column {shown(name)}", several, 1)
        _set(self, "codes", codes)


def missing_with(before: Missing, given: Any) -> Missing:
    """Make it from a policy or a table of settings; codes are added column by column; None: the defaults.

    >>> missing_with(Missing(codes={"age": [99]}), {"codes": {"income": -8}}).codes
    {'age': (99,), 'income': (-8,)}
    """
    if given is None:
        return Missing()
    changes = dict(given) if isinstance(given, Mapping) else {"policy": given}
    check_keys("missing", changes, field_names(Missing))
    if "codes" in changes:
        check_table("codes, of missing,", changes["codes"])
        changes["codes"] = {**before.codes, **changes["codes"]}
    return replace(before, **changes)


@dataclass(frozen=True)
class Suppress:
    """Records that may be left out where that lowers the loss most."""

    most: float = 0.0
    """Largest share of the records, in whole units; 0: none."""
    weighted: bool = False
    """Whether records are also left out where there are weights, whose totals then change."""

    def __post_init__(self) -> None:
        rule = "a share of the records from 0 to 0.5 (for 1 % write 0.01)"
        _set(self, "most", real("most, of suppress,", self.most, rule, lambda x: 0 <= x <= 0.5))
        check_bool("weighted, of suppress,", self.weighted)


def suppress_with(before: Suppress, given: Any) -> Suppress:
    """Make it from a share or a table of settings; None: no record is left out.

    >>> suppress_with(Suppress(), 0.01)
    Suppress(most=0.01, weighted=False)
    """
    if given is None:
        return Suppress()
    changes = given if isinstance(given, Mapping) else {"most": given}
    check_keys("suppress", changes, field_names(Suppress))
    return replace(before, **changes)


@dataclass(frozen=True)
class Accept:
    """What the board decided: a release beyond these figures fails."""

    loss: float | None = None
    """Most information loss, in percent."""
    linkage: float | None = None
    """Largest share of records linked, 0 to 1, with what an attacker knows."""
    agreeing: float = 0.0
    """Largest share of records, 0 to 1, whose group discloses a confidential value; beyond it the verdict
    is amber."""
    moved: float | None = None
    """Largest share of its 95 % interval by which an analysis may move on average; 1: the intervals before
    and after touch."""

    def __post_init__(self) -> None:
        loss = check_number("max_loss", self.loss, "a percentage from 0 up", 0, math.inf)
        rule = "a share of the records from 0 to 1 (for 20 % write 0.2)"
        _set(self, "loss", loss)
        _set(self, "linkage", check_number("max_linkage", self.linkage, rule, 0, 1))
        agreeing = check_number("max_agreeing", self.agreeing, rule, 0, 1)
        _set(self, "agreeing", 0.0 if agreeing is None else agreeing)
        rule = "a share of a 95 % interval from 0 up (for half of it write 0.5)"
        _set(self, "moved", check_number("max_moved", self.moved, rule, 0, math.inf))


@dataclass(frozen=True)
class Roles:
    """Who is what in a table: every column has exactly one of these, beside being a unit or a stratum."""

    protected: list[Any]
    dropped: list[Any]
    """Left out of what is released, the weight among them if it is to be dropped."""
    renumbered: list[Any]
    confidential: list[Any]
    known: list[Any]
    """Left as they are and not confidential: taken as known to an attacker. Strata are, and a weight
    that is kept."""
    unit: Any = None
    """In what all protected columns together are counted: the unit of the plan and, where blocks have
    units of their own, the one of which the table has fewest."""
    strata: list[Any] = field(default_factory=list)
    """Columns, known ones, whose values never share a group of some block."""
    weight: Any = None

    @property
    def released(self) -> list[Any]:
        """Columns left as they are, known or confidential."""
        return [*self.confidential, *self.known]

    @property
    def named(self) -> list[Any]:
        """All columns of the table."""
        found = [*self.protected, *self.dropped, *self.renumbered, *self.released]
        # A weight that is released as its group's mean is in no other list.
        return found if self.weight is None or self.weight in found else [*found, self.weight]


_LONGEST_REASON = 500


def claims_of(given: Any, before: Mapping[Any, str] | None = None) -> tuple[Names, dict[Any, str]]:
    """Return the confidential columns and the reasons for claiming so, from names or a table.

    An empty reason is none. Columns named without a table keep the reasons they had before.

    >>> claims_of({"diagnosis": "in no register", "income": ""})
    (('diagnosis', 'income'), {'diagnosis': 'in no register'})
    """
    if not isinstance(given, Mapping):
        columns = column_names("confidential", given)
        return columns, {name: text for name, text in (before or {}).items() if name in columns}
    reasons = {}
    for name, reason in given.items():
        if not isinstance(reason, str) or len(reason) > _LONGEST_REASON:
            raise InputError(
                f"confidential gives the reason for each column, a text of at most {_LONGEST_REASON} "
                f"characters; for {shown(name)} it is {shown(reason)}."
            )
        if reason.strip():
            reasons[name] = reason.strip()
    return tuple(given), reasons


def _set(part: Any, name: str, value: Any) -> None:
    """Put the checked form of a setting in its place while a frozen part is made."""
    object.__setattr__(part, name, value)
