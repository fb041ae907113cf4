"""The charts of report and page: each a function from plain data to SVG, called by the templates.

No bin of these data has fewer than k records; see :mod:`microagg.measure.before_and_after`. SVG stands in
the page itself. Classes name what a shape shows, and the style sheet colours them: one picture serves paper,
light and dark screens, and a page that allows no style within its HTML. Text stays text, so that it can be
read aloud, searched and copied. The same data give the same picture, byte for byte.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from microagg.base.formatting import number, percent, share, visible

_SMALL = (300.0, 170.0)
LARGE = (480.0, 320.0)
_ROW = 19.0  # height of a bar with its space
_ALIKE = 0.01  # widths of bins that differ by less, relatively, are equal but for rounding
_SPARK = (96.0, 26.0)
FONT = 11.0
_LONGEST_NAME = 24


def element(tag: str, content: str = "", **attributes: Any) -> Markup:
    """Return one element; ``kind`` is its class, and an underscore in a name stands for a hyphen.

    >>> str(element("text", "<b>", kind="note", x=1.25, text_anchor="end"))
    '<text class="note" x="1.2" text-anchor="end">&lt;b&gt;</text>'
    """
    named = {"class" if n == "kind" else n.replace("_", "-"): v for n, v in attributes.items()}
    written = (f' {name}="{escape(_number(value))}"' for name, value in named.items())
    return Markup(f"<{tag}{''.join(written)}>{escape(content)}</{tag}>")


def _number(value: Any) -> Any:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def _short(name: str) -> str:
    """Cut a long name."""
    name = visible(name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def width_of(words: str) -> float:
    """Estimate how wide a text is; the reader's font is not known."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in words)
    return 0.6 * FONT * (len(words) + wide)


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
        texts = [f"{value / 1e6:,.6g} M" if value else "0" for value in values]
    else:
        texts = [f"{value:,.10g}" if 1e4 <= most < 1e6 else f"{value:.6g}" for value in values]
    return [words.replace("-", "−") for words in texts]


class Plot:
    """Shapes on a surface, with an axis at the bottom and one at the left from values to places.

    Places run to the right and down.
    """

    def __init__(
        self,
        size: tuple[float, float],
        x: tuple[float, float] = (0.0, 1.0),
        y: tuple[float, float] = (0.0, 1.0),
        *,
        left: float = 34.0,
        bottom: float = 20.0,
    ) -> None:
        self.width, self.height = size
        self._shapes: list[Markup] = []
        self._ends = x, y
        self.left, self.right = left, self.width - 10.0
        self.top, self.bottom = 18.0, self.height - bottom

    def add(self, tag: str, content: str = "", **attributes: Any) -> None:
        """Put an element over those before it."""
        self._shapes.append(element(tag, content, **attributes))

    def text(self, words: str, x: float, y: float, anchor: str = "start") -> None:
        """Write words on a line."""
        self.add("text", words, x=x, y=y, text_anchor=anchor)

    def svg(self, title: str, about: str) -> Markup:
        """Return the picture, with its name and what it shows in words."""
        words = element("title", visible(title)) + element("desc", visible(about))
        size = f"0 0 {_number(float(self.width))} {_number(float(self.height))}"
        inside = words + Markup("").join(self._shapes)
        return element("svg", inside, kind="chart", viewBox=size, role="img")

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
        marks = list(ticks or ())
        for most in () if marks else (7, 5, 4, 3, 2):
            values = round_numbers(*self._ends[0], most)
            marks = list(zip(values, amounts(values), strict=True))
            if sum(width_of(words) + FONT for _, words in marks) <= self.right - self.left:
                break
        for value, words in marks:
            at, half = self.x(value), width_of(words) / 2
            self.line("axis", at, self.bottom, at, self.bottom + 3)
            inside = min(max(at, half), self.width - half)
            self.text(words, inside, self.bottom + 14, "middle")
        if unit:
            self.text(unit, self.right, self.bottom + 28, "end")

    def axis_left(self, unit: str) -> None:
        """Draw the axis at the left, with a rule at round numbers."""
        values = round_numbers(*self._ends[1])
        for value, words in zip(values, amounts(values), strict=True):
            at = self.y(value)
            self.line("rule", self.left, at, self.right, at)
            self.text(words, self.left - 5, at + 4, "end")
        self.text(unit, 0, FONT)


def _between(value: float, ends: tuple[float, float], start: float, stop: float) -> float:
    low, high = ends
    span = high / 2 - low / 2  # halves, since a column may span more than a double holds
    return start + (stop - start) * ((value / 2 - low / 2) / span if span > 0 else 0.5)


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
    shares = _shares(data, n)
    heights = {
        when: [value / width for value, width in zip(percents, widths, strict=True)]
        for when, percents in shares.items()
    }
    plot = Plot(_SMALL, (edges[0], edges[-1]), (0.0, _top(*heights.values())))
    alike = max(widths) <= 1 + _ALIKE
    plot.axis_left("% of records" if alike else "% of records, per narrowest bin")
    for when, steps in heights.items():
        stairs = "".join(
            f"V{plot.y(height):.1f}H{plot.x(edge):.1f}"
            for height, edge in zip(steps, edges[1:], strict=True)
        )
        path = f"M{plot.x(edges[0]):.1f} {plot.bottom:.1f}{stairs}V{plot.bottom:.1f}"
        plot.add("path", kind=when, d=path)
    plot.axis_below(ticks)
    ends = [words for _, words in ticks] if ticks else amounts(cuts)
    counted = "; ".join(f"{when}: {', '.join(map(number, f))}" for when, f in shares.items())
    return plot.svg(
        name,
        f"{len(widths)} bins, cut from {ends[0]} to {ends[-1]}. % of records in each, {counted}.",
    )


def _shares(data: Mapping[str, Any], n: int) -> dict[str, list[float]]:
    """Return percents of the records after and, where it is known, before."""
    sides = [when for when in ("after", "before") if when in data]
    return {when: [100 * count / n for count in data[when]] for when in sides}


def _top(*heights: Sequence[float]) -> float:
    """Return the upper end of an axis, with some room."""
    return 1.05 * max(itertools.chain(*heights), default=0.0) or 1.0


def _categories(name: str, levels: Sequence[str], data: Mapping[str, Any], n: int) -> Markup:
    """Draw the share of records that have each category: after as bars, before as outlines."""
    if not levels:
        plot = Plot((_SMALL[0], 2 * _ROW))
        plot.text("too few values to show", _SMALL[0] / 2, _ROW, "middle")
        return plot.svg(name, "Too few values to show.")
    shares = _shares(data, n)
    labels = [_short(level) for level in levels]
    left = max(map(width_of, labels)) + 6
    size, ends = (_SMALL[0], _ROW * len(labels) + 36), (0.0, _top(*shares.values()))
    plot = Plot(size, ends, left=left, bottom=36.0)
    about = []
    for i, label in enumerate(labels):
        for kind, column in shares.items():
            width, height = plot.x(column[i]) - left, 0.7 * _ROW
            plot.add("rect", kind=kind, x=left, y=(i + 0.15) * _ROW, width=width, height=height)
        plot.text(label, left - 5, (i + 0.5) * _ROW + 4, "end")
        words = ", ".join(f"{percent(column[i])} {kind}" for kind, column in shares.items())
        about.append(f"{label}: {words}")
    plot.axis_below(unit="% of records")
    return plot.svg(name, "; ".join(about))


def scatter(points: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str) -> Markup:
    """Draw records before and after in two columns; the outermost are left out, so that others show."""
    every = [*points["before"], *points["after"]]
    (left, right), (low, high) = (_middle(sorted(point[i] for point in every)) for i in (0, 1))
    plot = Plot(LARGE, (left, right), (low, high), left=52.0, bottom=36.0)
    plot.axis_left(_short(y))
    for when, radius in (("before", 2), ("after", 2.6)):
        for across, up in points[when]:
            if left <= across <= right and low <= up <= high:
                plot.add("circle", kind=f"point {when}", cx=plot.x(across), cy=plot.y(up), r=radius)
    plot.axis_below(unit=_short(x))
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


ChoiceFigures = Mapping[str, Any]

# Marks of a radius of 1: circle, square, triangle, diamond, triangle upside down, cross.
_MARKS = (
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "M-.9-.9H.9V.9H-.9z",
    "M0-1.2L1.1 .9H-1.1z",
    "M0-1.3L1.3 0 0 1.3-1.3 0z",
    "M0 1.2L1.1-.9H-1.1z",
    "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4z",
)
_COLOURS = 7  # of the style sheet; with the marks enough for 42 methods
_RING = 11.0
# Directions in which a label may stand off its point, right and down, the best first; and how far. The
# frontier falls to the right, so that a label is best at the upper right of its point.
_SIDES = ((1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, -1), (0, 1))
_GAP = 3


def risk_utility_map(
    choices: Sequence[ChoiceFigures],
    guess: float,
    chosen: tuple[str, int, str] | None = None,
    choose: Mapping[str, str] | None = None,
) -> Markup:
    """Draw choices of method and k, with a legend: loss to the right, linkage upwards, the best in a corner.

    If all choices were attacked, what is guessed beyond controls goes upwards in the place of linkage. If
    kinds of release were compared, how far tables moved goes to the right in the place of loss. Choices
    without a result are left out. ``guess`` is the chance of a blind guess, a dotted line; ``chosen``
    the method, k and kind of release of the choice in a ring; ``choose`` has the attributes by which a
    point can be chosen, with ``{method}`` and ``{k}`` for its own.
    """
    done = [choice for choice in choices if choice["problem"] is None]
    attacked, moved = (
        bool(done) and all(choice.get(figure) is not None for choice in done)
        for figure in ("inference", "tables")
    )
    risk, cost = "records linked", "information loss"
    risks = [100 * choice["record_linkage"] for choice in done]
    costs = [choice["information_loss"] for choice in done]
    guessed = [""] * len(done)
    if attacked:
        risk = "values guessed beyond controls"
        shares = [max(choice["inference"]["share"], 0.0) for choice in done]
        risks = [100 * value for value in shares]
        guessed = [f", {share(value)} guessed beyond controls" for value in shares]
    if moved:
        cost = "records in another cell of tables"
        costs = [100 * choice["tables"] for choice in done]
    right, top = (1.1 * max(values, default=0.0) or 1.0 for values in (costs, risks))
    plot = Plot(LARGE, (0.0, right), (0.0, top), bottom=36.0)
    plot.axis_left(f"{risk} in % (less is better)")
    plot.axis_below(unit=f"{cost} in % (less is better)")
    if not attacked:
        plot.line("guess", plot.left, plot.y(100 * guess), plot.right, plot.y(100 * guess))
    at = [(plot.x(across), plot.y(up)) for across, up in zip(costs, risks, strict=True)]
    front = sorted(point for point, choice in zip(at, done, strict=True) if choice["on_frontier"])
    plot.add("polyline", kind="front", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in front))
    names = [f"{choice['method']}{' (swapped)' * (choice['release'] == 'swap')}" for choice in done]
    series = list(dict.fromkeys(names))
    radii = [5.0 if choice["on_frontier"] else 3.5 for choice in done]
    ringed = [(choice["method"], choice["k"], choice["release"]) == chosen for choice in done]
    outer = [_RING if ring else radius for ring, radius in zip(ringed, radii, strict=True)]
    texts = [
        f"k={choice['k']}" if choice["on_frontier"] or len(series) == 1 else "" for choice in done
    ]
    labels = _labels(plot, at, outer, texts)
    for i, choice in enumerate(done):
        (x, y), method, k = at[i], choice["method"], str(choice["k"])
        words = (
            f"{names[i]}, k = {k}: loses {percent(choice['information_loss'])}, links "
            f"{share(choice['record_linkage'])}{guessed[i]}{'; click to choose' if choose else ''}"
        )
        shapes = element("title", words)
        if choose:
            shapes += element("circle", kind="reach", cx=x, cy=y, r=14)
        if ringed[i]:
            shapes += element("circle", kind="ring", cx=x, cy=y, r=_RING)
        shapes += _mark(series.index(names[i]), x, y, radii[i]) + labels[i]
        attributes = {
            name: value.replace("{method}", method).replace("{k}", k)
            for name, value in (choose or {}).items()
        }
        plot.add("g", shapes, kind="choice", **attributes)
    about = f"{cost.capitalize()} and {risk} of each choice; the table has the same figures."
    picture = plot.svg("Risk–utility map", about)
    legend = Markup("")
    for i, name in enumerate(series) if len(series) > 1 else ():
        attributes = {"kind": "key-mark", "viewBox": "0 0 18 18", "aria_hidden": "true"}
        key = element("svg", _mark(i, 9.0, 9.0, 5.0), **attributes)
        legend += element("span", key + name)  # the name is escaped
    return picture + (element("p", legend, kind="legend small soft") if legend else "")


def _mark(series: int, x: float, y: float, radius: float) -> Markup:
    place = f"translate({x:.1f} {y:.1f}) scale({radius:g})"
    kind = f"s{series % _COLOURS}"
    return element("path", kind=kind, transform=place, d=_MARKS[series % len(_MARKS)])


def _labels(
    plot: Plot, at: Sequence[tuple[float, float]], radii: Sequence[float], texts: Sequence[str]
) -> list[Markup]:
    """Write texts beside points, clear of all points and of other texts; where no place is free, none.

    The table under the map has what is left out.
    """
    marks = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(at, radii, strict=True)]
    occupied, labels = list(marks), [Markup("")] * len(marks)
    for i, ((left, top, right, bottom), text) in enumerate(zip(marks, texts, strict=True)):
        width, height = width_of(text), 1.1 * FONT
        for across, down in _SIDES if text else ():
            x = (right + _GAP, (left + right - width) / 2, left - _GAP - width)[1 - across]
            y = (bottom + _GAP, (top + bottom - height) / 2, top - _GAP - height)[1 - down]
            end, low = x + width, y + height
            is_inside = (
                plot.left <= x and plot.top <= y and end <= plot.right and low <= plot.bottom
            )
            if is_inside and not any(
                x < c and a < end and y < d and b < low for a, b, c, d in occupied
            ):
                occupied.append((x, y, end, low))
                place = {"x": x + width / 2, "y": y + height / 2 + 4}
                labels[i] = element("text", text, **place, text_anchor="middle")
                break
    return labels
