"""SAS."""

from __future__ import annotations

from collections.abc import Iterator

from microagg.errors import listed
from microagg.formats.programs import Program
from microagg.tables.file_metadata import ColumnFacts, Labelled

__all__ = ["Sas"]

_OLD = 5  # version of the transport format


class Sas(Program):
    """Transport files of SAS; .sas7bdat is read only."""

    name = "sas"
    words = "a SAS transport file"
    name_pattern = r"[A-Za-z_][A-Za-z0-9_]*"
    name_words = "begin with a letter or _ and have letters a to z, digits and _"
    longest_name = 32
    longest_text = 32_767
    largest, smallest = 7.2e75, 5.5e-79
    longest_label = 255
    value_labels = False
    pads_text = True
    tags_also_for = ("stata",)

    def _longest_name(self, version: int) -> int:
        return 8 if version == _OLD else self.longest_name

    def _longest_text(self, version: int) -> int | None:
        return 200 if version == _OLD else self.longest_text

    def _rewritten(self, facts: Labelled) -> Iterator[str]:
        short = [
            name
            for name, column in facts.columns.items()
            if column.storage == "double" and (column.width or 8) < 8
        ]
        if short:
            yield (
                f"Numbers of fewer than 8 bytes ({listed(short, limit=5)}) are written with 8; their values "
                "stay the same."
            )

    def may_widen(self, column: ColumnFacts, facts: Labelled) -> bool:
        """Whether a number took fewer than 8 bytes."""
        return column.storage == "double"
