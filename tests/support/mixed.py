"""Random tables with columns of every kind, for tests of the whole way."""

import datetime as dt
import importlib
from collections import defaultdict

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

protect_table = importlib.import_module("microagg.engines.memory.protect").protect_table

KINDS = {
    "number": None,
    "integer": None,
    "boolean": None,
    "nominal": None,
    "ordinal": ["low", "middle", "high"],
    "date": None,
    "spiked": "spiked",
    "hierarchy": "hierarchy",
}
POLICIES = ["pattern", "majority", "fill", "drop"]


def values_of(kind, n, rng):
    """Values of a kind."""
    if kind == "number":
        return rng.lognormal(size=n).tolist()
    if kind == "integer":
        return rng.integers(0, 90, n).tolist()
    if kind == "boolean":
        return (rng.random(n) < 0.3).tolist()
    if kind == "nominal":
        return rng.choice(["red", "green", "blue", "grey"], n, p=[0.6, 0.2, 0.15, 0.05]).tolist()
    if kind == "ordinal":
        return rng.choice(KINDS["ordinal"], n).tolist()
    if kind == "date":
        return [
            dt.datetime(2024, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 700, n)
        ]
    if kind == "spiked":
        return np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(5, 1, n)).tolist()
    return rng.choice(["A11", "A12", "A21", "B11", "C10"], n).tolist()


@st.composite
def tables(draw, missing=True, kinds=tuple(KINDS), most_rows=40):
    """A pandas frame with some columns to protect, and the kinds that must be named."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(12, most_rows))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4, unique=True))
    columns = {}
    for kind in chosen:
        values = values_of(kind, n, rng)
        share = draw(st.sampled_from([0.0, 0.0, 0.2])) if missing else 0.0
        gone = rng.random(n) < share
        column = pd.Series([None if g else v for v, g in zip(values, gone, strict=True)])
        if kind == "boolean":
            column = column.astype("boolean")
        if kind in ("number", "integer", "spiked"):
            column = column.astype("Float64" if kind != "integer" else "Int64")
        columns[kind] = column.astype("datetime64[s]") if kind == "date" else column
    frame = pd.DataFrame(columns)
    frame["region"] = rng.choice(["north", "south"], n)
    frame["w"] = rng.integers(1, 6, n).astype(float)
    frame["unit"] = rng.integers(0, max(n // 2, 8), n)
    return frame, chosen


def kinds_of(chosen):
    """What protect must be told of the columns."""
    return {kind: KINDS[kind] for kind in chosen if KINDS[kind] is not None}


def protected(frame, **settings):
    """The release by a plan of these settings."""
    return protect_table(Frame(frame), Plan.of(**settings))


def cells(frame, names):
    """Rows of some columns as tuples in which missing values are equal."""
    columns = [
        [None if gone else value for value, gone in zip(frame[n], frame[n].isna(), strict=True)]
        for n in names
    ]
    return list(zip(*columns, strict=True))


def smallest_class(frame, names, units=None):
    """Least number of records, or of units, that share their values; missing is a value."""
    found = defaultdict(set)
    for row, key in enumerate(cells(frame, names)):
        found[key].add(row if units is None else units[row])
    return min(map(len, found.values()))
