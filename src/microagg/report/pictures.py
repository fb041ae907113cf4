"""The pictures of a report, drawn by matplotlib as SVG that stands in the page itself.

Text stays text, so that it can be read aloud, searched and copied; names are never taken for
formulas. The same data give the same picture, byte for byte.
"""

from __future__ import annotations

import html
import io
import itertools
import logging
import re
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# When first imported on a machine, matplotlib looks for fonts and says so on stderr.
_log = logging.getLogger("matplotlib")
_level = _log.level
_log.setLevel(logging.ERROR)
import matplotlib as mpl  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from microagg.base.formatting import share  # noqa: E402

_log.setLevel(_level)

__all__ = [
    "bars",
    "class_sizes",
    "correlation",
    "distribution",
    "intervals",
    "linkage",
    "risk_utility_map",
]

BEFORE, AFTER, GREY = "#b45309", "#1d4ed8", "#6b7280"
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
}
_LONGEST_NAME = 24
_ALIKE = 0.01  # widths of bins that differ by less, relatively, are equal but for rounding
_MARGINS = {"left": 0.16, "right": 0.91, "bottom": 0.13, "top": 0.96}  # of a distribution


# matplotlib's settings belong to the whole process: one picture at a time.
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def _drawing(
    name: str, width: float, height: float, margins: dict[str, float] | None = None
) -> Iterator[tuple[Figure, Any, list[str]]]:
    """Give a figure, its axes and a list that holds the SVG afterwards.

    ``margins``, where they are known, save the search for them, half the time of a picture.
    """
    out: list[str] = []
    with _ONE_AT_A_TIME, mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(width, height), layout=None if margins else "constrained")
        if margins:
            figure.subplots_adjust(**margins)
        yield figure, figure.subplots(), out
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    out.append(_inline(file.getvalue(), name))


def _inline(svg: str, name: str) -> str:
    """Cut an SVG file down to what may stand in a page beside others."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", f'<svg role="img" aria-labelledby="{name}"', 1).strip()


def _short(name: str) -> str:
    name = "".join(sign if sign.isprintable() else "�" for sign in name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _stand_ins(names: list[str]) -> list[str]:
    """Give, for each name, digits about as wide.

    matplotlib warns of signs that its font lacks, though the reader's has them; so it draws these, and
    :func:`_named` puts the names in their place.
    """
    return [f"@{i:0{max(_width(name) - 1, 1)}d}" for i, name in enumerate(names)]


def _width(name: str) -> int:
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in name)


def _named(svg: str, names: list[str]) -> str:
    return re.sub(r">@(\d+)<", lambda found: f">{html.escape(names[int(found[1])])}<", svg)


def _amount(value: float, _: int = 0) -> str:
    """A number at an axis: thousands apart, millions by their sign.

    >>> [_amount(v) for v in (0, 250000, 2.5e7, -0.25, 1e15)]
    ['0', '250,000', '25 M', '−0.25', '1e+15']
    """
    size = abs(value)
    if 1e6 <= size < 1e12:
        text = f"{value / 1e6:,.10g} M"
    elif 1000 <= size < 1e6:
        text = f"{value:,.10g}"
    else:
        text = f"{value:.6g}"
    return text.replace("-", "−")


def distribution(name: str, data: dict[str, Any], n: int) -> str:
    """Share of records in each bin, after as an area and, where it is told, before as a line.

    Of categories: bars, see :func:`bars`.
    """
    if "levels" in data:
        return bars(name, data, n)
    cuts, ticks, unit = data["cuts"], data.get("ticks"), "% of records"
    with _drawing(name, 3.4, 2.0, _MARGINS) as (_, axes, out):
        if len(cuts) < 2:
            for key, style in (
                ("after", {"color": AFTER, "alpha": 0.35}),
                ("before", {"fill": False, "edgecolor": BEFORE, "linewidth": 1.4}),
            ):
                if key in data:
                    shares = [100 * count / n for count in data[key]]
                    axes.bar(range(len(shares)), shares, **style)
            cut = [_amount(float(f"{value:.3g}")) for value in cuts]
            if ticks:
                cut = [words for _, words in ticks]
            labels = [f"under {cut[0]}", f"from {cut[0]}"] if cut else ["all"]
            axes.set_xticks(range(len(labels)), labels)
        else:
            # The outermost bins are open: drawn as wide as their neighbours, but to the end at most.
            low, high = data["ends"]
            edges = np.array(
                [max(low, 2 * cuts[0] - cuts[1]), *cuts, min(high, 2 * cuts[-1] - cuts[-2])]
            )
            # By the narrowest inner bin, so that no height is more than its share of the records.
            width = np.maximum(np.diff(edges) / np.diff(cuts).min(), 1.0)
            for key, colour, fill in (("after", AFTER, True), ("before", BEFORE, False)):
                if key in data:
                    axes.stairs(
                        100 * np.array(data[key]) / n / width,
                        edges,
                        fill=fill,
                        color=colour,
                        alpha=0.35 if fill else 1.0,
                        linewidth=1.4,
                    )
            if ticks:
                axes.set_xticks([place for place, _ in ticks], [words for _, words in ticks])
            else:
                axes.locator_params(axis="x", nbins=4)
                axes.xaxis.set_major_formatter(_amount)
            if width.max() > 1 + _ALIKE:
                unit = "% per narrowest bin"
        axes.set_ylim(bottom=0)
        axes.set_ylabel(unit)
    return out[0]


def bars(name: str, data: dict[str, Any], n: int) -> str:
    """Share of records that have each category, after as bars and, where it is told, before as outlines."""
    labels = [_short(level) for level in data["levels"]]
    with _drawing(name, 3.4, max(2.0, 0.2 * len(labels) + 0.6)) as (_, axes, out):
        if not labels:
            axes.text(0.5, 0.5, "too few values to show", ha="center", va="center", color=GREY)
            axes.set_axis_off()
        else:
            places = range(len(labels))
            for key, style in (
                ("after", {"color": AFTER, "alpha": 0.35}),
                ("before", {"fill": False, "edgecolor": BEFORE, "linewidth": 1.4}),
            ):
                if key in data:
                    axes.barh(places, [100 * count / n for count in data[key]], 0.7, **style)
            axes.set_yticks(places, _stand_ins(labels), fontsize=8)
            axes.tick_params(axis="y", length=0)
            axes.invert_yaxis()
            axes.set_xlim(left=0)
            axes.set_xlabel("% of records")
    return _named(out[0], labels)


def correlation(name: str, names: list[str], matrix: list[list[float]]) -> str:
    """A matrix as colours from −1 (orange) to 1 (blue), with numbers where they fit."""
    d = len(names)
    side = min(max(0.34 * d + 1.4, 2.6), 7.0)
    labels = [_short(column) for column in names]
    with _drawing(name, side, side) as (_, axes, out):
        axes.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
        size = 8 if d <= 12 else max(3.0, 8 * 12 / d)
        axes.set_xticks(
            range(d),
            _stand_ins(labels),
            fontsize=size,
            rotation=90,
            rotation_mode="anchor",
            ha="right",
            va="center",
        )
        axes.set_yticks(range(d), _stand_ins(labels), fontsize=size)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if d <= 13:
            for i, j in itertools.product(range(d), range(d)):
                axes.text(
                    j,
                    i,
                    _coefficient(matrix[i][j]),
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if abs(matrix[i][j]) > 0.6 else "black",
                )
    return _named(out[0], labels)


def _coefficient(value: float) -> str:
    """Two digits without the zero before them.

    >>> [_coefficient(value) for value in (0.456, -0.456, -0.001, 1.0)]
    ['.46', '−.46', '0', '1']
    """
    text = f"{value:.2f}"
    if float(text) in (-1, 0, 1):
        return str(int(float(text))).replace("-", "−")
    return text.replace("0.", ".", 1).replace("-", "−")


def class_sizes(name: str, rows: list[dict[str, int]], k: int) -> str:
    """How many classes there are of each size; beyond forty sizes in bins."""
    with _drawing(name, 3.6, 2.2) as (_, axes, out):
        sizes = [row["size"] for row in rows]
        counts = [row["classes"] for row in rows]
        if not rows:
            axes.set_axis_off()
        elif max(sizes) - min(sizes) < 40:
            axes.bar(sizes, counts, color=AFTER, alpha=0.6, width=0.8)
            axes.locator_params(integer=True, nbins=6)
        else:
            axes.hist(sizes, bins=30, weights=counts, color=AFTER, alpha=0.6)
            axes.set_yscale("symlog")
        axes.axvline(k - 0.5, color=BEFORE, linewidth=1.2, linestyle="--")
        axes.set_xlabel(f"records in a group (dashed: k = {k})")
        axes.set_ylabel("groups")
    return out[0]


def linkage(name: str, rows: list[tuple[str, float]]) -> str:
    """Chances of an attacker as bars, the smallest first."""
    with _drawing(name, 3.6, 0.42 * len(rows) + 0.7) as (_, axes, out):
        labels = [label for label, _ in rows]
        colours = [GREY if "guess" in label else AFTER for label in labels]
        axes.barh(labels, [100 * value for _, value in rows], color=colours, alpha=0.7, height=0.6)
        for i, (_, value) in enumerate(rows):
            axes.annotate(
                share(value), (100 * value, i), (3, 0), textcoords="offset points", va="center"
            )
        axes.invert_yaxis()
        axes.set_xlim(0, 130 * max(value for _, value in rows) or 1)
        axes.set_xlabel("% of the records")
        axes.tick_params(axis="y", length=0)
    return out[0]


def intervals(name: str, by_sd: dict[str, float], by_rank: dict[str, float]) -> str:
    """Share of records near their true values in all columns, by the width of the interval."""
    with _drawing(name, 3.6, 2.2) as (_, axes, out):
        for shares, colour, marker, label in (
            (by_sd, AFTER, "o", "of a standard deviation"),
            (by_rank, BEFORE, "s", "of the ranks"),
        ):
            x = [float(p) for p in shares]
            axes.plot(
                x,
                [100 * y for y in shares.values()],
                color=colour,
                marker=marker,
                markersize=4,
                label=label,
            )
        axes.set_ylim(0, 105)
        axes.set_xlim(left=0)
        axes.set_xlabel("width p in %")
        axes.set_ylabel("% of records")
        axes.legend(frameon=False, fontsize=8)
    return out[0]


_LEGEND_COLUMNS = 3
_RING = 190  # area of the circle around the choice, in square points
_LABEL = 8  # size of the labels in points
# Directions in which a label may stand off its point, and how far, the best first.
_SIDES = ((1, 1), (-1, -1), (1, -1), (-1, 1), (1, 0), (-1, 0), (0, 1), (0, -1))
_GAPS = (2, 6, 11, 17, 24)  # points between a marker and its label
_NEAR = 6  # from here on a line leads from the label to its point

Box = tuple[float, float, float, float]  # left, bottom, right, top, in points


def risk_utility_map(
    name: str, cells: list[dict[str, Any]], guess: float, chosen: Any = None
) -> str:
    """Loss to the right, linkage upwards: the nearer to the corner at the bottom left, the better."""
    done = [cell for cell in cells if cell["problem"] is None]
    tried = list(dict.fromkeys(cell["method"] for cell in done))
    legend_rows = -(-len(tried) // _LEGEND_COLUMNS) if len(tried) > 1 else 0
    with _drawing(name, 4.8, 3.2 + 0.17 * legend_rows) as (figure, axes, out):
        front = sorted(_place(cell) for cell in done if cell["on_frontier"])
        axes.plot([x for x, _ in front], [y for _, y in front], color=GREY, linewidth=1, zorder=1)
        colours = mpl.colormaps["tab10" if len(tried) <= 10 else "tab20"](range(20))
        markers = "osD^v<>pPX*hd"
        for m, method in enumerate(tried):
            mine = [cell for cell in done if cell["method"] == method]
            axes.scatter(
                [_place(cell)[0] for cell in mine],
                [_place(cell)[1] for cell in mine],
                color=colours[m % (10 if len(tried) <= 10 else 20)],
                marker=markers[m % len(markers)],
                s=[_area(cell) for cell in mine],
                alpha=0.9,
                label=method,
                zorder=2,
            )
        circled = [cell for cell in done if (cell["method"], cell["k"]) == chosen]
        for cell in circled:
            axes.scatter(*_place(cell), s=_RING, facecolors="none", edgecolors="black", zorder=3)
        axes.axhline(100 * guess, color=GREY, linestyle=":", linewidth=1)
        axes.set_xlim(0, 1.08 * max((_place(cell)[0] for cell in done), default=0) or 1)
        axes.set_ylim(0, 1.12 * max((_place(cell)[1] for cell in done), default=0) or 1)
        axes.set_xlabel("information loss in % (less is better)")
        axes.set_ylabel("records linked in % (less is better)")
        if legend_rows:
            figure.legend(
                loc="outside lower center",
                frameon=False,
                fontsize=8,
                ncols=_LEGEND_COLUMNS,
                columnspacing=1.2,
                handletextpad=0.2,
                labelspacing=0.3,
            )
        _label_points(figure, axes, done, front, circled, everything=len(tried) == 1)
    return out[0]


def _place(cell: dict[str, Any]) -> tuple[float, float]:
    return cell["information_loss"], 100 * cell["record_linkage"]


def _area(cell: dict[str, Any]) -> int:
    return 46 if cell["on_frontier"] else 22


def _label_points(
    figure: Figure,
    axes: Any,
    done: list[dict[str, Any]],
    front: list[tuple[float, float]],
    circled: list[dict[str, Any]],
    *,
    everything: bool,
) -> None:
    """Write k beside the points of the frontier, clear of all points, of the line and of each other.

    A point with no free place near it goes without: the table beside the map has its k.
    """
    figure.draw_without_rendering()  # only now is it known where the axes are

    def points(place: tuple[float, float]) -> tuple[float, float]:
        x, y = axes.transData.transform(place) * 72 / figure.dpi
        return float(x), float(y)

    def around(place: tuple[float, float], area: float) -> Box:
        (x, y), half = points(place), area**0.5 / 2
        return x - half, y - half, x + half, y + half

    taken = [around(_place(cell), _area(cell)) for cell in done]
    taken += [around(_place(cell), _RING) for cell in circled]
    taken += _along([points(place) for place in front])
    frame = tuple(side * 72 / figure.dpi for side in axes.bbox.extents)
    for cell in done:
        if not (cell["on_frontier"] or everything):
            continue
        text = f"k={cell['k']}"
        own = around(_place(cell), _RING if cell in circled else _area(cell))
        free = (
            (gap, box)
            for gap in _GAPS
            for box in (_beside(own, side, gap, text) for side in _SIDES)
            if _within(box, frame) and not any(_overlap(box, other) for other in taken)
        )
        gap, box = next(free, (0, None))
        if box is None:
            continue
        taken.append(box)
        x, y = points(_place(cell))
        axes.annotate(
            text,
            _place(cell),
            xytext=((box[0] + box[2]) / 2 - x, (box[1] + box[3]) / 2 - y),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_LABEL,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6}
            if gap >= _NEAR
            else None,
        ).set_in_layout(False)


def _beside(own: Box, side: tuple[int, int], gap: float, text: str) -> Box:
    """Give the box of a label that stands off a marker to one side."""
    width, height = 0.66 * _LABEL * len(text), 1.1 * _LABEL
    left = {1: own[2] + gap, -1: own[0] - gap - width, 0: (own[0] + own[2] - width) / 2}[side[0]]
    bottom = {1: own[3] + gap, -1: own[1] - gap - height, 0: (own[1] + own[3] - height) / 2}[
        side[1]
    ]
    return left, bottom, left + width, bottom + height


def _along(line: list[tuple[float, float]]) -> list[Box]:
    """Cover a line by small boxes."""
    found = []
    for (a, b), (c, d) in itertools.pairwise(line):
        steps = max(int(max(abs(c - a), abs(d - b)) / 2), 1)
        for t in np.linspace(0, 1, steps + 1):
            x, y = a + t * (c - a), b + t * (d - b)
            found.append((x - 0.5, y - 0.5, x + 0.5, y + 0.5))
    return found


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _within(box: Box, frame: tuple[float, ...]) -> bool:
    return frame[0] <= box[0] and frame[1] <= box[1] and box[2] <= frame[2] and box[3] <= frame[3]
