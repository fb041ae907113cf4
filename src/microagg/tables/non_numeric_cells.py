"""Cells of a text column that are neither numbers nor missing, where most are numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MISSING_WORDS", "OddCells", "OddCount", "count_odd", "reads_as_number"]

# What stands for a missing value in a text column.
MISSING_WORDS = ("", ".", "NA", "N/A", "NaN", "nan", "NULL", "null")

_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)$"
reads_as_number = re.compile(_NUMBER, re.ASCII).match


@dataclass(frozen=True)
class OddCells:
    """Cells of a column of numbers stored as text that are neither numbers nor missing."""

    row: int | None  # of the first, from 0; None: there is none, and still the column is text
    count: int
    decimal_comma: bool  # whether most of them are numbers with a decimal comma

    def in_words(self) -> str:
        """Where the cells are, without what is in them.

        >>> OddCells(row=6, count=1, decimal_comma=False).in_words()
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


class OddCount(NamedTuple):
    """Cells of some records of a column that are neither numbers nor missing."""

    row: int | None  # of the first, from 0
    cells: int
    with_comma: int  # those that are numbers with a decimal comma

    def then(self, further: OddCount, rows: int) -> OddCount:
        """Count these, of the first ``rows`` records, and those of further records together.

        >>> OddCount(None, 0, 0).then(OddCount(2, 5, 1), rows=10)
        OddCount(row=12, cells=5, with_comma=1)
        """
        later = None if further.row is None else rows + further.row
        row = later if self.row is None else self.row
        return OddCount(row, self.cells + further.cells, self.with_comma + further.with_comma)


def count_odd(cells: Any) -> OddCount:
    """Count the cells of an Arrow array of text that are neither numbers nor missing."""
    cells = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(cells, value_set=pa.array(MISSING_WORDS, cells.type))
    odd = pc.invert(pc.or_(pc.match_substring_regex(cells, _NUMBER), missing))
    odd = pc.fill_null(odd, False)
    count = pc.sum(odd).as_py() or 0
    if not count:
        return OddCount(None, 0, 0)
    pointed = pc.replace_substring(pc.filter(cells, odd), ",", ".", max_replacements=1)
    explained = pc.sum(pc.match_substring_regex(pointed, _NUMBER)).as_py()
    return OddCount(pc.index(odd, True).as_py(), count, explained)
