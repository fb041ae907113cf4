"""Distance-based record linkage: how often the nearest protected record is the right one.

Each original record is compared with all protected ones, in z-scores of the original. An attacker
who holds the true values guesses one of the nearest; if the record's own twin is among m equally
near ones, the guess is right with a chance of 1/m. The linkage is the mean of these chances.

Protected rows repeat, so that only the distinct ones are searched: a tree holds
them, and a record's search starts with the distance to its own twin as the radius.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from microagg.errors import InputError, shown
from microagg.groups import Floats, Labels, group_sizes
from microagg.measure.pairs import Pair

__all__ = ["Linkage", "check_sample", "link", "sample_for"]

# Distances that differ by less than this, relatively, count as equal: they do but for rounding.
_EQUAL = 1e-9
_ROWS_AT_ONCE = 8192
# Beyond this many records, linkage that nobody asked for by name is estimated from a sample.
_EXACT_UP_TO = 20_000
_SAMPLE = 10_000
# The 97.5 % quantile of the normal distribution, for intervals of 95 %.
_NORMAL_975 = 1.959963984540054


@dataclass(frozen=True)
class Linkage:
    """Share of records linked, with a 95 % interval where it was estimated from a sample."""

    share: float
    low: float
    high: float
    records: int
    """Original records tried; all of them, unless sampled."""
    sampled: bool


def sample_for(n: int) -> int | None:
    """Size of the sample that is good enough for n records where time matters; None: all."""
    return None if n <= _EXACT_UP_TO else _SAMPLE


def link(
    both: Pair,
    *,
    sample: int | None = None,
    random_state: int | None = 0,
    progress: Callable[[int], None] | None = None,
) -> Linkage:
    """Link each original record (or a random sample of them) to the nearest protected ones.

    Parameters
    ----------
    both : the two tables
    sample : try so many records only; None or n and more: all, which is exact
    progress : called now and then with the number of records done

    O(n log n) for few columns; the share of the tree that is visited grows with d.
    """
    n = len(both)
    rows = _sampled_rows(n, sample, random_state)
    credit = _credits(*both.scaled, both.classes, rows, progress)
    share = float(credit[rows].sum() / len(rows))
    if len(rows) == n:
        return Linkage(share, share, share, n, sampled=False)
    low, high = _wilson(share, len(rows))
    return Linkage(share, low, high, len(rows), sampled=True)


def check_sample(sample: int | None) -> None:
    """Refuse a sample of no record."""
    if sample is not None and (isinstance(sample, bool) or sample < 1):
        raise InputError(
            f"A sample for the record linkage needs at least one record; got {shown(sample)}."
        )


def _sampled_rows(n: int, sample: int | None, random_state: int | None) -> Labels:
    check_sample(sample)
    if sample is None or sample >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, sample, replace=False))


def _credits(
    Z: Floats, twins: Floats, own: Labels, rows: Labels, progress: Callable[[int], None] | None
) -> Floats:
    """1/m for each row whose twin is among the m nearest protected records, else 0."""
    from microagg.kernels.kd_tree import build, for_thread
    from microagg.kernels.rivals import credit_links

    points = twins[np.unique(own, return_index=True)[1]]
    sizes = group_sizes(own)
    tree = build(points, np.arange(len(points)))
    squared = np.square(Z - twins).sum(axis=1)
    inner, outer = squared * (1 - _EQUAL) ** 2, squared * (1 + _EQUAL) ** 2
    # Records of the same part of the tree one after the other find it in the cache.
    rows = rows[np.argsort(tree.leaf_of[own[rows]], kind="stable")]
    credit = np.zeros(len(Z))

    def work(some: Labels) -> int:
        credit_links(Z, some, inner, outer, for_thread(tree), sizes, credit)
        return len(some)

    parts = (rows[at : at + _ROWS_AT_ONCE] for at in range(0, len(rows), _ROWS_AT_ONCE))
    done = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for count in pool.map(work, parts):
                done += count
                if progress is not None:
                    progress(done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return credit


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a mean of values from 0 to 1.

    It is made for values of 0 and 1; values between vary less, so that it is wide enough for them.
    """
    z = _NORMAL_975**2 / n
    middle = (share + z / 2) / (1 + z)
    half = np.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z)
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)
