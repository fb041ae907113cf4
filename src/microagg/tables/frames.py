"""Data frames of pandas, polars and pyarrow: the only place that knows them.

Frames come in as the caller has them and go out as the same type, with index, order and
untouched columns as they were. narwhals speaks to all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from microagg.errors import InputError, TableError, listed, shown
from microagg.groups import Floats, Labels

__all__ = ["Frame", "check_finite", "is_frame"]

# Integers beyond this are not all doubles, so that a rounded mean need not be a valid value.
_LARGEST_EXACT_INTEGER = 2**53


def is_frame(data: Any) -> bool:
    """Whether the data are a frame (of any library, eager or lazy) rather than an array."""
    if isinstance(data, np.ndarray | list | tuple):
        return False
    import narwhals as nw

    return isinstance(_wrap(data), nw.DataFrame | nw.LazyFrame)


def _wrap(native: Any) -> Any:
    """Let narwhals recognise a frame; what is none comes back as it is."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        return nw.from_native(native, pass_through=True)
    except DuplicateError as error:
        raise InputError(
            f"Column names must differ; they do not: {' '.join(str(error).split())}. "
            "Rename the columns."
        ) from None


class Frame:
    """A data frame as microagg sees it: named columns, some of them numbers.

    Columns are reached by position, since pandas allows names that are no strings.
    """

    def __init__(self, native: Any) -> None:
        import narwhals as nw

        native = nw.to_native(native, pass_through=True)
        wrapped = _wrap(native)
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
        self.names: list[Any] = list(wrapped.columns)
        self._position = {name: j for j, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self._wrapped)

    def _column(self, name: Any) -> Any:
        return self._wrapped[:, self._position[name]]

    def index_columns(self) -> list[str]:
        """Columns of an Arrow table in which pandas keeps the index of its frame."""
        schema = getattr(self.native, "schema", None)
        described = getattr(schema, "pandas_metadata", None) or {}
        return [name for name in described.get("index_columns", ()) if isinstance(name, str)]

    def index_singles_out(self, share: float) -> bool:
        """Whether at least this share of the row labels of a pandas frame are distinct.

        The labels 0, 1, 2, … that pandas gives by itself tell nothing and do not count.
        """
        if not self._wrapped.implementation.is_pandas_like():
            return False
        index = self.native.index
        automatic = type(index).__name__ == "RangeIndex" and index.name is None
        return not automatic and len(index) > 1 and index.nunique() >= share * len(index)

    def has(self, name: Any) -> bool:
        """Whether there is a column of this name."""
        try:
            return name in self._position
        except TypeError:  # a list, say, which is no name
            return False

    def is_numeric(self, name: Any) -> bool:
        """Whether a column holds numbers (truth values are none)."""
        return bool(self._column(name).dtype.is_numeric())

    def is_integer(self, name: Any) -> bool:
        """Whether a column holds whole numbers by its type."""
        return bool(self._column(name).dtype.is_integer())

    def values(self, name: Any) -> Floats:
        """Values of a numeric column as doubles; anything but finite numbers is refused."""
        import narwhals as nw

        column = self._column(name)
        self._refuse_other_kinds(name, column)
        missing = column.is_null().to_numpy()
        if missing.any():
            raise missing_values(missing, name)
        if column.dtype in (nw.Int128, nw.UInt128):
            column = column.cast(nw.Float64())  # numpy has no such integers
        values = np.asarray(column.to_numpy(), dtype=np.float64)
        check_finite(values, name)
        return values

    def levels(self, name: Any) -> tuple[Labels, list[Any]]:
        """Number the distinct values of a column of any type: the number of each record, the values.

        Numbers are in ascending order, other values by first appearance; missing is a value, None,
        and comes last.
        """
        column = self._column(name)
        if column.dtype.is_numeric():
            numbers = np.asarray(column.to_numpy(), dtype=np.float64)
            found, codes = np.unique(numbers, return_inverse=True)
            levels = [None if np.isnan(value) else value for value in found.tolist()]
            return codes.reshape(-1).astype(np.int64), levels
        values = column.to_list()
        if any(isinstance(value, list | dict) for value in values):
            values = [None if value is None else repr(value) for value in values]
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
        if None in number:
            number[None] = len(number)  # last; the gap it leaves is closed below
        rank = {value: i for i, value in enumerate(sorted(number, key=number.__getitem__))}
        return np.array([rank[value] for value in values], dtype=np.int64), list(rank)

    def _refuse_other_kinds(self, name: Any, column: Any) -> None:
        """Explain why a column that is not numeric cannot be averaged."""
        import narwhals as nw

        dtype = column.dtype
        if dtype.is_numeric():
            return
        row, way_out = 0, "Leave it out of the columns to protect, or turn it into numbers first."
        if dtype.is_temporal():
            kind = "dates or times"
        elif dtype == nw.Boolean:
            kind = "truth values"
        else:
            kind = _kind_in_words(column)
            row = next((i for i, v in enumerate(column.to_list()) if not _reads_as_number(v)), -1)
            if row < 0:
                kind = f"numbers stored as {kind}"
                row, way_out = 0, "Convert it to a numeric type first."
        first = column[row : row + 1].to_list()
        fact = f" (row {row + 1} is {shown(first[0])}; the first record is row 1)" if first else ""
        if first and "," in str(first[0]) and _reads_as_number(str(first[0]).replace(",", ".")):
            way_out = "If the comma is a decimal sign, say so: --decimal , for a CSV file."
        raise InputError(
            f"Columns to work on must hold numbers; column {shown(name)} holds {kind}{fact}. {way_out}"
        )

    def first_not_a_number(self, name: Any) -> int | None:
        """Row of the first odd value of a text column that mostly holds numbers; else None.

        Such a column was probably meant as numbers. Codes, digits of one common length, were not.
        """
        import narwhals as nw

        column = self._column(name)
        if column.dtype not in (nw.String, nw.Object):
            return None
        head = column.head(1000).to_list()
        texts = [str(value).replace(",", ".") for value in head]
        numbers = [_reads_as_number(text) for text in texts]
        lengths = {len(text) for text in texts if text.isdigit()}
        if 2 * sum(numbers) <= len(head) or (len(lengths) == 1 and all(map(str.isdigit, texts))):
            return None
        plain = (i for i, value in enumerate(head) if not _reads_as_number(value))
        return next(plain, 0)

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
        except Exception:  # nested values, of which each library refuses others: compare as text
            distinct = len({repr(value) for value in column.to_list()})
        return distinct >= share * len(column)

    def replace(self, columns: Mapping[Any, Floats], *, whole: Sequence[Any] = ()) -> Any:
        """Return a native frame with new values in some columns, all else as it was.

        Float columns keep their width; integer columns become float64, except
        those in ``whole``, whose values are whole numbers and which keep their type.
        """
        import narwhals as nw
        import pyarrow as pa

        double = nw.Float64()
        new = {}
        for name, values in columns.items():
            dtype = self._column(name).dtype
            kept = dtype if dtype.is_float() or name in whole else double
            # An empty column tells the type in the words of its library, such as Float64 or
            # double[pyarrow] of pandas.
            new[name] = values, kept, self._column(name).head(0).cast(kept).to_native()
        if self._wrapped.implementation.is_pandas_like():
            result = self.native.copy(deep=False)  # keeps index, attributes and any kind of names
            for name, (values, _, empty) in new.items():
                series = type(empty)(values, index=result.index).astype(empty.dtype)
                result.isetitem(self._position[name], series)
            return result
        if isinstance(self.native, pa.Table):
            table = self.native
            for name, (values, _, empty) in new.items():
                field = table.schema.field(self._position[name]).with_type(empty.type)
                array = pa.array(values).cast(empty.type)
                table = table.set_column(self._position[name], field, array)
            return _with_true_pandas_types(table)
        backend = self._wrapped.implementation
        series = (
            nw.new_series(name, values, double, backend=backend).cast(kept)
            for name, (values, kept, _) in new.items()
        )
        return self._wrapped.with_columns(*series).to_native()

    def to_arrow(self, unnamed_index: bool = True) -> Any:
        """As a pyarrow table; an index of pandas becomes columns where it holds information.

        Without ``unnamed_index``, an index needs a name for that.
        """
        import narwhals as nw
        import pyarrow as pa

        if isinstance(self.native, pa.Table):
            return self.native
        try:
            if self._wrapped.implementation.is_pandas():
                named = any(name is not None for name in self.native.index.names)
                keep = None if unnamed_index or named else False
                table = pa.Table.from_pandas(self.native, preserve_index=keep)
            elif nw.Object in self._wrapped.schema.values():
                raise TypeError("Python objects have no place in a file")
            else:
                table = self._wrapped.to_arrow()
        except (pa.ArrowException, OverflowError, TypeError) as error:
            raise TableError(
                f"The frame cannot be written: {error}. Give each column one type that files know."
            ) from None
        names = table.column_names
        if len(set(names)) < len(names):
            raise TableError(
                f"Column names in a file are text and must differ; {listed(names)} do not. "
                "Rename the columns."
            )
        return table


def _with_true_pandas_types(table: Any) -> Any:
    """Mend what pandas noted about types in an Arrow table whose columns have changed theirs."""
    import json

    described = table.schema.pandas_metadata
    if not described:
        return table
    for column in described["columns"]:
        if column["field_name"] in table.column_names:
            kind = str(table.schema.field(column["field_name"]).type)
            if kind == "double" and column["pandas_type"] != "float64":
                column.update(pandas_type="float64", numpy_type="float64", metadata=None)
    metadata = {**table.schema.metadata, b"pandas": json.dumps(described).encode()}
    return table.replace_schema_metadata(metadata)


def _kind_in_words(column: Any) -> str:
    import narwhals as nw

    if column.dtype == nw.String:
        return "text"
    if column.dtype in (nw.Categorical, nw.Enum):
        return "categories"
    native = column.to_native()
    return f"values of type {getattr(native, 'dtype', None) or native.type}"


def check_finite(values: Floats, name: object) -> None:
    """Refuse a column with a missing or infinite value, naming the first."""
    if np.isfinite(values).all():
        return
    if np.isnan(values).any():
        raise missing_values(np.isnan(values), name)
    raise InputError(
        f"Columns to work on must hold finite numbers; column {shown(name)} has an infinite "
        f"value, {_first_row(~np.isfinite(values))}. Replace it or drop the record."
    )


def missing_values(mask: Any, name: object) -> InputError:
    """Say where values are missing."""
    return InputError(
        f"Columns to work on must have no missing values; column {shown(name)} has "
        f"{int(np.sum(mask))}, {_first_row(mask)}. Fill them, drop those records, or "
        "name the columns to work on without this one."
    )


def _first_row(mask: Any) -> str:
    return f"the first in row {int(np.argmax(mask)) + 1} (the first record is row 1)"


def _reads_as_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
