"""Record linkage of a sample to a release larger than memory.

As in :mod:`microagg.measure.linkage`, a record is linked if no released record is nearer to it than its own
twin is, and with a chance of 1/m if m are equally near. All released records are looked at, a batch at
a time, each for the sampled records whose twin is at least as far. Those to which a nearer one was found are
done with.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError
from microagg.kernels.ball_grid import build_grid, count_rivals
from microagg.measure.linkage import Linkage, estimated, radii

__all__ = ["count_nearer", "link_sample", "linkage_of", "merged_rivals"]


def merged_rivals(one: Labels, other: Labels) -> Labels:
    """Put together what :func:`count_nearer` counted in two parts of a release."""
    return np.where((one < 0) | (other < 0), -1, one + other)


def linkage_of(rivals: Labels, records: int) -> Linkage:
    """Linkage of all records, of which some were looked for."""
    return estimated(np.where(rivals > 0, 1.0 / np.maximum(rivals, 1), 0.0), records)


def link_sample(
    sample: Floats,
    twins: Floats,
    released: Iterable[tuple[Floats, Labels | None]],
    records: int,
) -> Linkage:
    """Link sampled original records to all released ones.

    Parameters
    ----------
    sample : (s, d) coordinates of original records; for complete numbers z-scores of the original
    twins : (s, d) coordinates of what was released of each
    released : batches of released rows (m, d) in the same coordinates, with the records that have each row;
        None: one each. A row may come again.
    records : number of original records; if the sample has as many, the result is exact

    Time is about that of one look at each released row while the lists of sampled records fit into
    the cache; memory a batch.

    >>> original = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> twins = np.array([[0.5], [0.5], [6.0], [6.0]])
    >>> link_sample(original, twins, [(np.array([[0.5], [6.0]]), np.array([2, 2]))], 4).share
    0.5
    """
    sample, twins = (np.ascontiguousarray(X, dtype=np.float64) for X in (sample, twins))
    if sample.shape != twins.shape or not len(sample):
        raise InputError(
            "Each sampled record has what was released of it, and there is at least one; the shapes are "
            f"{sample.shape} and {twins.shape}."
        )
    return linkage_of(count_nearer(sample, twins, released), records)


def count_nearer(
    sample: Floats, twins: Floats, released: Iterable[tuple[Floats, Labels | None]]
) -> Labels:
    """Count for each sampled record the released ones as near as its twin; −1: some is nearer."""
    inner, outer = radii(sample, twins)
    count = np.zeros(len(sample), dtype=np.int64)
    grid = None
    alive = len(sample)
    for points, sizes in released:
        left = np.flatnonzero(count >= 0)
        if grid is None or 2 * len(left) <= alive:
            grid, alive = build_grid(sample, outer, left), len(left)
        sizes = np.ones(len(points), np.int64) if sizes is None else sizes
        count_rivals(
            grid,
            sample,
            inner,
            outer,
            np.ascontiguousarray(points, dtype=np.float64),
            np.ascontiguousarray(sizes, dtype=np.int64),
            count,
        )
    return count
