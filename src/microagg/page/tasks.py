"""Tasks for the worker and its messages: plain data that pass between the two processes.

Both load this module; it imports nothing heavy, so that the server stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microagg.plan.plan import Plan

STOP = "stop"  # sent in place of a task: end the search and keep what there is


@dataclass(frozen=True)
class Opened:
    """A file that the user opened, and how to read it."""

    path: Path
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    sheet: str | None = None
    uploaded: bool = False

    @classmethod
    def by(cls, path: Path, form: Mapping[str, str]) -> Opened:
        """Return how a form says to read a file."""
        return cls(
            path,
            delimiter=form.get("delimiter") or None,
            encoding=form.get("encoding") or None,
            decimal=form.get("decimal", "."),
            sheet=form.get("sheet") or None,
        )


@dataclass(frozen=True)
class ReadTask:
    """Read a file, describe its columns and draft a plan."""

    opened: Opened
    title = "reading the table"


@dataclass(frozen=True)
class PriceTask:
    """Estimate on a sample what the plan gives, and what other decisions about columns would give."""

    opened: Opened
    plan: Plan
    columns: tuple[str, ...] | None = ()
    """Columns with decisions to price; None: all."""
    title = "estimating loss and risk"


@dataclass(frozen=True)
class ClaimTask:
    """Estimate what the claim wins and stakes that nobody outside knows some columns."""

    opened: Opened
    plan: Plan
    answers: tuple[str, ...]
    title = "pricing the claim"


@dataclass(frozen=True)
class SearchTask:
    """Search the plan that keeps most within a largest loss or linkage."""

    opened: Opened
    plan: Plan
    max_loss: float | None
    max_linkage: float | None
    keep: tuple[str, ...] = ()
    """Columns that the search neither drops nor makes coarser."""
    title = "searching for a plan"


@dataclass(frozen=True)
class CompareTask:
    """Carry out a plan with several methods and k, without writing anything."""

    opened: Opened
    plan: Plan
    methods: Sequence[str]
    sizes: Sequence[int]
    max_loss: float | None = None
    max_linkage: float | None = None
    attack: bool = False
    """Whether each choice is attacked with people put aside as controls."""
    title = "trying methods and k"


@dataclass(frozen=True)
class ProtectTask:
    """Write a release with its reports into a folder of its own."""

    opened: Opened
    plan: Plan
    folder: Path
    target: str
    """Name of the file within the folder."""
    prices: bool = False
    """Whether the board's report says what other decisions would cost."""
    ledger: Path | None = None
    key: str | None = None
    """Column that tells people apart, where the plan has no unit."""
    leavers: str = "withhold"
    earlier: tuple[Path, ...] = ()
    """Folders of the releases before it."""
    title = "protecting the table"


@dataclass(frozen=True)
class ScatterTask:
    """Read some records of two columns, before and after."""

    opened: Opened
    plan: Plan
    released: Path
    number: int
    """Of the release."""
    x: str
    y: str
    title = "reading two columns"


Task = ReadTask | PriceTask | ClaimTask | SearchTask | CompareTask | ProtectTask | ScatterTask


@dataclass(frozen=True)
class Message:
    """A message of the worker."""

    kind: str
    """"progress", "done", "refused" (in the words of an error of microagg) or "failed" (in words without
    values of records)."""
    data: Mapping[str, Any] = field(default_factory=dict)
