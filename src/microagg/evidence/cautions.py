"""The rules for cautions: what a board must know, and in which words.

Every caution has a figure and says what to do. Names of columns are in it, values never.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from microagg.base.formatting import names, plural, share
from microagg.errors import DisclosureRiskWarning
from microagg.evidence.column_cautions import (
    RANDOM_ORDER,
    about_agreement,
    about_determined,
    about_groups,
    about_identifiers,
    about_known,
    about_linked_rows,
    about_pairing,
    about_uncounted_rows,
    sets_words,
)
from microagg.evidence.measured import Signs
from microagg.evidence.sentences import Caution
from microagg.evidence.usable import about_spikes, about_use
from microagg.measure.before_and_after import Summary
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.releasing.release_values import MissingCounts

_NAMED = 6  # columns that a sentence names
_SORTED = 0.99  # rank correlation of a sorted column


def cautions_of(
    plan: Plan,
    roles: Roles,
    signs: Signs,
    losses: Mapping[Any, float],
    summaries: Sequence[Summary],
    *,
    formulas: Mapping[str, int] | None = None,
    sampled: int | None = None,
) -> list[Caution]:
    """Return all cautions about a release.

    Parameters
    ----------
    plan, roles : the plan, and the role of each column
    signs : what calls for a caution
    losses : loss of each column, in percent
    summaries : figures of the protected columns, in the order of the roles, and of others behind them
    formulas : texts in a CSV file that a spreadsheet program would take for formulas, by column
    sampled : size of the sample from which some figures come; None: all come from all records
    """
    # Columns left as they are lose nothing except by recoding, which the plan asks for; of swapped ones only
    # tables are lost, about which fidelity says more.
    averaged = [
        name for block in plan.blocks if not block.is_swapped for name in block.columns or ()
    ]
    summary_of = dict(zip(roles.protected, summaries, strict=False))
    protected = {name: losses[name] for name in averaged}
    rows = [summary_of[name] for name in averaged]
    return [
        *signs.unreadable,
        *_about_plan(plan, roles),
        *_about_steering(signs.steered),
        *_about_changes(signs.missing_counts, signs.recoded, signs.records, roles.strata),
        *_about_row_labels(signs.row_labels),
        *about_known(
            plan.k,
            len(roles.known),
            signs.below_k,
            signs.harms,
            signs.enough,
            plan.words_of_unit(roles.unit),
        ),
        *about_identifiers(signs.identifiers, signs.looked_at, plan.units),
        *about_determined(signs.determined),
        *about_linked_rows(signs.linked_rows, roles.renumbered, plan.moved_together, plan.units),
        *about_uncounted_rows(signs.uncounted_rows, roles.dropped),
        *_about_order(plan, signs, roles.dropped),
        *_about_digits(signs.fine_digits),
        *about_groups(signs.unmixed, roles.dropped),
        *about_agreement(
            signs.agreements,
            plan.accept.agreeing,
            signs.cure,
            {name for block in plan.blocks for name in block.require.distinct},
        ),
        *about_pairing(signs.pairing, roles.confidential, plan.k, plan.accept.pairing),
        *about_use(protected, rows),
        *about_spikes(plan, protected, rows),
        *_about_formulas(formulas or {}),
        *_about_sample(sampled, signs.records),
    ]


def warn_of(cautions: Iterable[Caution]) -> None:
    """Issue a Python warning, as from the caller's caller, for ``cautions`` that may give something away."""
    for caution in cautions:
        if caution.severity != "note" and caution.disclosure:
            warnings.warn(caution.sentence, DisclosureRiskWarning, stacklevel=3)


def _about_plan(plan: Plan, roles: Roles) -> Iterator[Caution]:
    """Warn of what the plan alone shows."""
    if plan.k == 1:
        yield Caution(
            "amber",
            (),
            "k = 1 protects nothing: every record may form a group of its own.",
            "Choose k = 3 or more.",
        )
    each = [b for b in plan.blocks if b.per_column and len(b.columns or ()) > 1]
    if each:
        columns = tuple(name for block in each for name in block.columns or ())
        units = {plan.words_of_unit(plan.unit_of(block).column) for block in each}
        who = units.pop() if len(units) == 1 else "units"
        yield Caution(
            "amber",
            columns,
            f"{names(columns, _NAMED)} are protected one by one: each value is shared by at least "
            f"{min(block.k or 1 for block in each):,} {who}, but combinations of values may be unique.",
            "Protect the columns together, unless an attacker can know only one of them.",
        )
    if len(plan.blocks) > 1:
        yield Caution(
            "amber",
            tuple(roles.protected),
            f"The columns are protected in {plural(len(plan.blocks), 'block')}: combinations of "
            "values from different blocks may be unique.",
            "Use one block, unless an attacker can know the columns of only one.",
        )
    if not roles.confidential and roles.known:
        yield Caution(
            "note",
            (),
            "No column is named as confidential.",
            "A group whose records agree in an unprotected column discloses its value. Name such columns "
            "as confidential to have these groups counted.",
        )


def _about_steering(steered: Sequence[Any]) -> Iterator[Caution]:
    """Warn of groups of swapped values that were chosen by untouched columns."""
    if not steered:
        return
    yield Caution(
        "amber",
        tuple(steered),
        f"Groups were chosen by {names(steered, _NAMED)}, left unprotected: which records may share a "
        "group then says something about whose values these are.",
        'Use --engine memory, which merges whole groups; release means (release = "mean"); or leave the '
        "requirement out.",
    )


def _about_changes(
    counts: Mapping[Any, MissingCounts], recoded: int, records: int, strata: Sequence[Any]
) -> Iterator[Caution]:
    """Warn of values that records did not have: filled ones, blanked ones, and merged strata."""
    filled = {name: column.filled for name, column in counts.items() if column.filled}
    if filled:
        count = sum(filled.values())
        yield Caution(
            "warning",
            tuple(filled),
            f"{plural(count, 'missing value was', 'missing values were')} filled with the value of the "
            f"group, in {names(filled, _NAMED)}.",
            "Tell the users of the file, or keep such values missing (--missing pattern).",
        )
    blanked = {name: column.blanked for name, column in counts.items() if column.blanked}
    if blanked:
        count = sum(blanked.values())
        yield Caution(
            "note",
            tuple(blanked),
            f"{plural(count, 'value was', 'values were')} blanked in {names(blanked, _NAMED)} "
            f"({share(count / (records * len(counts)))} of all values), so that whole groups miss the "
            "same values and no category is released that fewer than k hold.",
        )
    if recoded:
        yield Caution(
            "warning",
            tuple(strata),
            f"Small strata were merged: {plural(recoded, 'record')} ({share(recoded / records)}) are "
            f"released with the {names(strata, _NAMED)} of another stratum.",
            "Totals by stratum change accordingly. Coarser strata avoid this.",
        )


def _about_formulas(cells: Mapping[str, int]) -> Iterator[Caution]:
    """Warn of text in a CSV file that a spreadsheet program would take for formulas."""
    if not cells:
        return
    yield Caution(
        "warning",
        tuple(cells),
        f"{plural(sum(cells.values()), 'text begins', 'texts begin')} with =, +, - or @ "
        f"({names(list(cells), _NAMED)}). A spreadsheet program that opens the CSV file takes that for a "
        "formula and may run it.",
        "Put an apostrophe in front with --escape-formulas (in Python escape_formulas=True), or "
        "drop the columns.",
    )


def _about_row_labels(distinct: int) -> Iterator[Caution]:
    """Warn of the row labels of a pandas frame, which are released although they are no column."""
    if distinct < 2:
        return
    yield Caution(
        "amber",
        ("(index)",),
        f"The row labels of the frame (its index) are released with {distinct:,} different values, and "
        "no figure here counts them as known to an attacker.",
        "Reset the index before release, and make a column of what you need of it.",
    )


def _about_sample(sampled: int | None, records: int) -> Iterator[Caution]:
    """Say which figures come from a sample, if one was drawn."""
    if sampled is None:
        return
    yield Caution(
        "note",
        (),
        f"Promise, loss, classes and totals were counted in all {plural(records, 'record')}. All other "
        f"figures (distributions, correlations, medians, analyses, single columns) come from "
        f"{plural(sampled, 'record')} in whole groups.",
    )


def _about_order(plan: Plan, signs: Signs, dropped: Collection[Any]) -> Iterator[Caution]:
    """Warn of what the order of the rows shows, if it is kept."""
    if plan.keep_order and plan.is_swapped:
        words = "The rows have the order of the original, which shows whose rows they are."
        yield Caution("amber", (), words, RANDOM_ORDER)
    if signs.frame_in_order:
        yield Caution(
            "note",
            (),
            "The frame has the order and index of the original, which may show whose rows they are.",
            "Do not publish the frame. Release.write writes a file in random order; keep_order=False "
            "puts the frame in random order, too.",
        )
    for sets in signs.lying_together:
        if sets.below_k:
            words = f"Rows of the same {names([sets.column])} lie together: {sets_words(sets)}."
            yield Caution("amber", (sets.column,), words, RANDOM_ORDER)
    if signs.sorted_by:
        columns = tuple(column.name for column in signs.sorted_by)
        which = "; ".join(
            f"{names([column.name])}{' (dropped)' if column.name in dropped else ''}, "
            f"rank correlation with the row number {column.rank_correlation:.3f}"
            if abs(column.rank_correlation) > _SORTED
            else f"{names([column.name])}, within parts of the file"
            for column in signs.sorted_by[:_NAMED]
        )
        words = (
            f"The rows are sorted, so that a row shows the rank of its original values: {which}."
        )
        yield Caution("amber", columns, words, RANDOM_ORDER)


def _about_digits(columns: Sequence[Any]) -> Iterator[Caution]:
    """Warn of means with so many digits that they show whose values went into them."""
    if not columns:
        return
    yield Caution(
        "amber",
        tuple(columns),
        f"{names(columns, _NAMED)}: means have finer digits than by default. "
        "Somebody who has some of the values can find out which of them are in a group, and with all "
        "but one of them compute the last.",
        "Leave digits out (--digits).",
    )
