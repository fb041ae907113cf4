"""The endings of files' names, which tell their formats; without any library that reads them."""

from __future__ import annotations

from pathlib import Path

from microagg.errors import TableError, shown

# Formats of statistical programs.
FAMILIES = {
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "spss",
    ".dta": "stata",
    ".xpt": "sas",
    ".sas7bdat": "sas",
}
KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    **FAMILIES,
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
ENDINGS = tuple(KINDS)
_READ_ONLY = {
    ".por": ".sav",
    ".sas7bdat": ".xpt",
    ".xlsm": ".xlsx",
    ".xlsb": ".xlsx",
    ".xls": ".xlsx",
    ".ods": ".xlsx",
}


def kind_by_ending(path: Path, writing: bool = False) -> str:
    """Tell the format of one file: csv, parquet, arrow, spss, stata, sas or excel.

    >>> kind_by_ending(Path("survey.SAV"))
    'spss'
    """
    ending = path.suffix.lower()
    if writing and ending in _READ_ONLY:
        raise TableError(
            f"Files ending in {ending} are read, not written; {shown(str(path), 300)} would be one. Write "
            f"{_READ_ONLY[ending]} instead."
        )
    try:
        return KINDS[ending]
    except KeyError:
        raise TableError(
            f"The ending of a file's name tells its format; {shown(str(path), 300)} has none that is "
            f"known. Use one of {' '.join(KINDS)}."
        ) from None
