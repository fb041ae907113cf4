"""Cautions about columns and rows that are left as they are: what they tell, and what would cure it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from microagg.base.formatting import RECORDS, UnitWords, names, narrowed_down, plural, share
from microagg.evidence.measured import Cure
from microagg.evidence.sentences import Caution, Severity, pairing_words, percent_words
from microagg.measure.agreement import Agreement, disclosed_share
from microagg.measure.disclosure_signs import Determined, Identifier, UnitsInGroups
from microagg.measure.known_columns import Harm
from microagg.measure.linked_rows import LinkedRows
from microagg.measure.pairing import Pairing
from microagg.measure.risk import agreement_words

_NAMED = 6  # columns that a sentence names
RANDOM_ORDER = "Leave out keep_order (--keep-order): the file is then written in random order."
_CURED = 3  # columns that decisions are offered for


def about_known(
    k: int,
    known: int,
    below_k: float,
    harms: Sequence[Harm],
    drop: Sequence[Any] | None,
    who: UnitWords = RECORDS,
) -> Iterator[Caution]:
    """Say that ``k`` does not hold against someone who knows the unprotected columns.

    ``known`` is their number, ``below_k`` the share of records that it does not hold for, ``harms`` what each
    column does, ``drop`` those without which k would hold, and ``who`` the noun for what k counts.
    """
    if not below_k or not known:
        return
    worst = [harm for harm in harms if harm.alone > 0][:_NAMED] or list(harms[:_NAMED])
    each = ", ".join(f"{names([harm.name])} ({share(harm.alone)})" for harm in worst)
    harm = f"If only one of them is known: {each}." if len(worst) > 1 else ""
    if drop is None:
        way = ""
    elif len(drop) == known:
        all_of = "it is" if known == 1 else "all of them are"
        way = f" k holds only if {all_of} dropped: {_drop_flag(drop)}."
    else:
        way = f" This makes k hold: {_drop_flag(drop)}."
    fact = narrowed_down(below_k, k, who)
    yield Caution(
        "amber",
        tuple(harm.name for harm in worst),
        f"{fact[0].upper()}{fact[1:]} by someone who knows the unprotected columns. {harm}".strip(),
        "Protect, coarsen or drop columns, or name those that no attacker can know as confidential."
        f"{way}",
        cures=_each([harm.name for harm in worst], "protect", "drop"),
    )


def _each(columns: Iterable[Any], *decisions: str) -> tuple[tuple[Any, str], ...]:
    """Return each decision about each of the first few columns."""
    first = list(columns)[:_CURED]
    return tuple((name, decision) for name in first for decision in decisions)


def about_identifiers(
    found: Mapping[Any, Identifier], records: int, units: Sequence[Any] = ()
) -> Iterator[Caution]:
    """Warn of identifiers in the file; ``records`` are all that were looked at."""
    for name, sign in found.items():
        column, present = names([name]), sign.present
        if sign.how == "repeats":
            words = (
                f"{column} is unprotected and looks like an id that repeats: {sign.distinct:,} different "
                f"values in {plural(present, 'record')}."
            )
            advice = "Drop it. It is the unit, and k counts units whether or not it is released."
            decisions = ["unit"]
            if name not in units:
                decisions = ["drop", "unit"]
                advice = (
                    "Drop it; if it numbers people, households or firms, make it the unit "
                    f"(--unit {column})."
                )
        else:
            which = "every" if sign.how == "distinct" else "nearly every"
            where = ""
            if present < records:
                where = f" that has a value ({share(present / records)} of them)"
            words = (
                f"{column} is unprotected and different in {which} record{where}, so it identifies "
                "records."
            )
            advice, decisions = "Drop it, or protect it.", ["drop", "protect"]
        cures = _each([name], *decisions)
        yield Caution("amber", (name,), words, advice, cures=cures)


def about_linked_rows(
    found: Sequence[LinkedRows],
    renumbered: Collection[Any],
    moved_together: Collection[Any],
    units: Collection[Any] = (),
) -> Iterator[Caution]:
    """Warn of sets of rows that fewer than k are equal to, if a column shows which rows belong together."""
    for sets in found:
        if not sets.below_k:
            continue
        column = names([sets.column])
        still = f"{column} is renumbered, but still" if sets.column in renumbered else column
        words = f"{still} shows which rows belong together: {sets_words(sets)}."
        if sets.below_k_by_size:
            rare = plural(sets.below_k_by_size, "set has", "sets have")
            words += f" {rare} a number of rows that fewer than {sets.k:,} sets have."
        way = ""
        if sets.column not in moved_together:
            name_it = "" if sets.column in units else "name it as unit and "
            way = f" Or {name_it}move whole units: --unit-mode together."
        yield Caution("amber", (sets.column,), words, f"Drop {column}.{way}")


def about_uncounted_rows(columns: Sequence[Any], dropped: Collection[Any]) -> Iterator[Caution]:
    """Warn of units that show which rows belong together, if the table is too large to count the sets."""
    for name in columns:
        fact, way = "shows which rows belong together", f"Drop {names([name])}"
        if name in dropped:
            fact, way = "is dropped, but its rows lie together", RANDOM_ORDER
        words = f"{names([name])} {fact}, and sets of rows are counted only for tables in memory."
        tail = "" if name in dropped else ": k counts units whether or not it is released."
        yield Caution("amber", (name,), words, f"{way}{tail}")


def sets_words(sets: LinkedRows) -> str:
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


def about_determined(pairs: Sequence[Determined]) -> Iterator[Caution]:
    """Say which unprotected columns give protected ones away: one caution, however many they are."""
    if not pairs:
        return
    given: dict[Any, list[Any]] = {}
    for pair in pairs:
        given.setdefault(pair.known, []).append(pair.protected)
    each = "; ".join(
        f"{names([known])} is unprotected and gives {names(protected, _NAMED)} away"
        for known, protected in list(given.items())[:_NAMED]
    )
    more = f"; and {len(given) - _NAMED} more columns" if len(given) > _NAMED else ""
    them = "it" if len(given) == 1 else "them"
    yield Caution(
        "amber",
        tuple(dict.fromkeys([*given, *(pair.protected for pair in pairs)])),
        f"{each}{more}.",
        f"Protect {names(given, _NAMED)} too, or drop {them}.",
        cures=_each(given, "protect", "drop"),
    )


def about_groups(
    found: Mapping[Any, tuple[UnitsInGroups, int]], dropped: Collection[Any]
) -> Iterator[Caution]:
    """Warn that records are not units: a column that looks like a unit has few values in many groups."""
    for name, (sign, k) in found.items():
        column = names([name])
        if sign.one_value >= 0.01:
            what = (
                f"In {share(sign.one_value)} of the groups all records have the same {column}, and "
                f"{share(sign.below_k)} of the groups have fewer than {k:,} different ones"
            )
        else:
            what = f"{share(sign.below_k)} of the groups have fewer than {k:,} different values of {column}"
        # Without the column in the file, nobody can read off which records belong together.
        severity: Severity = "warning"
        tail = f"{column} is dropped, but someone who knows whose records a group holds knows them all."
        advice = f"Make {column} the unit (--unit {column}), so that k counts its different values."
        if name not in dropped:
            severity, tail = "amber", f"k counts records, not {column}."
            advice += " If it only classifies records, make it a stratum."
        words = f"{what} (by chance it would be {share(sign.below_k_by_chance)}). {tail}"
        yield Caution(severity, (name,), words, advice, cures=_each([name], "unit"))


def about_agreement(
    agreements: Mapping[Any, Agreement],
    accepted: float = 0.0,
    cure: Cure | None = None,
    asked: Collection[Any] = (),
) -> Iterator[Caution]:
    """Warn of groups that disclose a confidential value: amber if for more records than the plan accepts.

    Common values are no news: a note at most. ``agreements`` are of each column, ``accepted`` is a share of
    the records, ``cure`` what helps, if that was tried, and ``asked`` are columns that must have different
    values in every group.
    """
    disclosed = tuple(name for name, agreement in agreements.items() if agreement.records)
    if disclosed:
        disclosed_part = disclosed_share(agreements.values())
        words = agreement_words(agreements)
        if disclosed_part <= accepted:
            limit = f"That is {share(disclosed_part)} of the records; the plan accepts {share(accepted)}."
            yield Caution("note", disclosed, f"{words} {limit}")
            return
        advice, cures = _tried(cure, disclosed) if cure else _untried(agreements, asked)
        yield Caution("amber", disclosed, words, advice, cures=cures)
        return
    common = {
        name: agreement.harmless for name, agreement in agreements.items() if agreement.harmless
    }
    if not common:
        return
    which = ", ".join(f"{names([name])} ({plural(n, 'record')})" for name, n in common.items())
    yield Caution(
        "note",
        tuple(common),
        f"Some groups agree in a common confidential value: {which}. At least half of all records have "
        "it (of a number, more than a tenth), so this is no news about anybody.",
    )


def _tried(cure: Cure, disclosed: Sequence[Any]) -> tuple[str, tuple[tuple[Any, str], ...]]:
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
    words = f"This prevents it: {flags}."
    if cure.loss is None:
        words += " It was not tried, because the table is large."
    else:
        words += (
            f" The loss would be at most {percent_words(cure.loss)} instead of "
            f"{percent_words(cure.loss_now)}."
        )
    decisions = [
        (name, f"require {rule}:{value:g}")
        for rule, columns in cure.require.items()
        for name, value in columns.items()
    ]
    return words, (*decisions, *((name, "drop") for name in cure.drop))


def _untried(
    agreements: Mapping[Any, Agreement], asked: Collection[Any]
) -> tuple[str, tuple[tuple[Any, str], ...]]:
    """Say what may prevent disclosure by groups, where nothing could be tried; and the decisions."""
    exact = [
        name for name, agreement in agreements.items() if agreement.exact and name not in asked
    ]
    close = [
        name for name, agreement in agreements.items() if agreement.records and name not in exact
    ]
    advice = []
    if exact:
        flags = _require_flags({"distinct": dict.fromkeys(exact[:_NAMED], 2)})
        advice.append(f"Require different values: {flags}.")
    if close:
        advice.append(f"Raise k, or protect {names(close, _NAMED)} too.")
    return " ".join(advice), (*_each(exact, "require distinct:2"), *_each(close, "protect"))


def _drop_flag(columns: Sequence[Any]) -> str:
    return f"--drop {','.join(names([name]) for name in columns)}"


def _require_flags(require: Mapping[str, Mapping[Any, float]]) -> str:
    return " ".join(
        f"--require {rule}:{names([name])}={value:g}"
        for rule, columns in require.items()
        for name, value in columns.items()
    )


def about_pairing(
    pairing: Pairing | None, unknown: Sequence[Any], k: int, accepted: float | None = None
) -> Iterator[Caution]:
    """Warn if columns left as they are show whose row is whose for more than 1/k, or than is accepted."""
    if pairing is None or not pairing.is_above(1 / k):
        return
    if accepted is not None and pairing.rate <= accepted:
        limit = f"The plan accepts {share(accepted)}."
        yield Caution("note", tuple(unknown), f"{pairing_words(pairing, unknown)} {limit}")
        return
    them = "it" if len(unknown) == 1 else "them"
    yield Caution(
        "amber",
        tuple(unknown),
        pairing_words(pairing, unknown),
        f"Protect {names(unknown, _NAMED)} too, or drop {them}; what the board accepts is --max-pairing.",
        cures=_each(unknown, "protect", "drop"),
    )
