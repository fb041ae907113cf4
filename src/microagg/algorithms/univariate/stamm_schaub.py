"""The linear-time algorithms of Stamm & Schaub 2024: they fill a line from left to right.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      The best partition of the first j values ends with a group that begins at some i with
          k ≤ j − i ≤ 2k − 1, since splitting a larger group is beneficial. The algorithms differ in how
          they find the best start i of each column j; for concave costs it is never before that of
          an earlier column. Simple and simple+ try starts one by one; the staggered algorithm, Wilber's and
          Galil & Park's search totally monotone matrices by SMAWK; halving is our own.
Here      All decide exactly, see costs.py; ties go to the lower start, so that all give the same groups. They
          work in windows (windows.py), and guess no further ahead than a window goes. With a cost per
          group, which only Wilber and Galil & Park take, groups have no largest size.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from microagg.algorithms.univariate.costs import (
    best_start,
    prefers_exactly,
    settle,
    tolerance,
    value,
)
from microagg.algorithms.univariate.hansen_mukherjee import hansen_mukherjee
from microagg.algorithms.univariate.windows import Fill, first_start, next_window, run
from microagg.compile.jit import inlined_subkernel, lean_kernel

# simple+ begins at the best start of this many columns before: to wait for that of the last one takes
# longer than to try the few starts between.
_LAG = 2


@lean_kernel
def _simple(line, state, monotone):
    """Stamm & Schaub 2024, Algorithm 2: try all k starts, O(kn) time.

    ``monotone`` is simple+, which begins at the best start of a column before and tries far fewer. The
    printed bound j−2k+2 forbids groups of 2k−1 and is a misprint for j−2k+1. Starts whose costs are equal
    because all values between are equal are not tried one by one.
    """
    raw, back, window, origin = line.raw, line.back, line.window[0], line.origin
    k = window.k
    end = 0
    while True:
        begin, end = next_window(line, state, end)
        if begin > end:
            return
        lo = window.lo
        alike = max(begin - k - 1, 0)  # from here on the starts have equal costs for sure
        while alike > 0 and origin[alike - 1] == origin[alike]:
            alike -= 1
        for j in range(begin, end + 1):
            first = max(j - 2 * k + 1, 0)
            if monotone and lo + j - _LAG >= k:
                first = max(first, back[lo + j - _LAG] - lo)
            last = j - k
            if last > 0 and origin[last] != origin[last - 1]:
                alike = last
            if alike <= first and raw[lo + first] == raw[lo + j - 1]:
                last = first
            best, cost = best_start(line, first, last, j)
            settle(line, best, j, cost)


@lean_kernel
def _halving(line, state):
    """Row minima of blocks by bisection, our own choice for large k: O(n log k) time.

    The blocks are those of the staggered algorithm. The middle column of a block is settled first, then the
    middles of both halves between the best starts around them. SMAWK needs O(n), but bisection looks at the
    starts one after the other, several in one instruction, and is faster for every k we measured.
    """
    back, window = line.back, line.window[0]
    k = window.k
    end = 0
    while True:
        begin, end = next_window(line, state, end)
        if begin > end:
            return
        lo = window.lo
        for block in range(begin, end + 1, k):
            stop = min(block + k, end + 1)
            # Best starts before the block and, while bisecting, on both sides of a column.
            floor = max(back[lo + block - 1] - lo, 0) if lo + block > k else 0
            step = 1
            while 2 * step <= stop - block:
                step *= 2
            while step > 0:
                for j in range(block + step - 1, stop, 2 * step):
                    first = back[lo + j - step] - lo if j - step >= block else floor
                    first = max(first, j - 2 * k + 1, 0)
                    last = j - k
                    if j + step < stop:
                        last = min(last, back[lo + j + step] - lo)
                    best, cost = best_start(line, first, last, j)
                    settle(line, best, j, cost)
                step //= 2


@inlined_subkernel
def _later_wins(line, low, high, j):
    """Return whether of two starts, low < high, the higher is better for column j.

    Starts outside the band j−2k+1..j−k are ordered as the adapted cost of Stamm & Schaub orders them.
    """
    window = line.window[0]
    if high > j - window.k:
        return False
    if low < j - window.most:
        return True
    a, b = value(line, high, j), value(line, low, j)
    if abs(a - b) > tolerance(line, j) or a == np.inf or b == np.inf:
        return a < b
    return prefers_exactly(line, high, low, j)


@inlined_subkernel
def _smawk(line, first, last, low, high, starts):
    """Write the best start among low..high of each column j in first..last to ``starts[j]``.

    Aggarwal, Klawe, Moran, Shor & Wilber 1987, for totally monotone matrices: of the starts keep at most as
    many as there are columns (one that loses to a later one where its turn comes can be dropped), solve
    every other column the same way, and find the columns between by looking only at the starts between
    their neighbours' best. O(starts + columns) comparisons, without recursion: level l holds every 2^l-th
    column.
    """
    room, stack, columns = line.room, line.stack, last - first + 1
    if columns < 1:
        return
    # Survivors of level l lie on the stack from begin to end; those of the next level behind them. All
    # rows are there at first; those that survive level 0 are moved to the front.
    for row in range(low, high + 1):
        stack[row - low] = row
    begin, rows_end, end, level = 0, high - low + 1, 0, 0
    while True:
        step = 1 << level
        count = columns >> level
        if count == 0:
            break
        top = end
        for at in range(begin, rows_end):
            row = stack[at]
            while top > end and _later_wins(
                line, stack[top - 1], row, first + (top - end) * step - 1
            ):
                top -= 1
            if top - end < count:
                stack[top] = row
                top += 1
        begin, rows_end, end = end, top, top
        room[level].level = begin
        level += 1
    while level > 0:
        level -= 1
        step = 1 << level
        count = columns >> level
        at = room[level].level
        for c in range(0, count, 2):
            j = first + (c + 1) * step - 1
            stop = starts[j + step] if c + 1 < count else stack[end - 1]
            best = stack[at]
            while stack[at] < stop:
                at += 1
                if _later_wins(line, best, stack[at], j):
                    best = stack[at]
            starts[j] = best
        end = room[level].level


@lean_kernel
def _staggered(line, state):
    """Stamm & Schaub 2024, section 3.5 and Algorithm 1: SMAWK on blocks of k columns, O(n) time.

    The best starts of the next k columns are all among columns settled already, at most 2k−1 back, and the
    matrix of their costs is totally monotone. Starts before the best one of the column before the block are
    left out.
    """
    window = line.window[0]
    k = window.k
    end = 0
    while True:
        begin, end = next_window(line, state, end)
        if begin > end:
            return
        lo = window.lo
        for first in range(begin, end + 1, k):
            last = min(first + k - 1, end)
            low = max(first - 2 * k + 1, 0)
            if lo + first > k:
                low = max(low, line.back[lo + first - 1] - lo)
            _smawk(line, first, last, low, last - k, line.guess)
            for j in range(first, last + 1):
                start = line.guess[j]
                settle(line, start, j, value(line, start, j))


@lean_kernel
def _wilber(line, state):
    """Wilber 1988, for the concave least-weight subsequence problem: guess ahead and check, O(n) time.

    With columns up to c settled, guess that the best starts of the next ones, as many as there are starts in
    question, are not after c: SMAWK. Then see with a second SMAWK, as if the guesses were right, whether a
    start after c would do better somewhere. At the first column where one does, the guesses before it are
    right, the column itself is now known, and no later column begins at c or before.

    Adapted to groups of k..2k−1 by Stamm & Schaub 2024, section 3.4: guesses go at most 2k−1 columns ahead,
    beyond which no start up to c is allowed.
    """
    back, guess, window = line.back, line.guess, line.window[0]
    k = window.k
    end = 0
    while True:
        begin, end = next_window(line, state, end)
        if begin > end:
            return
        lo = window.lo
        c = begin - 1
        r = first_start(line)
        while c < end:
            p = min(2 * c - r + 1, c + window.most, end)
            # Starts up to c, then those after c: only groups of k and more can begin there.
            better = 0
            for first, low, high in ((c + 1, r, c), (c + 1 + k, c + 1, p - k)):
                _smawk(line, first, p, low, high, guess)
                for j in range(first, p + 1):
                    start = guess[j]
                    if low == r:
                        settle(line, start, j, value(line, start, j))
                    elif _later_wins(line, back[lo + j] - lo, start, j):
                        better = j
                        break
            if window.asked:  # before guesses change that the question is about
                return
            if better > 0:
                start = guess[better]
                settle(line, start, better, value(line, start, better))
                r = c + 1
                c = better
            else:
                r = max(r, back[lo + p] - lo)
                c = p


@inlined_subkernel
def _look_ahead(line, base, done, ahead, guessed):
    """Best starts of columns done+1..ahead among base..done and what was known up to guessed."""
    guess, square = line.guess, line.square
    _smawk(line, done + 1, ahead, base, done, square)
    for j in range(done + 1, ahead + 1):
        if j > guessed or _later_wins(line, guess[j], square[j], j):
            guess[j] = square[j]


@lean_kernel
def _galil_park(line, state):
    """Galil & Park 1990, for the same problem: look ahead in squares, O(n) time.

    Keep for some columns ahead the best start among those known so far, by SMAWK on a square of the matrix.
    Settle column after column by that, and compare each new start at the last of the columns ahead only: if
    it loses there it loses before, too. If it wins there, all older starts are beaten from there on: what
    they give for the columns between is kept, and the next square begins at the new start.

    Adapted as Wilber's algorithm is.
    """
    guess, window = line.guess, line.window[0]
    k, most = window.k, window.most
    end = 0
    while True:
        begin, end = next_window(line, state, end)
        if begin > end:
            return
        base = first_start(line)
        ahead = guessed = begin - 1
        for j in range(begin, end + 1):
            if j > ahead:
                ahead = min(2 * (j - 1) - base + 1, j - 1 + most, end)
                _look_ahead(line, base, j - 1, ahead, guessed)
                guessed = max(guessed, ahead)
            else:
                new = j - 1
                if k == 1 and _later_wins(line, guess[j], new, j):
                    guess[j] = base = new
                    ahead = j
                elif _later_wins(line, guess[ahead], new, ahead):
                    base = new
                    ahead = j
            start = guess[j]
            settle(line, start, j, value(line, start, j))


ALGORITHMS: dict[str, Fill] = {
    "hansen-mukherjee": partial(run, hansen_mukherjee, ()),
    "simple": partial(run, _simple, (False,)),
    "simple-plus": partial(run, _simple, (True,)),
    "staggered": partial(run, _staggered, ()),
    "wilber": partial(run, _wilber, ()),
    "galil-park": partial(run, _galil_park, ()),
    "halving": partial(run, _halving, ()),
}
# Those that need no largest size of a group, the fastest first.
ANY_SIZE = ("wilber", "galil-park")
