"""Slow, obvious twins of the kernels; they share no code with them."""

import itertools
import math


def squared_distance(a, b):
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += (x - y) * (x - y)
    return total


def mdav(rows, k, weights=None):
    """MDAV on a list of lists, groups as lists of row numbers; weights move the centroid alone."""
    left = list(range(len(rows)))
    groups = []

    def centroid():
        heavy = [1.0 if weights is None else weights[i] for i in left]
        columns = zip(*(rows[i] for i in left), strict=True)
        return [
            math.fsum(w * value for w, value in zip(heavy, column, strict=True)) / math.fsum(heavy)
            for column in columns
        ]

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
    centres = [centroid_of(rows, cluster) for cluster in clusters]
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
        centres = [centroid_of(rows, cluster) if cluster else None for cluster in clusters]
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
    origin = [0] * len(rows[0])
    squares = [[squared_distance(one, other) for other in rows] for one in rows]
    outside = [squared_distance(row, origin) for row in rows]

    def step(tree):
        (root,) = [i for i in tree if i not in points_to]
        length, target = min((squares[root][i], i) for i in range(len(rows)) if i not in tree)
        return length, -outside[root], root, target

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

    for i in sorted(points_to, key=lambda i: (-squares[i][points_to[i]], i)):
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
    centroid = {branch: centroid_of(rows, sorted(branch)) for branch in branches}
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


def least_cost(n, k, cost):
    """Least sum of costs of all partitions of up to a dozen rows into groups of at least k.

    ``cost`` takes the numbers of the rows of a group.
    """
    masks = (mask for mask in range(1, 1 << n) if mask.bit_count() >= k)
    costs = {mask: cost([i for i in range(n) if mask >> i & 1]) for mask in masks}
    best = {0: 0}  # of each set of rows, by its group with the first of them
    for mask in range(1, 1 << n):
        first, others = mask & -mask, mask & (mask - 1)
        options, chosen = [], others
        while True:  # all subsets of the others
            group = first | chosen
            if group in costs and mask ^ group in best:
                options.append(costs[group] + best[mask ^ group])
            if chosen == 0:
                break
            chosen = (chosen - 1) & others
        if options:
            best[mask] = min(options)
    return best[(1 << n) - 1]


def sse_of(rows):
    """Squared distances of some rows to their mean."""
    means = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return math.fsum(squared_distance(row, means) for row in rows)


def least_sse(rows, k):
    """Least SSE of all partitions into groups of at least k."""

    return least_cost(len(rows), k, lambda members: sse_of([rows[i] for i in members]))


def groups_below(rows, k, duals, cuts, limit):
    """Groups of k to 2k−1 rows whose SSE, less their duals, with penalties, is below a limit.

    A cut (set, need, penalty) is paid by groups that hold at least ``need`` records of the set.
    """
    found = {}
    for size in range(k, 2 * k):
        for group in itertools.combinations(range(len(rows)), size):
            reduced = sse_of([rows[i] for i in group]) - math.fsum(duals[i] for i in group)
            for held, need, penalty in cuts:
                if len(set(group) & set(held)) >= need:
                    reduced += penalty
            if reduced < limit:
                found[group] = reduced
    return found


def least_of_runs(n, k, cost):
    """Least sum of costs of all ways to cut n places into runs of k or more, and where the runs start.

    ``cost`` takes the first place of a run and the place behind its last.
    """
    best = {0: (0, [])}
    for end in range(k, n + 1):
        options = [
            (best[start][0] + cost(start, end), start)
            for start in range(end - k + 1)
            if start in best
        ]
        if options:
            total, start = min(options)
            best[end] = total, [*best[start][1], start]
    return best[n]


def best_cut(rows, k):
    """Starts of the runs of the best cut of rows in their order; runs of any length from k on."""
    return least_of_runs(len(rows), k, lambda start, end: sse_of(rows[start:end]))[1]


def first_of_order(rows):
    """Row farthest from the centroid, the lowest of those that are equal but for rounding."""
    centre = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    out = [squared_distance(row, centre) for row in rows]
    return next(i for i in range(len(rows)) if out[i] >= max(out) * (1 - 1e-12))


def npn(rows):
    """Row numbers from the one farthest from the centroid on, always to the nearest unseen."""
    current = first_of_order(rows)
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

    current = first_of_order(rows)
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

    first = first_of_order(rows)
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


def imhm(rows, k):
    """The order of the last of many visits, each of the groups that the cut of the one before has found."""
    n = len(rows)
    labels = labels_of(mdav(rows, k), n)
    losses = [math.inf]
    while True:
        order = visit_groups(rows, labels)
        starts = best_cut([rows[i] for i in order], k)
        runs = [order[a:b] for a, b in itertools.pairwise([*starts, n])]
        labels = labels_of(runs, n)
        means = [centroid_of(rows, run) for run in runs]
        losses.append(math.fsum(squared_distance(rows[i], means[labels[i]]) for i in range(n)))
        falls = losses[-1] < losses[-2] * (1 - 1e-7)
        if not falls or (len(losses) > 10 and losses[-1] >= losses[-11] * 0.999):
            return order


def k_ward(rows, k):
    """k-Ward by looking at all pairs of groups in every step, groups as lists of row numbers."""

    def split(members):
        if len(members) < 2 * k:
            return [members]
        pairs = itertools.combinations(members, 2)
        ends = max(pairs, key=lambda p: (squared_distance(rows[p[0]], rows[p[1]]), -p[0], -p[1]))
        left = [i for i in members if i not in ends]
        groups = []
        for end in ends:
            left.sort(key=lambda i: (squared_distance(rows[i], rows[end]), i))
            groups.append([end, *left[: k - 1]])
            left = left[k - 1 :]
        groups += [[i] for i in left]
        while any(len(group) < k for group in groups):
            a, b = min(
                (p for p in itertools.combinations(groups, 2) if min(map(len, p)) < k), key=raise_of
            )
            groups = [group for group in groups if group not in (a, b)] + [a + b]
        return [part for group in groups for part in split(sorted(group))]

    def raise_of(pair):
        a, b = pair
        factor = len(a) * len(b) / (len(a) + len(b))
        return factor * squared_distance(centroid_of(rows, a), centroid_of(rows, b))

    return split(list(range(len(rows))))
