"""Did a change of kernels change any result? A line for each way, to compare with those of before.

``python -m benchmarks fingerprints > after.txt``, the same for the commit before, and ``diff``: labels must
be equal to the last record and bounds to the last digit.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import microagg

_FEW = {
    "starts": 2,
    "n_projections": 2,
    "nodes": 0,
    "generations": 20,
}  # attempts of methods that make many
_REQUIRED: dict[str, dict[str, Any]] = {
    "unit": {"unit": "household"},
    "together": {"unit": {"column": "household", "mode": "together"}},
    "distinct": {"require": {"distinct": {"illness": 3}}},
    "entropy": {"require": {"entropy": {"illness": 2.0}}},
    "closeness": {"require": {"closeness": {"illness": 0.4}}},
    "p_percent": {"require": {"p_percent": {"turnover": 10}}},
    "population": {"require": {"population": 30}, "weight": "w"},
    "individual_risk": {"require": {"individual_risk": 0.2}, "weight": "w"},
}


def _tables() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(7)
    yield "normal", rng.normal(size=(400, 5))
    yield "ties", rng.integers(0, 6, size=(300, 3)).astype(float)
    yield "clusters", rng.normal(size=(260, 2)) + 9.0 * rng.integers(0, 9, size=(260, 1)) + 1e6


def _digest(numbers: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()[:16]


def _partitions() -> Iterator[tuple[str, str]]:
    for table, X in _tables():
        for method in microagg.methods():
            if not method.for_numbers:
                continue
            named = {option.name for option in method.options}
            few = {name: number for name, number in _FEW.items() if name in named}
            data = X[:, :1] if method.one_column else X
            if method.name == "optimal":
                data = data[:60]
            for k in (3, 7):
                for seed in (0, 1) if "random_state" in named else (0,):
                    drawn = {"random_state": seed} if "random_state" in named else {}
                    p = microagg.partition(data, k, method=method.name, **few, **drawn)
                    yield f"{table} {method.name} k={k} seed={seed}", _digest(p.labels)
        for effort, k in (("fast", 3), ("balanced", 40), ("best", 3)):
            limit = {"time_limit": None} if effort != "best" else {}
            p = microagg.partition(X[:120], k, method="auto", effort=effort, **limit)
            yield f"{table} auto {effort} k={k}", _digest(p.labels)
        yield f"{table} lower bound", microagg.lower_bound(X[:120], 3).hex()


def _weighted() -> Iterator[tuple[str, str]]:
    for table, X in _tables():
        weights = np.random.default_rng(1).uniform(1, 20, len(X))
        for method in microagg.methods():
            if method.weighted and method.for_numbers:
                data = X[:, :1] if method.one_column else X
                columns = {f"c{j}": data[:, j] for j in range(data.shape[1])}
                release = microagg.protect(
                    pa.table({**columns, "w": weights}),
                    4,
                    columns=list(columns),
                    kinds=dict.fromkeys(columns, "number"),  # few values would be taken for codes
                    weight="w",
                    method=method.name,
                )
                yield f"{table} {method.name} weighted", _digest(release.partition.labels)


def _required() -> Iterator[tuple[str, str]]:
    rng = np.random.default_rng(3)
    n = 300
    columns = {f"c{j}": rng.normal(size=n) for j in range(3)}
    columns |= {"household": rng.integers(0, 90, n), "illness": rng.integers(0, 6, n)}
    columns |= {"turnover": rng.lognormal(size=n), "w": rng.uniform(1, 20, n)}
    frame = pa.table(columns)
    for name, asked in _REQUIRED.items():
        for k in (2, 4):
            given = {"confidential": ["illness"], "columns": ["c0", "c1", "c2"], **asked}
            release = microagg.protect(frame, k, **given)
            yield f"{name} k={k}", _digest(release.partition.labels)
    for method in (one.name for one in microagg.methods() if one.closeness):
        given = {"confidential": ["illness"], "columns": ["c0", "c1", "c2"]}
        release = microagg.protect(
            frame, 3, method=method, require={"closeness": {"illness": 0.4}}, **given
        )
        yield f"{method} k=3", _digest(release.partition.labels)


def _kinds() -> Iterator[tuple[str, str]]:
    """Columns of all kinds, with missing values: what each becomes in coordinates decides the groups."""
    rng = np.random.default_rng(5)
    n = 400
    amount = np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(3, 1, n).round(2))
    columns: dict[str, Any] = {
        "age": rng.integers(15, 90, n),
        "wage": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(2, 0.6, n)),
        "profit": rng.normal(5, 20, n),
        "amount": np.where(rng.random(n) < 0.05, np.nan, amount),
        "sector": rng.choice(["a", "b", "c", "d"], n),
        "school": rng.choice(["low", "middle", "high"], n),
        "code": rng.choice(["A11", "A12", "A21", "B11", "B12"], n),
        "since": (np.datetime64("2020-01-01") + rng.integers(0, 900, n)).astype("datetime64[D]"),
        "w": rng.uniform(1, 20, n),
    }
    frame = pa.table({name: pa.array(own, from_pandas=True) for name, own in columns.items()})
    kinds: dict[str, Any] = {
        "age": {"coarsen": {"bands": 10}},
        "wage": {"kind": "number", "transform": "log"},
        "profit": {"kind": "number", "transform": "log"},
        "amount": "spiked",
        "sector": {"kind": "nominal", "importance": 2.0},
        "school": ["low", "middle", "high"],
        "code": {"kind": "hierarchy", "prefixes": [1, 2]},
    }
    kinds_of = {name: {name: kinds[name]} for name in kinds}
    kinds_of["profit by rank"] = {"profit": {"kind": "number", "transform": "rank"}}
    kinds_of["log of amount"] = {"amount": {"kind": "spiked", "transform": "log"}}
    kinds_of["all"] = kinds
    for name, own in kinds_of.items():
        for more in ({}, {"weight": "w"}, {"missing": "majority"}, {"scale": "robust"}):
            given = {"columns": list(frame.column_names[:-1]), "kinds": {**kinds_of["code"], **own}}
            release = microagg.protect(
                frame, 3, drop=[] if "weight" in more else ["w"], **given, **more
            )
            yield f"kinds {name} {more or 'plain'}", _digest(release.partition.labels)


def main() -> None:
    warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
    for part in (_kinds, _required, _weighted, _partitions):
        for way, digest in part():
            print(f"{digest}  {way}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
