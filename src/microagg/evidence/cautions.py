"""The rules for cautions: what a board must know, and in which words.

Every caution has a figure and says what to do. Names of columns are in it, values never. A rule is a function
of the plan, the roles of the columns and the signs that were counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from microagg.base.formatting import names, narrowed_down, plural, share
from microagg.errors import DisclosureRiskWarning
from microagg.evidence.measured import Cure, Signs
from microagg.evidence.sentences import Caution, Severity, pairing_words, percent_words
from microagg.evidence.usable import about_spikes, about_use
from microagg.measure.before_and_after import Summary
from microagg.measure.linked_rows import LinkedRows
from microagg.measure.risk import agreement_words, disclosed_share
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles

Decisions = tuple[tuple[Any, str], ...]

_NAMED = 6  # columns that a sentence names
_CURED = 3  # columns that decisions are offered for
_SORTED = 0.99  # rank correlation of a sorted column
_RANDOM_ORDER = "Leave out keep_order (--keep-order): the file is then written in random order."


def cautions_of(
    plan: Plan,
    roles: Roles,
    signs: Signs,
    losses: Mapping[Any, float] | None = None,
    summaries: Sequence[Summary] = (),
    formulas: Mapping[str, int] | None = None,
) -> list[Caution]:
    """Return all cautions about a release.

    Parameters
    ----------
    plan, roles : the plan, and the role of each column
    signs : what calls for a caution
    losses : loss of each column, in percent; None: nothing is said about use
    summaries : figures of the protected columns, in the order of the roles, and of others behind them
    formulas : texts in a CSV file that a spreadsheet program would take for formulas, by column
    """
    cautions = list(signs.unreadable)
    for rule in _RULES:
        cautions += rule(plan, roles, signs)
    if losses is not None:
        # Columns left as they are lose nothing except by recoding, which the plan asks for; of swapped ones
        # only tables are lost, about which fidelity says more.
        averaged = [n for block in plan.blocks if not block.is_swapped for n in block.columns or ()]
        summary_of = dict(zip(roles.protected, summaries, strict=False))
        rows = [summary_of[name] for name in averaged]
        cautions += about_use({name: losses[name] for name in averaged}, rows)
        cautions += about_spikes(plan, averaged, rows)
    if formulas:
        text = plural(sum(formulas.values()), "text begins", "texts begin")
        cautions.append(
            Caution(
                "warning",
                tuple(formulas),
                f"{text} with =, +, - or @ ({names(list(formulas), _NAMED)}). A spreadsheet program that "
                "opens the CSV file takes that for a formula and may run it.",
                "Put an apostrophe in front with --escape-formulas (in Python escape_formulas=True), or "
                "drop the columns.",
            )
        )
    if signs.looked_at < signs.records:
        words = (
            f"Promise, loss, classes and totals were counted in all {plural(signs.records, 'record')}. All "
            "other figures (distributions, correlations, medians, analyses, single columns) come from "
            f"{plural(signs.looked_at, 'record')} in whole groups."
        )
        cautions.append(Caution("note", (), words))
    return cautions


def warn_of(cautions: Iterable[Caution]) -> None:
    """Issue a Python warning, as from the caller's caller, for ``cautions`` that may give something away."""
    for caution in cautions:
        if caution.severity != "note" and caution.disclosure:
            warnings.warn(caution.sentence, DisclosureRiskWarning, stacklevel=3)


def _about_plan(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn of what the plan alone shows, and of groups of swapped values chosen by untouched columns."""
    if plan.k == 1:
        words = "k = 1 protects nothing: every record may form a group of its own."
        yield Caution("amber", (), words, "Choose k = 3 or more.")
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
    if signs.steered:
        yield Caution(
            "amber",
            tuple(signs.steered),
            f"Groups were chosen by {names(signs.steered, _NAMED)}, left unprotected: which records may "
            "share a group then says something about whose values these are.",
            'Use --engine memory, which merges whole groups; release means (release = "mean"); or leave the '
            "requirement out.",
        )


def _about_changes(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn of values that records did not have (filled, blanked, merged strata), and of row labels."""
    columns = signs.missing_counts
    if filled := {name: column.filled for name, column in columns.items() if column.filled}:
        values = plural(sum(filled.values()), "missing value was", "missing values were")
        yield Caution(
            "warning",
            tuple(filled),
            f"{values} filled with the value of the group, in {names(filled, _NAMED)}.",
            "Tell the users of the file, or keep such values missing (--missing pattern).",
        )
    if blanked := {name: column.blanked for name, column in columns.items() if column.blanked}:
        count = sum(blanked.values())
        yield Caution(
            "note",
            tuple(blanked),
            f"{plural(count, 'value was', 'values were')} blanked in {names(blanked, _NAMED)} "
            f"({share(count / (signs.records * len(columns)))} of all values), so that whole groups miss the "
            "same values and no category is released that fewer than k hold.",
        )
    if signs.recoded:
        yield Caution(
            "warning",
            tuple(roles.strata),
            f"Small strata were merged: {plural(signs.recoded, 'record')} "
            f"({share(signs.recoded / signs.records)}) are released with the "
            f"{names(roles.strata, _NAMED)} of another stratum.",
            "Totals by stratum change accordingly. Coarser strata avoid this.",
        )
    if signs.row_labels > 1:
        yield Caution(
            "amber",
            ("(index)",),
            f"The row labels of the frame (its index) are released with {signs.row_labels:,} different "
            "values, and no figure here counts them as known to an attacker.",
            "Reset the index before release, and make a column of what you need of it.",
        )


def about_known(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Say that k does not hold against someone who knows the unprotected columns.

    Of ``plan``, ``roles`` and ``signs`` it needs k, the unit, the known columns and what they do.
    """
    known, drop = len(roles.known), signs.enough
    if not signs.below_k or not known:
        return
    worst = [harm for harm in signs.harms if harm.alone > 0] or list(signs.harms)
    worst = worst[:_NAMED]
    each = ", ".join(f"{names([harm.name])} ({share(harm.alone)})" for harm in worst)
    harm = f"If only one of them is known: {each}." if len(worst) > 1 else ""
    way = ""
    if drop is not None and len(drop) == known:
        all_of = "it is" if known == 1 else "all of them are"
        way = f" k holds only if {all_of} dropped: {_drop_flag(drop)}."
    elif drop is not None:
        way = f" This makes k hold: {_drop_flag(drop)}."
    fact = narrowed_down(signs.below_k, plan.k, plan.words_of_unit(roles.unit))
    columns = [harm.name for harm in worst]
    yield Caution(
        "amber",
        tuple(columns),
        f"{fact[0].upper()}{fact[1:]} by someone who knows the unprotected columns. {harm}".strip(),
        f"Protect, coarsen or drop columns, or name those that no attacker can know as confidential.{way}",
        cures=_each(columns, "protect", "drop"),
    )


def _each(columns: Iterable[Any], *decisions: str) -> Decisions:
    """Return each decision about each of the first few columns."""
    return tuple((name, decision) for name in list(columns)[:_CURED] for decision in decisions)


def _about_identifiers(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn of identifiers in the file."""
    for name, sign in signs.identifiers.items():
        column, present = names([name]), sign.present
        if sign.how == "repeats":
            words = (
                f"{column} is unprotected and looks like an id that repeats: {sign.distinct:,} different "
                f"values in {plural(present, 'record')}."
            )
            advice = "Drop it. It is the unit, and k counts units whether or not it is released."
            decisions = ["unit"]
            if name not in plan.units:
                decisions = ["drop", "unit"]
                advice = (
                    "Drop it; if it numbers people, households or firms, make it the unit "
                    f"(--unit {column})."
                )
        else:
            which = "every" if sign.how == "distinct" else "nearly every"
            where = ""
            if present < signs.looked_at:
                where = f" that has a value ({share(present / signs.looked_at)} of them)"
            words = (
                f"{column} is unprotected and different in {which} record{where}, so it identifies "
            )
            words += "records."
            advice, decisions = "Drop it, or protect it.", ["drop", "protect"]
        yield Caution("amber", (name,), words, advice, cures=_each([name], *decisions))


def _about_determined(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Say which unprotected columns give protected ones away: one caution, however many they are."""
    if not signs.determined:
        return
    given: dict[Any, list[Any]] = {}
    for pair in signs.determined:
        given.setdefault(pair.known, []).append(pair.protected)
    each = "; ".join(
        f"{names([known])} is unprotected and gives {names(protected, _NAMED)} away"
        for known, protected in list(given.items())[:_NAMED]
    )
    more = f"; and {len(given) - _NAMED} more columns" if len(given) > _NAMED else ""
    them = "it" if len(given) == 1 else "them"
    yield Caution(
        "amber",
        tuple(dict.fromkeys([*given, *(pair.protected for pair in signs.determined)])),
        f"{each}{more}.",
        f"Protect {names(given, _NAMED)} too, or drop {them}.",
        cures=_each(given, "protect", "drop"),
    )


def _about_linked_rows(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn of columns that show which rows belong together, if fewer than k sets of rows are equal.

    Tables that are too large to count the sets have the warning without figures.
    """
    for sets in signs.linked_rows:
        if not sets.below_k:
            continue
        column = names([sets.column])
        still = f"{column} is renumbered, but still" if sets.column in roles.renumbered else column
        words = f"{still} shows which rows belong together: {_sets_words(sets)}."
        if sets.below_k_by_size:
            rare = plural(sets.below_k_by_size, "set has", "sets have")
            words += f" {rare} a number of rows that fewer than {sets.k:,} sets have."
        way = ""
        if sets.column not in plan.moved_together:
            name_it = "" if sets.column in plan.units else "name it as unit and "
            way = f" Or {name_it}move whole units: --unit-mode together."
        yield Caution("amber", (sets.column,), words, f"Drop {column}.{way}")
    for name in signs.uncounted_rows:
        fact = "shows which rows belong together"
        way = f"Drop {names([name])}: k counts units whether or not it is released."
        if name in roles.dropped:
            fact, way = "is dropped, but its rows lie together", _RANDOM_ORDER
        words = f"{names([name])} {fact}, and sets of rows are counted only for tables in memory."
        yield Caution("amber", (name,), words, way)


def _sets_words(sets: LinkedRows) -> str:
    """Say how many sets of rows are shared by too few."""
    every = plural(sets.sets, "set")
    if sets.alone == sets.sets:
        return (
            f"all {every} of rows are unique" if sets.sets > 1 else "the only set of rows is unique"
        )
    return (
        f"of {every} of rows, {sets.below_k:,} {'is' if sets.below_k == 1 else 'are'} shared by fewer than "
        f"{sets.k:,}, and {sets.alone:,} {'is' if sets.alone == 1 else 'are'} unique"
    )


def _about_order(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn of what the order of the rows shows, if it is kept, and of means with too many digits."""
    if plan.keep_order and plan.is_swapped:
        words = "The rows have the order of the original, which shows whose rows they are."
        yield Caution("amber", (), words, _RANDOM_ORDER)
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
            words = f"Rows of the same {names([sets.column])} lie together: {_sets_words(sets)}."
            yield Caution("amber", (sets.column,), words, _RANDOM_ORDER)
    if signs.sorted_by:
        columns = tuple(column.name for column in signs.sorted_by)
        which = "; ".join(
            f"{names([column.name])}{' (dropped)' if column.name in roles.dropped else ''}, "
            f"rank correlation with the row number {column.rank_correlation:.3f}"
            if abs(column.rank_correlation) > _SORTED
            else f"{names([column.name])}, within parts of the file"
            for column in signs.sorted_by[:_NAMED]
        )
        words = (
            f"The rows are sorted, so that a row shows the rank of its original values: {which}."
        )
        yield Caution("amber", columns, words, _RANDOM_ORDER)
    if signs.fine_digits:
        yield Caution(
            "amber",
            tuple(signs.fine_digits),
            f"{names(signs.fine_digits, _NAMED)}: means have finer digits than by default. Somebody who has "
            "some of the values can find out which of them are in a group, and with all but one of them "
            "compute the last.",
            "Leave digits out (--digits).",
        )


def _about_units(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn that records are not units: a column that looks like a unit has few values in many groups."""
    for name, (sign, k) in signs.unmixed.items():
        column = names([name])
        few = f"{share(sign.below_k)} of the groups have fewer than {k:,} different"
        what = few + f" values of {column}"
        if sign.one_value >= 0.01:
            one_value = (
                f"In {share(sign.one_value)} of the groups all records have the same {column}"
            )
            what = f"{one_value}, and {few} ones"
        # Without the column in the file, nobody can read off which records belong together.
        severity: Severity = "warning"
        tail = f"{column} is dropped, but someone who knows whose records a group holds knows them all."
        advice = f"Make {column} the unit (--unit {column}), so that k counts its different values."
        if name not in roles.dropped:
            severity, tail = "amber", f"k counts records, not {column}."
            advice += " If it only classifies records, make it a stratum."
        words = f"{what} (by chance it would be {share(sign.below_k_by_chance)}). {tail}"
        yield Caution(severity, (name,), words, advice, cures=_each([name], "unit"))


def about_agreement(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn of groups that disclose a confidential value: amber if for more records than the plan accepts.

    Common values are no news: a note at most. Of ``plan``, ``roles`` and ``signs`` it needs what is accepted
    and required, and how far groups agree.
    """
    agreements, accepted = signs.agreements, plan.accept.agreeing
    disclosed = tuple(name for name, agreement in agreements.items() if agreement.records)
    if disclosed:
        disclosed_part = disclosed_share(agreements.values())
        words = agreement_words(agreements)
        if disclosed_part <= accepted:
            limit = f"That is {share(disclosed_part)} of the records; the plan accepts {share(accepted)}."
            yield Caution("note", disclosed, f"{words} {limit}")
            return
        if signs.cure:
            advice, cures = _tried(signs.cure, disclosed)
        else:  # what may prevent it, where nothing could be tried
            asked = {name for block in plan.blocks for name in block.require.distinct}
            exact = [name for name, each in agreements.items() if each.exact and name not in asked]
            close = [name for name in disclosed if name not in exact]
            flags = _require_flags({"distinct": dict.fromkeys(exact[:_NAMED], 2)})
            advice = f"Require different values: {flags}. " if exact else ""
            advice += f"Raise k, or protect {names(close, _NAMED)} too." if close else ""
            cures = (*_each(exact, "require distinct:2"), *_each(close, "protect"))
        yield Caution("amber", disclosed, words, advice.strip(), cures=cures)
        return
    common = {name: each.harmless for name, each in agreements.items() if each.harmless}
    if common:
        which = ", ".join(f"{names([name])} ({plural(n, 'record')})" for name, n in common.items())
        yield Caution(
            "note",
            tuple(common),
            f"Some groups agree in a common confidential value: {which}. At least half of all records have "
            "it (of a number, more than a tenth), so this is no news about anybody.",
        )


def _tried(cure: Cure, disclosed: Sequence[Any]) -> tuple[str, Decisions]:
    """Say what prevents disclosure by groups, with its price; and the decisions."""
    if not cure.require and not cure.drop:
        column = "column" if len(disclosed) == 1 else "columns"
        words = (
            f"No requirement that was tried prevents it. Drop the {column}, or protect "
            f"{names(disclosed, _NAMED)} too."
        )
        return words, _each(disclosed, "drop", "protect")
    flags = _require_flags(cure.require)
    if cure.drop:
        flags = f"{flags} {_drop_flag(cure.drop)}".strip()
    price = " It was not tried, because the table is large."
    if cure.loss is not None:
        loss, now = percent_words(cure.loss), percent_words(cure.loss_now)
        price = f" The loss would be at most {loss} instead of {now}."
    decisions = [
        (name, f"require {rule}:{value:g}")
        for rule, columns in cure.require.items()
        for name, value in columns.items()
    ]
    return f"This prevents it: {flags}.{price}", (*decisions, *((n, "drop") for n in cure.drop))


def _drop_flag(columns: Sequence[Any]) -> str:
    return f"--drop {','.join(names([name]) for name in columns)}"


def _require_flags(require: Mapping[str, Mapping[Any, float]]) -> str:
    return " ".join(
        f"--require {rule}:{names([name])}={value:g}"
        for rule, columns in require.items()
        for name, value in columns.items()
    )


def _about_pairing(plan: Plan, roles: Roles, signs: Signs) -> Iterator[Caution]:
    """Warn if columns left as they are show whose row is whose for more than 1/k, or than is accepted."""
    pairing, accepted, unknown = signs.pairing, plan.accept.pairing, roles.confidential
    if pairing is None or not pairing.is_above(1 / plan.k):
        return
    words = pairing_words(pairing, unknown)
    if accepted is not None and pairing.rate <= accepted:
        limit = f"The plan accepts {share(accepted)}."
        yield Caution("note", tuple(unknown), f"{words} {limit}")
        return
    them = "it" if len(unknown) == 1 else "them"
    advice = f"Protect {names(unknown, _NAMED)} too, or drop {them}; what the board accepts is --max-pairing."
    cures = _each(unknown, "protect", "drop")
    yield Caution("amber", tuple(unknown), words, advice, cures=cures)


_RULES = (
    _about_plan,
    _about_changes,
    about_known,
    _about_identifiers,
    _about_determined,
    _about_linked_rows,
    _about_order,
    _about_units,
    about_agreement,
    _about_pairing,
)
