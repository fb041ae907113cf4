"""Bands of numbers and what they are called: 20–24, 80 or more; and numbers rounded."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.plan.column import Coarsen

_CLOSE, _MOST_OFF = 1e-9, 1e-6  # of a quotient to a whole number: in parts of it, and at most


def band_ends(how: Coarsen, values: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper end of the band of each number; an open end is infinite.

    >>> low, high = band_ends(Coarsen(bands=5, top=80), np.array([24.0, 25.0, 93.0]))
    >>> low.tolist(), high.tolist()
    ([20.0, 25.0, 80.0], [25.0, 30.0, inf])
    """
    if isinstance(how.bands, tuple):
        edges = np.array([-np.inf, *how.bands, np.inf])
        at = np.searchsorted(edges[1:-1], values, side="right")
        return edges[at], edges[at + 1]
    assert how.bands is not None
    width = float(how.bands)
    quotient = values / width
    near = np.rint(quotient)
    # 0.3 is a multiple of 0.1, though no double says so.
    exact = np.abs(quotient - near) <= np.minimum(_CLOSE * np.abs(quotient), _MOST_OFF)
    number = np.where(exact, near, np.floor(quotient))
    low, high = (_decimal(width, number + step) for step in (0, 1))
    if how.top is not None:
        above = values >= how.top
        low = np.where(above, how.top, low)
        high = np.where(above, np.inf, np.minimum(high, how.top))
    if how.bottom is not None:
        below = values < how.bottom
        high = np.where(below, how.bottom, high)
        low = np.where(below, -np.inf, np.maximum(low, how.bottom))
    return low, high


def _decimal(width: float, number: Floats) -> Floats:
    """Return multiples of a width, rounded to the decimals of the width."""
    text = np.format_float_positional(width, trim="-")
    return np.asarray(np.round(number * width, len(text.partition(".")[2])) + 0.0)


def rounded(how: Coarsen, values: Floats) -> Floats:
    """Round numbers, and cut them at top and bottom.

    >>> rounded(Coarsen(round=100, top=900), np.array([149.0, 150.0, 2000.0])).tolist()
    [100.0, 200.0, 900.0]
    """
    result = values
    if how.round is not None:
        result = _decimal(float(how.round), np.floor(values / float(how.round) + 0.5))
    if how.top is not None:
        result = np.where(values >= how.top, how.top, np.minimum(result, how.top))
    if how.bottom is not None:
        result = np.where(values <= how.bottom, how.bottom, np.maximum(result, how.bottom))
    return np.where(np.isnan(values), np.nan, result)


def level_text(level: Any) -> str:
    """Return a ``level`` as text; a number without needless decimals."""
    return number_text(float(level)) if isinstance(level, float) else str(level)


def number_text(value: float) -> str:
    """Return a number as text, without needless decimals."""
    return str(int(value)) if value == int(value) else np.format_float_positional(value, trim="-")


def band_label(low: float, high: float, whole: bool) -> str:
    """Name a band.

    >>> [band_label(20, 25, whole) for whole in (True, False)]
    ['20–24', '20 to under 25']
    >>> band_label(80, np.inf, True), band_label(-np.inf, 16, True)
    ('80 or more', '15 or less')
    """
    if high == np.inf:
        return f"{_signed(np.ceil(low) if whole else low)} or more"
    if low == -np.inf:
        return f"{_signed(np.ceil(high) - 1)} or less" if whole else f"under {_signed(high)}"
    if not whole:
        return f"{_signed(low)} to under {_signed(high)}"
    first, last = np.ceil(low), np.ceil(high) - 1
    if first == last:
        return _signed(first)
    return f"{_signed(first)}{'–' if first >= 0 else ' to '}{_signed(last)}"


def _signed(value: float) -> str:
    """Return a number with a typographic minus, which no spreadsheet takes for a formula."""
    return number_text(value).replace("-", "−")


_END = r"(−?[\d.]+)"
_ENDS: tuple[tuple[str, Callable[..., tuple[float, float]]], ...] = (
    (f"{_END} or more", lambda low: (low, np.inf)),
    (f"{_END} or less", lambda last: (-np.inf, last + 1)),
    (f"under {_END}", lambda high: (-np.inf, high)),
    (f"{_END} to under {_END}", lambda low, high: (low, high)),
    (f"{_END}(?:–| to ){_END}", lambda first, last: (first, last + 1)),
    (_END, lambda only: (only, only + 1)),
)


def ends_of_label(label: str) -> tuple[float, float] | None:
    """Read the ends of a band from its ``label``; None if it is not the name of a band.

    >>> [ends_of_label(text) for text in ("20–24", "20 to under 25", "80 or more", "15 or less", "others")]
    [(20.0, 25.0), (20.0, 25.0), (80.0, inf), (-inf, 16.0), None]
    """
    for pattern, ends in _ENDS:
        match = re.fullmatch(pattern, label.strip())
        if match is not None:
            try:
                return ends(*(float(text.replace("−", "-")) for text in match.groups()))
            except ValueError:
                return None
    return None
