"""Pages that show files of the repository: the examples, and the best partitions known."""

from __future__ import annotations

from pathlib import Path

__all__ = ["best_page", "examples_page"]

ROOT = Path(__file__).parents[1]


def examples_page() -> str:
    """Every example: its plan, and how to run it."""
    parts = [
        "# Examples",
        "Plans of real tables, with a comment on each line. `python examples/run.py NAME` in a checkout "
        "writes the table, protects it by its plan and leaves the report beside it; the tests run all "
        "of them and count what is promised by other means.",
    ]
    for plan in sorted((ROOT / "examples").glob("*/plan.toml")):
        text = plan.read_text(encoding="utf-8")
        title = text.splitlines()[0].lstrip("# ").rstrip(".")
        parts += [f"## {plan.parent.name}: {title}", f"```toml\n{text}```"]
    return "\n\n".join(parts) + "\n"


def best_page() -> str:
    """The files with the labels of the best partitions known, to be taken along."""
    files = sorted((ROOT / "docs" / "best").glob("*.txt"))
    lines = [
        "# The best partitions known",
        "",
        "One file for each reference table and *k*: a label for each record, with SSE and proved bound in "
        "its first lines. [How near the optimum](../optimality.md) says how they were found.",
        "",
        *(f"- [{path.stem.replace('_', ', k = ')}]({path.name})" for path in files),
    ]
    return "\n".join(lines) + "\n"
