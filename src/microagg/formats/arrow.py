"""Arrow files: all that is known about columns has a place."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.feather as feather

from microagg.formats.file_errors import sound
from microagg.formats.format import Format, Reading
from microagg.formats.layouts import ArrowLayout, FileFormat
from microagg.formats.parquet import sizes_of_pieces

_MAGIC = b"ARROW1\0\0"
_CODECS = ("lz4", "zstd")  # by their number in the format


class Arrow(Format):
    """Arrow files, also under the name Feather."""

    name = "arrow"
    words = "an Arrow file"
    keeps_facts = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        """Read a file; Arrow itself opens none whose name is not UTF-8."""
        with path.open("rb") as file:
            how.hash(file)
            table = sound(feather.read_table(file))
            return table, FileFormat(csv=how.csv, arrow=_layout_of(file))

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file with the compression and the batches of its layout."""
        layout = form.arrow
        with path.open("wb") as file:
            if not layout.batches:
                feather.write_feather(table, file, compression=layout.compression or "uncompressed")
                return
            options = pa.ipc.IpcWriteOptions(compression=layout.compression)
            with pa.ipc.new_file(file, table.schema, options=options) as writer:
                unified, start = table.unify_dictionaries(), 0
                for size in sizes_of_pieces(layout.batches):
                    if start >= table.num_rows:
                        break
                    writer.write_table(unified.slice(start, size).combine_chunks())
                    start += size


def _layout_of(file: BinaryIO) -> ArrowLayout:
    """Find the layout in a file that was read without fault; what is older gets the default."""
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        return ArrowLayout()
    compression, batches = None, []
    for message in pa.ipc.MessageReader.open_stream(file):
        if message.type == "record batch":
            records, compression = _batch_header(message.metadata.to_pybytes())
            batches.append(records)
    return ArrowLayout(compression, tuple(batches))


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
    return count, _CODECS[0 if codec is None else message[codec]]
