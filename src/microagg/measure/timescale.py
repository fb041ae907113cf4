"""Instants of a column of dates in words, as people read them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable

_DAY = 86_400
_YEAR = 365.2425  # days
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# Of dates that lie further apart than this the time of day is of no interest.
_DAYS_THAT_HIDE_HOURS = 60


@dataclass(frozen=True)
class TimeScale:
    """What an instant of a column stands for."""

    seconds: float
    """Length of its unit."""
    origin: int
    what: str
    """"date" (with or without a time), "time" of the day, or "span"."""
    daily: bool
    """Whether it has no time of the day, or one that is of no interest."""

    def words(self, instant: float) -> str:
        """Write an instant.

        >>> TimeScale(86400.0, 19723, "date", True).words(30.2)
        '2024-01-31'
        >>> TimeScale(1.0, 0, "time", False).words(3725.0)
        '01:02'
        """
        if math.isnan(instant):
            return "–"
        seconds = (self.origin + instant) * self.seconds
        if self.what == "span":
            return f"{seconds / _DAY:.4g} days"
        minutes = round(seconds / 60)
        if self.what == "time":
            return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
        if self.daily:
            return str(np.datetime64(round(seconds / _DAY), "D"))
        return str(np.datetime64(minutes, "m")).replace("T", " ")

    def span(self, instants: float) -> str:
        """Write a difference of instants.

        >>> TimeScale(86400.0, 0, "date", True).span(12.34)
        '12.3 days'
        """
        days = instants * self.seconds / _DAY
        if days >= 2 * _YEAR:
            return f"{days / _YEAR:.3g} years"
        if days >= 1 or days == 0:
            return f"{days:.3g} days"
        return f"{24 * days:.3g} hours"


def time_scale(frame: Frame | None, variable: Variable, values: Floats) -> TimeScale | None:
    """Find what the instants of a column of a frame stand for; None if it is not known.

    ``values`` are what is to be written: their range decides about times of the day.
    """
    import pyarrow as pa

    if frame is None or variable.kind != "date":
        return None
    kind: Any = frame.arrow_column(variable.name).type
    if variable.format is not None:
        daily = "%H" not in variable.format
        seconds, what = float(_DAY if daily else 1), "date"
    else:
        daily = bool(pa.types.is_date(kind))
        seconds = float(_DAY) if pa.types.is_date32(kind) else _UNITS[getattr(kind, "unit", "ms")]
        what = "time" if pa.types.is_time(kind) else "date"
        what = "span" if pa.types.is_duration(kind) else what
    there = values[~np.isnan(values)]
    apart = float(np.ptp(there)) * seconds / _DAY if there.size else 0.0
    return TimeScale(seconds, variable.origin, what, daily or apart > _DAYS_THAT_HIDE_HOURS)
