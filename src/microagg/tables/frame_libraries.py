"""pandas, polars and pyarrow: how each stores a column, and how a new one is put in its place.

Numbers are numbers however they are stored: in a dictionary, in runs, sparse, as categories or
as decimals. ``plain`` takes such an encoding away; all other functions work on plain columns.
Everything here takes time linear in the number of columns of a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, TableError

NumberKind = Literal["integer", "float", "decimal"]


def library_of(implementation: Any) -> Library:
    """Return the functions for a library that narwhals recognised."""
    if implementation.is_pyarrow():
        return Library()
    if implementation.is_polars():
        return _Polars()
    if implementation.is_pandas():
        return _Pandas()
    raise InputError(
        "Frames of pandas, polars and pyarrow can be worked on; this one is of "
        f"{implementation.name.lower()}. Convert it to one of these first."
    )


# Types and columns of Arrow


def is_text(kind: pa.DataType) -> bool:
    """Return whether ``kind``, a type of Arrow, is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether ``kind``, a type of Arrow, is one of numbers."""
    return _number_kind(kind) is not None


def _number_kind(kind: pa.DataType) -> NumberKind | None:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    return "decimal" if pa.types.is_decimal(kind) else None


def plain_arrow(column: Any) -> Any:
    """Take dictionaries of numbers and runs away from ``column``, of Arrow."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return plain_arrow(pa.chunked_array(chunks, type=kind.value_type))
    if pa.types.is_dictionary(kind) and is_number(kind.value_type):
        return column.cast(kind.value_type)
    return column


def decoded(column: Any) -> Any:
    """Take runs and dictionaries of any values away from ``column``, of Arrow."""
    column = plain_arrow(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _without_unused(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Leave out what the dictionary of a column lists and no record has; an order is kept.

    Without an order values are listed as they first appear, so that the list does not say where they
    did before.
    """
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    values = column.cast(kind.value_type).combine_chunks()
    listed = values.unique().drop_null()
    if kind.ordered and column.num_chunks:
        declared = column.unify_dictionaries().chunk(0).dictionary.unique()
        listed = declared.filter(pc.is_in(declared, value_set=listed))
    indices = pc.index_in(values, value_set=listed).cast(kind.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, listed, ordered=kind.ordered)])


def _arrow_doubles(column: Any) -> Floats:
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # arrow reads text to the nearest double, decimals not
    numbers = column.cast(pa.float64(), safe=False)  # large integers are rounded
    return np.asarray(numbers, dtype=np.float64)


def _arrow_like(values: Floats, kind: Any, whole: bool = False) -> pa.ChunkedArray:
    """Doubles as an Arrow array of the type in which a column of type ``kind`` is released."""
    if pa.types.is_integer(kind) and not whole:
        kind = pa.float64()
    try:
        return pa.chunked_array([pa.array(values, from_pandas=True).cast(kind)])
    except pa.ArrowInvalid:  # the double nearest to a number of all nines may have a digit more
        raise InputError(
            f"Values of a decimal column must fit its type when rounded to its scale; some do not fit "
            f"{kind}. Give the column a type with more digits, or make it a float column."
        ) from None


class Library:
    """Columns of pyarrow; those of pandas and polars are handled by subclasses."""

    def stored(self, frame: Any, position: int) -> Any:
        """Return a column of a frame; narwhals would list the names of all columns for each one."""
        return frame.column(position)

    def plain(self, column: Any) -> Any:
        """Take encodings of numbers away from a column."""
        return plain_arrow(column)

    def kind(self, column: Any) -> NumberKind | None:
        """Tell which numbers a column holds by its type; None: something else."""
        return _number_kind(column.type)

    def doubles(self, column: Any) -> Floats:
        """Return numbers as doubles, each the nearest; NaN where one is missing."""
        return _arrow_doubles(column)

    def arrow(self, column: Any) -> Any:
        """Return a column of any type as an Arrow array with exactly its values."""
        return column

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        """Make a column of new values in the type in which it is released, see ``Frame.numbers_like``."""
        return _arrow_like(values, column.type, whole)

    def of_doubles(self, values: Floats, column: Any) -> Any:
        """Make a column of doubles with all their digits, in place of a column."""
        return self.of_arrow(pa.array(values), column)

    def of_integers(self, values: Labels, missing: Any, column: Any) -> Any:
        """Make a column of integers, some of them missing, in place of a column."""
        return self.of_arrow(pa.array(values, mask=missing), column)

    def of_arrow(self, values: Any, column: Any) -> Any:
        """Make a column of an Arrow array, in place of a column."""
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])

    def take(self, column: Any, rows: Labels) -> Any:
        """Return the values of a column, as it is stored, in some rows; −1: missing.

        Categories that none of the rows has are not listed by the type: they would say what other rows
        have.
        """
        wanted, plain = pa.array(rows, mask=rows < 0), plain_arrow(column)
        if pa.types.is_string_view(plain.type):  # from which arrow takes none
            return plain.cast(pa.large_string()).take(wanted).cast(plain.type)
        return _without_unused(plain.take(wanted))

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        """Return a frame with new columns at some positions, all else as it was."""
        columns, fields = list(frame.columns), list(frame.schema)
        for position, column in new.items():
            columns[position] = column
            fields[position] = fields[position].with_type(column.type)
        return pa.table(columns, schema=pa.schema(fields, frame.schema.metadata))


def pandas_notes(schema: Any) -> dict[str, Any]:
    """Return what pandas noted about its frame in ``schema``, of an Arrow table; {} if nothing."""
    text = (schema.metadata or {}).get(b"pandas")
    if text is None:
        return {}
    try:
        notes = json.loads(text)
    except (ValueError, RecursionError):
        notes = None
    lists = ("index_columns", "columns")
    if not isinstance(notes, dict) or not all(isinstance(notes.get(n, []), list) for n in lists):
        raise TableError(
            "What pandas notes in a table's schema is a JSON object with lists of columns; here it is "
            "something else, so that index and data cannot be separated. Write the table again "
            "without it, in pyarrow by table.replace_schema_metadata(None)."
        )
    return notes


class _Polars(Library):
    @property
    def pl(self) -> Any:
        import polars

        return polars

    def stored(self, frame: Any, position: int) -> Any:
        return frame.to_series(position)

    def plain(self, column: Any) -> Any:
        return column

    def kind(self, column: Any) -> NumberKind | None:
        if column.dtype.is_integer():
            return "integer"
        if column.dtype.is_float():
            return "float"
        return "decimal" if column.dtype.is_decimal() else None

    def doubles(self, column: Any) -> Floats:
        if column.dtype.is_decimal():
            return _arrow_doubles(column.to_arrow())
        return np.asarray(column.cast(self.pl.Float64).to_numpy(), dtype=np.float64)

    def arrow(self, column: Any) -> Any:
        if column.dtype == self.pl.Object:
            raise TypeError("Python objects have no place in a file")
        return pa.chunked_array([column.to_arrow()])

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        if column.dtype.is_decimal():
            return self._series(_arrow_like(values, column.to_arrow().type), column)
        new = self.pl.Series(column.name, values, nan_to_null=True)
        return new.cast(column.dtype if whole or column.dtype.is_float() else self.pl.Float64)

    def of_arrow(self, values: Any, column: Any) -> Any:
        new = self._series(values, column)
        same = column.dtype.is_temporal() and new.dtype.is_temporal()
        return new.cast(column.dtype) if same else new

    def take(self, column: Any, rows: Labels) -> Any:
        wanted = self.pl.Series(rows)
        return column.gather(self.pl.select(self.pl.when(wanted >= 0).then(wanted)).to_series())

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        return frame.with_columns(new.values())

    def _series(self, values: Any, column: Any) -> Any:
        return self.pl.Series(column.name, values)


class _Pandas(Library):
    @property
    def pd(self) -> Any:
        import pandas

        return pandas

    def stored(self, frame: Any, position: int) -> Any:
        return frame.iloc[:, position]

    def plain(self, column: Any) -> Any:
        kind = column.dtype
        if isinstance(kind, self.pd.SparseDtype):
            return column.astype(kind.subtype)
        if isinstance(kind, self.pd.CategoricalDtype) and kind.categories.dtype.kind in "iuf":
            return column.astype("float64" if column.hasnans else kind.categories.dtype)
        if isinstance(kind, self.pd.ArrowDtype):
            stored = column.array.__arrow_array__()
            values = plain_arrow(stored)
            return column if values is stored else self._series(values, column.index)
        return column

    def kind(self, column: Any) -> NumberKind | None:
        if isinstance(column.dtype, self.pd.ArrowDtype):
            return _number_kind(column.dtype.pyarrow_dtype)
        if column.dtype == object:
            return None if _decimals(column) is None else "decimal"
        kinds: dict[str, NumberKind] = {"i": "integer", "u": "integer", "f": "float"}
        return kinds.get(column.dtype.kind)

    def doubles(self, column: Any) -> Floats:
        if isinstance(column.dtype, self.pd.ArrowDtype):
            return _arrow_doubles(column.array.__arrow_array__())
        if column.dtype == object:
            return _arrow_doubles(_decimals(column))
        if isinstance(column.dtype, np.dtype):
            return np.asarray(column.to_numpy(), dtype=np.float64)
        return np.asarray(column.to_numpy(dtype="float64", na_value=np.nan), dtype=np.float64)

    def arrow(self, column: Any) -> Any:
        array = pa.array(column, from_pandas=True)
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        kind, index = column.dtype, column.index
        if isinstance(kind, self.pd.ArrowDtype):
            return self._series(_arrow_like(values, kind.pyarrow_dtype, whole), index)
        if kind.kind == "O" and isinstance(kind, np.dtype):
            decimals = _arrow_like(values, _decimals(column).type)
            return self.pd.Series(decimals.to_pylist(), index=index, dtype=object)
        if kind.kind != "f" and not whole:
            kind = np.dtype("float64") if isinstance(kind, np.dtype) else self.pd.Float64Dtype()
        return self.pd.Series(values, index=index).astype(kind)

    def of_doubles(self, values: Floats, column: Any) -> Any:
        if isinstance(column.dtype, self.pd.ArrowDtype):
            return self._series(pa.chunked_array([pa.array(values)]), column.index)
        plain = isinstance(column.dtype, np.dtype)
        return self.pd.Series(values, index=column.index, dtype="float64" if plain else "Float64")

    def of_integers(self, values: Labels, missing: Any, column: Any) -> Any:
        numbers = self.pd.arrays.IntegerArray(values, missing) if missing.any() else values
        return self.pd.Series(numbers, index=column.index)

    def of_arrow(self, values: Any, column: Any) -> Any:
        if isinstance(column.dtype, self.pd.ArrowDtype):
            return self._series(values, column.index)
        if column.dtype == object:
            return self.pd.Series(values.to_pylist(), index=column.index, dtype=object)
        new = values.to_pandas()
        new.index = column.index
        texts_for_numbers = column.dtype.kind in "iufb" and not is_number(values.type)
        if texts_for_numbers or isinstance(column.dtype, self.pd.CategoricalDtype):
            return new
        return new.astype(column.dtype)

    def take(self, column: Any, rows: Labels) -> Any:
        if isinstance(column.dtype, self.pd.CategoricalDtype):
            values = column.array.take(rows, allow_fill=True).remove_unused_categories()
            return self.pd.Series(values, index=column.index)
        if isinstance(column.dtype, self.pd.ArrowDtype):
            stored = column.array.__arrow_array__()
            return self._series(super().take(stored, rows), column.index)
        if (rows >= 0).all():  # the type is said, since pandas would make its own text of objects
            return self.pd.Series(column.array.take(rows), index=column.index, dtype=column.dtype)
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu":
            column = column.convert_dtypes()  # plain truth values and integers know no missing ones
        values = column.array.take(rows, allow_fill=True)
        return self.pd.Series(values, index=column.index, dtype=column.dtype)

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        # One frame of all columns at once: setting one after the other would take time
        # quadratic in their number.
        columns = {j: new.get(j, frame.iloc[:, j]) for j in range(frame.shape[1])}
        result = frame._constructor(columns, index=frame.index, copy=False)
        result.columns = frame.columns
        return result  # without attrs, which may describe the original frame

    def _series(self, values: Any, index: Any) -> Any:
        return self.pd.Series(self.pd.arrays.ArrowExtensionArray(values), index=index)


def _decimals(column: Any) -> Any:
    """Python's decimals, which pandas keeps as objects, as an Arrow array; None: something else."""
    import decimal

    first = next((value for value in column.array if value is not None), None)
    if not isinstance(first, decimal.Decimal):
        return None
    try:
        numbers = pa.chunked_array([pa.array(column, from_pandas=True)])
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return numbers if pa.types.is_decimal(numbers.type) else None
