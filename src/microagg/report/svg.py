"""SVG that stands in the page itself: shapes, text, and axes with round numbers.

Classes name what a shape shows, and the style sheet colours them: one picture serves paper, light and dark
screens, and a page that allows no style within its HTML. Text stays text, so that it can be read aloud,
searched and copied. The same data give the same picture, byte for byte.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from microagg.base.formatting import visible

FONT = 11.0
_LONGEST_NAME = 24
_ATTRIBUTES = {"kind": "class"}  # a word of Python


def element(tag: str, content: str = "", **attributes: Any) -> Markup:
    """Return one element; ``kind`` is its class, and an underscore in a name stands for a hyphen.

    >>> str(element("text", "<b>", kind="note", x=1.25, text_anchor="end"))
    '<text class="note" x="1.2" text-anchor="end">&lt;b&gt;</text>'
    """
    given = (
        f' {_ATTRIBUTES.get(name, name.replace("_", "-"))}="{escape(_number(value))}"'
        for name, value in attributes.items()
    )
    return Markup(f"<{tag}{''.join(given)}>{escape(content)}</{tag}>")


def _number(value: Any) -> Any:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def short(name: str) -> str:
    """Cut a long name."""
    name = visible(name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def width_of(words: str, font: float = FONT) -> float:
    """Estimate how wide a text is; the reader's font is not known."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in words)
    return 0.6 * font * (len(words) + wide)


def round_numbers(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers within a range, at most this number of steps; whole ones where they will do.

    >>> round_numbers(2007, 2009), round_numbers(0, 0.7), round_numbers(3, 3)
    ([2007.0, 2008.0, 2009.0], [0.0, 0.2, 0.4, 0.6000000000000001], [3])
    """
    least = high / most - low / most
    if not 0 < least < math.inf:
        return [low]
    size = 10.0 ** max(math.floor(math.log10(least)), -300)
    steps = (1, 2, 2.5, 5, 10) if size >= 10 else (1, 2, 5, 10)
    step = next(size * by for by in steps if size * by >= least or by == 10)
    if step < 1 and high - low >= 2:
        step = 1.0
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def amounts(values: Sequence[float]) -> list[str]:
    """Write the numbers at an axis alike: thousands apart from 10,000 on, millions by their sign.

    >>> amounts([2007, 2008]), amounts([0, 250000]), amounts([-5e6, 2.5e7]), amounts([1e15])
    (['2007', '2008'], ['0', '250,000'], ['−5 M', '25 M'], ['1e+15'])
    """
    most = max(map(abs, values), default=0.0)
    if 1e6 <= most < 1e12:
        found = [f"{value / 1e6:,.6g} M" if value else "0" for value in values]
    else:
        found = [f"{value:,.10g}" if 1e4 <= most < 1e6 else f"{value:.6g}" for value in values]
    return [words.replace("-", "−") for words in found]


class Picture:
    """Shapes on a surface; places run to the right and down."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._shapes: list[Markup] = []

    def add(self, tag: str, content: str = "", **attributes: Any) -> None:
        """Put an element over those before it."""
        self._shapes.append(element(tag, content, **attributes))

    def text(
        self, words: str, x: float, y: float, anchor: str = "start", **attributes: Any
    ) -> None:
        """Write words on a line."""
        self.add("text", words, x=x, y=y, text_anchor=anchor, **attributes)

    def svg(self, title: str, about: str, kind: str = "chart") -> Markup:
        """Return the picture, with its name and what it shows in words."""
        words = element("title", visible(title)) + element("desc", visible(about))
        size = f"0 0 {_number(float(self.width))} {_number(float(self.height))}"
        inside = words + Markup("").join(self._shapes)
        return element("svg", inside, kind=kind, viewBox=size, role="img")


class Plot(Picture):
    """A picture with an axis at the bottom and one at the left, from values to places."""

    def __init__(
        self,
        size: tuple[float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        left: float = 34.0,
        top: float = 18.0,
        bottom: float = 20.0,
    ) -> None:
        super().__init__(*size)
        self._ends = x, y
        self.left, self.right = left, self.width - 10.0
        self.top, self.bottom = top, self.height - bottom

    def x(self, value: float) -> float:
        """Return the place of a value from left to right."""
        return _between(value, self._ends[0], self.left, self.right)

    def y(self, value: float) -> float:
        """Return the place of a value from the bottom up."""
        return _between(value, self._ends[1], self.bottom, self.top)

    def line(self, kind: str, x: float, y: float, to_x: float, to_y: float) -> None:
        """Draw a straight line between two places."""
        self.add("line", kind=kind, x1=x, y1=y, x2=to_x, y2=to_y)

    def axis_below(self, ticks: Iterable[tuple[float, str]] | None = None, unit: str = "") -> None:
        """Draw the axis at the bottom, with as many round numbers as fit, unless ticks are given."""
        self.line("axis", self.left, self.bottom, self.right, self.bottom)
        for value, words in ticks or self._fitting():
            at, half = self.x(value), width_of(words) / 2
            self.line("axis", at, self.bottom, at, self.bottom + 3)
            inside = min(max(at, half), self.width - half)
            self.text(words, inside, self.bottom + 14, "middle")
        if unit:
            self.text(unit, self.right, self.bottom + 28, "end")

    def _fitting(self) -> list[tuple[float, str]]:
        for most in (7, 5, 4, 3, 2):
            values = round_numbers(*self._ends[0], most)
            found = list(zip(values, amounts(values), strict=True))
            if sum(width_of(words) + FONT for _, words in found) <= self.right - self.left:
                break
        return found

    def axis_left(self, unit: str, ticks: Iterable[tuple[float, str]] | None = None) -> None:
        """Draw the axis at the left, with a rule at round numbers, unless ticks are given."""
        values = round_numbers(*self._ends[1])
        for value, words in ticks or zip(values, amounts(values), strict=True):
            at = self.y(value)
            self.line("rule", self.left, at, self.right, at)
            self.text(words, self.left - 5, at + 4, "end")
        self.text(unit, 0, FONT)


def _between(value: float, ends: tuple[float, float], start: float, stop: float) -> float:
    low, high = ends
    span = high / 2 - low / 2  # halves, since a column may span more than a double holds
    return start + (stop - start) * ((value / 2 - low / 2) / span if span > 0 else 0.5)
