"""Searching among the records left: always the answer of a scan, while records leave."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from awkward import data
from entries import entry
from microagg.algorithms.fixed_size import centroid, mdav
from microagg.kernels import kd_search, kd_tree, outside_in, shells
from microagg.kernels.kd_tree import NO_ROW, build, for_thread
from microagg.kernels.shells import build_shells

farthest, nearest, nearest_one = map(
    entry, (kd_search.farthest, kd_search.nearest, kd_search.nearest_one)
)
move, remove = entry(kd_tree.move), entry(kd_tree.remove)
farthest_in_shells, nearest_in_shells, leave = map(
    entry, (shells.farthest_in_shells, shells.nearest_in_shells, shells.leave)
)

CASES = [
    # records, columns, kind
    (1, 1, "normal"),
    (15, 2, "ties"),
    (16, 3, "equal"),
    (17, 2, "ties"),
    (257, 1, "normal"),
    (300, 4, "ties"),
    (300, 2, "equal"),
    (700, 5, "binary"),
    (4_200, 3, "ties"),  # three levels of nodes
    (600, 12, "normal"),
    (600, 3, "scales"),
    (500, 3, "far from 0"),
    (150, 2, "tiny"),
]


def scan(X, rows, point):
    """Squared distances, summed column by column as the kernels do."""
    total = np.zeros(len(rows))
    for j in range(X.shape[1]):
        total += (X[rows, j] - point[j]) * (X[rows, j] - point[j])
    return total


def leaving(X):
    """Yield the rows left and a point, again and again, until no record is left."""
    rng = np.random.default_rng(0)
    rows = np.arange(len(X))
    while len(rows):
        point = X[rng.integers(len(X))].copy()
        if rng.random() < 0.3:
            point += rng.normal(size=X.shape[1])
        gone = rng.choice(rows, size=min(len(rows), max(1, len(X) // 50)), replace=False)
        yield rows, point, gone
        rows = np.setdiff1d(rows, gone)


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
def test_tree_finds_what_a_scan_finds(n, d, kind):
    X = data(kind, n, d)
    tree = build(X, np.arange(n))
    distances, found = np.empty(99), np.empty(99, np.intp)
    for turn, (rows, point, gone) in enumerate(leaving(X)):
        expected = scan(X, rows, point)
        k = [1, 2, 7, 99][turn % 4]
        order = np.lexsort((rows, expected))[:k]
        count = nearest(tree, point, k, distances, found)
        assert sorted(found[:count]) == sorted(rows[order])
        assert sorted(distances[:count]) == expected[order].tolist()
        assert found[0] == rows[order[-1]]
        assert farthest(tree, point) == rows[np.argmax(expected)]
        for row in gone:
            remove(tree, row)
    assert nearest(tree, point, 3, distances, found) == 0
    assert farthest(tree, point) == -1


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
def test_the_nearest_one_with_what_is_known_already(n, d, kind):
    X = data(kind, n, d)
    tree = build(X, np.arange(n))
    for rows, point, gone in leaving(X):
        expected = scan(X, rows, point)
        order = np.lexsort((rows, expected))
        first = expected[order[0]], rows[order[0]]
        assert nearest_one(tree, point, NO_ROW, np.inf, NO_ROW, -1.0) == first
        middle = order[len(rows) // 2]  # one that is known
        assert nearest_one(tree, point, NO_ROW, expected[middle], rows[middle], -1.0) == first
        distance, row = nearest_one(tree, point, NO_ROW, np.inf, NO_ROW, expected[middle])
        assert distance <= expected[middle]
        assert distance == expected[rows == row]
        if len(rows) > 1:
            second = expected[order[1]], rows[order[1]]
            assert nearest_one(tree, point, rows[order[0]], np.inf, NO_ROW, -1.0) == second
        for row in gone:
            remove(tree, row)
    assert nearest_one(tree, point, NO_ROW, np.inf, NO_ROW, -1.0) == (np.inf, -1)


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
def test_a_tree_of_some_rows_knows_the_others_not(n, d, kind):
    X = data(kind, n, d)
    rows = np.arange(n)[::3]
    tree = build(X, rows)
    distances, found = np.empty(n), np.empty(n, np.intp)
    assert nearest(tree, X[0], n, distances, found) == len(rows)
    assert sorted(found[: len(rows)]) == rows.tolist()


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
def test_tree_finds_what_a_scan_finds_while_records_move(n, d, kind):
    X = data(kind, n, d)
    tree = build(X, np.arange(n))
    searched = for_thread(tree)  # sees the moves too
    rng = np.random.default_rng(1)
    for rows, point, gone in leaving(X):
        for row in rng.choice(rows, size=min(5, len(rows)), replace=False):
            X[row] = X[rng.integers(n)] + rng.choice([0.0, 1.0, 1e6])
            move(tree, row, X[row])
        expected = scan(X, rows, point)
        first = np.lexsort((rows, expected))[0]
        found = nearest_one(searched, point, NO_ROW, np.inf, NO_ROW, -1.0)
        assert found == (expected[first], rows[first])
        assert farthest(searched, point) == rows[np.argmax(expected)]
        for row in gone:
            remove(tree, row)


def test_threads_search_the_same_tree_without_harm():
    X = data("normal", 4_000, 3)
    tree = build(X, np.arange(len(X)))
    expected = [nearest_one(tree, x, i, np.inf, NO_ROW, -1.0) for i, x in enumerate(X)]

    def search(_):
        mine = for_thread(tree)
        return [nearest_one(mine, x, i, np.inf, NO_ROW, -1.0) for i, x in enumerate(X)]

    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(search, range(4)))


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
def test_shells_find_what_a_scan_finds_from_any_point(n, d, kind):
    X = data(kind, n, d)
    shells = build_shells(X, np.arange(n), X.mean(axis=0))
    distances, found = np.empty(99), np.empty(99, np.intp)
    for turn, (rows, point, gone) in enumerate(leaving(X)):
        expected = scan(X, rows, point)
        k = [1, 2, 7, 99][turn % 4]
        order = np.lexsort((rows, expected))[:k]
        count = nearest_in_shells(shells, point, k, distances, found)
        assert sorted(found[:count]) == sorted(rows[order])
        assert sorted(distances[:count]) == expected[order].tolist()
        assert found[0] == rows[order[-1]]
        assert farthest_in_shells(shells, point)[0] == rows[np.argmax(expected)]
        for row in gone:
            leave(shells, row)
    assert nearest_in_shells(shells, point, 3, distances, found) == 0
    assert nearest_in_shells(shells, point, 0, distances, found) == 0


@pytest.mark.parametrize(("n", "d", "kind"), CASES)
def test_groups_are_the_same_with_a_tree_and_without(n, d, kind, monkeypatch):
    X = data(kind, n, d)
    weights = np.random.default_rng(5).uniform(0.1, 9, n)
    found = []
    for few in (0, n):
        monkeypatch.setattr(outside_in, "FEW_RECORDS", few)
        for k in (1, 2, 5):
            found += [mdav(X, k).labels, mdav(X, k, weights=weights).labels, centroid(X, k).labels]
    half = len(found) // 2
    for one, other in zip(found[:half], found[half:], strict=True):
        assert (one == other).all()


def test_shells_ask_to_be_renewed_when_the_centroid_has_drifted_away():
    X = data("normal", 400, 3)
    shells = build_shells(X, np.arange(400), X.mean(axis=0))
    still = [farthest_in_shells(shells, X.mean(axis=0))[1] for _ in range(100)]
    away = [farthest_in_shells(shells, X.mean(axis=0) + 2)[1] for _ in range(1000)]
    assert not any(still)
    assert any(away)
