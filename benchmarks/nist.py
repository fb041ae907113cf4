"""NIST's scoreboard: its census excerpt of Massachusetts, protected, and scored by its own measure.

NIST compares programs that de-identify on this table of 7,634 records (Collaborative Research Cycle). All
21 columns are protected in one block: the industry code in detail (INDP) and the weights are left out.
Scores are SDNist's k-marginal: ages and incomes in twenty bins of equal rank, density in its logarithmic
bins; then, for each pair of columns other than PUMA, 1,000·(1 − ½·Σ|share after − share before|) over the
cells of their table, and the mean over all pairs. Within PUMA the tables are of PUMA and two other columns.
A unique exact match is a released record that equals an original one which nobody else shares. The results
go to docs/nist.md.

``--sdnist=PYTHON`` names a Python that has the package sdnist; its scores are then printed beside ours.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import microagg
from benchmarks.harness import show
from benchmarks.reference import FOLDER

SIZES = {"mean": (6, 12, 25), "swap": (6, 12, 25, 50, 100)}
STANDING = 0.0006  # largest share of rows that are expected to equal a record
_DOCS = Path(__file__).parent.parent / "docs" / "nist.md"
_LEFT_OUT = ["INDP", "PWGTP", "WGTP"]
_NUMBERS = ("AGEP", "PINCP", "POVPIP")
_CAPPED = {"POVPIP": 501}  # a code: 501 and more
_NOT_APPLICABLE = "N"
# NIST's own sample reports; other states and often fewer columns, so for orientation only.
_SAMPLE_REPORTS = (
    ("AIM, ε = 1, demographic columns", 976),
    ("MST, ε = 1, demographic columns", 958),
    ("synthpop's CART, 21 columns", 923),
    ("histograms, ε = 10", 912),
    ("sdcMicro, k = 6, demographic columns", 907),
    ("PATE-CTGAN, ε = 10", 805),
    ("adversarial random forests, all columns", 691),
    ("Fast ML", 638),
)
# Their bins and their score; the package imports itself in a circle unless its bins come first.
_SDNIST = """
import json, sys
import pandas as pd
from sdnist.report.dataset import binning
from sdnist.metrics.kmarginal import KMarginal
numbers = sys.argv[4:]
words = json.load(open(sys.argv[3]))
tables = [pd.read_csv(path, dtype=str, keep_default_na=False) for path in sys.argv[1:3]]
before, after = (
    binning.bin_density(table.assign(DENSITY=table["DENSITY"].astype(float)), words) for table in tables
)
target = binning.add_bin_for_NA(binning.percentile_rank_target(before, numbers), before, numbers)
other = binning.percentile_rank_synthetic(after, before, target, numbers)
other = binning.add_bin_for_NA(other, after, numbers)
both = target.astype(str), other.astype(str)
print(KMarginal(*both).compute_score(), KMarginal(*both, ["PUMA"]).compute_score())
"""


class Score(NamedTuple):
    """What NIST's measures give for one table."""

    name: str
    pairs: float
    within_puma: float
    unique_exact: int
    """Released combinations that equal an original record which is alone with its values."""
    information_loss: float | None = None


def main() -> None:
    given = dict(
        word[2:].split("=", 1) for word in sys.argv if word.startswith("--") and "=" in word
    )
    original = excerpt(FOLDER)
    binned, bins = binned_target(original)
    uniques = _uniques(original)
    print(
        f"{len(original):,} records, {original.shape[1]} columns, {len(uniques):,} of them unique"
    )

    def score(name: str, released: pd.DataFrame, loss: float | None = None) -> Score:
        after = binned_like(released, bins)
        found = Score(
            name,
            k_marginal(binned, after),
            k_marginal(binned, after, within="PUMA"),
            len(uniques & set(released.itertuples(index=False, name=None))),
            loss,
        )
        theirs = sdnist_score(given["sdnist"], original, released) if "sdnist" in given else ""
        print(f"{name}: {found.pairs:.1f} ({found.within_puma:.1f}) {theirs}", flush=True)
        return found

    again = original.sample(frac=1, replace=True, random_state=0)
    scores = [score("the originals", original), score("another sample of the same size", again)]
    for release, k in ((release, k) for release, sizes in SIZES.items() for k in sizes):
        data, loss = protected(original, k, release)
        scores.append(score(f"{_WORDS[release]}, k = {k}", data, loss))
    for k in SIZES["swap"][:3]:
        data, loss = protected(original, k, "swap", standing=STANDING)
        scores.append(score(f"{_WORDS['swap']}, k = {k}, standing = {STANDING:g}", data, loss))
    show("NIST's excerpt of Massachusetts", _HEADER, [_row(one) for one in scores])
    _DOCS.write_text(page(original, uniques, scores), encoding="utf-8")


_WORDS = {"mean": "means and modes", "swap": "swapping"}


def excerpt(folder: Path) -> pd.DataFrame:
    """Read the 21 columns as text, as NIST writes them."""
    found = pd.read_csv(folder / "ma2019.csv", dtype=str, keep_default_na=False)
    found = found.drop(columns=_LEFT_OUT)
    found["PINCP"] = [text.removesuffix(".0") for text in found["PINCP"]]
    return found


def protected(
    original: pd.DataFrame, k: int, release: str, **more: float
) -> tuple[pd.DataFrame, float]:
    """Protect all columns in one block; return the released table as text, and the loss in percent."""
    frame = original.copy()
    for name in _NUMBERS:
        frame[name] = pd.to_numeric(frame[name].replace(_NOT_APPLICABLE, None)).astype("Int64")
    ordered = {
        name: [_NOT_APPLICABLE, *sorted(set(frame[name]) - {_NOT_APPLICABLE}, key=int)]
        for name in ("EDU", "PINCP_DECILE")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = microagg.protect(
            frame,
            k=k,
            columns=list(frame.columns),
            kinds=dict.fromkeys(_NUMBERS, "integer")
            | {name: "nominal" for name in frame.columns if name not in _NUMBERS}
            | ordered,
            missing={"policy": "majority"},
            round=True,
            release=release,
            **more,
        )
    data = found.data.copy()
    for name in _NUMBERS:
        values = [_NOT_APPLICABLE if pd.isna(v) else str(int(v)) for v in data[name]]
        data[name] = values
    return data.astype(str), found.utility.information_loss


def binned_target(original: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Return the originals in NIST's bins, and the largest number of each bin."""
    bins = {}
    for name in _NUMBERS:
        numbers = original.loc[original[name] != _NOT_APPLICABLE, name].astype(int)
        common = numbers[numbers != _CAPPED.get(name)]
        place = np.minimum(20 * common.rank(pct=True), 19).astype(int)
        largest = common.groupby(place).max().to_numpy()
        capped = [_CAPPED[name]] if name in _CAPPED else []
        bins[name] = np.array([*largest, *capped])
    return binned_like(original, bins), bins


def binned_like(frame: pd.DataFrame, bins: dict[str, np.ndarray]) -> pd.DataFrame:
    """Return a table in the bins of the originals."""
    found = frame.copy()
    for name, largest in bins.items():
        there = frame[name] != _NOT_APPLICABLE
        place = np.searchsorted(largest, frame.loc[there, name].astype(int))
        found[name] = -1
        found.loc[there, name] = np.minimum(place, len(largest) - 1)
    dictionary = json.loads((FOLDER / "ma2019_dictionary.json").read_text())
    top = dictionary["DENSITY"]["values"]["max"] + 500
    edges = [0, 150, *np.logspace(1, np.log10(top), 21)[8:]]
    found["DENSITY"] = np.searchsorted(edges, frame["DENSITY"].astype(float))
    return found


def k_marginal(before: pd.DataFrame, after: pd.DataFrame, within: str | None = None) -> float:
    """Score tables of two columns, of 1,000; with ``within`` those of these two and that one.

    >>> before = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 0, 0]})
    >>> k_marginal(before, before.assign(a=[0, 1, 1, 1]))
    750.0
    """
    codes = {}
    for name in before.columns:
        every = pd.factorize(pd.concat([before[name], after[name]]))[0].astype(np.int64)
        codes[name] = (every[: len(before)], every[len(before) :], int(every.max()) + 1)
    columns = sorted(name for name in before.columns if name != "PUMA")
    moved = []
    for chosen in itertools.combinations(columns, 2):
        keys = [np.zeros(len(before), np.int64), np.zeros(len(after), np.int64)]
        size = 1
        for name in chosen if within is None else (within, *chosen):
            width = codes[name][2]
            keys = [key * width + codes[name][side] for side, key in enumerate(keys)]
            size *= width
        shares = [np.bincount(key, minlength=size) / len(key) for key in keys]
        moved.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(1_000 * (1 - np.mean(moved)))


def _uniques(original: pd.DataFrame) -> set[tuple[str, ...]]:
    alone = original[~original.duplicated(keep=False)]
    return set(alone.itertuples(index=False, name=None))


def sdnist_score(python: str, before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Return what the package sdnist says about two tables."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("before.csv", "after.csv")]
        for path, frame in zip(paths, (before, after), strict=True):
            frame.to_csv(path, index=False)
        dictionary = FOLDER / "ma2019_dictionary.json"
        command = [python, "-c", _SDNIST, *map(str, paths), str(dictionary), *_NUMBERS]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return f"sdnist: {done.stdout.splitlines()[-1]}"


_HEADER = ("release", "pairs", "within PUMA", "unique exact matches", "loss %")


def _row(one: Score) -> tuple[str, ...]:
    loss = "" if one.information_loss is None else f"{one.information_loss:.1f}"
    return one.name, f"{one.pairs:.0f}", f"{one.within_puma:.0f}", str(one.unique_exact), loss


def page(original: pd.DataFrame, uniques: set[tuple[str, ...]], scores: list[Score]) -> str:
    """Return the page of the docs."""
    rows = [f"| {' | '.join(_row(one))} |" for one in scores]
    theirs = [f"| {name} | {score} |" for name, score in _SAMPLE_REPORTS]
    size = f"{len(original):,} records, {original.shape[1]} columns"
    return f"""# NIST's scoreboard

NIST compares programs that de-identify on excerpts of the American Community Survey 2019 (Diverse
Communities Data Excerpts). Here is its excerpt of Massachusetts: {size}, all of them protected in one
block; the industry code in detail and the weights are left out. {len(uniques):,} records are unique.

The score is SDNist's k-marginal: 1,000·(1 − ½·Σ|share after − share before|), mean over the tables of all
pairs of columns, with ages and incomes in twenty bins of equal rank. 1,000 is the original itself. Within
PUMA, the tables are of an area and two more columns. A unique exact match is a released record that equals
an original one with which nobody else shares its values, as SDNist counts it.

| {" | ".join(_HEADER)} |
|---|---|---|---|---|
{chr(10).join(rows)}

Another sample of the same size is a bootstrap of the originals, without any protection: the score that
sampling alone would cost.

## Records that stand by chance

A swapped row is nobody's, but it can equal somebody's record: groups that agree in nearly all columns deal
rows that are true. By a simulation from the groups' lists, 50 of about 600 groups, children without an
income in the highest class of their family's, make about four fifths of the matches with *k* = 12. A larger
*k* for everybody costs more than it gains,
and so do values that 50 units share instead of 12 (1.3 % of the records, pairs 980) or 200 (.8 %, 927), and
groups that hardly look at 14 of the 21 columns (1.6 %, 984). `standing` merges such groups alone, by a rule
that sees their lists of values and nothing of who has which ([swapping](swapping.md)). .1 % is 7 records.
0.0006 was chosen on this table, of four values that were tried with *k* = 12: 0.001 keeps pairs at 978 with
5 to 10 matches in five dealings, 0.0006 at 975 with 1 to 7 in four. Another table asks for another value.

Dealing again where a row equals a true record would break the theorem (all dealings are equally likely): a
combination that should be there and is not would then be somebody's. So no dealing is refused.

## Beside NIST's sample reports

These are figures of reports that NIST published about other programs. They are about other states, often
about fewer columns, and so for orientation only: fewer columns and larger tables score higher.

| program | pairs |
|---|---|
{chr(10).join(theirs)}

`python -m benchmarks nist` measures the first table anew and writes this page. With `--sdnist=PYTHON`, a
Python that has the package `sdnist`, it prints the scores of that package beside ours; with sdnist 2.4 they
are the same.
"""


if __name__ == "__main__":
    main()
