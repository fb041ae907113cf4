"""The pictures of a report, drawn by matplotlib as SVG that stands in the page itself.

Text stays text, so that it can be read aloud, searched and copied; names are never taken for
formulas. The same data give the same picture, byte for byte.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
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

_log.setLevel(_level)

__all__ = ["class_sizes", "correlation", "distribution", "intervals", "linkage", "risk_utility_map"]

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


@contextmanager
def _drawing(name: str, width: float, height: float) -> Iterator[tuple[Figure, Any, list[str]]]:
    """Give a figure, its axes and a list that holds the SVG afterwards."""
    out: list[str] = []
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # signs that matplotlib's font lacks, the reader's has
        figure = Figure(figsize=(width, height), layout="constrained")
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


def distribution(name: str, data: dict[str, Any], n: int) -> str:
    """Share of records per unit in each bin, before as a line and after as an area."""
    cuts = data["cuts"]
    with _drawing(name, 3.4, 2.0) as (_, axes, out):
        if len(cuts) < 2:
            for key, style in (
                ("after", {"color": AFTER, "alpha": 0.35}),
                ("before", {"fill": False, "edgecolor": BEFORE, "linewidth": 1.4}),
            ):
                shares = [100 * count / n for count in data[key]]
                axes.bar(range(len(shares)), shares, **style)
            labels = ["all"] if not cuts else [f"under {cuts[0]:.3g}", f"from {cuts[0]:.3g}"]
            axes.set_xticks(range(len(labels)), labels)
        else:
            # The open bins at both ends are drawn as wide as their neighbours.
            edges = np.array([2 * cuts[0] - cuts[1], *cuts, 2 * cuts[-1] - cuts[-2]])
            width = np.diff(edges) / np.median(np.diff(edges))
            for key, colour, fill in (("after", AFTER, True), ("before", BEFORE, False)):
                height = 100 * np.array(data[key]) / n / width
                axes.stairs(
                    height,
                    edges,
                    fill=fill,
                    color=colour,
                    alpha=0.35 if fill else 1.0,
                    linewidth=1.4,
                )
            axes.locator_params(axis="x", nbins=5)
            axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 5), useMathText=False)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("% of records")
    return out[0]


def correlation(name: str, names: list[str], matrix: list[list[float]], limit: float) -> str:
    """A matrix as colours from −limit (orange) to limit (blue), with numbers where they fit."""
    d = len(names)
    side = min(max(0.34 * d + 1.4, 2.6), 7.0)
    with _drawing(name, side, side) as (_, axes, out):
        axes.imshow(matrix, cmap="PuOr", vmin=-limit, vmax=limit)
        labels = [_short(column) for column in names]
        size = 8 if d <= 12 else max(3.0, 8 * 12 / d)
        axes.set_xticks(range(d), labels, rotation=90, fontsize=size)
        axes.set_yticks(range(d), labels, fontsize=size)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if d <= 13:
            for i in range(d):
                for j in range(d):
                    value = matrix[i][j]
                    text = f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
                    dark = abs(value) > 0.6 * limit
                    axes.text(
                        j,
                        i,
                        text,
                        ha="center",
                        va="center",
                        fontsize=6,
                        color="white" if dark else "black",
                    )
    return out[0]


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
        values = [100 * value for _, value in rows]
        colours = [GREY if "guess" in label else AFTER for label in labels]
        axes.barh(labels, values, color=colours, alpha=0.7, height=0.6)
        for i, value in enumerate(values):
            axes.text(value, i, f" {value:.3g} %", va="center", fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0, max(values) * 1.25 or 1)
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


def risk_utility_map(
    name: str, cells: list[dict[str, Any]], guess: float, chosen: Any = None
) -> str:
    """Loss to the right, linkage upwards: the nearer to the corner at the bottom left, the better."""
    done = [cell for cell in cells if cell["problem"] is None]
    with _drawing(name, 4.8, 3.2) as (_, axes, out):
        front = sorted(
            (cell["information_loss"], cell["record_linkage"])
            for cell in done
            if cell["on_frontier"]
        )
        axes.plot(
            [x for x, _ in front], [100 * y for _, y in front], color=GREY, linewidth=1, zorder=1
        )
        tried = list(dict.fromkeys(cell["method"] for cell in done))
        colours = mpl.colormaps["tab10" if len(tried) <= 10 else "tab20"](range(20))
        markers = "osD^v<>pPX*hd"
        for m, method in enumerate(tried):
            mine = [cell for cell in done if cell["method"] == method]
            axes.scatter(
                [cell["information_loss"] for cell in mine],
                [100 * cell["record_linkage"] for cell in mine],
                color=colours[m % len(colours)],
                marker=markers[m % len(markers)],
                s=[46 if cell["on_frontier"] else 22 for cell in mine],
                alpha=0.9,
                label=method,
                zorder=2,
            )
        _label_points(axes, done, tried)
        if chosen is not None:
            for cell in done:
                if (cell["method"], cell["k"]) == chosen:
                    axes.scatter(
                        cell["information_loss"],
                        100 * cell["record_linkage"],
                        s=190,
                        facecolors="none",
                        edgecolors="black",
                        zorder=3,
                    )
        axes.axhline(100 * guess, color=GREY, linestyle=":", linewidth=1)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.margins(0.08)
        axes.set_xlabel("information loss in % (less is better)")
        axes.set_ylabel("records linked in % (less is better)")
        if len(tried) > 1:
            axes.legend(frameon=False, fontsize=8, ncols=1 + len(tried) // 9)
    return out[0]


def _label_points(axes: Any, done: list[dict[str, Any]], tried: list[str]) -> None:
    """Write k beside the points of the frontier, one label a place."""
    taken: list[tuple[float, float]] = []
    width = max((cell["information_loss"] for cell in done), default=1) or 1
    height = max((cell["record_linkage"] for cell in done), default=1) or 1
    for cell in sorted(done, key=lambda cell: not cell["on_frontier"]):
        if len(tried) > 1 and not cell["on_frontier"]:
            continue
        x, y = cell["information_loss"] / width, cell["record_linkage"] / height
        if any(abs(x - a) < 0.05 and abs(y - b) < 0.05 for a, b in taken):
            continue
        taken.append((x, y))
        axes.annotate(
            f"k={cell['k']}",
            (cell["information_loss"], 100 * cell["record_linkage"]),
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=8,
        )
