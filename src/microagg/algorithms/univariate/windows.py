"""Windows: a few dozen groups at a time, within which sums are exact enough.

Problem   Sums over a long table, or far from zero, lose the digits that decide.
Idea      A window's prefix sums begin anew, relative to its first value, and its f relative to a
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

import numpy as np

from microagg.algorithms.univariate.costs import (
    CARRY,
    COMPARE,
    GROW,
    doubled_error,
    ready,
    settle,
    total,
    value,
)
from microagg.algorithms.univariate.exact import SSE, add, minus, prefers_rationally, times
from microagg.algorithms.univariate.line import SortedLine
from microagg.base.progress import DONE, State
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.doubled_sums import two_sum


def run(algorithm: Callable[..., None], line: SortedLine, state: State, *options: object) -> None:
    """Run a kernel over the line; give what it asks for.

    What it cannot decide is answered in rational numbers.
    """
    window, values = line.window, line.arrays.raw.view(np.float64)
    while True:
        algorithm(line.arrays, state, *options)
        if not window["asked"]:
            return
        if window["asked"] == CARRY:
            _carry(line.arrays)
        elif window["asked"] == GROW:
            window["asked"] = 0
            line.widen()
        else:
            question = line.arrays.room[window["answers"]]
            starts_and_column = (int(question[name]) for name in ("start", "rival", "column"))
            question["answer"] = prefers_rationally(
                values, line.back, int(window["cost"]), line.group_cost, *starts_and_column
            )
            window["answers"] += 1
            if window["answers"] == len(line.arrays.room):
                line.widen()


@lean_subkernel
def next_window(line):
    """Move to the next columns; return the first and the last of them, counted from ``lo``.

    A window that waits for an answer is taken up again as it was. After the last window, and
    when Python is asked for the next, the first is larger than the last.
    """
    window = line.window[0]
    k, settled = window.k, window.settled
    if window.asked:
        window.asked = 0
        return max(settled, k - 1) + 1 - window.lo, window.hi - window.lo
    if settled >= window.until:
        return 1, 0
    window.answers = 0
    if settled == 0:
        hi = min(window.ahead * window.span, window.until)
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
    span = max(window.span, (settled - _needed(line, settled)) // 2)
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
def window_done(line, state, last):
    """Call a window settled, unless a question came up; return whether it is."""
    window = line.window[0]
    if window.asked:
        return False
    window.settled = window.lo + last
    state[DONE] = max(state[DONE], window.settled)
    return True


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
    """Let the window be lo..hi; sum x less its first value.

    Sums are rounded once each since they are carried along doubled.
    """
    x, sums, window = line.x, line.sums, line.window[0]
    window.lo, window.hi, window.ready = lo, hi, 0
    s, e, base = 0.0, 0.0, x[lo]
    sums[0] = 0.0
    for t in range(hi - lo):
        s, r = two_sum(s, x[lo + t] - base)
        e += r
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
    if not alike:
        ready(line)
        if window.cost == SSE:
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
