"""Tables that stand in several pages: measured figures, and tables of other pages.

``<!-- figures: NAME -->`` in a page is replaced by a table of docs/figures/methods.json, ``<!-- table: PAGE,
HEADING -->`` by the first table under that heading of another page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["FIGURES", "filled", "rows"]

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "figures" / "methods.json"
_FIGURES = re.compile(r"<!-- figures: ([\w ]+) -->")
_TABLE = re.compile(r"<!-- table: ([\w./-]+), ([^>]+) -->")


def filled(markdown: str) -> str:
    """Put the tables into a page."""
    markdown = _FIGURES.sub(lambda found: _measured(found[1]), markdown)
    return _TABLE.sub(lambda found: _elsewhere(found[1], found[2]), markdown)


def rows(table: list[list[object]]) -> str:
    """Write a Markdown table whose first row is its header."""
    lines = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def _measured(name: str) -> str:
    figures: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    if name == "every method":
        return _every_method(figures["several columns"])
    part = figures[name]
    return rows([list(part[0]), *([_number(cell) for cell in row.values()] for row in part)])


def _number(cell: object) -> str:
    return (
        f"{cell:,}"
        if isinstance(cell, int)
        else f"{cell:g}"
        if isinstance(cell, float)
        else str(cell)
    )


def _every_method(figures: dict[str, list[dict[str, Any]]]) -> str:
    header = ["method"]
    header += [f"{cell['table'].capitalize()} {cell['k']}" for cell in next(iter(figures.values()))]
    table: list[list[object]] = [[*header]]
    for method, cells in figures.items():
        table.append(
            [f"[{method}](methods/{method}.md)", *(f"{cell['loss']:.4g}" for cell in cells)]
        )
    return rows(table)


def _elsewhere(page: str, heading: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    after = text.split(f"# {heading.strip()}\n", 1)[1]
    found = re.search(r"(?:^\|.*\n)+", after, re.M)
    assert found, f"{page} has no table under {heading!r}"
    return found[0].rstrip()
