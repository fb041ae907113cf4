"""Cautions about columns that are hardly usable: one rule for all engines.

A column is hardly usable if more than half of its information is lost, or if more than a quarter of its
categories are wrong; where categories have an order, its loss says how far they are off. A total, share or
median has moved if it changed by more than a tenth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microagg.base.formatting import names, percent, share
from microagg.errors import shown
from microagg.evidence.sentences import Caution, worst_first
from microagg.measure.before_and_after import Summary

MOST_LOST = 50.0
"""Percent of a column's information, by its released values."""
MOST_CHANGED = 0.25
"""Share of the records whose category changed."""
MOST_MOVED = 0.1
"""Share of its value by which a total, a share or a median may move."""
_NAMED = 3  # columns whose figures a sentence gives
_NOISE = 0.01  # of a standard deviation: what moves less does not count as moved
_FIGURES = ("total", "mean", "median", "sd", "frequent_share", "moved_share")

_ADVICE = (
    "Drop such a column, make it a stratum, use fewer and coarser categories (--coarsen COLUMN=rare:50), or "
    "raise its importance (--importance COLUMN=5)."
)


def about_use(losses: Mapping[Any, float], rows: Sequence[Summary]) -> list[Caution]:
    """Warn of columns that are hardly usable, the worst first.

    ``losses`` are percents of each column's information; ``rows`` are summaries of the same columns.

    >>> about_use({"age": 3.0, "job": 61.0}, [Summary("age"), Summary("job", changed=0.31)])[0].words
    'Much is lost in job (61.0 % of its information, 31.0 % of its values wrong).'
    """
    found = [
        (name, lost, row)
        for (name, lost), row in zip(losses.items(), rows, strict=True)
        if lost > MOST_LOST or (row.kind != "ordinal" and (row.changed or 0.0) > MOST_CHANGED)
    ]
    if not found:
        return []
    order = worst_first(losses)
    found.sort(key=lambda one: order.index(one[0]))
    said = ", ".join(f"{names([name])} ({_lost(lost, row)})" for name, lost, row in found[:_NAMED])
    spoilt = [name for name, _, _ in found]
    more = f", and in {names(spoilt[_NAMED:], _NAMED)}" if len(spoilt) > _NAMED else ""
    words = f"Much is lost in {said}{more}."
    cures = [(name, decision) for name in spoilt[:_NAMED] for decision in ("drop", "importance 5")]
    return [Caution("warning", tuple(spoilt), words, _ADVICE, disclosure=False, cures=tuple(cures))]


def _lost(loss: float, row: Summary) -> str:
    """Say what a column lost."""
    said = ["all of its information" if loss > 99.5 else f"{percent(loss)} of its information"]
    if row.changed:
        said.append(f"{share(row.changed)} of its values wrong")
    if row.moved is not None and row.moved_share is not None:
        before, after = row.moved_share
        gone = "none" if after == 0 else share(after)
        said.append(f"share of {shown(row.moved)} {share(before)} → {gone}")
    return ", ".join(said)


def moved_figures(row: Summary) -> list[str]:
    """Name the figures of a summary that moved by more than a tenth.

    >>> moved_figures(Summary("a", total=(100.0, 100.0), median=(10.0, 8.5), sd=(5.0, 4.8)))
    ['median']
    """
    found = []
    sd = row.sd[0] if row.sd is not None and not isinstance(row.sd[0], str) else 0.0
    for name in _FIGURES:
        pair = getattr(row, name)
        if pair is None or isinstance(pair[0], str):
            continue
        before, after = pair
        moved = abs(after - before)
        least = _NOISE * sd if name in ("mean", "median") else 0.0
        if moved > max(MOST_MOVED * abs(before), least):
            found.append(name)
    return found
