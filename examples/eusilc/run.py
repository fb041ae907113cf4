"""Protect a household survey with weights, regions and spiked incomes.

Run it from anywhere: python examples/eusilc/run.py [FOLDER]. It needs the reference data
(`MICROAGG_DATA`, else ../shared/data beside the repository).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def write_table(folder: Path) -> Path:
    """Copy the reference file from the folder named by MICROAGG_DATA."""
    data = os.environ.get("MICROAGG_DATA", HERE.parents[2] / "shared" / "data")
    return Path(shutil.copyfile(Path(data) / "eusilc.csv", folder / "eusilc.csv"))


def main(folder: Path, *flags: str) -> int:
    """Write the table and run the command on it; more flags go to the command."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "microagg", "protect"]
    files = [str(write_table(folder)), str(folder / "eusilc-protected.csv")]
    evidence = ["--plan", str(HERE / "plan.toml"), "--report", str(folder / "report.html")]
    return subprocess.run([*command, *files, *evidence, *flags], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "microagg-eusilc")))
