"""What the page asks its worker to do, and what it hears of it: plain data that cross between processes.

This module is loaded by both; it imports nothing heavy, so that the server stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microagg.plan.plan import Plan

__all__ = [
    "STOP",
    "Compare",
    "Look",
    "Opened",
    "Price",
    "Protect",
    "Scatter",
    "Search",
    "Task",
    "Told",
]


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


@dataclass(frozen=True)
class Look:
    """Read a file; tell of its columns and draft a plan."""

    opened: Opened
    title = "reading the table"


@dataclass(frozen=True)
class Price:
    """Estimate by a sample what a plan gives as it stands, and what other decisions about columns would."""

    opened: Opened
    plan: Plan
    columns: tuple[str, ...] | None = ()
    """Whose decisions are priced; None: those of all columns."""
    title = "estimating what the plan gives"


@dataclass(frozen=True)
class Search:
    """Search the plan that keeps most within a largest loss or linkage."""

    opened: Opened
    plan: Plan
    max_loss: float | None
    max_linkage: float | None
    keep: tuple[str, ...] = ()
    """Columns that are not dropped or made coarser."""
    title = "searching for a plan"


@dataclass(frozen=True)
class Compare:
    """Carry out a plan with several methods and k, without writing anything."""

    opened: Opened
    plan: Plan
    methods: Sequence[str]
    sizes: Sequence[int]
    max_loss: float | None = None
    max_linkage: float | None = None
    title = "trying methods and k"


@dataclass(frozen=True)
class Protect:
    """Write a release with its reports into a folder of its own."""

    opened: Opened
    plan: Plan
    folder: Path
    target: str
    """Name of the file within the folder."""
    prices: bool = False
    """Whether the board's report says what other decisions would cost."""
    title = "protecting the table"


@dataclass(frozen=True)
class Scatter:
    """Places of some records in two columns, before and after."""

    opened: Opened
    plan: Plan
    released: Path
    number: int
    """Of the release."""
    x: str
    y: str
    title = "drawing two columns"


Task = Look | Price | Search | Compare | Protect | Scatter


@dataclass(frozen=True)
class Told:
    """One message of the worker."""

    kind: str
    """"progress", "done", "refused" (in the words of an error of microagg) or "failed" (in words without
    values of records)."""
    data: Mapping[str, Any] = field(default_factory=dict)
