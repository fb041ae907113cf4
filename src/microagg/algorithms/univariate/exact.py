"""Exact arithmetic on groups of sorted values: doubled precision, residues, rationals.

Doubled precision (a number as the sum of two doubles, about 106 bits) distinguishes costs that
plain doubles cannot. Whether two costs are equal it cannot say; their residues
modulo the prime 2^61 − 1 can. A double is m·2^e, 2 has an inverse modulo that prime, and
2^61 ≡ 1, so that the residue of a double is its mantissa rotated by e bits, and sums, squares
and quotients of exact numbers become those of residues. Different residues prove different costs;
equal residues of different costs have a chance of 2^-61. What is different yet too close for
doubled precision is computed with Python's integers, which happens often only on evenly spaced values.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.doubled_sums import two_product, two_sum

SSE, SAE, MAX, ROUND_UP, ROUND_DOWN = range(5)

PRIME = np.uint64(2**61 - 1)
_NEAR = 50  # groups up to which partitions are followed back each time
_LOW31, _LOW30 = np.uint64(2**31 - 1), np.uint64(2**30 - 1)
_U0, _U1, _U30, _U31, _U61 = (np.uint64(v) for v in (0, 1, 30, 31, 61))


@lean_subkernel
def add(a, b, c, d):
    """Sum of two numbers in doubled precision."""
    s, e = two_sum(a, c)
    t, u = two_sum(b, d)
    s, e = two_sum(s, e + t)
    return two_sum(s, e + u)


@lean_subkernel
def times(a, b, c, d):
    """Product of two numbers in doubled precision."""
    p, e = two_product(a, c)
    return two_sum(p, e + (a * d + b * c))


@lean_subkernel
def divided(a, b, s):
    """Divide: (a + b)/s for a double s, in doubled precision."""
    q = a / s
    p, e = two_product(q, s)
    r, u = two_sum(a, -p)
    return two_sum(q, (r + (u - e + b)) / s)


@lean_subkernel
def doubled_cost(x, cost, i, j):
    """Cost of the group x[i..j−1] in doubled precision, around its own middle value.

    A run of equal values counts as one term.
    """
    if cost == MAX:
        return two_sum(x[j - 1], -x[i])
    base = x[(i + j) // 2]
    if cost == ROUND_UP:
        base = x[j - 1]
    elif cost == ROUND_DOWN:
        base = x[i]
    half = (j - i) // 2
    s1, e1, s2, e2 = 0.0, 0.0, 0.0, 0.0
    t = i
    while t < j:
        end = t + np.searchsorted(x[t:j], x[t], side="right")
        weight = end - t
        if cost == ROUND_UP:
            weight = -weight
        elif cost == SAE:  # those in the upper half less those in the lower
            weight = max(end - max(t, j - half), 0) - max(min(end, i + half) - t, 0)
        y, z = two_sum(x[t], -base)
        h, e = times(y, z, float(weight), 0.0)
        s1, e1 = add(s1, e1, h, e)
        if cost == SSE:
            h, e = times(h, e, y, z)
            s2, e2 = add(s2, e2, h, e)
        t = end
    if cost != SSE:
        return s1, e1
    h, e = times(s1, e1, s1, e1)
    h, e = divided(h, e, float(j - i))
    return add(s2, e2, -h, -e)


@lean_subkernel
def residue(bits):
    """Residue of a double, given by its bits."""
    word = np.uint64(bits)
    exponent = np.int64((word >> np.uint64(52)) & np.uint64(0x7FF))
    mantissa = word & np.uint64(0xFFFFFFFFFFFFF)
    if exponent > 0:
        mantissa |= np.uint64(0x10000000000000)
    turn = np.uint64(
        (exponent if exponent > 0 else 1) % 61
    )  # the same offset for all: it scales every cost alike
    r = ((mantissa << turn) & PRIME) | (mantissa >> (_U61 - turn))
    if r == PRIME:
        r = _U0
    if word >> np.uint64(63) and r != _U0:
        r = PRIME - r
    return r


def residue_of(cost: Fraction, power: int) -> int:
    """Residue of a cost, in the unit in which :func:`residue` gives values, or its square."""
    prime = int(PRIME)
    inverse: int = pow(cost.denominator, -1, prime)
    return cost.numerator * inverse * (1 << 1075 * power % 61) % prime  # 2^61 is 1


@lean_subkernel
def plus(a, b):
    """Add: a + b modulo the prime."""
    s = a + b
    return s - PRIME if s >= PRIME else s


@lean_subkernel
def minus(a, b):
    """Subtract: a − b modulo the prime."""
    return a - b if a >= b else a + (PRIME - b)


@lean_subkernel
def by(a, b):
    """Multiply: a·b modulo the prime, from halves of 30 and 31 bits."""
    ah, al = a >> _U31, a & _LOW31
    bh, bl = b >> _U31, b & _LOW31
    mid = ah * bl + al * bh
    s = ((ah * bh) << _U1) + (mid >> _U30) + ((mid & _LOW30) << _U31) + al * bl
    s = (s & PRIME) + (s >> _U61)
    return s - PRIME if s >= PRIME else s


@lean_kernel
def inverses(inverse, sizes, most):
    """Fill in 1/s for s up to ``most``: doubled, s before the end of ``inverse``, and as a residue."""
    sizes[1].inverse_residue = _U1
    for s in range(1, most + 1):
        high = 1.0 / s
        p, e = two_product(high, float(s))
        inverse[inverse.size - s], sizes[s].inverse_low = high, ((1.0 - p) - e) / s
        if s > 1:
            q, r = PRIME // np.uint64(s), PRIME % np.uint64(s)
            sizes[s].inverse_residue = PRIME - by(q, sizes[np.int64(r)].inverse_residue)


class RationalCosts:
    """Costs of the best partitions of the first values, in rational numbers.

    Where partitions have nothing in common, as on evenly spaced values, costs are needed from the first value
    on. They are kept, so that the next comparison does not begin there again.
    """

    def __init__(
        self, x: Floats, back: NDArray[np.signedinteger], cost: int, extra: Fraction
    ) -> None:
        self._x, self._back, self._cost, self._extra = x, back, cost, extra
        self._known = {0: Fraction(0)}  # least cost by column, and of the columns on its partition

    def prefers(self, i: int, rival: int, j: int, settled: int) -> bool:
        """Return whether start i is better for the first j values than ``rival``; ties to the lower.

        Costs of columns up to ``settled`` are kept: best starts of later ones may be guesses.
        """
        known, paths = self._known, ([j, i], [j, rival])
        # Back to where both partitions meet, if that is near, or to costs that are known.
        while paths[0][-1] != paths[1][-1] or len(paths[0]) > _NEAR:
            further = [path for path in paths if path[-1] not in known]
            if not further:
                break
            path = max(further, key=lambda path: path[-1])
            path.append(int(self._back[path[-1]]))
        costs = []
        for path in paths:
            cost = known.get(path[-1], Fraction(0))
            for start, end in pairwise(reversed(path)):
                cost += _rational_cost(self._x[start:end], self._cost) + self._extra
                if start in known and end <= settled:
                    known[end] = cost
            costs.append(cost)
        return costs[0] < costs[1] or (costs[0] == costs[1] and i < rival)


def _rational_cost(x: Floats, cost: int) -> Fraction:
    """Cost of one group of sorted values; twice the cost for ``max``."""
    values = [Fraction(v) for v in x.tolist()]
    size = len(values)
    if cost == SSE:
        total = sum(values, Fraction(0))
        return sum((v * v for v in values), Fraction(0)) - total * total / size
    if cost == SAE:
        half = size // 2
        return sum(values[size - half :], Fraction(0)) - sum(values[:half], Fraction(0))
    if cost == MAX:
        return values[-1] - values[0]
    if cost == ROUND_UP:
        return size * values[-1] - sum(values, Fraction(0))
    return sum(values, Fraction(0)) - size * values[0]
