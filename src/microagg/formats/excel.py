"""Excel: the cells of one sheet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, listed, shown
from microagg.formats.excel_sheets import (
    LONGEST_TEXT,
    MOST_COLUMNS,
    MOST_ROWS,
    read_excel,
    write_excel,
)
from microagg.formats.format import FileFormat, Format, Reading, equal_numbers, is_number
from microagg.formats.limited import Limited

__all__ = ["Excel"]


class Excel(Limited):
    """Excel; other programs' sheets are read only."""

    name = "excel"
    words = "an Excel file"
    is_text = True
    has_sheets = True
    text_also_for = ("csv",)
    longest_text = LONGEST_TEXT
    column_labels = value_labels = table_label = False

    def _open(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        table, excel = read_excel(path, how.sheet if how.like is None else how.like.excel.sheet)
        return table, FileFormat(csv=how.csv, excel=excel)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table to one sheet."""
        write_excel(table, path, form.excel)

    def about(self, form: FileFormat, target: Format) -> Iterator[str]:
        """Say which sheets and what else of a sheet is not written."""
        if form.excel.others:
            others = listed(form.excel.others, limit=5)
            yield f"Only the sheet {shown(form.excel.sheet)} is written, without {others}."
        if target is self:
            yield "Values of cells are written; formulas, colours and widths of a sheet are not."

    def refuse(self, table: pa.Table, version: int = 0) -> None:
        """Refuse what does not fit into a sheet."""
        super().refuse(table, version)
        if table.num_rows + 1 > MOST_ROWS or table.num_columns > MOST_COLUMNS:
            raise TableError(
                f"A sheet has at most {MOST_ROWS - 1:,} records and {MOST_COLUMNS:,} columns; the table has "
                f"{table.num_rows:,} and {table.num_columns:,}. Write another format."
            )

    def _same_values(self, one: Any, other: Any) -> bool:
        if not is_number(one.type):
            return True
        texts = pc.if_else(pc.equal(other, ""), pa.scalar(None, pa.string()), other)
        try:
            return equal_numbers(one, texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            return False
