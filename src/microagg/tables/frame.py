"""Data frames of pandas, polars and pyarrow, as microagg sees them.

Frames come in as the caller has them and go out as the same type, with index, order and
untouched columns as they were. narwhals recognises them and speaks to columns that are no numbers;
``frame_libraries.py`` knows how each library stores numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, TableError, listed, shown
from microagg.plan.checks import column_names, no_column
from microagg.tables.finite import check_finite
from microagg.tables.frame_libraries import decoded, is_text, library_of, pandas_notes, plain_arrow
from microagg.tables.numbers_in_text import MISSING_WORDS, OddCells, count_odd, reads_as_number


def narwhals_frame(native: Any) -> Any:
    """Let narwhals recognise a frame, ``native``; what is none comes back as it is."""
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
        native = nw.to_native(native, pass_through=True)
        wrapped = narwhals_frame(native)
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
        self._library = library_of(wrapped.implementation)
        self.names: list[Any] = list(wrapped.columns)
        self._position = {name: j for j, name in enumerate(self.names)}
        self._columns: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._wrapped)

    def _column(self, name: Any) -> Any:
        """Return a column as its library has it, but for encodings of numbers, looked up once."""
        if name not in self._columns:
            self._columns[name] = self._library.plain(self._stored(name))
        return self._columns[name]

    def _stored(self, name: Any) -> Any:
        """Return a column as its library has it, encodings included."""
        return self._library.stored(self.native, self._position[name])

    def _series(self, name: Any) -> Any:
        """Return a column as narwhals wraps it."""
        return nw.from_native(self._column(name), series_only=True)

    def _cells(self, name: Any, most: int | None = None) -> list[Any]:
        """Return values of a column as Python has them, at most so many; None where one is missing."""
        series = self._series(name)
        series = series if most is None else series.head(most)
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        return [None if null else value for value, null in pairs]

    def index_columns(self) -> list[str]:
        """Columns of an Arrow table in which pandas keeps the index of its frame."""
        if not isinstance(self.native, pa.Table):
            return []
        notes = pandas_notes(self.native.schema)
        return [name for name in notes.get("index_columns", ()) if isinstance(name, str)]

    def distinct_row_labels(self) -> int:
        """Count the distinct row labels of a pandas frame, which are released with it.

        The labels 0, 1, 2, … that pandas gives by itself do not count.
        """
        if not self._wrapped.implementation.is_pandas_like():
            return 0
        index = self.native.index
        automatic = type(index).__name__ == "RangeIndex" and index.name is None
        return 0 if automatic else int(index.nunique(dropna=False))

    def has(self, name: Any) -> bool:
        """Return whether there is a column of this name."""
        try:
            return name in self._position
        except TypeError:  # a list, say, which is no name
            return False

    def is_numeric(self, name: Any) -> bool:
        """Return whether a column holds numbers, however they are stored (truth values are none)."""
        return self._library.kind(self._column(name)) is not None

    def is_integer(self, name: Any) -> bool:
        """Return whether a column holds whole numbers by its type."""
        return self._library.kind(self._column(name)) == "integer"

    def values(self, name: Any) -> Floats:
        """Values of a numeric column as doubles; anything but finite numbers is refused."""
        if not self.is_numeric(name):
            raise self.not_numbers(name)
        values = self.doubles(name)
        check_finite(values, name)
        return values

    def doubles(self, name: Any) -> Floats:
        """Values of a numeric column as doubles; NaN where one is missing."""
        return self._library.doubles(self._column(name))

    def is_ordered(self, name: Any) -> bool:
        """Return whether a column holds categories whose type says that they have an order."""
        kind = self.arrow_column(name).type
        return bool(getattr(kind, "ordered", False))

    def trimmed_texts(self, name: Any) -> list[str | None] | None:
        """Cells of a text column without outer blanks, None where missing; None for other columns."""
        if not self._may_be_text(name):
            return None
        texts = [None if value is None else str(value).strip() for value in self._cells(name)]
        return [None if text in MISSING_WORDS else text for text in texts]

    def _may_be_text(self, name: Any) -> bool:
        return self._series(name).dtype in (nw.String, nw.Object)

    def categories(
        self, name: Any, missing_words: Sequence[str] = ("",)
    ) -> tuple[Labels, list[Any]]:
        """Return the number of each record's value, −1 if missing, and the distinct values.

        Values are in the order that their type gives them, those that do not occur among them, else
        ascending. Texts among ``missing_words`` are
        missing ones.
        """
        column = plain_arrow(self.arrow_column(name))
        declared = None
        if pa.types.is_dictionary(column.type):
            if column.type.ordered and column.num_chunks:
                declared = column.unify_dictionaries().chunk(0).dictionary
            column = decoded(column)
        if pa.types.is_string_view(column.type):  # which arrow does not sort
            column = column.cast(pa.large_string())
        if is_text(column.type):
            missing = pa.array(missing_words, column.type)
            absent = pc.is_in(pc.utf8_trim_whitespace(column), value_set=missing)
            column = pc.if_else(absent, pa.scalar(None, column.type), column)
        if pa.types.is_floating(column.type):
            column = pc.if_else(
                pc.is_nan(column), pa.scalar(None, column.type), pc.add(column, 0.0)
            )
        if pa.types.is_nested(column.type):
            raise self.not_numbers(name)
        encoded = column.combine_chunks().dictionary_encode()
        values = encoded.dictionary
        codes = np.asarray(encoded.indices.cast(pa.int64()).fill_null(-1))
        if declared is None:
            sortable = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
            declared = values.take(pc.array_sort_indices(sortable))
        number = np.append(np.asarray(pc.index_in(values, value_set=declared)), -1)
        return number[codes].astype(np.int64), declared.to_pylist()

    def arrow_column(self, name: Any) -> Any:
        """Return a column of any type as an Arrow array with exactly the values it has."""
        try:
            return self._library.arrow(self._column(name))
        except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"The values of a column must have one type that files know; column {shown(name)} holds "
                f"others ({_fault_in_words(error)}). Convert it or leave it out."
            ) from None

    def levels(self, name: Any) -> tuple[Labels, list[Any]]:
        """Return the number of each record's value, and the distinct values, of a column of any type.

        Numbers are in ascending order, other values by first appearance; missing is a value, None,
        and comes last.
        """
        if self.is_integer(name):  # as doubles, long ids would be fewer than they are
            values = plain_arrow(self.arrow_column(name)).to_pylist()
            levels = sorted({value for value in values if value is not None})
        elif self.is_numeric(name):
            distinct, codes = np.unique(self.doubles(name), return_inverse=True)
            levels = [None if np.isnan(value) else value for value in distinct.tolist()]
            return codes.reshape(-1).astype(np.int64), levels
        else:
            values = self._cells(name)
            if any(isinstance(value, list | dict) for value in values):
                values = [None if value is None else repr(value) for value in values]
            levels = [value for value in dict.fromkeys(values) if value is not None]
        levels += [None] * (None in values)
        rank = {value: i for i, value in enumerate(levels)}
        return np.array([rank[value] for value in values], dtype=np.int64), levels

    def kind_in_words(self, name: Any) -> str:
        """Name what a column holds, for messages: text, truth values, categories, dates or times, …."""
        if self.is_numeric(name):
            return "numbers"
        dtype = self._series(name).dtype
        if dtype == nw.String:
            return "text"
        if dtype == nw.Boolean:
            return "truth values"
        if dtype in (nw.Categorical, nw.Enum):
            return "categories"
        if dtype.is_temporal():
            return "dates or times"
        native = self._column(name)
        return f"values of type {getattr(native, 'dtype', None) or native.type}"

    def not_numbers(self, name: Any) -> InputError:
        """Explain why a column that is not numeric cannot be averaged."""
        kind, odd = self.kind_in_words(name), self._odd_cells(name)
        way_out = "Leave it out of the columns to protect, or turn it into numbers first."
        if odd is not None and odd.row is None:
            kind, way_out = f"numbers stored as {kind}", "Convert it to a numeric type first."
        elif odd is not None:
            kind = f"{kind} ({odd.in_words()}; the first record is row 1)"
            way_out = odd.hint or way_out
        return InputError(
            f"Columns to work on must hold numbers; column {shown(name)} holds {kind}. {way_out}"
        )

    def odd_numbers(self, name: Any, counted: OddCells | None = None) -> OddCells | None:
        """Tell why a text column that mostly holds numbers is text; None for all other columns.

        Such a column was probably meant as numbers. Codes, several digits of one length, were not. Where
        the frame is the beginning of a larger table, ``counted`` has the odd cells of that.
        """
        odd = self._odd_cells(name, counted)
        head = self._head(name) if odd is not None and odd.row is None else [""]
        is_code = all(text.isdigit() for text in head) and len({len(text) for text in head}) == 1
        return None if is_code and len(head[0]) > 1 else odd

    def _odd_cells(self, name: Any, counted: OddCells | None = None) -> OddCells | None:
        """Find what is no number in a text column that mostly holds numbers."""
        if self.is_numeric(name) or not self._may_be_text(name):
            return None
        head = self._head(name)
        with_comma = sum(1 for text in head if reads_as_number(text.replace(",", ".", 1)))
        if not head or 2 * with_comma <= len(head):
            return None
        if counted is not None:
            return counted
        if self._series(name).dtype == nw.String:
            return count_odd(self.arrow_column(name).cast(pa.large_string()))
        texts = [None if value is None else str(value) for value in self._cells(name)]
        return count_odd(pa.array(texts))

    def _head(self, name: Any) -> list[str]:
        """Return the first cells as text without outer blanks, but for missing ones."""
        texts = (str(value).strip() for value in self._cells(name, 1000) if value is not None)
        return [text for text in texts if text not in MISSING_WORDS]

    def with_columns(self, columns: Mapping[Any, Any]) -> Any:
        """Return a native frame with some columns replaced by native ones, all else as it was."""
        new = {self._position[name]: column for name, column in columns.items()}
        return self._library.replace(self.native, new)

    def numbers_like(self, name: Any, values: Floats, whole: bool = False) -> Any:
        """Make a native column of new numbers in the type in which a column is released.

        Float columns keep their width and decimal ones their scale, to which values are rounded;
        integer columns become float64 unless the values are ``whole`` numbers. NaN stands for a missing
        value. Numbers in a dictionary, in runs, sparse or as categories come out as plain columns.
        """
        return self._library.like(values, self._column(name), whole)

    def doubles_like(self, name: Any, values: Floats) -> Any:
        """Make a native column of doubles, all digits kept, in place of a column of numbers."""
        return self._library.of_doubles(values, self._column(name))

    def integers_like(self, name: Any, values: Labels, missing: NDArray[np.bool_]) -> Any:
        """Make a native column of integers in place of a column."""
        return self._library.of_integers(values, missing, self._column(name))

    def take(self, name: Any, rows: Labels) -> Any:
        """Make a native column of the values that a column has in some rows, in its type; −1: missing."""
        return self._library.take(self._stored(name), rows)

    def arrow_like(self, name: Any, values: Any) -> Any:
        """Make a native column of an Arrow array, as near to the type of a column as its library allows."""
        return self._library.of_arrow(values, self._column(name))

    def _misfit(self) -> str:
        """Name the first column that no file takes."""
        for name in self.names:
            try:
                self.arrow_column(name)
                str(name).encode()
            except (InputError, UnicodeError):
                return f"column {shown(name)}"
        return "the index"

    def to_arrow(self, unnamed_index: bool = True) -> Any:
        """As a pyarrow table; an index of pandas becomes columns where it holds information.

        Without ``unnamed_index``, an index needs a name for that.
        """
        if isinstance(self.native, pa.Table):
            return self.native
        try:
            if self._wrapped.implementation.is_pandas():
                named = any(name is not None for name in self.native.index.names)
                keep = None if unnamed_index or named else False
                table = pa.Table.from_pandas(self.native, preserve_index=keep)
            elif nw.Object in self._wrapped.schema.values():
                raise TypeError
            else:
                table = self._wrapped.to_arrow()
        except (pa.ArrowException, UnicodeError, OverflowError, TypeError) as error:
            raise TableError(
                f"Each column of a file has one type that files know; {self._misfit()} has not "
                f"({_fault_in_words(error)}). Convert it or drop it before writing."
            ) from None
        names = table.column_names
        if len(set(names)) < len(names):
            raise TableError(
                f"Column names in a file are text and must differ; {listed(names)} do not. "
                "Rename the columns."
            )
        return table


def _fault_in_words(error: BaseException) -> str:
    """Say why values have no place in a file; what a library says may quote them."""
    if isinstance(error, UnicodeError):
        return "text with half of a surrogate pair, which is no sign"
    if isinstance(error, OverflowError):
        return "a number too large for its type"
    return "objects or values of several types"


def choose_columns(frame: Frame, columns: Iterable[Any] | None) -> list[Any]:
    """Return the columns of ``frame`` to work on: those asked for, ``columns``, or all numeric ones."""
    if columns is None:
        index = frame.index_columns()
        chosen = [n for n in frame.names if frame.is_numeric(n) and n not in index]
        if not chosen:
            raise InputError(
                "Microaggregation needs at least one numeric column; the table has none among "
                f"{listed(frame.names)}. Convert a column to numbers first."
            )
        return chosen
    chosen = list(column_names("columns", columns))
    if not chosen:
        raise InputError(
            "No column was named. Name at least one, or leave columns out for all numeric ones."
        )
    for name in chosen:
        if not frame.has(name):
            raise no_column(name, frame.names)
    return chosen


def values_as_written(frame: Frame, name: Any, from_csv: bool) -> pa.ChunkedArray:
    """Return the column ``name`` of ``frame``, null where it is missing.

    ``from_csv`` says that a CSV file holds it as text.
    """
    [name] = choose_columns(frame, [name])
    column = frame.arrow_column(name)
    if not from_csv or not is_text(column.type):
        return column
    texts = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(texts, value_set=pa.array(MISSING_WORDS, texts.type))
    return pc.if_else(missing, pa.scalar(None, texts.type), texts)


def codes_as_written(frame: Frame, name: Any, from_csv: bool) -> Labels:
    """Return the number of each record's value among the distinct values, (n,); −1 where it is missing.

    Parameters
    ----------
    frame : the table, for a CSV file as text
    name : of the column
    from_csv : whether a CSV file holds the column as text, in which words such as NA mean missing

    >>> frame = Frame(pa.table({"id": ["100000000000000000001", "", "100000000000000000002"]}))
    >>> codes_as_written(frame, "id", from_csv=True).tolist()
    [0, -1, 1]
    """
    return numbered_as_written(frame, name, from_csv)[0]


def numbered_as_written(frame: Frame, name: Any, from_csv: bool) -> tuple[Labels, Any]:
    """Return the codes of :func:`codes_as_written`, and the distinct values as an Arrow array.

    ``frame``, ``name`` and ``from_csv`` are as there; lists and records come as text.
    """
    values = decoded(values_as_written(frame, name, from_csv))  # a dictionary may hold one twice
    chunk = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_nested(chunk.type):  # which arrow does not number
        chunk = pa.array([None if value is None else repr(value) for value in chunk.to_pylist()])
    encoded = chunk.dictionary_encode()
    return np.asarray(encoded.indices.cast(pa.int64()).fill_null(-1)), encoded.dictionary
