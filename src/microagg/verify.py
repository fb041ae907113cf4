"""Read a file back and count whether k records share each combination of values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from microagg.measure.classes import count_combinations
from microagg.tables.files import CsvFormat, read_file
from microagg.tables.frames import Frame
from microagg.tables.matrix import check_k
from microagg.tables.roles import choose_columns

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """What was counted in a file."""

    holds: bool
    k: int
    columns: list[Any]
    records: int
    combinations: int
    smallest: int
    records_below_k: int

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return asdict(self)


def verify(
    path: str | Path,
    k: int,
    columns: Iterable[str] | None = None,
    csv: CsvFormat | None = None,
) -> Verification:
    """Count in a file how many records share each combination of values of some columns.

    Parameters
    ----------
    path : CSV, Parquet or Arrow file
    k : least number of records that must share a combination
    columns : names; by default all numeric columns
    csv : delimiter, encoding and decimal sign of a CSV file
    """
    columns = None if columns is None else list(columns)
    table, _ = read_file(Path(path), columns, csv)
    chosen = choose_columns(Frame(table), columns)
    k = check_k(k, max(table.num_rows, 1))
    counts = count_combinations(table, chosen)
    below = counts[counts < k]
    return Verification(
        holds=bool(below.size == 0),
        k=k,
        columns=chosen,
        records=table.num_rows,
        combinations=len(counts),
        smallest=int(counts[0]) if len(counts) else 0,
        records_below_k=int(np.sum(below)),
    )
