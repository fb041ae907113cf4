"""A line of sorted values on its way to being cut, and the windows in which that is done.

All univariate algorithms fill a ``SortedLine`` from left to right: a *column* j means the first j values,
``back[j]`` where the last group of their best partition begins. They work in windows of columns and decide by
costs (costs.py); both keep their numbers in the ``Arrays`` of the line.

Problem   Sums over a long table, or far from zero, lose the digits that decide.
Idea      A window is a few dozen groups, within which sums are exact enough. Its prefix sums begin anew,
          relative to its first value, and its f relative to a
          column through which the best partitions of all later ones go. If there is no such
          column near by, f is carried over in doubled precision. The best start of a column is
          never before that of an earlier one, so the starts still needed are those from the
          last best one on; windows are as long as these stretches ask for.
Cost      O(n) in all.
Paper     Stamm & Schaub 2024, sections 4.1 and 4.2, restart every k values, but a group of 2k−1
          can then touch three cells, which their formula does not cover.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.costs import (
    CARRY,
    COMPARE,
    GROW,
    doubled_error,
    settle,
    total,
    value,
)
from microagg.algorithms.univariate.exact import (
    MAX,
    ROUND_DOWN,
    ROUND_UP,
    SAE,
    SSE,
    RationalCosts,
    add,
    inverses,
    minus,
    plus,
    residue,
    residue_of,
    times,
)
from microagg.base.progress import STOP, State
from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.doubled_sums import two_sum

COSTS = {"sse": SSE, "sae": SAE, "max": MAX, "round-up": ROUND_UP, "round-down": ROUND_DOWN}

# Values of k, and for k below each how far a window reaches back and ahead, in units of k. From
# 64 on partitions meet too rarely to reach far back; for large k a window must fit into a cache.
_REACH = ((64, 32, 64), (1500, 8, 40), (2**63, 8, 12))

FREE = Fraction(0)  # the extra cost of a group, where there is none

_WINDOW = np.dtype(
    [
        ("k", "i8"),  # least and largest size of a group
        ("most", "i8"),
        ("cost", "i8"),
        ("free", "i8"),  # whether groups of equal values cost nothing
        ("lo", "i8"),  # first value of the window, and its last column, over all values
        ("hi", "i8"),
        ("settled", "i8"),  # columns settled so far, over all values
        ("until", "i8"),  # column to stop at
        ("asked", "i8"),  # what Python is asked for, if anything
        ("answers", "i8"),  # of Python, so far
        ("behind", "i8"),  # how many times k it may reach back for a common ancestor, or more
        ("ahead", "i8"),  # and how many times k it settles columns ahead
        ("carried", "f8"),  # error of the costs that were carried over, in doubles
        ("carried_doubled", "f8"),  # and in doubled precision
        ("tiny", "f8"),  # absolute error of values
        ("extra", "f8"),  # extra cost of a group, and its residue
        ("extra_residue", "u8"),
    ]
)
_COLUMN = np.dtype(
    [
        ("sum", "f8"),  # of the values, in doubled precision, and as a residue
        ("sum_low", "f8"),
        ("sum_residue", "u8"),
        ("cost", "f8"),  # the least cost, the same way, where it is known
        ("cost_low", "f8"),
        ("cost_residue", "u8"),
    ]
)
_SIZE = np.dtype(
    [
        ("inverse_low", "f8"),  # second half of 1/size, and its residue
        ("inverse_residue", "u8"),
    ]
)
_ROOM = np.dtype(
    [
        ("trail", "i8"),  # a partition
        ("level", "i8"),  # where the levels of SMAWK begin
        ("start", "i8"),  # questions to Python, and its answers
        ("rival", "i8"),
        ("before_start", "i8"),  # their own best starts, when the question was put
        ("before_rival", "i8"),
        ("column", "i8"),
        ("answer", "i8"),
    ]
)


class Arrays(NamedTuple):
    """What kernels see of a line. For sse, costs are short of the sum of squares so far.

    That is common to all starts: only −(sum)²/size of each group counts.
    """

    x: Floats  # (n,) the values, ascending, brought near 1 by a power of two if need be
    raw: NDArray[np.int64]  # (n,) the bits of the values as given
    back: NDArray[np.signedinteger]  # (n+1,) where the last group of the best partition begins
    window: NDArray[np.void]  # (1,)
    sums: Floats  # of the values, by column of the window
    least: Floats  # the least cost, by column of the window
    origin: NDArray[np.int64]  # columns of the same origin have the same least cost
    known: NDArray[np.int64]  # whether the least cost is known in doubled precision
    guess: NDArray[np.int64]  # starts that are not yet settled
    square: NDArray[np.int64]  # the same, from another set of starts
    stack: NDArray[np.int64]  # rows that are left in SMAWK
    columns: NDArray[np.void]  # what else there is by column of the window
    room: NDArray[np.void]
    inverse: Floats  # 1/s for a group of s values, at the width of the window less s
    sizes: NDArray[np.void]  # what else there is by size of a group


class SortedLine:
    """Sorted values on their way to being cut.

    Parameters
    ----------
    x : (n,) ascending finite doubles; kept, never written to
    k : least size of a group
    cost : number of a cost, see ``COSTS``
    group_cost : extra cost of a group, in the unit of the cost of the values as given, or twice that
        for max. With one, groups have no largest size: cutting one of 2k in two no longer pays for sure.
    """

    def __init__(self, x: Floats, k: int, cost: int, group_cost: Fraction = FREE) -> None:
        n = len(x)
        near, self._exponent = near_one(x)
        self.group_cost = group_cost
        behind, ahead = next((b, a) for limit, b, a in _REACH if k < limit)
        window = np.zeros(1, _WINDOW)
        window["k"], window["most"] = k, n if group_cost else 2 * k - 1
        window["cost"], window["until"], window["tiny"] = cost, n, 2.0**-1000
        window["free"] = not group_cost
        power = 2 if cost == SSE else 1
        window["extra"] = float(group_cost * Fraction(2) ** (-power * self._exponent))
        window["extra_residue"] = residue_of(group_cost, power)
        window["behind"], window["ahead"] = behind, ahead
        self.arrays = Arrays._make([near, x.view(np.int64), _no_starts(n), window, *_no_columns(0)])
        self._make_room(_width((behind + ahead) * k, n))

    @property
    def back(self) -> NDArray[np.signedinteger]:
        """Where the last group of the best partition of each column begins."""
        return self.arrays.back

    @property
    def window(self) -> np.void:
        """Position and settings, which may be written to."""
        window: np.void = self.arrays.window[0]
        return window

    def longer(self, x: Floats) -> SortedLine:
        """Go on with more values: ``x`` holds those that the line has, and what follows them."""
        near, exponent = near_one(x)
        if exponent != self._exponent or not self.window["settled"]:  # nothing that could be kept
            return SortedLine(x, int(self.window["k"]), int(self.window["cost"]))
        back = self.back
        if len(back) <= len(x):  # room to go on and on; what is not written to takes no memory
            back = _no_starts(max(len(x), 2 * len(back)))
            back[: len(self.back)] = self.back
        self.arrays = self.arrays._replace(x=near, raw=x.view(np.int64), back=back)
        window = self.window
        reach = int((window["behind"] + window["ahead"]) * window["k"])
        if len(self.arrays.sums) < _width(reach, len(x)):  # what was wide enough for few values
            self._make_room(_width(reach, len(x)))
        return self

    def widen(self) -> None:
        """Make room for windows twice as long."""
        self._make_room(2 * len(self.arrays.sums))

    def _make_room(self, width: int) -> None:
        """Let windows have so many columns; fill in what depends on the size of a group alone."""
        arrays = Arrays._make([*self.arrays[:4], *_no_columns(width)])
        for new, old in zip(arrays[4:13], self.arrays[4:13], strict=True):
            new[: len(old)] = old
        inverses(arrays.inverse, arrays.sizes, min(int(self.window["most"]), width - 1))
        self.arrays = arrays


def _no_columns(width: int) -> list[NDArray[Any]]:
    """Room for what a line has by column of a window, and by size of a group."""
    # Rows of one array do not begin at the same place of a page, which would slow down a processor's cache.
    doubles, integers = np.empty((2, width)), np.empty((5, width), np.int64)
    of_column = [np.empty(width, _COLUMN), np.empty(width, _ROOM)]
    return [*doubles, *integers, *of_column, np.empty(width), np.empty(width, _SIZE)]


def _width(reach: int, n: int) -> int:
    """Columns of a window that reaches so far, less where there are few values."""
    return max(min(reach, 4 * n) + 2, 64)


def _no_starts(n: int) -> NDArray[np.signedinteger]:
    """Room for the best starts of n values, and of none."""
    return np.empty(n + 1, dtype=np.int32 if n < 2**31 - 1 else np.int64)


def near_one(x: Floats) -> tuple[Floats, int]:
    """Scale by a power of two so that squares neither overflow nor vanish; its exponent.

    Only tables that hold both huge and tiny values lose digits by that, at most 2^-1000.
    """
    largest = max(abs(float(x[0])), abs(float(x[-1])))
    if largest == 0.0 or 2.0**-300 < largest < 2.0**300:
        return x, 0
    exponent = int(np.frexp(largest)[1])
    return np.ldexp(x, -exponent), exponent


Fill = Callable[[SortedLine, State], None]  # an algorithm, see stamm_schaub.py


def run(
    algorithm: Callable[..., None], options: tuple[object, ...], line: SortedLine, state: State
) -> None:
    """Run a kernel over the line; give what it asks for.

    What it cannot decide is answered in rational numbers.
    """
    window, values = line.window, line.arrays.raw.view(np.float64)
    costs = RationalCosts(values, line.back, int(window["cost"]), line.group_cost)
    while True:
        algorithm(line.arrays, state, *options)
        if not window["asked"] or state[STOP]:
            return
        if window["asked"] == CARRY:
            _carry(line.arrays)
        elif window["asked"] == GROW:
            window["asked"] = 0
            line.widen()
        else:
            question = line.arrays.room[window["answers"]]
            i, rival, j = (int(question[name]) for name in ("start", "rival", "column"))
            question["answer"] = costs.prefers(i, rival, j, int(window["settled"]))
            window["answers"] += 1
            if window["answers"] == len(line.arrays.room):
                line.widen()


@lean_subkernel
def next_window(line, state, last):
    """Call the window settled up to ``last``; return the first and the last column of the next one.

    Both count from ``lo``. With ``last`` 0 a window that waits for an answer is taken up again as it was.
    After the last window, when asked to stop and while Python is asked, the first is the larger one.
    """
    window = line.window[0]
    if last > 0:
        if window.asked:
            return 1, 0
        window.settled = window.lo + last
    if state[STOP]:
        return 1, 0
    k, settled = window.k, window.settled
    if window.asked:
        window.asked = 0
        return max(settled, k - 1) + 1 - window.lo, window.hi - window.lo
    if settled >= window.until:
        return 1, 0
    window.answers = 0
    if settled == 0:
        hi = min(window.ahead * k, window.until)
        _begin(line, settled, hi)
        for t in range(1, k):
            line.least[t], line.origin[t] = np.inf, t
        return k, hi
    floor, hi = _reach(line, settled)
    if hi - floor + 2 > line.sums.size:
        window.asked = GROW
        return 1, 0
    ancestor = _ancestor(line, settled, floor)
    if ancestor < 0:
        window.asked = CARRY
        return 1, 0
    _begin(line, ancestor, hi)
    _retrace(line, settled)
    return settled + 1 - window.lo, hi - window.lo


@lean_subkernel
def _needed(line, settled):
    """First column at which a group of a later column may begin."""
    return max(settled - line.window[0].most + 1, np.int64(line.back[settled]))


@lean_subkernel
def first_start(line):
    """First start, counted from ``lo``, of the columns that are not settled yet."""
    window = line.window[0]
    return _needed(line, window.settled) - window.lo if window.settled > 0 else 0


@lean_subkernel
def _reach(line, settled):
    """Return how far back a common ancestor may lie, and the last column of the next window."""
    window = line.window[0]
    span = max(window.k, (settled - _needed(line, settled)) // 2)
    floor = max(settled - window.behind * span, 0)
    return floor, min(settled + window.ahead * span, window.until)


@lean_subkernel
def _ancestor(line, settled, floor):
    """Column through which the partitions of all columns still needed go; −1 if none is near.

    The last column of a shrinking set gives way to the one that its partition comes from.
    """
    if floor == 0:
        return 0
    back, room = line.back, line.room
    first = _needed(line, settled)
    for t in range(settled - floor + 1):
        room[t].trail = floor + t >= first
    count = settled - first + 1
    for j in range(settled, floor - 1, -1):
        if room[j - floor].trail:
            if count == 1:
                return j
            if back[j] < floor:
                return -1
            count -= room[back[j] - floor].trail
            room[back[j] - floor].trail = 1
    return -1


@lean_subkernel
def _begin(line, lo, hi):
    """Start a window at a column that all its partitions share: its cost counts as 0."""
    window, start = line.window[0], line.columns[0]
    window.carried = window.carried_doubled = 0.0
    _prefix_sums(line, lo, hi)
    line.least[0] = start.cost = start.cost_low = 0.0
    start.cost_residue, line.origin[0], line.known[0] = 0, lo, 1


@lean_subkernel
def _prefix_sums(line, lo, hi):
    """Let the window be lo..hi; sum x less its first value in doubled precision, and x as residues."""
    x, raw, sums, columns, window = line.x, line.raw, line.sums, line.columns, line.window[0]
    window.lo, window.hi = lo, hi
    s, e, r, base = 0.0, 0.0, np.uint64(0), x[lo]
    sums[0], columns[0].sum, columns[0].sum_low, columns[0].sum_residue = s, s, e, r
    for t in range(hi - lo):
        y, z = two_sum(x[lo + t], -base)
        s, d = two_sum(s, y)
        e += d + z  # may grow with the length: each rounding here is one of 2^-106
        r = plus(r, residue(raw[lo + t]))
        column = columns[t + 1]
        column.sum, column.sum_low, column.sum_residue = s, e, r
        sums[t + 1] = s + e


@lean_subkernel
def _retrace(line, settled):
    """Compute costs anew for the columns whose partitions come from the first of the window.

    The columns that come from elsewhere are needed no more.
    """
    least, window = line.least, line.window[0]
    lo = window.lo
    for j in range(1, settled - lo + 1):
        i = line.back[lo + j] - lo
        if i >= 0 and j >= window.k and least[i] < np.inf:
            settle(line, i, j, value(line, i, j))
        else:
            least[j], line.origin[j] = np.inf, lo + j


@lean_kernel
def _carry(line):
    """Start a window at the first column still needed, and carry the costs over as they are.

    For partitions that have nothing recent in common, as on evenly spaced values or for large k.
    """
    window, columns = line.window[0], line.columns
    settled, old = window.settled, window.lo
    _, hi = _reach(line, settled)
    lo = _needed(line, settled)
    count, first = settled - lo + 1, lo - old
    window.asked = COMPARE  # the window waits to be taken up
    alike = True
    for t in range(first, first + count):
        alike = alike and line.origin[t] == line.origin[first]
    error = 0.0
    if not alike:
        for t in range(first, first + count):
            if not line.known[t]:
                h, e, r = total(line, line.back[old + t] - old, t)
                columns[t].cost, columns[t].cost_low, columns[t].cost_residue = h, e, r
        error = doubled_error(line, first + count - 1)
    h, e, r = columns[first].cost, columns[first].cost_low, columns[first].cost_residue
    for t in range(count):
        kept, column = columns[first + t], columns[t]
        column.cost, column.cost_low = add(kept.cost, kept.cost_low, -h, -e)
        column.cost_residue = minus(kept.cost_residue, r)
        line.origin[t], line.known[t] = line.origin[first + t], 1
    _prefix_sums(line, lo, hi)
    largest = 0.0
    if not alike and window.cost == SSE:
        _shift(line.x[lo], line.x[old], columns, count)
    for t in range(count):
        column = columns[t]
        if alike:
            column.cost = column.cost_low = 0.0
            column.cost_residue = 0
        line.least[t] = column.cost
        largest = max(largest, abs(column.cost))
    groups = (hi - lo) // window.k  # each adds to the cost, and rounds
    window.carried = error + 2.0**-52 * (groups + 8) * largest
    window.carried_doubled = error + 2.0**-104 * (groups + 64) * largest


@lean_subkernel
def _shift(new, old, columns, count):
    """Make costs of the first columns, less squares around the old value, those around the new one.

    With d = new − old, Σ(x − old)² − Σ(x − new)² = 2d·Σ(x − new) + m·d² for m values.
    """
    d, z = two_sum(new, -old)
    for m in range(1, count):
        column = columns[m]
        a, b = times(float(m), 0.0, d, z)
        a, b = add(a, b, 2 * column.sum, 2 * column.sum_low)
        a, b = times(a, b, d, z)
        column.cost, column.cost_low = add(column.cost, column.cost_low, a, b)
