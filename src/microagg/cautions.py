"""The rules that make a caution: when a board must be told, and in which words.

Every caution has a figure and says what to do. Names of columns are in it, values never.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from microagg.findings import Caution, Part, linked_words
from microagg.groups import Labels
from microagg.measure.harm import Harm, enough
from microagg.measure.known import Known
from microagg.measure.linked_rows import LinkedRows
from microagg.measure.pairs import Pair
from microagg.measure.risk import Risk, agreement_words
from microagg.measure.signs import (
    Determined,
    Identifier,
    UnitsInGroups,
    determines,
    identifier,
    units_in_groups,
)
from microagg.plan import Plan, Roles
from microagg.released import Cells
from microagg.words import RECORDS, UnitWords, among_fewer, names, plural, share

__all__ = [
    "about_changes",
    "about_columns",
    "about_dominance",
    "about_groups",
    "about_known",
    "about_linked_rows",
    "about_plan",
    "about_row_labels",
    "about_secrets",
    "about_uncounted_rows",
    "found_by_known",
]

_NAMED = 6  # columns that a sentence names
_DIVERSITY = (
    "Require different values (--require distinct:COLUMN=2), raise k, or protect such a column too."
)


def about_plan(plan: Plan, roles: Roles) -> list[Caution]:
    """Cautions that the plan alone calls for."""
    found = []
    if plan.k == 1:
        found.append(
            Caution(
                "amber",
                (),
                "k = 1 protects nothing: every record may form a group of its own.",
                "Choose k = 3 or more.",
            )
        )
    each = [b for b in plan.blocks if b.per_column and len(b.columns or ()) > 1]
    if each:
        columns = tuple(name for block in each for name in block.columns or ())
        units = {plan.words_of_unit(plan.unit_of(block).column) for block in each}
        who = units.pop() if len(units) == 1 else "units"
        found.append(
            Caution(
                "amber",
                columns,
                f"Each of {names(columns, _NAMED)} is protected by itself: every value is shared by at least "
                f"{min(block.k or 1 for block in each):,} {who}, but combinations of "
                "columns need not be, so this is no k-anonymity of the records.",
                "Protect the columns together, unless only one of them can be known to anybody.",
            )
        )
    if len(plan.blocks) > 1:
        found.append(
            Caution(
                "amber",
                tuple(roles.protected),
                f"The columns are protected in {len(plan.blocks)} blocks: combinations of columns of "
                "different blocks need not be shared by anybody.",
                "Protect the columns in one block, unless nobody can know columns of two of them.",
            )
        )
    if not roles.confidential and roles.known:
        found.append(
            Caution(
                "note",
                (),
                "No confidential column was named.",
                "If all records of a group agree in a column that is left as it is, its value is disclosed "
                "for all of them; name such columns as confidential to have that counted.",
            )
        )
    return found


def about_changes(
    cells: Mapping[Any, Cells], recoded: int, records: int, strata: Sequence[Any]
) -> list[Caution]:
    """Values that records did not have: filled ones, blanked ones, and strata that were merged."""
    found = []
    filled = {name: column.filled for name, column in cells.items() if column.filled}
    if filled:
        count = sum(filled.values())
        found.append(
            Caution(
                "warning",
                tuple(filled),
                f"{plural(count, 'missing value')} of {names(filled, _NAMED)} "
                f"{'is' if count == 1 else 'are'} released as the value of the group, which nobody gave.",
                'Say so to users of the file, or keep them missing: missing = "pattern".',
            )
        )
    blanked = {name: column.blanked for name, column in cells.items() if column.blanked}
    if blanked:
        count = sum(blanked.values())
        found.append(
            Caution(
                "note",
                tuple(blanked),
                f"{plural(count, 'value')} of {names(blanked, _NAMED)} {'was' if count == 1 else 'were'} "
                f"blanked ({share(count / (records * len(cells)))} of all values), so that k share what is "
                "missing.",
            )
        )
    if recoded:
        found.append(
            Caution(
                "warning",
                tuple(strata),
                f"Small strata were merged: {plural(recoded, 'record')} ({share(recoded / records)}) are "
                f"released with the {names(strata, _NAMED)} of another stratum.",
                "Totals by stratum change by that; name coarser strata to avoid it.",
            )
        )
    return found


def about_row_labels(distinct: int) -> Caution:
    """Row labels of a pandas frame, which go with the release and are no column."""
    return Caution(
        "amber",
        ("(index)",),
        f"The row labels of the frame, its index, are released with {distinct:,} different values, and are "
        "not counted among what an attacker knows.",
        "Reset the index before release; what is needed of it can be a column.",
    )


def about_known(
    k: int,
    both: Pair,
    known: Mapping[Any, Known],
    below_k: float,
    harms: Sequence[Harm],
    who: UnitWords = RECORDS,
    units: Labels | None = None,
) -> list[Caution]:
    """Say that k does not hold for an attacker who knows the columns left as they are.

    ``who`` is the noun for what k counts, and ``units`` the unit of each record, if there is one.
    """
    if not below_k or not known:
        return []
    worst = [harm for harm in harms if harm.alone > 0][:_NAMED] or list(harms[:_NAMED])
    told = ", ".join(f"{names([harm.name])} ({share(harm.alone)})" for harm in worst)
    harm = f"Most harm, each known alone: {told}."
    drop = enough(both, known, k, units)
    if drop is None:
        way = ""
    elif len(drop) == len(known):
        way = " k holds only without any of them."
    else:
        way = f" Without {names(drop, _NAMED)} k would hold."
    coarser = min(
        (harm for harm in harms if harm.coarsened is not None),
        key=lambda harm: harm.coarsened or 0.0,
        default=None,
    )
    if coarser is not None and (coarser.coarsened or 0.0) < below_k - 0.005:
        way += f" Coarsening {names([coarser.name])} to ten levels would leave {share(coarser.coarsened)}."
    return [found_by_known(k, below_k, [one.name for one in worst], who, harm, way)]


def found_by_known(
    k: int,
    below_k: float,
    columns: Sequence[Any],
    who: UnitWords = RECORDS,
    harm: str = "",
    way: str = "",
) -> Caution:
    """Say how many records an attacker singles out who knows columns left as they are.

    ``harm`` says which of them tell most, ``way`` what would help, where that is known.
    """
    return Caution(
        "amber",
        tuple(columns),
        f"Whoever knows the columns left as they are finds {share(below_k)} of the records "
        f"{among_fewer(k, who)}. {harm}".strip(),
        f"Protect, coarsen or drop them, or name as confidential what no attacker can know.{way}",
    )


def about_columns(
    both: Pair, known: Mapping[Any, Known], secret: Mapping[Any, Known], units: Sequence[Any] = ()
) -> list[Caution]:
    """Identifiers left in the file, and columns from which a protected one follows."""
    found = []
    for name, column in known.items():
        sign = identifier(column)
        if sign.how is not None and not (sign.how == "nearly distinct" and column.kind == "real"):
            found.append(_of_identifier(name, sign, len(both), name in units))
    found += [_of_determined(one) for one in determines({**known, **secret}, both)]
    return found


def _of_identifier(name: Any, sign: Identifier, n: int, is_unit: bool) -> Caution:
    present = sign.present
    where = "" if present == n else f" wherever it is present ({share(present / n)} of the records)"
    if sign.how == "repeats":
        words = (
            f"{names([name])} is left as it is and looks like an id that repeats: {sign.distinct:,} "
            f"different values in {plural(present, 'record')}."
        )
        advice = (
            "It is the unit: drop it. k counts units all the same."
            if is_unit
            else "Name it as unit if it numbers persons, households or firms, and drop it."
        )
    else:
        which = "all values differ" if sign.how == "distinct" else "nearly all values differ"
        words = f"In {names([name])}, left as it is, {which}{where}: it points to single records."
        advice = "Drop it, or protect it."
    return Caution("amber", (name,), words, advice)


def about_linked_rows(
    found: Sequence[LinkedRows], renumbered: Collection[Any], moved_together: Collection[Any]
) -> list[Caution]:
    """Sets of rows that can be told apart, since a released column shows which rows belong together."""
    return [
        _of_linked_rows(one, one.column in renumbered, one.column in moved_together)
        for one in found
        if one.below_k
    ]


def about_uncounted_rows(columns: Sequence[Any]) -> list[Caution]:
    """Columns that show which rows belong together, where a table is too large to count sets of rows."""
    return [
        Caution(
            "amber",
            (name,),
            f"{names([name])} shows which rows belong together, and sets of rows are counted only for "
            "tables in memory.",
            f"Drop {names([name])}: k counts units all the same.",
        )
        for name in columns
    ]


def _of_linked_rows(one: LinkedRows, renumbered: bool, moved_together: bool) -> Caution:
    column = names([one.column])
    still = f"{column} is renumbered, but still" if renumbered else column
    words = (
        f"{still} shows which rows belong together: of {one.sets:,} sets of rows, {one.below_k:,} "
        f"{'is' if one.below_k == 1 else 'are'} shared by fewer than {one.k:,}, and {one.alone:,} "
        f"{'is' if one.alone == 1 else 'are'} unique."
    )
    if one.below_k_by_size:
        words += f" The number of rows alone gives away {one.below_k_by_size:,}."
    if one.linkage is not None:
        words += (
            " An attacker who knows the true values of all rows of a set finds it in "
            f"{linked_words(one.linkage)} of the cases."
        )
    way = (
        "" if moved_together else " Or name it as unit and move whole units: --unit-mode together."
    )
    return Caution("amber", (one.column,), words, f"Drop {column}.{way}")


def _of_determined(one: Determined) -> Caution:
    if one.rank_correlation is not None and abs(one.rank_correlation) >= 0.99:
        how = f"the rank correlation is {one.rank_correlation:.3f}"
    else:
        how = "records that agree in it agree in the other"
    return Caution(
        "amber",
        (one.known, one.protected),
        f"The protected {names([one.protected])} follows from {names([one.known])}, which is left as it "
        f"is: {how}.",
        f"Protect {names([one.known])} too, or drop it.",
    )


def about_groups(
    plan: Plan,
    roles: Roles,
    parts: Sequence[Part],
    columns: Mapping[Any, Known],
) -> list[Caution]:
    """Records are not units: a column left, renumbered or dropped has few values in many groups."""
    found = []
    by_records = [
        part for part in parts if plan.unit_of(plan.block_of(part.columns)).column is None
    ]
    for name, column in columns.items():
        for part in by_records:
            sign = units_in_groups(part.partition.labels, column, part.partition.k)
            if sign.looks_like_unit:
                found.append(_of_unit(name, sign, part.partition.k, name in roles.dropped))
                break
    return found


def _of_unit(name: Any, sign: UnitsInGroups, k: int, dropped: bool) -> Caution:
    column = names([name])
    if sign.one_value >= 0.01:
        what = (
            f"{share(sign.one_value)} of the groups have one and the same {column} throughout, and "
            f"{share(sign.below_k)} fewer than {k:,} different ones"
        )
    else:
        what = f"{share(sign.below_k)} of the groups hold fewer than {k:,} different {column}"
    tail = (
        f"{column} is dropped, but whoever knows whose records a group holds knows them all."
        if dropped
        else f"k counts records, not {column}."
    )
    return Caution(
        # Without the column in the file, nobody can read off which records belong together.
        "warning" if dropped else "amber",
        (name,),
        f"{what} (by chance, {share(sign.below_k_by_chance)}): {tail}",
        f"Name {column} as unit, so that k counts its distinct values.",
    )


def about_secrets(risk: Risk) -> list[Caution]:
    """Groups whose records agree in a confidential column."""
    found = []
    if words := agreement_words(risk.diversity):
        columns = tuple(name for name, column in risk.diversity.items() if column.homogeneous)
        found.append(
            Caution(
                "warning",
                columns,
                words,
                _DIVERSITY,
            )
        )
    return found


def about_dominance(risk: Risk) -> list[Caution]:
    """Rules of dominance that are broken."""
    found = []
    for name, rule in risk.dominance.items():
        if not rule.holds:
            found.append(
                Caution(
                    "warning",
                    (name,),
                    f"In {plural(rule.classes_over, 'group')} one record makes up more than "
                    f"{rule.percent:g} % of the total of {names([name])}.",
                    "Raise k.",
                )
            )
    return found
