"""Excel: the cells of one sheet as text, then typed as those of a CSV file are.

Of a formula the stored value is read. When a sheet is written, numbers are numbers, dates are dates and
text is text, also where it begins as a formula would.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.formatting import byte_size, plural, table_size
from microagg.base.free_memory import free_memory
from microagg.errors import TableError, listed, shown
from microagg.formats.file_errors import needed
from microagg.formats.format import Format, equal_numbers
from microagg.formats.layouts import ExcelFormat, FileFormat
from microagg.tables.frame_libraries import decoded, is_number, is_text

_MOST_ROWS, _MOST_COLUMNS, _LONGEST_TEXT = 1_048_576, 16_384, 32_767
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # which XML does not have
_KINDS = {bool: "truth", int: "number", float: "number", dt.datetime: "time", dt.date: "date"}
_FIRST_DATE = dt.date(1900, 3, 1)  # before, Excel counts a day that never was


class Excel(Format):
    """Excel; other programs' sheets are read only."""

    name = "excel"
    words = "an Excel file"
    is_text = True
    limits_values = True
    has_sheets = True
    longest_text = _LONGEST_TEXT
    labels = value_labels = False

    def read(self, path: Path, file: Any, form: FileFormat) -> tuple[pa.Table, FileFormat]:
        """Read a sheet with a row of column names, every cell as text; blank rows are skipped."""
        calamine, sheet = needed("python_calamine"), form.excel.sheet
        _refuse_too_large(path)
        book = calamine.CalamineWorkbook.from_filelike(file)
        names = list(book.sheet_names)
        if not names or (sheet is not None and sheet not in names):
            wanted = "a sheet" if sheet is None else f"the sheet {shown(sheet)}"
            raise TableError(
                f"A table is read from a sheet; {shown(str(path), 300)} does not have {wanted}, but "
                f"{listed(names) or 'none'}. Name one of these with --sheet."
            )
        chosen = names[0] if sheet is None else sheet
        rows = book.get_sheet_by_name(chosen).to_python(skip_empty_area=False)
        if len(rows) > _MOST_ROWS:
            raise TableError(
                f"A sheet has at most {plural(_MOST_ROWS, 'row')}; {shown(chosen)} in "
                f"{shown(str(path), 300)} has {len(rows):,}. Write the table as CSV, which is read in parts."
            )
        rows = [row for row in rows if any(cell != "" for cell in row)]
        if not rows:
            raise TableError(
                f"A sheet begins with a row of column names; {shown(chosen)} in {shown(str(path), 300)} is "
                "empty. Name another sheet with --sheet."
            )
        width = max(j + 1 for row in rows for j, cell in enumerate(row) if cell != "")
        header = [_text(cell) for cell in rows[0][:width]]
        if "" in header:
            letters = needed("openpyxl.utils").get_column_letter(header.index("") + 1)
            raise TableError(
                f"Every column of a sheet needs a name in its first row; column {letters} of "
                f"{shown(chosen)} has none. Name it, or clear the column."
            )
        cells = [[row[j] if j < len(row) else "" for row in rows[1:]] for j in range(width)]
        texts = [pa.array([_text(cell) for cell in column], pa.string()) for column in cells]
        kinds = []
        for name, column in zip(header, cells, strict=True):
            of_cells = {_KINDS.get(type(cell), "text") for cell in column if cell != ""} or {"text"}
            kinds.append((name, of_cells.pop() if len(of_cells) == 1 else "mixed"))
        excel = ExcelFormat(chosen, tuple(kinds), tuple(name for name in names if name != chosen))
        return pa.Table.from_arrays(texts, names=header), FileFormat(form.csv, excel=excel)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table as the one sheet of a workbook."""
        book = needed("openpyxl").Workbook(write_only=True)
        sheet, kinds = book.create_sheet(form.excel.sheet or "Sheet1"), dict(form.excel.kinds)
        # All before the first row, since openpyxl does not like to be stopped in between.
        columns = [
            list(_cells(sheet, name, column, kinds.get(name)))
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        sheet.append([_text_cell(sheet, name, name, None) for name in table.column_names])
        for row in zip(*columns, strict=True):
            sheet.append(row)
        book.save(path)

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
        if table.num_rows + 1 > _MOST_ROWS or table.num_columns > _MOST_COLUMNS:
            raise TableError(
                f"A sheet has at most {table_size(_MOST_ROWS - 1, _MOST_COLUMNS)}; the table has "
                f"{table_size(table.num_rows, table.num_columns)}. Write another format."
            )

    def _same_values(self, written: Any, read_back: Any) -> bool:
        if not is_number(written.type):
            return True
        texts = pc.if_else(pc.equal(read_back, ""), pa.scalar(None, pa.string()), read_back)
        try:
            return equal_numbers(written, texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            return False


_BYTES_OF_TEXT = 3  # for each byte of shared text: as read, as text of Python, as Arrow
_BYTES_OF_A_CELL = 100  # in calamine and in Python's lists, an empty one too
_DIMENSION = re.compile(rb'<dimension ref="\w+:([A-Z]{1,3})(\d{1,7})"')


def _refuse_too_large(path: Path) -> None:
    """Refuse a workbook that, by the sizes it declares, takes more memory than there is.

    Calamine makes room for every cell up to the last one, and the process ends if there is none.
    """
    if not zipfile.is_zipfile(path):
        return  # of Excel 97, in which a sheet has at most 65,536 rows and 256 columns
    free = free_memory()
    with zipfile.ZipFile(path) as book:
        unpacked = sum(
            entry.file_size * (_BYTES_OF_TEXT if "sharedstrings" in entry.filename.lower() else 1)
            for entry in book.infolist()
        )
        heads = [book.open(name).read(2000) for name in book.namelist() if "worksheets/" in name]
    if unpacked > free:
        raise TableError(
            f"A workbook is read into memory as a whole; {shown(str(path), 300)} unpacks to more than the "
            f"{byte_size(free)} that are free. Save the sheet as CSV, which is read in parts, or check where "
            "the file comes from."
        )
    for letters, rows in (cell for head in heads for cell in _DIMENSION.findall(head)):
        columns = sum(26**j * (letter - 64) for j, letter in enumerate(reversed(letters)))
        if columns * int(rows) * _BYTES_OF_A_CELL > free:
            raise TableError(
                "A sheet is read into memory with all empty cells before the last one; in "
                f"{shown(str(path), 300)} the last one is {(letters + rows).decode()}, too far for the "
                f"{byte_size(free)} that are free. Delete the cells that lie far from the table, or save the "
                "sheet as CSV."
            )


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) <= 2**53 else repr(cell)
    if isinstance(cell, dt.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    return str(cell)


def _typed_cell(sheet: Any, value: str, data_type: str) -> Any:
    """Return a cell that is of one type, whatever openpyxl would see in its text."""
    cell = needed("openpyxl.cell").WriteOnlyCell(sheet, value)
    cell.data_type = data_type
    return cell


def _cells(sheet: Any, name: str, column: Any, kind: str | None) -> Iterator[Any]:
    """Values of a column as cells, one after the other."""
    values = decoded(column)
    text, as_text = is_text(values.type), False
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        days = values.cast(pa.timestamp("s"), safe=False).cast(pa.date32(), safe=False)
        earliest = pc.min(days).as_py() or _FIRST_DATE
        # Excel has neither earlier dates nor time zones.
        as_text = earliest < _FIRST_DATE or getattr(values.type, "tz", None) is not None
    for i, value in enumerate(values.to_pylist()):
        if value is None or value == "":
            yield None
        elif text:
            yield _cell_of_text(sheet, value, kind or "text", name, i)
        elif isinstance(value, float) and not np.isfinite(value):
            raise TableError(
                f"A cell holds a finite number; column {shown(name)} has an infinite one in row {i + 1}. "
                "Write another format, or replace it."
            )
        elif as_text:
            yield str(value)
        else:
            yield _number_cell(sheet, repr(value)) if isinstance(value, float) else value


def _cell_of_text(sheet: Any, text: str, kind: str, name: str, row: int) -> Any:
    """Turn text back into the cell that it came from."""
    if kind in ("truth", "mixed") and text in ("TRUE", "FALSE"):
        return text == "TRUE"
    if kind in ("number", "mixed"):
        with suppress(ValueError):
            number = float(text)
            if _text(number) == text and np.isfinite(number):
                return _number_cell(sheet, text)
    if kind in ("date", "time", "mixed"):
        with suppress(ValueError):
            moment = dt.datetime.fromisoformat(text)
            if moment.isoformat(sep=" ") == text:
                return moment
            if moment.date().isoformat() == text:
                return moment.date()
    return _text_cell(sheet, text, name, row)


def _number_cell(sheet: Any, digits: str) -> Any:
    """Return a number with all its digits; openpyxl by itself writes sixteen, and a double may need more."""
    number = float(digits)
    return number if float(f"{number:.16g}") == number else _typed_cell(sheet, digits, "n")


def _text_cell(sheet: Any, text: str, name: str, row: int | None) -> Any:
    """Return text, as a cell that is text whatever it begins with where openpyxl would see more in it."""
    if len(text) > _LONGEST_TEXT or _CONTROL.search(text):
        where = f"column {shown(name)}, " + ("its name" if row is None else f"row {row + 1}")
        if len(text) > _LONGEST_TEXT:
            raise TableError(
                f"A cell holds at most {_LONGEST_TEXT:,} signs; {where} has more. Write another format."
            )
        raise TableError(
            f"A cell holds no control characters; {where} has one. Write another format, or replace it."
        )
    if text[:1] in ("=", "#"):  # as formulas and errors do
        return _typed_cell(sheet, text, "s")
    return text
