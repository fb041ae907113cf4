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

__all__ = ["ArrowLayout", "ParquetLayout"]

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
        codecs = {path: _PARQUET_CODECS.get(codec, codec) for path, codec in self.codecs}
        usual = Counter(codecs.values()).most_common(1)[0][0] if codecs else "SNAPPY"
        # A nested column has a path for each leaf, which begins with its name.
        known = {path[:end] for path in codecs for end in _prefixes(path)}
        codecs.update({name: usual for name in table.column_names if name not in known})
        alike = set(codecs.values()) == {usual}  # one word then, which also takes less time
        with pq.ParquetWriter(file, table.schema, compression=usual if alike else codecs) as writer:
            for piece in _pieces(table, self.row_groups or (1 << 20,)):
                writer.write_table(piece, row_group_size=piece.num_rows)


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
    start, planned = 0, filter(None, sizes)  # pieces without records are no pieces
    while start < table.num_rows:
        size = next(planned, max(sizes) or table.num_rows)
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
