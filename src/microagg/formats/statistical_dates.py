"""Dates and times as statistical packages count them.

SPSS counts seconds since 14 October 1582, SAS and Stata days, seconds or milliseconds since 1960; the
format of a column says which. A column becomes dates or times of Arrow only where each value
comes back as the very same number; else it stays numbers, and nothing is lost.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

_SPSS_TO_1970 = 12_219_379_200  # seconds
_SAS_TO_1970 = 3_653  # days
_DAY = 86_400


class _Count(NamedTuple):
    """How a package counts: units a day, what 1970 is, and the Arrow type."""

    units_per_day: int
    at_1970: int
    kind: Any


# Formats of dates and of times, by family.
_COUNTS = {
    "spss": {
        r"(?i)[AEJS]?DATE\d*": _Count(_DAY, _SPSS_TO_1970, pa.date32()),
        r"(?i)(DATETIME|YMDHMS)[\d.]*": _Count(_DAY, _SPSS_TO_1970, pa.timestamp("us")),
    },
    "sas": {
        r"(?i)(DATE|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|[BE]8601DA|JULIAN|WEEKDAT[EX]|WORDDAT[EX]|MONYY)\d*\.?": (
            _Count(1, _SAS_TO_1970, pa.date32())
        ),
        r"(?i)(DATETIME|[BE]8601DT|DATEAMPM)[\d.]*": (
            _Count(_DAY, _SAS_TO_1970 * _DAY, pa.timestamp("us"))
        ),
    },
    "stata": {
        r"%-?t?d.*": _Count(1, _SAS_TO_1970, pa.date32()),
        r"%-?tc.*": _Count(1000 * _DAY, _SAS_TO_1970 * 1000 * _DAY, pa.timestamp("ms")),
    },
}
_USUAL = {"spss": ("DATE11", "DATETIME20"), "sas": ("DATE9", "DATETIME20"), "stata": ("%td", "%tc")}


def _count(family: str, form: str | None) -> _Count | None:
    counts = _COUNTS[family].items()
    return next((count for pattern, count in counts if re.fullmatch(pattern, form or "")), None)


def moment_format(family: str, kind: pa.DataType) -> str:
    """Return the format in which a family shows dates, or times, that came from elsewhere."""
    return _USUAL[family][0 if pa.types.is_date(kind) else 1]


def as_moments(numbers: pa.Array, family: str, form: str | None) -> pa.Array | None:
    """Turn the numbers of a package into dates or times; None where they are not, or not exactly.

    >>> as_moments(pa.array([22000.0, None]), "stata", "%td").to_pylist()
    [datetime.date(2020, 3, 26), None]
    """
    count = _count(family, form)
    if count is None:
        return None
    values = np.asarray(numbers.cast(pa.float64()).fill_null(0))
    missing = np.asarray(numbers.is_null())
    since = values - count.at_1970
    per_unit = 1 / count.units_per_day  # days
    if not pa.types.is_date(count.kind):
        per_unit *= _DAY * (10**6 if count.kind.unit == "us" else 1000)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.rint(since * per_unit)
    whole[missing] = 0
    width = 31 if pa.types.is_date(count.kind) else 62
    if not (np.abs(whole) < 2.0**width).all():
        return None
    integers = pa.array(whole.astype(np.int64), mask=missing)
    moments = (integers.cast(pa.int32()) if width == 31 else integers).cast(count.kind)
    back = np.asarray(as_numbers(moments, family, form).fill_null(0))
    same = (back == np.where(missing, 0, values)) & ~(np.signbit(back) ^ np.signbit(values))
    return moments if same[~missing].all() else None


def as_numbers(moments: Any, family: str, form: str | None) -> Any:
    """Turn dates or times into the numbers by which a package counts them, as doubles."""
    count = _count(family, form) or _count(family, moment_format(family, moments.type))
    assert count is not None  # the format that a family gives by default is one of its own
    narrow = moments.type == pa.date32()
    integers = moments.cast(pa.int32()).cast(pa.int64()) if narrow else moments.cast(pa.int64())
    whole = np.asarray(integers.fill_null(0))
    if pa.types.is_date(moments.type):
        per_day = 1 if narrow else 1000 * _DAY
        values = whole / per_day * count.units_per_day + count.at_1970
    else:
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[moments.type.unit]
        # Whole seconds and their parts by themselves: a double has no room for both in the product.
        seconds, rest = np.divmod(whole, per_second)
        if pa.types.is_date(count.kind):
            seconds, rest = seconds - seconds % _DAY, rest * 0
        scale = count.units_per_day / _DAY
        values = (seconds * scale + count.at_1970) + rest / per_second * scale
    return pa.array(values.astype(np.float64), mask=np.asarray(moments.is_null()))
