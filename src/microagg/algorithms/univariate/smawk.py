"""SMAWK: the best start of every column of a block, in linear time.

Problem   Given columns first..last of a totally monotone matrix and rows (starts) low..high,
          find the best row of each column.
Idea      Of the rows keep at most as many as there are columns (a row that loses to a later one
          where its turn comes can be dropped), solve every other column the same way, and
          find the columns between by looking only at the rows between their neighbours' best.
Cost      O(rows + columns) comparisons.
Paper     Aggarwal, Klawe, Moran, Shor & Wilber 1987; used so by Stamm & Schaub 2024,
          sections 2.1.2 and 3.4, whose adapted cost orders the starts outside the band
          j−2k+1..j−k in the way ``later_wins`` does.
Here      Without recursion: level l holds every 2^l-th column. Ties go to the lower row.
"""

from __future__ import annotations

from microagg.algorithms.univariate.costs import prefers
from microagg.compile.jit import inlined_subkernel


@inlined_subkernel
def later_wins(line, low, high, j):
    """Return whether of two starts, low < high, the higher is better for column j."""
    window = line.window[0]
    if high > j - window.k:
        return False
    if low < j - window.most:
        return True
    return prefers(line, high, low, j)


@inlined_subkernel
def smawk(line, first, last, low, high, starts):
    """Write the best start among low..high of each column j in first..last to ``starts[j]``."""
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
            while top > end and later_wins(
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
                if later_wins(line, best, stack[at], j):
                    best = stack[at]
            starts[j] = best
        end = room[level].level
