"""The verbs of Spark: steps that know Arrow and no engine, carried out over the rows of a DataFrame.

A step is a function of an Arrow table, or of all rows with one key. It is sent to the workers, keeps nothing
between calls, and whatever Spark does twice, or in another order, gives the same. Columns have plain names
on the way: ``c0``, ``c1``, … are those of the user, ``w0``, … the whole numbers of packed records,
``s0``, … those of what they release. Errors that leave a worker hold no value of the table, for they end up
in logs.

To hand a row to a Python worker and to take it back, Spark needs far more time than the worker needs for its
record. So records travel in *bundles*: a row holds some dozens of them, and each of its columns the bytes of
as many whole numbers. Records of a bundle go the same way: to one chunk, or to one bucket.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from microagg import errors
from microagg.base.typing import Labels
from microagg.compile.threads import limit_threads
from microagg.engines.encoding import PackedRows
from microagg.errors import InputError, MicroaggError, fault_words, listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData

AT_ONCE = 1 << 17  # rows of the tables into which the batches of Spark are gathered
_BYTES_AT_ONCE = 1 << 26
MOST_TASKS = 4096
_NUMBERS_OF_BUNDLE = 1 << 10  # about; Spark hands 10,000 rows at a time to a worker
_PACKED = "packed binary"
# Of Java, which then answers no more, or of a worker.
_GONE = re.compile(
    "Answer from Java side is empty|error occurred while trying to connect|worker exited un"
)

_ROW = re.compile(r"row [\d,]+ \(the first record is row 1\)")

Found = TypeVar("Found")


def mapped(frame: DataFrame, work: Callable[[pa.Table], pa.Table], schema: Any) -> DataFrame:
    """Turn the rows into others, some at a time."""

    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _gathered(batches):
            yield from _guarded(work, rows).to_batches()

    return frame.mapInArrow(over, schema)


def reduced(
    frame: DataFrame, work: Callable[[pa.Table], Found], merge: Callable[[Found, Found], Found]
) -> Found | None:
    """Summarise the rows, some at a time, and merge the summaries; None: there are no rows."""

    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        summaries = (_guarded(work, rows) for rows in _gathered(batches))
        for first in summaries:
            total = functools.reduce(
                lambda one, other: _guarded(merge, one, other), summaries, first
            )
            yield _packed(total)

    summaries: list[Found] = [
        unpack(bytes(row.packed)) for row in frame.mapInArrow(over, _PACKED).collect()
    ]
    return functools.reduce(merge, summaries) if summaries else None


def in_one_task(frame: DataFrame, work: Callable[[Iterator[pa.Table]], Found]) -> Found:
    """Bring rows together on one worker, whose result comes to the driver."""

    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _packed(_guarded(work, _gathered(batches)))

    (row,) = frame.repartition(1).mapInArrow(over, _PACKED).collect()
    result: Found = unpack(bytes(row.packed))
    return result


def by_chunk(
    frame: DataFrame, chunks: int, work: Callable[[int, pa.Table], pa.Table], schema: Any
) -> DataFrame:
    """Work on all rows of each chunk."""
    apply = _of_two(work)

    def arrived(key: tuple[pa.Scalar, ...], rows: pa.Table) -> Any:
        return apply(key[0].as_py(), rows)

    return _in_own_tasks(frame, "chunk", chunks).applyInArrow(arrived, schema)


def joined(
    rows: DataFrame,
    values: DataFrame,
    buckets: int,
    work: Callable[[pa.Table, pa.Table], pa.Table],
    schema: Any,
) -> DataFrame:
    """Bring the rows and the values of each bucket together."""
    one, other = (_in_own_tasks(part, "bucket", buckets) for part in (rows, values))
    return one.cogroup(other).applyInArrow(_of_two(work), schema)


def _in_own_tasks(frame: DataFrame, column: str, parts: int) -> GroupedData:
    """Group rows by the part 0, 1, … that a column names, each in a task of its own while there are enough.

    The number of tasks is set, since Spark would join small ones. A hash of the part, as in
    ``repartition``, sends several parts to one task: of 7 parts in 7 tasks, 3 tasks stay empty and 2 work on
    2 parts, one after the other. Grouping by the same column moves no row again.
    """
    whole = frame.withColumn(column, frame[column].cast("int"))
    return whole.repartitionById(min(parts, MOST_TASKS), column).groupBy(column)


def _of_two(work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """As a plain function of two arguments, which Spark counts."""

    def apply(one: Any, other: Any) -> Any:
        return _guarded(work, one, other)

    return apply


def _guarded(work: Callable[..., Any], *given: Any) -> Any:
    """Let errors out only in words that hold no value, and use the processors of one task."""
    limit_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))  # which Spark sets for a task
    try:
        return work(*given)
    except MicroaggError as error:
        # Rows of Spark have no numbers; those of a part of them would mislead.
        raise type(error)(_ROW.sub("some row", str(error))) from None
    except Exception as error:
        if os.environ.get("MICROAGG_TRACEBACK"):
            raise
        raise MicroaggError(fault_words(error)) from None


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of about AT_ONCE rows, or of fewer large ones."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= AT_ONCE or size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def pack(thing: object) -> bytes:
    """Something small for the driver, as bytes; sums over bins are mostly zeros."""
    return zlib.compress(pickle.dumps(thing), 1)


def unpack(given: bytes) -> Any:
    """Read what :func:`pack` wrote."""
    return pickle.loads(zlib.decompress(given))


def _packed(thing: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"packed": [pack(thing)]})


def _ended() -> MicroaggError:
    return MicroaggError(
        "A process of Spark ended before its work was done, as happens where memory is short. Nothing was "
        "released. Give Spark more memory or smaller chunks of records, and run it again."
    )


@contextmanager
def on_spark() -> Iterator[None]:
    """Let errors that workers raise on purpose out as what they were, and no word about pandas.

    Spark's functions for Arrow warn of each pandas that is newer than they are, and we hand them none.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            yield
    except (PySparkException, Py4JError) as error:
        refusals = re.findall(r"^microagg\.errors\.(\w+): (.*)$", str(error), re.MULTILINE)
        if refusals:
            name, words = refusals[-1]
            raised = getattr(errors, name, MicroaggError)(words)
        elif _GONE.search(str(error)):
            raised = _ended()
        else:
            raise
    except ConnectionError:  # Java does not answer any more
        raised = _ended()
    else:
        return
    raise raised from None


@dataclass(frozen=True)
class Layout:
    """The user's columns, and how rows of Spark become a table of these."""

    names: tuple[str, ...]
    nested: tuple[int, ...] = ()
    """Places of lists, maps and records, which are compared by their text in columns t0, t1, …."""

    def place(self, name: str) -> str:
        """Say where a column is; nested values are compared by their text."""
        at = self.names.index(name)
        return f"t{self.nested.index(at)}" if at in self.nested else f"c{at}"

    def table(self, rows: pa.Table) -> pa.Table:
        """Return the user's table, with the user's names."""
        return rows.select([f"c{j}" for j in range(len(self.names))]).rename_columns(
            list(self.names)
        )

    def with_nested_as_text(self, rows: pa.Table) -> pa.Table:
        """Return the same with text in the place of nested values, which have no keys."""
        table = self.table(rows)
        for at, j in enumerate(self.nested):
            table = table.set_column(j, self.names[j], rows.column(f"t{at}"))
        return table


def positional(frame: DataFrame) -> tuple[Layout, DataFrame]:
    """Columns c0, c1, …, since a name may hold anything, and the text of nested ones in extra columns."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql import types

    names = tuple(frame.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"A name stands for one column; {listed(twice)} stands for several. Rename them first."
        )
    plain = frame.toDF(*(f"c{j}" for j in range(len(names))))
    kinds = (types.ArrayType, types.MapType, types.StructType)
    nested = tuple(
        j for j, field in enumerate(frame.schema.fields) if isinstance(field.dataType, kinds)
    )
    texts = [F.to_json(F.struct(f"c{j}")).alias(f"t{at}") for at, j in enumerate(nested)]
    return Layout(names, nested), plain.select("*", *texts)


def bundle_schema(names: Iterable[str], way: str = "chunk") -> str:
    """Spark's schema of bundles; ``way`` is the column that says where they go."""
    return ", ".join([f"{way} long", *(f"`{name}` binary" for name in names)])


def word_names(width: int, letter: str = "w") -> list[str]:
    """Names of the columns of packed records."""
    return [f"{letter}{j}" for j in range(width)]


def word_columns(packed: PackedRows, letter: str = "w") -> dict[str, Labels]:
    """Packed records as columns of whole numbers."""
    signed, names = packed.view(np.int64), word_names(packed.shape[1], letter)
    return {name: signed[:, j] for j, name in enumerate(names)}


def in_bundles(
    columns: Mapping[str, Labels], ways: Labels | None = None, way: str = "chunk"
) -> pa.Table:
    """Put records into bundles.

    Parameters
    ----------
    columns : whole numbers of each record
    ways : where each record goes; None: all go to 0
    way : name of the column that says so

    >>> table = in_bundles({"w0": np.array([5, 6, 7])}, np.array([1, 0, 1]))
    >>> table["chunk"].to_pylist(), numbers_of(table["w0"]).tolist()
    ([0, 1], [6, 5, 7])
    """
    n = len(next(iter(columns.values())))
    places = np.zeros(n, dtype=np.int64) if ways is None else ways
    order = None if ways is None else np.argsort(ways, kind="stable")
    places = places if order is None else places[order]
    new = np.flatnonzero(np.append(True, places[1:] != places[:-1])[:n])
    at = np.arange(n) - np.repeat(new, np.diff(np.append(new, n)))
    begins = np.flatnonzero(at % max(1, _NUMBERS_OF_BUNDLE // len(columns)) == 0)
    offsets = pa.py_buffer((8 * np.append(begins, n)).astype(np.int32))
    bundles = {way: pa.array(places[begins], pa.int64())}
    for name, values in columns.items():
        ordered = np.ascontiguousarray(values if order is None else values[order]).view(np.int64)
        buffers = [None, offsets, pa.py_buffer(ordered)]
        bundles[name] = pa.Array.from_buffers(pa.binary(), len(begins), buffers)
    return pa.table(bundles)


def numbers_of(column: pa.ChunkedArray) -> Labels:
    """Read the whole numbers of a column of bundles."""
    pieces = [np.zeros(0, dtype=np.int64)]
    for chunk in column.cast(pa.binary()).chunks:
        _, offsets, data = chunk.buffers()
        if len(chunk) and data is not None:
            bounds = np.frombuffer(offsets, np.int32)[chunk.offset :][[0, len(chunk)]]
            pieces.append(np.frombuffer(data, np.uint8)[slice(*bounds)].view(np.int64))
    return np.concatenate(pieces)


def packed_of(table: pa.Table, letter: str = "w") -> PackedRows:
    """Read what :func:`word_columns` gave from bundles."""
    names = [name for name in table.column_names if name[0] == letter and name[1:].isdigit()]
    names.sort(key=lambda name: int(name[1:]))
    columns = [numbers_of(table.column(name)) for name in names]
    return np.column_stack(columns).view(np.uint64)


def unbundled(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return some columns of bundles, with a row for each record."""

    def apart(rows: pa.Table) -> pa.Table:
        return pa.table({name: numbers_of(rows.column(name)) for name in names})

    schema: Any = ", ".join(f"`{name}` long" for name in names)
    return mapped(frame.select(*names), apart, schema)


TIMES_IN_FILES = {
    # Spark has no type for times in nanoseconds, as pandas writes them, and refuses to read them otherwise.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Otherwise Spark writes a type of its own, in which readers find no time zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings of a session that reads and writes Parquet files with times."""


def with_nanoseconds(schema: pa.Schema) -> list[str]:
    """Return the columns of a Parquet file that hold times in nanoseconds, as pandas writes them.

    >>> with_nanoseconds(pa.schema([("born", pa.timestamp("ns")), ("seen", pa.timestamp("us"))]))
    ['born']
    """
    inside = [f.name for f in schema if pa.types.is_nested(f.type) and "[ns" in str(f.type)]
    if inside:
        raise InputError(
            f"Spark has no times in nanoseconds; {listed(inside)} holds some in lists or records. Drop it, "
            "or write the file with times in microseconds."
        )
    return [f.name for f in schema if pa.types.is_timestamp(f.type) and f.type.unit == "ns"]


def microsecond_words(names: Sequence[str]) -> str:
    """Say that Spark rounds the times of some columns."""
    return f"Spark has times in microseconds: nanoseconds are cut off in {listed(names, limit=5)}."


def in_microseconds(frame: DataFrame, schema: pa.Schema, names: Sequence[str]) -> DataFrame:
    """Return a Parquet file's rows with times in place of the nanoseconds that Spark read as numbers.

    Parameters
    ----------
    frame : rows as read with ``TIMES_IN_FILES``
    schema : of the file
    names : columns, as :func:`with_nanoseconds` gives them
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    times = {}
    for name in names:
        column = "`" + name.replace("`", "``") + "`"
        microseconds = f"({column} - pmod({column}, 1000)) div 1000"
        if schema.field(name).type.tz is None:  # whatever the time zone of the session
            start = "timestamp_ntz'1970-01-01 00:00:00'"
            times[name] = F.expr(f"timestampadd(MICROSECOND, {microseconds}, {start})")
        else:
            times[name] = F.expr(f"timestamp_micros({microseconds})")
    return frame.withColumns(times) if times else frame
