"""Blocks: the same whatever the order, each large enough, and nearly as good as the whole table."""

import pickle
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine_tables import mixed_table
from microagg import InputError, partition
from microagg.engines.capabilities import check_plan_in_parts
from microagg.engines.chunks import (
    in_sample,
    plan_chunks,
    requirements,
    sample_share,
    work_on_chunk,
)
from microagg.engines.fit import encoding_of
from microagg.engines.table_summary import summarise
from microagg.grouping.require.from_plan import RULES, requirements_of
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.block import Require
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame


def table_of(n, seed=0, **more):
    rng = np.random.default_rng(seed)
    columns = {"a": rng.normal(size=n), "b": rng.exponential(size=n), "id": np.arange(n)}
    return pa.table({**columns, **more})


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    gaps = rng.random(n) < 0.2
    return pa.table(
        {
            "number": rng.normal(10, 3, n),
            "whole": pa.array(rng.integers(0, 40, n), mask=gaps),
            "kind": rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2]),
            "size": rng.choice(["S", "M", "L"], n),
            "yes": rng.random(n) < 0.3,
            "spiked": np.where(rng.random(n) < 0.4, 0.0, rng.exponential(100, n)),
            "date": pa.array(rng.integers(0, 9000, n).astype("int32")).cast(pa.date32()),
            "weight": rng.uniform(1, 9, n),
            "region": rng.choice(["north", "south"], n),
            "id": np.arange(n),
        }
    )


KINDS = {"size": ["S", "M", "L"], "spiked": "spiked"}
PROTECTED = ["number", "whole", "kind", "size", "yes", "spiked", "date"]


def plan_for(columns, k=3, **settings):
    return Plan().override(k=k, columns=columns, **settings)


def fitted(table, plan, cuts=()):
    edges = [0, *cuts, table.num_rows]
    parts = [table.slice(a, b - a) for a, b in pairwise(edges)]
    summary = summarise(parts[-1], plan)
    for part in parts[:-1]:
        summary = summary.merge(summarise(part, plan))
    return encoding_of(plan, pickle.loads(pickle.dumps(summary)))


def solved(table, plan, leaf):
    """Groups by row: one process, one chunk after the other, as any engine does it."""
    encoding = fitted(table, plan)
    packed = np.column_stack([encoding.packed(table), np.arange(table.num_rows, dtype=np.uint64)])
    records = encoding.records_of(packed)
    sample = packed[in_sample(records.keys, sample_share(len(packed)))]
    chunks = plan_chunks(encoding, sample, leaf)
    apart = encoding.cell_of(records)
    places = chunks.assign(encoding.coordinates(records), apart, records.keys)
    counts = np.bincount(places, minlength=chunks.n_places())
    chunks = chunks.with_sound(lambda some: "few" * bool(counts[some].sum() < encoding.k))
    places, groups = chunks.assign(encoding.coordinates(records), apart, records.keys), None
    for turn in range(chunks.rounds + 1):
        moved = []
        for number in np.unique(places):
            rows = np.flatnonzero(places == number)
            own = None if groups is None else groups[rows]
            moved.append(work_on_chunk(encoding, chunks, int(number), packed[rows], own, turn))
        packed = np.concatenate([one.packed for one in moved])
        groups = np.concatenate([one.groups for one in moved])
        if turn < chunks.rounds:
            places = np.concatenate([one.chunks for one in moved])
    labels = np.empty(len(packed), dtype=np.int64)
    labels[packed[:, -1].astype(np.int64)] = groups
    return encoding, labels


def test_summaries_do_not_depend_on_cuts_or_order():
    table = mixed(500)
    plan = plan_for(PROTECTED, kinds=KINDS, weight="weight", strata=["region"])
    shuffled = table.take(np.random.default_rng(1).permutation(500))
    one, other = fitted(table, plan, (100, 200)), fitted(shuffled, plan, (50,))
    first = one.coordinates(one.records_of(one.packed(table)))
    second = other.coordinates(other.records_of(other.packed(table)))
    assert np.array_equal(first, second)
    assert list(one.cells) == list(other.cells)


@pytest.mark.parametrize("strata", [[], ["region"]])
def test_groups_do_not_depend_on_the_order_of_rows(strata):
    table = mixed(3000, seed=4)
    plan = plan_for(["number", "spiked", "kind"], strata=strata, effort="fast")
    order = np.random.default_rng(2).permutation(table.num_rows)
    _, labels = solved(table, plan, leaf=400)
    _, again = solved(table.take(order), plan, leaf=400)
    assert np.array_equal(canonical_labels(labels[order]), canonical_labels(again))
    assert np.bincount(canonical_labels(labels)).min() >= 3
    if strata:
        region = np.asarray(table["region"])
        assert all(len(set(region[labels == group])) == 1 for group in np.unique(labels))


def test_equal_rows_are_dealt_out():
    """Where most records are equal no tree can halve them, and no chunk may hold them all."""
    table = pa.table({"a": np.repeat([0.0, 1.0], [9000, 1000]), "b": np.zeros(10_000)})
    table = table.append_column("id", pa.array(np.arange(10_000)))
    encoding, labels = solved(table, plan_for(["a", "b"], effort="fast"), leaf=500)
    assert np.bincount(canonical_labels(labels)).min() >= 3
    X = encoding.coordinates(encoding.records_of(encoding.packed(table)))
    assert sum_of_squares(X, canonical_labels(labels)) < 0.002 * len(X)
    packed = encoding.packed(table)
    chunks = plan_chunks(encoding, packed, 500)
    records = encoding.records_of(packed)
    places = chunks.assign(encoding.coordinates(records), encoding.cell_of(records), records.keys)
    assert np.bincount(places).max() < 4 * 500


def test_the_loss_is_near_that_of_the_whole_table():
    table = table_of(12_000, c=np.random.default_rng(9).normal(size=12_000))
    plan = plan_for(["a", "b", "c"], k=4, effort="fast")
    encoding, labels = solved(table, plan, leaf=3000)
    X = encoding.coordinates(encoding.records_of(encoding.packed(table)))
    whole = partition(X, 4, scale="none", effort="fast")
    assert sum_of_squares(X, canonical_labels(labels)) < 1.02 * whole.sse


def test_unsound_places_are_joined_with_their_neighbours():
    table = table_of(1000)
    encoding = fitted(table, plan_for(["a", "b"]))
    chunks = plan_chunks(encoding, encoding.packed(table), leaf=130)
    assert chunks.n_places() == 8
    found = chunks.with_sound(lambda some: "few" * (5 in some and len(some) < 4))
    assert found.joined == (0, 1, 2, 3, 4, 4, 4, 4)


_ASKED: dict[str, object] = {
    "distinct": {"town": 2},
    "entropy": {"town": 1.5},
    "closeness": {"town": 0.4},
    "hidden": {"town": 5},
    "p_percent": {"amount": 10},
    "n_k": {"amount": (1, 80)},
    "population": 12,
    "individual_risk": 0.5,
}


@pytest.mark.parametrize("key", [one.name for one in fields(Require)])
def test_a_requirement_is_made_as_in_memory_or_refused(key):
    """Whatever a plan can ask for, none is dropped or taken for another where a table is read in parts."""
    table = mixed_table(200)
    table = table.append_column("amount", pc.abs(table["wealth"]))
    roles = {"unit": "person", "weight": "weight", "missing": "majority"}
    plan = Plan.of(k=4, columns=["age", "in.come"], require={key: _ASKED[key]}, **roles)
    if not RULES[key].in_parts:
        with pytest.raises(InputError, match=f"{key} is asked"):
            check_plan_in_parts(plan)
        return
    encoding = encoding_of(plan, summarise(table, plan))
    records = encoding.records_of(encoding.packed(table))
    ours = requirements(encoding, records)
    frame = Frame(table)
    units, weights = frame.categories("person")[0], frame.doubles("weight")
    theirs = requirements_of(frame, plan.blocks[0], units, "person", weights)
    assert [rule.describe() for rule in ours] == [rule.describe() for rule in theirs]
    assert [rule.feasible() for rule in ours] == [rule.feasible() for rule in theirs]
    assert len(ours) == 2
    for one, other in zip(ours, theirs, strict=True):
        for rows in (np.arange(3), np.arange(50), np.arange(len(records))):
            assert one.violation(rows) == pytest.approx(other.violation(rows))
