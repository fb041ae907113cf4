"""Formats that hold numbers, text and dates within limits; what is beyond them is refused."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, shown
from microagg.formats.format import Format, capital
from microagg.tables.file_metadata import is_number_or_tag
from microagg.tables.frame_libraries import plain_arrow

__all__ = ["Limited"]


class Limited(Format):
    """A format whose numbers are doubles, with limits of its own."""

    limits_values = True
    longest_text: ClassVar[int | None] = None
    """In bytes; None: no limit."""
    largest: ClassVar[float | None] = None
    """Largest number; None: the largest double."""
    smallest: ClassVar[float | None] = None
    """Smallest number above zero; None: the smallest double."""

    def refuse(self, table: pa.Table, version: int = 0) -> None:
        """Refuse values that would be lost."""
        for column, values in zip(table.schema, table.columns, strict=True):
            if not is_number_or_tag(column):
                self._refuse_values(column.name, plain_arrow(values), version)

    def _longest_text(self, version: int) -> int | None:
        return self.longest_text

    def _refuse_values(self, name: str, values: Any, version: int) -> None:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        dtype = values.type
        if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
            limit = self._longest_text(version)
            if limit is not None:
                long = pc.greater(pc.binary_length(values), limit)
                rule = f"Text in {self.words} has at most {limit:,} bytes"
                _refuse_first(name, long, rule, "has longer text")
        elif pa.types.is_int64(dtype) or pa.types.is_uint64(dtype):
            least = -(2**53) if pa.types.is_signed_integer(dtype) else 0
            large = pc.or_(pc.greater(values, 2**53), pc.less(values, least))
            rule = f"Whole numbers in {self.words} are exact up to 2^53"
            _refuse_first(name, large, rule, "has a larger one")
        elif pa.types.is_floating(dtype):
            self._refuse_numbers(name, values.cast(pa.float64()))
        elif pa.types.is_decimal(dtype):
            exact = np.array([v is None or float(v) == v for v in values.to_pylist()], dtype=bool)
            rule = f"Numbers in {self.words} are doubles"
            _refuse_first(name, pa.array(~exact), rule, "has a decimal number that is none")
        elif not (
            pa.types.is_integer(dtype)
            or pa.types.is_boolean(dtype)
            or pa.types.is_date(dtype)
            or pa.types.is_timestamp(dtype)
            or pa.types.is_null(dtype)
        ):
            raise TableError(
                f"{capital(self.words)} holds numbers, text and dates; column {shown(name)} of type "
                f"{dtype} does not fit. Write Parquet instead, or drop the column."
            )

    def _refuse_numbers(self, name: str, doubles: Any) -> None:
        numbers = f"Numbers in {self.words}"
        finite = pc.or_(pc.is_finite(doubles), pc.is_nan(doubles))
        _refuse_first(name, pc.invert(finite), f"{numbers} are finite", "has an infinite one")
        size = pc.abs(doubles)
        if self.largest is not None:
            rule = f"{numbers} go up to {self.largest:.3g}"
            _refuse_first(name, pc.greater(size, self.largest), rule, "has a larger one")
        if self.smallest is not None:
            small = pc.and_(pc.less(size, self.smallest), pc.not_equal(doubles, pa.scalar(0.0)))
            rule = f"{numbers} are zero or at least {self.smallest:.3g}"
            _refuse_first(name, small, rule, "has a smaller one")


def _refuse_first(name: str, bad: Any, rule: str, fact: str) -> None:
    row = pc.index(pc.fill_null(bad, False), True).as_py()
    if row >= 0:
        raise TableError(
            f"{rule}; column {shown(name)} {fact} in row {row + 1}. Drop the column, or write another "
            "format, such as Parquet."
        )
