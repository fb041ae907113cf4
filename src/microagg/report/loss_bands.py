"""Limits of reports; bands, the only form in which loss, linkage and uniqueness go into public output.

Digits of a statistic of all records can be solved for the one record that somebody does not know;
a band changes only if its edge lies between what two values of that record would give.
"""

from __future__ import annotations

MOST_COLUMNS = 40  # drawn, and listed in a table; the JSON file has all
EDGES = (1, 2, 5, 10, 20, 50)  # percent
TIMES = {1.1: "as another sample", 2.0: "up to twice"}
"""Bands of multiples: how far tables moved, of how far they move in another sample."""


def band(percent: float) -> str:
    """Name the band that a percentage lies in.

    >>> band(0.3), band(1.0), band(16.9), band(50)
    ('under 1 %', 'under 2 %', 'under 20 %', '50 % or more')
    """
    if not percent >= 0:
        raise ValueError(f"a percentage is 0 or more; got {percent}")
    for edge in EDGES:
        if percent < edge:
            return f"under {edge} %"
    return f"{EDGES[-1]} % or more"


def band_of_times(multiple: float) -> str:
    """Name the band of a multiple of what another sample gives.

    >>> band_of_times(0.0), band_of_times(1.3), band_of_times(float("inf"))
    ('as another sample', 'up to twice', 'more')
    """
    for edge, words in TIMES.items():
        if multiple < edge:
            return words
    return "more"
