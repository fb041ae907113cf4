"""The formats of files, one class each."""

from __future__ import annotations

from microagg.formats.arrow import Arrow, Parquet
from microagg.formats.csv import Csv
from microagg.formats.excel import Excel
from microagg.formats.fixed import Fixed
from microagg.formats.format import FileFormat, Format, Reading
from microagg.formats.sas import Sas
from microagg.formats.spss import Spss
from microagg.formats.stata import Stata

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
"""By the name that :mod:`microagg.formats.endings` gives for an ending."""
