"""Cautions about columns that are hardly usable: one rule for all engines.

A column is hardly usable if more than half of its information is lost, or if more than a quarter of its
categories are wrong; where categories have an order, its loss says how far they are off. A total, share or
median has moved if it changed by more than a tenth. What a user of the file should not compute
follows from its fidelity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from microagg.base.formatting import few_digits, lost_words, names, percent, plural, share
from microagg.errors import shown
from microagg.evidence.sentences import Caution, tables_words, times_words, worst_first
from microagg.measure.before_and_after import DIGITS, Summary
from microagg.measure.fidelity import Fidelity
from microagg.plan.plan import Plan

MOST_LOST = 50.0  # percent of a column's information, by its released values
MOST_CHANGED = 0.25  # share of the records whose category changed
MOST_MOVED = 0.1  # share of its value by which a total, a share or a median may move
SPREAD_KEPT = 0.97  # σ after/σ before under which spreads, and what follows, come out wrong
RARE_KEPT = 0.9  # share of rare categories after/before under which they are not to be studied
MOST_TIMES = 2.0  # multiple of what another sample gives beyond which tables are not to be made
_MOVED_LITTLE = 0.01  # of the records: tables that moved less may be made, even of a large sample
_NO_TABLES = (
    "Do not rely on counts of single values",
    "Do not make tables of two or more columns, nor estimates for small domains",
    "Do not make tables of three or more columns, nor estimates for small domains",
)
_CORRELATIONS_OFF = 0.05  # on average: beyond it, correlations are not to be compared
_LITTLE_USE = 0.5  # of the records in another cell, if that is also far more than in another sample
_NAMED = 3  # columns whose figures a sentence gives
_LISTED = 12  # columns that the advice against an analysis names
_TOTAL_KEPT = 0.1  # percent of a total: smaller changes are not told
_NOISE = 0.01  # of a standard deviation: what moves less does not count as moved
_FIGURES = ("total", "mean", "median", "sd", "moved_share")

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
    row_of = dict(zip(losses, rows, strict=True))
    spoilt = [
        name
        for name in worst_first(losses)
        if losses[name] > MOST_LOST
        or (row_of[name].kind != "ordinal" and (row_of[name].changed or 0.0) > MOST_CHANGED)
    ]
    if not spoilt:
        return []
    said = [f"{names([name])} ({_lost(losses[name], row_of[name])})" for name in spoilt[:_NAMED]]
    more = f", and in {names(spoilt[_NAMED:], _NAMED)}" if len(spoilt) > _NAMED else ""
    words = f"Much is lost in {', '.join(said)}{more}."
    cures = [(name, decision) for name in spoilt[:_NAMED] for decision in ("drop", "importance 5")]
    return [Caution("warning", tuple(spoilt), words, _ADVICE, disclosure=False, cures=tuple(cures))]


def _lost(loss: float, row: Summary) -> str:
    """Say what a column lost."""
    said = [lost_words(loss)]
    if loss <= 100.5:
        said = ["all of its information" if loss > 99.5 else f"{percent(loss)} of its information"]
    if row.changed:
        said.append(f"{share(row.changed)} of its values wrong")
    if row.moved is not None and row.moved_share is not None:
        before, after = row.moved_share
        gone = "none" if after == 0 else share(after)
        said.append(f"share of {shown(row.moved)} {share(before)} → {gone}")
    return ", ".join(said)


def about_spikes(plan: Plan, columns: Iterable[Any], rows: Sequence[Summary]) -> list[Caution]:
    """Say by how much totals changed in columns whose groups release their spike or the mean of the others.

    ``plan`` says which do; ``columns`` and ``rows`` are those that are averaged, and a summary of each. One
    note, or none if all totals kept three digits.
    """
    moved = dict[Any, float]()
    for name, row in zip(columns, rows, strict=True):
        before, after = row.total or (0.0, 0.0)
        if plan.column(name).release == "spike" and before:
            moved[name] = 100 * (after / before - 1)
    moved = {name: change for name, change in moved.items() if abs(change) >= _TOTAL_KEPT}
    if not moved:
        return []
    worst = sorted(moved, key=lambda name: -abs(moved[name]))
    said = ", ".join(
        f"{names([name])} {'+' if moved[name] > 0 else '−'}{percent(abs(moved[name]))}"
        for name in worst[:_NAMED]
    )
    rest = len(worst) - _NAMED
    more = f" and {plural(rest, 'more column')} by less" if rest > 0 else ""
    return [
        Caution(
            "note",
            tuple(worst),
            f"Totals of columns with many zeros are not exact: {said}{more}. A group releases 0 for all its "
            "records, or the mean of those that are not 0.",
            'Where totals matter more than who has none, leave release = "spike" out of the plan.',
            disclosure=False,
        )
    ]


def little_use_words(fidelity: Fidelity, swapped: bool, k: int, frozen: bool) -> str:
    """Say that a file is safe but of little use for tables, and what to do; empty if it is not so.

    ``frozen`` says whether the groups are those of earlier files, which swap what they swapped and no more.
    """
    order = fidelity.order
    moved = fidelity.tables[order - 1]
    if moved is None or moved <= _LITTLE_USE or fidelity.multiple(order) <= MOST_TIMES:
        return ""
    way_out = "drop columns that it can do without (--drop)"
    if swapped and not frozen:
        way_out = f"choose a smaller k, or {way_out}"
    elif not frozen:
        larger = f"in larger groups instead of averaging them (--release swap --k {2 * k})"
        way_out = f"swap values {larger}, or {way_out}"
    return (
        f" The file is safe, but of little use: in {tables_words(order)} {share(moved)} of the records stand "
        f"in another cell. Before you release it, {way_out}."
    )


def moved_figures(row: Summary) -> list[str]:
    """Name the figures of a summary that moved by more than a tenth.

    >>> moved_figures(Summary("a", total=(100.0, 100.0), median=(10.0, 8.5), sd=(5.0, 4.8)))
    ['median']
    """
    moved_most = []
    sd = row.sd[0] if row.sd is not None and not isinstance(row.sd[0], str) else 0.0
    for name in _FIGURES:
        pair = getattr(row, name)
        if pair is None or isinstance(pair[0], str):
            continue
        before, after = pair
        moved = abs(after - before)
        least = _NOISE * sd if name in ("mean", "median") else 0.0
        if moved > max(MOST_MOVED * abs(before), least):
            moved_most.append(name)
    return moved_most


def not_to_do(fidelity: Fidelity, swapped: bool = False) -> list[str]:
    """List what a user of the file should not compute, each with the figure that speaks against it.

    ``swapped`` tells whether values are swapped within groups.
    """
    warnings = []
    if swapped:
        warnings.append(
            "Do not look at single rows, nor join rows with other files: the protected values of a row were "
            "dealt, and are not one person's."
        )
    wrong = {name: kept for name, kept in fidelity.spreads.items() if kept < SPREAD_KEPT}
    if wrong:
        worst = sorted(wrong, key=lambda name: few_digits(wrong[name], DIGITS))
        ends = [f"{few_digits(wrong[name], DIGITS):.3g}" for name in (worst[0], worst[-1])]
        kept_share = " to ".join(dict.fromkeys(ends))
        warnings.append(
            "Do not compute standard errors, quantiles, inequality or rates below a threshold, such as "
            f"poverty rates, of {names(worst, _LISTED)}: the released standard deviation is {kept_share} of "
            "the true one."
        )
    for order, words in enumerate(_NO_TABLES, 1):
        moved, times = fidelity.tables[order - 1], fidelity.multiple(order)
        if moved is not None and moved > _MOVED_LITTLE and times > MOST_TIMES:
            warnings.append(
                f"{words}: in {tables_words(order)} {share(moved)} of the records stand in another cell, "
                f"{times_words(times)} as many as in another sample of this size."
            )
            break  # what holds for tables of two columns holds for those of three
    if fidelity.rare is not None and fidelity.rare < RARE_KEPT:
        warnings.append(
            "Do not study rare categories: those that fewer than 5 % of the records have keep "
            f"{share(fidelity.rare)} of their records."
        )
    if (off := few_digits(fidelity.correlations or 0.0, DIGITS)) > _CORRELATIONS_OFF:
        warnings.append(
            f"Do not compare the strength of associations: correlations are off by {off:.2g} on average."
        )
    return warnings
