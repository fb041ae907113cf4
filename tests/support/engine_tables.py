"""Tables for the tests of engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.engines import disk
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

LEAF = 300  # records in a block: several, of a table of a thousand


def mixed_table(n: int = 1200, seed: int = 5) -> pa.Table:
    """Columns of all kinds, missing values, uneven strata, persons with several records, equal rows."""
    chance = np.random.default_rng(seed)
    income = np.where(chance.random(n) < 0.3, 0.0, np.exp(chance.normal(8, 1, n)).round(2))
    age = chance.integers(18, 90, n).astype(float)
    missing = chance.random(n) < 0.1
    missing[:12] = True, True, True, True, True, True, True, False, False, False, False, False
    stratum = np.where(
        chance.random(n) < 0.02, "small", np.where(chance.random(n) < 0.2, "middle", "large")
    )
    stratum[:14] = "small"  # at least six with a missing age, and six without
    table = pa.table(
        {
            "age": pa.array(age, mask=missing),
            "in.come": pa.array(income, mask=np.arange(n) == 7),  # a pattern that no other record has
            "town": pa.array(chance.choice(["A", "B", "C", "D"], n, p=[0.6, 0.2, 0.15, 0.05])),
            "wealth": chance.normal(size=n),
            "region": pa.array(stratum),
            "person": pa.array(chance.integers(0, n // 2, n)),
            "weight": chance.uniform(1, 3, n).round(3),
            "note": pa.array([f"note {i % 7}" for i in range(n)]),
        }
    )  # fmt: skip
    return pa.concat_tables([table, table.slice(40, 60), table.slice(50, 20)]).combine_chunks()


def mixed_plan(**more: object) -> Plan:
    """A plan that uses all of it."""
    return Plan().override(
        **{
            "k": 4,
            "columns": ["age", "in.come", "town", "wealth"],
            "strata": ["region"],
            "weight": "weight",
            "kinds": {"town": "nominal"},
            "drop": ["note"],
            **more,
        }
    )


def released_from_disk(table: pa.Table, plan: Plan, folder: Path) -> tuple[pa.Table, int]:
    """Release a table from disk, in blocks of few records; return it, and the number of groups."""
    source, target = folder / "in.parquet", folder / "out.parquet"
    pq.write_table(table, source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "LEAF", LEAF)
        found = run(Job(source, target, plan, engine="disk")).evidence
    return pq.read_table(target), found.parts[0].partition.n_groups


def in_order(table: pa.Table) -> pa.Table:
    """Rows by all their columns, to compare tables whose rows are in any order."""
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


class Groups(NamedTuple):
    """The groups of a release on Spark, which a task sends in the place of measures."""

    labels: np.ndarray

    def without_records(self) -> Groups:
        """What leaves a task: all of it, in tests."""
        return self


def groups_by_row(encoding: Any, sample: Any) -> Groups:
    """The group of each record, in the order of the numbers of the rows, if the sample has all of them."""
    return Groups(sample.labels[np.argsort(sample.before["row"])])
