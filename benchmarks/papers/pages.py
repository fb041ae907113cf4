"""Markdown pages and plots in docs/papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.csv

from benchmarks.reference import FOLDER as REFERENCE_FOLDER
from microagg.base.typing import Floats

FOLDER = Path(__file__).parents[2] / "docs" / "papers"

mpl.use("svg")
# The same data give the same file, byte by byte.
mpl.rcParams.update({"svg.hashsalt": "microagg", "figure.figsize": (7, 4), "font.size": 10})


def reference(name: str) -> Floats:
    """Read a reference data set with the columns that the literature uses."""
    data = pyarrow.csv.read_csv(REFERENCE_FOLDER / f"{name}.csv")
    if name == "eia":
        data = data.drop_columns(["UTILNAME", "STATE", "YEAR", "MONTH"])
    return np.column_stack([column.to_numpy().astype(float) for column in data.columns])


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def write(name: str, text: str) -> None:
    """Write a page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.md"
    path.write_text(text)
    print(f"wrote docs/papers/{path.name}")


def save(figure: plt.Figure, name: str) -> str:
    """Save a plot and return the Markdown that shows it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.savefig(FOLDER / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return f"![{name.replace('_', ' ')}]({name}.svg)\n"
