"""Slow, obvious twins of the measures, on lists of rows; they share no code with them."""

import math
import statistics
from collections import Counter

from naive_mixed import correlation


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def sd(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def members(protected):
    groups = {}
    for i, row in enumerate(protected):
        groups.setdefault(tuple(row), []).append(i)
    return list(groups.values())


def diversity(protected, secret):
    """Distinct l, entropy l of each class of equal rows."""
    distinct, entropy = [], []
    for rows in members(protected):
        counts = Counter(secret[i] for i in rows)
        distinct.append(len(counts))
        shares = [count / len(rows) for count in counts.values()]
        entropy.append(math.exp(-sum(p * math.log(p) for p in shares)))
    return distinct, entropy


def known_linkage(original, protected, known):
    """Compare every original record with the protected ones of equal known values, one by one."""
    units = [sd(column) or math.inf for column in columns(original)]
    total = 0.0
    for i, row in enumerate(original):
        distances = {
            j: math.dist([a / s for a, s in zip(row, units, strict=True)],
                         [b / s for b, s in zip(other, units, strict=True)])
            for j, other in enumerate(protected)
            if known[j] == known[i]
        }  # fmt: skip
        nearest = [j for j, d in distances.items() if d <= min(distances.values()) * (1 + 1e-9)]
        total += (i in nearest) / len(nearest)
    return total / len(original)


def class_sizes(protected, *known):
    """Records in the class of each record."""
    keys = [(tuple(row), *values) for row, *values in zip(protected, *known, strict=True)]
    counts = Counter(keys)
    return [counts[key] for key in keys]


def below(protected, k, *known):
    """Share of records in classes of fewer than k."""
    return sum(size < k for size in class_sizes(protected, *known)) / len(protected)


def homogeneous(labels, values, k):
    """Share of groups with one value, and with fewer than k distinct ones; None is never equal."""
    distinct = []
    for group in set(labels):
        held = [v for label, v in zip(labels, values, strict=True) if label == group]
        distinct.append(len(set(held) - {None}) + held.count(None))
    return sum(d == 1 for d in distinct) / len(distinct), sum(d < k for d in distinct) / len(
        distinct
    )


def rank_correlation(x, y):
    """Spearman's, from mean ranks, where x is there."""
    rows = [(a, b) for a, b in zip(x, y, strict=True) if a is not None]

    def mean_ranks(values):
        return [
            sum(v < value for v in values) + sum(v == value for v in values) / 2 for value in values
        ]

    ranks = [mean_ranks(values) for values in zip(*rows, strict=True)]
    return correlation(*ranks, [1.0] * len(rows))


def in_another_cell(original, released):
    """Share of the records in another cell of the table of all columns; rows need not correspond."""
    before, after = Counter(map(tuple, original)), Counter(map(tuple, released))
    n, m = before.total(), after.total()
    return sum(abs(before[cell] / n - after[cell] / m) for cell in before | after) / 2
