"""Slow oracles in exact integers; they share no code with the package."""

import math
from fractions import Fraction

COSTS = ("sse", "sae", "max", "round-up", "round-down")


def as_integers(x) -> list[int]:
    """The values times a common power of two, as Python's integers."""
    ratios = [float(v).as_integer_ratio() for v in x]
    unit = max(q for _, q in ratios)
    return [p * (unit // q) for p, q in ratios]


class Groups:
    """Costs of contiguous groups of sorted values, times a number common to all."""

    def __init__(self, x, largest, cost):
        self.v = as_integers(x)
        self.cost = cost
        # All sizes divide this, so that the sse of a group becomes an integer, too.
        self.scale = math.lcm(*range(1, largest + 1))
        # What the costs are multiples of: values or squares, and of ranges half of them.
        unit = max(float(v).as_integer_ratio()[1] for v in x)
        self.unit = {"sse": unit * unit * self.scale, "max": 2 * unit}.get(cost, unit)
        self.part = [0] + [self.scale // s for s in range(1, largest + 1)]
        self.sums, self.squares = [0], [0]
        for v in self.v:
            self.sums.append(self.sums[-1] + v)
            self.squares.append(self.squares[-1] + v * v)

    def __call__(self, i, j):
        total, size, cost = self.sums[j] - self.sums[i], j - i, self.cost
        if cost == "sse":
            squares = self.squares[j] - self.squares[i]
            return self.scale * squares - total * total * self.part[size]
        if cost == "sae":
            half = size // 2
            upper = self.sums[j] - self.sums[j - half]
            return upper - (self.sums[i + half] - self.sums[i])
        if cost == "max":
            return self.v[j - 1] - self.v[i]
        if cost == "round-up":
            return size * self.v[j - 1] - total
        return total - size * self.v[i]

    def of(self, ends):
        """Cost of a partition given by the ends of its groups."""
        starts = [0, *ends[:-1]]
        return sum(self(int(i), int(j)) for i, j in zip(starts, ends, strict=True))


def best_ends(x, k, cost, price=0):
    """Ends of the best groups of at least k, each at a price; of equal ones, the largest last group."""
    n = len(x)
    most = n if price else min(2 * k - 1, n)  # larger groups only pay where each has a price
    group = Groups(x, most, cost)
    each = Fraction(price) * group.unit
    f, back = [0] + [None] * n, [0] * (n + 1)
    for j in range(k, n + 1):
        for i in range(max(0, j - most), j - k + 1):
            if f[i] is not None:
                total = f[i] + each.denominator * group(i, j) + each.numerator
                if f[j] is None or total < f[j]:
                    f[j], back[j] = total, i
    ends, j = [], n
    while j > 0:
        ends.append(j)
        j = back[j]
    return ends[::-1]
