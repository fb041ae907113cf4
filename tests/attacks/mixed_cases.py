"""Small mixed tables and plans of every shape, drawn by seed, for the attacks on releases of them."""

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from microagg.plan.block import Block, Require
from microagg.plan.plan import Plan

LEVELS = ["lowlevel", "midlevel", "toplevel"]
HIERARCHY = ["KAN11", "KAN12", "KAN21", "KBN11", "KCN10"]
COLOURS = ["redcanary", "greencanary", "bluecanary", "greycanary"]
QUANTITIES = ("number", "integer", "spiked")
# Thresholds of dominance rules, which no figure has by chance.
SECRET_P, SECRET_K = 13.579135, 86.421357
METHODS = ["auto", "mdav", "v-mdav", "mst", "kmeans-merge", "pca"]


@dataclass(frozen=True)
class Mixed:
    """A table as pandas has it, the plan for it, and the ending of both files."""

    frame: pd.DataFrame
    plan: Plan
    ending: str
    codes: dict[str, list[Any]]
    """What stands for missing values, by column; None does everywhere."""

    def write(self, path: Path) -> None:
        """Write the original with pandas."""
        if self.ending == ".csv":
            self.frame.to_csv(path, index=False)
        else:
            self.frame.to_parquet(path, index=False)


def _values(rng: np.random.Generator, kind: str, n: int) -> list[Any]:
    """Values of a kind, which no message would hold by chance."""
    if kind == "number":
        return (7e6 + rng.lognormal(10, 1, n)).round(3).tolist()
    if kind == "integer":
        step = int(rng.choice([1, 1000]))
        return (rng.integers(0, 90, n) * step + 81_730_000).tolist()
    if kind == "boolean":
        return (rng.random(n) < 0.3).tolist()
    if kind == "nominal":
        return rng.choice(COLOURS, n, p=[0.6, 0.2, 0.15, 0.05]).tolist()
    if kind == "ordinal":
        return rng.choice(LEVELS, n).tolist()
    if kind == "date":
        days = rng.integers(0, 700, n)
        return [dt.datetime(1931, 1, 1) + dt.timedelta(days=int(day)) for day in days]
    if kind == "spiked":
        return np.where(rng.random(n) < 0.6, 0.0, 9e6 + rng.lognormal(8, 1, n).round(2)).tolist()
    return rng.choice(HIERARCHY, n).tolist()


def _column(rng: np.random.Generator, kind: str, n: int, gone: np.ndarray, codes: list[Any]) -> Any:
    values = _values(rng, kind, n)
    for row in np.flatnonzero(gone):
        values[row] = None if not codes or rng.random() < 0.4 else codes[0]
    column = pd.Series(values)
    if kind == "boolean":
        return column.astype("boolean")
    if kind in QUANTITIES:
        return column.astype("Int64" if kind == "integer" else "Float64")
    return column.astype("datetime64[s]") if kind == "date" else column


def draw_mixed(seed: int, times: int = 1) -> Mixed:
    """Draw a table with columns of every role, some times as long as usual, and a plan for it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 61)) * times
    kinds = [str(kind) for kind in rng.permutation([*QUANTITIES, *_OTHER])[: rng.integers(1, 5)]]
    share = float(rng.choice([0.0, 0.0, 0.1, 0.4]))
    columns: dict[str, Any] = {}
    codes: dict[str, list[Any]] = {}
    for kind in kinds:
        gone = rng.random(n) < (share if rng.random() < 0.7 else 0.0)
        if kind in ("number", "integer", "nominal") and rng.random() < 0.3:
            codes[kind] = ["refused"] if kind == "nominal" else [-8]
        columns[kind] = _column(rng, kind, n, gone, codes.get(kind, []))
    columns["region"] = rng.choice(["north", "south", "west"], n, p=[0.5, 0.45, 0.05])
    columns["wave"] = rng.choice([1, 2], n)
    if _chance(rng, 0.1):  # two texts in a CSV file, one number
        columns["wave"] = rng.choice(["1.5", "1.50"], n)
    columns["sex"] = rng.choice(["f", "m"], n) if rng.random() < 0.7 else np.repeat("f", n)
    columns["illness"] = rng.choice(["flu", "cold", "none"], n, p=[0.15, 0.15, 0.7])
    columns["turnover"] = rng.lognormal(3, 1, n).round(2)
    columns["w"] = rng.integers(1, 4, n) if rng.random() < 0.4 else rng.uniform(0.5, 9, n).round(2)
    units = pd.Series(rng.integers(0, max(n // 2, 4), n), dtype="Int64")
    if rng.random() < 0.2:
        units[rng.random(n) < 0.1] = pd.NA
    columns["household"] = units
    columns["name"] = [f"person {i}" for i in rng.permutation(n)]
    # Tells rows apart in a file in random order, and looks like a quantity: an id could not be confidential.
    columns["row"] = np.square(1 + np.arange(n)) * 1.25
    if "gross" not in columns and "number" in kinds and "number" not in codes:
        columns["double"] = columns["number"] * 2
    frame = pd.DataFrame(columns)
    plan, left = _plan(rng, kinds, codes, "double" in columns)
    ending = str(rng.choice([".csv", ".parquet"]))
    return Mixed(frame.drop(columns=left), plan, ending, codes)


def draw_for_engines(seed: int, times: int = 1) -> Mixed:
    """Draw a table and a plan that every engine can carry out; the file has the number of each row."""
    case = draw_mixed(seed, times)
    plan = case.plan.as_dict()
    if plan.get("round") == "totals":
        del plan["round"]
    for name in ("renumber", "keep_order", "relation"):
        plan.pop(name, None)
    plan["drop"] = sorted({*plan.get("drop", []), *case.plan.renumber} - {"row"})
    secret = [name for name in case.plan.confidential if name not in ("row",)]
    plan["confidential"] = [*secret, "row"]
    if "strata" in plan:
        plan["strata"]["small"] = "error"
    if "unit" in plan:
        plan["unit"] = {**plan["unit"], "mode": "count"}
    plan["block"] = plan["block"][:1]
    block = plan["block"][0]
    block["columns"] = [name for name in block["columns"] if name != "double"] or ["turnover"]
    if block["columns"] == ["turnover"]:
        plan["drop"] = [name for name in plan["drop"] if name != "turnover"]
        plan["confidential"] = [name for name in plan["confidential"] if name != "turnover"]
    for name in ("per_column", "aggregate", "unit", "strata"):
        block.pop(name, None)
    block.get("require", {}).pop("closeness", None)
    for setting in plan.get("columns", {}).values():
        setting.pop("round", None)
        setting.pop("transform", None)
        if setting.get("kind") == "spiked":
            setting.pop("release", None)
    plan["columns"] = {
        name: setting
        for name, setting in plan.get("columns", {}).items()
        if name in block["columns"] and setting
    }
    asked = {
        name
        for rule in block.get("require", {}).values()
        if isinstance(rule, dict)
        for name in rule
    }
    plan["drop"] = [name for name in plan["drop"] if name not in asked]
    plan["confidential"] = list(dict.fromkeys([*plan["confidential"], *sorted(asked)]))
    frame = case.frame.drop(columns=["double"], errors="ignore")
    others = [name for name in (*QUANTITIES, *_OTHER) if name not in block["columns"]]
    frame = frame.drop(columns=[name for name in others if name in frame])
    codes = {name: own for name, own in case.codes.items() if name in block["columns"]}
    plan["missing"] = {**plan.get("missing", {}), "codes": codes}
    return Mixed(frame, Plan.from_dict(plan), ".parquet", codes)


def draw_wide(seed: int, only_parquet: bool = False) -> Mixed:
    """Draw a case for every engine with a few hundred records, and settings that :func:`draw_mixed` has not.

    A column of dates may be text, and a column whose logarithm counts may have zeros.
    """
    case = draw_for_engines(seed, times=5)
    rng = np.random.default_rng([seed, 28])
    frame, plan = case.frame.copy(), case.plan.as_dict()
    block, columns = plan["block"][0], plan.setdefault("columns", {})
    protected, whole = block["columns"], case.plan.missing.policy != "drop"
    if "date" in protected and _chance(rng, 0.4):
        frame["date"] = frame["date"].dt.strftime("%Y-%m-%d")
        if _chance(rng, 0.6):
            columns.pop("date", None)
    for name in protected:
        own = columns.setdefault(name, {})
        if _chance(rng, 0.3):
            own["importance"] = float(rng.choice([0.5, 2.0, 4.0]))
        if name in (*QUANTITIES, "turnover") and _chance(rng, 0.3):
            own["transform"] = "log"
            if name in ("number", "turnover") and _chance(rng, 0.4):
                frame.loc[rng.random(len(frame)) < 0.1, name] = 0.0
        elif whole and _chance(rng, 0.25):
            _coarsened(rng, name, own)
    if "region" in frame and whole and _chance(rng, 0.2):
        columns["region"] = {"coarsen": {"rare": 40}}
    block["scale"] = str(rng.choice(["zscore", "zscore", "range", "robust", "none"]))
    block["k"] = int(rng.integers(2, 13))
    limits = {"loss": 60.0, "linkage": 0.2, "agreeing": 0.05}
    plan["accept"] = {name: limit for name, limit in limits.items() if _chance(rng, 0.25)}
    if "unit" in plan and _chance(rng, 0.5):
        plan["unit"]["name"] = "household"
    if "sex" in frame and "turnover" in case.plan.confidential and _chance(rng, 0.3):
        plan["analyses"] = ["turnover by sex", f"median({protected[0]})"][
            : 1 + (protected[0] in QUANTITIES)
        ]
    plan["columns"] = {name: own for name, own in columns.items() if own}
    ending = ".csv" if not only_parquet and _chance(rng, 0.3) else ".parquet"
    return Mixed(frame, Plan.from_dict(plan), ending, case.codes)


def _coarsened(rng: np.random.Generator, name: str, own: dict[str, Any]) -> None:
    """Recode a column as its kind allows."""
    ways: dict[str, list[dict[str, Any]]] = {
        "number": [{"round": 5000}, {"bands": 20_000}, {"top": 7_050_000}],
        "integer": [{"bands": 10_000}],
        "turnover": [{"round": 5}, {"bands": [10, 30]}],
        "nominal": [{"rare": 25}],
        "date": [{"to": "month"}, {"to": "year"}],
    }
    if name in ways and "levels" not in own:
        own["coarsen"] = ways[name][int(rng.integers(len(ways[name])))]


_OTHER = ("boolean", "nominal", "ordinal", "date", "hierarchy")


def _chance(rng: np.random.Generator, share: float) -> bool:
    return bool(rng.random() < share)


def _plan(
    rng: np.random.Generator, kinds: list[str], codes: dict[str, list[Any]], related: bool
) -> tuple[Plan, list[str]]:
    """A plan of the columns of these kinds, and the columns that the table does not have at all."""
    settings: dict[str, Any] = {"random_state": int(rng.integers(3))}
    protected = list(kinds)
    left: list[str] = []
    if related and _chance(rng, 0.4):
        protected.append("double")
        settings["relations"] = ["double = 2 * number"]
    elif related:
        left.append("double")
    settings["kinds"] = _kinds(rng, protected)
    drop, confidential, renumber = ["name"], ["illness"], []
    keeps_order = _chance(rng, 0.2)
    (drop if keeps_order else confidential).append("row")
    (confidential if _chance(rng, 0.5) else drop).append("turnover")
    left += [name for name in ("sex", "wave", "region", "w") if _chance(rng, 0.55)]
    free = [name for name in ("region", "wave") if name not in left]
    if free and _chance(rng, 0.5):
        chosen = free[: rng.integers(1, len(free) + 1)]
        settings["strata"] = {
            "columns": chosen,
            "small": str(rng.choice(["error", "merge", "merge"])),
        }
    if "w" not in left and _chance(rng, 0.6):
        settings["weight"] = {
            "column": "w",
            "release": str(rng.choice(["mean", "mean", "keep", "drop"])),
            "grouping": str(rng.choice(["weighted", "plain"])),
        }
    if _chance(rng, 0.4):
        together = _chance(rng, 0.3)
        settings["unit"] = {"column": "household", "mode": "together" if together else "count"}
    where = rng.choice(["drop", "renumber", "known", "left"], p=[0.4, 0.3, 0.1, 0.2])
    if where == "drop" or (where == "left" and "unit" not in settings):
        drop.append("household")
    elif where != "known":
        renumber.append("household")
    settings |= {"drop": drop, "confidential": confidential, "renumber": renumber}
    policy = str(rng.choice(["pattern", "pattern", "pattern", "majority", "fill", "drop", "error"]))
    settings["missing"] = {
        "policy": policy,
        "most": float(rng.choice([0.01, 0.2, 1.0], p=[0.2, 0.3, 0.5])),
        "codes": codes,
    }
    settings["keep_order"] = True if keeps_order else None
    settings["round"] = str(rng.choice(["no", "no", "nearest", "totals"]))
    if _chance(rng, 0.1):
        settings["digits"] = int(rng.integers(-1, 3))
    plan = Plan.of(k=int(rng.integers(2, 5)), columns=protected, **settings)
    return _in_blocks(rng, plan, protected), left


def _kinds(rng: np.random.Generator, protected: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in protected:
        if name == "ordinal":
            found[name] = {"kind": "ordinal", "levels": LEVELS}
            if _chance(rng, 0.3):
                found[name]["release"] = "median"
        elif name == "hierarchy":
            found[name] = {"kind": "hierarchy", "prefixes": [2, 4]}
            if _chance(rng, 0.5):
                found[name]["release"] = "node"
        elif name == "spiked":
            found[name] = {"kind": "spiked"}
            if _chance(rng, 0.3):
                found[name]["release"] = "spike"
        elif name == "date":
            found[name] = "date"
        elif name in ("number", "integer") and _chance(rng, 0.3):
            found[name] = {"transform": str(rng.choice(["log", "rank"]))}
    return found


def _in_blocks(rng: np.random.Generator, plan: Plan, protected: list[str]) -> Plan:
    """Divide the columns into blocks now and then; give a block a method and requirements."""
    (block,) = plan.blocks
    settings: dict[str, Any] = {"method": str(rng.choice(METHODS, p=[0.5, *[0.1] * 5]))}
    if settings["method"] == "auto":
        settings["options"] = {"effort": "fast"}
    if _chance(rng, 0.1):
        settings["aggregate"] = "median"
    if _chance(rng, 0.35):
        settings["require"] = _requirements(rng)
    shape = rng.choice(["one", "two", "per column"], p=[0.7, 0.15, 0.15])
    if plan.strata.small == "merge":  # which needs one group for each record
        shape = "one"
    if shape == "per column":
        return replace(plan, blocks=(replace(block, per_column=True, **settings),))
    if shape == "two" and len(protected) > 1:
        cut = int(rng.integers(1, len(protected)))
        first = replace(block, columns=tuple(protected[:cut]), **settings)
        k = int(rng.integers(2, 5))
        second = Block(columns=tuple(protected[cut:]), k=k, method="mdav")
        if _chance(rng, 0.6):
            second = replace(second, **_own_parts(rng, plan))
        return replace(plan, blocks=(first, second))
    return replace(plan, blocks=(replace(block, **settings),))


def _own_parts(rng: np.random.Generator, plan: Plan) -> dict[str, Any]:
    """Unit and strata that a block has for itself."""
    found: dict[str, Any] = {"unit": None if _chance(rng, 0.3) else "household"}
    if plan.strata.columns and _chance(rng, 0.6):
        found["strata"] = list(plan.strata.columns[:1]) if _chance(rng, 0.5) else []
    return found


def _requirements(rng: np.random.Generator) -> Require:
    rules: list[dict[str, Any]] = [
        {"distinct": {"illness": 2}},
        {"entropy": {"illness": 1.5}},
        {"closeness": {"illness": 0.4}},
        {"p_percent": {"turnover": SECRET_P}},
        {"n_k": {"turnover": (1, SECRET_K)}},
        {"population": 12},
    ]
    chosen: dict[str, Any] = {}
    for at in rng.permutation(len(rules))[: rng.integers(1, 3)]:
        chosen |= rules[at]
    return Require(**chosen)


def draw_linked(seed: int) -> Mixed:
    """Draw a table of households, and a plan whose file shows which rows are one household."""
    rng = np.random.default_rng(seed)
    homes = int(rng.integers(8, 41))
    sizes = rng.choice([1, 2, 3, 4], homes, p=rng.dirichlet([2, 3, 2, 1]))
    household = rng.permutation(np.repeat(np.arange(homes), sizes))
    n = len(household)
    columns: dict[str, Any] = {"household": household}
    kinds = [str(kind) for kind in rng.permutation(["number", "integer", "nominal", "boolean"])]
    for kind in kinds[: rng.integers(1, 4)]:
        columns[kind] = _column(rng, kind, n, np.zeros(n, dtype=bool), [])
    if _chance(rng, 0.3):  # what a household has in common
        columns["integer"] = pd.Series(household % 7 + 81_730_000).astype("Int64")
    columns["illness"] = rng.choice(["flu", "cold", "none"], n)
    settings: dict[str, Any] = {"confidential": ["illness"]}
    if _chance(rng, 0.3):
        columns["sex"] = rng.choice(["f", "m"], n)
    if _chance(rng, 0.2):
        columns["region"] = np.where(household % 2, "north", "south")
        settings["strata"] = ["region"]
    if _chance(rng, 0.8):
        mode = "together" if _chance(rng, 0.5) else "count"
        settings["unit"] = {"column": "household", "mode": mode}
    role = str(rng.choice(["renumber", "renumber", "renumber", "known"]))
    if role == "renumber":
        settings["renumber"] = ["household"]
    protected = [name for name in columns if name in (*QUANTITIES, *_OTHER)]
    plan = Plan.of(
        k=int(rng.integers(2, 5)),
        columns=protected,
        method=str(rng.choice(["mdav", "auto"])),
        keep_order=True,
        **settings,
    )
    ending = str(rng.choice([".csv", ".parquet"]))
    return Mixed(pd.DataFrame(columns), plan, ending, {})
