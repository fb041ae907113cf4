"""What steps ask of an engine that reads a table in parts: verbs by which they look at all records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from microagg.engines.encoding import Encoding, PackedRows

Found = TypeVar("Found")


class Parts(Protocol):
    """A table in parts. Steps are functions of Arrow tables; the engine calls them where the records are."""

    @property
    def is_text(self) -> bool:
        """Whether records also come as a CSV file holds them."""

    @property
    def names(self) -> list[Any]:
        """Names of the columns."""

    def empty(self) -> pa.Table:
        """Return the types of the columns."""

    def first(self, records: int, work: Callable[[pa.Table], Found]) -> Found | None:
        """Look at the first records, at most some number of them; None: there is none."""

    def may_have_more_than(self, records: int) -> bool:
        """Tell whether there may be further records."""

    def reduce(
        self,
        work: Callable[..., Found],
        merge: Callable[[Found, Found], Found],
        columns: Iterable[Any],
    ) -> Found | None:
        """Summarise batches by ``work(table, written=…)``, which needs some columns; merge the summaries."""

    def gather(
        self,
        encoding: Encoding,
        choose: Callable[[PackedRows], PackedRows],
        work: Callable[[Iterable[PackedRows]], Found],
    ) -> Found:
        """Bring some records together, chosen from those of each batch, and work on them."""
