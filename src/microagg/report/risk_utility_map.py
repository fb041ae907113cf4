"""The risk–utility map: loss to the right, linkage upwards; the best choices are at the bottom left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from microagg.base.formatting import percent, share
from microagg.report.charts import FONT, LARGE, Plot, element, width_of

Box = tuple[float, float, float, float]  # left, top, right, bottom
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
# Directions in which a label may stand off its point, right and down, the best first; and how far.
_SIDES = ((1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, -1), (0, 1))
_GAP = 3


def risk_utility_map(
    choices: Sequence[ChoiceFigures],
    guess: float,
    chosen: Sequence[Any] | None = None,
    choose: Mapping[str, str] | None = None,
) -> Markup:
    """Draw choices of method and k, with a legend.

    If all choices were attacked, what is guessed beyond controls goes upwards in the place of linkage. If
    kinds of release were compared, how far tables moved goes to the right in the place of loss. Choices
    without a result are left out. ``guess`` is the chance of a blind guess, a dotted line; ``chosen``
    the method and k, and perhaps the kind of release, of the choice in a ring; ``choose`` has the attributes
    by which a point can be chosen, with ``{method}`` and ``{k}`` for its own.
    """
    done = [choice for choice in choices if choice["problem"] is None]
    attacked, moved = (
        bool(done) and all(choice.get(figure) is not None for choice in done)
        for figure in ("inference", "tables")
    )
    done = [{**choice, "at": _place(choice, moved, attacked)} for choice in done]
    series = list(dict.fromkeys(map(_series, done)))
    ends = [[choice["at"][i] for choice in done] for i in (0, 1)]
    right, top = (1.1 * max(values, default=0.0) or 1.0 for values in ends)
    plot = Plot(LARGE, (0.0, right), (0.0, top), bottom=36.0)
    risk = "values guessed beyond controls" if attacked else "records linked"
    cost = "records in another cell of tables" if moved else "information loss"
    plot.axis_left(f"{risk} in % (less is better)")
    plot.axis_below(unit=f"{cost} in % (less is better)")
    if not attacked:
        plot.line("guess", plot.left, plot.y(100 * guess), plot.right, plot.y(100 * guess))
    front = sorted(_at(plot, choice) for choice in done if choice["on_frontier"])
    plot.add("polyline", kind="front", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in front))
    labels = _labels(plot, done, chosen, len(series) == 1)
    for choice, label in zip(done, labels, strict=True):
        x, y = _at(plot, choice)
        words = (
            f"{_series(choice)}, k = {choice['k']}: loses {percent(choice['information_loss'])}, links "
            f"{share(choice['record_linkage'])}{_guessed(choice) if attacked else ''}"
            + ("; click to choose" if choose else "")
        )
        shapes = [element("title", words)]
        if choose:
            shapes.append(element("circle", kind="reach", cx=x, cy=y, r=14))
        if _is_chosen(choice, chosen):
            shapes.append(element("circle", kind="ring", cx=x, cy=y, r=_RING))
        shapes += [_mark(series.index(_series(choice)), x, y, _radius(choice)), *label]
        attributes = {
            name: value.replace("{method}", choice["method"]).replace("{k}", str(choice["k"]))
            for name, value in (choose or {}).items()
        }
        plot.add("g", Markup("").join(shapes), kind="choice", **attributes)
    about = f"{cost.capitalize()} and {risk} of each choice; the table has the same figures."
    return plot.svg("Risk–utility map", about) + _legend(series)


def _series(choice: ChoiceFigures) -> str:
    """Name the method, and swapping where values are swapped."""
    method = str(choice["method"])
    return f"{method}, swapped" if choice.get("release") == "swap" else method


def _guessed(choice: ChoiceFigures) -> str:
    return f", {share(max(choice['inference']['share'], 0.0))} guessed beyond controls"


def _legend(series: Sequence[str]) -> Markup:
    if len(series) < 2:
        return Markup("")
    keys = [
        element("span", _key(i) + name)  # the name is escaped
        for i, name in enumerate(series)
    ]
    return element("p", Markup("").join(keys), kind="legend small soft")


def _key(series: int) -> Markup:
    mark = _mark(series, 9.0, 9.0, 5.0)
    return element("svg", mark, kind="key-mark", viewBox="0 0 18 18", aria_hidden="true")


def _mark(series: int, x: float, y: float, radius: float) -> Markup:
    place = f"translate({x:.1f} {y:.1f}) scale({radius:g})"
    kind = f"s{series % _COLOURS}"
    return element("path", kind=kind, transform=place, d=_MARKS[series % len(_MARKS)])


def _place(choice: ChoiceFigures, moved: bool, attacked: bool) -> tuple[float, float]:
    """Return the cost and the risk of a choice, both in percent."""
    cost = 100 * choice["tables"] if moved else choice["information_loss"]
    risk = max(choice["inference"]["share"], 0.0) if attacked else choice["record_linkage"]
    return cost, 100 * risk


def _at(plot: Plot, choice: ChoiceFigures) -> tuple[float, float]:
    cost, risk = choice["at"]
    return plot.x(cost), plot.y(risk)


def _radius(choice: ChoiceFigures) -> float:
    return 5.0 if choice["on_frontier"] else 3.5


def _is_chosen(choice: ChoiceFigures, chosen: Sequence[Any] | None) -> bool:
    names = ("method", "k", "release")
    return chosen is not None and all(
        choice[name] == value for name, value in zip(names, chosen, strict=False)
    )


def _labels(
    plot: Plot, done: Sequence[ChoiceFigures], chosen: Sequence[Any] | None, everything: bool
) -> list[list[Markup]]:
    """Label the points of the frontier with k, clear of all points and of other labels.

    The line of the frontier falls to the right, so that a label is best at the upper right of its point. One
    with no free place gets no label: the table under the map has its k.
    """
    marks: list[Box] = []
    for choice in done:
        (x, y), radius = _at(plot, choice), _RING if _is_chosen(choice, chosen) else _radius(choice)
        marks.append((x - radius, y - radius, x + radius, y + radius))
    occupied = list(marks)
    labels: list[list[Markup]] = []
    for choice, (left, top, right, bottom) in zip(done, marks, strict=True):
        labels.append([])
        if not (choice["on_frontier"] or everything):
            continue
        text = f"k={choice['k']}"
        width, height = width_of(text), 1.1 * FONT
        for across, down in _SIDES:
            x = (right + _GAP, (left + right - width) / 2, left - _GAP - width)[1 - across]
            y = (bottom + _GAP, (top + bottom - height) / 2, top - _GAP - height)[1 - down]
            box = x, y, x + width, y + height
            is_inside = plot.left <= x and plot.top <= y and x + width <= plot.right
            if is_inside and box[3] <= plot.bottom and not any(_overlap(box, o) for o in occupied):
                occupied.append(box)
                place = {"x": x + width / 2, "y": y + height / 2 + 4}
                labels[-1].append(element("text", text, **place, text_anchor="middle"))
                break
    return labels


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
