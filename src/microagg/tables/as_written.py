"""Values that differ where the file differs: ids of twenty digits are not compared as doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.typing import Labels
from microagg.tables.frame import Frame, choose_columns
from microagg.tables.frame_libraries import decoded, is_text
from microagg.tables.numbers_in_text import MISSING_WORDS


def values_as_written(frame: Frame, name: Any, from_csv: bool) -> pa.ChunkedArray:
    """Return a column, null where it is missing; ``from_csv`` says that a CSV file holds it as text."""
    [name] = choose_columns(frame, [name])
    column = frame.arrow_column(name)
    if not from_csv or not is_text(column.type):
        return column
    texts = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(texts, value_set=pa.array(MISSING_WORDS, texts.type))
    return pc.if_else(missing, pa.scalar(None, texts.type), texts)


def codes_as_written(frame: Frame, name: Any, from_csv: bool) -> Labels:
    """Return the number of each record's value among the distinct values; −1 where it is missing.

    Parameters
    ----------
    frame : the table, for a CSV file as text
    name : of the column
    from_csv : whether a CSV file holds the column as text, in which words such as NA mean missing

    Returns
    -------
    int64 (n,)

    >>> frame = Frame(pa.table({"id": ["100000000000000000001", "", "100000000000000000002"]}))
    >>> codes_as_written(frame, "id", from_csv=True).tolist()
    [0, -1, 1]
    """
    values = decoded(
        values_as_written(frame, name, from_csv)
    )  # a dictionary may hold a value twice
    chunk = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_nested(chunk.type):  # lists and records, which arrow does not number
        chunk = pa.array([None if value is None else repr(value) for value in chunk.to_pylist()])
    return np.asarray(chunk.dictionary_encode().indices.cast(pa.int64()).fill_null(-1))
