"""Distance-based record linkage: how often the nearest protected record is the right one.

Each original record is compared with all protected ones, in z-scores of the original. An attacker
who holds the true values guesses one of the nearest; if the record's own twin is among m equally
near ones, the guess is right with a chance of 1/m. The linkage is the mean of these chances.

An attacker may know more about a record, exactly: columns that were left as they are. Records that
agree in these form a block, and only the protected records of its own block are compared with a record.

Protected rows repeat, so that only the distinct ones of a block are searched, with the
distance to a record's own twin as the radius: in a tree, or one after the other where these or the records
are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import thread_count
from microagg.errors import InputError, shown
from microagg.kernels.labels import group_sizes
from microagg.measure.both_tables import Pair
from microagg.measure.classes import combine
from microagg.plan.settings import FEW_RECORDS

__all__ = ["Linkage", "check_sample", "estimated", "link", "radii", "sample_for"]

# Distances that differ by less than this, relatively, count as equal: they do but for rounding.
_EQUAL = 1e-9
_ROWS_AT_ONCE = 8192
# Up to this many distinct protected rows in a block, looking at each is faster than a tree.
_FEW_POINTS = 256
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
    blocks: Labels | None = None,
    sample: int | None = None,
    random_state: int | None = 0,
    progress: Callable[[int], None] | None = None,
) -> Linkage:
    """Link each original record (or a random sample of them) to the nearest protected ones.

    Parameters
    ----------
    both : the two tables
    blocks : labels 0, 1, … of the records that an attacker can tell apart without the protected columns;
        None: one block
    sample : try this number of records only; None or n and more: all, which is exact
    progress : called now and then with the number of records done

    O(n log n) for few columns; the share of the tree that is visited grows with d.
    """
    n = len(both)
    rows = _sampled_rows(n, sample, random_state)
    blocks = np.zeros(n, dtype=np.int64) if blocks is None else blocks
    credit = _credits(both, blocks, rows, progress)
    return estimated(credit[rows], n)


def estimated(credit: Floats, n: int) -> Linkage:
    """Linkage of n records from the chances of some of them, or of all."""
    share = float(credit.sum() / len(credit))
    if len(credit) == n:
        return Linkage(share, share, share, n, sampled=False)
    low, high = _wilson(share, len(credit))
    # Rounding must not put the share beside its interval.
    return Linkage(share, min(low, share), max(high, share), len(credit), sampled=True)


def radii(records: Floats, twins: Floats) -> tuple[Floats, Floats]:
    """Squared distances, (n,), between which others count as far from a record as its twin is."""
    squared = np.square(records - twins).sum(axis=1)
    return squared * (1 - _EQUAL) ** 2, squared * (1 + _EQUAL) ** 2


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


class _Candidates:
    """The distinct protected rows of each block, those of one block side by side."""

    def __init__(self, both: Pair, blocks: Labels) -> None:
        own = combine([blocks, both.classes])
        first = np.unique(own, return_index=True)[1]
        order = np.argsort(blocks[first], kind="stable")
        self.points = both.encoded[1][first[order]]
        self.sizes = group_sizes(own)[order]  # the records that have this row
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.own = place[own]  # where each record's own row is
        self.ends = np.cumsum(group_sizes(blocks[first]))
        self.starts = np.concatenate([[0], self.ends[:-1]])


def _credits(
    both: Pair, blocks: Labels, rows: Labels, progress: Callable[[int], None] | None
) -> Floats:
    """1/m for each row whose twin is among the m nearest protected records of its block, else 0."""
    from microagg.kernels.kd_tree import WIDTH, KdTree, build, for_thread
    from microagg.kernels.nearer_counts import credit_links, credit_links_by_scan, in_blocks

    Z, twins = both.encoded
    inner, outer = radii(Z, twins)
    among = _Candidates(both, blocks)
    points = in_blocks(among.points)
    credit = np.zeros(len(Z))

    def pieces() -> Iterator[tuple[Labels, KdTree | None, Labels]]:
        """Give rows with a tree of their block and its sizes, or rows of small blocks and all sizes."""
        for some, few in _by_block(rows, blocks, among):
            tree, sizes = None, among.sizes
            order = among.own[some]
            if not few:
                start, end = (bounds[blocks[some[0]]] for bounds in (among.starts, among.ends))
                tree, sizes = (
                    build(among.points[start:end], np.arange(end - start)),
                    sizes[start:end],
                )
                order = tree.leaf_of[order - start]
            # Records of the same part of the tree one after the other find it in the cache.
            some = some[np.argsort(order, kind="stable")]
            for at in range(0, len(some), _ROWS_AT_ONCE):
                yield some[at : at + _ROWS_AT_ONCE], tree, sizes

    def work(piece: tuple[Labels, KdTree | None, Labels]) -> int:
        some, tree, sizes = piece
        if tree is None:
            begin, end = among.starts[blocks[some]], among.ends[blocks[some]]
            own = np.empty(WIDTH)
            credit_links_by_scan(Z, some, inner, outer, points, sizes, begin, end, own, credit)
        else:
            credit_links(Z, some, inner, outer, for_thread(tree), sizes, credit)
        return len(some)

    done = 0
    with ThreadPoolExecutor(thread_count()) as pool:
        try:
            for count in pool.map(work, pieces()):
                done += count
                if progress is not None:
                    progress(done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return credit


def _by_block(rows: Labels, blocks: Labels, among: _Candidates) -> Iterator[tuple[Labels, bool]]:
    """Give the rows of all blocks with few candidates together, then those of each other block."""
    candidates = among.ends - among.starts
    few = (candidates <= (_FEW_POINTS if len(blocks) > FEW_RECORDS else FEW_RECORDS))[blocks[rows]]
    if few.any():
        yield rows[few], True
    if not few.all():
        others = rows[~few][np.argsort(blocks[rows[~few]], kind="stable")]
        for some in np.split(others, np.flatnonzero(np.diff(blocks[others])) + 1):
            yield some, False


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a mean of values from 0 to 1.

    It is made for values of 0 and 1; values between vary less, so that it is wide enough for them.
    """
    z = _NORMAL_975**2 / n
    middle = (share + z / 2) / (1 + z)
    half = np.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z)
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)
