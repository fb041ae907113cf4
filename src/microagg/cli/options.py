"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microagg.formats.addresses import as_place

if TYPE_CHECKING:
    from microagg.formats.layouts import CsvFormat

In = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        parser=as_place,
        help="File whose ending gives its format: CSV .csv .tsv .txt, also compressed: .csv.gz .csv.zst. "
        "Parquet .parquet, also a folder, or a pattern in quotes. Arrow .arrow .feather, SPSS .sav .zsav "
        ".por, Stata .dta, SAS .xpt .sas7bdat, Excel .xlsx .xls .ods. Fixed width .dat .asc with a "
        "µ-ARGUS description .rda of the same name. Also an address (s3:// gs:// abfss:// hdfs://), or - "
        "for CSV or Arrow from standard input.",
    ),
]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        parser=as_place,
        help="File to write; its ending tells the format. Written are all of these but .por, .sas7bdat, "
        ".xls and .ods; a folder, if IN is one; - for standard output.",
    ),
]
Sheet = Annotated[
    str | None, typer.Option("--sheet", help="Excel: name of the sheet; the first if left out.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="COLUMNS",
        help="Columns to work on, separated by commas (names with commas in double quotes).",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="CSV: field separator; found out from the header line if left out."),
]
Encoding = Annotated[
    str | None, typer.Option(help="CSV: text encoding, such as latin-1; utf-8 if left out.")
]
Decimal = Annotated[str, typer.Option(help="CSV: decimal sign, . or ,")]
Confidential = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Confidential columns: reported with l-diversity and t-closeness.",
    ),
]
Dominance = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Magnitudes, such as sales: no record may hold most of its group's total (the (1, p) rule).",
    ),
]
DominancePercent = Annotated[
    float, typer.Option(metavar="P", help="The p of the (1, p) rule: largest share of one record.")
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write the evidence as an HTML page, and a JSON file of the same name."
    ),
]
Public = Annotated[
    bool,
    typer.Option(
        "--public",
        metavar="",
        help="Write the report for readers of OUT: it tells no more than OUT and the plan.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="memory; disk: in parts, for Parquet and CSV files larger than memory; spark: on a cluster. If "
        "left out, memory where the table fits, else disk.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="What the job may take in memory, such as 2GiB: a table that needs more is worked on in parts. "
        "A share of what is free if left out.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option("--master", help="Spark: where it runs, such as local[2] or spark://host:7077."),
]
Json = Annotated[
    bool, typer.Option("--json", metavar="", help="Give everything as one JSON object on stdout.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", help="Say nothing but errors and warnings about disclosure."
    ),
]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", metavar="", help="Say also why each column has its role, and every note."
    ),
]


def csv_format(delimiter: str | None, encoding: str | None, decimal: str) -> CsvFormat:
    """Return the format that the options for CSV files tell."""
    from microagg.formats.layouts import CsvFormat

    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    return CsvFormat(delimiter, encoding, decimal)
