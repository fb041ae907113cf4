"""The formats of files, one class each."""

from __future__ import annotations

from microagg.formats.csv import Csv
from microagg.formats.excel import Excel
from microagg.formats.format import Format
from microagg.formats.parquet import Arrow, Parquet
from microagg.formats.sas import Sas
from microagg.formats.spss import Spss
from microagg.formats.stata import Stata

__all__ = ["FORMATS", "Format"]

_CLASSES: tuple[type[Format], ...] = (Csv, Parquet, Arrow, Spss, Stata, Sas, Excel)

FORMATS = {kind.name: kind() for kind in _CLASSES}
"""By the name that :mod:`microagg.formats.addresses` gives for an ending."""
