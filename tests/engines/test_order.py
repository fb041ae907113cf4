"""The order of rows: random in files of every engine, and found again by what is counted in them."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.engines import disk, disk_release
from microagg.engines.scratch import in_random_order
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

N = 4000


def survey() -> pa.Table:
    """Households of two, one below the other; the row number is confidential, and so stays."""
    rng = np.random.default_rng(5)
    home = np.repeat(np.arange(N // 2), 2)
    return pa.table(
        {
            "home": home,
            "pay": rng.lognormal(3, 1, N // 2).round(2)[home],
            "age": rng.integers(18, 90, N),
            "row": np.square(1 + np.arange(N)) * 1.25,
        }
    )


def plan(**more) -> Plan:
    asked = {"columns": ["pay", "age"], "confidential": ["row"], "effort": "fast", **more}
    return Plan.of(k=4, unit="home", drop=["home"], **asked)


def rows_of(table: pa.Table) -> list[int]:
    """Place in the original of each row of a file."""
    return np.rint(np.sqrt(table["row"].to_numpy() / 1.25) - 1).astype(int).tolist()


def adjacent(rows: list[int]) -> int:
    """Rows that are followed by the other one of their household."""
    return sum(a // 2 == b // 2 for a, b in pairwise(rows))


def test_a_file_is_in_random_order_and_its_households_are_counted(tmp_path, monkeypatch, engine):
    monkeypatch.setattr(disk, "AT_ONCE", 256)
    monkeypatch.setattr(disk_release, "_HELD", 20_000)  # so that there are several buckets
    source = tmp_path / "in.parquet"
    pq.write_table(survey(), source)
    orders = []
    for name in ("one", "two"):
        target = tmp_path / (name if engine == "spark" else f"{name}.parquet")
        evidence = run(Job(source, target, plan(), engine=engine)).evidence
        assert evidence.counted.holds
        assert evidence.counted.least.unit == "home"
        after = pq.read_table(target)
        rows = rows_of(after)
        assert sorted(rows) == list(range(N))
        # By chance one row is followed by its partner, on average; 12 are, once in a billion of files.
        assert adjacent(rows) < 12
        assert abs(np.corrcoef(rows, np.arange(N))[0, 1]) < 0.1
        homes = {}
        for row, key in zip(
            rows, zip(*(after[c].to_pylist() for c in ("pay", "age")), strict=True), strict=True
        ):
            homes.setdefault(key, set()).add(row // 2)
        assert min(map(len, homes.values())) == evidence.counted.least.smallest
        orders.append(rows)
    assert orders[0] != orders[1]  # of the same seed
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("memory", [1, 700, 10**9])
def test_every_row_is_there_once_whatever_the_memory(tmp_path, memory):
    table = pa.table(
        {
            "row": np.arange(500),
            "city": pa.array([f"city {i % 7}" for i in range(500)]).dictionary_encode(),
            "none": pa.nulls(500, pa.string()),
            "list": [[i, i + 1] for i in range(500)],
        }
    )
    parts = [table.slice(at, 40) for at in range(0, 500, 40)]
    # Parts of a file may have other dictionaries.
    parts[3] = parts[3].set_column(
        1, "city", parts[3]["city"].cast(pa.string()).dictionary_encode()
    )
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0").write_text("left by a killed run")
    found = pa.concat_tables(in_random_order(iter(parts), tmp_path / "rows", 500, memory))
    order = found["row"].to_numpy()
    assert not np.array_equal(order, np.sort(order))
    same = found.take(pa.array(np.argsort(order)))
    assert same.to_pydict() == table.to_pydict()
    assert not (tmp_path / "rows").exists()


def test_all_orders_have_the_same_chance(tmp_path):
    table = pa.table({"row": [0, 1, 2]})
    parts = [table.slice(0, 2), table.slice(2, 1)]
    seen = Counter()
    for _ in range(600):
        found = pa.concat_tables(in_random_order(parts, tmp_path / "rows", 3, 9))
        seen[tuple(found["row"].to_pylist())] += 1
    # 100 of each are expected; fewer than 40 once in ten billion of runs.
    assert len(seen) == 6
    assert min(seen.values()) > 40
