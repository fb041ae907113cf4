"""Pictures: no bin where no record is, nothing of one in another, names as they are."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import matplotlib as mpl
import numpy as np
import pytest

from microagg.measure.chart_data import bin_cuts, distribution
from microagg.report import pictures


def amounts(n=400, seed=0):
    """Many zeros and a long tail; groups of four share their mean."""
    x = np.sort(np.random.default_rng(seed).lognormal(8, 1.2, n)) - 400
    x = np.maximum(x, 0)
    return x, x.reshape(-1, 4).mean(axis=1).repeat(4)


@pytest.mark.parametrize("seed", range(8))
def test_bins_of_amounts_start_where_the_records_do(seed):
    x, y = amounts(seed=seed)
    found = distribution(x, y, 4)
    low, high = found["ends"]
    assert (low, high) == (y.min(), y.max())
    assert low < min(found["cuts"])
    assert max(found["cuts"]) < high
    assert sum(found["before"]) == sum(found["after"]) == len(x)
    assert min(found["before"] + found["after"]) >= 4
    edges = drawn_edges(found, len(x))
    assert low - 1e-6 * (high - low) <= edges.min()
    assert edges.max() <= high + 1e-6 * (high - low)


def drawn_edges(data, n):
    """Where the area of a picture begins and ends, in units of the column, by its axis."""
    svg = pictures.distribution("d", data, n)
    text = re.findall(r'<text [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>([\d,.− M]+)<', svg)
    level = max(float(y) for _, y, _ in text)
    ticks = [
        (float(x), float(word.replace(",", "").replace("−", "-").replace(" M", "e6")))
        for x, y, word in text
        if float(y) == level
    ]
    scale = np.polyfit(*zip(*ticks, strict=True), 1)
    area = re.search(r'<path d="([^"]*)"[^>]*style="fill: #1d4ed8; opacity: 0.35', svg)
    xs = [float(x) for x, _ in re.findall(r"[ML] ([\d.]+) ([\d.]+)", area[1])]
    return np.polyval(scale, xs)


def test_an_outlier_does_not_press_the_rest_together():
    y = np.concatenate([np.linspace(0, 100, 996), [1e6] * 4])
    edges = drawn_edges(distribution(y, y, 4), 1000)
    assert edges.max() < 200


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
    both = distribution(y, y, 3)
    alone = {key: both[key] for key in ("cuts", "ends", "after")}
    assert pictures.BEFORE in pictures.distribution("d", both, len(y))
    assert pictures.BEFORE not in pictures.distribution("d", alone, len(y))


def test_names_stay_as_they_are():
    """Warnings are errors here: signs that a font lacks must not cause any."""
    names = ["$x$", "<b>&", "所得の合計", "@3", "\U0001f600 \x1b", "a" * 40]
    svg = pictures.correlation("c", names, np.eye(6).tolist())
    for shown in ("$x$", "&lt;b&gt;&amp;", "所得の合計", "@3", "\U0001f600 �", "a" * 23 + "…"):
        assert svg.count(f">{shown}<") == 2, shown
    assert len(re.findall(r">1<", svg)) == 6


def test_threads_do_not_mix_and_settings_stay():
    x, y = amounts()
    data = distribution(x, y, 4)

    def draw(i):
        if i % 2:
            return pictures.distribution(f"d{i}", data, len(x))
        return pictures.correlation(f"c{i}", ["a", "b"], [[1, i / 50], [i / 50, 1]])

    settings = dict(mpl.rcParams)
    one_by_one = [draw(i) for i in range(12)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(12))) == one_by_one
    assert dict(mpl.rcParams) == settings
