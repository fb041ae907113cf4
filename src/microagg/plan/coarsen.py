"""Recoding, a part of the plan: values of a column become coarser before groups are formed.

What it costs counts as loss against the original; :mod:`microagg.encode.recode` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.checks import as_plain, check_keys, check_word, field_names, real

__all__ = ["PERIODS", "Coarsen", "coarsen_of"]

PERIODS = ("day", "week", "month", "quarter", "year")

_NUMBERS = ("number", "integer", "spiked")
# The settings that go together, and the kinds of column that they fit; the first is taken where the plan
# names none, except for numbers, whose type tells.
_FITS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("bands", "top", "bottom"): _NUMBERS,
    ("round", "top", "bottom"): _NUMBERS,
    ("rare",): ("nominal", "hierarchy"),
    ("prefix",): ("nominal",),
    ("to",): ("date",),
}


@dataclass(frozen=True)
class Coarsen:
    """How the values of one column become coarser.

    Examples
    --------
    >>> Coarsen(bands=5, top=80).in_words
    'bands of 5, 80 or more in one'
    >>> Coarsen(rare=20, top=80)
    Traceback (most recent call last):
    microagg.errors.InputError: rare and top do not go together: ...
    """

    bands: float | tuple[float, ...] | None = None
    """Of numbers: the width of bands that begin at its multiples, or the edges between bands; each band
    includes its lower end."""
    round: float | None = None
    """Of numbers: the nearest multiple of this, of two the upper one."""
    top: float | None = None
    """Of numbers: larger ones become this; with bands, all from here on are one band."""
    bottom: float | None = None
    """Of numbers: smaller ones become this; with bands, all below are one band."""
    rare: int | None = None
    """Of categories: levels that fewer records (or units) have become "other", in a hierarchy their
    parent."""
    prefix: int | None = None
    """Of codes: how many of the first characters stay."""
    to: str | None = None
    """Of dates: the first day of their week, month, quarter or year, or the day of a time."""

    def __post_init__(self) -> None:
        given = list(as_plain(self))
        if not given:
            raise InputError(
                "coarsen says how values become coarser: bands, round, top, bottom, rare, prefix or to; "
                "none is given. Give one, or leave coarsen out."
            )
        if not any(set(given) <= set(names) for names in _FITS):
            first, second = next(
                (a, b)
                for a in sorted(given)
                for b in sorted(given)
                if a < b and not any({a, b} <= set(names) for names in _FITS)
            )
            raise InputError(
                f"{first} and {second} do not go together: numbers take bands or round, either with top "
                "and bottom; categories take rare or prefix, dates take to. Leave one out."
            )
        if self.round is not None:
            rule = "a number above 0"
            _set(self, "round", real("round, of coarsen,", self.round, rule, lambda x: x > 0))
        for name in ("top", "bottom"):
            value = getattr(self, name)
            if value is not None:
                _set(self, name, real(f"{name}, of coarsen,", value, "a number", lambda x: True))
        if self.bands is not None:
            _set(self, "bands", _check_bands(self.bands))
        for name in ("rare", "prefix"):
            _check_count(name, getattr(self, name))
        if self.to is not None:
            check_word("to, of coarsen,", self.to, PERIODS)
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
        return next(kinds for names, kinds in _FITS.items() if set(as_plain(self)) <= set(names))

    @property
    def kind(self) -> str | None:
        """The kind of a column of which the plan says none; None: what its type says."""
        return None if self.kinds == _NUMBERS else self.kinds[0]

    @property
    def in_words(self) -> str:
        """What becomes of the values, for a line of the report."""
        told = []
        if isinstance(self.bands, tuple):
            told.append("bands with edges " + ", ".join(f"{edge:g}" for edge in self.bands))
        elif self.bands is not None:
            told.append(f"bands of {self.bands:g}")
        if self.round is not None:
            told.append(f"rounded to {self.round:g}")
        if self.bottom is not None:
            told.append(
                f"under {self.bottom:g} in one" if self.bands else f"at least {self.bottom:g}"
            )
        if self.top is not None:
            told.append(f"{self.top:g} or more in one" if self.bands else f"at most {self.top:g}")
        if self.rare is not None:
            told.append(f"levels of fewer than {self.rare:,} merged")
        if self.prefix is not None:
            told.append(f"first {self.prefix} characters" if self.prefix > 1 else "first character")
        if self.to is not None:
            told.append(f"to the {self.to}")
        return ", ".join(told)


def coarsen_of(given: Any, before: Coarsen | None = None) -> Coarsen | None:
    """Make it from a table of settings; what is named changes, the rest stays; None: nothing is recoded.

    >>> coarsen_of({"top": 90}, Coarsen(bands=5, top=80))
    Coarsen(bands=5, round=None, top=90, bottom=None, rare=None, prefix=None, to=None)
    """
    if given is None or isinstance(given, Coarsen):
        return given
    if not isinstance(given, Mapping):
        raise InputError(
            f"coarsen is a table such as {{ bands = 5, top = 80 }}; got {shown(given)}."
        )
    check_keys("coarsen", given, field_names(Coarsen))
    return Coarsen(**given) if before is None else replace(before, **given)


def _check_bands(given: Any) -> float | tuple[float, ...]:
    rule = "bands, of coarsen, is a width above 0, or a list of edges, each above the one before"
    if not isinstance(given, list | tuple):
        return real(
            "bands, of coarsen,", given, "a width above 0, or a list of edges", lambda x: x > 0
        )
    edges = tuple(real("An edge of bands", edge, "a number", lambda x: True) for edge in given)
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise InputError(f"{rule}; got {shown(list(given))}.")
    return edges


def _check_count(name: str, value: Any) -> None:
    what = {
        "rare": "least number of records of a level",
        "prefix": "number of characters that stay",
    }
    least = {"rare": 2, "prefix": 1}
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least[name]:
        raise InputError(
            f"{name}, of coarsen, is the {what[name]}, {least[name]} or more; got {shown(value)}."
        )


def _set(part: Any, name: str, value: Any) -> None:
    object.__setattr__(part, name, value)
