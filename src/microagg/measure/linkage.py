"""Distance-based record linkage: how often the nearest released record is the right one.

Meaning   An attacker who holds the true values of a record compares them with all released records, in the
          space of measure/both_tables.py, and guesses one of the nearest. If the record's own twin is among
          m equally near ones, the guess is right with a chance of 1/m, and never if another is nearer. The
          linkage is the mean of these chances, of all records or of a sample, then with an interval.
Known     An attacker may know more about a record, exactly: columns that were left as they are. Records that
          agree in these form a block, and only released records of its own block are compared with a record.
Counting  Released rows repeat, so that distinct ones are compared, each with its number of records, and the
          distance to a record's own twin is the radius within which others matter. A tree of the rows of
          a block is searched for each record, or they are compared one after the other where they or the
          records are few (:func:`link`). If a release comes in batches, in any order, each batch has its
          tree (:func:`count_near`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import thread_count
from microagg.errors import InputError, shown
from microagg.kernels.labels import combine, group_sizes
from microagg.measure.attack_rates import wilson
from microagg.measure.both_tables import AttackerSpace, Pair
from microagg.plan.settings import FEW_RECORDS

# Distances that differ by less than this, relatively, count as equal: they do but for rounding.
EQUAL = 1e-9
_ROWS_AT_ONCE = 8192
# Up to this many distinct protected rows in a block, looking at each is faster than a tree.
_FEW_POINTS = 256
# Beyond this many records, linkage that nobody asked for by name is estimated from a sample.
_EXACT_UP_TO = 20_000
_SAMPLE = 10_000
SAMPLE_IN_PARTS = 2_000  # of a table that is read in parts; on Spark these come to the driver
_APART = 1e6  # between blocks: no two records are that far apart otherwise


@dataclass(frozen=True)
class Linkage:
    """Share of records linked, with a 95 % interval where it was estimated from a sample."""

    share: float
    low: float
    high: float
    records: int
    """Original records tried; all of them, unless sampled."""
    sampled: bool


class Sought(NamedTuple):
    """Original records that are looked for among all released ones."""

    before: Floats  # (s, c) coordinates for an attacker
    after: Floats  # of what was released of each
    known: Any = None  # (s,) number of the block of each; None: there is one block

    @property
    def radii(self) -> tuple[Floats, Floats]:
        """Squared distances, (s,), between which others count as far from a record as its twin is."""
        squared = np.square(self.before - self.after).sum(axis=1)
        return squared * (1 - EQUAL) ** 2, squared * (1 + EQUAL) ** 2


class ReleasedRows(NamedTuple):
    """Some of the released rows; a row may come again."""

    values: Floats  # (m, d), NaN where missing
    states: Labels  # (m, d)
    sizes: Labels | None = None  # (m,) records that have each row; None: one each
    known: Any = None  # (m,) number of the block of each


def sample_for(n: int, in_parts: bool = False) -> int | None:
    """Size of the sample that is good enough for n records where time matters; None: all."""
    return None if n <= _EXACT_UP_TO else SAMPLE_IN_PARTS if in_parts else _SAMPLE


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
    check_sample(sample)
    rows: Labels | slice = slice(None)
    if sample is not None and sample < n:
        rows = np.sort(np.random.default_rng(random_state).choice(n, sample, replace=False))
    blocks = np.zeros(n, dtype=np.int64) if blocks is None else blocks
    before, after = both.encoded
    sought = Sought(before[rows], after[rows], blocks[rows])
    among = _Candidates(after, combine([blocks, both.equal_rows]), blocks)
    return linkage_of(_count_in_trees(sought, among, among.own[rows], progress), n)


def count_near(space: AttackerSpace, sought: Sought, released: Iterable[ReleasedRows]) -> Labels:
    """Count for each sought record the released ones as near as its twin; −1: some is nearer.

    ``released`` has batches of the released rows, each of which is put into a tree. Memory is that of a
    batch. Counts of parts of a release are put together by :func:`merged_counts`.
    """
    from microagg.kernels.kd_tree import build
    from microagg.kernels.nearer_counts import count_by_tree

    wanted = None if sought.known is None else np.unique(sought.known)
    before = _with_block(sought.before, sought.known, wanted)
    inner, outer = sought.radii
    count = np.zeros(len(before), dtype=np.int64)
    for values, states, sizes, known in released:
        at = slice(None) if wanted is None else np.flatnonzero(np.isin(known, wanted))
        points = _with_block(space.place(values[at], states[at]), known, wanted, at)
        left = np.flatnonzero(count >= 0)
        if not len(points) or not len(left):
            continue
        often = np.ones(len(points), np.int64) if sizes is None else sizes[at].astype(np.int64)
        tree, of_batch = build(points, np.arange(len(points))), np.zeros_like(count)
        count_by_tree(before, left, inner, outer, tree, often, of_batch)
        count = merged_counts(count, of_batch)
    return count


def merged_counts(one: Labels, other: Labels) -> Labels:
    """Put together what :func:`count_near` counted in two parts of a release."""
    return np.where((one < 0) | (other < 0), -1, one + other)


def linkage_of(count: Labels, n: int) -> Linkage:
    """Linkage of n records from the number of those as near to each sought record as its own twin.

    A number of 0 or below: another one is nearer.

    >>> linkage_of(np.array([2, 1, -1, 2]), 4).share
    0.5
    """
    tried = len(count)
    share = float(np.where(count > 0, 1.0 / np.maximum(count, 1), 0.0).sum() / tried)
    low, high = (share, share) if tried == n else wilson(share, tried)
    return Linkage(share, low, high, tried, sampled=tried < n)


def check_sample(sample: int | None) -> None:
    """Refuse a sample of no record."""
    if sample is not None and (isinstance(sample, bool) or sample < 1):
        raise InputError(
            f"A sample for the record linkage needs at least one record; got {shown(sample)}."
        )


def _with_block(X: Floats, known: Any, wanted: Any, at: Any = slice(None)) -> Floats:
    """Add a coordinate that puts records of different blocks so far apart that none is near another."""
    if wanted is None:
        return X
    return np.column_stack([X, np.searchsorted(wanted, known[at]) * _APART])


class _Candidates:
    """The distinct protected rows of each block, those of one block side by side."""

    def __init__(self, after: Floats, rows: Labels, blocks: Labels) -> None:
        """Take the coordinates, the class of equal rows and the block of each released record."""
        first = np.unique(rows, return_index=True)[1]
        order = np.argsort(blocks[first], kind="stable")
        self.points = after[first[order]]
        self.sizes = group_sizes(rows)[order]  # the records that have this row
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        self.own = position[rows]  # where each record's own row is
        self.ends = np.cumsum(group_sizes(blocks[first]))
        self.starts = np.concatenate([[0], self.ends[:-1]])
        # Up to this many rows of a block are compared one after the other.
        self.few = _FEW_POINTS if len(rows) > FEW_RECORDS else FEW_RECORDS


def _count_in_trees(
    sought: Sought, among: _Candidates, own: Labels, progress: Callable[[int], None] | None
) -> Labels:
    """Do what :func:`count_near` does where all released rows are in memory."""
    from microagg.kernels.kd_tree import WIDTH, KdTree, build, for_thread
    from microagg.kernels.nearer_counts import count_by_scan, count_by_tree, in_blocks

    Z, blocks = sought.before, sought.known
    inner, outer = sought.radii
    points = in_blocks(among.points)
    counts = np.zeros(len(Z), dtype=np.int64)

    def pieces() -> Iterator[tuple[Labels, KdTree | None, Labels]]:
        """Give rows with a tree of their block and its sizes, or rows of small blocks and all sizes."""
        for some, few in _by_block(blocks, among):
            tree, sizes = None, among.sizes
            order = own[some]
            if not few:
                start, end = (bounds[blocks[some[0]]] for bounds in (among.starts, among.ends))
                tree = build(among.points[start:end], np.arange(end - start))
                sizes, order = sizes[start:end], tree.leaf_of[order - start]
            # Records of the same part of the tree one after the other find it in the cache.
            some = some[np.argsort(order, kind="stable")]
            for at in range(0, len(some), _ROWS_AT_ONCE):
                yield some[at : at + _ROWS_AT_ONCE], tree, sizes

    def work(piece: tuple[Labels, KdTree | None, Labels]) -> int:
        some, tree, sizes = piece
        if tree is None:
            begin, end = among.starts[blocks[some]], among.ends[blocks[some]]
            distance = np.empty(WIDTH)
            count_by_scan(Z, some, inner, outer, points, sizes, begin, end, distance, counts)
        else:
            count_by_tree(Z, some, inner, outer, for_thread(tree), sizes, counts)
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
    return counts


def _by_block(blocks: Labels, among: _Candidates) -> Iterator[tuple[Labels, bool]]:
    """Give the records of all blocks with few candidates together, then those of each other block."""
    few = (among.ends - among.starts <= among.few)[blocks]
    if few.any():
        yield np.flatnonzero(few), True
    if not few.all():
        others = np.flatnonzero(~few)
        others = others[np.argsort(blocks[others], kind="stable")]
        for some in np.split(others, np.flatnonzero(np.diff(blocks[others])) + 1):
            yield some, False
