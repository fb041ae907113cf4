"""Arrow files: all that is known about columns has a place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather

from microagg.formats.file_errors import sound
from microagg.formats.format import Format, Reading
from microagg.formats.layouts import FileFormat


class Arrow(Format):
    """Arrow files, also under the name Feather."""

    name = "arrow"
    words = "an Arrow file"
    keeps_facts = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        """Read a file; Arrow itself opens none whose name is not UTF-8."""
        with path.open("rb") as file:
            how.hash(file)
            return sound(feather.read_table(file)), FileFormat(csv=how.csv)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file as pyarrow does by default."""
        with path.open("wb") as file:
            feather.write_feather(table, file)
