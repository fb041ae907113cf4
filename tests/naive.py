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


def mean_of(rows, members):
    total = [0.0] * len(rows[0])
    for i in members:
        total = [a + b for a, b in zip(total, rows[i], strict=True)]
    return [a / len(members) for a in total]


def kmeans_merge(rows, k, factor):
    """k-means from the cells of a k-d tree, then merging, smallest group first."""

    def cells(members, count):
        if count == 1:
            return [sorted(members)]
        columns = list(zip(*(rows[i] for i in members), strict=True))
        widths = [max(column) - min(column) for column in columns]
        j = widths.index(max(widths))
        members = sorted(members, key=lambda i: (rows[i][j], i))
        half = count // 2
        middle = len(members) * half // count
        return cells(members[:middle], half) + cells(members[middle:], count - half)

    count = max(1, min(len(rows), int(factor * len(rows) / k)))
    clusters = cells(list(range(len(rows))), count)
    order = [i for cluster in clusters for i in cluster]
    centres = [mean_of(rows, cluster) for cluster in clusters]
    while True:
        new = [[] for _ in clusters]
        for i in order:
            distances = [
                squared_distance(rows[i], centre) if centre else math.inf for centre in centres
            ]
            new[distances.index(min(distances))].append(i)
        if new == clusters:
            break
        clusters = new
        centres = [mean_of(rows, cluster) if cluster else None for cluster in clusters]
    groups = {c: (clusters[c], centres[c]) for c in range(count) if clusters[c]}
    while True:
        size, a = min((len(groups[c][0]), c) for c in groups)
        if size >= k:
            return [members for members, _ in groups.values()]
        members, centre = groups.pop(a)
        _, b = min((squared_distance(groups[c][1], centre), c) for c in groups)
        m, n = len(members), len(groups[b][0])
        merged = [(m * x + n * y) / (m + n) for x, y in zip(centre, groups[b][1], strict=True)]
        groups[b] = (groups[b][0] + members, merged)


def mu_approx(rows, k):
    """mu-Approx: a forest of nearest neighbours, cut at its longest edges."""
    trees = [[i] for i in range(len(rows))]
    points_to = {}

    def step(tree):
        (root,) = [i for i in tree if i not in points_to]
        others = [i for i in range(len(rows)) if i not in tree]
        length, target = min((squared_distance(rows[root], rows[i]), i) for i in others)
        outside = squared_distance(rows[root], [0] * len(rows[root]))
        return length, -outside, root, target

    while min(len(tree) for tree in trees) < k:
        _, _, root, target = min(step(tree) for tree in trees if len(tree) < k)
        points_to[root] = target
        pair = [tree for tree in trees if root in tree or target in tree]
        trees = [tree for tree in trees if tree not in pair] + [pair[0] + pair[1]]

    edges = {frozenset(edge) for edge in points_to.items()}

    def reached(start, edges):
        seen, todo = {start}, [start]
        while todo:
            i = todo.pop()
            for edge in edges:
                if i in edge and not edge <= seen:
                    (other,) = edge - {i}
                    seen.add(other)
                    todo.append(other)
        return seen

    for i in sorted(points_to, key=lambda i: (-squared_distance(rows[i], rows[points_to[i]]), i)):
        without = edges - {frozenset((i, points_to[i]))}
        if min(len(reached(i, without)), len(reached(points_to[i], without))) >= k:
            edges = without
    groups = []
    left = set(range(len(rows)))
    while left:
        tree = reached(min(left), edges)
        left -= tree
        groups += [tree] if len(tree) < 2 * k else _branches(rows, k, tree, edges, reached)
    return [sorted(group) for group in groups]


def _branches(rows, k, tree, edges, reached):
    for hub in tree:
        without = {edge for edge in edges if hub not in edge}
        branches = {frozenset(reached(i, without)) for i in tree}
        if max(len(branch) for branch in branches) < k:
            break
    centroid = {branch: mean_of(rows, sorted(branch)) for branch in branches}
    left = sorted(branches, key=lambda b: (-squared_distance(centroid[b], rows[hub]), min(b)))
    groups = []
    while left:
        group, centre = set(), None
        while left and (len(group) < k or sum(map(len, left)) < k):
            window = [b for a, b in enumerate(left) if sum(map(len, left[:a])) < 4 * k]
            near = window if group else window[:1]
            b = min(near, key=lambda b: squared_distance(centroid[b], centre) if centre else 0)
            m, n = len(b), len(group)
            centre = [
                (m * x + n * y) / (m + n)
                for x, y in zip(centroid[b], centre or centroid[b], strict=True)
            ]
            left.remove(b)
            group |= b
        groups.append(group)
    return groups


def labels_of(groups, n):
    labels = [-1] * n
    for g, group in enumerate(groups):
        for i in group:
            labels[i] = g
    return labels
