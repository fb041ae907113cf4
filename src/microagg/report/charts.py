"""The charts of report and page: each a function from plain data to SVG, called by the templates.

No bin of these data has fewer than k records; see :mod:`microagg.measure.chart_data`.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from microagg.base.formatting import number, percent, plural
from microagg.report.svg import FONT, Picture, Plot, amounts, element, short, width_of

_SMALL = (300.0, 170.0)
LARGE = (480.0, 320.0)
_ROW = 19.0  # height of a bar with its space
_ALIKE = 0.01  # widths of bins that differ by less, relatively, are equal but for rounding
_MATRIX = (300.0, 470.0)  # width with up to six columns, and with more
_WITH_NUMBERS = 13  # columns of a matrix that shows its numbers
_SHADES = 20
_SPARK = (96.0, 26.0)


def distribution(name: str, data: Mapping[str, Any], n: int) -> Markup:
    """Draw the share of records in each bin: after as an area and, where it is known, before as a line.

    Categories, and numbers in one or two bins, are bars.
    """
    cuts, ticks = data.get("cuts", ()), data.get("ticks")
    if len(cuts) < 2:
        named = [words for _, words in ticks] if ticks else list(map(number, cuts))
        levels = [f"{side} {cut}" for cut in named for side in ("under", "from")] or ["all"]
        return _categories(name, data.get("levels", levels), data, n)
    # The outermost bins are open: drawn as wide as their neighbours, but to the end at most.
    low, high = data["ends"]
    edges = [max(low, 2 * cuts[0] - cuts[1]), *cuts, min(high, 2 * cuts[-1] - cuts[-2])]
    # By the narrowest inner bin, so that no height is more than its share of the records.
    # Half of the least number there is would be 0.
    narrowest = min(b / 2 - a / 2 for a, b in itertools.pairwise(cuts)) or math.ulp(0.0)
    widths = [max((b / 2 - a / 2) / narrowest, 1.0) for a, b in itertools.pairwise(edges)]
    shares = {when: _percents(data[when], n) for when in ("after", "before") if when in data}
    heights = {
        when: [one / width for one, width in zip(found, widths, strict=True)]
        for when, found in shares.items()
    }
    plot = Plot(_SMALL, (edges[0], edges[-1]), (0.0, _top(*heights.values())))
    alike = max(widths) <= 1 + _ALIKE
    plot.axis_left("% of records" if alike else "% of records, per narrowest bin")
    for when, found in heights.items():
        plot.add("path", kind=when, d=_stairs(plot, edges, found))
    plot.axis_below(ticks)
    ends = [words for _, words in ticks] if ticks else amounts(cuts)
    counted = "; ".join(f"{when}: {', '.join(map(number, f))}" for when, f in shares.items())
    return plot.svg(
        name,
        f"{len(widths)} bins, cut from {ends[0]} to {ends[-1]}. % of records in each, {counted}.",
    )


def _percents(counts: Sequence[int], n: int) -> list[float]:
    return [100 * count / n for count in counts]


def _top(*heights: Sequence[float]) -> float:
    """Return the upper end of an axis, with some room."""
    return 1.05 * max(itertools.chain(*heights), default=0.0) or 1.0


def _stairs(plot: Plot, edges: Sequence[float], heights: Sequence[float]) -> str:
    steps = (
        f"V{plot.y(height):.1f}H{plot.x(edge):.1f}"
        for height, edge in zip(heights, edges[1:], strict=True)
    )
    return f"M{plot.x(edges[0]):.1f} {plot.bottom:.1f}{''.join(steps)}V{plot.bottom:.1f}"


def _categories(name: str, levels: Sequence[str], data: Mapping[str, Any], n: int) -> Markup:
    """Draw the share of records that have each category: after as bars, before as outlines."""
    if not levels:
        picture = Picture(_SMALL[0], 2 * _ROW)
        picture.text("too few values to show", _SMALL[0] / 2, _ROW, "middle")
        return picture.svg(name, "Too few values to show.")
    shares = {when: _percents(data[when], n) for when in ("after", "before") if when in data}
    labels = [short(level) for level in levels]
    left = max(map(width_of, labels)) + 6
    plot = Plot(
        (_SMALL[0], _ROW * len(labels) + 36),
        (0.0, _top(*shares.values())),
        (0.0, 1.0),
        left=left,
        top=0.0,
        bottom=36.0,
    )
    about = []
    for i, label in enumerate(labels):
        heights = {kind: column[i] for kind, column in shares.items()}
        for kind, value in heights.items():
            width, height = plot.x(value) - left, 0.7 * _ROW
            plot.add("rect", kind=kind, x=left, y=(i + 0.15) * _ROW, width=width, height=height)
        plot.text(label, left - 5, (i + 0.5) * _ROW + 4, "end")
        words = ", ".join(f"{percent(value)} {kind}" for kind, value in heights.items())
        about.append(f"{label}: {words}")
    plot.axis_below(unit="% of records")
    return plot.svg(name, "; ".join(about))


def correlation(title: str, names: Sequence[str], matrix: Sequence[Sequence[float]]) -> Markup:
    """Draw a matrix as shades from −1 (orange) to 1 (blue), with numbers where they fit."""
    d, labels = len(names), [short(name) for name in names]
    whole = _MATRIX[d > 6]
    longest = max(map(width_of, labels)) / FONT  # in widths of the font
    font = min(FONT, whole / (longest + 1.05 * d))
    room = longest * font + 6
    side = (whole - room) / d
    picture = Picture(whole, d * side + room)
    picture.add("rect", kind="frame", x=room, y=0, width=d * side, height=d * side)
    shades: dict[tuple[str, int], list[str]] = defaultdict(list)
    for i, j in itertools.product(range(d), range(d)):
        kind, shade = "plus" if matrix[i][j] > 0 else "minus", round(_SHADES * abs(matrix[i][j]))
        shades[kind, min(shade, _SHADES)].append(
            f"M{room + j * side:.1f} {i * side:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z"
        )
    for (kind, shade), cells in sorted(shades.items()):
        if shade:
            opacity = f"{shade / _SHADES:g}"
            picture.add("path", kind=kind, fill_opacity=opacity, d="".join(cells))
    for i, label in enumerate(labels):
        middle = (i + 0.5) * side + font / 3
        picture.text(label, room - 4, middle, "end", font_size=font)
        below = f"translate({room + middle:.1f} {d * side + 4:.1f}) rotate(-90)"
        picture.add("text", label, transform=below, text_anchor="end", font_size=font)
        for j in range(d if d <= _WITH_NUMBERS else 0):
            kind = "strong" if abs(matrix[i][j]) > 0.7 else "plain"
            at = room + (j + 0.5) * side, (i + 0.5) * side + 3
            picture.text(_coefficient(matrix[i][j]), *at, "middle", kind=kind, font_size=8.5)
    return picture.svg(title, f"Matrix of {plural(d, 'column')}, from −1 (orange) to 1 (blue).")


def _coefficient(value: float) -> str:
    """Two digits without the zero before them.

    >>> [_coefficient(value) for value in (0.456, -0.456, -0.001, 1.0)]
    ['.46', '−.46', '0', '1']
    """
    text = f"{value:.2f}"
    if float(text) in (-1, 0, 1):
        return str(int(float(text))).replace("-", "−")
    return text.replace("0.", ".", 1).replace("-", "−")


def scatter(points: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str) -> Markup:
    """Draw records before and after in two columns; the outermost are left out, so that others show."""
    every = [*points["before"], *points["after"]]
    (left, right), (low, high) = (_middle(sorted(one[i] for one in every)) for i in (0, 1))
    plot = Plot(LARGE, (left, right), (low, high), left=52.0, bottom=36.0)
    plot.axis_left(short(y))
    for when, radius in (("before", 2), ("after", 2.6)):
        for across, up in points[when]:
            if left <= across <= right and low <= up <= high:
                plot.add("circle", kind=f"point {when}", cx=plot.x(across), cy=plot.y(up), r=radius)
    plot.axis_below(unit=short(x))
    return plot.svg(f"{x} and {y}", "Records before and after protection, one point each.")


def _middle(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the ends of all but the outermost half percent on each side, with some room."""
    if not ordered:
        return 0.0, 1.0
    aside = len(ordered) // 200
    low, high = ordered[aside], ordered[-1 - aside]
    room = (high - low) * 0.03 or 1.0
    return low - room, high + room


def spark(counts: Sequence[int]) -> Markup:
    """Draw a small histogram, hidden from screen readers: its figures are in the same row."""
    width, height = _SPARK
    step, most = min(width / max(len(counts), 1), 12), max(counts, default=0) or 1
    bars = "".join(
        f"M{i * step:.1f} {height:g}v-{height * count / most:.1f}h{step - 1:.1f}V{height:g}z"
        for i, count in enumerate(counts)
    )
    path = element("path", d=bars)
    return element("svg", path, kind="spark", viewBox="0 0 96 26", aria_hidden="true")
