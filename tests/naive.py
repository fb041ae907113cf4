"""Slow, obvious twins of the kernels; they share no code with them."""

from __future__ import annotations

import math


def squared_distance(a, b):
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += (x - y) * (x - y)
    return total


def mdav(rows, k):
    """MDAV on a list of lists, groups as lists of row numbers."""
    left = list(range(len(rows)))
    groups = []

    def centroid():
        columns = zip(*(rows[i] for i in left), strict=True)
        return [math.fsum(column) / len(left) for column in columns]

    def farthest(point, among):
        return max(among, key=lambda i: (squared_distance(rows[i], point), -i))

    def gather(seed):
        others = sorted(
            (i for i in left if i != seed),
            key=lambda i: (squared_distance(rows[i], rows[seed]), i),
        )
        group = [seed, *others[: k - 1]]
        groups.append(group)
        for i in group:
            left.remove(i)

    while len(left) >= 3 * k:
        r = farthest(centroid(), left)
        s = farthest(rows[r], left)
        gather(r)
        if s not in left:
            s = farthest(rows[r], left)
        gather(s)
    if len(left) >= 2 * k:
        gather(farthest(centroid(), left))
    groups.append(left)
    return groups


def labels_of(groups, n):
    labels = [-1] * n
    for g, group in enumerate(groups):
        for i in group:
            labels[i] = g
    return labels


def best_cut(rows, k):
    """Starts of the runs of the best cut of rows in their order; runs of any length from k on."""

    def cost(run):
        means = [math.fsum(column) / len(run) for column in zip(*run, strict=True)]
        return math.fsum(squared_distance(row, means) for row in run)

    best = {0: (0.0, [])}
    for end in range(1, len(rows) + 1):
        options = [
            (best[start][0] + cost(rows[start:end]), start)
            for start in range(end - k + 1)
            if start in best
        ]
        if options:
            total, start = min(options)
            best[end] = total, [*best[start][1], start]
    return best[len(rows)][1]


def npn(rows):
    """Row numbers from the one farthest from the centroid on, always to the nearest unseen."""
    centre = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    current = max(range(len(rows)), key=lambda i: (squared_distance(rows[i], centre), -i))
    order, left = [], set(range(len(rows)))
    while True:
        order.append(current)
        left.remove(current)
        if not left:
            return order
        current = min(left, key=lambda i: (squared_distance(rows[i], rows[order[-1]]), i))
