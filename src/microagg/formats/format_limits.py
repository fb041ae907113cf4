"""What the format of a file cannot hold, found out before any work is done for it.

Values that would be lost are refused; labels, formats and other facts that would be are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from microagg.formats import FORMATS
from microagg.formats.files import Source, kind_of
from microagg.tables.file_metadata import Labelled

__all__ = ["cannot_hold", "what_is_left"]


def what_is_left(source: Source, target: Path, dropped: Iterable[Any] = ()) -> list[str]:
    """Say what of a file that was read its target cannot hold; refuse what would lose values."""
    kind = kind_of(target, writing=True) if target.suffix else "parquet"
    found = list(FORMATS[source.kind].about(source.format, FORMATS[kind]))
    if kind == source.kind and FORMATS[kind].has_description:
        return found
    table = source.table if source.is_text else source.as_written
    gone = {name for name in dropped if name in table.column_names}
    return found + cannot_hold(table.drop_columns(list(gone)), kind, source.labelled.version)


def cannot_hold(table: pa.Table, kind: str, version: int = 0) -> list[str]:
    """Say what a file of some kind cannot hold of a table; refuse what would lose values.

    Parameters
    ----------
    table : with what is told about its columns as metadata, see :class:`Labelled`
    kind : of the file, see :data:`microagg.formats.FORMATS`
    version : of the format, where it is known

    >>> from microagg.tables.file_metadata import ColumnFacts
    >>> facts = Labelled({"age": ColumnFacts(label="Age in years")}, "spss")
    >>> table = pa.table({"age": [1]}).cast(facts.on(pa.schema({"age": pa.int64()})))
    >>> cannot_hold(table, "csv")
    ["A CSV file has no place for labels of columns ('age'): they are left out."]
    """
    FORMATS[kind].refuse(table, version)
    return list(FORMATS[kind].left_out(table.schema, Labelled.of(table.schema)))
