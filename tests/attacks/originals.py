"""Tables, plans and changes of one record, drawn by seed, for the attacks on public output."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.release import Release
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.sections import Unit
from microagg.tables.frame import Frame

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("mdav", {}),
    ("v-mdav", {}),
    ("v-mdav", {"gamma": 0.2}),
    ("mst", {}),
    ("auto", {"effort": "fast"}),
    ("pca", {}),
    ("kmeans-merge", {}),
]
AGGREGATES = ["mean", "median", "midrange", "maximum", "minimum"]
OUTPUT = "safe.csv"  # the released file has the same name in all worlds


@dataclass(frozen=True)
class Case:
    """A plan and an original."""

    plan: Plan
    table: pa.Table


def draw_case(rng: np.random.Generator) -> Case:
    """Draw a table of whole numbers and decimals with columns of every role, and a plan for it."""
    n = int(rng.integers(24, 60))
    amounts = rng.lognormal(7, rng.uniform(0.3, 1.2), n).round(int(rng.integers(0, 3)))
    columns = {
        "name": [f"person {i}" for i in range(n)],
        "household": rng.integers(0, n // 2 + 1, n),
        "region": rng.choice(["north", "south", "west"], n),
        "illness": rng.choice(["flu", "cold", "none"], n),
        "age": rng.integers(18, 90, n),
        "income": amounts,
        "rent": (amounts * rng.uniform(0.1, 0.4, n)).round(2),
        "hours": rng.integers(0, 60, n),
    }
    return Case(_draw_plan(rng), pa.table(columns))


def _draw_plan(rng: np.random.Generator) -> Plan:
    k = int(rng.integers(2, 6))
    method, options = METHODS[rng.integers(len(METHODS))]
    aggregate = AGGREGATES[rng.integers(len(AGGREGATES))]
    names = ["age", "income", "rent", "hours"]
    shape = rng.choice(["one block", "one column", "per column", "two blocks", "drafted"])
    common: dict[str, Any] = {"aggregate": aggregate, "k": k}
    if shape == "two blocks":
        blocks: tuple[Block, ...] = (
            Block(columns=("age", "hours"), method=method, options=options, **common),
            Block(columns=("income", "rent"), k=int(rng.integers(2, 6)), aggregate=aggregate),
        )
    elif shape == "per column":
        blocks = (Block(columns=("age", "income"), per_column=True, **common),)
    elif shape == "drafted":
        blocks = (Block(method=method, options=options, **common),)
    else:
        count = 1 if shape == "one column" else int(rng.integers(2, 5))
        chosen = tuple(str(name) for name in rng.permutation(names)[:count])
        blocks = (Block(columns=chosen, method=method, options=options, **common),)
    drop = ["name", *rng.permutation(["region", "household"])[: rng.integers(0, 3)].tolist()]
    return Plan(
        blocks=blocks,
        drop=tuple(drop),
        confidential=("illness",) if rng.random() < 0.5 else (),
        unit_section=Unit("household" if rng.random() < 0.3 else None),
        round="nearest" if rng.random() < 0.5 else "no",
        # A small change of one member of a mean shows in no file only if few digits are released.
        digits=int(rng.integers(-2, 1)) if aggregate in ("mean", "midrange") else None,
        seed=int(rng.integers(0, 5)),
        keep_order=True,  # files are compared row by row
    )


def change_one_record(
    rng: np.random.Generator, case: Case, release: Release, standard_deviations: float
) -> Case:
    """Change one record in one column: a protected value, or one that the file does not have."""
    hidden = [name for name in case.plan.drop if name in ("household", "region")]
    if hidden and rng.random() < 0.15:
        return with_value(case, hidden[0], _row(rng, case), _other(rng, case, hidden[0]))
    numeric = [n for n in release.roles.protected if case.table[n].to_numpy().dtype.kind in "iuf"]
    name = str(rng.choice(numeric))
    values = case.table[name].to_numpy()
    row = _row(rng, case)
    step = float(np.std(values)) * standard_deviations * rng.choice([-1, 1])
    moved = values[row] + (np.ceil(abs(step)) * np.sign(step) if values.dtype.kind == "i" else step)
    return with_value(case, name, row, moved)


def _row(rng: np.random.Generator, case: Case) -> int:
    return int(rng.integers(case.table.num_rows))


def _other(rng: np.random.Generator, case: Case, name: str) -> Any:
    return case.table[name][_row(rng, case)].as_py()


def with_value(case: Case, name: str, row: int, value: Any) -> Case:
    """Return the case with one value of one record replaced."""
    column = case.table[name]
    values = column.to_pylist()
    values[row] = value if isinstance(value, str) else column.type.to_pandas_dtype()(value)
    at = case.table.column_names.index(name)
    changed = case.table.set_column(at, name, pa.array(values, column.type))
    return Case(case.plan, changed)


def released(case: Case) -> Release:
    """Protect the case's table by its plan."""
    return protect_table(Frame(case.table), case.plan)


def same_file(one: Release, other: Release) -> bool:
    """Whether both tables are the same when written: to the byte, since −0 equals 0 as a number only."""
    return _as_written(one) == _as_written(other)


def _as_written(release: Release) -> bytes:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(release.data, sink)
    return bytes(sink.getvalue())


def public_twin(release: Release, folder: Path) -> str:
    """Write the table; return the text of the public report's JSON, of which the page is a rendering."""
    folder.mkdir(parents=True, exist_ok=True)
    release.write(folder / OUTPUT)
    return json.dumps(release.report_model(public=True), indent=2, ensure_ascii=False)


def public_files(release: Release, folder: Path) -> tuple[bytes, bytes]:
    """Write the table and its public report; return the bytes of the page and of its twin."""
    folder.mkdir(parents=True, exist_ok=True)
    release.write(folder / OUTPUT)
    release.report(folder / "report.html", public=True)
    return (folder / "report.html").read_bytes(), (folder / "report.json").read_bytes()
