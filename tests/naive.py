"""Slow, obvious twins of the kernels; they share no code with them."""

from __future__ import annotations

import itertools
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


def centroid_of(rows, members):
    """The mean of some rows, added up in the order given."""
    sums = [0.0] * len(rows[0])
    for i in members:
        sums = [total + value for total, value in zip(sums, rows[i], strict=True)]
    return [total / len(members) for total in sums]


def gather(rows, left, seed, k):
    """A group of k around its own moving centroid, taken out of ``left``."""
    group = [seed]
    left.remove(seed)
    while len(group) < k:
        centre = centroid_of(rows, group)
        group.append(min(left, key=lambda i: (squared_distance(rows[i], centre), i)))
        left.remove(group[-1])
    return group


def join_nearest(rows, left, groups):
    """Each record left goes to the group whose centroid was nearest before any of them joined."""
    centres = [centroid_of(rows, sorted(group)) for group in groups]
    for i in left:
        nearest = min(range(len(groups)), key=lambda g: squared_distance(rows[i], centres[g]))
        groups[nearest].append(i)
    return groups


def centroid(rows, k):
    """Method C of Laszlo & Mukherjee, groups as lists of row numbers."""
    left = list(range(len(rows)))
    groups = []
    while len(left) >= k:
        columns = zip(*(rows[i] for i in left), strict=True)
        centre = [math.fsum(column) / len(left) for column in columns]
        far = max(left, key=lambda i: (squared_distance(rows[i], centre), -i))
        groups.append(gather(rows, left, far, k))
    return join_nearest(rows, left, groups)


def diameter(rows, k):
    """Method D of Laszlo & Mukherjee, by looking at all pairs in every round."""
    left = list(range(len(rows)))
    groups = []
    while len(left) >= 2 * k:
        pairs = ((a, b) for a in left for b in left if a <= b)
        a, b = max(pairs, key=lambda p: (squared_distance(rows[p[0]], rows[p[1]]), -p[0], -p[1]))
        groups.append(gather(rows, left, a, k))
        if b in left:
            groups.append(gather(rows, left, b, k))
    return [*groups, left] if len(left) >= k else join_nearest(rows, left, groups)


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


def order_by_groups(rows, labels):
    """Steps 1 to 12 of RepOrdMic's Algorithm 1: groups one by one, each by cheapest insertion."""
    n = len(rows)

    def distance(a, b):
        return math.sqrt(squared_distance(rows[a], rows[b]))

    def path(group, first):
        if len(group) == 1:
            return [first]
        last = max((i for i in group if i != first), key=lambda i: (distance(first, i), -i))
        found = [first, last]
        waiting = [i for i in group if i not in found]
        while waiting:
            _, new, after = min(
                ((distance(a, i) + distance(i, b)) - distance(a, b), i, a)
                for i in waiting
                for a, b in itertools.pairwise(found)
            )
            found.insert(found.index(after) + 1, new)
            waiting.remove(new)
        return found

    centre = [math.fsum(column) / n for column in zip(*rows, strict=True)]
    current = max(range(n), key=lambda i: (squared_distance(rows[i], centre), -i))
    order = []
    while True:
        order += path([i for i in range(n) if labels[i] == labels[current]], current)
        left = set(range(n)) - set(order)
        if not left:
            return order
        current = min(left, key=lambda i: (squared_distance(rows[i], rows[order[-1]]), i))


def visit_groups(rows, labels):
    """Rows group by group: next the group whose centroid is nearest to the last record."""
    groups = {}
    for i, label in enumerate(labels):
        groups.setdefault(label, []).append(i)

    def mean(group):
        return [
            math.fsum(column) / len(group) for column in zip(*(rows[i] for i in group), strict=True)
        ]

    centre = mean(range(len(rows)))
    first = max(range(len(rows)), key=lambda i: (squared_distance(rows[i], centre), -i))
    order, point, label = [], rows[first], labels[first]
    while True:
        group = groups.pop(label)
        order += sorted(group, key=lambda i: (squared_distance(rows[i], point), i))
        if not groups:
            return order
        point = mean(group)
        label = min(
            groups, key=lambda g: (squared_distance(mean(groups[g]), rows[order[-1]]), groups[g][0])
        )
