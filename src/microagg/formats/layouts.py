"""How Parquet and Arrow files lay out a table, to write it back in the same way.

What is kept is what a reader pays or relies on: compression and pieces. What is computed from
the values, such as statistics or a sort order, is not.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

__all__ = ["ArrowLayout", "ParquetLayout", "ParquetPieces"]

_ARROW_MAGIC = b"ARROW1\0\0"
_IPC_CODECS = ("lz4", "zstd")  # by their number in the format
_PARQUET_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}  # what pyarrow calls them when writing


@dataclass(frozen=True)
class ParquetLayout:
    """How a Parquet file is laid out; by default as pyarrow does it."""

    codecs: tuple[tuple[str, str], ...] = ()  # path of each column in the file, its codec
    row_groups: tuple[int, ...] = ()  # records in each

    @classmethod
    def of(cls, metadata: Any) -> ParquetLayout:
        """Find the layout in the footer of a file."""
        if not metadata.num_row_groups:
            return cls()
        first = metadata.row_group(0)
        columns = [first.column(j) for j in range(metadata.num_columns)]
        return cls(
            codecs=tuple((column.path_in_schema, column.compression) for column in columns),
            row_groups=tuple(
                metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)
            ),
        )

    def write(self, table: pa.Table, file: BinaryIO) -> None:
        """Write a table; columns that the layout does not know get its most common codec."""
        with ParquetPieces(self, table.schema, file) as pieces:
            pieces.write(table)

    def codecs_for(self, names: Sequence[str]) -> str | dict[str, str]:
        """Codec of each column in the words of pyarrow; one word where all have the same."""
        codecs = {path: _PARQUET_CODECS.get(codec, codec) for path, codec in self.codecs}
        usual = Counter(codecs.values()).most_common(1)[0][0] if codecs else "SNAPPY"
        # A nested column has a path for each leaf, which begins with its name.
        known = {path[:end] for path in codecs for end in _prefixes(path)}
        codecs.update({name: usual for name in names if name not in known})
        # One word also takes less time.
        return usual if set(codecs.values()) == {usual} else codecs


class ParquetPieces:
    """Writes a Parquet file in row groups of the sizes of a layout, from tables of any sizes.

    What a row group lacks is waited for, so that up to one is in memory, or as much of it as ``most``
    bytes: a row group that takes more is written as several.
    """

    def __init__(
        self, layout: ParquetLayout, schema: pa.Schema, file: BinaryIO, most: int | None = None
    ) -> None:
        self._writer = pq.ParquetWriter(file, schema, compression=layout.codecs_for(schema.names))
        self._sizes = _sizes(layout.row_groups or (1 << 20,))
        self._size = next(self._sizes)
        self._waiting: list[pa.Table] = []
        self._records = 0  # of those that wait
        self._most = most

    def __enter__(self) -> ParquetPieces:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._records:
            self._put(self._records)
        self._waiting.clear()
        self._writer.close()

    def write(self, table: pa.Table) -> None:
        """Write further records, or keep them until a row group is full."""
        self._waiting.append(table)
        self._records += table.num_rows
        while self._records >= self._size:
            self._put(self._size)
            self._size = next(self._sizes)
        if self._most is not None and self._bytes() > self._most:
            self._size -= self._records
            self._put(self._records)

    def _bytes(self) -> int:
        return sum(table.nbytes for table in self._waiting)

    def _put(self, records: int) -> None:
        whole = pa.concat_tables(self._waiting)
        # Where a page ends depends on the chunks of a column; with one chunk, on its values alone.
        group = whole.slice(0, records).combine_chunks()
        self._writer.write_table(group, row_group_size=records)
        self._records -= records
        self._waiting = [whole.slice(records)] if self._records else []


def _sizes(planned: Sequence[int]) -> Iterator[int]:
    """Sizes of pieces, without empty ones; when they are used up, the largest again and again."""
    largest = max(planned)
    yield from filter(None, planned)
    while True:
        yield largest or 1 << 20


def _prefixes(path: str) -> list[int]:
    return [i for i, sign in enumerate(path) if sign == "."] + [len(path)]


@dataclass(frozen=True)
class ArrowLayout:
    """How an Arrow file is laid out; by default as pyarrow's feather does it."""

    compression: str | None = "lz4"
    batches: tuple[int, ...] = ()  # records in each

    @classmethod
    def of(cls, file: BinaryIO) -> ArrowLayout:
        """Find the layout in a file that was read without fault; what is older gets the default."""
        file.seek(0)
        if file.read(len(_ARROW_MAGIC)) != _ARROW_MAGIC:
            return cls()
        compression, batches = None, []
        for message in pa.ipc.MessageReader.open_stream(file):
            if message.type == "record batch":
                records, compression = _batch_header(message.metadata.to_pybytes())
                batches.append(records)
        return cls(compression, tuple(batches))

    def write(self, table: pa.Table, file: BinaryIO) -> None:
        """Write a table."""
        if not self.batches:
            feather.write_feather(table, file, compression=self.compression or "uncompressed")
            return
        options = pa.ipc.IpcWriteOptions(compression=self.compression)
        with pa.ipc.new_file(file, table.schema, options=options) as writer:
            for piece in _pieces(table.unify_dictionaries(), self.batches):
                writer.write_table(piece.combine_chunks())


def _pieces(table: pa.Table, sizes: Sequence[int]) -> Iterator[pa.Table]:
    """Cut a table into pieces of these sizes; what is left over repeats the largest."""
    start, planned = 0, _sizes(sizes)
    while start < table.num_rows:
        size = next(planned)
        yield table.slice(start, size)
        start += size


def _batch_header(message: bytes) -> tuple[int, str | None]:
    """Return the records and the compression of a record batch from its header.

    pyarrow does not tell the compression. The header is a flatbuffer (Message.fbs of the Arrow format):
    a table begins with the way back to its list of fields, which has two bytes for each.
    """

    def field(table: int, number: int) -> int | None:
        """Place of a field of a table; None: it has its default."""
        fields = table - struct.unpack_from("<i", message, table)[0]
        at = 4 + 2 * number
        if at >= struct.unpack_from("<H", message, fields)[0]:
            return None
        offset = struct.unpack_from("<H", message, fields + at)[0]
        return table + offset if offset else None

    def follow(place: int) -> int:
        return int(place + struct.unpack_from("<I", message, place)[0])

    header = field(follow(0), 2)
    assert header is not None  # pyarrow has read this message as a record batch
    batch = follow(header)
    records, body = field(batch, 0), field(batch, 3)
    count = 0 if records is None else struct.unpack_from("<q", message, records)[0]
    if body is None:
        return count, None
    codec = field(follow(body), 0)
    return count, _IPC_CODECS[0 if codec is None else message[codec]]
