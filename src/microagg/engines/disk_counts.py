"""Count classes in a file that does not fit into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from microagg.errors import InputError
from microagg.formats.batches import Batch, BatchSource
from microagg.measure.classes import ClassSizes
from microagg.measure.count_by_keys import ClassCounter, keys_of
from microagg.measure.row_keys import Keys
from microagg.measure.verify import Question, why_left_out
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import OddCells, count_odd

_HEAD = 1000  # records that show whether a text column is meant to hold numbers
_SOME_ODD = OddCells(0, 1, 0)


@dataclass(frozen=True)
class CountsOnDisk:
    """A file whose records are counted batch by batch."""

    source: BatchSource
    scratch: Path
    """Folder for files that are made, and removed, if the keys do not fit into memory."""
    memory: int
    """Bytes that tables of keys may take."""
    units: Mapping[Any, pa.Array] = field(default_factory=dict)
    """What the file does not have of its records: dropped units, and what was dealt to each row."""

    @property
    def written(self) -> Frame:
        """The names of the columns."""
        return Frame(pa.schema([(name, pa.null()) for name in self.source.names]).empty_table())

    @property
    def typed(self) -> Frame:
        """The types of the columns; for a CSV file they are found in an extra pass."""
        return Frame(self.source.schema.empty_table())

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count all classes in one pass."""
        read = (name for question in questions for name in (*question.by, question.distinct))
        needed = dict.fromkeys(name for name in read if name not in (None, *self.units))
        records, share = 0, self.memory // max(len(questions), 1)
        with TemporaryDirectory(prefix="counting-", dir=self.scratch) as folder:
            counters = [
                ClassCounter(
                    Path(folder),
                    share,
                    question.distinct is not None,
                    question.common,
                    question.numbers,
                )
                for question in questions
            ]
            for batch in self.source.batches(needed):
                for question, counter in zip(questions, counters, strict=True):
                    counter.add(*self._keys(batch, question))
                records += batch.as_written.num_rows
            for question in questions:
                for name in self._extra(question) if records else ():
                    _check_units(len(self.units[name]), records)
            return [counter.sizes() for counter in counters]

    def _keys(self, batch: Batch, asked: Question) -> list[Keys]:
        """Return the keys of the records of a batch, see :func:`microagg.measure.count_by_keys.keys_of`."""
        written, extra = Frame(batch.as_written), {}
        for name in self._extra(asked):
            extra[name] = self.units[name].slice(batch.first, len(written))
            _check_units(len(extra[name]), len(written))
        return keys_of(written, asked, self.source.is_text, extra)

    def _extra(self, asked: Question) -> list[Any]:
        """List what a question asks for and the file does not have."""
        return [name for name in (*asked.by, asked.distinct) if name in self.units]

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Look at all cells; the first records show what a column is meant to hold."""
        head, odd = self.typed, {name: OddCells() for name in columns}
        for batch in self.source.batches(columns):
            if not batch.first:
                head = Frame(batch.table.slice(0, _HEAD))
            for name, so_far in odd.items():
                if head.odd_numbers(name, _SOME_ODD) is not None:
                    cells = batch.table[name].cast(pa.large_string())
                    odd[name] = so_far.then(count_odd(cells), batch.first)
        return {name: why_left_out(head, name, cells) for name, cells in odd.items()}


def _check_units(given: int, records: int) -> None:
    if given != records:
        raise InputError(
            "Units that are given next to a file have one value for each of its records; their number "
            "differs. Give those of this file."
        )
