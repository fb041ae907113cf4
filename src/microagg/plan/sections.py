"""The sections of a plan: strata, weight, unit, missing values, suppression, what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from microagg.errors import InputError, shown
from microagg.plan.checks import Name, Names, check_table, column_names, distinct_values, number
from microagg.plan.forms import CODES, SHARE, Form
from microagg.plan.settings_table import Section, setting


@dataclass(frozen=True)
class Strata(Section):
    """Parts of the table that never share a group."""

    shorthand, title, flags = "columns", "strata", "--strata-"

    columns: Names = setting(
        (),
        check=lambda what, given: () if given is None else column_names(what, given),
        help="Columns, such as the region, whose values never share a group: figures for each stay exact.",
    )
    small: str = setting(
        "error",
        choices={"error": "is refused", "merge": "is merged with another"},
        flag="--small-strata",
        help="What becomes of a stratum with fewer than k units: error (refuse, and name it) or merge (join "
        "it to another).",
        label="A stratum with fewer than k",
        hint="Groups never go across strata, so each needs k of its own.",
    )

    @classmethod
    def changed(cls, before: Self | None, given: Any) -> Self:
        """Return the strata that names of columns or a table of settings give.

        >>> Strata.changed(Strata(("region",), small="merge"), ["sector"])
        Strata(columns=('sector',), small='merge')
        """
        # Where the last column goes, so does what becomes of small strata.
        return super().changed(None if given == [] or given == () else before, given)

    def check_together(self) -> None:
        """Refuse a rule for small strata where there are none."""
        if not self.columns and self.small != "error":
            raise InputError(
                "small says what becomes of small strata; no strata are named. Name their columns, or leave "
                "small out."
            )


@dataclass(frozen=True)
class Weight(Section):
    """The column of survey weights: how many records of the population a record stands for."""

    shorthand, title, flags = "column", "the weight", "--weight-"

    column: Name = setting(
        None,
        help="Column of survey weights, how many of the population a record stands for: means are "
        "weighted, k is not.",
    )
    release: str = setting(
        "mean",
        choices={"mean": "as the mean of its group", "keep": "as it is", "drop": "not at all"},
        help="What is released of the weight: mean (of the group: keeps weighted totals, singles nobody "
        "out), keep (as it is, so that attackers know it) or drop.",
        label="Released",
        hint="The mean keeps all weighted totals and singles nobody out.",
    )
    grouping: str = setting(
        "weighted",
        choices={"weighted": "with weights", "plain": "without weights"},
        help="weighted: only methods that can weigh records; plain: groups are formed without weights.",
        label="Groups are formed",
    )

    def check_together(self) -> None:
        """Refuse a weight without a column."""
        if self.column is None:
            raise InputError('weight names a column: weight = { column = "w" }, --weight w.')


_LONGEST_NOUN = 40


def _check_noun(_: str, value: Any) -> str:
    """Return a noun that fits into a sentence."""
    noun = value.strip() if isinstance(value, str) else ""
    if not noun or len(noun) > _LONGEST_NOUN or not noun.isprintable():
        raise InputError(
            'name, of the unit, is the noun for one unit, such as "household" or "firm", of at most '
            f"{_LONGEST_NOUN} characters; got {shown(value)}."
        )
    return noun


@dataclass(frozen=True)
class Unit(Section):
    """The column that tells whose record it is."""

    shorthand, title, flags = "column", "the unit", "--unit-"

    column: Name | None = setting(
        None,
        help="Column that tells whose record it is (person, household, firm): k counts its values.",
    )
    mode: str = setting(
        "count",
        choices={"count": "are counted once a group", "together": "stay together"},
        help="count: each group holds k different units; together: whole units move together, each member "
        "in a group with those of the same other units.",
        label="Its records",
    )
    name: str | None = setting(
        None,
        check=_check_noun,
        form=Form(metavar="NOUN", from_field=str),
        help="What one unit is called, such as household: sentences then say 5 households.",
        label="One of them is called",
        hint="Sentences then say 5 households.",
        placeholder="household",
    )

    def check_together(self) -> None:
        """Refuse settings of a unit that is not named."""
        if self.column is None and (self.name is not None or self.mode != "count"):
            what = "mode says how the records of a unit are grouped"
            if self.name is not None:
                what = f"name, here {shown(self.name)}, is the noun for the unit"
            raise InputError(
                f"{what}; no unit is named. Name its column, as by --unit household, or leave it out."
            )

    @classmethod
    def changed(cls, before: Self | None, given: Any) -> Self:
        """Return the unit that the name of its column or a table of settings gives.

        Another column is another unit, so that the noun of the former one is dropped.

        >>> Unit.changed(Unit("household", name="home"), {"mode": "together"})
        Unit(column='household', mode='together', name='home')
        """
        if isinstance(given, cls):
            return given
        changes, before = cls.table(given), before or cls()
        column = changes.get("column", before.column)
        if column is None:
            raise InputError(
                'unit names a column: unit = { column = "household" }, --unit household.'
            )
        return super().changed(
            before if column == before.column else replace(before, name=None), changes
        )


def _check_codes(what: str, by_column: Any) -> dict[Name, tuple[str | float, ...]]:
    """Return the codes of each column; a single one need not be a list."""
    check_table(what, by_column)
    return {
        name: distinct_values(
            f"missing.codes of column {shown(name)}",
            [codes] if isinstance(codes, str | int | float) else codes,
            1,
        )
        for name, codes in by_column.items()
    }


@dataclass(frozen=True)
class Missing(Section):
    """What becomes of missing values in protected columns."""

    shorthand, title, flags = "policy", "missing", "--missing-"

    policy: str = setting(
        "pattern",
        choices={
            "pattern": "groups share what is missing",
            "majority": "a group releases a value if most of its records have one",
            "fill": "a group releases a value if any of its records has one",
            "drop": "records with missing values are left out",
            "error": "missing values are refused",
        },
        help="Missing values: groups share what is missing (pattern); release a value if most of their "
        "records have one (majority), or if any has (fill). Or drop such records, or error.",
        label="Policy",
        hint="Where values are missing is part of what k records share.",
    )
    most: float = setting(
        0.01,
        check=number(
            "a share of the values from 0 to 1 (for 1 % write 0.01)", lambda x: 0 <= x <= 1
        ),
        form=SHARE,
        help="Largest share of values, 0 to 1, that joining rare patterns of missing values may blank.",
        label="Largest share to blank",
        hint="For joining patterns that too few records have.",
    )
    codes: Mapping[Name, tuple[str | float, ...]] = setting(
        dict,
        check=_check_codes,
        flag="--missing-code",
        form=CODES,
        help="Values of a column that mean missing, such as income=-8,-9; may be given for several columns.",
    )


@dataclass(frozen=True)
class Suppress(Section):
    """Records that may be left out where that lowers the loss most."""

    shorthand, title, flags = "most", "suppress", "--suppress-"

    most: float = setting(
        0.0,
        check=number(
            "a share of the records from 0 to 0.5 (for 1 % write 0.01)", lambda x: 0 <= x <= 0.5
        ),
        form=SHARE,
        help="Largest share of the records, 0 to 0.5, that may be left out where that lowers the loss most; "
        "units are left out as a whole. By default none is.",
    )
    weighted: bool = setting(
        False, help="Leave records out also where there are weights, whose totals then change."
    )


_SHARE_OF_RECORDS = number(
    "a share of the records from 0 to 1 (for 20 % write 0.2)", lambda x: 0 <= x <= 1
)


@dataclass(frozen=True)
class Accept(Section):
    """What the board decided: a release beyond these figures fails."""

    flags = "--max-"

    loss: float | None = setting(
        None,
        check=number("a percentage from 0 up", lambda x: x >= 0),
        help="Accepted: at most this information loss, in percent.",
        label="Loss, at most %",
    )
    linkage: float | None = setting(
        None,
        check=_SHARE_OF_RECORDS,
        help="Accepted: at most this share of records linked, 0 to 1, with what an attacker knows.",
        label="Records linked, at most (0 to 1)",
    )
    agreeing: float = setting(
        0.0,
        check=lambda what, value: _SHARE_OF_RECORDS(what, value or 0.0),
        help="Accepted: at most this share of records, 0 to 1, whose group discloses a confidential value; "
        "beyond it the verdict is amber. By default none.",
        label="Records whose group discloses a confidential value, at most (0 to 1)",
        placeholder="0",
    )
    pairing: float | None = setting(
        None,
        check=_SHARE_OF_RECORDS,
        help="Accepted: at most this share of people, 0 to 1, whose row is picked by how confidential "
        "columns go with the protected ones; beyond it the verdict is amber. By default 1/k.",
        label="Rows picked through confidential columns, at most (0 to 1)",
        placeholder="1/k",
    )
    moved: float | None = setting(
        None,
        check=number(
            "a share of a 95 % interval from 0 up (for half of it write 0.5)", lambda x: x >= 0
        ),
        help="Accepted: each analysis moves by at most this share of its 95 % interval, on average; with 0.5 "
        "estimates stay within it.",
        label="Analyses moved, at most (share of their 95 % intervals)",
    )

    tables: float | None = setting(
        None,
        check=number("a multiple from 0 up (1 is what another sample gives)", lambda x: x >= 0),
        help="Accepted: tables of three columns are at most this many times as far from the original's as "
        "those of another sample of the same size.",
        label="Tables moved, at most (multiple of another sample)",
    )
    inference: float | None = setting(
        None,
        check=_SHARE_OF_RECORDS,
        help="Accepted: at most this share of values, 0 to 1, that an attacker who knows all other columns "
        "guesses beyond those guessed about people who are not in the file. A tenth of the people is put "
        "aside for that, and the others are protected once more.",
        label="Values guessed beyond those of people who are not in the file, at most (0 to 1)",
    )

    @property
    def targets(self) -> list[str]:
        """The limits of loss and linkage, in words."""
        loss, linked = self.loss, self.linkage
        limits = [] if loss is None else [f"a loss of at most {loss:g} %"]
        return limits if linked is None else [*limits, f"a linkage of at most {100 * linked:g} %"]


@dataclass(frozen=True)
class Roles:
    """The roles in a table: every column has exactly one of these, and may also be the unit or a stratum."""

    protected: list[Any]
    dropped: list[Any]
    """Left out of what is released, the weight among them if it is to be dropped."""
    renumbered: list[Any]
    confidential: list[Any]
    known: list[Any]
    """Left as they are and not confidential: taken as known to an attacker. Strata are, and a weight
    that is kept."""
    unit: Any = None
    """The unit in which all protected columns together are counted: that of the plan or, where blocks have
    units of their own, the one with the fewest distinct values."""
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
        columns = [*self.protected, *self.dropped, *self.renumbered, *self.released]
        # A weight that is released as its group's mean is in no other list.
        return columns if self.weight is None or self.weight in columns else [*columns, self.weight]


_LONGEST_REASON = 500


def claims_of(claims: Any, before: Mapping[Any, str] | None = None) -> tuple[Names, dict[Any, str]]:
    """Return the confidential columns and the reasons for claiming so, from names or a table.

    An empty reason is none. Columns named without a table keep the reasons they had before.
    """
    if not isinstance(claims, Mapping):
        columns = column_names("confidential", claims)
        return columns, {name: text for name, text in (before or {}).items() if name in columns}
    reasons = {}
    for name, reason in claims.items():
        if not isinstance(reason, str) or len(reason) > _LONGEST_REASON:
            raise InputError(
                f"confidential gives the reason for each column, a text of at most {_LONGEST_REASON} "
                f"characters; for {shown(name)} it is {shown(reason)}."
            )
        if reason.strip():
            reasons[name] = reason.strip()
    return tuple(claims), reasons
