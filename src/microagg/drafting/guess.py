"""A guess: what a column looks like, the role that follows, and a reason.

A reason has two parts: the fact, with counts and never values of records; and the action, with the way to
another decision.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Literal

from microagg.drafting.profile import Profile
from microagg.tables.numbers_in_text import OddCells

Role = Literal["protect", "drop", "follows", "unit", "weight", "known"]
Looks = Literal[
    "quantity",
    "identifier",
    "repeated identifier",
    "name or text",
    "weight",
    "code",
    "category",
    "truth value",
    "date",
    "place",
    "number stored as text",
    "constant",
    "empty",
    "nested",
]
Kind = Literal["number", "integer", "spiked", "boolean", "nominal", "ordinal", "date"]

FEW = 12  # distinct values that may be codes or small counts, at most
MANY = 30  # records from which on a shape of the values is no accident

IDENTIFIES = "it identifies single records. renumber puts random numbers in its place."


@dataclass(frozen=True)
class Guess:
    """What a column looks like, and what the draft does with it."""

    role: Role
    """"protect", "drop", "follows" (from another column; dropped too), "unit" (k counts it; dropped too),
    "weight", or "known": left as it is."""
    looks_like: Looks
    kind: Kind | None
    """What its values are; None for lists and records."""
    fact: str
    """The reason for the guess, without values of records."""
    action: str = ""
    """What is done about it, and the way to another decision."""
    codes: tuple[str | float, ...] = ()
    """Values that stand for missing ones."""
    stands_for: str | None = None
    """Of an identifier: what it identifies, such as "household", where its name says so."""
    counts_units: bool = True
    """Of an identifier that repeats: whether k may count it, by its name or the order of its rows."""
    levels: tuple[str, ...] = ()
    """Of texts that have an order: the texts from lowest to highest."""
    unreadable: bool = False
    """Whether it is dropped only because its values cannot be read."""
    distinct: int = 0
    """Number of different values."""
    present: int = 0
    """Number of records whose value is not missing."""

    @property
    def reason(self) -> str:
        """The fact and the action."""
        return f"{self.fact}. {self.action}".strip()

    @property
    def points_to_records(self) -> bool:
        """Whether it is an id, a name or a text, which identifies single records or units."""
        return self.looks_like in ("identifier", "repeated identifier", "name or text")

    def dropped(self, why: str) -> Guess:
        """Return the guess of a column that is left out all the same, with the reason."""
        return replace(self, role="drop", action=f"Dropped: {why}", codes=(), levels=())


@dataclass(frozen=True)
class NamedProfile(Profile):
    """Input of the rules: the profile of a column, with the words of its name."""

    words: tuple[str, ...] = ()
    k: int = 5
    readable_dates: bool = False
    odd: OddCells | None = None
    """Of numbers stored as text: cells that are no numbers."""
    battery: bool = False
    """Of whole numbers without a gap: whether other columns go from the same number to the same number."""

    def named(self, *known: Container[str]) -> bool:
        """Return whether a word of the name is in one of some sets."""
        return any(word in those for those in known for word in self.words)

    @property
    def has_too_many(self) -> bool:
        """Whether there are too many different values for groups of k records to keep them."""
        return self.distinct > FEW and max(self.k, 2) * self.distinct > self.present

    @property
    def last(self) -> str:
        """The last word, which says what a thing is; trailing numbers are skipped."""
        return next((word for word in reversed(self.words) if not word.isdigit()), "")

    @property
    def first(self) -> str:
        """The first word, which says whether something is counted."""
        return self.words[0] if self.words else ""


_RELEASES = {
    "number": "Protected: a group releases its mean.",
    "integer": "Protected: a group releases its mean.",
    "spiked": "Protected as spiked: a group releases 0 if most of it has 0, else the mean of the others. "
    "To keep totals exact instead, leave out release.",
    "date": "Protected as a date: a group releases its mean.",
    "nominal": "Protected as nominal: a group releases its most frequent value.",
    "boolean": "Protected as boolean: a group releases its most frequent value.",
    "ordinal": "Protected as ordinal: a group releases the value nearest to its mean level.",
}


def protected(looks_like: Looks, kind: Kind, fact: str, hint: str = "") -> Guess:
    """Guess a column that is protected by its kind."""
    return Guess("protect", looks_like, kind, fact, f"{_RELEASES[kind]} {hint}".strip())


def dropped(looks_like: Looks, kind: Kind | None, fact: str, why: str) -> Guess:
    """Guess a column that is left out, with the reason."""
    return Guess("drop", looks_like, kind, fact, f"Dropped: {why}")
