"""The state of a computation over sorted values: what is kept where, and how it begins.

All univariate algorithms fill a ``SortedLine`` from left to right: a *column* j means the first j values,
``back[j]`` where the last group of their best partition begins. They work in windows of columns
(windows.py) and decide by costs (costs.py); both keep their numbers in the ``Arrays`` of the line.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.exact import (
    MAX,
    ROUND_DOWN,
    ROUND_UP,
    SAE,
    SSE,
    inverses,
    residue_of,
)
from microagg.base.typing import Floats

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
        ("ready", "i8"),  # whether the sums in doubled precision are there
        ("asked", "i8"),  # what Python is asked for, if anything
        ("answers", "i8"),  # of Python, so far
        ("span", "i8"),  # how far a window goes at least, and how many times that far it may
        ("behind", "i8"),  # reach back for a common ancestor
        ("ahead", "i8"),  # and settles columns ahead
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
        window["span"], window["behind"], window["ahead"] = k, behind, ahead
        self.arrays = Arrays._make(
            [near, x.view(np.int64), _no_starts(n), window, *_no_columns(0), *_no_sizes(0)]
        )
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
        reach = int((window["behind"] + window["ahead"]) * window["span"])
        if len(self.arrays.sums) < _width(reach, len(x)):  # what was wide enough for few values
            self._make_room(_width(reach, len(x)))
        return self

    def widen(self) -> None:
        """Make room for windows twice as long."""
        self._make_room(2 * len(self.arrays.sums))

    def _make_room(self, width: int) -> None:
        """Let windows have so many columns; fill in what depends on the size of a group alone."""
        by_column = _no_columns(width)
        for new, old in zip(by_column, self.arrays[4:13], strict=True):
            new[: len(old)] = old
        inverse, sizes = _no_sizes(width)
        inverses(inverse, sizes, min(int(self.window["most"]), width - 1))
        self.arrays = Arrays._make([*self.arrays[:4], *by_column, inverse, sizes])


def _no_columns(width: int) -> list[NDArray[Any]]:
    """Room for what a line has by column of a window."""
    # Rows of one array do not begin at the same place of a page, which would slow down a processor's cache.
    doubles, integers = np.empty((2, width)), np.empty((5, width), np.int64)
    return [*doubles, *integers, np.empty(width, _COLUMN), np.empty(width, _ROOM)]


def _no_sizes(width: int) -> list[NDArray[Any]]:
    """Room for what a line has by size of a group."""
    return [np.empty(width), np.empty(width, _SIZE)]


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
