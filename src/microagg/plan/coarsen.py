"""Recoding, a section of the plan: values of a column become coarser before groups are formed.

What it costs counts as loss against the original; :mod:`microagg.encode.recode` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.checks import number, real
from microagg.plan.settings import check_count
from microagg.plan.settings_table import Section, plain, setting

PERIODS = ("day", "week", "month", "quarter", "year")

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
        return real(what, value, rule, lambda x: x > 0)
    edges = tuple(real("An edge of bands", edge, "a number", lambda _: True) for edge in value)
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
        choices={period: period for period in PERIODS},
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
