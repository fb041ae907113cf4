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


def v_mdav(rows, k, gamma):
    """V-MDAV on a list of lists, by looking at all records in every step."""
    left = list(range(len(rows)))
    groups = []
    centre = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]

    def distance(i, j):
        return squared_distance(rows[i], rows[j])

    while len(left) >= k:
        seed = max(left, key=lambda i: (squared_distance(rows[i], centre), -i))
        left.remove(seed)
        group = [seed, *sorted(left, key=lambda i: (distance(i, seed), i))[: k - 1]]
        left = [i for i in left if i not in group]
        while len(group) < 2 * k - 1 and left:
            inside, new = min((distance(i, member), i) for i in left for member in group)
            outside = min((distance(i, new) for i in left if i != new), default=math.inf)
            if gamma == 0 or inside >= gamma * outside:
                break
            group.append(new)
            left.remove(new)
        groups.append(group)
    homes = [
        min((distance(i, j), j, g) for g, group in enumerate(groups) for j in group) for i in left
    ]
    for i, (_, _, g) in zip(left, homes, strict=True):
        groups[g].append(i)
    return groups


def spanning_edges(rows):
    """Kruskal's minimum spanning tree over all pairs, as (length, lower row, higher row)."""
    n = len(rows)
    pairs = sorted(
        (math.sqrt(squared_distance(rows[a], rows[b])), a, b)
        for a in range(n)
        for b in range(a + 1, n)
    )
    tree_of = list(range(n))
    edges = []
    for length, a, b in pairs:
        if tree_of[a] != tree_of[b]:
            edges.append((length, a, b))
            old, new = tree_of[a], tree_of[b]
            tree_of = [new if tree == old else tree for tree in tree_of]
    return edges


def cut_edges(edges, n, k):
    """The cutting of Laszlo & Mukherjee: parents, descendant counts and walks to the root."""
    parent, order = {0: None}, [0]
    for u in order:
        for _, a, b in edges:
            if u in (a, b) and (a + b - u) not in parent:
                parent[a + b - u] = u
                order.append(a + b - u)
    count = dict.fromkeys(order, 1)
    for u in reversed(order[1:]):
        count[parent[u]] += count[u]

    def root(u):
        while parent[u] is not None:
            u = parent[u]
        return u

    for _, a, b in sorted(edges, key=lambda e: (-e[0], e[1], e[2])):
        org, dest = (a, b) if parent[a] == b else (b, a)
        if count[org] >= k and count[root(dest)] - count[org] >= k:
            parent[org] = None
            u = dest
            while u is not None:
                count[u] -= count[org]
                u = parent[u]
    groups = {}
    for u in range(n):
        groups.setdefault(root(u), []).append(u)
    return list(groups.values())


def mst(rows, k, split=None):
    """M of Laszlo & Mukherjee; with ``split`` (diameter or centroid) M-d or M-c."""
    groups = cut_edges(spanning_edges(rows), len(rows), k)
    if split is None:
        return groups
    small = [group for group in groups if len(group) < 2 * k]
    for group in groups:
        if len(group) >= 2 * k:
            parts = split([rows[i] for i in group], k)
            small += [[group[i] for i in part] for part in parts]
    return small


def labels_of(groups, n):
    labels = [-1] * n
    for g, group in enumerate(groups):
        for i in group:
            labels[i] = g
    return labels
