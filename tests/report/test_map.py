"""The risk–utility map: labels and legend stand clear of the points, whatever is drawn."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from microagg.measure.linkage import Linkage
from microagg.protecting.choices import Cell, mark_frontier
from microagg.report.pictures import risk_utility_map

TEXT = re.compile(r'<text [^>]*font-size: (\d+)px[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<')


def cells(n_methods, seed=0):
    """Methods along a curve like that of real tables, with three k each."""
    rng = np.random.default_rng(seed)
    found = []
    for m, k in itertools.product(range(n_methods), (3, 5, 10)):
        loss = 6 * k**0.7 * rng.uniform(0.8, 1.2)
        linkage = 1.2 / k * (6 * k**0.7 / loss) * rng.uniform(0.9, 1.1)
        found.append(
            Cell(f"method-{m}", k, 9, k, k, loss, Linkage(linkage, linkage, linkage, 9, False))
        )
    return [cell.as_dict() for cell in mark_frontier(found)]


def drawn(svg, shown):
    """Where the points, the labels (as boxes) and the legend are, in points of the picture."""
    texts = [(float(x), float(y), word) for _, x, y, word in TEXT.findall(svg)]
    ticks = [(x, y, float(word)) for x, y, word in texts if re.fullmatch(r"[\d.]+", word)]
    level = max(y for _, y, _ in ticks)  # numbers of the axis at the bottom stand on one line
    across = np.polyfit(*zip(*((value, x) for x, y, value in ticks if y == level), strict=True), 1)
    # Numbers of the axis at the left stand a third of their size below what they are for.
    up = np.polyfit(
        *zip(*((value, y - 3.4) for _, y, value in ticks if y != level), strict=True), 1
    )
    points = [
        (np.polyval(across, c["information_loss"]), np.polyval(up, 100 * c["record_linkage"]))
        for c in shown
    ]
    labels = [
        (x - 2.4 * len(word), y - 6, x + 2.4 * len(word), y)
        for x, y, word in texts
        if word.startswith("k=")
    ]
    legend = [y for _, y, word in texts if word.startswith("method-")]
    return points, labels, legend, level


@pytest.mark.parametrize("n_methods", [1, 3, 5, 12, 25])
@pytest.mark.parametrize("seed", [0, 1])
def test_labels_and_legend_stand_clear_of_the_points(n_methods, seed):
    shown = cells(n_methods, seed)
    chosen = next((c["method"], c["k"]) for c in shown if c["on_frontier"])
    points, labels, legend, bottom = drawn(risk_utility_map("m", shown, 0.001, chosen), shown)
    assert labels
    for left, top, right, low in labels:
        assert not any(left < x < right and top < y < low for x, y in points)
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(labels, 2):
        assert not (a < g and e < c and b < h and f < d)
    assert len(legend) == (n_methods if n_methods > 1 else 0)
    assert all(y > bottom for y in legend)


def test_a_few_points_are_all_labelled():
    shown = cells(1)
    assert risk_utility_map("m", shown, 0.01).count(">k=") == 3


def test_nothing_to_draw():
    shown = [Cell("mdav", 3, problem="cannot").as_dict()]
    assert risk_utility_map("m", shown, 0.01).startswith("<svg")
