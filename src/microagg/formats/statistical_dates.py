"""Dates and times as statistical packages count them.

SPSS counts seconds since 14 October 1582, SAS and Stata days, seconds or milliseconds since 1960; what
a number means is told by its format. A column becomes dates or times of Arrow only where each value
comes back as the very same number; else it stays numbers, and nothing is lost.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["as_moments", "as_numbers", "moment_format"]

_SPSS_TO_1970 = 12_219_379_200  # seconds
_SAS_TO_1970 = 3_653  # days
_DAY = 86_400

_SPSS_DATE = re.compile(r"[AEJS]?DATE\d*", re.IGNORECASE)
_SPSS_TIME = re.compile(r"(DATETIME|YMDHMS)[\d.]*", re.IGNORECASE)
_SAS_DATE = re.compile(
    r"(DATE|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|[BE]8601DA|JULIAN|WEEKDAT[EX]|WORDDAT[EX]|MONYY)\d*\.?",
    re.IGNORECASE,
)
_SAS_TIME = re.compile(r"(DATETIME|[BE]8601DT|DATEAMPM)[\d.]*", re.IGNORECASE)
_STATA_DATE = re.compile(r"%-?t?d.*")
_STATA_TIME = re.compile(r"%-?tc.*")


class _Count(NamedTuple):
    """How a package counts: units a day, what 1970 is, and the Arrow type."""

    units_per_day: int
    at_1970: int
    kind: Any


def _count(family: str, form: str | None) -> _Count | None:
    form = form or ""
    if family == "spss":
        if _SPSS_DATE.fullmatch(form):
            return _Count(_DAY, _SPSS_TO_1970, pa.date32())
        if _SPSS_TIME.fullmatch(form):
            return _Count(_DAY, _SPSS_TO_1970, pa.timestamp("us"))
    if family == "sas":
        if _SAS_DATE.fullmatch(form):
            return _Count(1, _SAS_TO_1970, pa.date32())
        if _SAS_TIME.fullmatch(form):
            return _Count(_DAY, _SAS_TO_1970 * _DAY, pa.timestamp("us"))
    if family == "stata":
        if _STATA_DATE.fullmatch(form):
            return _Count(1, _SAS_TO_1970, pa.date32())
        if _STATA_TIME.fullmatch(form):
            return _Count(1000 * _DAY, _SAS_TO_1970 * 1000 * _DAY, pa.timestamp("ms"))
    return None


def moment_format(family: str, kind: pa.DataType) -> str:
    """Return the format in which a family shows dates, or times, that came from elsewhere."""
    date = pa.types.is_date(kind)
    if family == "stata":
        return "%td" if date else "%tc"
    if family == "spss":
        return "DATE11" if date else "DATETIME20"
    return "DATE9" if date else "DATETIME20"


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
    if pa.types.is_date(moments.type):
        per_day = 1 if moments.type == pa.date32() else 1000 * _DAY
        whole = np.asarray(_integers(moments))
        values = whole / per_day * count.units_per_day + count.at_1970
    else:
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[moments.type.unit]
        whole = np.asarray(_integers(moments))
        # Whole seconds and their parts by themselves: a double has no room for both in the product.
        seconds, rest = np.divmod(whole, per_second)
        if pa.types.is_date(count.kind):
            seconds, rest = seconds - seconds % _DAY, rest * 0
        scale = count.units_per_day / _DAY
        values = (seconds * scale + count.at_1970) + rest / per_second * scale
    return pa.array(values.astype(np.float64), mask=np.asarray(moments.is_null()))


def _integers(moments: Any) -> Any:
    width = pa.int32() if moments.type == pa.date32() else pa.int64()
    return moments.cast(width).cast(pa.int64()).fill_null(0)
