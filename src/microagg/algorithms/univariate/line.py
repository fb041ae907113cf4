"""The state of a computation over sorted values: what is kept where, and how it begins.

All univariate algorithms fill a ``SortedLine`` from left to right: a *column* j means the first j values,
``back[j]`` where the last group of their best partition begins. They work in windows of columns
(windows.py) and decide by costs (costs.py), both of which keep their numbers in ``w`` and ``q``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.exact import (
    MAX,
    PRIME,
    ROUND_DOWN,
    ROUND_UP,
    SAE,
    SSE,
    add,
    by,
    inverses,
    plus,
    times,
)
from microagg.base.typing import Floats
from microagg.compile.no_refcount import lean_kernel

COSTS = {"sse": SSE, "sae": SAE, "max": MAX, "round-up": ROUND_UP, "round-down": ROUND_DOWN}

# Rows of w, by column of the window unless said otherwise. For sse, f is short of the sum of
# squares so far, which is common to all starts: only −(sum)²/size of each group counts. P1 is
# the sum of values and H is f, in doubles; S1 + E1 and FH + FL are the same in doubled
# precision. By size of a group s, at the width of the window less s: INVERSE + INVERSE_LOW is
# 1/s, EXTRA + EXTRA_LOW the extra cost of a group of that size.
P1, H, S1, E1, FH, FL, INVERSE, INVERSE_LOW, EXTRA, EXTRA_LOW, BOUND = range(11)
# Rows of q: residues of sums and of f; columns of equal f; whether FH, FL and FR of a column are
# known; by size, residues of 1/s and of the extra cost; room for a partition, for SMAWK and
# for starts that are not yet settled; questions and answers.
R1, FR, ORIGIN, KNOWN, MODULAR, EXTRA_MODULAR, TRAIL, PLACE, STACK, GUESS, FOUND = range(11)
ASK_START, ASK_RIVAL, ASK_COLUMN, ANSWER = range(11, 15)
# Places of q[PLACE]: least and largest size of a group, cost, whether groups of equal values are
# free; first value of the window, columns settled so far, last column of the window; whether
# its doubled sums are there; what Python is asked for, if anything; how many answers there
# are; the column to stop at; how far a window goes at least, and how many times that far it
# may reach back for a common ancestor and settles columns ahead. From LEVELS on: where the levels
# of SMAWK begin.
K, MOST, COST, FREE, LO, SETTLED, HI, READY, ASKED, ANSWERS = range(10)
UNTIL, SPAN, BEHIND, AHEAD = range(10, 14)
LEVELS = 14
# Places of w[BOUND]: error of the carried H, of the carried F, absolute error of values,
# largest extra cost.
CARRIED, CARRIED_DOUBLED, TINY, LARGEST_EXTRA = range(4)

# Values of k, and for k below each how far a window reaches back and ahead, in units of k. From
# 64 on partitions meet too rarely to reach far back; for large k a window must fit into a cache.
_REACH = ((64, 32, 64), (1500, 8, 40), (2**63, 8, 12))


class Extra(NamedTuple):
    """Extra cost per group, and per record missing up to k where smaller groups are allowed."""

    k: int
    group: Fraction
    lack: Fraction | None

    def of(self, size: int) -> Fraction:
        """Extra cost of a group of this size."""
        return self.group + (self.lack or 0) * max(self.k - size, 0)


NOTHING = Extra(0, Fraction(0), None)


class SortedLine(NamedTuple):
    """The state of a computation over sorted values.

    Kernels take the arrays one by one: numba counts references of what it takes from a tuple.
    """

    x: Floats  # (n,) the values, ascending, brought near 1 by a power of two if need be
    raw: NDArray[np.int64]  # (n,) the bits of the values as given
    back: NDArray[np.signedinteger]  # (n+1,) where the last group of the best partition begins
    w: Floats  # (11, size of a window)
    q: NDArray[np.int64]  # (15, size of a window)
    extra: Extra  # in the unit of the cost of the values as given, or twice that for max
    exponent: int  # x is the values as given, less this power of two


def new_line(x: Floats, k: int, cost: int, extra: Extra = NOTHING) -> SortedLine:
    """Prepare sorted values: O(k), but for values of extreme size.

    With an extra cost per group, groups have no largest size: cutting one of 2k in two no
    longer pays for sure. With one for what they lack to k, they have no least size.
    """
    n = len(x)
    near, exponent = near_one(x)
    behind, ahead = next((b, a) for limit, b, a in _REACH if k < limit)
    width = _width((behind + ahead) * k, n)
    w, q = np.empty((11, width)), np.empty((15, width), dtype=np.int64)
    w[BOUND, : LARGEST_EXTRA + 1] = 0.0, 0.0, 2.0**-1000, 0.0
    q[PLACE, :LEVELS] = 0
    q[PLACE, K] = k if extra.lack is None else 1
    q[PLACE, MOST] = n if extra.group else 2 * k - 1
    q[PLACE, COST], q[PLACE, UNTIL], q[PLACE, FREE] = cost, n, not (extra.group or extra.lack)
    q[PLACE, SPAN], q[PLACE, BEHIND], q[PLACE, AHEAD] = k, behind, ahead
    line = SortedLine(near, x.view(np.int64), _no_starts(n), w, q, extra, exponent)
    _fill_by_size(line)
    return line


def longer(line: SortedLine, x: Floats) -> SortedLine:
    """Let a line go on with more values: ``x`` holds those that it has, and what follows them."""
    near, exponent = near_one(x)
    if exponent != line.exponent or not line.q[PLACE, SETTLED]:  # nothing that could be kept
        return new_line(x, int(line.q[PLACE, K]), int(line.q[PLACE, COST]))
    back = line.back
    if len(back) <= len(x):  # room to go on and on; what is not written to takes no memory
        back = _no_starts(max(len(x), 2 * len(back)))
        back[: len(line.back)] = line.back
    place = line.q[PLACE]
    reach = int((place[BEHIND] + place[AHEAD]) * place[SPAN])
    while line.w.shape[1] < _width(reach, len(x)):  # what was wide enough for few values
        line = wider(line)
    return line._replace(x=near, raw=x.view(np.int64), back=back)


def _width(reach: int, n: int) -> int:
    """Columns of a window that reaches so far, less where there are few values."""
    return max(min(reach, 4 * n) + 2, 64)


def _no_starts(n: int) -> NDArray[np.signedinteger]:
    """Room for the best starts of n values, and of none."""
    return np.empty(n + 1, dtype=np.int32 if n < 2**31 - 1 else np.int64)


def wider(line: SortedLine) -> SortedLine:
    """Make room for windows twice as long."""
    w = np.concatenate([line.w, np.empty_like(line.w)], axis=1)
    q = np.concatenate([line.q, np.empty_like(line.q)], axis=1)
    wide = line._replace(w=w, q=q)
    _fill_by_size(wide)
    return wide


def narrower(line: SortedLine, given: SortedLine) -> None:
    """Bring the state back to a line that had to be made wider, as far as there is room."""
    given.w[:], given.q[:] = line.w[:, : given.w.shape[1]], line.q[:, : given.q.shape[1]]
    _fill_by_size(given)


def near_one(x: Floats) -> tuple[Floats, int]:
    """Scale by a power of two so that squares neither overflow nor vanish; its exponent.

    Only tables that hold both huge and tiny values lose digits by that, at most 2^-1000.
    """
    largest = max(abs(float(x[0])), abs(float(x[-1])))
    if largest == 0.0 or 2.0**-300 < largest < 2.0**300:
        return x, 0
    exponent = int(np.frexp(largest)[1])
    return np.ldexp(x, -exponent), exponent


def _fill_by_size(line: SortedLine) -> None:
    """Fill in what depends on the size of a group alone."""
    w, q, extra = line.w, line.q, line.extra
    most = min(int(q[PLACE, MOST]), w.shape[1] - 1)
    inverses(w[INVERSE], w[INVERSE_LOW], q[MODULAR], most)
    w[EXTRA : EXTRA_LOW + 1, -most:] = 0.0
    if extra != NOTHING:
        power = 2 if q[PLACE, COST] == SSE else 1
        unit = Fraction(2) ** (-power * line.exponent)
        costs = extra.group, extra.lack or Fraction(0)
        parts = [float(part * unit) for part in costs]
        residues = [np.uint64(_residue(part, power)) for part in costs]
        _fill_extra(w[EXTRA], w[EXTRA_LOW], q[EXTRA_MODULAR], extra.k, most, *parts, *residues)
        w[BOUND, LARGEST_EXTRA] = w[EXTRA, -1]


def _residue(part: Fraction, power: int) -> int:
    """Residue of an extra cost, in the unit in which exact.residue gives values, or its square."""
    prime = int(PRIME)
    inverse: int = pow(part.denominator, -1, prime)
    return part.numerator * inverse * (1 << 1075 * power % 61) % prime  # 2^61 is 1


@lean_kernel
def _fill_extra(high, low, modular, k, most, group, lack, group_residue, lack_residue):
    for s in range(1, most + 1):
        lacking = max(k - s, 0)
        h, e = times(lack, 0.0, float(lacking), 0.0)
        high[high.size - s], low[high.size - s] = add(h, e, group, 0.0)
        modular[s] = plus(group_residue, by(lack_residue, np.uint64(lacking)))
