"""How large the sheets of a workbook are, found out before they are read into memory.

A few kilobytes can unpack to gigabytes, and one cell in the last row and column of a sheet makes
room for seventeen billion. What a file declares about its size may be wrong, so that its parts are unpacked,
a little at a time, and the positions of their cells are looked at.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from microagg.base.formatting import plural
from microagg.base.free_memory import free_memory
from microagg.errors import TableError, shown

_AT_ONCE = 1 << 20
_BYTES_OF_A_CELL = 100  # in calamine and in Python's lists, an empty one too
_BYTES_OF_TEXT = 3  # for each byte of shared text: as read, as text of Python, as Arrow
_MOST_UNPACKED = 1032  # bytes that one byte of the compression can become
# As nearly all programs write a sheet, which is fast to look at; and as they may.
_CELL_AS_USUAL = re.compile(rb'<c r="([A-Z]{1,4})(\d{1,9})"')
_TAG_AS_USUAL = re.compile(rb"<c[\s>/]")
_ROW_AS_USUAL = re.compile(rb'<row r="(\d{1,9})"')
_ROW = re.compile(rb"<(?:\w+:)?row[\s>/]")
_ROW_NUMBER = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br=[\"'](\d{1,9})")
_CELL = re.compile(rb"<(?:\w+:)?c[\s>/]")
_CELL_COLUMN = re.compile(rb"<(?:\w+:)?c\s[^>]*?\br=[\"']([A-Za-z]{1,4})(\d{0,9})")
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def refuse_too_large(path: Path, sheet: str | None = None) -> None:
    """Refuse a workbook whose sheet takes more memory than there is; None: its first sheet."""
    if not zipfile.is_zipfile(path):
        return  # of Excel 97, in which a sheet has at most 65,536 rows and 256 columns
    free = free_memory()
    with zipfile.ZipFile(path) as book:
        if path.stat().st_size * _MOST_UNPACKED > free:
            _refuse_parts(path, book, free)
        for part in _parts_of(book, sheet):
            rows, columns = _size_of(book, part)
            needed = rows * columns * _BYTES_OF_A_CELL
            if needed > free:
                raise TableError(
                    "A sheet is read into memory as a whole, with all empty cells before the last one; "
                    f"{shown(str(path), 300)} has {plural(rows, 'row')} and {plural(columns, 'column')}, "
                    f"which take about {_amount(needed)} where {_amount(free)} are free. Delete the cells "
                    "that lie far from the table, or save the sheet as CSV, which is read in parts."
                )


def _refuse_parts(path: Path, book: zipfile.ZipFile, free: int) -> None:
    """Refuse a workbook that unpacks to more than memory holds."""
    unpacked = 0
    for part in book.infolist():
        times = _BYTES_OF_TEXT if "sharedstrings" in part.filename.lower() else 1
        for piece in _unpacked(book, part):
            unpacked += times * len(piece)
            if unpacked > free:
                raise TableError(
                    f"A workbook is read into memory as a whole; {shown(str(path), 300)} unpacks to more "
                    f"than the {_amount(free)} that are free. Save the sheet as CSV, which is read in parts, "
                    "or check where the file comes from."
                )


def _unpacked(book: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    part.file_size = 1 << 62  # what it declares may be wrong: read on to the end
    with book.open(part) as content:
        while piece := content.read(_AT_ONCE):
            yield piece


def _parts_of(book: zipfile.ZipFile, sheet: str | None) -> list[zipfile.ZipInfo]:
    """Return the part that holds a sheet; all sheets where it is not found."""
    sheets = [
        part
        for part in book.infolist()
        if part.filename.lower().startswith("xl/worksheets/")
        and part.filename.lower().endswith((".xml", ".bin"))
    ]
    if "content.xml" in book.namelist():  # OpenDocument: all sheets are read
        return [book.getinfo("content.xml")]
    try:
        names = ElementTree.fromstring(book.read("xl/workbook.xml"))
        relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    except (KeyError, ElementTree.ParseError):
        return sheets
    targets = {one.get("Id"): one.get("Target", "") for one in relations}
    for one in names.iter():
        if one.tag.endswith("}sheet") and sheet in (None, one.get("name")):
            target = targets.get(one.get(_RELATION), "").lstrip("/").removeprefix("xl/")
            found = [part for part in sheets if part.filename == f"xl/{target}"]
            return found or sheets
    return sheets


def _size_of(book: zipfile.ZipFile, part: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the number of rows and columns up to the last cell of a sheet."""
    if part.filename == "content.xml":
        return _size_of_open_document(book, part)
    if part.filename.endswith(".bin"):
        return _size_of_records(b"".join(_unpacked(book, part)))
    rows = columns = last = 0
    held = b""
    for piece in _unpacked(book, part):
        held += piece
        end = held.rfind(b"<") if len(held) > 64 * _AT_ONCE else max(held.rfind(b"<row"), 0)
        done, held = held[:end], held[end:]
        rows, columns, last = _look_at_rows(done, rows, columns, last)
    rows, columns, last = _look_at_rows(held, rows, columns, last)
    return max(rows, last), columns


def _look_at_rows(xml: bytes, rows: int, columns: int, last: int) -> tuple[int, int, int]:
    """Add some rows to: the number of rows, the last column, the greatest number of a row."""
    cells = _CELL_AS_USUAL.findall(xml)
    numbers = _ROW_AS_USUAL.findall(xml)
    if (
        len(cells) < len(_TAG_AS_USUAL.findall(xml))
        or b":c" in xml
        or len(numbers) < xml.count(b"row ")
    ):
        cells, numbers = _CELL_COLUMN.findall(xml), _ROW_NUMBER.findall(xml)
        rows += len(_ROW.findall(xml))
        columns = max([columns, *(len(_CELL.findall(row)) for row in _ROW.split(xml))])
    letters, of_cells = (set(some) for some in zip(*cells, strict=True)) if cells else ((), ())
    columns = max([columns, *map(_column_number, letters)])
    last = max([last, *(int(number) for number in {*numbers, *of_cells} if number)])
    return rows, columns, last


def _column_number(letters: bytes) -> int:
    """Return the number, from 1, of a column that Excel names.

    >>> [_column_number(name) for name in (b"A", b"Z", b"AA", b"XFD")]
    [1, 26, 27, 16384]
    """
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _size_of_records(content: bytes) -> tuple[int, int]:
    """Return rows and columns of a sheet of binary records: a number and a size, then the content."""
    at = rows = columns = 0
    while at < len(content):
        kind, at = _number(content, at, 2)
        size, at = _number(content, at, 4)
        if kind <= 11 and size >= 4:  # the beginning of a row, or a cell
            place = int.from_bytes(content[at : at + 4], "little") + 1
            rows, columns = (
                (max(rows, place), columns) if kind == 0 else (rows, max(columns, place))
            )
        at += size
    return rows, columns


def _number(content: bytes, at: int, most: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, and where it ends."""
    number = 0
    for i in range(most):
        byte = content[at] if at < len(content) else 0
        number |= (byte & 0x7F) << 7 * i
        at += 1
        if byte < 0x80:
            break
    return number, at


def _size_of_open_document(book: zipfile.ZipFile, part: zipfile.ZipInfo) -> tuple[int, int]:
    """Return rows and columns of the largest table up to the last cell with a value."""
    part.file_size = 1 << 62
    most = (0, 0)
    rows = columns = last_row = last_column = repeated = 0
    with book.open(part) as content:
        for event, one in ElementTree.iterparse(content, ("start", "end")):
            name = one.tag.rpartition("}")[2]
            if event == "start" and name == "table":
                rows = last_row = last_column = 0
            elif event == "start" and name == "table-row":
                columns, repeated = 0, _repeated(one, "number-rows-repeated")
            elif event == "end" and name in ("table-cell", "covered-table-cell"):
                columns += _repeated(one, "number-columns-repeated")
                if len(one) or any(key.endswith("value-type") for key in one.attrib):
                    last_row, last_column = rows + repeated, max(last_column, columns)
            elif event == "end" and name == "table-row":
                rows += repeated
                one.clear()
            elif event == "end" and name == "table":
                most = max(most, (last_row, last_column), key=lambda size: size[0] * size[1])
                one.clear()
    return most


def _repeated(one: ElementTree.Element, name: str) -> int:
    text = next((value for key, value in one.attrib.items() if key.endswith(name)), "1")
    return int(text) if re.fullmatch(r"\d{1,9}", text) else 1


def _amount(size: float) -> str:
    """Write a number of bytes for a message."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
