"""pandas, polars and pyarrow: how each stores a column of numbers, and how it is put back.

Numbers are numbers however they are stored: in a dictionary, in runs, sparse, as categories or
as decimals. ``plain`` takes such an encoding away; all other functions work on plain columns.
Everything here takes time linear in the number of columns of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, TableError

__all__ = ["Library", "NumberKind", "library_of", "pandas_notes", "plain_arrow"]

NumberKind = Literal["integer", "float", "decimal"]


class Library(Protocol):
    """What :class:`microagg.tables.frame.Frame` asks of a library."""

    def column(self, frame: Any, position: int) -> Any:
        """One column of a frame, plain."""

    def kind(self, column: Any) -> NumberKind | None:
        """Which numbers a column holds by its type; None: something else."""

    def doubles(self, column: Any) -> Floats:
        """Numbers as doubles, each the nearest; NaN where one is missing."""

    def arrow(self, column: Any) -> Any:
        """A column of any type as an Arrow array with exactly its values."""

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        """A column with new values, NaN for missing ones, in the type in which it is released.

        Floats keep their width, decimals their scale; integers become doubles unless the values are
        ``whole``.
        """

    def of_doubles(self, values: Floats, column: Any) -> Any:
        """A column of doubles with all their digits, beside others of the library."""

    def stored(self, frame: Any, position: int) -> Any:
        """One column of a frame as it is stored, encodings included."""

    def taken(self, column: Any, rows: Labels) -> Any:
        """The values of a column in some rows, in its type; −1: missing.

        Of the categories that a type lists, those that none of the rows has are left out: they would tell
        what other rows have.
        """

    def of_arrow(self, values: Any, column: Any) -> Any:
        """An Arrow array as a column of this library, beside which it will stand in a frame."""

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        """A frame with new columns at some positions, all else as it was."""


def library_of(implementation: Any) -> Library:
    """Return the functions for a library that narwhals recognised."""
    if implementation.is_pyarrow():
        return _Arrow()
    if implementation.is_polars():
        return _Polars()
    if implementation.is_pandas():
        return _Pandas()
    raise InputError(
        "Frames of pandas, polars and pyarrow can be worked on; this one is of "
        f"{implementation.name.lower()}. Convert it to one of these first."
    )


# Arrow


def plain_arrow(column: Any) -> Any:
    """Take dictionaries of numbers and runs away from an Arrow column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return plain_arrow(pa.chunked_array(chunks, type=kind.value_type))
    if pa.types.is_dictionary(kind) and _kind_of_arrow(kind.value_type) is not None:
        return column.cast(kind.value_type)
    return column


def _without_unused(column: Any) -> Any:
    """Leave out what the dictionary of an Arrow column lists and no record has; an order is kept.

    Without an order values are listed as they first appear, lest the list tell where they did before.
    """
    import pyarrow as pa

    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    values = column.cast(kind.value_type)
    one = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    found = one.dictionary_encode()
    indices, listed = found.indices, found.dictionary
    if kind.ordered:
        own = column.unify_dictionaries() if isinstance(column, pa.ChunkedArray) else column
        chunks = own.chunks if isinstance(own, pa.ChunkedArray) else [own]
        order = chunks[0].dictionary.to_pylist() if chunks else []
        new = sorted(range(len(listed)), key=lambda at: order.index(listed[at].as_py()))
        place = pa.array(np.argsort(new), pa.int64())
        indices, listed = place.take(indices), listed.take(pa.array(new, pa.int64()))
    array = pa.DictionaryArray.from_arrays(
        indices.cast(kind.index_type), listed, ordered=kind.ordered
    )
    return pa.chunked_array([array]) if isinstance(column, pa.ChunkedArray) else array


def _kind_of_arrow(kind: Any) -> NumberKind | None:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    return "decimal" if pa.types.is_decimal(kind) else None


def _arrow_doubles(column: Any) -> Floats:
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # arrow reads text to the nearest double, decimals not
    numbers = column.cast(pa.float64(), safe=False)  # large integers are rounded
    return np.asarray(numbers, dtype=np.float64)


def _arrow_like(values: Floats, kind: Any, whole: bool = False) -> Any:
    """Doubles as an Arrow array of the type in which a column of type ``kind`` is released."""
    import pyarrow as pa

    if pa.types.is_integer(kind) and not whole:
        kind = pa.float64()
    try:
        return pa.chunked_array([pa.array(values, from_pandas=True).cast(kind)])
    except pa.ArrowInvalid:  # the double nearest to a number of all nines may have a digit more
        raise InputError(
            f"Values of a decimal column must fit its type when rounded to its scale; some do not fit "
            f"{kind}. Give the column a type with more digits, or make it a float column."
        ) from None


class _Arrow:
    def column(self, frame: Any, position: int) -> Any:
        return plain_arrow(frame.column(position))

    def kind(self, column: Any) -> NumberKind | None:
        return _kind_of_arrow(column.type)

    def doubles(self, column: Any) -> Floats:
        return _arrow_doubles(column)

    def arrow(self, column: Any) -> Any:
        return column

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        return _arrow_like(values, column.type, whole)

    def of_doubles(self, values: Floats, column: Any) -> Any:
        import pyarrow as pa

        return pa.chunked_array([pa.array(values)])

    def stored(self, frame: Any, position: int) -> Any:
        return frame.column(position)

    def taken(self, column: Any, rows: Labels) -> Any:
        import pyarrow as pa

        wanted, plain = pa.array(rows, mask=rows < 0), plain_arrow(column)
        if pa.types.is_string_view(plain.type):  # from which arrow takes none
            return plain.cast(pa.large_string()).take(wanted).cast(plain.type)
        return _without_unused(plain.take(wanted))

    def of_arrow(self, values: Any, column: Any) -> Any:
        import pyarrow as pa

        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        import pyarrow as pa

        columns, fields = list(frame.columns), list(frame.schema)
        for position, column in new.items():
            columns[position] = column
            fields[position] = fields[position].with_type(column.type)
        return pa.table(columns, schema=pa.schema(fields, frame.schema.metadata))


def pandas_notes(schema: Any) -> dict[str, Any]:
    """Return what pandas noted about its frame in the schema of an Arrow table, {} if nothing."""
    import json

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
            "something else, so that the index cannot be told from the data. Write the table again "
            "without it, in pyarrow by table.replace_schema_metadata(None)."
        )
    return notes


# polars


class _Polars:
    def column(self, frame: Any, position: int) -> Any:
        return frame.to_series(position)

    def kind(self, column: Any) -> NumberKind | None:
        if column.dtype.is_integer():
            return "integer"
        if column.dtype.is_float():
            return "float"
        return "decimal" if column.dtype.is_decimal() else None

    def doubles(self, column: Any) -> Floats:
        import polars as pl

        if column.dtype.is_decimal():
            return _arrow_doubles(column.to_arrow())
        return np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64)

    def arrow(self, column: Any) -> Any:
        import polars as pl
        import pyarrow as pa

        if column.dtype == pl.Object:
            raise TypeError("Python objects have no place in a file")
        return pa.chunked_array([column.to_arrow()])

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        import polars as pl

        if column.dtype.is_decimal():
            new = pl.Series(_arrow_like(values, column.to_arrow().type))
        else:
            kept = whole or column.dtype.is_float()
            new = pl.Series(values, nan_to_null=True).cast(column.dtype if kept else pl.Float64)
        return new.alias(column.name)

    def of_doubles(self, values: Floats, column: Any) -> Any:
        import polars as pl

        return pl.Series(column.name, values)

    def stored(self, frame: Any, position: int) -> Any:
        return frame.to_series(position)

    def taken(self, column: Any, rows: Labels) -> Any:
        import polars as pl

        wanted = pl.Series(rows)
        return column.gather(pl.select(pl.when(wanted >= 0).then(wanted)).to_series())

    def of_arrow(self, values: Any, column: Any) -> Any:
        import polars as pl

        new = pl.Series(column.name, values)
        same = column.dtype.is_temporal() and new.dtype != column.dtype
        return new.cast(column.dtype) if same else new

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        return frame.with_columns(new.values())


# pandas


class _Pandas:
    def column(self, frame: Any, position: int) -> Any:
        import pandas as pd

        column = frame.iloc[:, position]
        kind = column.dtype
        if isinstance(kind, pd.SparseDtype):
            return column.astype(kind.subtype)
        if isinstance(kind, pd.CategoricalDtype) and kind.categories.dtype.kind in "iuf":
            return column.astype("float64" if column.hasnans else kind.categories.dtype)
        if isinstance(kind, pd.ArrowDtype):
            stored = column.array.__arrow_array__()
            values = plain_arrow(stored)
            return column if values is stored else _pandas_of_arrow(values, column.index)
        return column

    def kind(self, column: Any) -> NumberKind | None:
        import pandas as pd

        if isinstance(column.dtype, pd.ArrowDtype):
            return _kind_of_arrow(column.dtype.pyarrow_dtype)
        if column.dtype == object:
            return None if _decimals(column) is None else "decimal"
        kinds: dict[str, NumberKind] = {"i": "integer", "u": "integer", "f": "float"}
        return kinds.get(column.dtype.kind)

    def doubles(self, column: Any) -> Floats:
        import pandas as pd

        if isinstance(column.dtype, pd.ArrowDtype):
            return _arrow_doubles(column.array.__arrow_array__())
        if column.dtype == object:
            return _arrow_doubles(_decimals(column))
        if isinstance(column.dtype, np.dtype):
            return np.asarray(column.to_numpy(), dtype=np.float64)
        return np.asarray(column.to_numpy(dtype="float64", na_value=np.nan), dtype=np.float64)

    def arrow(self, column: Any) -> Any:
        import pyarrow as pa

        array = pa.array(column, from_pandas=True)
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])

    def like(self, values: Floats, column: Any, whole: bool) -> Any:
        import pandas as pd

        kind, index = column.dtype, column.index
        if isinstance(kind, pd.ArrowDtype):
            return _pandas_of_arrow(_arrow_like(values, kind.pyarrow_dtype, whole), index)
        if kind.kind == "O" and isinstance(kind, np.dtype):
            decimals = _arrow_like(values, _decimals(column).type)
            return pd.Series(decimals.to_pylist(), index=index, dtype=object)
        if kind.kind != "f" and not whole:
            kind = np.dtype("float64") if isinstance(kind, np.dtype) else pd.Float64Dtype()
        return pd.Series(values, index=index).astype(kind)

    def of_doubles(self, values: Floats, column: Any) -> Any:
        import pandas as pd

        if isinstance(column.dtype, pd.ArrowDtype):
            return _pandas_of_arrow(_Arrow().of_doubles(values, column), column.index)
        plain = isinstance(column.dtype, np.dtype)
        return pd.Series(values, index=column.index, dtype="float64" if plain else "Float64")

    def stored(self, frame: Any, position: int) -> Any:
        return frame.iloc[:, position]

    def taken(self, column: Any, rows: Labels) -> Any:
        import pandas as pd

        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.array.take(rows, allow_fill=True).remove_unused_categories()
            return pd.Series(values, index=column.index)
        if isinstance(column.dtype, pd.ArrowDtype):
            stored = column.array.__arrow_array__()
            return _pandas_of_arrow(_Arrow().taken(stored, rows), column.index)
        if (rows >= 0).all():  # the type is said, since pandas would make its own text of objects
            return pd.Series(column.array.take(rows), index=column.index, dtype=column.dtype)
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu":
            column = column.convert_dtypes()  # plain truth values and integers know no missing ones
        values = column.array.take(rows, allow_fill=True)
        return pd.Series(values, index=column.index, dtype=column.dtype)

    def of_arrow(self, values: Any, column: Any) -> Any:
        import pandas as pd

        if isinstance(column.dtype, pd.ArrowDtype):
            return _pandas_of_arrow(values, column.index)
        if column.dtype == object:
            return pd.Series(values.to_pylist(), index=column.index, dtype=object)
        new = values.to_pandas()
        new.index = column.index
        texts = column.dtype.kind in "iufb" and not _kind_of_arrow(
            values.type
        )  # in place of numbers
        same = texts or isinstance(column.dtype, pd.CategoricalDtype)
        return new if same else new.astype(column.dtype)

    def replace(self, frame: Any, new: Mapping[int, Any]) -> Any:
        # One frame of all columns at once: setting one after the other would take time
        # quadratic in their number.
        columns = {j: new.get(j, frame.iloc[:, j]) for j in range(frame.shape[1])}
        result = frame._constructor(columns, index=frame.index, copy=False)
        result.columns = frame.columns
        return result  # without attrs, which tell of the frame that was given


def _pandas_of_arrow(values: Any, index: Any) -> Any:
    import pandas as pd

    return pd.Series(pd.arrays.ArrowExtensionArray(values), index=index)


def _decimals(column: Any) -> Any:
    """Python's decimals, which pandas keeps as objects, as an Arrow array; None: something else."""
    import decimal

    import pyarrow as pa

    first = next((value for value in column.array if value is not None), None)
    if not isinstance(first, decimal.Decimal):
        return None
    try:
        found = pa.chunked_array([pa.array(column, from_pandas=True)])
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return found if pa.types.is_decimal(found.type) else None
