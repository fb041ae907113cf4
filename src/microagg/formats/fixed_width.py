"""Files whose columns have fixed positions, or stand between separators, as a description says.

Every field is kept with its blanks, so that what is not protected is written back to the letter. New
numbers are written as the old ones of their column were: with its decimals, and blanks or zeros on
the same side. Positions that no column describes are not read, and blank in what is written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, shown
from microagg.formats.argus import Description, Place, read_description
from microagg.formats.csv import CsvText, write_csv
from microagg.formats.format import Format, Reading, TextFile
from microagg.formats.layouts import FileFormat, FixedFormat
from microagg.tables.file_metadata import ColumnFacts
from microagg.tables.frame_libraries import decoded
from microagg.tables.numbers_in_text import as_typed, reads_as_number


class Fixed(TextFile):
    """Fixed width, at the positions of a µ-ARGUS description."""

    name = "fixed"
    words = "a file of fixed width"
    has_description = True
    limits_values = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        """Read a file, every field as the text that stands in it, blanks included."""
        known = None if how.like is None else how.like.fixed
        table, fixed = _read_fields(
            path,
            None if known is None else known.description,
            how.csv.encoding if known is None else known.encoding,
        )
        return table, FileFormat(csv=how.csv, fixed=fixed)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write at the positions of the file that was read."""
        if form.fixed is None:
            raise _no_description()
        _write_fields(table, path, form.fixed)

    def typed(self, table: pa.Table, form: FileFormat, numbers: frozenset[str]) -> pa.Table:
        """Return the table with the types that description and values tell."""
        assert form.fixed is not None
        return _typed_fields(table, form.fixed, numbers)

    def about(self, form: FileFormat, target: Format) -> Iterator[str]:
        """Say which positions are not kept."""
        gaps = [] if form.fixed is None or target is not self else form.fixed.gaps
        if gaps:
            places = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in gaps[:5])
            more = f" and {len(gaps) - 5} more" if len(gaps) > 5 else ""
            yield f"Positions that no column describes ({places}{more}) are written as blanks."

    def refuse(self, table: pa.Table, version: int = 0) -> None:
        """Refuse every table that was read from another format."""
        raise _no_description()


def _no_description() -> TableError:
    return TableError(
        "A file of fixed width is written at the positions of a description, which only a file of this "
        "kind brings along. Write another format."
    )


def _find_description(path: Path) -> Path:
    """Return the description of a file: the .rda of the same name."""
    for ending in (".rda", ".RDA"):
        rda = path.with_suffix(ending)
        if rda.is_file():
            return rda
    raise TableError(
        f"A file without column names needs a description in the same folder; there is no "
        f"{shown(str(path.with_suffix('.rda')), 300)}. Write one as µ-ARGUS does: a line NAME START WIDTH "
        "for each column, and <NUMERIC> below those that hold numbers."
    )


def _read_fields(
    path: Path, description: Description | None = None, encoding: str | None = None
) -> tuple[pa.Table, FixedFormat]:
    rda = None if description is not None else _find_description(path)
    if description is None:
        assert rda is not None
        description = read_description(rda, encoding or "utf-8")
    form = FixedFormat(description, encoding or "utf-8")
    if description.separator is not None:
        text = CsvText(path, form.csv)
        table = text.read()
        if table.column_names != description.names:
            raise TableError(
                "The names in the first line must be those of the description; in "
                f"{shown(str(path), 300)} they are not. Correct the description."
            )
        form = dataclasses.replace(
            form, encoding=str(text.form.encoding), newline=text.form.newline
        )
    else:
        table, form = _cut(path, form)
    numeric = [place for place in description.places if place.numeric]
    for place in numeric:
        _check_numbers(table[place.name], place)
    form = dataclasses.replace(
        form,
        pads={p.name: _padding(table[p.name]) for p in description.places},
        decimals={p.name: _decimals(table[p.name], p) for p in numeric},
    )
    fields = []
    for place in description.places:
        labels = () if rda is None else _labels(place, table[place.name], rda.parent)
        facts = ColumnFacts(value_labels=labels, missing=place.missing, width=place.width)
        fields.append(pa.field(place.name, pa.string(), metadata=facts.as_metadata()))
    return pa.table(table.columns, schema=pa.schema(fields)), form


def _cut(path: Path, form: FixedFormat) -> tuple[pa.Table, FixedFormat]:
    """Cut the lines of a file at the positions of its columns."""
    try:
        text = path.read_bytes().decode(form.encoding)
    except (UnicodeDecodeError, LookupError):
        raise TableError(
            f"{shown(str(path), 300)} is not text in the encoding {form.encoding}. Give the right one with "
            "--encoding, for example latin-1 or cp1252."
        ) from None
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(newline)
    last_newline = lines[-1] == ""
    while lines and lines[-1] == "":
        lines.pop()
    column = pa.chunked_array([pa.array(lines, pa.large_string())])
    lengths = pc.utf8_length(column)
    for place in sorted(form.description.places, key=lambda place: place.end):
        short = pc.index(pc.less(lengths, place.end), True).as_py()
        if short >= 0:
            raise TableError(
                f"Every line must be as long as the description says; row {short + 1} of "
                f"{shown(str(path), 300)} ends before position {place.end}, where column "
                f"{shown(place.name)} ends. Correct the description, or fill the line up with blanks."
            )
    fields = {
        place.name: pc.utf8_slice_codeunits(column, place.start - 1, place.end).cast(pa.string())
        for place in form.description.places
    }
    return pa.table(fields), dataclasses.replace(form, newline=newline, last_newline=last_newline)


def _stripped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_trim_whitespace(column)


def _missing(column: pa.ChunkedArray, place: Place) -> Any:
    """Return a mask of the fields that are blank or hold a missing code."""
    codes = ["", *(code.strip() for code in place.missing)]
    return pc.is_in(_stripped(column), value_set=pa.array(codes, column.type))


def _check_numbers(column: pa.ChunkedArray, place: Place) -> None:
    missing = np.asarray(_missing(column, place))
    for row, text in enumerate(_stripped(column).to_pylist()):
        if not missing[row] and not reads_as_number(text.replace(",", ".", 1)):
            raise TableError(
                f"A column that its description calls numeric holds numbers; column {shown(place.name)} has "
                f"something else in row {row + 1}. Correct the start and width of the column, name "
                "the code as missing, or take <NUMERIC> away."
            )


def _padding(column: pa.ChunkedArray) -> str:
    """Tell how the fields of a column are filled up."""
    lead = pc.any(pc.match_substring_regex(column, r"^\s+\S")).as_py()
    trail = pc.any(pc.match_substring_regex(column, r"\S\s+$")).as_py()
    zeros = pc.any(pc.match_substring_regex(column, r"^[-+]?0\d")).as_py()
    if zeros and not lead and not trail:
        return "zeros"
    return "left" if trail and not lead else "right"


def _decimals(column: pa.ChunkedArray, place: Place) -> int:
    """Return the decimals that are declared, or the most that occur."""
    found = pc.extract_regex(_stripped(column), r"[.,](?P<decimals>\d+)$")
    lengths = pc.utf8_length(pc.struct_field(found, "decimals"))
    most = pc.max(lengths).as_py()
    return max(place.decimals or 0, most or 0)


def _labels(place: Place, column: pa.ChunkedArray, folder: Path) -> tuple[tuple[str, str], ...]:
    """Read the list of codes of a column, in which each of its values must occur."""
    if place.codelist is None:
        return ()
    path = folder / Path(place.codelist.replace("\\", "/")).name
    if not path.is_file():
        raise TableError(
            f"The list of codes of column {shown(place.name)} must be in the folder of the description; "
            f"there is no {shown(str(path), 300)}. Put it there, or take the line <CODELIST> away."
        )
    text = path.read_bytes().decode("utf-8", errors="replace")
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        code, comma, label = line.partition(",")
        if not comma:
            raise TableError(
                f"A list of codes has lines of a code, a comma and a label; line {number} of "
                f"{shown(str(path), 300)}, for column {shown(place.name)}, has no comma."
            )
        labels[code.strip().strip('"')] = label.strip().strip('"')
    missing = np.asarray(_missing(column, place))
    for row, value in enumerate(_stripped(column).to_pylist()):
        if not missing[row] and value not in labels:
            raise TableError(
                f"Every value of a column must be in its list of codes; column {shown(place.name)} has one "
                f"in row {row + 1} that {shown(str(path), 300)} lacks. Add it there, or name it as missing."
            )
    return tuple(labels.items())


def _typed_fields(table: pa.Table, form: FixedFormat, numbers: Collection[str]) -> pa.Table:
    """Turn fields into numbers where the description, or somebody, says so; all others into text."""
    columns = []
    named = {place.name for place in form.description.places if place.numeric} | set(numbers)
    for place in form.description.places:
        if place.name not in table.column_names:
            continue
        column = table[place.name]
        text = pc.if_else(_missing(column, place), pa.scalar("", pa.string()), _stripped(column))
        if place.name in named:
            text = pc.replace_substring(text, ",", ".")
            columns.append(as_typed(pa.table({"x": text}), ".", ["x"])["x"])
            if pa.types.is_string(columns[-1].type) and not pc.any(pc.not_equal(text, "")).as_py():
                columns[-1] = pa.chunked_array([pa.nulls(len(text), pa.float64())])
        else:
            columns.append(pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text))
    fields = [
        field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _write_fields(table: pa.Table, path: Path, form: FixedFormat) -> None:
    """Write a table at the positions of a description; columns that it lost are blank."""
    fields = {
        place.name: _fields(table[place.name], place, form)
        for place in form.description.places
        if place.name in table.column_names
    }
    extra = [name for name in table.column_names if name not in fields]
    if extra:
        raise TableError(
            f"A file of fixed width has the columns of its description; {shown(extra[0])} is not one. "
            "Write another format, or describe the column."
        )
    if form.description.separator is not None:
        names = None if form.description.names_in_front else tuple(fields)
        write_csv(pa.table(fields), path, dataclasses.replace(form.csv, names=names))
        return
    parts: list[Any] = []
    at, rows = 1, table.num_rows
    for place in sorted(form.description.places, key=lambda place: place.start):
        parts.append(pa.scalar(" " * (place.start - at), pa.large_string()))
        if place.name in fields:
            parts.append(fields[place.name].cast(pa.large_string()))
        else:
            parts.append(pa.scalar(" " * place.width, pa.large_string()))
        at = place.end + 1
    nothing = pa.scalar("", pa.large_string())
    lines = pc.binary_join_element_wise(*parts, nothing).to_pylist()
    text = form.newline.join(lines) + form.newline * (form.last_newline and rows > 0)
    path.write_bytes(text.encode(form.encoding))


def _fields(column: pa.ChunkedArray, place: Place, form: FixedFormat) -> pa.ChunkedArray:
    """Fields of a column: text as it is, numbers in its width and with its decimals."""
    column = decoded(column)
    fixed = form.description.separator is None
    if pa.types.is_integer(column.type):
        texts = column.cast(pa.string()).to_pylist()
    elif pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        decimals = form.decimals.get(place.name, place.decimals or 0)
        texts = [
            None if v is None or v != v else _digits(float(v), decimals) for v in column.to_pylist()
        ]
    else:
        texts = column.cast(pa.string()).to_pylist()
        if fixed and all(text is not None and len(text) == place.width for text in texts):
            return pa.chunked_array([pa.array(texts, pa.string())])
    blank = place.missing[0] if place.missing else ""
    found = []
    for row, text in enumerate(texts):
        text = blank if text is None else text
        if fixed and len(text) > place.width:
            raise TableError(
                f"A value must fit the width of its column; column {shown(place.name)} takes {place.width} "
                f"signs and row {row + 1} needs {len(text)}. Describe the column wider, or with fewer "
                "<DECIMALS>."
            )
        found.append(
            _filled(text, place.width, form.pads.get(place.name, "right")) if fixed else text
        )
    return pa.chunked_array([pa.array(found, pa.string())])


def _digits(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    # Minus zero would tell that a value is just below.
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def _filled(text: str, width: int, pad: str) -> str:
    if pad == "left":
        return text.ljust(width)
    return text.zfill(width) if pad == "zeros" and text else text.rjust(width)
