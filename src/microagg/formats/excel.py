"""Excel: the cells of one sheet as text, then typed as those of a CSV file are.

Of a formula the stored value is read. When a sheet is written, numbers are numbers, dates are dates and
text is text, also where it begins as a formula would.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.formatting import plural, table_size
from microagg.base.free_memory import free_memory
from microagg.errors import TableError, listed, shown
from microagg.formats.file_errors import needed
from microagg.formats.format import Format, Reading, equal_numbers
from microagg.formats.layouts import ExcelFormat, FileFormat
from microagg.tables.frame_libraries import decoded, is_number, is_text

_MOST_ROWS, _MOST_COLUMNS, _LONGEST_TEXT = 1_048_576, 16_384, 32_767
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # which XML does not have
_FIRST_DATE = dt.date(1900, 3, 1)  # before, Excel counts a day that never was


class Excel(Format):
    """Excel; other programs' sheets are read only."""

    name = "excel"
    words = "an Excel file"
    is_text = True
    limits_values = True
    has_sheets = True
    text_also_for = ("csv",)
    longest_text = _LONGEST_TEXT
    column_labels = value_labels = table_label = False

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        """Read one sheet."""
        table, excel = _read_sheet(path, how.sheet if how.like is None else how.like.excel.sheet)
        return table, FileFormat(csv=how.csv, excel=excel)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table as the one sheet of a workbook."""
        _write_sheet(table, path, form.excel)

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

    def _same_values(self, one: Any, other: Any) -> bool:
        if not is_number(one.type):
            return True
        texts = pc.if_else(pc.equal(other, ""), pa.scalar(None, pa.string()), other)
        try:
            return equal_numbers(one, texts.cast(pa.float64()))
        except pa.ArrowInvalid:
            return False


def _column_letters(position: int) -> str:
    """Name a column as Excel does.

    >>> [_column_letters(j) for j in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters, position = "", position + 1
    while position:
        position, digit = divmod(position - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


# Calamine makes room for every cell up to the last one: 5 kB with a cell in row 1,048,576 and column 200 take
# 7 GB. Binary workbooks and OpenDocument are judged by the sizes alone that the zip file declares.

_BYTES_OF_A_CELL = 100  # in calamine and in Python's lists, an empty one too
_BYTES_OF_TEXT = 3  # for each byte of shared text: as read, as text of Python, as Arrow
_ROW = re.compile(rb"<(?:\w+:)?row[\s>/]")
_ADDRESS = re.compile(
    rb"\sr=[\"']([A-Z]{0,4})(\d{1,9})[\"']"
)  # of a cell; of a row without letters
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def _refuse_too_large(path: Path, sheet: str | None) -> None:
    """Refuse a workbook whose sheet takes more memory than there is; None: its first sheet."""
    if not zipfile.is_zipfile(path):
        return  # of Excel 97, in which a sheet has at most 65,536 rows and 256 columns
    free = free_memory()
    with zipfile.ZipFile(path) as book:
        unpacked = sum(
            entry.file_size * (_BYTES_OF_TEXT if "sharedstrings" in entry.filename.lower() else 1)
            for entry in book.infolist()
        )
        if unpacked > free:
            raise TableError(
                f"A workbook is read into memory as a whole; {shown(str(path), 300)} unpacks to more than "
                f"the {_amount(free)} that are free. Save the sheet as CSV, which is read in parts, or check "
                "where the file comes from."
            )
        for part_name in _parts_of(book, sheet):
            rows, columns = _size_of(book, part_name)
            if rows > _MOST_ROWS:
                raise TableError(
                    f"A sheet has at most {plural(_MOST_ROWS, 'row')}; {shown(str(path), 300)} has {rows:,}. "
                    "Write the table as CSV, which is read in parts."
                )
            needed_bytes = rows * columns * _BYTES_OF_A_CELL
            if needed_bytes > free:
                raise TableError(
                    "A sheet is read into memory as a whole, with all empty cells before the last one; "
                    f"{shown(str(path), 300)} has {plural(rows, 'row')} and {plural(columns, 'column')}, "
                    f"which take about {_amount(needed_bytes)} where {_amount(free)} are free. Delete the "
                    "cells that lie far from the table, or save the sheet as CSV, which is read in parts."
                )


def _parts_of(book: zipfile.ZipFile, sheet: str | None) -> list[str]:
    """Return the name of the part that holds a sheet; of all sheets where it is not found."""
    sheets = [name for name in book.namelist() if re.fullmatch(r"xl/worksheets/.*\.xml", name)]
    try:
        names = ElementTree.fromstring(book.read("xl/workbook.xml"))
        relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    except (KeyError, ElementTree.ParseError):
        return sheets
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    for tag in names.iter():
        if tag.tag.endswith("}sheet") and sheet in (None, tag.get("name")):
            target = targets.get(tag.get(_RELATION), "").lstrip("/").removeprefix("xl/")
            return [f"xl/{target}"] if f"xl/{target}" in sheets else sheets
    return sheets


def _size_of(book: zipfile.ZipFile, part_name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns up to the last cell of a sheet.

    A row of cells without addresses counts as wide as a fourth of its tags: a cell with a value has four.
    """
    rows = columns = last_row = 0
    rest = b""
    with book.open(part_name) as content:
        while piece := content.read(1 << 20):
            rest += piece
            end = max(rest.rfind(b"<"), 0)
            text, rest = rest[:end], rest[end:]
            rows, columns, last_row = _with_rows(text, rows, columns, last_row)
    rows, columns, last_row = _with_rows(rest, rows, columns, last_row)
    return max(rows, last_row), columns


def _with_rows(text: bytes, rows: int, columns: int, last_row: int) -> tuple[int, int, int]:
    """Add the rows of a piece of a sheet to the number of rows, of columns, and the last row's address."""
    addresses = _ADDRESS.findall(text)
    letters = {letter for letter, _ in addresses if letter}
    if letters:
        columns = max([columns, *map(_column_number, letters)])
    else:
        columns = max([columns, *(row.count(b"<") // 4 for row in _ROW.split(text))])
    last_row = max([last_row, *map(int, {number for _, number in addresses})])
    return rows + len(_ROW.findall(text)), columns, last_row


def _column_number(letters: bytes) -> int:
    """Return the number, from 1, of a column that Excel names.

    >>> [_column_number(name) for name in (b"A", b"Z", b"AA", b"XFD")]
    [1, 26, 27, 16384]
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _amount(size: float) -> str:
    """Write a number of bytes for a message."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


def _read_sheet(path: Path, sheet: str | None = None) -> tuple[pa.Table, ExcelFormat]:
    """Read a sheet with a row of column names, every cell as text; blank rows are skipped."""
    calamine = needed("python_calamine")
    _refuse_too_large(path, sheet)
    with path.open("rb") as file:
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
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if not rows:
        raise TableError(
            f"A sheet begins with a row of column names; {shown(chosen)} in {shown(str(path), 300)} is "
            "empty. Name another sheet with --sheet."
        )
    width = max(j + 1 for row in rows for j, cell in enumerate(row) if cell != "")
    header = [_text(cell) for cell in rows[0][:width]]
    for j, name in enumerate(header):
        if not name:
            raise TableError(
                f"Every column of a sheet needs a name in its first row; column {_column_letters(j)} of "
                f"{shown(chosen)} has none. Name it, or clear the column."
            )
    columns, kinds = [], []
    for j, name in enumerate(header):
        cells = [row[j] if j < len(row) else "" for row in rows[1:]]
        kinds.append((name, _kind(cells)))
        columns.append(pa.chunked_array([pa.array([_text(cell) for cell in cells], pa.string())]))
    fields = [pa.field(name, pa.string()) for name in header]
    others = tuple(name for name in names if name != chosen)
    return (
        pa.Table.from_arrays(columns, schema=pa.schema(fields)),
        ExcelFormat(chosen, tuple(kinds), others),
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


def _kind(cells: list[Any]) -> str:
    """Name the kind that all cells of a column have, empty ones aside."""
    kinds = {_kind_of_cell(cell) for cell in cells if cell != ""}
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "text"


def _kind_of_cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return "truth"
    if isinstance(cell, int | float):
        return "number"
    if isinstance(cell, dt.datetime):
        return "time"
    return "date" if isinstance(cell, dt.date) else "text"


def _write_sheet(table: pa.Table, path: Path, form: ExcelFormat) -> None:
    openpyxl = needed("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(form.sheet or "Sheet1")
    make = needed("openpyxl.cell").WriteOnlyCell
    kinds = dict(form.kinds)
    # All before the first row, since openpyxl does not like to be stopped in between.
    columns = [
        list(_cells(name, column, kinds.get(name), make, sheet))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    sheet.append([_text_cell(name, make, sheet, name, None) for name in table.column_names])
    for row in zip(*columns, strict=True):
        sheet.append(row)
    book.save(path)


def _cells(name: str, column: Any, kind: str | None, make: Any, sheet: Any) -> Iterator[Any]:
    """Values of a column as cells, one after the other."""
    values = decoded(column)
    text = is_text(values.type)
    as_text = not text and not _dates_fit(values)
    for i, value in enumerate(values.to_pylist()):
        if value is None or value == "":
            yield None
        elif text:
            yield _cell_of_text(value, kind or "text", make, sheet, name, i)
        elif isinstance(value, float) and not np.isfinite(value):
            raise TableError(
                f"A cell holds a finite number; column {shown(name)} has an infinite one in row {i + 1}. "
                "Write another format, or replace it."
            )
        elif as_text:
            yield str(value)
        else:
            is_float = isinstance(value, float)
            yield _number_cell(repr(value), make, sheet) if is_float else value


def _dates_fit(values: Any) -> bool:
    """Return whether dates are such as Excel has; all other values fit."""
    if not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        return True
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        return False
    days = values.cast(pa.timestamp("s"), safe=False).cast(pa.date32(), safe=False).drop_null()
    return not len(days) or min(days.to_pylist()) >= _FIRST_DATE


def _cell_of_text(text: str, kind: str, make: Any, sheet: Any, name: str, row: int) -> Any:
    """Turn text back into the cell that it came from."""
    if kind in ("truth", "mixed") and text in ("TRUE", "FALSE"):
        return text == "TRUE"
    if kind in ("number", "mixed"):
        try:
            number: Any = float(text)
        except ValueError:
            pass
        else:
            if _text(number) == text and np.isfinite(number):
                return _number_cell(text, make, sheet)
    if kind in ("date", "time", "mixed"):
        try:
            moment = dt.datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            if moment.isoformat(sep=" ") == text:
                return moment
            if moment.date().isoformat() == text:
                return moment.date()
    return _text_cell(text, make, sheet, name, row)


def _number_cell(digits: str, make: Any, sheet: Any) -> Any:
    """Return a number with all its digits; openpyxl by itself writes sixteen, and a double may need more."""
    number = float(digits)
    if float(f"{number:.16g}") == number:
        return number
    cell = make(sheet, value=digits)
    cell.data_type = "n"
    return cell


def _text_cell(text: str, make: Any, sheet: Any, name: str, row: int | None) -> Any:
    """Return text, as a cell that is text whatever it begins with where openpyxl would see more in it."""
    where = f"column {shown(name)}, " + ("its name" if row is None else f"row {row + 1}")
    if len(text) > _LONGEST_TEXT:
        raise TableError(
            f"A cell holds at most {_LONGEST_TEXT:,} signs; {where} has more. Write another format."
        )
    if _CONTROL.search(text):
        raise TableError(
            f"A cell holds no control characters; {where} has one. Write another format, or replace it."
        )
    if text[:1] not in ("=", "#"):  # of formulas and of errors
        return text
    cell = make(sheet, value=text)
    cell.data_type = "s"
    return cell
