"""Non-interference of public comparisons: they give ranges, which two similar originals share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from typer.testing import CliRunner

from microagg.cli.main import app


def compared(folder: Path, values: np.ndarray) -> tuple[bytes, bytes]:
    """The public page of a comparison and its numbers."""
    folder.mkdir(parents=True)
    table = pa.table({"pay": values[:, 0], "rent": values[:, 1]})
    pacsv.write_csv(table, folder / "in.csv")
    words = ["compare", folder / "in.csv", "-k", "3,5", "-m", "mdav,v-mdav", "-c", "pay,rent"]
    words += ["--report", folder / "r.html", "--public"]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return (folder / "r.html").read_bytes(), (folder / "r.json").read_bytes()


def numbers_in(found: object) -> list[float]:
    """All numbers that are no settings, in a tree of plain data."""
    if isinstance(found, dict):
        return [
            n
            for key, value in found.items()
            if key not in ("k", "records")
            for n in numbers_in(value)
        ]
    if isinstance(found, list):
        return [number for value in found for number in numbers_in(value)]
    return [float(found)] if isinstance(found, float) else []


def check(folder: Path, seeds: range) -> tuple[int, int]:
    """Compare twin originals that differ in one value a little; return the pairs, and those told apart."""
    apart = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        one = rng.lognormal(7, 0.5, (60, 2)).round(2)
        other = one.copy()
        other[rng.integers(60), rng.integers(2)] *= 1.0005
        pages = [compared(folder / f"{seed}{side}", X) for side, X in (("a", one), ("b", other))]
        assert numbers_in(json.loads(pages[0][1])) == []  # ranges, no figures
        if pages[0] != pages[1]:
            apart += 1
            # Then by the words of a range alone.
            models = [json.dumps(json.loads(page[1])) for page in pages]
            assert models[0] != models[1]
    return len(seeds), apart


def test_a_public_comparison_hides_a_small_change(tmp_path):
    pairs, apart = check(tmp_path, range(4))
    assert apart <= pairs // 2


@pytest.mark.long
def test_public_comparisons_of_two_hundred_pairs(tmp_path):
    pairs, apart = check(tmp_path, range(100, 300))
    print(f"{pairs} pairs, an edge of a range lay between {apart}")
    assert apart <= pairs // 10
