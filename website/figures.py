"""Measure the methods on the reference tables: ``python -m website.figures`` writes docs/figures/*.json.

``make figures`` does so, and draws the pictures. The pages of the methods show what stands in the files; no
figure of ours is typed. The comparison with microagg1d needs the extra ``bench``.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import microagg
from microagg.plan.registry import METHODS, Method

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"
TABLES = ("tarragona", "census", "eia")
SIZES = (3, 5, 10)
ONE_COLUMN = (3, 10, 100, 1000)  # k, for a million values
VALUES = 1_000_000
_SLOW_ONE_COLUMN = {"hansen-mukherjee": 100, "simple": 100}  # largest k: time grows with it

sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "support")]


def _timed(X: Any, k: int, method: Method) -> tuple[microagg.Partition, float]:
    began = time.process_time()
    found = microagg.partition(X, k, method=method.name)
    return found, time.process_time() - began


def _published(method: Method) -> dict[str, dict[int, float]]:
    import published

    found: dict[str, dict[int, float]] = getattr(
        published, method.name.upper().replace("-", "_"), {}
    )
    return found


def several_columns() -> dict[str, Any]:
    """Loss in percent and processor seconds of each method, and the published loss, by table and k."""
    from conftest import reference_data

    found: dict[str, Any] = {}
    for method in METHODS.values():
        if method.one_column or method.proves or not method.for_numbers:
            continue
        microagg.partition(np.random.default_rng(0).normal(size=(60, 3)), 3, method=method.name)
        known = _published(method)
        cells = []
        for name in TABLES:
            X = reference_data(name)
            if len(X) > (method.most_records or len(X)):
                continue
            for k in SIZES:
                p, seconds = _timed(X, k, method)
                cells.append(
                    {
                        "table": name,
                        "k": k,
                        "loss": float(f"{p.information_loss:.4g}"),
                        "seconds": round(seconds, 2),
                        "published": known.get(name, {}).get(k),
                    }
                )
        found[method.name] = cells
        print(method.name, cells[-1])
    return found


def one_column() -> dict[str, Any]:
    """Processor seconds of each univariate method for a million uniform values, the better of two."""
    x = np.random.default_rng(0).random(VALUES)
    found: dict[str, Any] = {}
    for method in METHODS.values():
        if not method.one_column:
            continue
        microagg.partition(x[:1000], 3, method=method.name)
        cells = []
        for k in ONE_COLUMN:
            if k > _SLOW_ONE_COLUMN.get(method.name, k):
                continue
            seconds = min(_timed(x, k, method)[1] for _ in range(2))
            cells.append({"k": k, "seconds": round(seconds, 3)})
        found[method.name] = cells
    return found


def _seconds(X: Any, k: int, method: str, **options: str) -> tuple[microagg.Partition, float]:
    """Partition, and the processor seconds that it took once its kernels were loaded."""
    microagg.partition(X[:2000], k, method=method, **options)
    began = time.process_time()
    found = microagg.partition(X, k, method=method, **options)
    return found, round(time.process_time() - began, 2)


def growth() -> list[dict[str, Any]]:
    """How time grows with the number of records: ten normal columns, k = 5; one uniform column, k = 10."""
    rng, found = np.random.default_rng(0), []

    def measure(X: Any, k: int, method: str, **options: str) -> None:
        p, seconds = _seconds(X, k, method, **options)
        found.append(
            {
                "records": len(X),
                "columns": X.shape[1],
                "method": " ".join([method, *options.values()]),
                "processor seconds": seconds,
                "loss, %": float(f"{p.information_loss:.3g}"),
            }
        )
        print(found[-1])

    for n in (10_000, 30_000, 100_000):
        X = rng.normal(size=(n, 10))
        measure(X, 5, "mdav")
        measure(X, 5, "auto", effort="fast")
        measure(X, 5, "mst-c")
    for n in (1_000_000, 10_000_000):
        measure(rng.random((n, 1)), 10, "auto")
    return found


def univariate_peer() -> list[dict[str, Any]]:
    """microagg1d (extra ``bench``) beside ours: seconds, and its excess of SSE over the optimum."""
    from microagg1d import univariate_microaggregation

    rng, found = np.random.default_rng(0), []
    univariate_microaggregation(rng.random(100), k=3)
    for n, offset in ((1_000_000, 0.0), (10_000, 0.0), (10_000, 1e6)):
        x = rng.random(n) + offset
        for k in (3, 10, 100):
            began = time.process_time()
            labels = np.asarray(univariate_microaggregation(x, k=k))
            theirs = time.process_time() - began
            began = time.process_time()
            ours = microagg.partition(x, k)
            seconds = time.process_time() - began
            excess = _sse(x, labels) / _sse(x, ours.labels) - 1
            found.append(
                {
                    "values": n,
                    "offset": offset,
                    "k": k,
                    "microagg1d seconds": round(theirs, 3),
                    "our seconds": round(seconds, 3),
                    "microagg1d above the optimum, %": float(f"{100 * excess:.2g}"),
                    "its smallest group": int(np.bincount(labels).min()),
                }
            )
            print(found[-1])
    return found


def beside_sdcmicro() -> list[dict[str, Any]]:
    """MDAV on tables of the sizes for which times of sdcMicro are recorded (docs/figures/peers.json)."""
    recorded = json.loads((FOLDER / "peers.json").read_text(encoding="utf-8"))["sdcMicro"]["mdav"]
    found = []
    for cell in recorded:
        X = np.random.default_rng(0).normal(size=(cell["records"], 10))
        row = {"records": cell["records"], "k": cell["k"], "sdcMicro mdav": cell["seconds"]}
        for name, options in {"mdav": {}, "auto": {"effort": "fast"}}.items():
            label = " ".join(["our", name, *options.values()])
            row[label] = _seconds(X, cell["k"], name, **options)[1]
        found.append(row)
        print(row)
    return found


def _sse(x: Any, labels: Any) -> float:
    """Sum of squares within groups, of values with the offset taken away."""
    x = x - x.min()
    sums, sizes = np.bincount(labels, x), np.bincount(labels)
    return float(((x - (sums / sizes)[labels]) ** 2).sum())


def main() -> None:
    """Measure and write; names of parts on the command line measure only these anew."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = {
        "several columns": several_columns,
        "one column": one_column,
        "growth": growth,
        "microagg1d": univariate_peer,
        "sdcMicro": beside_sdcmicro,
    }
    path = FOLDER / "methods.json"
    measured = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    measured |= {
        "version": microagg.__version__,
        "machine": f"{platform.machine()}, {platform.system()}, processor seconds",
        **{name: part() for name, part in parts.items() if name in (sys.argv[1:] or parts)},
    }
    path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
