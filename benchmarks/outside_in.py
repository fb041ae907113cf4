"""Diameter, centroid and V-MDAV against plain ones that scan whatever is left, and with each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.algorithms.fixed_size import centroid, diameter, mdav
from microagg.algorithms.result import Outcome
from microagg.algorithms.variable_size.v_mdav import v_mdav
from microagg.base.typing import Floats, Labels
from microagg.encode.scale import fit_scale
from microagg.kernels.labels import canonical_labels
from microagg.kernels.outside_in import join_nearest


@njit(cache=True, nogil=True)
def _distance(X, row, point):
    total = 0.0
    for j in range(point.size):
        total += (X[row, j] - point[j]) * (X[row, j] - point[j])
    return total


@njit(cache=True, nogil=True)
def _first(X, left, m, point, sign):
    """Place and distance of the record nearest (sign 1) to or farthest (−1) from a point."""
    place, least = -1, np.inf
    for a in range(m):
        distance = sign * _distance(X, left[a], point)
        if distance < least:
            place, least = a, distance
    return place, sign * least


@njit(cache=True, nogil=True)
def _take(left, m, place, labels, group):
    """Label the record at a place and close the gap; return how many are left."""
    labels[left[place]] = group
    left[place : m - 1] = left[place + 1 : m].copy()
    return m - 1


@njit(cache=True, nogil=True)
def _gather(X, left, m, place, k, labels, group):
    total = X[left[place]].copy()
    m = _take(left, m, place, labels, group)
    for size in range(1, k):
        place = _first(X, left, m, total / size, 1.0)[0]
        total += X[left[place]]
        m = _take(left, m, place, labels, group)
    return m


@njit(cache=True, nogil=True)
def plain_centroid(X, k):
    n = len(X)
    labels, left = np.full(n, -1), np.arange(n)
    m, group = n, 0
    while m >= k:
        centre = np.zeros(X.shape[1])
        for a in range(m):
            centre += X[left[a]]
        m = _gather(X, left, m, _first(X, left, m, centre / m, -1.0)[0], k, labels, group)
        group += 1
    join_nearest(X, labels, group)
    return labels


@njit(cache=True, nogil=True)
def plain_diameter(X, k):
    """All pairs in every round: cubic time."""
    n = len(X)
    labels, left = np.full(n, -1), np.arange(n)
    m, group = n, 0
    while m >= 2 * k:
        first, second, most = 0, 0, -1.0
        for a in range(m):
            b, distance = _first(X, left, m, X[left[a]], -1.0)
            if distance > most:
                first, second, most = a, left[b], distance
        m = _gather(X, left, m, first, k, labels, group)
        group += 1
        if labels[second] < 0:
            place = np.searchsorted(left[:m], second)
            m = _gather(X, left, m, place, k, labels, group)
            group += 1
    if m >= k:
        labels[left[:m]] = group
    else:
        join_nearest(X, labels, group)
    return labels


@njit(cache=True, nogil=True)
def plain_v_mdav(X, k, gamma):
    """The distance of every record left to the group is kept up to date by scans."""
    n = len(X)
    labels, left, near = np.full(n, -1), np.arange(n), np.empty(n)
    centre = X.sum(axis=0) / n
    m, group = n, 0
    while m >= k:
        members = np.empty(2 * k - 1, np.int64)
        place = _first(X, left, m, centre, -1.0)[0]
        members[0] = left[place]
        m = _take(left, m, place, labels, group)
        for size in range(1, k):
            place = _first(X, left, m, X[members[0]], 1.0)[0]
            members[size] = left[place]
            m = _take(left, m, place, labels, group)
        near[:] = np.inf
        for size in range(k, 2 * k):
            for b in range(0 if size == k else size - 1, size):
                for a in range(m):
                    near[left[a]] = min(near[left[a]], _distance(X, left[a], X[members[b]]))
            if size == 2 * k - 1 or m == 0:
                break
            place = np.argmin(near[left[:m]])
            row = left[place]
            rest = np.concatenate((left[:place], left[place + 1 : m]))
            if not near[row] < gamma * _first(X, rest, m - 1, X[row], 1.0)[1]:
                break
            members[size] = row
            m = _take(left, m, place, labels, group)
        group += 1
    known = np.flatnonzero(labels >= 0)
    homes = labels.copy()
    for a in range(m):
        homes[left[a]] = labels[known[_first(X, known, known.size, X[left[a]], 1.0)[0]]]
    return homes


def data(kind: str, n: int, d: int) -> Floats:
    """Normal data, or clusters of 10 to 100 records with the sigma named."""
    if kind == "normal":
        X = np.random.default_rng(0).normal(size=(n, d))
    else:
        X, _ = microagg.simulate_clusters(n // 55, d, sigma=float(kind))
    return fit_scale(X).apply(X)


METHODS: dict[str, tuple[Callable[..., Outcome], Callable[..., Labels], int]] = {
    "diameter": (diameter, plain_diameter, 2_000),
    "centroid": (centroid, plain_centroid, 20_000),
    "v-mdav, gamma 0.2": (
        lambda X, k: v_mdav(X, k, gamma=0.2),
        lambda X, k: plain_v_mdav(X, k, 0.2),
        20_000,
    ),
    "v-mdav, gamma 1.1": (
        lambda X, k: v_mdav(X, k, gamma=1.1),
        lambda X, k: plain_v_mdav(X, k, 1.1),
        20_000,
    ),
}


def against_plain() -> None:
    rows = []
    for name, (own, plain, n) in METHODS.items():
        for d, k in [(4, 3), (10, 3), (10, 10)]:
            small, X = data("normal", 200, d), data("normal", n, d)
            assert np.array_equal(
                canonical_labels(own(small, k).labels), canonical_labels(plain(small, k))
            )
            a, b = best_in_turns(
                lambda own=own, X=X, k=k: own(X, k),
                lambda plain=plain, X=X, k=k: plain(X, k),
                rounds=1,
            )
            rows.append([name, f"{n:,}", d, k, a, b, b / a])
    show(
        "normal data, same groups as plain scans (numba, one core)",
        ["method", "records", "d", "k", "seconds", "plain seconds", "times faster"],
        rows,
    )


def against_each_other() -> None:
    rows = []
    for kind in ("normal", "0.01", "0.1", "0.3"):
        X = data(kind, 11_000, 10)
        for k in (3, 4, 10):
            d, c, m, *v = best_in_turns(
                lambda X=X, k=k: diameter(X, k),
                lambda X=X, k=k: centroid(X, k),
                lambda X=X, k=k: mdav(X, k),
                *(lambda X=X, k=k, g=g: v_mdav(X, k, gamma=g) for g in (0.2, 1.1, 5)),
                rounds=3,
            )
            name = kind if kind == "normal" else f"clusters, sigma {kind}"
            rows.append([name, k, d, c, d / c, m, *(seconds / m for seconds in v)])
    show(
        "about 11,000 records, 10 columns: diameter over centroid, v-mdav over mdav",
        ["data", "k", "diameter s", "centroid s", "ratio", "mdav s", "γ 0.2", "γ 1.1", "γ 5"],
        rows,
    )


def growth() -> None:
    sizes = [10_000, 20_000, 50_000, 100_000]
    rows = []
    for name, (own, _, _) in METHODS.items():
        for d in (2, 4, 10):
            seconds = []
            for n in sizes:
                X = data("normal", n, d)
                seconds += best_in_turns(lambda own=own, X=X: own(X, 3), rounds=1)
            rows.append([name, d, *seconds, f"n^{growth_exponent(sizes, seconds):.2f}"])
    show("growth, normal data, k = 3", ["method", "d", *(f"{n:,}" for n in sizes), "growth"], rows)


def main() -> None:
    against_plain()
    against_each_other()
    growth()


if __name__ == "__main__":
    main()
