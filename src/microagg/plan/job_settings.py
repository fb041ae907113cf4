"""The settings of a job that are no part of its plan: how files are read, reports, engine, what is released.

As for the plan, a setting is one row, from which its flag is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microagg.errors import InputError, shown
from microagg.plan.forms import FILE, WORD
from microagg.plan.settings import bytes_of
from microagg.plan.settings_table import Section, setting

_BYTES = WORD._replace(read=lambda _, word: bytes_of("memory", word))

# What Spark itself takes; it would answer anything else by the end of Java, after seconds.
_MASTERS = re.compile(r"local(\[(\d+|\*)(, *\d+)?\]|-cluster\[[\d, ]+\])?|yarn|(spark|k8s)://.+")


def _master(what: str, value: Any) -> str:
    if not isinstance(value, str) or _MASTERS.fullmatch(value) is None:
        raise InputError(
            f"{what} is where Spark runs: local, local[2], local[*], spark://host:7077, k8s://… or yarn; got "
            f"{shown(value)}."
        )
    return value


@dataclass(frozen=True, kw_only=True)
class JobSettings(Section):
    """What to do with a table in addition to what the plan says."""

    flags = "--"

    report: Path | None = setting(
        None, help="Write the evidence as an HTML page, and a JSON file of the same name."
    )
    public: bool = setting(
        False, help="Write the report for readers of OUT: it tells no more than OUT and the plan."
    )
    strict: bool = setting(
        False,
        help="Release OUT only if the verdict is green; otherwise exit with 1. A release that misses a limit "
        "of the plan, such as --max-loss, is always rejected.",
    )
    keep_rejected: Path | None = setting(
        None, form=FILE._replace(metavar="PATH"), help="Keep a rejected OUT under another name."
    )
    overwrite: bool = setting(
        True,
        flag="--overwrite/--no-overwrite",
        help="Replace OUT if it exists, be it a file or a folder of Parquet files (the default), or refuse.",
    )
    prices: bool = setting(
        False,
        help="Show in the report what other decisions about each column would cost; about 20 seconds.",
    )
    sheet: str | None = setting(
        None, flag="--sheet", help="Excel: name of the sheet; the first if left out."
    )
    engine: str | None = setting(
        None,
        help="memory; disk: in parts, for Parquet and CSV files larger than memory; spark: on a cluster. If "
        "left out, memory where the table fits, else disk.",
    )
    memory: int | None = setting(
        None,
        form=_BYTES,
        help="What the job may take in memory, such as 2GiB: a table that needs more is worked on in parts. "
        "A share of what is free if left out.",
    )
    master: str | None = setting(
        None,
        check=_master,
        help="Spark: where it runs, such as local[2] or spark://host:7077; the session there is, or what is "
        "configured, if left out.",
    )
    ledger: Path | None = setting(
        None,
        label="Ledger",
        hint="A private file that remembers who is in which group, so that later files of the same people "
        "use these groups too. Its key is made next to it. Once begun, choose it for every release.",
        help="Remember groups in this private file, so that later releases of the same people use them too; "
        "its key is made next to it. Once begun, give it for every release.",
    )
    key: str | None = setting(
        None,
        form=WORD._replace(metavar="COLUMN"),
        label="Column that tells people apart",
        hint="One record for each of its values; the plan drops or renumbers it.",
        help="With a ledger: column that tells people apart, if there is no --unit.",
    )
    leavers: str = setting(
        "withhold",
        choices={
            "withhold": "groups that some left are withheld",
            "accept": "they are released by those who stayed, which is amber",
        },
        label="If members left a group",
        help="With a ledger: what becomes of groups that some of their members left. withhold (if left out), "
        "or accept: whoever stayed is released, which is amber.",
    )
    escape_formulas: bool = setting(
        False,
        help="CSV: put an apostrophe in front of texts that a spreadsheet program would run as formulas.",
    )


@dataclass(frozen=True)
class CsvSettings(Section):
    """How a CSV file is written; what is left out is found out from the file."""

    flags = "--"

    delimiter: str | None = setting(
        None, help="CSV: field separator; found out from the header line if left out."
    )
    encoding: str | None = setting(
        None, flag="--encoding", help="CSV: text encoding, such as latin-1; utf-8 if left out."
    )
    decimal: str = setting(".", flag="--decimal", help="CSV: decimal sign, . (if left out) or ,")
