"""The optimal cut of one column: sort, cut, and labels in the caller's order.

Problem   Partition n numbers into groups of at least k at the least cost. Best groups are runs
          of the sorted values (Hansen & Mukherjee 2003, section 2; Stamm & Schaub 2024,
          Theorem 6), so what is left after sorting is where to cut.
Idea      Sorting and labels are in order.py; the cut is one of the algorithms of this package, which
          all give the same groups.
Cost      O(n log n) for sorting, then as the algorithm.
Here      Equal values are taken in the order of their rows. With weights best groups need not be
          runs; the best runs are found by weighted.py, whatever the algorithm named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from microagg.algorithms.result import Outcome
from microagg.algorithms.univariate.chain import best_ends, chain, ends_of
from microagg.algorithms.univariate.exact import MAX, SSE
from microagg.algorithms.univariate.order import labels_by_row, sorted_order
from microagg.algorithms.univariate.stamm_schaub import ALGORITHMS, ANY_SIZE
from microagg.algorithms.univariate.windows import COSTS, near_one
from microagg.base.progress import DONE, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel
from microagg.compile.threads import each
from microagg.encode.prepare import prepare
from microagg.errors import InputError, listed, shown
from microagg.plan.checks import as_number

_GROUPS_A_PIECE = 1 << 14  # whose sums are found by one thread at a time

# Measured on uniform, normal, lognormal and tied data of 1e4 to 1e6 values: simple+ is as fast as halving or
# up to a third faster for k up to this and up to √n, and loses beyond.
_SIMPLE_PLUS_UP_TO = 200


def cut_sorted(
    x: ArrayLike,
    k: int,
    method: str = "auto",
    cost: str = "sse",
    *,
    group_cost: float | None = None,
) -> Labels:
    """Cut ascending values into groups of at least k at the least cost.

    Parameters
    ----------
    x : array-like of shape (n,), ascending and finite, n ≥ k
    k : int, at least 1
    method : "auto" or the name of a univariate algorithm; all give the same groups
    cost : "sse", "sae", "max", "round-up" or "round-down"
    group_cost : float, optional
        Extra cost of each group, in the unit of the cost of the values as they are; groups may
        then be of any size from k on, and the method is "wilber" or "galil-park".

    Returns
    -------
    int64 array: the end of each group; group g is ``x[ends[g-1]:ends[g]]``. The optimum
    for the doubles given; of equal ones, the one with the larger last groups.

    >>> cut_sorted([1, 2, 2, 7, 8, 9, 20, 21], 2).tolist()
    [3, 6, 8]
    >>> cut_sorted([1, 2, 2, 7, 8, 9, 20, 21], 2, group_cost=100).tolist()
    [6, 8]
    """
    records = prepare(x, k, scale="none")
    if np.ndim(x) != 1:
        raise InputError(
            f"cut_sorted takes one column; the data have {np.ndim(x)} dimensions. Pass its values "
            "as an array of shape (n,)."
        )
    values, k = np.ascontiguousarray(records.values[:, 0]), records.k
    if (values[1:] < values[:-1]).any():
        raise InputError(
            "cut_sorted takes ascending values; some are less than the one before. Sort them first."
        )
    return _cut(values, k, method, cost, new_state(), group_cost)


def cost_number(cost: str) -> int:
    """Return the number of a cost in the kernels; refuse what is none."""
    if not isinstance(cost, str) or cost not in COSTS:
        raise InputError(f"cost={shown(cost)} is not known; choose one of {listed(COSTS)}.")
    return COSTS[cost]


def _group_cost(number: object) -> Fraction:
    """Return the extra cost of a group as a user gives it; 0 if none is given."""
    cost = 0.0 if number is None else as_number(number)
    if cost is None or not 0 <= cost < np.inf:
        raise InputError(f"group_cost must be a finite number of at least 0; got {shown(number)}.")
    return Fraction(cost)


def _method(name: str) -> Callable[..., Outcome]:
    """Make the function of a univariate method; only those of ``ANY_SIZE`` take a ``group_cost``."""

    def method(
        X: Floats,
        k: int,
        *,
        cost: str = "sse",
        group_cost: float | None = None,
        weights: Floats | None = None,
        state: State | None = None,
    ) -> Outcome:
        return _partition(X, k, name, cost, weights, state, group_cost)

    method.__doc__ = f"Partition one column optimally by {name}; its file has the algorithm."
    return method


hansen_mukherjee = _method("hansen-mukherjee")
simple = _method("simple")
simple_plus = _method("simple-plus")
staggered = _method("staggered")
wilber = _method("wilber")
galil_park = _method("galil-park")


def fastest(
    X: Floats, k: int, *, cost: str = "sse", state: State | None = None, **_: object
) -> Outcome:
    """Partition one column optimally by the algorithm that is fastest for this k and n.

    What else ``auto`` takes is about several columns.
    """
    return _partition(X, k, "auto", cost, None, state)


def _partition(
    X: Floats,
    k: int,
    method: str,
    cost: str,
    weights: Floats | None,
    state: State | None,
    group_cost: float | None = None,
) -> Outcome:
    """Sort, cut, label. X has shape (n, 1), raw finite doubles."""
    state = new_state() if state is None else state
    if weights is not None:
        from microagg.algorithms.univariate.weighted import cut_weighted

        cost_number(cost)
        if cost != "sse" or _group_cost(group_cost):
            fact = f"cost={shown(cost)}" if cost != "sse" else "a group_cost"
            raise InputError(
                f"With weights the cost is sse, and groups have no extra cost; got {fact}. Leave it out, or "
                "group without weights."
            )
        return Outcome(cut_weighted(X, weights, k, state))
    order, values = sorted_order(np.ascontiguousarray(X[:, 0]))
    ends = _cut(values, k, method, cost, state, group_cost)
    lost = share_lost(near_one(values)[0], ends)
    del values
    return Outcome(labels_by_row(order, ends), lost=lost)


def share_lost(x: Floats, ends: Labels) -> float:
    """Divide the squared distances to the means of the groups by those to the mean of all (0 if none).

    Sums of some groups at a time are found in threads and added up in the order of the groups.

    >>> share_lost(np.array([1.0, 3.0, 7.0, 9.0]), np.array([2, 4]))
    0.1
    """
    sums = np.zeros((-(-len(ends) // _GROUPS_A_PIECE), 3))
    each(
        lambda at: _add_groups(x, ends, at * _GROUPS_A_PIECE, _GROUPS_A_PIECE, sums[at]), len(sums)
    )
    within, sum_all, squares_all = np.cumsum(sums, axis=0)[-1].tolist()
    total = squares_all - sum_all * sum_all / len(x)
    return within / total if total > 0.0 else 0.0


@lean_kernel
def _add_groups(x, ends, first, count, sums):
    """Add squared distances to the means of some groups; their sum and squares around the middle of all."""
    start, middle = ends[first - 1] if first > 0 else 0, x[x.size // 2]
    for end in ends[first : first + count]:
        base, s1, s2 = x[(start + end) // 2], 0.0, 0.0
        for t in range(start, end):
            y = x[t] - base
            s1 += y
            s2 += y * y
        d = base - middle
        sums[0] += max(s2 - s1 * s1 / (end - start), 0.0)
        sums[1] += s1 + (end - start) * d
        sums[2] += s2 + d * (2.0 * s1 + (end - start) * d)
        start = end


def _cut(
    x: Floats, k: int, method: str, cost: str, state: State, group_cost: object = None
) -> Labels:
    """Find the ends of the groups of sorted values, by the algorithm named or the fastest one."""
    number, n = cost_number(cost), len(x)
    if method not in ALGORITHMS and method != "auto":
        names = listed(["auto", *ALGORITHMS], limit=99)
        raise InputError(f"method={shown(method)} is not known here; choose one of {names}.")
    if group_cost is not None and method not in ("auto", *ANY_SIZE):
        raise InputError(
            f"group_cost needs method {listed(ANY_SIZE)}: {shown(method)} tries only groups of k to "
            "2k−1 records, and with it others may be cheaper."
        )
    extra, width = _group_cost(group_cost), Fraction(float(x[-1])) - Fraction(float(x[0]))
    most = n * width * (width if number == SSE else 1)  # no partition costs more than that
    if n < 2 * k or extra > most:
        state[DONE] = n
        return np.array([n], dtype=np.int64)
    if number == MAX:  # costs.py has twice that cost
        extra *= 2
    if method == "auto":
        method = ANY_SIZE[0] if extra else fastest_plain(k, n)
    return best_ends(ALGORITHMS[method], x, k, number, state, extra)


def fastest_plain(k: int, n: int) -> str:
    """Name the algorithm that is fastest if groups have no extra cost."""
    small = k <= _SIMPLE_PLUS_UP_TO and k * k <= n
    return "simple-plus" if small else "halving"


# A long column in stretches, only some of them in memory, cut as one process would cut it.

_AT_ONCE = 1 << 20  # values written to a file at a time


def cut_stretches(
    sizes: Sequence[int],
    values_of: Callable[[int], Floats],
    k: int,
    cost: str = "sse",
    most: int | None = None,
    folder: Path | None = None,
) -> list[Labels]:
    """Find the ends of the best groups in each of consecutive stretches of sorted values.

    ``sizes`` are those of the stretches, all together at least k; ``values_of`` gives the ascending values of
    one and is called a few times for each; ``k`` and ``cost`` are as in
    :func:`microagg.algorithms.univariate.sorted_cut.cut_sorted`. At most ``most`` stretches are cut at a
    time, by default one a thread; the values of not many more are in memory, wherever their groups meet.
    ``folder`` gets a file for the values of stretches that do not meet. Ends are counted over all values.

    >>> x = np.array([1.0, 2.0, 2.0, 7.0, 8.0, 9.0, 20.0, 21.0])
    >>> parts = np.split(x, [5])
    >>> [ends.tolist() for ends in cut_stretches([5, 3], lambda at: parts[at], 2)]
    [[3], [6, 8]]
    """
    borders = np.append(0, np.cumsum(sizes)).astype(np.int64)

    def values(start: int, end: int) -> Floats:
        within = np.flatnonzero((borders[:-1] < end) & (borders[1:] > start)).tolist()
        return np.concatenate(
            [values_of(at)[max(start - borders[at], 0) : end - borders[at]] for at in within]
        )

    fill, number = ALGORITHMS[fastest_plain(k, max(sizes))], cost_number(cost)
    with TemporaryFile(dir=folder) as file:
        lines = chain(
            np.unique(borders).tolist(),
            values,
            k,
            number,
            fill,
            new_state(),
            joined=_StretchOnDisk(values, file),
            most=most,
        )
    whole = ends_of(lines, int(borders[-1]))
    return np.split(whole, np.searchsorted(whole, borders[1:-1], side="right"))


class _StretchOnDisk:
    """The values of a stretch that goes on over those after it, in a file.

    Groups that do not meet, as on evenly spaced values, may need any of the values before them, but hardly
    ever do. The file is mapped into memory, which the machine can take back while nobody looks.
    """

    def __init__(self, values: Callable[[int, int], Floats], file: IO[bytes]) -> None:
        self._values, self._file = values, file
        self._start = self._end = 0

    def __call__(self, start: int, end: int) -> Floats:
        """Give the values from one column to another; what the file has of them is not read again."""
        if start != self._start:
            self._start = self._end = start
        self._file.seek(8 * (self._end - start))
        while self._end < end:
            following = min(self._end + _AT_ONCE, end)
            self._file.write(self._values(self._end, following).tobytes())
            self._end = following
        self._file.flush()
        # Nobody writes to the copy; an array that cannot be written to has kernels of its own.
        return np.asarray(np.memmap(self._file, np.float64, mode="c", shape=(end - start,)))
