"""The reference data: where they come from, whether they are here, and whether they are the right ones.

``python -m benchmarks.reference`` says so for each set. They are not ours to ship: tests and benchmarks
read them from the folder that MICROAGG_DATA names, else from ``../shared/data``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow.csv import read_csv

FOLDER = Path(os.environ.get("MICROAGG_DATA", Path(__file__).parents[1].parent / "shared" / "data"))

_CASC = "R package sdcMicro, data set {}, from the CASC project (Brand, Domingo-Ferrer, Mateo-Sanz 2002)"


class Reference(NamedTuple):
    """A reference data set."""

    origin: str
    records: int
    digest: str
    """Of names and values, see :func:`digest`; how numbers are written has no say in it."""


REFERENCES = {
    "tarragona": Reference(
        _CASC.format("Tarragona"),
        834,
        "44774865f11a653dd25c5e67ca7b11833ae298159f95fd20329d9b62f36017c7",
    ),
    "census": Reference(
        _CASC.format("CASCrefmicrodata"),
        1080,
        "2c518dc3701c533af2cec6f6d0e7a29b50f0b16f8774d0ce9b67987445613705",
    ),
    "eia": Reference(
        _CASC.format("EIA"),
        4092,
        "665501731a65a26f8ce9768783af98afac209bf148b7819688b9d3523aafe960",
    ),
    "eusilc": Reference(
        "R package laeken, data set eusilc: a synthetic copy of the Austrian EU-SILC survey 2006",
        14827,
        "4fa9e04828436c0836d899233e4d1c39075b5210ef07a50d83e81a3ec3f4f3e6",
    ),
    "ma2019": Reference(
        "NIST, Diverse Communities Data Excerpts, Massachusetts 2019, with ma2019_dictionary.json",
        7634,
        "d1775d06b80e1d1164ed7e590bebe53e1bf869f69022225ac5c2746217fff59a",
    ),
}
_HOW = 'In R: write.csv(NAME, "NAME.csv", row.names = FALSE, quote = FALSE, na = "")'


def digest(path: Path) -> str:
    """Return a hash of the names and values of a CSV file; 1, 1.0 and 1.00 are the same."""
    found = hashlib.sha256()
    for name, column in zip((table := read_csv(path)).column_names, table.columns, strict=True):
        values = column.to_pylist()
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            values = [None if value is None else float(value) + 0.0 for value in values]
        found.update(repr((name, values)).encode())
    return found.hexdigest()


def fault(name: str, folder: Path = FOLDER) -> str | None:
    """Return what is wrong with a data set in a folder; None if it is the right one."""
    path = folder / f"{name}.csv"
    if not path.is_file():
        return "missing"
    if digest(path) == REFERENCES[name].digest:
        return None
    return "other names or values than expected: published figures will differ"


def main() -> None:
    """Say where each data set comes from and whether it is here."""
    faults = {name: fault(name) for name in REFERENCES}
    for name, reference in REFERENCES.items():
        print(f"{name}.csv, {reference.records:,} records: {faults[name] or 'here, as expected'}")
        print(f"    {reference.origin}")
    if any(faults.values()):
        print(f"Put the files into {FOLDER}, or name their folder in MICROAGG_DATA. {_HOW}.")
        sys.exit(1)


if __name__ == "__main__":
    main()
