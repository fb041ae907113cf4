"""Values told apart exactly as a file tells them apart: ids of twenty digits are no doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.typing import Labels
from microagg.tables.frame import MISSING_WORDS, Frame
from microagg.tables.frame_libraries import plain_arrow
from microagg.tables.numeric_columns import choose_columns

__all__ = ["codes_as_written", "values_as_written"]


def values_as_written(frame: Frame, name: Any, is_text: bool) -> pa.ChunkedArray:
    """Return a column, null where it is missing; ``is_text`` says that a CSV file holds it as text."""
    [name] = choose_columns(frame, [name])
    column = frame.arrow_column(name)
    if not is_text or not _is_text(column.type):
        return column
    texts = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(texts, value_set=pa.array(MISSING_WORDS, texts.type))
    return pc.if_else(missing, pa.scalar(None, texts.type), texts)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def codes_as_written(frame: Frame, name: Any, is_text: bool) -> Labels:
    """Number the distinct values of a column 0, 1, …; −1 where it is missing.

    >>> frame = Frame(pa.table({"id": ["100000000000000000001", "", "100000000000000000002"]}))
    >>> codes_as_written(frame, "id", is_text=True).tolist()
    [0, -1, 1]
    """
    values = plain_arrow(values_as_written(frame, name, is_text))
    if pa.types.is_dictionary(values.type):  # which may hold a value twice
        values = values.cast(values.type.value_type)
    one = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_nested(one.type):  # lists and records, which arrow does not number
        one = pa.array([None if value is None else repr(value) for value in one.to_pylist()])
    return np.asarray(one.dictionary_encode().indices.cast(pa.int64()).fill_null(-1))
