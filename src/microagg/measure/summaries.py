"""Totals, means, medians and standard deviations before and after, as a board reads them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from microagg.groups import Floats, standard_deviation
from microagg.measure.pairs import Pair

__all__ = ["Summary", "summaries"]

_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Summary:
    """One column before and after."""

    column: str
    total: tuple[float, float]
    mean: tuple[float, float]
    median: tuple[float, float]
    """Mean of the middle values, at least ``among`` of them, so that it is no record's own."""
    sd: tuple[float, float]


def summaries(both: Pair, among: int) -> list[Summary]:
    """Summarise each column; medians are means of the ``among`` values in the middle.

    >>> both = Pair(["a"], np.array([[1.0], [2.0], [9.0]]), np.array([[4.0], [4.0], [4.0]]))
    >>> summaries(both, 3)[0].median
    (4.0, 4.0)
    """
    return [
        Summary(str(name), *zip(_four(x, among), _four(y, among), strict=True))
        for name, x, y in zip(both.names, both.original.T, both.protected.T, strict=True)
    ]


def _four(values: Floats, among: int) -> tuple[float, float, float, float]:
    n = len(values)
    unit = max(float(np.abs(values).max()), 1e-300)
    small = values / unit  # sums of huge values must not overflow
    base = float(small[0])
    moved = small - base  # nor a large offset swallow the digits
    mean = base + float(moved.mean())
    middle = base + _middle(moved, among)
    total = min(max(mean * n, -_LARGEST / unit), _LARGEST / unit)
    return total * unit, mean * unit, middle * unit, standard_deviation(values)


def _middle(values: Floats, among: int) -> float:
    """Mean of the values in the middle: ``among``, or one more where the number of values asks for it."""
    n = len(values)
    count = min(n, among + (n - among) % 2)
    start = (n - count) // 2
    ordered: Any = np.partition(values, [start, start + count - 1])
    return float(ordered[start : start + count].mean())
