"""Slow, obvious twins of the requirements and of the search; they share no code with them."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
from scipy.special import hyp2f1

from naive import least_cost
from oracles import squares_within


def distinct(codes, least, rows):
    return max(0.0, (least - len({codes[i] for i in rows})) / least)


def entropy(codes, least, rows):
    if least == 1:
        return 0.0
    counts = Counter(codes[i] for i in rows)
    H = -math.fsum(c / len(rows) * math.log(c / len(rows)) for c in counts.values())
    return max(0.0, 1 - H / math.log(least))


def transport(p, q, ordered):
    """Earth mover's distance, by carrying earth from the left to the right, or all that is too much."""
    if not ordered:
        return float(sum(max(p.get(v, 0) - q[v], Fraction(0)) for v in q))
    values = sorted(q)
    if len(values) == 1:
        return 0.0
    carried = work = Fraction(0)
    for value in values:
        carried += p.get(value, 0) - q[value]
        work += abs(carried)
    return float(work / (len(values) - 1))


def shares(values):
    return {v: Fraction(c, len(values)) for v, c in Counter(values).items()}


def closeness(codes, most, ordered, rows):
    far = transport(shares([codes[i] for i in rows]), shares(list(codes)), ordered)
    return max(0.0, far - most)


def hidden(values, percent, is_number, rows):
    """Share of the rows whose value the others give away; a missing one is None."""
    is_number = is_number and len(set(values)) >= 13
    times = Counter(values)
    group, given = [values[i] for i in rows], 0
    for x in group:
        if times[x] * 10 > len(values) if is_number else times[x] * 2 >= len(values):
            continue
        if not is_number or x is None or None in group or len(set(group)) == 1:
            given += len(set(group)) == 1
            continue
        reach = Fraction(str(percent)) / 100 * abs(Fraction(x))

        def near(y, x=x, reach=reach):
            return y is not None and abs(Fraction(y) - Fraction(x)) <= reach

        given += all(map(near, group)) and sum(map(near, values)) * 2 < len(values)
    return given / len(rows)


def contributions(amounts, units, rows):
    sums = {}
    for i in rows:
        key = i if units is None else units[i]
        sums[key] = sums.get(key, Fraction(0)) + Fraction(float(amounts[i]))
    return sorted(sums.values(), reverse=True)


def p_percent_margin(amounts, p, units, rows):
    """What is missing to the rule, as a share of p % of the largest; negative when it holds."""
    x = contributions(amounts, units, rows)
    if not x or x[0] == 0:
        return 0.0
    return float(1 - sum(x[2:]) / (Fraction(float(p)) / 100 * x[0]))


def largest_share_margin(amounts, count, percent, units, rows):
    x = contributions(amounts, units, rows)
    total = sum(x)
    return float(sum(x[:count]) / total - Fraction(float(percent)) / 100) if total else 0.0


def exact_risk(size, population):
    """Posterior mean of 1/F, by the hypergeometric function."""
    p = min(size / population, 1.0)
    return float(p**size / size * hyp2f1(size, size, size + 1, 1 - p))


def best_partition(X, k, requirements, weights=None):
    """Least SSE of all partitions whose groups have k records and satisfy everything."""

    def cost(group):
        fits = all(requirement.violation(group) == 0 for requirement in requirements)
        own = None if weights is None else weights[group]
        return squares_within(X[group], np.zeros(len(group)), own) if fits else math.inf

    return least_cost(len(X), k, cost)
