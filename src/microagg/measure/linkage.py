"""Distance-based record linkage: how often the nearest released record is the right one.

Meaning   An attacker who holds the true values of a record compares them with all released records, in the
          space of measure/both_tables.py, and guesses one of the nearest. If the record's own twin is among
          m equally near ones, the guess is right with a chance of 1/m, and never if another is nearer. The
          linkage is the mean of these chances, of all records or of a sample, then with an interval.
Known     An attacker may know more about a record, exactly: columns that were left as they are. Records that
          agree in these form a block, and only released records of its own block are compared with a record.
Counting  Released rows repeat, so that distinct ones are compared, each with its number of records, and the
          distance to a record's own twin is the radius within which others matter. A release comes in
          batches, in any order, in memory as one; each has a tree, which is searched for each record, or
          is compared row by row where it has few (:func:`count_near`). Blocks are one coordinate more, in
          which they lie far apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_with_helpers
from microagg.errors import InputError, shown
from microagg.kernels.labels import combine
from microagg.measure.attack_rates import wilson
from microagg.measure.both_tables import AttackerSpace, Pair
from microagg.plan.settings import FEW_RECORDS

# Distances that differ by less than this, relatively, count as equal: they do but for rounding.
EQUAL = 1e-9
_ROWS_AT_ONCE = 8192
# Beyond this many records, linkage that nobody asked for by name is estimated from a sample.
_EXACT_UP_TO = 20_000
_SAMPLE = 10_000
SAMPLE_IN_PARTS = 2_000  # of a table that is read in parts; on Spark these come to the driver
_APART = 1e110  # between blocks: no two records are that far apart otherwise, see both_tables.FAR


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

    values: Floats  # (m, d), NaN where missing; or (m, c) coordinates
    states: Labels | None  # (m, d); None: values are coordinates
    sizes: Labels | None = None  # (m,) records that have each row; None: one each
    known: Any = None  # (m,) number of the block of each


def sample_for(n: int, in_parts: bool = False) -> int | None:
    """Size of the sample that is good enough for ``n`` records where time matters; None: all.

    ``in_parts`` says that the table is read in parts.
    """
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
    before, after = both.encoded
    labels = both.equal_rows if blocks is None else combine([blocks, both.equal_rows])
    _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    known = (None, None) if blocks is None else (blocks[rows], blocks[first])
    sought = Sought(before[rows], after[rows], known[0])
    released = ReleasedRows(after[first], None, sizes, known[1])
    return linkage_of(count_near(None, sought, [released], progress), n)


def count_near(
    space: AttackerSpace | None,
    sought: Sought,
    released: Iterable[ReleasedRows],
    progress: Callable[[int], None] | None = None,
) -> Labels:
    """Count for each sought record the released ones as near as its twin; −1: some is nearer.

    Memory is that of a batch. Counts of parts of a release are put together by :func:`merged_counts`.

    Parameters
    ----------
    space : how released values become coordinates; None: they are coordinates
    sought : the s records
    released : batches of the released rows
    progress : called now and then with the number of records done, of a batch

    Returns
    -------
    (s,) int64, the caller's
    """
    wanted = None if sought.known is None else np.unique(sought.known)
    before = _with_block(sought.before, sought.known, wanted)
    count = np.zeros(len(before), dtype=np.int64)
    for values, states, sizes, known in released:
        at = slice(None) if wanted is None else np.flatnonzero(np.isin(known, wanted))
        points = values[at]
        if space is not None and states is not None:
            points = space.place(points, states[at])
        points = _with_block(points, None if known is None else known[at], wanted)
        remaining = np.flatnonzero(count >= 0)
        if not len(points) or not len(remaining):
            continue
        often = np.ones(len(points), np.int64) if sizes is None else sizes[at].astype(np.int64)
        near = _count_in_batch(before, remaining, sought.radii, points, often, progress)
        count = merged_counts(count, near)
    return count


def _count_in_batch(
    before: Floats,
    remaining: Labels,
    radii: tuple[Floats, Floats],
    points: Floats,
    sizes: Labels,
    progress: Callable[[int], None] | None,
) -> Labels:
    """Count the points near each remaining record, in threads; 0 for the other records."""
    from microagg.kernels.attack_loops import count_by_scan, count_by_tree
    from microagg.kernels.kd_tree import build, for_thread

    tree = build(points, np.arange(len(points))) if sizes.sum() > FEW_RECORDS else None
    count = np.zeros(len(before), dtype=np.int64)

    def work(begin: int, end: int, thread: int) -> None:
        rows = remaining[begin:end]
        if tree is None:
            count_by_scan(before, rows, *radii, points, sizes, count)
        else:
            count_by_tree(before, rows, *radii, for_thread(tree), sizes, count)
        if progress is not None and thread == 0:
            progress(end)

    share_with_helpers(work, len(remaining), at_once=_ROWS_AT_ONCE)
    if progress is not None:
        progress(len(remaining))
    return count


def merged_counts(first: Labels, second: Labels) -> Labels:
    """Put together ``first`` and ``second``, which :func:`count_near` counted in two parts of a release."""
    return np.where((first < 0) | (second < 0), -1, first + second)


def linkage_of(count: Labels, n: int) -> Linkage:
    """Linkage of ``n`` records from the number of those as near to each sought record as its own twin.

    ``count`` (s,) has these numbers; 0 or below: another one is nearer.

    >>> linkage_of(np.array([2, 1, -1, 2]), 4).share
    0.5
    """
    tried = len(count)
    share = float(np.where(count > 0, 1.0 / np.maximum(count, 1), 0.0).sum() / tried)
    low, high = (share, share) if tried == n else wilson(share, tried)
    return Linkage(share, low, high, tried, sampled=tried < n)


def check_sample(sample: int | None) -> None:
    """Refuse a ``sample`` of no record."""
    if sample is not None and (isinstance(sample, bool) or sample < 1):
        raise InputError(
            f"A sample for the record linkage needs at least one record; got {shown(sample)}."
        )


def _with_block(X: Floats, known: Any, wanted: Any) -> Floats:
    """Add a coordinate that puts records of different blocks so far apart that none is near another."""
    if wanted is None:
        return X
    return np.column_stack([np.searchsorted(wanted, known) * _APART, X])
