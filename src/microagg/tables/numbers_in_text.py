"""Columns of text that are numbers, and their types: decided on a whole column, or batch by batch.

There are four ways to turn a column into numbers, tried in this order: as whole numbers or as doubles with
every cell as it is, then the same with null in place of each word for a missing value. A column takes
the first way that succeeds in all of its cells, and stays text where none does. Since each cell is
converted by itself, a way succeeds in a column exactly if it does in every batch of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from microagg.compile.threads import thread_count

# What stands for a missing value in a text column.
MISSING_WORDS = ("", ".", "NA", "N/A", "NaN", "nan", "NULL", "null")


def missing_words(from_csv: bool) -> tuple[str, ...]:
    """Return the texts of a category that mean missing: NA is one only ``from_csv``."""
    return MISSING_WORDS if from_csv else ("",)


_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)$"
reads_as_number = re.compile(_NUMBER, re.ASCII).match


@dataclass(frozen=True)
class OddCells:
    """Cells of a column of numbers stored as text that are neither numbers nor missing."""

    row: int | None = None  # of the first, from 0; None: there is none
    count: int = 0
    with_comma: int = 0  # those that are numbers with a decimal comma

    @property
    def decimal_comma(self) -> bool:
        """Whether most of them are numbers with a decimal comma."""
        return 2 * self.with_comma > self.count

    def then(self, further: OddCells, rows: int) -> OddCells:
        """Count these, of the first ``rows`` records, and those of further records together.

        >>> OddCells().then(OddCells(2, 5, 1), rows=10)
        OddCells(row=12, count=5, with_comma=1)
        """
        later = None if further.row is None else rows + further.row
        row = later if self.row is None else self.row
        return OddCells(row, self.count + further.count, self.with_comma + further.with_comma)

    def in_words(self) -> str:
        """Say where the cells are, without what is in them.

        >>> OddCells(row=6, count=1).in_words()
        'one odd cell in row 7'
        """
        if self.row is None:
            return "numbers stored as text"
        if self.decimal_comma:
            return f"decimal commas, the first in row {self.row + 1}"
        if self.count == 1:
            return f"one odd cell in row {self.row + 1}"
        return f"{self.count} odd cells, the first in row {self.row + 1}"

    @property
    def hint(self) -> str:
        """What to do where the cells are numbers with a decimal comma; else nothing."""
        if not self.decimal_comma:
            return ""
        return "If the comma is a decimal sign, say so: --decimal , for a CSV file."


def count_odd(cells: Any) -> OddCells:
    """Count those of ``cells``, an Arrow array of text, that are neither numbers nor missing."""
    cells = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(cells, value_set=pa.array(MISSING_WORDS, cells.type))
    odd = pc.invert(pc.or_(pc.match_substring_regex(cells, _NUMBER), missing))
    odd = pc.fill_null(odd, False)
    count = pc.sum(odd).as_py() or 0
    if not count:
        return OddCells()
    pointed = pc.replace_substring(pc.filter(cells, odd), ",", ".", max_replacements=1)
    explained = pc.sum(pc.match_substring_regex(pointed, _NUMBER)).as_py()
    return OddCells(pc.index(odd, True).as_py(), count, explained)


class Way(NamedTuple):
    """How a column of text becomes numbers: their type, and whether words for missing become null."""

    kind: pa.DataType
    nulls: bool


_WAYS = tuple(Way(kind, nulls) for nulls in (False, True) for kind in (pa.int64(), pa.float64()))


class NumberTest:
    """The test of one column, which may come in batches.

    >>> test = NumberTest(".", codes_are_text=True)
    >>> test.add(pa.chunked_array([["1", "NA"]]))
    >>> test.add(pa.chunked_array([["2.5"]]))
    >>> test.way
    Way(kind=DataType(double), nulls=True)
    """

    def __init__(self, decimal: str, codes_are_text: bool) -> None:
        self.decimal = decimal
        # 00123 is a code rather than a quantity unless one says otherwise, 0x1F always is.
        self._code = r"^0[\dxX]" if codes_are_text else r"^[-+]?0[xX]"
        self._ways: tuple[Way, ...] = _WAYS  # that no cell has ruled out
        self._present = False  # whether a cell was seen that is not missing

    @property
    def way(self) -> Way | None:
        """The way that suits all that was added; None: it stays text."""
        return self._ways[0] if self._present and self._ways else None

    def add(self, text: pa.ChunkedArray) -> None:
        """Rule out the ways that do not suit a batch."""
        numbers = self._look(text)
        if numbers is None:
            return
        held: list[Way] = []
        for way in self._ways:
            # What is a whole number is a double, and a way that needs no nulls succeeds with them.
            implied = any(parser.kind in (way.kind, pa.int64()) for parser in held)
            if implied or _cast(numbers, way) is not None:
                held.append(way)
        self._ways = tuple(held)

    def whole(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert a column that is complete; text stays text."""
        numbers = self._look(text)
        for way in self._ways if numbers is not None and self._present else ():
            values = _cast(numbers, way)
            if values is not None:
                return values
        return text

    def convert(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert a batch as all batches together are to be converted."""
        if self.way is None:
            return text
        values = _cast(_pointed(text, self.decimal), self.way)
        if values is None:
            raise pa.ArrowInvalid("the file changed while it was read")
        return values

    def _look(self, text: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Trim cells, with decimal points; None: the column is text, as one of these cells shows."""
        if not self._present and self._ways:
            first = _first_present(text)
            if first is not None:
                self._present = True
                if not reads_as_number(first.replace(self.decimal, ".")):
                    self._ways = ()  # found out at once for most columns of text
                elif not first.lstrip("+-").isdecimal():
                    self._ways = tuple(way for way in self._ways if way.kind != pa.int64())
        if not self._ways:
            return None
        if self.decimal == "," and pc.any(pc.match_substring(text, ".")).as_py():
            self._ways = ()
            return None
        numbers = _pointed(text, self.decimal)
        if pc.any(pc.match_substring_regex(numbers, self._code)).as_py():
            self._ways = ()
            return None
        return numbers


def as_typed(text: pa.Table, decimal: str, numbers: Collection[str] = ()) -> pa.Table:
    """Turn the columns of a table of text that read as numbers into int64 or double.

    Parameters
    ----------
    text : every column as the text that stands in a file; missing values become null
    decimal : sign for decimals, . or ,
    numbers : columns that are numbers even if they look like codes, such as 00123, which else stay text
    """
    named = frozenset(numbers)
    typed = in_threads(
        lambda name, column: NumberTest(decimal, codes_are_text=name not in named).whole(column),
        text,
    )
    return pa.table(dict(zip(text.column_names, typed, strict=True)))


def in_threads(work: Callable[[str, Any], Any], table: pa.Table) -> list[Any]:
    """Return ``work`` of each column of ``table``; a task has several, which may take microseconds each."""
    tasks = 8 * thread_count()
    bounds = [table.num_columns * i // tasks for i in range(tasks + 1)]
    names, columns = table.column_names, table.columns

    def stretch(low: int, high: int) -> list[Any]:
        return [work(names[j], columns[j]) for j in range(low, high)]

    with ThreadPoolExecutor(thread_count()) as pool:
        return [result for some in pool.map(stretch, bounds[:-1], bounds[1:]) for result in some]


def _pointed(text: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Cells without outer blanks, with a decimal point."""
    numbers = pc.utf8_trim_whitespace(text)
    return pc.replace_substring(numbers, ",", ".") if decimal == "," else numbers


def _first_present(text: pa.ChunkedArray) -> str | None:
    """Return the first cell that is not missing, without outer blanks; None if all are."""
    start, rows = 0, 10
    while start < len(text):
        for cell in text.slice(start, rows).to_pylist():
            if cell.strip() not in MISSING_WORDS:
                return str(cell.strip())
        start, rows = start + rows, 10_000
    return None


def _cast(numbers: pa.ChunkedArray, way: Way) -> pa.ChunkedArray | None:
    if way.nulls:
        missing = pc.is_in(numbers, value_set=pa.array(MISSING_WORDS))
        numbers = pc.if_else(missing, pa.scalar(None, pa.string()), numbers)
    try:
        return pc.cast(numbers, way.kind)
    except pa.ArrowInvalid:
        return None
