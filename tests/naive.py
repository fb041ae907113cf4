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
