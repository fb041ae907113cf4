"""Files of fixed width, with a description beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from microagg.errors import TableError
from microagg.formats.csv import TextFile
from microagg.formats.fixed_width import read_fixed, typed_fields, write_fixed
from microagg.formats.format import FileFormat, Format, Reading

__all__ = ["Fixed"]


class Fixed(TextFile):
    """Fixed width, at the positions of a µ-ARGUS description."""

    name = "fixed"
    words = "a file of fixed width"
    has_description = True
    limits_values = True

    def _open(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        known = None if how.like is None else how.like.fixed
        table, fixed = read_fixed(
            path,
            None if known is None else known.description,
            how.csv.encoding if known is None else known.encoding,
        )
        return table, FileFormat(csv=how.csv, fixed=fixed)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write at the positions of the file that was read."""
        if form.fixed is None:
            raise _no_description()
        write_fixed(table, path, form.fixed)

    def typed(self, table: pa.Table, form: FileFormat, numbers: frozenset[str]) -> pa.Table:
        """Return the table with the types that description and values tell."""
        assert form.fixed is not None
        return typed_fields(table, form.fixed, numbers)

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
