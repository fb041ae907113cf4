"""Charts: every record in a bin, names as they are, places that stand for the values, nothing on top."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from microagg.comparing.choices import Choice, mark_frontier
from microagg.measure.before_and_after import bin_cuts, distribution
from microagg.measure.linkage import Linkage
from microagg.report import charts
from microagg.report.charts import risk_utility_map, width_of


def amounts(n=400, seed=0):
    """Many zeros and a long tail; groups of four share their mean."""
    x = np.sort(np.random.default_rng(seed).lognormal(8, 1.2, n)) - 400
    x = np.maximum(x, 0)
    return x, x.reshape(-1, 4).mean(axis=1).repeat(4)


def texts(svg):
    """Words and places of the text in a picture."""
    return [
        (float(e.get("x", 0)), float(e.get("y", 0)), e.text)
        for e in ET.fromstring(svg).iter("text")
        if e.text
    ]


def scale(svg):
    """From places to values, by the numbers of the axis at the bottom, which stand on one line."""
    found = [(x, y, w) for x, y, w in texts(svg) if re.fullmatch(r"[\d,.−]+( M)?", w)]
    level = max(y for _, y, _ in found)
    ticks = [
        (x, float(w.replace(",", "").replace("−", "-").replace(" M", "e6")))
        for x, y, w in found
        if y == level
    ]
    return np.polyfit(*zip(*ticks, strict=True), 1)


def drawn_edges(data, n):
    """Where the area of a distribution begins and ends, in units of the column, by its axis."""
    svg = charts.distribution("d", data, n)
    (area,) = [e for e in ET.fromstring(svg).iter("path") if e.get("class") == "after"]
    xs = [float(x) for x in re.findall(r"[MH](-?[\d.]+)", area.get("d"))]
    return np.polyval(scale(svg), xs)


@pytest.mark.parametrize("seed", range(8))
def test_bins_of_amounts_start_where_the_records_do(seed):
    x, y = amounts(seed=seed)
    found = distribution([x, y], 4)
    low, high = found["ends"]
    assert (low, high) == (y.min(), y.max())
    assert low < min(found["cuts"])
    assert max(found["cuts"]) < high
    assert sum(found["before"]) == sum(found["after"]) == len(x)
    assert min(found["before"] + found["after"]) >= 4
    edges, pixel = drawn_edges(found, len(x)), 0.005 * (high - low)
    assert low - pixel <= edges.min()
    assert edges.max() <= high + pixel


def test_an_outlier_does_not_press_the_rest_together():
    y = np.concatenate([np.linspace(0, 100, 996), [1e6] * 4])
    edges = drawn_edges(distribution([y, y], 4), 1000)
    assert edges.max() < 200


def test_heights_are_shares_of_the_records():
    data = {"cuts": [1.0, 2.0, 3.0], "ends": [0.0, 4.0], "after": [10, 20, 30, 40]}
    svg = charts.distribution("d", data, 100)
    up = [(y - 4, float(w)) for x, y, w in texts(svg) if x < 30 and w.isdigit()]
    (area,) = [e for e in ET.fromstring(svg).iter("path") if e.get("class") == "after"]
    levels = [float(y) for y in re.findall(r"V([\d.]+)", area.get("d"))]
    heights = np.polyval(np.polyfit(*zip(*up, strict=True), 1), levels)
    assert heights == pytest.approx([10, 20, 30, 40, 0], abs=0.2)
    assert "after: 10, 20, 30, 40." in svg  # for those who cannot see it


def test_cuts_lie_within():
    for y in (
        np.arange(50.0),
        np.zeros(9),
        np.array([0.0] * 5 + [1.0] * 5),
        np.array([1e9, 1e9 + 1]),
    ):
        cuts = bin_cuts(y)
        assert len(cuts) == 1 or (y.min() < cuts.min() and cuts.max() < y.max())
        assert np.all(np.diff(cuts) > 0)


@pytest.mark.parametrize("y", [np.zeros(9), np.arange(6.0).repeat(4), amounts()[1]])
def test_without_before_as_in_public(y):
    both, alone = distribution([y, y], 3), distribution([y], 3)
    assert alone == {key: both[key] for key in ("cuts", "ends", "after")}
    assert 'class="before"' in charts.distribution("d", both, len(y))
    assert 'class="before"' not in charts.distribution("d", alone, len(y))


def test_names_stay_as_they_are():
    names = ["$x$", "<b>&", "所得の合計", "@3", "\U0001f600 \x1b", "a" * 40]
    shown = ["$x$", "<b>&", "所得の合計", "@3", "\U0001f600 �", "a" * 23 + "…"]
    svg = charts.distribution("<i>", {"levels": names, "before": [1] * 6, "after": [1] * 6}, 6)
    assert {word for *_, word in texts(svg)} >= set(shown)
    assert ET.fromstring(svg).findtext("title") == "<i>"
    (legend,) = re.findall('<p class="legend.*', risk_utility_map(cells(2, name="<b>"), 0.1))
    assert "&lt;b&gt;" in legend
    assert "<b>" not in legend


def every_chart():
    x, y = amounts()
    points = {"before": [(1.0, 2.0)], "after": [(1.5, 2.5)]}
    yield charts.distribution("d", distribution([x, y], 4), len(x))
    yield charts.distribution("one bin", distribution([np.zeros(9)], 3), 9)
    yield charts.distribution("none", {"levels": [], "after": []}, 9)
    yield charts.scatter(points, "x", "y")
    yield charts.scatter({"before": [], "after": []}, "x", "y")
    yield risk_utility_map(cells(1), 0.01)


def test_each_has_a_name_and_words_and_keeps_to_its_surface():
    for svg in every_chart():
        root = ET.fromstring(svg)
        assert root.get("role") == "img"
        assert root.findtext("title")
        assert root.findtext("desc")
        assert "style" not in svg  # the page's policy allows none
        assert "nan" not in svg
        assert "inf" not in svg.replace("information", "")
        width, height = map(float, root.get("viewBox").split()[2:])
        for x, y, words in texts(svg):
            assert 0 <= x <= width, words
            assert 0 <= y <= height, words


def test_a_scatter_shows_the_middle():
    points = [[float(i), float(i % 7)] for i in range(1000)]
    svg = charts.scatter({"before": [*points, [1e9, 0.0]], "after": points}, "x", "y")
    assert svg.count('"point before"') == 1000  # without the one far away
    places = [float(e.get("cx")) for e in ET.fromstring(svg).iter("circle")]
    assert min(places) >= 0
    assert max(places) <= 480


def test_sparks():
    assert "<path" in charts.spark([1, 2])
    heights = re.findall(r"v-([\d.]+)", charts.spark([1, 2]))
    assert heights == ["13.0", "26.0"]
    assert 'd=""' in charts.spark([])
    assert "aria-hidden" in charts.spark([0, 0])


# The risk–utility map.


def cells(n_methods, seed=0, name="method"):
    """Methods along a curve like that of real tables, with three k each."""
    rng = np.random.default_rng(seed)
    found = []
    for m, k in itertools.product(range(n_methods), (3, 5, 10)):
        loss = 6 * k**0.7 * rng.uniform(0.8, 1.2)
        linkage = 1.2 / k * (6 * k**0.7 / loss) * rng.uniform(0.9, 1.1)
        linked = Linkage(linkage, linkage, linkage, 9, False)
        found.append(Choice(f"{name}-{m}", k, 9, k, k, loss, linked))
    return [cell.as_dict() for cell in mark_frontier(found)]


@pytest.mark.parametrize("n_methods", [1, 3, 5, 12, 25])
@pytest.mark.parametrize("seed", [0, 1])
def test_labels_stand_clear_of_the_points(n_methods, seed):
    shown = cells(n_methods, seed)
    chosen = next((c["method"], c["k"], c["release"]) for c in shown if c["on_frontier"])
    svg, _, legend = risk_utility_map(shown, 0.001, chosen).partition("<p ")
    points = [
        tuple(map(float, e.get("transform")[10:].split(")")[0].split()))
        for e in ET.fromstring(svg).iter("path")
    ]
    assert len(points) == len(shown)
    across = np.polyval(scale(svg), [x for x, _ in points])
    assert across == pytest.approx([c["information_loss"] for c in shown], abs=0.1)
    labels = [
        (x - width_of(word) / 2, y - 10, x + width_of(word) / 2, y)
        for x, y, word in texts(svg)
        if word.startswith("k=")
    ]
    assert labels
    for left, top, right, low in labels:
        assert not any(left < x < right and top < y < low for x, y in points)
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(labels, 2):
        assert not (a < g and e < c and b < h and f < d)
    assert svg.count('class="ring"') == 1
    assert legend.count("<span>") == (n_methods if n_methods > 1 else 0)


def test_no_two_methods_have_the_same_mark():
    legend = risk_utility_map(cells(25), 0.001).partition("<p ")[2]
    marks = re.findall(r'<path class="(s\d)"[^>]* d="([^"]*)"', legend)
    assert len(set(marks)) == 25


def test_a_few_points_are_all_labelled_and_can_be_chosen():
    choose = {"hx-post": "/try", "hx-vals": '{"method": "{method}", "k": "{k}"}'}
    svg = risk_utility_map(cells(1), 0.01, choose=choose)
    assert svg.count(">k=") == 3
    points = list(ET.fromstring(svg).iter("g"))
    assert points[0].get("hx-vals") == '{"method": "method-0", "k": "3"}'
    assert "click to choose" in points[0].findtext("title")
    assert "hx-" not in risk_utility_map(cells(1), 0.01)


def test_better_is_nearer_to_the_corner():
    linked = [Linkage(share, share, share, 9, False) for share in (0.2, 0.1)]
    two = [Choice("mdav", 3, 9, 3, 3, 5.0, linked[0]), Choice("mdav", 5, 9, 5, 5, 10.0, linked[1])]
    none = Choice("mdav", 7, problem="too large")
    svg = risk_utility_map([cell.as_dict() for cell in [*mark_frontier(two), none]], 0.01)
    front = [e for e in ET.fromstring(svg).iter("polyline") if e.get("class") == "front"]
    (x, y), (x2, y2) = (map(float, one.split(",")) for one in front[0].get("points").split())
    assert x < x2
    assert y < y2  # downwards on the screen: fewer are linked


def test_nothing_to_draw():
    assert risk_utility_map([Choice("mdav", 3, problem="cannot").as_dict()], 0.01).startswith(
        "<svg"
    )
    assert risk_utility_map([], 0.01).startswith("<svg")
