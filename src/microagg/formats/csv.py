"""CSV: every column as the text that stands in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from microagg.formats.csv_text import CsvText, completed_csv, write_csv
from microagg.formats.format import FileFormat, Format, Reading

__all__ = ["Csv", "TextFile"]


class TextFile(Format):
    """A format in which numbers are written as text."""

    is_text = True

    def _same_text(self, one: Any, other: Any) -> bool:
        return bool(one.cast(pa.string()).fill_null("").equals(other.cast(pa.string())))

    def _same_values(self, one: Any, other: Any) -> bool:
        return True  # numbers were turned into text on the way


class Csv(TextFile):
    """CSV, also compressed."""

    name = "csv"
    words = "a CSV file"
    in_batches = True
    has_formulas = True
    column_labels = value_labels = table_label = False

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat, str]:
        """Read a file whose header may have been looked at before."""
        text = how.looked or CsvText(path, how.csv)
        table, digest = text.read(how.hashed)
        return table, FileFormat(text.form), digest

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table."""
        write_csv(table, path, completed_csv(path, form.csv))
