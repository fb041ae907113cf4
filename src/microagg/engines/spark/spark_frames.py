"""The verbs of Spark: steps that know Arrow and no engine, carried out over the rows of a DataFrame.

A step is a function of an Arrow table, or of all rows with one key. It is sent to the workers, keeps nothing
between calls, and whatever Spark does twice, or in another order, gives the same. Columns have plain names
on the way: ``c0``, ``c1``, … are those of the user. Errors that leave a worker hold no value of the table,
for they end up in logs.

To hand a row to a Python worker and to take it back, Spark needs far more time than the worker needs for its
record. So records travel in *bundles*: a row holds some dozens of them, and each of its columns the bytes of
a matrix with a row for each. Records of a bundle go the same ``way``: to one chunk, or to one bucket.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
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
_NUMBERS_OF_BUNDLE = 1 << 10  # of a matrix, about; Spark hands 10,000 rows at a time to a worker
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
            yield _packed(functools.reduce(functools.partial(_guarded, merge), summaries, first))

    rows = frame.mapInArrow(over, _PACKED).collect()
    summaries: list[Found] = [unpack(bytes(row.packed)) for row in rows]
    return functools.reduce(merge, summaries) if summaries else None


def in_one_task(frame: DataFrame, work: Callable[[Iterator[pa.Table]], Found]) -> Found:
    """Bring rows together on one worker, whose result comes to the driver."""

    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _packed(_guarded(work, _gathered(batches)))

    (row,) = frame.repartition(1).mapInArrow(over, _PACKED).collect()
    result: Found = unpack(bytes(row.packed))
    return result


def by_way(
    frame: DataFrame, ways: int, work: Callable[[int, pa.Table], pa.Table], schema: Any
) -> DataFrame:
    """Work on all rows that go one way 0, 1, …."""
    apply = _of_two(work)

    def arrived(key: tuple[pa.Scalar, ...], rows: pa.Table) -> Any:
        return apply(key[0].as_py(), rows)

    return _in_own_tasks(frame, ways).applyInArrow(arrived, schema)


def joined(
    rows: DataFrame,
    values: DataFrame,
    ways: int,
    work: Callable[[pa.Table, pa.Table], pa.Table],
    schema: Any,
) -> DataFrame:
    """Bring the rows and the values that go one way together."""
    both = (_in_own_tasks(frame, ways) for frame in (rows, values))
    return next(both).cogroup(next(both)).applyInArrow(_of_two(work), schema)


def _in_own_tasks(frame: DataFrame, ways: int) -> GroupedData:
    """Group rows by their way 0, 1, …, each in a task of its own while there are enough.

    The number of tasks is set, since Spark would join small ones. A hash of the way, as in
    ``repartition``, sends several to one task: of 7 ways in 7 tasks, 3 tasks stay empty and 2 work on
    2 ways, one after the other. Grouping by the same column moves no row again.
    """
    whole = frame.withColumn("way", frame["way"].cast("int"))
    return whole.repartitionById(min(ways, MOST_TASKS), "way").groupBy("way")


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
        return
    except (PySparkException, Py4JError, ConnectionError) as error:
        refusals = re.findall(r"^microagg\.errors\.(\w+): (.*)$", str(error), re.MULTILINE)
        if refusals:
            name, words = refusals[-1]
            raised = getattr(errors, name, MicroaggError)(words)
        elif isinstance(error, ConnectionError) or _GONE.search(str(error)):
            raised = MicroaggError(
                "A process of Spark ended before its work was done, as happens where memory is short. "
                "Nothing was released. Give Spark more memory or smaller chunks of records, and run it again."
            )
        else:
            raise
    raise raised from None


def positional(frame: DataFrame) -> tuple[list[str], DataFrame]:
    """Return the names of ``frame``, and its rows with columns c0, c1, …: a name may hold anything."""
    names = list(frame.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"A name stands for one column; {listed(twice)} stands for several. Rename them first."
        )
    return names, frame.toDF(*(f"c{j}" for j in range(len(names))))


def named(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the user's table, with the user's names; whatever columns follow are left out."""
    return rows.select(list(range(len(names)))).rename_columns(list(names))


def nested_as_text(table: pa.Table) -> pa.Table:
    """Return a table with text in the place of lists, maps and records, which have no keys."""
    for j, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):
            values = table.column(j).to_pylist()
            texts = [None if value is None else repr(value) for value in values]
            table = table.set_column(j, column.name, pa.array(texts, pa.string()))
    return table


def bundle_schema(*names: str) -> str:
    """Spark's schema of bundles, whose columns but the first are matrices."""
    return ", ".join(["way long", *(f"{name} binary" for name in names)])


def in_bundles(ways: Labels | None = None, **matrices: Any) -> pa.Table:
    """Put records into bundles.

    Parameters
    ----------
    ways : (n,) where each record goes; None: all go to 0
    **matrices : (n, width) numbers of 64 bits of the records, by the name of their column

    >>> table = in_bundles(np.array([1, 0, 1]), packed=np.array([[5], [6], [7]]))
    >>> table["way"].to_pylist(), matrix_of(table["packed"], 1)[:, 0].tolist()
    ([0, 1], [6, 5, 7])
    """
    n = len(next(iter(matrices.values())))
    ways = np.zeros(n, dtype=np.int64) if ways is None else ways
    order = np.argsort(ways, kind="stable")
    firsts = np.unique(ways[order], return_index=True)[1].tolist()
    records = max(1, _NUMBERS_OF_BUNDLE // max(matrix.shape[1] for matrix in matrices.values()))
    begins = [at for way in pairwise([*firsts, n]) for at in range(*way, records)]
    bundles: dict[str, Any] = {"way": ways[order[begins]]}
    for name, matrix in matrices.items():
        pieces = [rows.tobytes() for rows in np.split(matrix[order], begins)[1:]]
        bundles[name] = pa.array(pieces, pa.binary())
    return pa.table(bundles)


def matrix_of(column: pa.ChunkedArray, width: int) -> PackedRows:
    """Read a matrix of some width from bundles."""
    return np.frombuffer(bytearray().join(column.to_pylist()), np.uint64).reshape(-1, width)


TIMES_IN_FILES = {
    # Spark has no type for times in nanoseconds, as pandas writes them, and refuses to read them otherwise.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Otherwise Spark writes a type of its own, in which readers find no time zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings of a session that reads and writes Parquet files with times."""


def in_microseconds(frame: DataFrame, schema: pa.Schema) -> tuple[DataFrame, list[str]]:
    """Return a Parquet file's rows with times in place of the nanoseconds that Spark read as numbers.

    Parameters
    ----------
    frame : rows as read with ``TIMES_IN_FILES``
    schema : of the file

    Returns
    -------
    the rows, and the columns that held times in nanoseconds, as pandas writes them
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    inside = [f.name for f in schema if pa.types.is_nested(f.type) and "[ns" in str(f.type)]
    if inside:
        raise InputError(
            f"Spark has no times in nanoseconds; {listed(inside)} holds some in lists or records. Drop it, "
            "or write the file with times in microseconds."
        )
    times = {}
    for field in schema:
        if not pa.types.is_timestamp(field.type) or field.type.unit != "ns":
            continue
        column = "`" + field.name.replace("`", "``") + "`"
        microseconds = f"({column} - pmod({column}, 1000)) div 1000"
        if field.type.tz is None:  # whatever the time zone of the session
            start = "timestamp_ntz'1970-01-01 00:00:00'"
            times[field.name] = F.expr(f"timestampadd(MICROSECOND, {microseconds}, {start})")
        else:
            times[field.name] = F.expr(f"timestamp_micros({microseconds})")
    return (frame.withColumns(times) if times else frame), list(times)
