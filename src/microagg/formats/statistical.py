"""Files of SPSS, Stata and SAS: read by pyreadstat, written by it but for Stata (stata.py).

Numbers are read as the file stores them. Codes that SPSS declares as missing stay the numbers they are,
with the declaration beside them; where Stata or SAS tag missing values with letters, the column is
kept as text (``1.5``, ``.a``), from which both are told.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.errors import TableError, listed, shown
from microagg.formats.endings import FAMILIES
from microagg.formats.optional import needed
from microagg.formats.spss_dictionary import check_spss
from microagg.formats.stata_writer import (
    count_characteristics,
    stata_cells,
    stata_release,
    write_stata,
)
from microagg.formats.statistical_dates import as_moments, as_numbers, moment_format
from microagg.tables.file_metadata import (
    ColumnFacts,
    Labelled,
    are_whole,
    is_number_or_tag,
    numbers_and_tags,
)
from microagg.tables.frame_libraries import plain_arrow

__all__ = ["read_statistical", "stored", "write_statistical"]

# What pyreadstat reads a file with, by the ending of its name.
_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".xpt": "read_xport",
    ".sas7bdat": "read_sas7bdat",
}
_INTEGERS = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32()}


def read_statistical(path: Path, encoding: str | None = None) -> pa.Table:
    """Read a file of SPSS, Stata or SAS; what it tells beside the values is metadata of the schema."""
    ending = path.suffix.lower()
    read = _reader(ending)
    family = FAMILIES[ending]
    untold: tuple[str, ...] = ()
    if family == "stata":
        _refuse_impossible_size(path)
    elif ending in (".sav", ".zsav"):
        untold = check_spss(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the only ones are about columns of equal names
        try:
            data, meta = read(
                path.absolute(),
                disable_datetime_conversion=True,
                output_format="dict",
                **({} if encoding is None else {"encoding": encoding}),
            )
        except UserWarning:
            raise TableError(
                f"Column names must differ; in {shown(str(path), 300)} some do not. Rename the columns."
            ) from None
    facts = _facts(path, family, meta, untold)
    columns, fields = [], []
    for name in meta.column_names:
        column = _column(data[name], family, facts[name])
        columns.append(column)
        fields.append(pa.field(name, column.type))
    return pa.table(columns, schema=facts.on(pa.schema(fields)))


def _reader(ending: str) -> Callable[..., Any]:
    """Return the function that reads such files and keeps the codes that they declare as missing."""
    name = _READERS[ending]
    read: Callable[..., Any] = getattr(needed("pyreadstat"), name)
    if name not in ("read_por", "read_xport"):
        return partial(read, user_missing=True)
    # These two do not offer it; the function behind them does.
    private = _private_part("_readstat_parser", "parser_entry_point")
    if private is None:
        _warn_of_moved_part(
            f"codes that {ending} files declare as missing are read as missing values"
        )
        return read
    return partial(private, parser_format=name.removeprefix("read_"), user_missing=True)


def _private_part(module: str, name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(import_module(f"pyreadstat.{module}"), name)
    except (ImportError, AttributeError):
        return None
    return found


def _warn_of_moved_part(consequence: str) -> None:
    warnings.warn(
        f"microagg uses private parts of pyreadstat, one of which is not in this version of it; so "
        f"{consequence}. Install the pyreadstat that microagg asks for: "
        'pip install --upgrade "microagg[files]".',
        RuntimeWarning,
        stacklevel=4,
    )


def _refuse_impossible_size(path: Path) -> None:
    """Refuse a damaged Stata file that claims more values than it has room for.

    pyreadstat makes room for all of them before it reads the first.
    """
    with path.open("rb") as file:
        cells = stata_cells(file.read(1000))
    if cells > path.stat().st_size:
        raise TableError(
            f"A file has room for all of its records; {shown(str(path), 300)} claims more than that. Check "
            "that it was copied whole."
        )


def _facts(path: Path, family: str, meta: Any, untold: tuple[str, ...]) -> Labelled:
    columns = {}
    for name, label in zip(meta.column_names, meta.column_labels, strict=True):
        labels = meta.variable_value_labels.get(name) or {}
        missing = meta.missing_ranges.get(name) or ()
        storage, width = meta.readstat_variable_types.get(name), meta.variable_storage_width[name]
        if family == "stata" and storage == "string":
            # The width counts a zero byte behind the text; long text that is stored elsewhere has none.
            storage, width = ("string", width - 1) if width else ("string_ref", 0)
        columns[name] = ColumnFacts(
            label=label or None,
            value_labels=tuple(labels.items()),
            labels_name=meta.variable_to_label.get(name) if family == "stata" else None,
            missing=tuple(_code(entry) for entry in missing),
            format=meta.original_variable_types.get(name) or None,
            informat=meta.original_variable_informats.get(name) or None,
            measure=_known(meta.variable_measure.get(name)),
            alignment=_known(meta.variable_alignment.get(name)),
            display_width=meta.variable_display_width.get(name) or None,
            storage=storage,
            width=width or None,
        )
    lost = list(untold)
    if meta.mr_sets:
        lost.append(f"the multiple response sets {listed(meta.mr_sets)}")
    if family == "stata":
        unused = set(meta.value_labels) - set(meta.variable_to_label.values())
        if unused:
            lost.append(
                f"the sets of value labels that belong to no column ({listed(sorted(unused))})"
            )
        if count_characteristics(path) > (len(meta.notes) + 1 if meta.notes else 0):
            lost.append("the notes and characteristics of single columns")
    return Labelled(
        columns,
        family,
        label=meta.file_label or "",
        notes=tuple(meta.notes or ()),
        table_name=(meta.table_name or "") if family == "sas" else "",
        version=_version(path),
        compression=_compression(path),
        lost=tuple(lost),
    )


def _known(word: str | None) -> str | None:
    return None if word in (None, "unknown", "undetermined") else word


def _code(entry: Any) -> Any:
    """One code, or the two ends of a range of codes."""
    if not isinstance(entry, dict):
        return entry
    low, high = entry["lo"], entry["hi"]
    return low if low == high else (low, high)


def _version(path: Path) -> int:
    """Version of the format of a file; pyreadstat does not tell it."""
    with path.open("rb") as file:
        head = file.read(200)
    if path.suffix.lower() == ".dta":
        return stata_release(head)
    if path.suffix.lower() == ".xpt":
        return 8 if b"LIBV8" in head[:80] else 5
    return 0


def _compression(path: Path) -> int:
    if path.suffix.lower() not in (".sav", ".zsav"):
        return 0
    with path.open("rb") as file:
        head = file.read(76)
    code = head[72:76]
    return min(min(code[0], code[3]) or max(code[0], code[3]), 2) if len(code) == 4 else 0


def _column(values: Any, family: str, facts: ColumnFacts) -> pa.ChunkedArray:
    """Values as pyreadstat gives them, in the Arrow type that fits what the file stores."""
    if (facts.storage or "").startswith("string"):
        texts = ["" if value is None or value != value else value for value in values]
        return pa.chunked_array([pa.array(texts, pa.string())])
    try:
        numbers = pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)
    except ValueError:  # letters among the numbers, which tell why a value is missing
        return pa.chunked_array([_numbers_and_tags_as_text(values, facts.storage)])
    moments = as_moments(numbers, family, facts.format)
    if moments is not None:
        return pa.chunked_array([moments])
    kind = _INTEGERS.get(facts.storage or "")
    if kind is None and facts.storage == "float":
        kind = pa.float32()
    if kind is None and are_whole(np.asarray(numbers.drop_null())):
        kind = pa.int64()
    return pa.chunked_array([numbers.cast(kind) if kind is not None else numbers])


def _numbers_and_tags_as_text(values: Any, storage: str | None) -> pa.Array:
    whole = storage in _INTEGERS

    def text(value: Any) -> str | None:
        if isinstance(value, str):
            return f".{value}"
        if value is None or value != value:
            return None
        return str(int(value)) if whole else repr(float(value))

    return pa.array([text(value) for value in values], pa.string())


def stored(table: pa.Table, family: str) -> tuple[dict[str, Any], dict[str, Any], Labelled]:
    """Return columns as a package stores them, letters of tagged missing values, and the facts.

    Columns are numpy arrays of doubles, NaN for a missing value, or lists of text; formats are in the
    language of the family.
    """
    facts = Labelled.of(table.schema)
    same = facts.family == family
    columns, tags, told = {}, {}, {}
    for column, given in zip(table.schema, table.columns, strict=True):
        fact = facts[column.name]
        own = fact if same else _translated(fact)
        values = _plain(given)
        kind = values.type
        if is_number_or_tag(column):
            values, letters = numbers_and_tags(values)
            tags[column.name] = letters.to_pylist()
            if family == "sas":
                tags[column.name] = [tag and tag.upper() for tag in tags[column.name]]
        elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            form = own.format or moment_format(family, kind)
            values = as_numbers(values.combine_chunks(), family, form)
            own = dataclasses.replace(own, format=form)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            columns[column.name] = values.fill_null("").to_pylist()
        else:
            doubles = _chunked(values).cast(pa.float64(), safe=False)
            columns[column.name] = np.array(doubles.to_numpy(), dtype=np.float64)
        told[column.name] = own
    labelled = Labelled(
        told,
        family,
        label=facts.label,
        notes=facts.notes,
        table_name=facts.table_name if same else "",
        version=facts.version if same else 0,
        compression=facts.compression if same else 1,
    )
    return columns, tags, labelled


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = plain_arrow(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column


def _translated(fact: ColumnFacts) -> ColumnFacts:
    """What another family understands of the facts of one: words, no formats."""
    return ColumnFacts(fact.label, fact.value_labels, fact.labels_name)


def write_statistical(table: pa.Table, path: Path, ending: str) -> None:
    """Write a file of SPSS, Stata or SAS, in the format that an ending tells."""
    family = FAMILIES[ending]
    columns, tags, facts = stored(table, family)
    if family == "stata":
        types = {name: _plain(table[name]).type for name in table.column_names}
        write_stata(path, columns, tags, facts, types)
        return
    needed("pyreadstat")
    pandas = needed("pandas")
    frame = pandas.DataFrame(
        {name: _padded(values, facts[name]) for name, values in columns.items()}
    )
    if family == "spss":
        _write_spss(frame, path, facts, compress=ending == ".zsav")
    else:
        _write_transport(frame, path, facts)
        _put_tags(path, columns, tags, facts)


def _padded(values: Any, facts: ColumnFacts) -> Any:
    """Let text tell the width that its column has in the file.

    pyreadstat takes the length of the longest text for it. A zero byte ends a text, so that those behind
    the first one count for the length and are not written.
    """
    import pandas as pd

    if isinstance(values, np.ndarray):
        return pd.Series(values)
    width = facts.width or 0
    if values and len(values[0].encode()) < width:
        first = values[0] + "\0" * (width - len(values[0].encode()))
        values = [first, *values[1:]]
    return pd.Series(values, dtype=object)


def _told(facts: Labelled, what: str) -> dict[str, Any]:
    pairs = ((name, getattr(column, what)) for name, column in facts.columns.items())
    return {name: value for name, value in pairs if value not in (None, ())}


def _write_spss(frame: Any, path: Path, facts: Labelled, compress: bool) -> None:
    options: dict[str, Any] = {}
    # The function behind write_sav, which also takes alignments.
    write = _private_part("_readstat_writer", "writer_entry_point")
    if write is not None:
        options = {"writer_format": "sav", "variable_alignment": _told(facts, "alignment")}
    else:
        write = needed("pyreadstat").write_sav
        _warn_of_moved_part("the alignment of columns is not written to the SPSS file")
    write(
        frame,
        path.absolute(),
        file_label=facts.label,
        column_labels=_told(facts, "label"),
        compress=compress,
        row_compress=not compress and facts.compression == 1,
        note=list(facts.notes),
        variable_value_labels={n: dict(pairs) for n, pairs in _told(facts, "value_labels").items()},
        missing_ranges={
            name: [{"lo": c[0], "hi": c[1]} if isinstance(c, tuple) else c for c in codes]
            for name, codes in _told(facts, "missing").items()
        },
        variable_display_width=_told(facts, "display_width"),
        variable_measure=_told(facts, "measure"),
        variable_format=_told(facts, "format"),
        **options,
    )


def _write_transport(frame: Any, path: Path, facts: Labelled) -> None:
    needed("pyreadstat").write_xport(
        frame,
        path.absolute(),
        file_label=facts.label,
        column_labels=_told(facts, "label"),
        table_name=facts.table_name or None,
        file_format_version=facts.version or 8,
        variable_format=_told(facts, "format"),
        variable_informat=_told(facts, "informat"),
    )


def _put_tags(path: Path, columns: dict[str, Any], tags: dict[str, Any], facts: Labelled) -> None:
    """Put the letters of tagged missing values into a transport file, which pyreadstat does not.

    A record is a row of fixed width, in which a missing number is a point and seven zero bytes; the
    letter takes the place of the point.
    """
    if not any(letter for letters in tags.values() for letter in letters):
        return
    widths = {}
    for name, values in columns.items():
        longest = 8
        if not isinstance(values, np.ndarray):
            longest = max([facts[name].width or 0, 1, *(len(v.encode()) for v in values)])
        widths[name] = longest
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    content = np.memmap(path, dtype=np.uint8, mode="r+")
    head = bytes(content[: 1 << 26]) if len(content) > 1 << 26 else bytes(content)
    mark = head.index(b"HEADER RECORD*******OBS") + 80
    rows = len(next(iter(columns.values())))
    width = sum(widths.values())
    records = content[mark : mark + rows * width].reshape(rows, width)
    for name, letters in tags.items():
        at = [i for i, letter in enumerate(letters) if letter]
        where = records[at, starts[name]]
        if not (where == ord(".")).all():
            raise TableError(
                f"The missing values of column {shown(name)} are not where they should be in the file. "
                "Write another format."
            )
        records[at, starts[name]] = [ord(letters[i]) for i in at]
    content.flush()


def _chunked(values: Any) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
