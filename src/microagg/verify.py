"""Read a file back and count whether k records share each combination of values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.errors import InputError, listed, shown
from microagg.measure.classes import count_combinations
from microagg.settings import check_k
from microagg.tables.files import CsvFormat, read_file
from microagg.tables.frames import Frame
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
    if columns is not None:
        columns = [columns] if isinstance(columns, str) else list(columns)
    return verify_all(Path(path), k, [columns], csv)[0]


def verify_all(
    path: Path, k: int, sets: Sequence[list[str] | None], csv: CsvFormat | None
) -> list[Verification]:
    """Count for several sets of columns; the file is read once."""
    k = check_k(k, sys.maxsize)  # that fewer than k records are there is a finding, not a mistake
    every = None if None in sets else [name for names in sets for name in names or ()]
    table, _ = read_file(path, every, csv)
    if not table.num_rows:
        raise InputError(
            f"Counting needs at least one record; {shown(str(path), 300)} has none. "
            "Check that it was copied whole."
        )
    return [_count(table, k, choose_columns(Frame(table), columns)) for columns in sets]


def _count(table: pa.Table, k: int, columns: list[Any]) -> Verification:
    try:
        counts = count_combinations(table, columns)
    except pa.ArrowNotImplementedError:
        raise InputError(
            f"Columns to count must hold numbers, text or dates; {listed(columns)} hold "
            f"{listed(table.schema.field(name).type for name in columns)}. "
            "Name the columns without those of other types."
        ) from None
    below = counts[counts < k]
    return Verification(
        holds=bool(below.size == 0),
        k=k,
        columns=columns,
        records=table.num_rows,
        combinations=len(counts),
        smallest=int(counts[0]),
        records_below_k=int(np.sum(below)),
    )
