"""Relations between columns, such as ``gross = net + tax``: read from text, and counted in a table.

A relation is linear: columns with numeric factors, added and subtracted on both sides of =, <= or >=.
Means of groups keep every linear relation that all of their records keep, which is why only such
relations can be promised; :mod:`microagg.plan.consistency` refuses plans that would break one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microagg.errors import InputError, shown

Comparison = Literal["=", "<=", ">="]

TOLERANCE = 1e-9
"""Differences up to this share of the largest term of a row are those of floating-point sums."""

_COMPARISONS: dict[str, Comparison] = {
    "=": "=",
    "==": "=",
    "<=": "<=",
    "≤": "<=",
    ">=": ">=",
    "≥": ">=",
}
# Signs that somebody may try; each is read as one word, so that the message can name it.
_WORD = re.compile(
    r"""\s*(?:
        (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[^\W\d][\w.]*)
      | (?P<sign><=|>=|==|!=|<>|[<>=≤≥+\-−*])
    )""",
    re.VERBOSE,
)
_EXAMPLE = "Write, for example, gross = net + tax, or 0.5 * a <= b + 10."


@dataclass(frozen=True)
class Relation:
    """A linear relation that every row keeps.

    Parameters
    ----------
    text : str
        Columns with factors (``2 * a``) and constants, joined by + and − and compared by =, <= or >=.
        A name with spaces or signs stands in backticks or double quotes.

    Examples
    --------
    >>> found = Relation("gross = net + 2 * `other tax` - 5")
    >>> found.terms, found.constant, found.comparison
    ({'gross': 1.0, 'net': -1.0, 'other tax': -2.0}, 5.0, '=')
    >>> Relation("net <= gross").broken({"net": [1, 3, 2], "gross": [2, 2, 2]}).tolist()
    [False, True, False]
    """

    text: str
    terms: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """Left side minus right side: the factor of each column."""
    constant: float = field(init=False, compare=False, repr=False)
    """Left side minus right side: what is added to the terms."""
    comparison: Comparison = field(init=False, compare=False, repr=False)
    """How terms and constant together compare with 0."""

    def __post_init__(self) -> None:
        terms, constant, comparison = _Reader(self.text).relation()
        for name, value in (("terms", terms), ("constant", constant), ("comparison", comparison)):
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of, in the order of the text."""
        return tuple(self.terms)

    @property
    def is_plain_order(self) -> bool:
        """Whether it says no more than that one column is at most another.

        Such a relation outlives every monotone aggregate and rounding, not means alone.

        >>> [Relation(text).is_plain_order for text in ("a <= b", "2*b >= 2*a", "a <= b + 1", "a = b")]
        [True, True, False, False]
        """
        return (
            self.comparison != "="
            and self.constant == 0
            and len(self.terms) == 2
            and sum(self.terms.values()) == 0
        )

    def residual(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.float64]:
        """Return left minus right side for each row; NaN where a value is missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(sum(self._each(values)) + self.constant, dtype=np.float64)

    def broken(self, values: Mapping[Any, ArrayLike], scale: ArrayLike = 0.0) -> NDArray[np.bool_]:
        """Return the rows that do not keep it; those with a missing value are not judged.

        Differences are compared with ``scale`` where all terms of the row are smaller, such as a column's
        standard deviation where values come near 0.
        """
        residual = self.residual(values)
        largest = np.broadcast_to(np.abs(np.asarray(scale, dtype=np.float64)), residual.shape)
        largest = np.maximum(largest, abs(self.constant))
        with np.errstate(over="ignore"):
            for term in self._each(values):
                largest = np.maximum(largest, np.abs(term))
        allowed = TOLERANCE * largest
        wrong: NDArray[np.bool_]
        # Comparisons with NaN are false: a row with a missing value is not broken.
        if self.comparison == "<=":
            wrong = residual > allowed
        elif self.comparison == ">=":
            wrong = residual < -allowed
        else:
            wrong = np.abs(residual) > allowed
        return wrong

    def _each(self, values: Mapping[Any, ArrayLike]) -> list[NDArray[np.float64]]:
        return [
            factor * np.asarray(values[name], dtype=np.float64)
            for name, factor in self.terms.items()
        ]


class _Reader:
    """Reads the words of a relation from left to right."""

    def __init__(self, text: Any) -> None:
        if not isinstance(text, str):
            raise InputError(f"A relation is a text; got {shown(text)}. {_EXAMPLE}")
        self.text = text
        self.words = self._split()
        self.at = 0
        self.terms: dict[str, float] = {}
        self.constant = 0.0

    def relation(self) -> tuple[dict[str, float], float, Comparison]:
        self._side(1.0)
        sign = self._take("sign", "=", "==", "<=", ">=", "≤", "≥")
        if sign is None:
            raise self._wrong(f"where =, <= or >= is due, it has {self._here()}")
        self._side(-1.0)
        if self.at < len(self.words):
            raise self._wrong(f"after its right side it has {self._here()}")
        self._check()
        return self.terms, self.constant + 0.0, _COMPARISONS[sign]

    def _check(self) -> None:
        """Refuse a relation that is not about the columns it names."""
        if not self.terms:
            raise self._wrong("it names no column")
        for name, factor in self.terms.items():
            if factor == 0:
                raise self._wrong(f"column {shown(name)} cancels out; leave it out")
        if not all(math.isfinite(number) for number in (*self.terms.values(), self.constant)):
            raise self._wrong("a number in it is too large")

    def _side(self, side: float) -> None:
        """Add one side to what was read: a sign may precede the first term and must precede others."""
        sign: str | None = self._take("sign", "+", "-", "−") or "+"
        while sign is not None:
            self._term(side if sign == "+" else -side)
            sign = self._take("sign", "+", "-", "−")

    def _term(self, sign: float) -> None:
        """Read a column, a number, or the product of both in either order."""
        number, name = self._take("number"), None
        if number is None:
            name = self._name()
            if self._take("sign", "*"):
                number = self._take("number")
                if number is None:
                    raise self._wrong(f"after * a number is due, it has {self._here()}")
        elif self._take("sign", "*"):
            name = self._name()
        factor = sign * (1.0 if number is None else float(number))
        if name is None:
            self.constant += factor
        else:
            self.terms[name] = self.terms.get(name, 0.0) + factor

    def _name(self) -> str:
        bare = self._take("name")
        if bare is not None:
            return bare
        quoted = self._take("quoted")
        if quoted is None:
            raise self._wrong(f"where a column or a number is due, it has {self._here()}")
        mark = quoted[0]
        return quoted[1:-1].replace(mark * 2, mark)

    def _take(self, kind: str, *among: str) -> str | None:
        """Go past the next word if it is one of those asked for."""
        if self.at == len(self.words):
            return None
        token, word = self.words[self.at]
        if token != kind or (among and word not in among):
            return None
        self.at += 1
        return word

    def _split(self) -> list[tuple[str, str]]:
        tokens, at, text = [], 0, self.text.rstrip()
        while at < len(text):
            match = _WORD.match(text, at)
            if match is None:
                raise self._wrong(f"{shown(text[at:].lstrip()[0])} has no meaning in it")
            tokens.append((str(match.lastgroup), str(match[str(match.lastgroup)])))
            at = match.end()
        return tokens

    def _here(self) -> str:
        return shown(self.words[self.at][1]) if self.at < len(self.words) else "nothing more"

    def _wrong(self, fact: str) -> InputError:
        return InputError(
            "A relation compares sums of columns by =, <= or >=, with numbers as factors (2 * a) and names "
            f"with spaces or signs in backticks or double quotes; of {shown(self.text, 200)}, {fact}. "
            f"{_EXAMPLE}"
        )
