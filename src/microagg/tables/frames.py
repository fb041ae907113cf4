"""Data frames of pandas, polars and pyarrow: the only place that knows them.

Frames come in as the caller has them and go out as the same type, with index, order and
untouched columns as they were. narwhals speaks to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from microagg.errors import InputError, TableError, shown
from microagg.groups import Floats

__all__ = ["Frame", "is_frame"]

# Integers beyond this are not all doubles, so that a rounded mean need not be a valid value.
_LARGEST_EXACT_INTEGER = 2**53


def is_frame(data: Any) -> bool:
    """Whether the data are a frame (of any library, eager or lazy) rather than an array."""
    if isinstance(data, np.ndarray | list | tuple):
        return False
    import narwhals as nw

    return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame | nw.LazyFrame)


class Frame:
    """A data frame as microagg sees it: named columns, some of them numbers.

    Columns are reached by position, since pandas allows names that are no strings.
    """

    def __init__(self, native: Any) -> None:
        import narwhals as nw
        from narwhals.exceptions import DuplicateError

        wrapped = nw.from_native(native, pass_through=True)
        if isinstance(wrapped, nw.LazyFrame):
            raise InputError(
                "The frame is lazy, so its values are not there yet. Call .collect() first."
            )
        if not isinstance(wrapped, nw.DataFrame):
            raise InputError(
                f"A data frame of pandas, polars or pyarrow is needed; got {type(native).__name__}. "
                "For arrays use microagg.partition or microagg.Microaggregator."
            )
        self.native = native
        self._wrapped: nw.DataFrame[Any] = wrapped
        try:
            self.names: list[Any] = list(wrapped.columns)
        except DuplicateError as error:
            raise InputError(
                f"Column names must differ; they do not: {' '.join(str(error).split())}. "
                "Rename the columns."
            ) from None
        self._position = {name: j for j, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self._wrapped)

    def _column(self, name: Any) -> Any:
        return self._wrapped[:, self._position[name]]

    def has(self, name: Any) -> bool:
        """Whether there is a column of this name."""
        return name in self._position

    def is_numeric(self, name: Any) -> bool:
        """Whether a column holds numbers (truth values are none)."""
        return bool(self._column(name).dtype.is_numeric())

    def is_integer(self, name: Any) -> bool:
        """Whether a column holds whole numbers by its type."""
        return bool(self._column(name).dtype.is_integer())

    def values(self, name: Any) -> Floats:
        """Values of a numeric column as doubles; anything but finite numbers is refused."""
        column = self._column(name)
        self._refuse_other_kinds(name, column)
        missing = column.is_null().to_numpy()
        if not missing.any():
            values = np.asarray(column.to_numpy(), dtype=np.float64)
            missing = np.isnan(values)
        if missing.any():
            raise InputError(
                f"Columns to protect must have no missing values; column {shown(name)} has "
                f"{int(missing.sum())}, {_first_row(missing)}. Fill them, drop those records, or "
                "name the columns to protect without this one."
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"Columns to protect must hold finite numbers; column {shown(name)} has an infinite "
                f"value, {_first_row(~np.isfinite(values))}. Replace it or drop the record."
            )
        return values

    def _refuse_other_kinds(self, name: Any, column: Any) -> None:
        """Explain why a column that is not numeric cannot be averaged."""
        import narwhals as nw

        dtype = column.dtype
        if dtype.is_numeric():
            return
        way_out = "Leave it out of the columns to protect, or turn it into numbers first."
        if dtype.is_temporal():
            kind, row = "dates or times", 0
        elif dtype == nw.Boolean:
            kind, row = "truth values", 0
        else:
            kind = "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else f"of type {dtype}"
            row = next((i for i, v in enumerate(column.to_list()) if not _reads_as_number(v)), -1)
            if row < 0:
                kind = "numbers stored as text"
                way_out = "Convert it to a numeric type first."
        fact = f" (row {max(row, 0) + 1} is {shown(column[max(row, 0)])})" if len(column) else ""
        raise InputError(
            f"Columns to protect must hold numbers; column {shown(name)} holds {kind}{fact}. {way_out}"
        )

    def check_roundable(self, name: Any, values: Floats) -> None:
        """Refuse to round a column whose whole numbers are too large for doubles."""
        if np.abs(values).max(initial=0) > _LARGEST_EXACT_INTEGER:
            raise InputError(
                f"Rounding needs whole numbers up to 2^53; column {shown(name)} has larger ones. "
                "Release its means unrounded, or leave it out."
            )

    def singles_out(self, name: Any, share: float) -> bool:
        """Whether at least this share of a column's values, missing ones aside, are distinct."""
        column = self._column(name).drop_nulls()
        if len(column) < 2:
            return False
        try:
            distinct = int(column.n_unique())
        except Exception:
            distinct = len({repr(value) for value in column.to_list()})
        return distinct >= share * len(self)

    def replace(self, columns: Mapping[Any, Floats], *, whole: Sequence[Any] = ()) -> Any:
        """Return a native frame with new values in some columns, all else as it was.

        Float columns keep their width; integer columns become float64, except
        those in ``whole``, whose values are whole numbers and which keep their type.
        """
        import narwhals as nw

        rows = np.arange(len(self))
        new = {}
        for name, values in columns.items():
            column = self._column(name)
            keeps_type = column.dtype.is_float() or name in whole
            target = column if keeps_type else column.cast(nw.Float64())
            cast = values.astype(np.int64) if name in whole else values
            new[name] = target.scatter(rows, cast)
        if self._wrapped.implementation.is_pandas_like():
            result = self.native.copy(deep=False)  # keeps index, attributes and any kind of names
            for name, series in new.items():
                result.isetitem(self._position[name], series.to_native())
            return result
        return self._wrapped.with_columns(*new.values()).to_native()

    def to_arrow(self) -> Any:
        """As a pyarrow table; an index of pandas becomes columns where it holds information."""
        import pyarrow as pa

        if isinstance(self.native, pa.Table):
            return self.native
        if self._wrapped.implementation.is_pandas():
            try:
                return pa.Table.from_pandas(self.native)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise TableError(
                    f"The frame cannot be written: {error}. Give each column one type."
                ) from None
        return self._wrapped.to_arrow()


def _first_row(mask: Any) -> str:
    return f"the first in row {int(np.argmax(mask)) + 1} (the first record is row 1)"


def _reads_as_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
