"""SAS: transport files, written by pyreadstat but for the letters of missing values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from microagg.errors import TableError, listed, shown
from microagg.formats.file_errors import incomplete, needed
from microagg.formats.statistical import StatisticalFormat, StoredTable, known_facts, pandas_frame
from microagg.tables.file_metadata import ColumnFacts, Labelled

_OLD = 5  # version of the transport format


class Sas(StatisticalFormat):
    """Transport files of SAS; .sas7bdat is read only."""

    name = "sas"
    words = "a SAS transport file"
    name_pattern = r"[A-Za-z_][A-Za-z0-9_]*"
    name_words = "begin with a letter or _ and have letters a to z, digits and _"
    longest_name = 32
    longest_text = 32_767
    older_limits: ClassVar[Mapping[int, tuple[int, int]]] = {_OLD: (8, 200)}
    largest, smallest = 7.2e75, 5.5e-79
    longest_label = 255
    value_labels = False
    pads_text = True
    has_tags = True

    def _rewritten(self, facts: Labelled) -> Iterator[str]:
        doubles = (item for item in facts.columns.items() if item[1].storage == "double")
        short = [name for name, column in doubles if (column.width or 8) < 8]
        if short:
            yield (
                f"Numbers of fewer than 8 bytes ({listed(short, limit=5)}) are written with 8; their values "
                "stay the same."
            )

    def may_widen(self, column: ColumnFacts, facts: Labelled) -> bool:
        """Return whether a column holds numbers: these may have taken fewer than 8 bytes."""
        return column.storage == "double"

    def _look(self, path: Path) -> Labelled:
        # Nothing in a transport file counts its records, but they fill blocks of 80 bytes.
        if path.suffix.lower() == ".xpt" and path.stat().st_size % 80:
            raise incomplete(path, "sas", "its last block is cut off")
        with path.open("rb") as file:
            head = file.read(80)
        version = 8 if b"LIBV8" in head else _OLD
        is_transport = head.startswith(b"HEADER RECORD")  # unlike .sas7bdat
        return Labelled({}, self.name, version=version if is_transport else 0)

    def _facts(self, path: Path, meta: Any, known: Labelled) -> Labelled:
        facts = super()._facts(path, meta, known)
        return dataclasses.replace(facts, table_name=meta.table_name or "")

    def _write(self, path: Path, table: StoredTable) -> None:
        facts = table.facts
        needed("pyreadstat").write_xport(
            pandas_frame(table),
            path.absolute(),
            file_label=facts.label,
            column_labels=known_facts(facts, "label"),
            table_name=facts.table_name or None,
            file_format_version=facts.version or 8,
            variable_format=known_facts(facts, "format"),
            variable_informat=known_facts(facts, "informat"),
        )
        _put_tags(path, table)


def _put_tags(path: Path, table: StoredTable) -> None:
    """Put the letters of tagged missing values into a transport file, which pyreadstat does not.

    A record is a row of fixed width, in which a missing number is a point and seven zero bytes; the
    letter takes the place of the point.
    """
    columns, tags, facts = table.columns, table.tags, table.facts
    if not any(letter for letters in tags.values() for letter in letters):
        return
    widths = dict.fromkeys(columns, 8)
    for name, values in columns.items():
        if not isinstance(values, np.ndarray):
            widths[name] = max([facts[name].width or 0, 1, *(len(v.encode()) for v in values)])
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    content = np.memmap(path, dtype=np.uint8, mode="r+")
    mark = bytes(content[: 1 << 26]).index(b"HEADER RECORD*******OBS") + 80
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
        records[at, starts[name]] = [ord(letters[i].upper()) for i in at]
    content.flush()
