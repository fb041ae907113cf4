"""In files with swapped values, every value of a column stands for k units of its stratum: counted by pandas.

Tables and plans are drawn by seed. Nothing of the package counts here; only for units does it say whose value
a row got, since no file tells it.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg.errors import InputError
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan


def drawn_table(rng: np.random.Generator) -> pd.DataFrame:
    """A table with spikes, outliers, missing values, rare categories and households of several people."""
    n = int(rng.integers(90, 320))
    income = np.where(rng.random(n) < 0.3, 0.0, np.exp(rng.normal(8, 1.2, n)).round(2))
    net, tax = rng.normal(2_000, 500, n).round(2), rng.normal(500, 90, n).round(2)
    days = pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    table = pd.DataFrame(
        {
            "household": rng.integers(0, n // 2, n),
            "region": rng.choice(["north", "south"], n, p=[0.7, 0.3]),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 80, n),
            "income": income,
            "rent": np.where(rng.random(n) < 0.1, np.nan, rng.normal(500, 80, n)),
            "job": rng.choice(["clerk", "farmer", "mayor", None], n, p=[0.5, 0.4, 0.03, 0.07]),
            "moved": pd.Series(pd.Timestamp("2020-01-01") + days).astype("datetime64[us]"),
            "net": net,
            "tax": tax,
            "gross": net + tax,
            "weight": rng.uniform(1, 3, n).round(2),
        }
    )
    table.loc[rng.integers(n), "income"] = 9e6
    return table


def drawn_settings(rng: np.random.Generator) -> dict[str, Any]:
    """A plan for such a table, as keywords."""
    columns = [*rng.permutation(["age", "income", "rent", "job", "moved"])[: rng.integers(2, 6)]]
    settings: dict[str, Any] = {
        "k": int(rng.integers(2, 8)),
        "release": "swap",
        "effort": "fast",
        "missing": {"policy": str(rng.choice(["pattern", "majority", "fill"])), "most": 0.3},
        "strata": [str(name) for name in rng.permutation(["region", "sex"])[: rng.integers(0, 3)]],
    }
    if rng.random() < 0.25:
        columns += ["net", "tax", "gross"]
        settings["relations"] = ["gross = net + tax"]
        settings["missing"] = "pattern"  # others would give rows values that break the relation
    elif rng.random() < 0.25 and {"age", "income"} < set(columns):
        settings["together"] = [["age", "income"]]
    if rng.random() < 0.3:
        settings["weight"] = "weight"
    elif rng.random() < 0.2 and "income" in columns and "together" not in settings:
        settings["require"] = {"p_percent": {"income": 10}}
    settings["columns"] = [str(name) for name in columns]
    return settings


def too_rare(
    file: pd.DataFrame, settings: dict[str, Any], holders: dict[str, np.ndarray] | None
) -> list[tuple[Any, ...]]:
    """List values, or tuples, that fewer than k rows of a stratum have; of units, whose those values were."""
    bundles = [*settings.get("together", [])]
    bundles += [["net", "tax", "gross"]] if "relations" in settings else []
    bound = {name for bundle in bundles for name in bundle}
    alone = [[name] for name in settings["columns"] if name not in bound]
    weight = [["weight"]] if "weight" in settings else []
    rare = []
    for names in [*bundles, *alone, *weight]:
        text = file[[*names, *settings["strata"]]].astype(str)
        rows = list(map(tuple, text.to_numpy().tolist()))
        if holders is None:
            counts = Counter(rows)
        else:
            units = {(row, unit) for row, unit in zip(rows, holders[names[0]], strict=True)}
            counts = Counter(row for row, _ in units)
        rare += [row for row, often in counts.items() if often < settings["k"]]
    return rare


def written(folder: Path, engine: str, seed: int) -> list[tuple[Any, ...]] | None:
    """Release a drawn table by a drawn plan; list values that are too rare in the file; None: refused."""
    rng = np.random.default_rng(seed)
    table, settings = drawn_table(rng), drawn_settings(rng)
    ending = "csv" if engine == "memory" and rng.random() < 0.5 else "parquet"
    kept = [*settings["columns"], *settings["strata"], settings.get("weight")]
    settings["drop"] = [name for name in table if name not in kept]
    source, target = folder / "in.parquet", folder / f"out.{ending}"
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    try:
        if engine == "memory" and rng.random() < 0.4:
            release = microagg.protect(table, unit="household", **settings)
            release.write(target)
            (dealt,), order = release.released_table.dealt, release.released_table.order
            household = table["household"].to_numpy()
            whose = zip(dealt.names, dealt.donors, strict=True)
            holders = {name: household[donors][order] for name, donors in whose}
            return too_rare(read(target), settings, holders)
        table.to_parquet(source, index=False)
        run(Job(source, target, Plan.of(**settings), engine=engine))
    except InputError:
        return None
    return too_rare(read(target), settings, None)


@pytest.mark.filterwarnings("ignore::microagg.errors.DisclosureRiskWarning")
@pytest.mark.parametrize(
    ("engine", "seeds"),
    [
        ("memory", range(20)),
        ("disk", range(1_000, 1_006)),
        pytest.param("memory", range(20, 480), marks=pytest.mark.long),
        pytest.param("disk", range(1_006, 1_070), marks=pytest.mark.long),
        pytest.param("spark", range(2_000, 2_008), marks=pytest.mark.long),
    ],
    indirect=["engine"],
)
@pytest.mark.usefixtures("_small_parts")
def test_no_value_is_shared_by_fewer_than_k(engine, seeds, tmp_path):
    counted = 0
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        rare = written(folder, engine, seed)
        assert not rare, (seed, rare[:3])
        counted += rare is not None
    print(f"{engine}: {counted} of {len(seeds)} plans were written and counted")
    assert counted >= 0.8 * len(seeds)
