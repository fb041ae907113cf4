"""Count in a file, or a frame, whether k units share each combination of values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.errors import InputError, listed, shown
from microagg.formats.files import Source, read_file
from microagg.formats.layouts import CsvFormat
from microagg.measure.classes import count_combinations
from microagg.plan.plan import Promise
from microagg.plan.settings import check_k
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame, choose_columns
from microagg.tables.numbers_in_text import OddCells

__all__ = [
    "Verification",
    "columns_to_count",
    "countable",
    "finding",
    "nothing_to_count",
    "verify",
    "verify_all",
    "why_left_out",
]


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


def verify_all(
    data: Any,
    promises: Sequence[Promise],
    csv: CsvFormat | None = None,
    units: Mapping[Any, pa.Array] | None = None,
) -> list[Verification]:
    """Count for several promises; a file is read once.

    ``data`` may also be a :class:`microagg.formats.files.Source`, which was read before. ``units`` has the
    unit of each record for columns that were dropped from the file.
    """
    for one in promises:
        check_k(
            one.k, sys.maxsize
        )  # that fewer than k records are there is a finding, not a mistake
    if isinstance(data, str | Path):
        data = read_file(Path(data), csv=csv)
    if isinstance(data, Source):
        written, typed = Frame(data.as_written), lambda: Frame(data.table)
        is_text = data.is_text
    else:
        written = Frame(data)
        typed, is_text = lambda: written, False
    if not len(written):
        raise nothing_to_count()
    by_column = dict(units or {})
    for one in promises:
        if one.unit is not None and one.unit not in by_column:
            by_column[one.unit] = values_as_written(written, one.unit, is_text)
    return [_count(written, typed, one, by_column.get(one.unit)) for one in promises]


def _count(
    written: Frame,
    typed: Callable[[], Frame],
    promise: Promise,
    units: pa.Array | pa.ChunkedArray | None,
) -> Verification:
    chosen, left_out = columns_to_count(written, typed, promise)
    with countable(written, chosen):
        records, shared_by = count_combinations(
            [written.arrow_column(name) for name in chosen], units
        )
    return finding(
        promise,
        chosen,
        {name: why_left_out(typed(), name) for name in left_out},
        records=len(written),
        combinations=len(records),
        smallest=int(shared_by.min()),
        below=int(np.sum(records[shared_by < promise.k])),
    )


def finding(
    promise: Promise,
    columns: list[Any],
    left_out: dict[Any, str],
    *,
    records: int,
    combinations: int,
    smallest: int,
    below: int,
) -> Verification:
    """Put together what was counted for a promise; ``below`` are the records in rarer combinations."""
    return Verification(
        holds=below == 0,
        k=int(promise.k),
        columns=columns,
        records=records,
        combinations=combinations,
        smallest=smallest,
        records_below_k=below,
        unit=promise.unit,
        left_out=left_out,
    )


def nothing_to_count() -> InputError:
    """Say that a table has no records."""
    return InputError(
        "Counting needs at least one record; the table has none. Check that it was copied whole."
    )


def columns_to_count(
    written: Frame, typed: Callable[[], Frame], promise: Promise
) -> tuple[list[Any], list[Any]]:
    """Return the columns that a promise is about, and those left out although none were named."""
    unit = promise.unit
    left_out: list[Any] = []
    if promise.columns is None:
        frame = typed()
        # The unit is what is counted, not a value that is shared.
        chosen = [name for name in choose_columns(frame, None) if name != unit]
        counted = {*chosen, unit}
        left_out = [name for name in frame.names if name not in counted]
    else:
        chosen = choose_columns(written, promise.columns)
    if unit is not None and (unit in chosen or not chosen):
        raise InputError(
            f"The unit {shown(unit)} is what is counted; name other columns, whose values units share."
        )
    return chosen, left_out


@contextmanager
def countable(written: Frame, chosen: list[Any]) -> Iterator[None]:
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
    """Say why a column is not among the numeric ones.

    Where the frame is the beginning of a larger table, ``counted`` has the odd cells of that.
    """
    if frame.is_numeric(name):
        return "the index of pandas"
    odd = frame.odd_numbers(name, counted)
    return frame.kind_in_words(name) if odd is None else odd.in_words()
