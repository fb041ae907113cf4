"""Slow, obvious twins of the measures of tables with kinds, missing values (None) and weights."""

import itertools
import math
from collections import defaultdict


def mean(values, w):
    return math.fsum(a * b for a, b in zip(values, w, strict=True)) / math.fsum(w)


def variance(values, w):
    """With denominator n − 1 for equal weights."""
    m, middle = len(values), mean(values, w)
    square = mean([(a - middle) ** 2 for a in values], w)
    return square * m / (m - 1) if m > 1 else 0.0


def one_hot(values, of):
    """Vectors of categories; a value that does not occur has a place of its own."""
    places = {value: i for i, value in enumerate(dict.fromkeys(of))}
    width = len(places) + len(set(values) - set(places))
    for value in values:
        places.setdefault(value, len(places))
    return [[float(i == places[value]) for i in range(width)] for value in values]


def squared(a, b):
    return math.fsum((u - v) ** 2 for u, v in zip(a, b, strict=True))


def centroid(vectors, w):
    return [mean(column, w) for column in zip(*vectors, strict=True)]


def shares(before, after, labels, w):
    """SSE/SST by groups and by what was released; None after is blanked. None if nothing varies."""
    centre = centroid(before, w)
    total = math.fsum(b * squared(a, centre) for a, b in zip(before, w, strict=True))
    if total < 1e-12:
        return None
    released = math.fsum(
        b * squared(a, centre if c is None else c) for a, b, c in zip(before, w, after, strict=True)
    )
    groups = defaultdict(list)
    within = 0.0
    for i, label in enumerate(labels):
        if after[i] is None:
            within += w[i] * squared(before[i], centre)
        else:
            groups[label].append(i)
    for rows in groups.values():
        middle = centroid([before[i] for i in rows], [w[i] for i in rows])
        within += math.fsum(w[i] * squared(before[i], middle) for i in rows)
    return within / total, released / total


def loss(kind, x, y, labels, w, *, spike=0.0, prefixes=()):
    """Shares of a column; x and y hold numbers or codes, None where missing."""
    rows = [i for i, value in enumerate(x) if value is not None]
    x, y = [x[i] for i in rows], [y[i] for i in rows]
    labels, w = [labels[i] for i in rows], [w[i] for i in rows]
    if len(x) < 2:
        return None
    if kind in ("number", "date", "ordinal"):
        return shares([[a] for a in x], [None if b is None else [b] for b in y], labels, w)
    if kind == "spiked":
        return shares(*_split(x, y, w, spike), labels, w)
    found = []
    for depth in [*prefixes, None]:

        def cut(code, depth=depth):
            return code if depth is None or code is None else code[:depth]

        vectors = one_hot([cut(a) for a in x] + [cut(b) for b in y if b is not None], map(cut, x))
        after = iter(vectors[len(x) :])
        one = shares(vectors[: len(x)], [None if b is None else next(after) for b in y], labels, w)
        if one is not None:
            found.append(one)
    if not found:
        return None
    return tuple(math.fsum(column) / len(found) for column in zip(*found, strict=True))


def _split(x, y, w, spike):
    off = [i for i, value in enumerate(x) if value != spike]
    if not off or len(off) == len(x):
        return [[a] for a in x], [None if b is None else [b] for b in y]
    middle = mean([x[i] for i in off], [w[i] for i in off])

    def point(value):
        if value is None:
            return None
        return [0.0, 0.0] if value == spike else [middle - spike, value - middle]

    return [point(a) for a in x], [point(b) for b in y]


def there(*columns):
    """Places where no column has None."""
    return [i for i, row in enumerate(zip(*columns, strict=True)) if None not in row]


def correlation(x, y, w):
    a, b = mean(x, w), mean(y, w)
    covariance = mean([(u - a) * (v - b) for u, v in zip(x, y, strict=True)], w)
    spread = math.sqrt(mean([(u - a) ** 2 for u in x], w) * mean([(v - b) ** 2 for v in y], w))
    return covariance / spread if spread > 1e-12 else 0.0


def cramer(x, y, w):
    total = math.fsum(w)
    p, q, cells = defaultdict(float), defaultdict(float), defaultdict(float)
    for a, b, c in zip(x, y, w, strict=True):
        p[a] += c
        q[b] += c
        cells[a, b] += c
    chi = math.fsum(
        (cells[a, b] - p[a] * q[b] / total) ** 2 / (p[a] * q[b] / total)
        for a, b in itertools.product(p, q)
    )
    least = min(len(p), len(q)) - 1
    return math.sqrt(chi / total / least) if least > 0 else 0.0


def mixed_linkage(before, after):
    """Compare each original record's vector with every protected one's."""
    total = 0.0
    for i, row in enumerate(before):
        distances = [math.dist(row, other) for other in after]
        nearest = [d <= min(distances) * (1 + 1e-9) + 1e-12 for d in distances]
        total += nearest[i] / sum(nearest)
    return total / len(before)
