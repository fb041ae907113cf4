"""Tasks for the worker and its messages: plain data that pass between the two processes.

Both load this module; it imports nothing heavy, so that the server stays small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microagg.plan.plan import Plan

STOP = "stop"  # sent in place of a task: end the search and keep what there is
TITLES = {
    "read": "reading the table",
    "price": "estimating loss and risk",
    "claim": "pricing the claim",
    "search": "searching for a plan",
    "compare": "trying methods and k",
    "protect": "protecting the table",
    "scatter": "reading two columns",
}


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
class Task:
    """Something for the worker to do with a table and a plan."""

    kind: str
    """A key of ``TITLES``, and the function of :mod:`microagg.page.worker` that does it."""
    opened: Opened
    plan: Plan
    settings: Mapping[str, Any]
    """Further arguments of that function."""

    @property
    def title(self) -> str:
        """What is being done, in words."""
        return TITLES[self.kind]


Message = tuple[str, Mapping[str, Any]]
"""A message of the worker, and its data: "progress", "done", "refused" (in the words of an error of microagg)
or "failed" (in words without values of records)."""
