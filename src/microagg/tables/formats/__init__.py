"""The formats of files, one class each."""

from __future__ import annotations

from microagg.tables.formats.arrow_files import Arrow, Parquet
from microagg.tables.formats.base import FileFormat, Format, Reading
from microagg.tables.formats.csv_files import Csv
from microagg.tables.formats.excel_files import Excel
from microagg.tables.formats.fixed_files import Fixed
from microagg.tables.formats.sas_files import Sas
from microagg.tables.formats.spss_files import Spss
from microagg.tables.formats.stata_files import Stata

__all__ = ["FORMATS", "FileFormat", "Format", "Reading"]

_EVERY: tuple[Format, ...] = (
    Csv(),
    Parquet(),
    Arrow(),
    Spss(),
    Stata(),
    Sas(),
    Excel(),
    Fixed(),
)

FORMATS = {one.name: one for one in _EVERY}
"""By the name that :mod:`microagg.tables.endings` gives for an ending."""
