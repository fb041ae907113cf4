"""Random tables with columns of every kind, missing values, groups and weights, for tests of measures."""

import numpy as np
from hypothesis import strategies as st

from microagg.measure.both_tables import Pair
from microagg.plan.column import Column
from microagg.tables.variable import Variable

KINDS = ("number", "date", "spiked", "ordinal", "boolean", "nominal", "hierarchy")
CODES = ("A1x", "A1y", "A2x", "B1x", "B1y", "C3z")


@st.composite
def mixed_pairs(draw, kinds=KINDS, min_columns=1, max_columns=4):
    """A pair of which groups of two or more share what they release; sometimes with holes and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=min_columns, max_size=max_columns))
    return random_pair(
        rng,
        chosen,
        n=draw(st.integers(4, 30)),
        holes=draw(st.booleans()),
        weighted=draw(st.booleans()),
    )


def random_pair(rng, kinds, n=24, *, holes=False, weighted=False, told=True):
    labels = np.sort(rng.permutation(np.arange(n) // 2 % max(n // 4, 1)))
    weights = rng.uniform(0.2, 3, n) if weighted else None
    weights = None if weights is None else weights / weights.mean()
    variables = [
        random_variable(rng, f"{kind} {j}", kind, n, holes) for j, kind in enumerate(kinds)
    ]
    released = [release(rng, variable, labels, weights, holes) for variable in variables]
    return Pair(
        variables,
        np.column_stack(released),
        weights=weights,
        labels=np.repeat(labels[:, None], len(kinds), axis=1) if told else None,
    )


def plain_pair(names, original, protected, **given):
    """A pair of numbers."""
    columns = [Variable(name, "number", x) for name, x in zip(names, original.T, strict=True)]
    return Pair(columns, protected, **given)


def random_variable(rng, name, kind, n, holes):
    levels, setting = (), Column(kind=kind)
    if kind in ("number", "date"):
        values = rng.lognormal(size=n).round(3) * 100
    elif kind == "spiked":
        values = np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(3, 1, n).round(3))
    else:
        if kind == "hierarchy":
            levels, setting = CODES, Column(kind=kind, prefixes=(1, 2), release="node")
        else:
            levels = tuple("abcd"[: 2 if kind == "boolean" else 4])
        values = rng.integers(0, len(levels), n).astype(float)
    if holes:
        values[rng.random(n) < 0.2] = np.nan
    rows = np.array([next(iter(np.flatnonzero(values == i)), -1) for i in range(len(levels))])
    return Variable(name, kind, values, setting, levels, rows.astype(np.int64))


def release(rng, variable, labels, weights, holes):
    """What groups release, said slowly: means, nearest levels, modes; some groups nothing."""
    found = np.full(len(labels), np.nan)
    w = np.ones(len(labels)) if weights is None else weights
    for group in np.unique(labels):
        rows = np.flatnonzero(labels == group)
        there = rows[~variable.missing[rows]]
        if len(there) and not (holes and rng.random() < 0.1):
            values = variable.values[there]
            if variable.kind in ("number", "date", "spiked"):
                found[rows] = np.average(values, weights=w[there])
            elif variable.kind == "ordinal":
                found[rows] = round(float(np.average(values, weights=w[there])))
            else:
                mass = {v: w[there][values == v].sum() for v in values}
                found[rows] = max(sorted(mass), key=mass.get)
    return found


def listed(variable_or_values, levels=()):
    """Values as a list, None where missing; of categories the levels."""
    values = getattr(variable_or_values, "values", variable_or_values)
    return [
        None if np.isnan(v) else (levels[int(v)] if levels else float(v)) for v in values.tolist()
    ]
