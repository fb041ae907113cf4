"""A tutorial as a Jupyter notebook: the same text and code, in cells.

A line of the command becomes ``!microagg …`` and a plan ``%%writefile plan.toml``, as notebooks run them.
"""

from __future__ import annotations

import json
from typing import Any

from website.execute import FENCED, Block, block_of

__all__ = ["notebook_of"]


def notebook_of(page: str) -> str:
    r"""Return the notebook, in format 4.5, of a page in Markdown.

    >>> cells = json.loads(notebook_of("# Title\n\n```python\n1 + 1\n```\n"))["cells"]
    >>> [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    [('markdown', '# Title'), ('code', '1 + 1')]
    """
    cells, at = [], 0
    for found in FENCED.finditer(page):
        cells.append(_cell("markdown", page[at : found.start()]))
        cells.append(_cell_of(block_of(found), found[0]))
        at = found.end()
    cells.append(_cell("markdown", page[at:]))
    kept = [cell for cell in cells if cell["source"]]
    for number, cell in enumerate(kept):
        cell["id"] = f"cell-{number}"
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": kept, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _cell_of(block: Block, written: str) -> dict[str, Any]:
    """Return the cell of a block; a block that no notebook runs stays text."""
    if block.language == "python":
        return _cell("code", block.text)
    if block.language == "sh":
        return _cell("code", "\n".join(f"!{line}" for line in _commands(block.text)))
    if block.language == "toml" and block.title:
        return _cell("code", f"%%writefile {block.title}\n{block.text}")
    return _cell("markdown", written)


def _commands(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def _cell(kind: str, text: str) -> dict[str, Any]:
    lines = text.strip("\n").splitlines(keepends=True)
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, **code, "source": lines}
