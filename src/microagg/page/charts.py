"""Small pictures of the page: places on the screen, from which templates draw SVG.

The page allows no style within its HTML, so that nothing foreign can be styled in. Pictures of the report
have such styles; these are turned into attributes.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from microagg.protecting.choices import Cell

__all__ = ["cell_map", "labelled", "scatter", "spark", "without_styles"]

_WIDTH, _HEIGHT = 560, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 30, 44
_TICKS = 5
_SPARK = (96, 26)
_APART = (44, 20)  # between labels, across and down


def without_styles(picture: Any) -> Any:
    """Turn the styles of SVG pictures, however deep they stand in lists and tables, into attributes.

    >>> without_styles('<svg><defs><style>*{}</style></defs><g style="fill: none; opacity: 0.5"/></svg>')
    '<svg stroke-linejoin="round" stroke-linecap="butt"><defs></defs><g fill="none" opacity="0.5"/></svg>'
    """
    if isinstance(picture, Mapping):
        return {key: without_styles(value) for key, value in picture.items()}
    if isinstance(picture, list | tuple):
        return [without_styles(value) for value in picture]
    if not (isinstance(picture, str) and picture.startswith("<svg")):
        return picture
    text = re.sub(r"<style.*?</style>", "", picture, flags=re.S)
    text = re.sub(r'style="([^"]*)"', lambda found: _attributes(found[1]), text)
    # What matplotlib says for all elements in the style that was taken out.
    return text.replace("<svg", '<svg stroke-linejoin="round" stroke-linecap="butt"', 1)


def labelled(svg: str, words: str, mark: str) -> str:
    """Name a picture by words of its own, and its parts so that it may stand in a page twice.

    >>> labelled('<svg aria-labelledby="a"><use href="#m1"/></svg>', "age", "left")
    '<svg aria-label="age"><use href="#left-m1"/></svg>'
    """
    named = re.sub(r'aria-labelledby="[^"]*"', lambda _: f'aria-label="{html.escape(words)}"', svg)
    return re.sub(r'( id="|url\(#|href="#)', rf"\1{mark}-", named)


def _attributes(style: str) -> str:
    found = []
    for rule in style.split(";"):
        name, _, value = (part.strip() for part in rule.partition(":"))
        if name == "font":  # in short: size, family
            size, _, family = value.partition(" ")
            found += [f'font-size="{size}"', f'font-family="{family}"']
        elif name:
            found.append(f'{name}="{value}"')
    return " ".join(found)


def spark(counts: Sequence[int]) -> list[dict[str, float]]:
    """Bars of a small histogram."""
    if not counts or not max(counts):
        return []
    width, height = _SPARK
    step = min(width / len(counts), 12)
    return [
        {
            "x": round(i * step, 1),
            "y": round(height - height * count / max(counts), 1),
            "width": round(step - 1, 1),
            "height": round(height * count / max(counts), 1),
        }
        for i, count in enumerate(counts)
    ]


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers within a range."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    rough = span / _TICKS
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * by for by in (1, 2, 2.5, 5, 10) if size * by >= rough)
    first = math.ceil(low / step)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


class _Axes:
    """From values to places."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x, self._y = x, y

    def place(self, x: float, y: float) -> tuple[float, float]:
        return round(self._at(x, self._x, _LEFT, _WIDTH - _RIGHT), 1), round(
            self._at(y, self._y, _HEIGHT - _BOTTOM, _TOP), 1
        )

    @staticmethod
    def _at(value: float, ends: tuple[float, float], start: float, stop: float) -> float:
        low, high = ends
        return start + (stop - start) * ((value - low) / (high - low) if high > low else 0.5)

    def frame(self) -> dict[str, Any]:
        """What is drawn around the points."""
        return {
            "width": _WIDTH,
            "height": _HEIGHT,
            "left": _LEFT,
            "right": _WIDTH - _RIGHT,
            "top": _TOP,
            "bottom": _HEIGHT - _BOTTOM,
            "x": [(self.place(t, 0)[0], _label(t)) for t in _ticks(*self._x)],
            "y": [(self.place(0, t)[1], _label(t)) for t in _ticks(*self._y)],
        }


def _label(value: float) -> str:
    """A number at an axis.

    >>> [_label(v) for v in (0, 2500000.0, -0.5, 15000)]
    ['0', '2.5 M', '−0.5', '15,000']
    """
    if abs(value) >= 1e6:
        text = f"{value / 1e6:,.4g} M"
    else:
        text = f"{value:,.6g}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace("-", "−")


def cell_map(cells: Sequence[Cell], chosen: tuple[str, int]) -> dict[str, Any]:
    """The risk–utility map: loss to the right, linkage upwards."""
    done = [
        (cell, cell.information_loss, 100 * cell.linkage.share)
        for cell in cells
        if cell.information_loss is not None and cell.linkage is not None
    ]
    right = 1.08 * max((loss for _, loss, _ in done), default=0.0) or 1.0
    top = 1.12 * max((linked for _, _, linked in done), default=0.0) or 1.0
    axes = _Axes((0.0, right), (0.0, top))
    methods = list(dict.fromkeys(cell.method for cell in cells))
    points: list[dict[str, Any]] = [
        {
            "cell": cell,
            "at": axes.place(loss, linked),
            "loss": loss,
            "linked": linked / 100,
            "series": methods.index(cell.method) % 6,
            "chosen": (cell.method, cell.k) == chosen,
        }
        for cell, loss, linked in done
    ]
    _label_points(points)
    front = sorted(point["at"] for point in points if point["cell"].on_frontier)
    return {**axes.frame(), "points": points, "line": front, "methods": methods}


def _label_points(points: list[dict[str, Any]]) -> None:
    """Write k over points, those worth choosing first; not where it would stand on another one."""
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda p: not p["cell"].on_frontier):
        x, y = point["at"]
        free = all(abs(x - left) > _APART[0] or abs(y - top) > _APART[1] for left, top in taken)
        point["label"] = f"k={point['cell'].k}" if free else ""
        taken += [(x, y)] * free


def scatter(found: Mapping[str, Any]) -> dict[str, Any]:
    """Records before and after in two columns; the middle of all, so that a few do not hide the others."""
    every = [*found["before"], *found["after"]]
    if not every:
        return {**_Axes((0.0, 1.0), (0.0, 1.0)).frame(), "before": [], "after": []}
    ends = [_middle(sorted(point[i] for point in every)) for i in (0, 1)]
    axes = _Axes(*ends)
    (left, right), (low, high) = ends
    return {
        **axes.frame(),
        **{
            when: [
                axes.place(x, y) for x, y in found[when] if left <= x <= right and low <= y <= high
            ]
            for when in ("before", "after")
        },
    }


def _middle(ordered: list[float]) -> tuple[float, float]:
    """From the half percent to its counterpart, with some room."""
    aside = len(ordered) // 200
    low, high = ordered[aside], ordered[-1 - aside]
    room = (high - low) * 0.03 or 1.0
    return low - room, high + room
