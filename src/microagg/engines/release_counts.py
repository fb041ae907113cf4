"""The classes of a release that are counted over all records; and how disk counts them batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa

from microagg.errors import InputError
from microagg.evidence.measured import Counts
from microagg.formats.batches import BatchSource
from microagg.measure.classes import ClassSizes
from microagg.measure.count_by_keys import ClassCounter, keys_of
from microagg.measure.known_columns import largest_first
from microagg.measure.risk import Agreement
from microagg.measure.verify import Countable, Question, Verification, count_promises, why_left_out
from microagg.plan.plan import Promise
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import OddCells, count_odd

_HEAD = 1000  # records that show whether a text column is meant to hold numbers
_SOME_ODD = OddCells(0, 1, 0)


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
    # Where k fails with the known columns, records are found by these, whatever their group discloses.
    apart = () if known.records_below(k) else at.known
    asked = [
        Question([*at.shared, *apart], column, common=True, numbers=name in at.numbers)
        for name, column in at.confidential.items()
    ]
    agreeing = map(Agreement.of_classes, rows.count(asked))
    return verified, counts._replace(
        claimed=sizes["claimed"],
        stakes=largest_first({name: records / known.n_records for name, records in below.items()}),
        agreeing=dict(zip(at.confidential, agreeing, strict=True)),
    )


@dataclass(frozen=True)
class CountsOnDisk:
    """A file whose records are counted batch by batch."""

    source: BatchSource
    scratch: Path
    """Folder for files that are made, and removed, if the keys do not fit into memory."""
    memory: int
    """Bytes that tables of keys may take."""
    units: Mapping[Any, pa.Array] = field(default_factory=dict)
    """What the file does not have of its records: dropped units, and what was dealt to each row."""

    @property
    def written(self) -> Frame:
        """The names of the columns."""
        return Frame(pa.schema([(name, pa.null()) for name in self.source.names]).empty_table())

    @property
    def typed(self) -> Frame:
        """The types of the columns; for a CSV file they are found in an extra pass."""
        return Frame(self.source.schema.empty_table())

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count all classes in one pass."""
        read = (name for question in questions for name in (*question.by, question.distinct))
        names = dict.fromkeys(name for name in read if name is not None)
        needed = [name for name in names if name not in self.units]
        given = {name: self.units[name] for name in names if name in self.units}
        records, share = 0, self.memory // max(len(questions), 1)
        with TemporaryDirectory(prefix="counting-", dir=self.scratch) as folder:
            counters = [
                ClassCounter(
                    Path(folder), share, asked.distinct is not None, asked.common, asked.numbers
                )
                for asked in questions
            ]
            for batch in self.source.batches(needed):
                written, first = Frame(batch.as_written), records
                records += len(written)
                extra = {name: units.slice(first, len(written)) for name, units in given.items()}
                if any(len(units) < len(written) for units in extra.values()):
                    raise _wrong_units()
                for question, counter in zip(questions, counters, strict=True):
                    counter.add(*keys_of(written, question, self.source.is_text, extra))
            if records and any(len(units) > records for units in given.values()):
                raise _wrong_units()
            return [counter.sizes() for counter in counters]

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Look at all cells; the first records show what a column is meant to hold."""
        head, odd = self.typed, {name: OddCells() for name in columns}
        for batch in self.source.batches(columns):
            if not batch.first:
                head = Frame(batch.table.slice(0, _HEAD))
            for name, so_far in odd.items():
                if head.odd_numbers(name, _SOME_ODD) is not None:
                    cells = batch.table[name].cast(pa.large_string())
                    odd[name] = so_far.then(count_odd(cells), batch.first)
        return {name: why_left_out(head, name, cells) for name, cells in odd.items()}


def _wrong_units() -> InputError:
    return InputError(
        "Units that are given next to a file have one value for each of its records; their number differs. "
        "Give those of this file."
    )
