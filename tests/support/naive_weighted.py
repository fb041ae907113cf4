"""Slow, obvious twins of what is done with weights, in rational numbers; they share no code with it."""

import math
from fractions import Fraction

from naive import least_cost, least_of_runs


def exactly(numbers):
    """Doubles as rational numbers."""
    return [Fraction(float(number)) for number in numbers]


def mean(values, weights):
    """Weighted mean of rational numbers."""
    return sum(w * v for v, w in zip(values, weights, strict=True)) / sum(weights)


def group_sse(rows, weights):
    """Weighted squared distances of some rows to their weighted mean."""
    total = Fraction(0)
    for column in zip(*rows, strict=True):
        centre = mean(column, weights)
        total += sum(w * (v - centre) ** 2 for v, w in zip(column, weights, strict=True))
    return total


def sse(rows, weights, labels):
    """The same over all groups of some labels, as a rational number."""
    rows, weights = [exactly(row) for row in rows], exactly(weights)
    total = Fraction(0)
    for g in set(labels):
        members = [i for i, label in enumerate(labels) if label == g]
        total += group_sse([rows[i] for i in members], [weights[i] for i in members])
    return total


def of_mean_one(weights):
    """Weights in units of their mean."""
    weights = exactly(weights)
    return [w * len(weights) / sum(weights) for w in weights]


def zscored(rows, weights):
    """Columns less their weighted means, with weighted squares that sum to n − 1."""
    weights, columns = of_mean_one(weights), []
    for column in zip(*rows, strict=True):
        values = exactly(column)
        centre = mean(values, weights)
        squares = sum(w * (v - centre) ** 2 for v, w in zip(values, weights, strict=True))
        unit = math.sqrt(squares / (len(values) - 1)) if squares else math.inf
        columns.append([float(v - centre) / unit for v in values])
    return [list(row) for row in zip(*columns, strict=True)]


def least_sse(rows, weights, k):
    """Least weighted SSE of all partitions into groups of at least k, by trying each; for few rows."""
    rows, weights = [exactly(row) for row in rows], exactly(weights)
    return least_cost(
        len(rows), k, lambda group: group_sse([rows[i] for i in group], [weights[i] for i in group])
    )


def least_sse_of_runs(values, weights, k):
    """Least weighted SSE of one column in groups of at least k that are runs of its sorted values."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    rows = [[value] for value in exactly(values[i] for i in order)]
    weights = exactly(weights[i] for i in order)
    return least_of_runs(
        len(rows), k, lambda start, end: group_sse(rows[start:end], weights[start:end])
    )[0]
