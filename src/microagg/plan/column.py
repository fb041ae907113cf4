"""How one column is read, recoded, compared and released: a section of the plan for each column.

What recoding costs counts as loss against the original; :mod:`microagg.encode.recode` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.checks import check_keys, check_table, check_word, distinct_values, number
from microagg.plan.forms import COARSEN, KIND, LIST, NUMBER_BY_COLUMN, WORD_BY_COLUMN
from microagg.plan.settings import check_count
from microagg.plan.settings_table import Section, Setting, plain, rows_of, setting

KINDS = ("number", "integer", "boolean", "nominal", "ordinal", "date", "spiked", "hierarchy")
CATEGORIES = ("boolean", "nominal", "ordinal", "hierarchy")
QUANTITIES = ("number", "integer", "date", "spiked")
_QUANTITY = (None, *QUANTITIES)
_MOST_IMPORTANT = 1e100  # coordinates grow by its root, and their squares must not overflow
_RELEASED_BY = {"median": "ordinal", "node": "hierarchy", "spike": "spiked"}


_NUMBERS = ("number", "integer", "spiked")
# The settings that go together, and the kinds of column that they fit; the first is taken where the plan
# names none, except for numbers, whose type tells.
_FITS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("bands", "top", "bottom"): _NUMBERS,
    ("round", "top", "bottom"): _NUMBERS,
    ("rare",): ("nominal", "hierarchy", "ordinal"),
    ("prefix",): ("nominal",),
    ("to",): ("date",),
}


def _check_bands(what: str, value: Any) -> float | tuple[float, ...]:
    rule = "a width above 0, or a list of edges"
    if not isinstance(value, list | tuple):
        return number(rule, lambda x: x > 0)(what, value)
    edges = tuple(number("a number")("An edge of bands", edge) for edge in value)
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise InputError(f"{what} is {rule}, each above the one before; got {shown(list(value))}.")
    return edges


@dataclass(frozen=True)
class Coarsen(Section):
    """How the values of one column become coarser.

    Examples
    --------
    >>> Coarsen(bands=5, top=80).in_words
    'bands of 5, 80 or more in one'
    >>> Coarsen(rare=20, top=80)
    Traceback (most recent call last):
    microagg.errors.InputError: rare and top do not go together: ...
    """

    title = "coarsen"

    bands: float | tuple[float, ...] | None = setting(
        None,
        check=_check_bands,
        help="Of numbers: the width of bands that begin at its multiples, or the edges between bands; each "
        "band includes its lower end.",
    )
    round: float | None = setting(
        None,
        check=number("a number above 0", lambda x: x > 0),
        help="Of numbers: the nearest multiple of this, of two the upper one.",
    )
    top: float | None = setting(
        None,
        check=number("a number"),
        help="Of numbers: larger ones become this; with bands, all from here on are one band.",
    )
    bottom: float | None = setting(
        None,
        check=number("a number"),
        help="Of numbers: smaller ones become this; with bands, all below are one band.",
    )
    rare: int | None = setting(
        None,
        check=lambda what, value: check_count(what, value, 2),
        help='Of categories: levels that fewer records (or units) have become "other", in a hierarchy their '
        "parent, in an order one with a neighbour.",
    )
    prefix: int | None = setting(
        None, check=check_count, help="Of codes: how many of the first characters stay."
    )
    to: str | None = setting(
        None,
        choices={period: period for period in ("day", "week", "month", "quarter", "year")},
        help="Of dates: the first day of their week, month, quarter or year, or the day of a time.",
    )

    def check_together(self) -> None:
        """Refuse settings that do not go together, and a recoding that says nothing."""
        chosen = list(plain(self))
        if not chosen:
            raise InputError(
                "coarsen says how values become coarser: bands, round, top, bottom, rare, prefix or to; "
                "none is given. Give one, or leave coarsen out."
            )
        for first, second in combinations(sorted(chosen), 2):
            if not any({first, second} <= set(names) for names in _FITS):
                raise InputError(
                    f"{first} and {second} do not go together: numbers take bands or round, either with "
                    "top and bottom; categories take rare or prefix, dates take to. Leave one out."
                )
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise InputError(
                f"bottom is below top; bottom is {self.bottom:g} and top is {self.top:g}. Change one."
            )
        if isinstance(self.bands, tuple) and (self.top is not None or self.bottom is not None):
            raise InputError(
                "A list of edges already has bands below the first and from the last edge on; top or bottom "
                "is given too. Put it among the edges."
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of column that it fits."""
        return next(kinds for names, kinds in _FITS.items() if set(plain(self)) <= set(names))

    @property
    def kind(self) -> str | None:
        """The kind of a column where the plan names none; None: what its type says."""
        return None if self.kinds == _NUMBERS else self.kinds[0]

    @property
    def in_words(self) -> str:
        """What becomes of the values, for a line of the report."""
        phrases = []
        if isinstance(self.bands, tuple):
            phrases.append("bands with edges " + ", ".join(f"{edge:g}" for edge in self.bands))
        elif self.bands is not None:
            phrases.append(f"bands of {self.bands:g}")
        if self.round is not None:
            phrases.append(f"rounded to {self.round:g}")
        if self.bottom is not None:
            phrases.append(
                f"under {self.bottom:g} in one" if self.bands else f"at least {self.bottom:g}"
            )
        if self.top is not None:
            phrases.append(
                f"{self.top:g} or more in one" if self.bands else f"at most {self.top:g}"
            )
        if self.rare is not None:
            phrases.append(f"levels of fewer than {self.rare:,} merged")
        if self.prefix is not None:
            phrases.append(
                f"first {self.prefix} characters" if self.prefix > 1 else "first character"
            )
        if self.to is not None:
            phrases.append(f"to the {self.to}")
        return ", ".join(phrases)


def _check_prefixes(_: str, value: Any) -> tuple[int, ...]:
    """Check lengths of prefixes: each longer than the one before."""
    rule = (
        "prefixes is a list of lengths of 1 or more, each longer than the one before, as [1, 2, 4]"
    )
    if not isinstance(value, list | tuple) or not value:
        raise InputError(f"{rule}; got {shown(value)}.")
    whole = all(isinstance(length, int) and not isinstance(length, bool) for length in value)
    if not whole or any(low >= high for low, high in pairwise([0, *value])):
        raise InputError(f"{rule}; got {shown(list(value))}.")
    return tuple(value)


def _check_parents(what: str, value: Any) -> dict[str, str]:
    """Check a table of child and parent: no code is its own ancestor."""
    check_table(what, value)
    if not value:
        raise InputError("parents names the parent of each code; it names none. Leave it out.")
    for child, parent in value.items():
        for code in (child, parent):
            if not isinstance(code, str):
                raise InputError(
                    f"parents is a table of codes, which are texts; got {shown(code)}. Put it in quotes."
                )
    try:
        TopologicalSorter({child: [parent] for child, parent in value.items()}).prepare()
    except CycleError as error:
        code = shown(error.args[1][0])
        raise InputError(
            f"A hierarchy ends in roots; by parents, {code} leads to {code} again and again. Take one "
            "parent on the way out."
        ) from None
    return dict(value)


@dataclass(frozen=True)
class Column(Section):
    """How one column is read, recoded, compared and released.

    Examples
    --------
    >>> Column("ordinal", levels=["low", "middle", "high"]).levels
    ('low', 'middle', 'high')
    >>> Column("hierarchy", prefixes=[1, 2, 4]).prefixes
    (1, 2, 4)
    """

    kind: str | None = setting(
        None,
        choices={kind: kind for kind in KINDS},
        flag="--kind",
        form=KIND,
        help="What a column holds, where its values do not tell: number, integer, boolean, nominal, ordinal, "
        "date, spiked or hierarchy; or its levels from lowest to highest, as in pay=low,high.",
        label="Kind",
        placeholder="as the table says",
    )
    levels: tuple[str | float | bool, ...] | None = setting(
        None,
        check=lambda what, given: distinct_values(what, given, 2, bools=True),
        help="The values of an ordinal column from lowest to highest, or those of a nominal one; by default "
        "what the table says.",
        label="Levels, separated by commas, of ordinal ones from low to high",
        form=LIST._replace(is_long=True),
        fits=("ordinal", "nominal"),
    )
    importance: float = setting(
        1.0,
        check=number(
            "a number above 0 and at most 1e100 (2: the column counts twice as much as one of importance 1)",
            lambda x: 0 < x <= _MOST_IMPORTANT,
        ),
        flag="--importance",
        form=NUMBER_BY_COLUMN,
        help="How much a column counts when records are compared, against 1 of the others.",
        label="Importance",
        placeholder="1",
    )
    transform: str | None = setting(
        None,
        choices={"log": "logarithm", "rank": "rank"},
        flag="--transform",
        form=WORD_BY_COLUMN,
        help="Compare the log or the rank of a skewed column; its values are released all the same.",
        label="Compared by",
        placeholder="its values",
        fits=_QUANTITY,
    )
    round: str | None = setting(
        None,
        choices={"no": "no", "nearest": "to whole numbers", "totals": "and the total kept"},
        help="no, nearest (whole numbers stay whole) or totals (and their sum stays the same); by default as "
        "the plan says.",
        label="Rounded",
        placeholder="as the plan says",
        fits=_QUANTITY,
    )
    release: str | None = setting(
        None,
        choices={
            "median": "the median",
            "node": "the common ancestor",
            "spike": "the spike for the whole group",
        },
        help="median of an ordinal column, node (the common ancestor) of a hierarchy, spike (for the whole "
        "group) of a spiked one; by default the admissible value nearest to the mean.",
        label="Released",
        placeholder="nearest to the mean",
        fits=tuple(_RELEASED_BY.values()),
    )
    spike: float | None = setting(
        None,
        check=number("a number"),
        help="The value that many records of a spiked column share; by default 0.",
        label="Spike at",
        placeholder="0",
        fits=("spiked",),
    )
    prefixes: tuple[int, ...] | None = setting(
        None,
        check=_check_prefixes,
        help="Lengths of the prefixes of a code that are the levels of its hierarchy.",
        label="Lengths of prefixes",
        placeholder="1, 2, 4",
        form=LIST,
        fits=("hierarchy",),
    )
    parents: Mapping[str, str] | None = setting(
        None,
        check=_check_parents,
        help="The parent of each code of a hierarchy; a code without one is a root.",
        fits=("hierarchy",),
    )
    coarsen: Coarsen | None = setting(
        None,
        section=Coarsen,
        flag="--coarsen",
        form=COARSEN,
        help="Make values coarser before groups are formed; counted as loss. Numbers: age=bands:5,top:80 "
        "(bands:0/18/65 gives edges), income=round:100, top:80, bottom:16. Categories: job=rare:20 (rarer "
        "ones become other), zip=prefix:2. Dates: born=to:month (day, week, quarter, year). May be given "
        "several times, also for strata and columns left as they are.",
        label="Made coarser",
        hint="Before groups are formed; counted as loss. Numbers: bands:5, bands:0/18/65, round:100, top:80, "
        "bottom:16. Categories: rare:20, prefix:2. Dates: to:month.",
        placeholder="bands:5,top:80",
    )

    def check_together(self) -> None:
        """Refuse settings that do not fit the kind of the column."""
        if self.prefixes is not None and self.parents is not None:
            raise InputError("A hierarchy has prefixes or parents; both are given. Leave one out.")
        for name, kinds in self._kinds_that_settings_need().items():
            if self.kind not in kinds:
                its_kind = "it has none" if self.kind is None else f"it is {shown(self.kind)}"
                named = [kind for kind in kinds if kind is not None]
                raise InputError(
                    f"{name} is a setting of columns whose kind is {' or '.join(named)}; {its_kind}. Give "
                    f"the column such a kind, or leave {name} out."
                )

    def _kinds_that_settings_need(self) -> dict[str, tuple[str | None, ...]]:
        """Return the settings that are given and fit some kinds only, with those kinds."""
        needs = {row.name: row.fits for row in rows_of(Column) if row.fits}
        if self.round == "no":
            del needs["round"]
        if self.release is not None:
            needs["release"] = (_RELEASED_BY[self.release],)
        if self.coarsen is not None:
            needs["coarsen"] = (None, *self.coarsen.kinds)
        return {name: kinds for name, kinds in needs.items() if getattr(self, name) is not None}

    def of_kind(self, kind: str | None, **given: Any) -> Column:
        """Return the column as another kind; settings that do not fit it fall away.

        >>> Column("spiked", importance=2, spike=-1).of_kind("number")
        Column(kind='number', levels=None, importance=2, transform=None, round=None, ...)
        """
        needs = self._kinds_that_settings_need()
        gone = {name: None for name, kinds in needs.items() if kind not in kinds}
        return replace(self, **{**gone, **given, "kind": kind})


def fits_kind(row: Setting, word: str, kind: str | None) -> bool:
    """Return whether ``word`` is one that the setting of ``row`` may be for columns of this ``kind``."""
    return row.name != "release" or _RELEASED_BY.get(word) in (None, kind)


def columns_with(columns: Mapping[Any, Column], what: str, descriptions: Any) -> dict[Any, Column]:
    """Return how columns are described after some descriptions changed.

    Parameters
    ----------
    columns : how they are described now; stays as it is
    what : the setting that changes them, for messages
    descriptions : by column: a kind, levels in order, a table of settings, or a Column
    """
    check_table(what, descriptions)
    described_columns = dict(columns)
    for name, described in descriptions.items():
        if isinstance(described, Column):
            described_columns[name] = described
            continue
        before = described_columns.get(name, Column())
        table = described if isinstance(described, Mapping) else {"kind": described}
        check_keys(
            f"{what}, of column {shown(name)},", table, [row.name for row in rows_of(Column)]
        )
        if isinstance(table.get("kind"), list | tuple):
            table = {**table, "kind": "ordinal", "levels": table["kind"]}
        try:
            if "coarsen" in table and table["coarsen"] is not None:
                table = {**table, "coarsen": Coarsen.changed(before.coarsen, table["coarsen"])}
            kind = table.get("kind", before.kind)
            if kind is not None:
                check_word("kind", kind, KINDS)
            described_columns[name] = before.of_kind(
                kind, **{k: v for k, v in table.items() if k != "kind"}
            )
        except InputError as error:
            raise InputError(f"Column {shown(name)}: {error}") from None
    return described_columns
