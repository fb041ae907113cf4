"""SPSS, Stata and SAS: what their formats have in common. pyreadstat reads them.

Numbers are read as the file stores them. Codes that SPSS declares as missing stay the numbers they are,
with the declaration in the metadata; where Stata or SAS tag missing values with letters, the column is
kept as text (``1.5``, ``.a``).

SPSS counts seconds since 14 October 1582, SAS and Stata days, seconds or milliseconds since 1960; the
format of a column says which. A column becomes dates or times of Arrow only where each value
comes back as the very same number; else it stays numbers, and nothing is lost.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, listed, shown
from microagg.formats.file_errors import needed, sound
from microagg.formats.format import Format, equal_numbers, stored_values
from microagg.formats.layouts import FileFormat
from microagg.tables.file_metadata import (
    ColumnFacts,
    Labelled,
    as_stored,
    is_number_or_tag,
    numbers_and_tags,
)
from microagg.tables.frame_libraries import is_text

# What pyreadstat calls files otherwise than the ending of their names.
_CALLED = {"zsav": "sav", "xpt": "xport"}


class StoredTable(NamedTuple):
    """A table as a package stores it, by the names of its columns."""

    columns: dict[str, Any]
    """Arrays of doubles with NaN for missing values, or lists of text."""
    kinds: dict[str, pa.DataType]
    """Types that Arrow has for the columns."""
    tags: dict[str, list[Any]]
    """Letters of tagged missing values."""
    facts: Labelled
    """With formats in the language of the package."""


class StatisticalFormat(Format):
    """The format of a statistical program."""

    is_program = True
    limits_values = True
    name_pattern: ClassVar[str]
    name_words: ClassVar[str]
    """The same in words."""
    longest_name: ClassVar[int]
    name_unit: ClassVar[str] = "bytes"
    """In what names are measured: bytes or signs."""
    reserved: ClassVar[str] = ""
    """Words of the language of the program, which name no column."""
    knows_capitals: ClassVar[bool] = False
    """Whether names may differ in capitals alone."""
    pads_text: ClassVar[bool] = False
    """Whether text is filled up with blanks."""

    def read(self, path: Path, file: Any, form: FileFormat) -> tuple[pa.Table, FileFormat]:
        """Read a file; labels, codes and formats become metadata of the schema."""
        ending, encoding = path.suffix.lower().removeprefix("."), form.csv.encoding
        name = _CALLED.get(ending, ending)
        options: dict[str, Any] = {"user_missing": True}  # keeps the codes that files declare
        if name in ("por", "xport"):
            # These two do not offer it; the function behind them does.
            read = needed("pyreadstat._readstat_parser").parser_entry_point
            options["parser_format"] = name
        else:
            read = getattr(needed("pyreadstat"), f"read_{name}")
        if encoding is not None:
            options["encoding"] = encoding
        known = self._look(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the only ones are about columns of equal names
            try:
                data, meta = read(
                    path.absolute(),
                    disable_datetime_conversion=True,
                    output_format="dict",
                    **options,
                )
            except UserWarning:
                raise TableError(
                    f"Column names must differ; in {shown(str(path), 300)} some do not. Rename the columns."
                ) from None
        facts = self._facts(path, meta, known)
        names = meta.column_names
        table = pa.table({name: _column(data[name], self.name, facts[name]) for name in names})
        table = table.cast(facts.on(table.schema))
        return sound(table), FileFormat(form.csv)

    def _look(self, path: Path) -> Labelled:
        """Refuse a damaged file that pyreadstat could not survive; it reports all other damage itself.

        Returns what pyreadstat does not tell: version, compression, and what it does not read.
        """
        raise NotImplementedError

    def _facts(self, path: Path, meta: Any, known: Labelled) -> Labelled:
        sets = [f"the multiple response sets {listed(meta.mr_sets)}"] if meta.mr_sets else []
        return dataclasses.replace(
            known,
            columns={name: self._column_facts(meta, name) for name in meta.column_names},
            label=meta.file_label or "",
            notes=tuple(meta.notes or ()),
            lost=(*known.lost, *sets),
        )

    def _column_facts(self, meta: Any, name: str) -> ColumnFacts:
        labels = meta.variable_value_labels.get(name) or {}
        missing = meta.missing_ranges.get(name) or ()
        return ColumnFacts(
            label=meta.column_names_to_labels.get(name) or None,
            value_labels=tuple(labels.items()),
            # One code, or the two ends of a range of codes.
            missing=tuple(
                entry["lo"] if entry["lo"] == entry["hi"] else (entry["lo"], entry["hi"])
                for entry in missing
            ),
            format=meta.original_variable_types.get(name) or None,
            informat=meta.original_variable_informats.get(name) or None,
            measure=_known(meta.variable_measure.get(name)),
            alignment=_known(meta.variable_alignment.get(name)),
            display_width=meta.variable_display_width.get(name) or None,
            storage=meta.readstat_variable_types.get(name),
            width=meta.variable_storage_width[name] or None,
        )

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table with what is known about its columns."""
        self._write(path, _stored(table, self.name))

    def _write(self, path: Path, table: StoredTable) -> None:
        raise NotImplementedError

    def refuse(self, table: pa.Table, version: int = 0) -> None:
        """Refuse names and values that would be lost."""
        names = table.column_names
        limit, _ = self.older_limits.get(version, (self.longest_name, 0))
        for name in names:
            size = len(name.encode()) if self.name_unit == "bytes" else len(name)
            fault = ""
            if (name if self.knows_capitals else name.upper()) in self.reserved.split():
                fault = f"are no words of its language; {shown(name)} is one"
            elif not re.fullmatch(self.name_pattern, name):
                fault = f"{self.name_words}; {shown(name)} does not fit"
            elif size > limit:
                fault = f"have at most {limit} {self.name_unit}; {shown(name)} has {size}"
            if fault:
                raise TableError(
                    f"Names of columns in {self.words} {fault}. Rename the column, or write another format."
                )
        if not self.knows_capitals and len({name.lower() for name in names}) < len(names):
            raise TableError(
                f"Names of columns in {self.words} differ in more than capitals; those of this table do "
                "not. Rename the columns, or write another format."
            )
        super().refuse(table, version)

    def _same_text(self, written: Any, read_back: Any) -> bool:
        if self.pads_text:
            written, read_back = (
                pc.utf8_rtrim(column.cast(pa.large_string()), " ")
                for column in (written, read_back)
            )
        return super()._same_text(written, read_back)

    def same(self, table: pa.Table, read_back: pa.Table, name: str) -> bool:
        """Return whether a column holds what was to be written, letters of missing values included."""
        if not (self.has_tags and is_number_or_tag(table.schema.field(name))):
            return super().same(table, read_back, name)

        def numbers_and_letters(side: pa.Table) -> tuple[Any, Any]:
            if is_number_or_tag(side.schema.field(name)):
                return numbers_and_tags(side[name])
            return side[name], pa.chunked_array([pa.nulls(side.num_rows, pa.string())])

        (one, tags), (other, other_tags) = map(numbers_and_letters, (table, read_back))
        same_tags = self._letters(tags).equals(self._letters(other_tags))
        return equal_numbers(one, other) and bool(same_tags)

    def _letters(self, tags: pa.ChunkedArray) -> pa.ChunkedArray:
        """Letters of missing values without capitals, which SAS has and Stata has not."""
        return pc.utf8_lower(tags)


def _known(word: str | None) -> str | None:
    return None if word in (None, "unknown", "undetermined") else word


def _column(values: Any, family: str, facts: ColumnFacts) -> pa.Array:
    """Values as pyreadstat gives them, in the Arrow type that fits what the file stores."""
    if (facts.storage or "").startswith("string"):
        texts = ["" if value is None or value != value else value for value in values]
        return pa.array(texts, pa.string())
    try:
        numbers = pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)
    except ValueError:  # letters among the numbers, which tell why a value is missing
        number = int if facts.storage in ("int8", "int16", "int32") else float
        texts = [
            f".{v}" if isinstance(v, str) else None if v is None or v != v else repr(number(v))
            for v in values
        ]
        return pa.array(texts, pa.string())
    moments = as_moments(numbers, family, facts.format)
    return as_stored(numbers, facts.storage) if moments is None else moments


def _stored(table: pa.Table, family: str) -> StoredTable:
    facts = Labelled.of(table.schema)
    same = facts.family == family
    columns, kinds, tags, stored_facts = {}, {}, {}, {}
    for column, column_values in zip(table.schema, table.columns, strict=True):
        fact = facts[column.name]
        if not same:  # of the facts of another family, it understands words and no formats
            fact = ColumnFacts(fact.label, fact.value_labels, fact.labels_name)
        values = stored_values(column_values)
        kind = kinds[column.name] = values.type
        if is_number_or_tag(column):
            values, letters = numbers_and_tags(values)
            tags[column.name] = letters.to_pylist()
        elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            form = fact.format or moment_format(family, kind)
            values = as_numbers(values.combine_chunks(), family, form)
            fact = dataclasses.replace(fact, format=form)
        if is_text(values.type):
            columns[column.name] = values.fill_null("").to_pylist()
        else:
            doubles = values.cast(pa.float64(), safe=False)
            columns[column.name] = np.array(doubles, dtype=np.float64)
        stored_facts[column.name] = fact
    labelled = Labelled(stored_facts, family, facts.label, facts.notes, compression=1)
    if same:
        labelled = dataclasses.replace(facts, columns=stored_facts, lost=())
    return StoredTable(columns, kinds, tags, labelled)


def pandas_frame(table: StoredTable) -> Any:
    """Return columns as the frame that pyreadstat writes."""
    pandas = needed("pandas")
    series = {}
    for name, values in table.columns.items():
        if not isinstance(values, np.ndarray):
            # pyreadstat takes the length of the longest text for the width of a column. A zero byte ends a
            # text, so that those behind the first one count for the length and are not written.
            lacking = (table.facts[name].width or 0) - len(values[0].encode()) if values else 0
            padded = [values[0] + "\0" * max(lacking, 0), *values[1:]] if values else []
            values = np.array(padded, dtype=object)
        series[name] = pandas.Series(values)
    return pandas.DataFrame(series)


def known_facts(facts: Labelled, what: str) -> dict[str, Any]:
    """Return one fact of all columns for which it is known."""
    pairs = ((name, getattr(column, what)) for name, column in facts.columns.items())
    return {name: value for name, value in pairs if value not in (None, ())}


_DAY = 86_400
_TO_1970 = {"spss": 141_428, "sas": 3_653, "stata": 3_653}  # days


# Formats of dates and of times, by family, with the units a day in which they count and the Arrow type.
_COUNTS = {
    "spss": {
        r"(?i)[AEJS]?DATE\d*": (_DAY, pa.date32()),
        r"(?i)(DATETIME|YMDHMS)[\d.]*": (_DAY, pa.timestamp("us")),
    },
    "sas": {
        r"(?i)(DATE|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|[BE]8601DA|JULIAN|WEEKDAT[EX]|WORDDAT[EX]|MONYY)\d*\.?": (
            (1, pa.date32())
        ),
        r"(?i)(DATETIME|[BE]8601DT|DATEAMPM)[\d.]*": (_DAY, pa.timestamp("us")),
    },
    "stata": {r"%-?t?d.*": (1, pa.date32()), r"%-?tc.*": (1000 * _DAY, pa.timestamp("ms"))},
}
_USUAL = {"spss": ("DATE11", "DATETIME20"), "sas": ("DATE9", "DATETIME20"), "stata": ("%td", "%tc")}


def _count(family: str, form: str | None) -> tuple[int, Any] | None:
    counts = _COUNTS[family].items()
    return next((count for pattern, count in counts if re.fullmatch(pattern, form or "")), None)


def moment_format(family: str, kind: pa.DataType) -> str:
    """Return the format in which a family shows dates, or times, that came from elsewhere."""
    return _USUAL[family][0 if pa.types.is_date(kind) else 1]


def as_moments(numbers: pa.Array, family: str, form: str | None) -> pa.Array | None:
    """Turn the numbers of a package into dates or times; None where they are not, or not exactly.

    >>> as_moments(pa.array([22000.0, None]), "stata", "%td").to_pylist()
    [datetime.date(2020, 3, 26), None]
    """
    count = _count(family, form)
    if count is None:
        return None
    units_per_day, kind = count
    values = np.asarray(numbers.cast(pa.float64()).fill_null(0))
    missing = np.asarray(numbers.is_null())
    since = values - units_per_day * _TO_1970[family]
    per_unit = 1 / units_per_day  # days
    if not pa.types.is_date(kind):
        per_unit *= _DAY * (10**6 if kind.unit == "us" else 1000)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.rint(since * per_unit)
    whole[missing] = 0
    width = 31 if pa.types.is_date(kind) else 62
    if not (np.abs(whole) < 2.0**width).all():
        return None
    integers = pa.array(whole.astype(np.int64), mask=missing)
    moments = (integers.cast(pa.int32()) if width == 31 else integers).cast(kind)
    back = np.asarray(as_numbers(moments, family, form).fill_null(0))
    same = (back == np.where(missing, 0, values)) & ~(np.signbit(back) ^ np.signbit(values))
    return moments if same[~missing].all() else None


def as_numbers(moments: Any, family: str, form: str | None) -> Any:
    """Turn dates or times into the numbers by which a package counts them, as doubles."""
    count = _count(family, form) or _count(family, moment_format(family, moments.type))
    assert count is not None  # the format that a family gives by default is one of its own
    units_per_day, kind = count
    at_1970 = units_per_day * _TO_1970[family]
    if pa.types.is_date(moments.type):
        days = moments.cast(pa.date32()).cast(pa.int32()).fill_null(0)
        values = np.asarray(days) * float(units_per_day) + at_1970
    else:
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[moments.type.unit]
        # Whole seconds and their parts by themselves: a double has no room for both in the product.
        seconds, rest = np.divmod(np.asarray(moments.cast(pa.int64()).fill_null(0)), per_second)
        if pa.types.is_date(kind):
            seconds, rest = seconds - seconds % _DAY, rest * 0
        scale = units_per_day / _DAY
        values = (seconds * scale + at_1970) + rest / per_second * scale
    return pa.array(values.astype(np.float64), mask=np.asarray(moments.is_null()))
