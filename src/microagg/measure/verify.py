"""Count in a table whether k units share each combination of values.

What is counted, and what the counts say, is decided here for all engines. An engine is a :class:`Countable`:
it knows how to go over the records of its table, and counts classes of equal records.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from microagg.errors import InputError, listed, shown
from microagg.formats.files import Source, read_file
from microagg.formats.layouts import CsvFormat
from microagg.measure.classes import ClassSizes, count_combinations
from microagg.plan.plan import Promise
from microagg.plan.settings import check_k
from microagg.tables.frame import Frame, choose_columns, values_as_written
from microagg.tables.numbers_in_text import OddCells


@dataclass(frozen=True)
class Verification:
    """What was counted.

    Attributes
    ----------
    holds : whether each combination is shared by at least k units
    k : least number of units that was asked for
    columns : whose values were counted together
    unit : column whose distinct values are the units; None: every record is one
    records, combinations : how many there are
    smallest : units that share the rarest combination
    records_below_k : records whose combination is shared by fewer than k units
    left_out : columns that were not counted although none were named, and why
    """

    holds: bool
    k: int
    columns: list[Any]
    records: int
    combinations: int
    smallest: int
    records_below_k: int
    unit: Any = None
    left_out: dict[Any, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        left_out = {str(name): why for name, why in self.left_out.items()}
        return {**asdict(self), "left_out": left_out}


def verify(
    data: Any,
    k: int,
    columns: Iterable[Any] | None = None,
    unit: Any = None,
    csv: CsvFormat | None = None,
) -> Verification:
    """Count how many units share each combination of values of some columns.

    Values are counted exactly as they are: those of a CSV file as the text that stands in it, so
    that 1, 1.0 and 1e0 are three, others by their type. Missing is a value like any other.

    Parameters
    ----------
    data : file of any format that microagg reads, or a frame of pandas, polars or pyarrow
    k : least number of units that must share a combination
    columns : names; by default all numeric columns, and ``left_out`` of the result tells the others
    unit : column whose distinct values are the units, such as persons or firms; by default every
        record is one. All records in which it is missing count as one unit.
    csv : delimiter, encoding and decimal sign of a CSV file

    >>> age, household = [30, 30, 30, 64, 64, 64], [1, 1, 1, 2, 3, 4]
    >>> found = verify(pa.table({"age": age, "household": household}), 3, ["age"], "household")
    >>> found.holds, found.smallest, found.records_below_k
    (False, 1, 3)
    """
    return verify_all(data, [Promise(k, columns, unit)], csv)[0]


class Question(NamedTuple):
    """Classes of records to count."""

    by: Sequence[Any]
    """Columns: the records of a class have equal values in all of them, as the file has them."""
    distinct: Any = None
    """Column whose distinct values are counted in each class: units, or confidential values."""
    common: bool = False
    """Whether to mark classes whose only value of ``distinct`` is common."""
    numbers: bool = False
    """Whether ``distinct`` holds numbers: if there are many, more of them are common."""


class Countable(Protocol):
    """A table whose records an engine counts."""

    @property
    def written(self) -> Frame:
        """Columns as the file has them, with or without records."""

    @property
    def typed(self) -> Frame:
        """Typed columns, with or without records."""

    @property
    def units(self) -> Mapping[Any, Any]:
        """Units of the records that the table itself no longer has, by column, in the engine's own form.

        By unit and column: the units that had the values, which are counted for a promise that begins with
        this column.
        """

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count the classes of each question."""

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Say why columns are not among the numeric ones."""


def verify_all(
    data: Any,
    promises: Sequence[Promise],
    csv: CsvFormat | None = None,
    units: Mapping[Any, pa.Array] | None = None,
) -> list[Verification]:
    """Count for several promises in memory; a file is read once.

    Parameters
    ----------
    data : path, frame, or :class:`microagg.formats.files.Source` that was read before
    promises : what to count
    csv : how a CSV file is written; None: found out from the file
    units : unit of each record, by the name of a column that was dropped from the file
    """
    _check(promises)  # before the file is read
    file = read_file(Path(data), csv=csv) if isinstance(data, str | Path) else data
    if isinstance(file, Source):
        written, typed, is_text = Frame(file.as_written), Frame(file.table), file.is_text
    else:
        written = typed = Frame(file)
        is_text = False
    if not len(written):
        raise _nothing_to_count()
    return count_promises(_InMemory(written, typed, units or {}, is_text), promises)[0]


def count_promises(
    table: Countable, promises: Sequence[Promise], more: Sequence[Question] = ()
) -> tuple[list[Verification], list[ClassSizes]]:
    """Count the records of ``table`` for several ``promises``, and the classes of ``more``, in one go."""
    _check(promises)
    if not (promises or more):
        return [], []
    chosen = [_columns_to_count(table, promise) for promise in promises]
    asked = []
    for promise, (columns, _) in zip(promises, chosen, strict=True):
        had_values = (promise.unit, *columns[:1])
        unit = had_values if had_values in table.units else promise.unit
        if unit is not None and unit not in table.units:
            choose_columns(table.written, [unit])
        asked.append(Question(columns, unit))
    counted = table.count([*asked, *more])
    if not counted[0].n_records:
        raise _nothing_to_count()
    aside = list(dict.fromkeys(name for _, others in chosen for name in others))
    why = table.why_left_out(aside) if aside else {}
    verifications = []
    for promise, (columns, others), classes in zip(promises, chosen, counted, strict=False):
        below = classes.records_below(promise.k)
        verification = Verification(
            holds=below == 0,
            k=int(promise.k),
            columns=columns,
            records=classes.n_records,
            combinations=classes.n_classes,
            smallest=classes.fewest_units,
            records_below_k=below,
            unit=promise.unit,
            left_out={name: why[name] for name in others},
        )
        verifications.append(verification)
    return verifications, counted[len(promises) :]


@dataclass(frozen=True)
class _InMemory:
    """A table all of whose records are at hand."""

    written: Frame
    typed: Frame
    units: Mapping[Any, pa.Array]
    is_text: bool

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count values themselves."""
        units, counts = dict(self.units), []
        for by, distinct, *_ in questions:
            if distinct is not None and distinct not in units:
                units[distinct] = values_as_written(self.written, distinct, self.is_text)
            with explaining_kinds(self.written, by):
                columns = [self.written.arrow_column(name) for name in by]
                counts.append(ClassSizes.of(*count_combinations(columns, units.get(distinct))))
        return counts

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Look at all cells."""
        return {name: why_left_out(self.typed, name) for name in columns}


def _check(promises: Sequence[Promise]) -> None:
    for promise in promises:
        # That there are fewer than k records is a finding, not a mistake.
        check_k(promise.k, sys.maxsize)


def _nothing_to_count() -> InputError:
    """Say that a table has no records."""
    return InputError(
        "Counting needs at least one record; the table has none. Check that it was copied whole."
    )


def _columns_to_count(table: Countable, promise: Promise) -> tuple[list[Any], list[Any]]:
    """Return the columns that a promise is about, and those left out although none were named."""
    unit = promise.unit
    left_out: list[Any] = []
    if promise.columns is None:
        # The unit is what is counted, not a value that is shared.
        chosen = [name for name in choose_columns(table.typed, None) if name != unit]
        left_out = [name for name in table.typed.names if name not in {*chosen, unit}]
    else:
        chosen = choose_columns(table.written, promise.columns)
    if unit is not None and (unit in chosen or not chosen):
        raise InputError(
            f"The unit {shown(unit)} is what is counted; name other columns, whose values units share."
        )
    return chosen, left_out


@contextmanager
def explaining_kinds(written: Frame, chosen: Sequence[Any]) -> Iterator[None]:
    """Say in words that columns have values that are not counted."""
    try:
        yield
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"Columns to count must hold numbers, text or dates; {listed(chosen)} hold "
            f"{listed(sorted({written.kind_in_words(name) for name in chosen}))}. "
            "Name the columns without those of other types."
        ) from None


def why_left_out(frame: Frame, name: Any, counted: OddCells | None = None) -> str:
    """Say why the column ``name`` of ``frame`` is not among the numeric ones.

    Where the frame is the beginning of a larger table, ``counted`` has the odd cells of that.
    """
    if frame.is_numeric(name):
        return "the index of pandas"
    odd = frame.odd_numbers(name, counted)
    return frame.kind_in_words(name) if odd is None else odd.in_words()
