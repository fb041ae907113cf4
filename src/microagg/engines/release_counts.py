"""The classes of a release that are counted over all records, on whatever engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from microagg.measure.agreement import Agreement, telling_apart
from microagg.measure.classes import ClassSizes
from microagg.measure.known_columns import largest_first
from microagg.measure.verify import Countable, Question, Verification, count_promises
from microagg.plan.plan import Promise


class Counts(NamedTuple):
    """Classes of all records of a release."""

    alone: ClassSizes
    """By the protected columns."""
    known: ClassSizes
    """By these, strata, released weight and the known columns."""
    unique_before: int
    claimed: ClassSizes | None = None
    """With the confidential columns too; None: there is none."""
    stakes: Mapping[Any, float] = {}
    """Share of records below k if a confidential column were known, the largest first."""
    agreeing: Mapping[Any, Agreement] = {}
    """Groups that agree in each confidential column, as far as exact values disclose."""


class CountedColumns(NamedTuple):
    """Where an engine has what is counted: names of columns, or of keys of several columns."""

    values: Sequence[Any]
    """The protected values."""
    shared: Sequence[Any]
    """All that the records of a group share: protected values, strata and released weight."""
    known: Sequence[Any]
    """The known columns, as far as a group does not share them."""
    confidential: Mapping[Any, Any]
    """Each confidential column."""
    numbers: Collection[Any]
    """The confidential columns that hold numbers."""
    unit: Any
    """What k counts; None: records."""
    originals: Sequence[Any] = ()
    """The protected values before, where they are at hand as well."""


def count_release(
    rows: Countable,
    at: CountedColumns,
    k: int,
    unique_before: int = 0,
    promises: Sequence[Promise] = (),
) -> tuple[list[Verification], Counts]:
    """Count what was promised, and the classes for attackers who know few or many columns.

    ``unique_before`` is the number of records whose original values no other has, where these are not counted
    here.
    """
    seen = [*at.shared, *at.known]
    by: dict[Any, list[Any]] = {"alone": [*at.values]}
    if seen != by["alone"]:
        by["known"] = seen
    if at.confidential:
        by["claimed"] = [*seen, *at.confidential.values()]
        by |= {("stake", name): [*seen, column] for name, column in at.confidential.items()}
    asked = [Question(columns, at.unit) for columns in by.values()]
    if at.originals:
        by["before"] = [*at.originals]
        asked.append(Question(by["before"]))
    verified, counted = count_promises(rows, promises, asked)
    sizes = dict(zip(by, counted, strict=True))
    if at.originals:
        unique_before = sizes["before"].unique
    known = sizes["known" if "known" in sizes else "alone"]
    counts = Counts(sizes["alone"], known, unique_before)
    if not at.confidential:
        return verified, counts
    below = {name: sizes["stake", name].records_below(k) for name in at.confidential}
    apart = telling_apart(at.known, known.records_below(k))
    return verified, counts._replace(
        claimed=sizes["claimed"],
        stakes=largest_first({name: columns / known.n_records for name, columns in below.items()}),
        agreeing=_count_agreeing(rows, [*at.shared, *apart], at),
    )


def _count_agreeing(rows: Countable, by: Sequence[Any], at: CountedColumns) -> dict[Any, Agreement]:
    """Count the records whose class discloses their value of each confidential column."""
    counted = rows.count(
        [
            Question(by, column, common=True, numbers=name in at.numbers)
            for name, column in at.confidential.items()
        ]
    )
    return dict(zip(at.confidential, map(Agreement.of_classes, counted), strict=True))
