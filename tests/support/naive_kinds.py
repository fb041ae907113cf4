"""Naive twins of encoding and release: squared distances and best values by definition, in fractions."""

from fractions import Fraction


def squared(kind, values, spike=0, ancestors=None):
    """Squared distances before scaling, as a function of two values of a column."""
    if kind in ("boolean", "nominal"):
        return lambda a, b: Fraction(2 * (a != b))
    if kind == "hierarchy":
        depths = distinct_depths([ancestors(value) for value in sorted(set(values))])
        place = {value: at for at, value in enumerate(sorted(set(values)))}
        shares = []
        for depth in depths:
            names = [depth[place[value]] for value in values]
            counts = [names.count(name) for name in set(names)]
            shares.append(1 - sum(Fraction(count, len(names)) ** 2 for count in counts))
        return lambda a, b: sum(
            (
                2 * (depth[place[a]] != depth[place[b]]) / gini
                for depth, gini in zip(depths, shares, strict=True)
                if gini
            ),
            Fraction(0),
        )
    if kind == "spiked":
        off = [Fraction(value) for value in values if value != spike]
        if off and len(off) < len(values):
            mean = sum(off) / len(off)

            def point(value):
                return (0, 0) if value == spike else (mean - spike, Fraction(value) - mean)

            return lambda a, b: sum((x - y) ** 2 for x, y in zip(point(a), point(b), strict=True))
    return lambda a, b: (Fraction(a) - Fraction(b)) ** 2


def distinct_depths(chains):
    """Depths of a hierarchy at which something differs that did not differ before."""
    found = []
    for names in zip(*chains, strict=True):
        groups = [names.index(name) for name in names]
        if len(set(names)) > 1 and groups not in [[d.index(n) for n in d] for d in found[-1:]]:
            found.append(names)
    return found


def inertia(values, distance, weights=None):
    """Sum of squares about the mean, from the distances of all pairs."""
    w = [Fraction(1)] * len(values) if weights is None else [Fraction(x) for x in weights]
    total = sum(
        w[i] * w[j] * distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values)
    )
    return total / 2 / sum(w)


def scaled_distances(kind, values, weights=None, importance=1, **more):
    """Squared distances of all pairs, scaled to an inertia of importance·(n − 1)."""
    distance = squared(kind, values, **more)
    total = inertia(values, distance, weights)
    factor = importance * (len(values) - 1) / total if total else 0
    return [[float(distance(a, b) * factor) for b in values] for a in values]


def nearest_value(kind, group, values, **more):
    """Value that occurs in the column and is nearest to a group; ties by frequency, then order."""
    distance = squared(kind, values, **more)
    return min(
        sorted(set(values)),
        key=lambda value: (
            sum(distance(value, member) for member in group),
            -values.count(value),
            value,
        ),
    )


def mean(group):
    """Exact mean."""
    return sum(Fraction(value) for value in group) / len(group)
