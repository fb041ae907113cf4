"""Losses of a table that is read in parts: squares are added up chunk by chunk, and shared out at the end.

The squares are those of :mod:`microagg.measure.column_losses`; only what is known of the whole column, its
centre and its total, comes from the summary of the table. So every engine means the same by a loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import Corners
from microagg.encode.number import NumberEncoder
from microagg.encode.recode import Recoder
from microagg.encode.recoded_table import level_places, loss_by_recoding, places_of_released
from microagg.engines.encoding import Coder, Encoding
from microagg.engines.table_summary import TableSummary
from microagg.measure.column_losses import category_shares, depths_of, number_squares

_UNORDERED = ("boolean", "nominal", "hierarchy")


class Loss(NamedTuple):
    """A loss in percent, of all columns together and of each."""

    overall: float
    by_column: dict[Any, float]


def column_squares(
    coder: Coder, x: Floats, y: Floats, labels: Labels, weights: Floats
) -> tuple[float, float]:
    """Squares of one column over the records of a chunk, in coordinates: within groups, to what is released.

    Only records with an original value ``x`` count; a released value ``y`` that is missing is at the mean.
    """
    there = ~np.isnan(x)
    if not there.any():
        return 0.0, 0.0
    x, y, labels, weights = x[there], y[there], labels[there], weights[there]
    if coder.recoder is not None:
        return _recoded_squares(coder, coder.recoder, x, y, labels, weights)
    if coder.kind in _UNORDERED:
        # From the categories: the coordinates of many levels are projected and distort distances.
        depths, above = depths_of(coder.variable)
        level = x.astype(np.int64)
        shares = category_shares(depths, above, coder.often, level, y, labels, weights)
        within, released = shares or (0.0, 0.0)
        unit = _total_of_corners(coder)
        return within * unit, released * unit
    before = coder.encoder.apply(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        after = coder.encoder.apply(y)
    nothing = np.isnan(y) | ~np.isfinite(after).all(axis=1)
    after[nothing] = np.nan
    return number_squares(before, after, labels, weights, np.zeros(before.shape[1]))


def _recoded_squares(
    coder: Coder, recoder: Recoder, x: Floats, y: Floats, labels: Labels, weights: Floats
) -> tuple[float, float]:
    """Return the same of a recoded column against the original, whose squares are its values less one."""
    if coder.levels:
        known = [*recoder.levels, *recoder.merged()[0]]
        y = places_of_released(y, level_places(recoder, coder.levels, known))
    unit = _present(recoder)
    if recoder.how.kinds[0] == "nominal":
        mass = np.array([recoder.parts[level].weight for level in recoder.levels])
        merged, above = recoder.merged()
        depths, level = [np.arange(len(mass))], x.astype(np.int64)
        often = mass / coder.mean_weight
        shares = category_shares(
            depths, above if merged else None, often, level, y, labels, weights
        )
        within, released = shares or (0.0, 0.0)
    else:
        total = recoder.every.squares / coder.mean_weight
        unit = unit / total if total > 0 else 0.0
        centre = np.array([recoder.every.mean])
        within, released = number_squares(x[:, None], y[:, None], labels, weights, centre)
    return within * unit, released * unit


def _present(recoder: Recoder) -> float:
    """Return the number of values of the original less one; 0 where nothing varies."""
    if recoder.how.kinds[0] == "nominal":
        return (
            sum(part.count for part in recoder.parts.values()) - 1 if len(recoder.parts) > 1 else 0
        )
    return recoder.every.count - 1 if recoder.every.squares > 0 else 0


def total_squares(encoding: Encoding, summary: TableSummary) -> Floats:
    """Squares of each column about its mean, in coordinates and without its importance."""
    totals = np.zeros(len(encoding.coders))
    for j, (coder, present) in enumerate(
        zip(encoding.coders, inertia(encoding, summary), strict=True)
    ):
        if not present:
            continue
        if coder.recoder is not None:
            totals[j] = present
        elif coder.levels:
            totals[j] = _total_of_corners(coder)
        elif isinstance(coder.encoder, NumberEncoder):
            column = summary.columns[coder.name]
            moments = column.moments if column.transform is None else column.transformed
            scaling = coder.encoder.scaling
            factor = float(np.ldexp(1.0, -int(scaling.exponent[0])) / scaling.spread[0])
            totals[j] = moments.squares / encoding.mean_weight * factor**2
        else:
            totals[j] = present
    return totals


def _total_of_corners(coder: Coder) -> float:
    """Squares of all records about their mean, where each level of a category is a point."""
    assert isinstance(coder.encoder, Corners)
    points = coder.encoder.points[: len(coder.often)]  # nodes of a hierarchy come after the levels
    return float(coder.often @ np.square(points).sum(axis=1))


def inertia(encoding: Encoding, summary: TableSummary) -> Floats:
    """Return the number of values of each column less one, by which columns count; 0 where nothing varies."""
    counts = np.zeros(len(encoding.coders))
    for j, coder in enumerate(encoding.coders):
        if coder.recoder is not None:
            counts[j] = _present(coder.recoder)
            continue
        column = summary.columns[coder.name]
        present = sum(column.levels.values()) if coder.levels else column.moments.count
        varies = (
            len(column.levels) > 1 if coder.levels else column.moments.low < column.moments.high
        )
        counts[j] = present - 1 if varies else 0
    return counts


def loss_of(encoding: Encoding, summary: TableSummary, squares: Floats) -> Loss:
    """Share out squares that :func:`column_squares` gave for each column, added up over all chunks."""
    totals = total_squares(encoding, summary)
    each = 100 * np.divide(squares, totals, out=np.zeros(len(totals)), where=totals > 0)
    counts = np.array([coder.setting.importance for coder in encoding.coders])
    counts = counts * inertia(encoding, summary)
    names = [coder.name for coder in encoding.coders]
    for name, recoder in encoding.recoders.items():
        if name not in names:  # a stratum, or a column left as it is
            lost, weight = loss_by_recoding(recoder)
            names.append(name)
            each, counts = np.append(each, 100 * lost), np.append(counts, weight)
    overall = float(each @ counts / counts.sum()) if counts.sum() > 0 else 0.0
    return Loss(overall, dict(zip(names, each.tolist(), strict=True)))
