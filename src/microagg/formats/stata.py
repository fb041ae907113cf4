"""Stata."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from microagg.formats.programs import Program
from microagg.formats.stata_writer import LONGEST_NAME, OLDEST
from microagg.tables.file_metadata import ColumnFacts, Labelled

__all__ = ["Stata"]


class Stata(Program):
    """Stata; formats before 118 are read only."""

    name = "stata"
    words = "a Stata file"
    name_pattern = r"[^\W\d]\w*"
    name_words = "begin with a letter or _ and have letters, digits and _"
    longest_name, name_unit = LONGEST_NAME, "signs"
    reserved = "_all _b _coef _cons _n _N _pi _pred _rc _skip"
    reserved += " byte double float if in int long strL using with"
    knows_capitals = True
    largest = 8.98e307
    longest_label, longest_value_label = 320, 32_000
    whole_value_labels = True
    tags_also_for = ("sas",)

    def _rewritten(self, facts: Labelled) -> Iterator[str]:
        if 0 < facts.version < OLDEST:
            yield (
                f"Stata files of format {facts.version} are read, not written: this one is written in format "
                f"{OLDEST}, for Stata 14 and newer."
            )

    def may_widen(self, column: ColumnFacts, facts: Labelled) -> bool:
        """Whether text of an old file may take more bytes, now that it is UTF-8."""
        return facts.version < OLDEST and column.storage == "string"

    def _letters(self, tags: pa.ChunkedArray) -> pa.ChunkedArray:
        letters = super()._letters(tags)
        return pc.if_else(pc.equal(letters, "_"), pa.scalar(None), letters)
