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

import warnings
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module

import numpy as np
from numpy.typing import ArrayLike

from microagg.algorithms.result import Outcome
from microagg.algorithms.univariate.chain import Fill, best_ends
from microagg.algorithms.univariate.exact import MAX, SSE
from microagg.algorithms.univariate.line import COSTS, NOTHING, Extra, near_one
from microagg.algorithms.univariate.order import labels_by_row, sorted_order
from microagg.base.progress import DONE, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.no_refcount import lean_kernel
from microagg.compile.threads import each
from microagg.encode.prepare import prepare
from microagg.errors import DisclosureRiskWarning, InputError, listed, shown
from microagg.plan.settings import as_number, check_count

# Name of a method -> module and function that fill a line.
ALGORITHMS = {
    "hansen-mukherjee": ("hansen_mukherjee", "hansen_mukherjee"),
    "simple": ("simple", "simple"),
    "simple-plus": ("simple", "simple_plus"),
    "staggered": ("staggered", "staggered"),
    "wilber": ("wilber", "wilber"),
    "galil-park": ("galil_park", "galil_park"),
    "halving": ("halving", "halving"),
}
# Those that need no largest size of a group, the fastest first.
ANY_SIZE = ("wilber", "galil-park")

# Groups whose sums are found at a time, and by one thread.
_GROUPS_AT_ONCE, _GROUPS_A_PIECE = 1 << 18, 1 << 14

# Measured on uniform data: simple+ is faster than halving for k up to this and up to 2√n.
_SIMPLE_PLUS_UP_TO = 600


def cut_sorted(
    x: ArrayLike,
    k: int,
    method: str = "auto",
    cost: str | Callable[[Floats], float] = "sse",
    *,
    group_cost: float | None = None,
    max_groups: int | None = None,
    size_penalty: float | None = None,
    splitting_is_beneficial: bool = False,
) -> Labels:
    """Cut ascending values into groups of at least k at the least cost.

    Parameters
    ----------
    x : array-like of shape (n,), ascending and finite, n ≥ k
    k : int, at least 1
    method : "auto" or the name of a univariate algorithm; all give the same groups
    cost : "sse", "sae", "max", "round-up" or "round-down", or a function of a group's values
        A function is called O(n²) times, or O(kn) times with ``splitting_is_beneficial``:
        if cutting a group of 2k or more in two never costs more.
    group_cost : float, optional
        Extra cost of each group, in the unit of the cost of the values as they are; groups may
        then be of any size from k on, and the method is "wilber" or "galil-park".
    max_groups : int, optional
        Largest number of groups.
    size_penalty : float, optional
        Allow groups under k, at this much for each record that they lack, by the same methods. That
        is no k-anonymity any more, and a DisclosureRiskWarning says so.

    Returns
    -------
    int64 array: the end of each group; group g is ``x[ends[g-1]:ends[g]]``. The optimum
    for the doubles given, with ``max_groups`` too; of equal ones, the one with the larger last
    groups. Costs of one's own are added up as doubles, so there it is the optimum up to rounding.

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
    if max_groups is not None or callable(cost):
        other = method != "auto" or group_cost is not None or size_penalty is not None
        if other or (max_groups is not None and callable(cost)):
            raise InputError(
                "max_groups, and a function as cost, are variants of the problem with an algorithm of "
                "their own; use one of them alone and leave the method out."
            )
        from microagg.algorithms.univariate import other_problems as variants

        if callable(cost):
            return variants.cut_with_own_cost(values, k, cost, splitting_is_beneficial)
        most = check_count("max_groups", max_groups)
        return variants.cut_into_at_most(values, k, cost_number(cost), most)
    ends = _cut(values, k, method, cost, new_state(), group_cost, size_penalty)
    if size_penalty is not None:
        warnings.warn(
            "size_penalty allows groups of fewer than k records: the result need not be k-anonymous.",
            DisclosureRiskWarning,
            stacklevel=2,
        )
    return ends


def cost_number(cost: str) -> int:
    """Return the number of a cost in the kernels; refuse what is none."""
    if not isinstance(cost, str) or cost not in COSTS:
        raise InputError(f"cost={shown(cost)} is not known; choose one of {listed(COSTS)}.")
    return COSTS[cost]


def _extra(x: Floats, k: int, cost: int, group_cost: object, size_penalty: object) -> Extra | None:
    """Return the extra cost of groups; None if it is so high that one group is best.

    A penalty so high that no group will ever lack records is left out.
    """
    group = _fraction("group_cost", group_cost) or Fraction(0)
    lack = _fraction("size_penalty", size_penalty)
    if not group and lack is None:
        return NOTHING
    most = Fraction(float(x[-1])) - Fraction(float(x[0]))
    most *= len(x) * (most if cost == SSE else 1)  # no partition costs more than that
    if group > most:
        return None
    if lack is not None and lack > most + group:
        lack = None
    if cost == MAX:  # costs.py has twice that cost
        group, lack = 2 * group, None if lack is None else 2 * lack
    return Extra(k, group, lack) if group or lack is not None else NOTHING


def _fraction(name: str, given: object) -> Fraction | None:
    if given is None:
        return None
    number = as_number(given)
    if number is None or not 0 <= number < np.inf:
        raise InputError(f"{name} must be a finite number of at least 0; got {shown(given)}.")
    return Fraction(number)


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

        _check_weighable(cost, group_cost)
        return Outcome(cut_weighted(X, weights, k, state))
    order, values = sorted_order(np.ascontiguousarray(X[:, 0]))
    ends = _cut(values, k, method, cost, state, group_cost)
    lost = share_lost(near_one(values)[0], ends)
    del values
    return Outcome(labels_by_row(order, ends), lost=lost)


def _check_weighable(cost: str, group_cost: object) -> None:
    """Refuse what has no weighted version."""
    cost_number(cost)
    extra = _fraction("group_cost", group_cost)
    if cost != "sse" or extra:
        fact = f"cost={shown(cost)}" if cost != "sse" else "a group_cost"
        raise InputError(
            f"With weights the cost is sse, and groups have no extra cost; got {fact}. Leave it out, or "
            "group without weights."
        )


def share_lost(x: Floats, ends: Labels) -> float:
    """Divide the squared distances to the means of the groups by those to the mean of all (0 if none).

    Sums of the groups are found in threads and added up in the order of the groups.

    >>> share_lost(np.array([1.0, 3.0, 7.0, 9.0]), np.array([2, 4]))
    0.1
    """
    room = np.empty((3, min(len(ends), _GROUPS_AT_ONCE)))
    within = sum_all = squares_all = 0.0
    for first in range(0, len(ends), _GROUPS_AT_ONCE):
        sums = room[:, : len(ends) - first]

        def find(piece: int, first: int = first, sums: Floats = sums) -> None:
            begin = piece * _GROUPS_A_PIECE
            _sums_of_groups(x, ends, first + begin, sums[:, begin : begin + _GROUPS_A_PIECE])

        each(find, -(-sums.shape[1] // _GROUPS_A_PIECE))
        sums[:, 0] += within, sum_all, squares_all
        within, sum_all, squares_all = np.add.accumulate(sums, axis=1)[:, -1].tolist()
    total = squares_all - sum_all * sum_all / len(x)
    return within / total if total > 0.0 else 0.0


@lean_kernel
def _sums_of_groups(x, ends, first, sums):
    """Squared distances to the mean of each group; sum and squares around the middle of all."""
    start, middle = ends[first - 1] if first > 0 else 0, x[x.size // 2]
    for g in range(sums.shape[1]):
        end = ends[first + g]
        base, s1, s2 = x[(start + end) // 2], 0.0, 0.0
        for t in range(start, end):
            y = x[t] - base
            s1 += y
            s2 += y * y
        d = base - middle
        sums[0, g] = max(s2 - s1 * s1 / (end - start), 0.0)
        sums[1, g] = s1 + (end - start) * d
        sums[2, g] = s2 + d * (2.0 * s1 + (end - start) * d)
        start = end


def _cut(
    x: Floats,
    k: int,
    method: str,
    cost: str,
    state: State,
    group_cost: object = None,
    size_penalty: object = None,
) -> Labels:
    """Find the ends of the groups of sorted values, by the algorithm named or the fastest one."""
    number, n = cost_number(cost), len(x)
    if method not in ALGORITHMS and method != "auto":
        names = listed(["auto", *ALGORITHMS], limit=99)
        raise InputError(f"method={shown(method)} is not known here; choose one of {names}.")
    for option, setting in (("group_cost", group_cost), ("size_penalty", size_penalty)):
        if setting is not None and method not in ("auto", *ANY_SIZE):
            raise InputError(
                f"{option} needs method {listed(ANY_SIZE)}: {shown(method)} tries only groups of k to "
                "2k−1 records, and with it others may be cheaper."
            )
    extra = _extra(x, k, number, group_cost, size_penalty)
    if extra is None or (n < 2 * k and extra.lack is None):
        state[DONE] = n
        return np.array([n], dtype=np.int64)
    if method == "auto":
        method = _fastest_plain(k, n) if extra == NOTHING else ANY_SIZE[0]
    return best_ends(_fill(method), x, k, number, state, extra)


def plain_fill(k: int, n: int) -> Fill:
    """Return the algorithm that is fastest if groups have no extra cost."""
    return _fill(_fastest_plain(k, n))


def _fill(method: str) -> Fill:
    module, name = ALGORITHMS[method]
    algorithm: Fill = getattr(import_module(f"microagg.algorithms.univariate.{module}"), name)
    return algorithm


def _fastest_plain(k: int, n: int) -> str:
    """Name the algorithm that is fastest if groups have no extra cost."""
    small = k <= _SIMPLE_PLUS_UP_TO and k * k <= 4 * n
    return "simple-plus" if small else "halving"
