"""Drawings of how methods group: two dozen made-up records in two columns, k = 3, drawn by matplotlib.

``python -m website.drawings`` draws them anew into docs/methods/drawings; the same code gives the same
bytes. On the left stands what guides a method (its order of the records, its tree, the order in which
groups are formed), on the right the groups and the values that they release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull
from sklearn.datasets import load_diabetes

import microagg
from microagg.plan.registry import METHODS, Method

__all__ = ["FOLDER", "draw", "main"]

FOLDER = Path(__file__).parents[1] / "docs" / "methods" / "drawings"
K = 3
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "microagg",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
}
_GREY, _INK = "#9ca3af", "#1f2937"
_COLOURS = [
    *("#1d4ed8", "#b45309", "#047857", "#be123c", "#7c3aed", "#0e7490"),
    *("#a16207", "#4d7c0f", "#9d174d", "#475569", "#c2410c"),
]


def records() -> np.ndarray[Any, Any]:
    """Two dozen records and two: three clouds of different width, and a few far out."""
    rng = np.random.default_rng(7)
    clouds = [
        rng.normal((2.0, 2.0), 0.7, (9, 2)),
        rng.normal((6.2, 3.2), 0.9, (8, 2)),
        rng.normal((3.8, 6.4), 0.6, (6, 2)),
        np.array([[8.4, 7.6], [7.6, 6.9], [0.6, 6.8]]),
    ]
    return np.concatenate(clouds)


def draw(method: Method) -> Figure:
    """Draw what a method does."""
    if method.one_column:
        return _line(method)
    if method.categories:
        return _categories()
    return _plane(method)


def _axes(figure: Figure, place: tuple[int, int, int], title: str) -> Any:
    axes = figure.add_subplot(*place)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, color=_INK)
    for side in axes.spines.values():
        side.set_color(_GREY)
    return axes


def _plane(method: Method) -> Figure:
    X = records()
    if method.closeness:
        labels, note = _close(X, method.name)
    else:
        found = microagg.partition(X, K, method=method.name)
        labels, note = found.labels, f"loses {found.information_loss:.1f} %"
    figure = Figure(figsize=(8, 3.9), layout="constrained")
    left = _axes(figure, (1, 2, 1), _guide_title(method))
    _guide(left, X, method, labels)
    n_groups = labels.max() + 1
    right = _axes(figure, (1, 2, 2), f"{n_groups} groups; {note}")
    for group in range(n_groups):
        _group(right, X[labels == group], _COLOURS[group % len(_COLOURS)])
    if method.closeness:
        _sick(right, X)
    for axes in (left, right):
        axes.set_aspect("equal")
        axes.margins(0.08)
    return figure


def _group(axes: Any, members: np.ndarray[Any, Any], colour: str) -> None:
    """Members within their hull, and the mean that is released in their place."""
    if len(members) > 2:
        corners = members[ConvexHull(members).vertices]
        axes.fill(*corners.T, color=colour, alpha=0.16, lw=0)
        axes.fill(*corners.T, fill=False, edgecolor=colour, lw=1)
    centre = members.mean(axis=0)
    for member in members:
        axes.plot(*zip(member, centre, strict=True), color=colour, lw=0.6)
    axes.scatter(*members.T, s=16, color=colour, zorder=3)
    axes.scatter(*centre, marker="X", s=52, color=colour, edgecolor="white", lw=0.8, zorder=4)


def _guide_title(method: Method) -> str:
    if method.order:
        return "the order that is cut"
    if method.name.startswith("mst"):
        return "the tree; dashed edges are cut"
    if method.name == "k-ward":
        return "the two records farthest apart begin"
    if method.closeness:
        return "records; dark: ill"
    if _from_outside(method):
        return "the record farthest from the centroid goes first"
    return "the records"


def _from_outside(method: Method) -> bool:
    return method.family == "fixed size" or method.name in ("v-mdav", "igd")


def _guide(axes: Any, X: np.ndarray[Any, Any], method: Method, labels: Any) -> None:
    if method.order:
        order = microagg.order(X, method.name, **({"k": K} if method.order_needs_k else {}))
        axes.plot(*X[order].T, color=_GREY, lw=1)
        axes.scatter(*X[order[0]], s=70, facecolor="none", edgecolor=_INK)
    elif method.name.startswith("mst"):
        tree = microagg.minimum_spanning_tree(X)
        for a, b in zip(tree.first, tree.second, strict=True):
            style = "-" if labels[a] == labels[b] else ":"
            axes.plot(*X[[a, b]].T, color=_GREY, lw=1.3, ls=style)
    elif method.name == "k-ward":
        squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        ends = np.unravel_index(squares.argmax(), squares.shape)
        axes.plot(*X[list(ends)].T, color=_GREY, lw=1.3, ls="--")
    axes.scatter(*X.T, s=16, color=_INK, zorder=3)
    if method.closeness:
        _sick(axes, X)
    centre = X.mean(axis=0)
    if _from_outside(method):
        axes.scatter(*centre, marker="*", s=90, color=_GREY)
        farthest = X[((X - centre) ** 2).sum(axis=1).argmax()]
        axes.annotate("", farthest, xytext=centre, arrowprops={"arrowstyle": "->", "color": _GREY})


def _ill(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A confidential column: who lives to the right is ill more often."""
    return (X[:, 0] + np.random.default_rng(3).normal(0, 2.4, len(X))) > np.median(X[:, 0])


def _sick(axes: Any, X: np.ndarray[Any, Any]) -> None:
    """Records of the healthy, hollow."""
    axes.scatter(*X[~_ill(X)].T, s=16, color="white", edgecolor=_INK, lw=0.8, zorder=5)


def _close(X: np.ndarray[Any, Any], name: str) -> tuple[Any, str]:
    table = pa.table({"x": X[:, 0], "y": X[:, 1], "illness": _ill(X).astype(float)})
    r = microagg.protect(
        table,
        k=K,
        columns=["x", "y"],
        method=name,
        confidential=["illness"],
        require={"closeness": {"illness": 0.3}},
    )
    return r.partition.labels, f"{r.utility.information_loss:.1f} % lost, t = 0.3 holds"


def _line(method: Method) -> Figure:
    rng = np.random.default_rng(4)
    x = np.sort(np.round(np.concatenate([rng.gamma(2, 2, 13), [17.5, 19, 24]]), 1))
    found = microagg.partition(x, K, method=method.name)
    figure = Figure(figsize=(8, 1.9), layout="constrained")
    axes = _axes(
        figure,
        (1, 1, 1),
        f"sorted values, cut where the squares are least: "
        f"{found.n_groups} groups; loses {found.information_loss:.2f} %",
    )
    for group in range(found.n_groups):
        members, colour = x[found.labels == group], _COLOURS[group]
        axes.plot(
            [members.min(), members.max()],
            [0, 0],
            color=colour,
            lw=9,
            alpha=0.25,
            solid_capstyle="round",
        )
        axes.scatter(members, np.zeros(len(members)), s=22, color=colour, zorder=3)
        axes.scatter(members.mean(), 0.5, marker="X", s=60, color=colour)
        for member in members:
            axes.plot([member, members.mean()], [0, 0.5], color=colour, lw=0.6)
    axes.set_ylim(-0.35, 0.75)
    return figure


def _categories() -> Figure:
    counts = {"farming": 9, "trade": 6, "health": 4, "mining": 2, "fishing": 1, "arts": 1}
    values = [name for name, count in counts.items() for _ in range(count)]
    table = pa.table({"branch": values})
    r = microagg.protect(table, k=K, columns=["branch"], method="nominal-exact")
    labels, released = r.partition.labels, r.data["branch"].to_pylist()
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    axes = _axes(figure, (1, 1, 1), "colours are groups; under a bar: what is released for it")
    below = []
    for place, name in enumerate(counts):
        rows = [row for row, value in enumerate(values) if value == name]
        for height, row in enumerate(rows):
            colour = _COLOURS[labels[row] % len(_COLOURS)]
            axes.bar(place, 1, bottom=height, color=colour, alpha=0.5, edgecolor="white")
        below.append(f"{name}\n→ {', '.join(sorted({released[row] for row in rows}))}")
    axes.axhline(K, color=_GREY, lw=0.8, ls=":")
    axes.set_xticks(range(len(counts)), below)
    return figure


def front() -> Figure:
    """The picture of the first page: patients as they are, and as groups of five release them."""
    patients = load_diabetes(as_frame=True, scaled=False).data[["age", "bmi"]]
    released = microagg.protect(patients, k=5, columns=["age", "bmi"])
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    before = figure.add_subplot(1, 2, 1)
    after = figure.add_subplot(1, 2, 2, sharex=before, sharey=before)
    before.scatter(patients["age"], patients["bmi"], s=9, color=_COLOURS[1], alpha=0.7)
    before.set_title("before: everybody stands alone", color=_INK)
    shared = released.data.groupby(["age", "bmi"]).size()
    ages, indices = zip(*shared.index, strict=True)
    after.scatter(ages, indices, s=6 * shared.to_numpy(), color=_COLOURS[0], alpha=0.6)
    loss = released.utility.information_loss
    after.set_title(f"after: 5 or more share each dot; {loss:.1f} % lost", color=_INK)
    for axes in (before, after):
        axes.set(xlabel="age", ylabel="body mass index")
    return figure


def blocks() -> Figure:
    """A table in blocks: those of the first turn, and the same records in the blocks of the next."""
    from microagg.engines.chunks import plan_chunks
    from microagg.engines.fit import encoding_of
    from microagg.engines.table_summary import summarise

    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal([0, 0], 1, (200, 2)), rng.normal([2.5, 1.5], 0.7, (200, 2))])
    table = pa.table({"x": X[:, 0], "y": X[:, 1]})
    plan = microagg.Plan().override(k=5, columns=["x", "y"])
    encoding = encoding_of(plan, summarise(table, plan))
    words = encoding.words(table)
    records = encoding.records_of(words)
    points, found = encoding.coordinates(records), plan_chunks(encoding, words, leaf=100)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    titles = "first turn: each block by itself", "next turn: other borders"
    for turn, title in enumerate(titles):
        axes = _axes(figure, (1, 2, turn + 1), title)
        places = found.assign(points, None, records.keys, turn)
        for number, place in enumerate(np.unique(places)):
            own = points[places == place]
            colour = _COLOURS[number % len(_COLOURS)]
            axes.scatter(own[:, 0], own[:, 1], s=6, color=colour)
            hull = own[ConvexHull(own).vertices]
            axes.fill(hull[:, 0], hull[:, 1], color=colour, alpha=0.15)
    return figure


def main() -> None:
    """Draw all methods, blocks, and the picture of the first page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_STYLE):
        for method in METHODS.values():
            draw(method).savefig(FOLDER / f"{method.name}.svg", metadata={"Date": None})
        front().savefig(FOLDER.parents[1] / "images" / "before-after.svg", metadata={"Date": None})
        blocks().savefig(FOLDER.parents[1] / "images" / "blocks.svg", metadata={"Date": None})
    print(f"wrote {len(METHODS)} drawings, blocks and the picture of the first page")


if __name__ == "__main__":
    main()
