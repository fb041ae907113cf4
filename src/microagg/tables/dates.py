"""Dates and times as whole numbers of their own unit, and back in their own type.

An instant is counted from the earliest of the column, so that nanoseconds of a few decades keep all the
digits that a double has. Dates written as text are read in one of a few formats, the same for the
whole column, and written back in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.typing import Floats, Labels
from microagg.tables.frame_libraries import is_text

# Ways to write dates as text; a day in front is recognised where one is beyond 12.
_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%H:%M:%S",  # of any day
    "%H:%M",
)
# Where Arrow writes each part of a moment.
_PLACES = {
    "%Y": (0, 4),
    "%m": (5, 7),
    "%d": (8, 10),
    "%H": (11, 13),
    "%M": (14, 16),
    "%S": (17, 19),
}
_DAY = 86_400


@dataclass(frozen=True, eq=False)
class Instants:
    """A column of dates as numbers."""

    values: Floats  # Units since the origin; NaN: missing
    origin: int
    format: str | None
    coded: Labels | None = None  # Number of the code that stands in place of a date, −1: none


def instants(column: Any, codes: Sequence[Any] = ()) -> Instants | None:
    """Read ``column``, an Arrow array of dates, times or texts that are dates; None if it is something else.

    ``codes`` are texts that stand for a missing value.

    >>> march = instants(pa.chunked_array([["2024-03-01", None, "2024-03-31"]]))
    >>> march.values.tolist(), march.format
    ([0.0, nan, 30.0], '%Y-%m-%d')
    """
    form, coded = None, None
    if not pa.types.is_temporal(column.type) or pa.types.is_interval(column.type):
        if not is_text(column.type):
            return None
        if codes:
            column, coded = _without_codes(column, codes)
        dates = dates_in_text(column)
        if dates is None:
            return None
        column, form = dates
    numbers = column.cast(_whole_type(column.type))
    missing = np.asarray(numbers.is_null())
    whole = np.asarray(numbers.fill_null(0)).astype(np.int64)
    if form is not None and "%H" not in form:  # days
        whole = whole // _DAY
    origin = int(whole[~missing].min()) if not missing.all() else 0
    # Without a sign, since the first and the last moment of a type are farther apart than it counts.
    values = (whole.view(np.uint64) - np.uint64(origin % 2**64)).astype(np.float64)
    values[missing] = np.nan
    return Instants(values, origin, form, coded)


def first_no_date(column: Any, codes: Sequence[Any] = ()) -> int | None:
    """Find the first text that is a date in none of the known formats; None if all are.

    >>> first_no_date(pa.chunked_array([["2024-03-01", None, "never", "1.4.2024"]]))
    2
    """
    if codes:
        column, _ = _without_codes(column, codes)
    texts = pc.utf8_trim_whitespace(column)
    fine = pc.or_(pc.is_null(texts), pc.equal(texts, ""))
    fine = pc.fill_null(fine, True)
    for form in _FORMATS:
        seen = pc.strptime(texts, format=form, unit="s", error_is_null=True)
        fine = pc.or_(fine, pc.is_valid(seen))
    first = pc.index(fine, pa.scalar(False)).as_py()
    return None if first < 0 else int(first)


def dates_in_text(column: Any) -> tuple[Any, str] | None:
    """Read the texts of ``column`` as dates if all are written in one known way, else return None."""
    if not is_text(column.type):
        return None
    texts = pc.utf8_trim_whitespace(column)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    first = next((text.as_py() for text in texts if text.is_valid), None)
    if first is None or not first[:1].isdigit():
        return None
    begun = pa.array([first], texts.type)  # which rules most formats out
    forms = [form for form in _FORMATS if _read(begun, form) is not None]
    readings = [(seen, form) for form in forms if (seen := _read(texts, form)) is not None]
    # Where day and month could be either, nobody can tell; nothing is guessed.
    return readings[0] if len(readings) == 1 else None


def _read(texts: Any, form: str) -> Any:
    seen = pc.strptime(texts, format=form, unit="s", error_is_null=True)
    # What is written back must be what stood there: 2024-3-1 is not written in this way.
    if seen.null_count > texts.null_count:
        return None
    return None if pc.any(pc.not_equal(written_dates(seen, form), texts)).as_py() else seen


def _without_codes(column: Any, codes: Sequence[Any]) -> tuple[Any, Labels]:
    texts = pc.utf8_trim_whitespace(column)
    spelled = pa.array([str(code).strip() for code in codes], texts.type)
    index = pc.index_in(texts, value_set=spelled)
    coded = np.asarray(pc.fill_null(index, -1)).astype(np.int64)
    return pc.if_else(pc.is_valid(index), pa.scalar(None, texts.type), texts), coded


def _whole_type(kind: Any) -> Any:
    narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    return pa.int32() if narrow else pa.int64()


def to_arrow(values: Floats, kind: Any, origin: int, form: str | None) -> Any:
    """Turn instants back into an Arrow array of a type, rounded to its unit; NaN is null.

    Parameters
    ----------
    values : (n,) instants in the unit of the column, counted from ``origin``
    kind : Arrow type to return
    origin : first instant of the column, in its unit since 1970
    form : how dates are written, if the column is text

    >>> to_arrow(np.array([14.6, np.nan]), pa.string(), 19783, "%Y-%m-%d").to_pylist()
    ['2024-03-16', None]
    """
    missing = np.isnan(values)
    step = 1
    if pa.types.is_date64(kind):
        step = 1000 * _DAY  # milliseconds, of whole days
    away = np.rint(np.where(missing, 0.0, values) / step) * step
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    if np.abs(away).max(initial=0.0) < 2.0**62 and abs(origin) < 2**62:
        whole = np.asarray(origin + away.astype(np.int64), dtype=np.int64)
    else:  # up to the last number that there is
        sums = [min(max(origin + int(days), least), most) for days in away.tolist()]
        whole = np.array(sums, dtype=np.int64)
    if form is None:
        return pa.array(whole, mask=missing).cast(_whole_type(kind)).cast(kind)
    seconds = whole if "%H" in form else whole * _DAY
    stamps = pa.array(seconds, mask=missing).cast(pa.timestamp("s"))
    return written_dates(stamps, form).cast(kind)


def floored(column: Any, period: str) -> Any:
    """Return the beginning of the ``period`` in which each moment of ``column`` is, such as a month.

    >>> noon = pa.array([1_709_294_400], pa.timestamp("s", "UTC"))
    >>> floored(noon, "month").cast(pa.int64()).to_pylist()
    [1709251200]
    """
    kind = plain = column.type
    if pa.types.is_timestamp(kind) and kind.tz == "UTC":  # which Arrow would look up
        plain = pa.timestamp(kind.unit)
        column = column.cast(pa.int64()).cast(plain)
    begun = pc.floor_temporal(column, unit=period).cast(plain)
    return begun if plain == kind else begun.cast(pa.int64()).cast(kind)


def written_dates(stamps: Any, form: str) -> Any:
    """Write ``stamps``, moments in seconds without a zone, in one of the known formats, ``form``.

    Arrow's own strftime looks up the zone UTC in the time zones of the system, which small containers lack.

    >>> written_dates(pa.array([1_709_294_400, None], pa.timestamp("s")), "%d.%m.%Y").to_pylist()
    ['01.03.2024', None]
    """
    text = stamps.cast(pa.string())
    parts = [
        pc.utf8_slice_codeunits(text, *_PLACES[piece]) if piece in _PLACES else pa.scalar(piece)
        for piece in re.findall("%.|[^%]+", form)
    ]
    return pc.binary_join_element_wise(*parts, "")
