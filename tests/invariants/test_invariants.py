"""What holds for every table, whatever its columns, strata, units, weights and missing values."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import microagg
import mixed
import oracles
from microagg import InputError
from microagg.encode.space import space_of
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame
from microagg.tables.variable import variable_of

FAST = {"method": "mdav"}


@settings(max_examples=40)
@given(
    table=mixed.tables(),
    k=st.integers(2, 4),
    policy=st.sampled_from(mixed.POLICIES),
    with_strata=st.booleans(),
    with_units=st.booleans(),
    weight=st.sampled_from([None, "mean", "drop"]),
    method=st.sampled_from(["auto", "mdav"]),
)
def test_k_units_share_all_that_is_released(
    table, k, policy, with_strata, with_units, weight, method
):
    frame, chosen = table
    more = {}
    if with_strata:
        more["strata"] = {"columns": ["region"], "small": "merge"}
    if with_units:
        more["unit"] = "unit"
    if weight:
        more["weight"] = {"column": "w", "release": weight}
    before = frame.copy()
    try:
        release = mixed.protected(
            frame,
            k=k,
            columns=chosen,
            kinds=mixed.kinds_of(chosen),
            missing={"policy": policy, "most": 1.0},
            method=method,
            **more,
        )
    except InputError:
        if policy != "drop":  # by which too few records may be left
            raise
        assume(False)
    pd.testing.assert_frame_equal(frame, before)
    data = release.data
    names = [*chosen, *(["region"] if with_strata else []), *(["w"] if weight == "mean" else [])]
    units = data["unit"].tolist() if with_units else None
    assert mixed.smallest_class(data, names, units) >= k
    if policy != "drop":
        assert len(data) == len(frame)
        assert data.index.equals(frame.index)


@given(table=mixed.tables(), k=st.integers(2, 4))
def test_equal_weights_are_no_weights(table, k):
    frame, chosen = table
    frame["w"] = 2.5
    same = dict(
        k=k,
        columns=chosen,
        kinds=mixed.kinds_of(chosen),
        missing={"policy": "pattern", "most": 1.0},
        **FAST,
    )
    with_weights = mixed.protected(frame, weight="w", **same).data
    pd.testing.assert_frame_equal(with_weights, mixed.protected(frame, **same).data)


@given(table=mixed.tables(missing=False), k=st.integers(2, 4))
def test_strata_are_a_loop_over_subsets(table, k):
    frame, chosen = table
    assume(frame["region"].value_counts().min() >= k and frame["region"].nunique() == 2)
    kinds = mixed.kinds_of(chosen)
    [part] = mixed.protected(
        frame, k=k, columns=chosen, kinds=kinds, strata=["region"], **FAST
    ).parts
    plan = Plan.of(k=k, columns=chosen, kinds=kinds)
    variables = [variable_of(Frame(frame), name, plan.column(name)) for name in chosen]
    space = space_of(variables)  # with the coordinates of the whole table
    sse = 0.0
    for region in ("north", "south"):
        rows = np.flatnonzero(frame["region"] == region)
        alone = microagg.partition(
            np.ascontiguousarray(space.scaled[rows]), k, scale="none", **FAST
        )
        assert oracles.same_groups(alone.labels.tolist(), part.partition.labels[rows].tolist())
        sse += alone.sse
    assert part.partition.sse == pytest.approx(sse, abs=1e-9)


@pytest.mark.parametrize("method", ["auto", "mdav", "mst-c"])
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 4), d=st.integers(1, 3))
@settings(max_examples=20)
def test_a_table_of_numbers_gives_the_groups_of_partition(method, seed, k, d):
    X = np.random.default_rng(seed).lognormal(size=(25, d)).round(1)
    names = [f"c{j}" for j in range(d)]
    frame = pa.table(dict(zip(names, X.T, strict=True)))
    [part] = mixed.protected(frame, k=k, columns=names, method=method).parts
    alone = microagg.partition(X, k, method=method)
    assert part.partition.labels.tolist() == alone.labels.tolist()
    assert part.partition.sse == alone.sse


@given(table=mixed.tables(), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_codes_for_missing_are_shared_or_lost(table, seed):
    """Tags: a code stands where all of a group have it, and is otherwise plainly missing."""
    frame, chosen = table
    assume("integer" in chosen)
    rng = np.random.default_rng(seed)
    frame["integer"] = frame["integer"].mask(rng.random(len(frame)) < 0.3, -8)
    frame["integer"] = frame["integer"].mask(rng.random(len(frame)) < 0.3, -9)
    data = mixed.protected(
        frame,
        k=3,
        columns=chosen,
        kinds=mixed.kinds_of(chosen),
        missing={"policy": "pattern", "most": 1.0, "codes": {"integer": [-8, -9]}},
        **FAST,
    ).data
    assert mixed.smallest_class(data, chosen) >= 3
    for code in (-8, -9):
        after = (data["integer"] == code).fillna(False).to_numpy(dtype=bool)
        before = (frame["integer"] == code).fillna(False).to_numpy(dtype=bool)
        assert not (after & ~before).any()
    rest = data["integer"].dropna()
    assert ((rest >= 0) | rest.isin([-8, -9])).all()  # a code is in no mean


def test_eleven_firms():
    """Handbook on statistical disclosure control, section 3.4; the optimum by exhaustive search."""
    surface = [790, 710, 730, 810, 950, 510, 400, 330, 510, 760, 50]
    employees = [55, 44, 32, 17, 3, 25, 45, 50, 5, 52, 12]
    frame = pd.DataFrame({"surface": surface, "employees": employees})
    release = mixed.protected(
        frame, k=3, columns=["surface", "employees"], method="optimal", round="nearest"
    )
    found = release.parts[0].partition
    groups = {frozenset((np.flatnonzero(found.labels == g) + 1).tolist()) for g in range(3)}
    assert groups == {frozenset({1, 2, 3, 10}), frozenset({4, 5, 9}), frozenset({6, 7, 8, 11})}
    assert found.information_loss == pytest.approx(34.0218, abs=1e-4)
    assert found.gap == 0
    exact = mixed.protected(
        frame, k=3, columns=["surface", "employees"], method="optimal", digits=2
    ).data
    assert set(exact["surface"]) == {747.5, 756.67, 322.5}
    assert set(release.data["employees"]) == {46, 8, 33}
