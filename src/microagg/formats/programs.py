"""SPSS, Stata and SAS: what their formats have in common."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, shown
from microagg.formats.file_errors import sound
from microagg.formats.format import FileFormat, Reading, equal_numbers
from microagg.formats.limited import Limited
from microagg.formats.statistical import read_statistical, write_statistical
from microagg.tables.file_metadata import is_number_or_tag, numbers_and_tags

__all__ = ["Program"]


class Program(Limited):
    """The format of a statistical program."""

    is_program = True
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

    def _open(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        return sound(read_statistical(path, how.csv.encoding)), FileFormat(csv=how.csv)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table with what is known about its columns."""
        write_statistical(table, path, path.suffix.lower())

    def refuse(self, table: pa.Table, version: int = 0) -> None:
        """Refuse names and values that would be lost."""
        names = table.column_names
        for name in names:
            self._refuse_name(name, self._longest_name(version))
        if not self.knows_capitals and len({name.lower() for name in names}) < len(names):
            raise TableError(
                f"Names of columns in {self.words} differ in more than capitals; those of this table do "
                "not. Rename the columns, or write another format."
            )
        super().refuse(table, version)

    def _longest_name(self, version: int) -> int:
        return self.longest_name

    def _refuse_name(self, name: str, limit: int) -> None:
        size = len(name.encode()) if self.name_unit == "bytes" else len(name)
        if (name if self.knows_capitals else name.upper()) in self.reserved.split():
            fault = f"are no words of its language; {shown(name)} is one"
        elif not re.fullmatch(self.name_pattern, name):
            fault = f"{self.name_words}; {shown(name)} does not fit"
        elif size > limit:
            fault = f"have at most {limit} {self.name_unit}; {shown(name)} has {size}"
        else:
            return
        raise TableError(
            f"Names of columns in {self.words} {fault}. Rename the column, or write another format."
        )

    def _same_text(self, one: Any, other: Any) -> bool:
        if self.pads_text:
            one, other = (
                pc.utf8_rtrim(column.cast(pa.large_string()), " ") for column in (one, other)
            )
        return super()._same_text(one, other)

    def same(self, table: pa.Table, found: pa.Table, name: str) -> bool:
        """Whether a column holds what was to be written, letters of missing values among it."""
        if not (self.tags_also_for and is_number_or_tag(table.schema.field(name))):
            return super().same(table, found, name)
        (a, tags), (b, others) = (_numbers_and_tags(t, name) for t in (table, found))
        same_tags = self._letters(tags).equals(self._letters(others))
        return equal_numbers(a, b) and bool(same_tags)

    def _letters(self, tags: pa.ChunkedArray) -> pa.ChunkedArray:
        """Letters of missing values without capitals, which SAS has and Stata has not."""
        return pc.utf8_lower(tags)


def _numbers_and_tags(table: pa.Table, name: str) -> tuple[Any, Any]:
    if is_number_or_tag(table.schema.field(name)):
        return numbers_and_tags(table[name])
    nothing = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    return table[name], nothing
