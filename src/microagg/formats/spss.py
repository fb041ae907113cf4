"""SPSS: written by pyreadstat, and looked at before it reads a file.

A file that claims more records than it has room for would take all memory; labels of columns that do
not exist, or of text that is none in the encoding of the file, would end the whole process. Such files are
refused here.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from microagg.errors import TableError, shown
from microagg.formats.file_errors import incomplete, needed
from microagg.formats.statistical import StatisticalFormat, StoredTable, known_facts, pandas_frame
from microagg.tables.file_metadata import Labelled

_MOST_COMPRESSED = 1100  # times that zlib makes anything smaller
_MOST_LABELS = 1 << 20


class Spss(StatisticalFormat):
    """SPSS; portable files (.por) are read only."""

    name = "spss"
    words = "an SPSS file"
    name_pattern = r"[^\W\d][\w.$#@]*"
    name_words = "begin with a letter and have letters, digits and . _ $ # @"
    longest_name = 64
    reserved = "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH"
    longest_text = 32_767
    longest_label, longest_value_label = 255, 120
    missing_codes = True
    pads_text = True

    def _look(self, path: Path) -> Labelled:
        with path.open("rb") as file:
            head = file.read(176)
            if head[:4] not in (b"$FL2", b"$FL3") or len(head) < 176:  # as a portable file
                return Labelled({}, self.name)
            first, last = head[72], head[75]  # of a number in one or the other order of bytes
            compression = min(min(first, last) or max(first, last), 2)
            known = Labelled({}, self.name, compression=compression)
            order = "<" if head[64] else ">"
            (records,) = struct.unpack(f"{order}i", head[80:84])  # each takes a byte or more
            room = path.stat().st_size * (_MOST_COMPRESSED if head[:4] == b"$FL3" else 1)
            if records > room:
                raise incomplete(path, "spss", "it claims more records than it has room for")
            try:
                texts, encoding, subtypes = _dictionary(path, file, order)
            except (struct.error, OverflowError, OSError):  # the file ends too early
                return known
        try:
            for text in texts if encoding else ():
                text.decode(encoding or "ascii")
        except LookupError:
            return known
        except UnicodeDecodeError:
            raise TableError(
                f"Labels belong to values in the encoding of the file; in {shown(str(path), 300)} one "
                f"belongs to bytes that are no {encoding}. Check that it was copied whole, or save it "
                "again in SPSS."
            ) from None
        unread = []
        if any(head[76:80]):
            unread.append("the settings that weight cases by a column")
        if subtypes & {17, 18}:
            unread.append("the attributes of columns, such as their roles in dialogues")
        return replace(known, lost=tuple(unread))

    def _write(self, path: Path, table: StoredTable) -> None:
        facts = table.facts
        compress = path.suffix.lower() == ".zsav"
        # The function behind write_sav, which also takes alignments.
        needed("pyreadstat._readstat_writer").writer_entry_point(
            pandas_frame(table),
            path.absolute(),
            file_label=facts.label,
            column_labels=known_facts(facts, "label"),
            compress=compress,
            row_compress=not compress and facts.compression == 1,
            note=list(facts.notes),
            variable_value_labels={
                n: dict(pairs) for n, pairs in known_facts(facts, "value_labels").items()
            },
            missing_ranges={
                name: [{"lo": c[0], "hi": c[1]} if isinstance(c, tuple) else c for c in codes]
                for name, codes in known_facts(facts, "missing").items()
            },
            variable_display_width=known_facts(facts, "display_width"),
            variable_measure=known_facts(facts, "measure"),
            variable_format=known_facts(facts, "format"),
            variable_alignment=known_facts(facts, "alignment"),
            writer_format="sav",
        )


def _dictionary(path: Path, file: BinaryIO, order: str) -> tuple[list[bytes], str | None, set[int]]:
    """Return the texts that have labels, as bytes, the encoding, and the kinds of further facts."""

    def integers(count: int) -> tuple[int, ...]:
        return struct.unpack(f"{order}{count}i", file.read(4 * count))

    is_text: list[bool] = []  # of each column, and of each further eight bytes of a long one
    texts: list[bytes] = []
    labelled: list[bytes] = []
    subtypes: set[int] = set()
    encoding, more = None, 0  # parts of a long text that are still to come
    while True:
        (kind,) = integers(1)
        if kind == 2:
            width, has_label, missing, _, _ = integers(5)
            if (width == -1) != (more > 0) or not -1 <= width <= 255:
                raise incomplete(path, "spss", "a column has another width than its parts")
            more = more - 1 if width == -1 else max(-(-width // 8) - 1, 0)
            is_text.append(width != 0)
            file.read(8)
            if has_label:
                (length,) = integers(1)
                file.seek(-(-length // 4) * 4, 1)
            file.seek(8 * abs(missing), 1)
        elif kind == 3:
            (count,) = integers(1)
            labelled = []
            for _ in range(min(max(count, 0), _MOST_LABELS)):
                labelled.append(file.read(8))
                (length,) = struct.unpack("B", file.read(1))
                file.seek(-(-(length + 1) // 8) * 8 - 1, 1)
        elif kind == 4:
            (count,) = integers(1)
            if not 0 < count <= len(is_text):
                raise incomplete(path, "spss", "labels belong to more columns than there are")
            columns = integers(count)
            if not all(0 < j <= len(is_text) for j in columns):
                raise incomplete(path, "spss", "labels belong to a column that does not exist")
            if len({is_text[j - 1] for j in columns}) > 1:
                raise incomplete(path, "spss", "labels belong to text and to numbers")
            texts += labelled if is_text[columns[0] - 1] else []
        elif kind == 6:
            (lines,) = integers(1)
            file.seek(80 * max(lines, 0), 1)
        elif kind == 7:
            subtype, size, count = integers(3)
            subtypes.add(subtype)
            if subtype == 20 and 0 <= size * count < 100:
                encoding = file.read(size * count).decode("ascii", errors="replace")
            else:
                file.seek(max(size * count, 0), 1)
        else:  # the end of the dictionary, or something that pyreadstat will complain about
            return texts, encoding, subtypes
