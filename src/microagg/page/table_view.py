"""A table as the page shows it before any work, as plain data; made by the worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from microagg.base.typing import Floats
from microagg.drafting.infer import guess
from microagg.drafting.profile import Profile, profiles
from microagg.errors import InputError, shown
from microagg.formats.files import Source
from microagg.tables.frame import Frame

_BINS = 16
_MIDDLE = (0.01, 0.99)  # what lies farther out is counted in the outermost bins
_ROWS = 12
_LONGEST = 80  # characters of a value in the preview
_LABELS = 60  # of values that are listed
_POINTS = 1500  # in a scatter, before and after each


def about_columns(table: Frame, missing_words: Sequence[str] = ("",)) -> list[dict[str, Any]]:
    """Describe each column: counts, the heights of a small histogram, the draft's role and reason."""
    guesses, columns = guess(table, missing_words=missing_words), []
    for name, profile in profiles(table, missing_words=missing_words):
        drafted = guesses[name]
        columns.append(
            {
                "name": str(name),
                "label": profile.facts.label or "",
                "value_labels": [
                    (f"{value:g}" if isinstance(value, float) else str(value), label)
                    for value, label in profile.facts.value_labels[:_LABELS]
                ],
                "more_labels": max(len(profile.facts.value_labels) - _LABELS, 0),
                "type": profile.type,
                "missing": profile.missing,
                "distinct": profile.distinct,
                "bars": _bars(table, name, profile, missing_words),
                **{key: getattr(drafted, key) for key in ("role", "looks_like", "kind", "reason")},
            }
        )
    return columns


def _bars(table: Frame, name: Any, profile: Profile, missing_words: Sequence[str]) -> list[int]:
    """Count numbers in bins of equal width, and other values by frequency."""
    numbers = profile.numbers
    if numbers is not None and len(numbers.levels) > _BINS:
        weights = np.cumsum(numbers.counts) / numbers.counts.sum()
        low, high = numbers.levels[np.searchsorted(weights, _MIDDLE)].tolist()
        if high > low:
            clipped = np.clip(numbers.levels, low, high)
            counts, _ = np.histogram(
                clipped, _BINS, (low, high), weights=numbers.counts.astype(float)
            )
            return [int(count) for count in counts]
    if numbers is not None:
        return [int(count) for count in numbers.counts[:_BINS]]
    if profile.type == "nested" or not profile.present:
        return []
    counted = pc.value_counts(table.arrow_column(name).drop_null())
    is_missing = [value in missing_words for value in counted.field("values").to_pylist()]
    counts = counted.field("counts").to_numpy()[~np.array(is_missing, bool)]
    return [int(count) for count in np.sort(counts)[::-1][:_BINS]]


def first_rows(source: Source) -> dict[str, Any]:
    """Return the first records as they are written in the file."""
    head = source.as_written.slice(0, _ROWS)
    names = [str(name) for name in head.column_names]
    columns = [[_cell(value) for value in column.to_pylist()] for column in head.columns]
    return {"names": names, "rows": [list(row) for row in zip(*columns, strict=True)]}


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def two_columns(before: Frame, after: Frame, x: str, y: str) -> dict[str, Any]:
    """Return evenly chosen records of two numeric columns, before and after."""
    points = {}
    for when, table in (("before", before), ("after", after)):
        both = np.column_stack([_numbers(table, name) for name in (x, y)])
        both = both[np.isfinite(both).all(axis=1)]
        step = max(len(both) // _POINTS, 1)
        points[when] = both[::step][:_POINTS].tolist()
    return points


def _numbers(table: Frame, name: str) -> Floats:
    if name not in table.names:
        raise InputError(f"The table has no column {shown(name)} any more. Choose another column.")
    if table.is_numeric(name):
        return table.doubles(name)
    raise InputError(
        f"A scatter shows two numeric columns; {shown(name)} has no numbers. Choose another column."
    )
