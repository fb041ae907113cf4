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

_COMPARED: dict[str, Comparison] = {"=": "=", "<=": "<=", ">=": ">="}
_COMPARED |= {"==": "=", "≤": "<=", "≥": ">="}
# Signs that somebody may try are read too, so that the message can name them.
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^\W\d][\w.]*)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<other>!=|<>|<(?!=)|>(?!=))
      | (?P<comparison><=|>=|==?|≤|≥)
      | (?P<sign>[+\-−])
      | (?P<times>\*)
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
        for name, value in zip(("terms", "constant", "comparison"), _read(self.text), strict=True):
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
        excess = {"<=": residual, ">=": -residual, "=": np.abs(residual)}[self.comparison]
        # Comparisons with NaN are false: a row with a missing value is not broken.
        return np.asarray(excess > allowed)

    def _each(self, values: Mapping[Any, ArrayLike]) -> list[NDArray[np.float64]]:
        return [
            factor * np.asarray(values[name], dtype=np.float64)
            for name, factor in self.terms.items()
        ]


def _read(text: Any) -> tuple[dict[str, float], float, Comparison]:
    """Return the terms of a relation, what is added to them, and how their sum compares with 0."""
    if not isinstance(text, str):
        raise InputError(f"A relation is a text; got {shown(text)}. {_EXAMPLE}")
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise _no_relation(text, f"{shown(text[at:].lstrip()[0])} has no meaning in it")
        tokens.append((str(match.lastgroup), match[0].lstrip()))
        at = match.end()

    def first() -> str:
        return shown(tokens[0][1]) if tokens else "nothing more"

    def read(kind: str, where: str = "") -> str | None:
        """Return the next token if it is of this kind; ``where`` it is due, refuse any other."""
        if tokens and tokens[0][0] == kind:
            return tokens.pop(0)[1]
        if where:
            raise _no_relation(text, f"{where}, it has {first()}")
        return None

    terms: dict[str, float] = {}
    constant, comparison = 0.0, ""
    for side in (1.0, -1.0):
        sign = read("sign") or "+"  # which may precede the first term and must precede others
        while sign:
            name, number = None, read("number")
            if number is None:
                name = read("name", "where a column or a number is due")
                number = read("number", "after * a number is due") if read("times") else "1"
            elif read("times"):
                name = read("name", "where a column or a number is due")
            factor = (side if sign == "+" else -side) * float(number or 1)
            if name is None:
                constant += factor
            else:
                name = name[1:-1].replace(name[0] * 2, name[0]) if name[0] in '`"' else name
                terms[name] = terms.get(name, 0.0) + factor
            sign = read("sign") or ""
        comparison = comparison or read("comparison", "where =, <= or >= is due") or ""
    if tokens:
        raise _no_relation(text, f"after its right side it has {first()}")
    if not terms:
        raise _no_relation(text, "it names no column")
    for name, factor in terms.items():
        if factor == 0:
            raise _no_relation(text, f"column {shown(name)} cancels out; leave it out")
    if not all(math.isfinite(number) for number in (*terms.values(), constant)):
        raise _no_relation(text, "a number in it is too large")
    return terms, constant + 0.0, _COMPARED[comparison]


def _no_relation(text: str, fact: str) -> InputError:
    return InputError(
        "A relation compares sums of columns by =, <= or >=, with numbers as factors (2 * a) and names "
        f"with spaces or signs in backticks or double quotes; of {shown(text, 200)}, {fact}. {_EXAMPLE}"
    )
