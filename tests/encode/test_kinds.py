"""Coordinates and released values of every kind against naive twins."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import naive_kinds as naive
from microagg.encode.categories import MOST_COORDINATES, simplex
from microagg.encode.number import totals
from microagg.encode.space import encoder_of, names_of_levels, released_values, space_of
from microagg.plan.column import Column
from microagg.tables.variable import Variable

KINDS = ["number", "date", "spiked", "ordinal", "boolean", "nominal", "hierarchy"]
LEAVES = ("A11", "A12", "A21", "B11", "B12", "C")


def ancestors(code):
    """Of a level number: prefixes of one, two and all signs."""
    text = LEAVES[int(code)]
    return (text[:1], text[:2], text)


def column(kind, values, importance=1.0, **setting):
    """A variable whose values are whole numbers, or levels with these numbers that all occur."""
    values = np.asarray(values, dtype=float)
    if kind == "hierarchy":
        setting["prefixes"] = (1, 2)
    if kind in ("ordinal", "boolean", "nominal", "hierarchy"):
        seen, dense = np.unique(values, return_inverse=True)
        names = [LEAVES[int(v)] if kind == "hierarchy" else int(v) for v in seen]
        rows = np.array([int(np.argmax(values == v)) for v in seen])
        if kind == "ordinal":  # places in the order count, so that gaps stay
            names, rows = list(range(6)), np.full(6, -1)
            rows[seen.astype(int)] = [int(np.argmax(values == v)) for v in seen]
            dense = values
        values = dense.reshape(-1).astype(float)
        return Variable(
            "x", kind, values, Column(kind, importance=importance, **setting), tuple(names), rows
        )
    return Variable("x", kind, values, Column(kind, importance=importance, **setting))


def more(kind):
    return {"ancestors": ancestors} if kind == "hierarchy" else {}


def distances(C):
    return np.square(C[:, None, :] - C[None, :, :]).sum(axis=2)


VALUES = {kind: st.integers(0, 1 if kind == "boolean" else 5) for kind in KINDS}


@st.composite
def columns(draw, kinds=KINDS):
    kind = draw(st.sampled_from(kinds))
    return kind, draw(st.lists(VALUES[kind], min_size=2, max_size=12))


@given(columns(), st.sampled_from([0.25, 1.0, 3.0]))
def test_distances_equal_their_naive_twin(drawn, importance):
    kind, values = drawn
    # One more column, so that plain numbers are encoded too.
    space = space_of([column(kind, values, importance), column("nominal", [0] * len(values))])
    expected = naive.scaled_distances(kind, values, importance=importance, **more(kind))
    assert distances(space.scaled) == pytest.approx(np.array(expected), abs=1e-9)


@given(columns(), st.integers(0, 99))
def test_weighted_distances_equal_their_naive_twin(drawn, seed):
    kind, values = drawn
    assume(kind not in ("hierarchy", "spiked"))  # whose shares of depths and means are weighted too
    weights = np.random.default_rng(seed).integers(1, 5, len(values)).astype(float)
    weights /= weights.mean()
    space = space_of([column(kind, values)], weights=weights)
    expected = naive.scaled_distances(kind, values, weights)
    assert distances(space.scaled) == pytest.approx(np.array(expected), abs=1e-9)


@given(columns(), st.sampled_from([0.5, 1.0, 2.0]), st.booleans(), st.integers(0, 99))
def test_inertia_is_importance_times_n_less_one(drawn, importance, weighted, seed):
    kind, values = drawn
    assume(len(set(values)) > 1)
    n = len(values)
    w = np.random.default_rng(seed).integers(1, 5, n) if weighted else np.ones(n)
    w = w / w.mean()
    variable = column(kind, values, importance)
    other = column("nominal", np.arange(n) % 2)
    C = space_of([variable, other], weights=w if weighted else None).scaled
    both = w @ np.square(C - w @ C / n).sum(axis=1)
    assert both == pytest.approx((importance + 1) * (n - 1))


@given(columns(KINDS), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_released_values_equal_their_naive_twin(drawn, groups):
    kind, values = drawn
    variable = column(kind, values)
    labels = np.unique(groups[: len(values)], return_inverse=True)[1].reshape(-1)
    g = int(labels.max()) + 1
    found = released_values(variable, labels, g)
    for one in range(g):
        members = [value for value, label in zip(values, labels, strict=True) if label == one]
        if variable.is_category:
            expected = naive.nearest_value(kind, members, values, **more(kind))
            seen = sorted(set(values)) if kind != "ordinal" else list(range(6))
            assert seen[int(found[one])] == expected
        else:
            assert found[one] == pytest.approx(float(naive.mean(members)), rel=1e-12)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9))
def test_ordinal_medians_are_levels_of_the_group(values):
    variable = column("ordinal", values, release="median")
    [found] = released_values(variable, np.zeros(len(values), dtype=np.int64), 1)
    assert found == sorted(values)[(len(values) - 1) // 2]


@given(st.lists(st.sampled_from([0, 0, 0, 3, 5, 9]), min_size=1, max_size=9))
def test_a_spiked_group_releases_the_spike_or_the_mean_off_it(values):
    variable = column("spiked", values, release="spike")
    [found] = released_values(variable, np.zeros(len(values), dtype=np.int64), 1)
    off = [value for value in values if value]
    expected = sum(off) / len(off) if 2 * len(off) > len(values) else 0
    assert found == pytest.approx(expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9))
def test_a_released_node_is_the_deepest_common_ancestor(values):
    variable = column("hierarchy", values, release="node")
    [found] = released_values(variable, np.zeros(len(values), dtype=np.int64), 1)
    chains = [ancestors(value) for value in values]
    shared = [names[0] for names in zip(*chains, strict=True) if len(set(names)) == 1]
    name = names_of_levels(variable)[int(found)]
    if not shared:
        assert name == "*"
    else:
        # Of nodes with the same codes that occur the name of any will do, none may be above or below.
        codes = {LEAVES[value] for value in set(values)}
        assert {code for code in codes if code.startswith(name)} == codes
        assert name.startswith(shared[-1])


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12))
def test_a_hierarchy_of_one_level_is_nominal(values):
    codes = ("a", "b", "c", "d", "e", "f")
    seen, dense = np.unique(values, return_inverse=True)
    dense = dense.reshape(-1).astype(float)
    rows = np.array([values.index(v) for v in seen])
    names = tuple(codes[v] for v in seen)
    tree = Variable("x", "hierarchy", dense, Column("hierarchy"), names, rows)
    flat = Variable("x", "nominal", dense, Column("nominal"), names, rows)
    one, other = (encoder_of(v).apply(dense) for v in (tree, flat))
    assert distances(one) == pytest.approx(distances(other), abs=1e-9)
    labels = np.arange(len(values)) % 2
    g = int(labels.max()) + 1
    assert np.array_equal(released_values(tree, labels, g), released_values(flat, labels, g))


def test_many_levels_keep_their_distances_roughly():
    points = simplex(300)
    assert points.shape == (300, MOST_COORDINATES)
    apart = distances(points)[~np.eye(300, dtype=bool)]
    assert apart.mean() == pytest.approx(2, rel=0.05)
    assert np.quantile(np.sqrt(apart / 2), [0.01, 0.99]) == pytest.approx([0.8, 1.2], abs=0.06)
    assert distances(simplex(9))[~np.eye(9, dtype=bool)] == pytest.approx(2)


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.integers(3, 9)), min_size=1, max_size=30),
)
def test_rounded_totals_are_kept_to_the_unit_and_means_move_by_less_than_two(pairs):
    means = np.array([m for m, _ in pairs])
    mass = np.array([float(c) for _, c in pairs])
    found = totals(means, mass)
    assert np.array_equal(found, np.rint(found))
    assert np.abs(found - means).max() < 2 + 1e-9
    by_itself = abs(mass @ (np.rint(means) - means))
    assert abs(mass @ (found - means)) <= max(by_itself, mass.min() / 2 + 0.5) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_at_the_middle_and_released_where_all_are_missing(kind):
    variable = column(kind, [0, 1, 1, 0])
    values = variable.values.copy()
    values[3] = np.nan
    with_gap = Variable("x", kind, values, variable.setting, variable.levels, variable.rows)
    C = encoder_of(with_gap).apply(values)
    assert not C[3].any()
    assert np.square(C[:3] - C[:3].mean(axis=0)).sum() == pytest.approx(2)
    found = released_values(with_gap, np.array([0, 0, 0, 1]), 2)
    assert np.isnan(found).tolist() == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_without_any_value_has_no_extent(kind):
    values = np.full(4, np.nan)
    variable = Variable("x", kind, values, Column(kind))
    assert not encoder_of(variable).apply(values).any()
    assert np.isnan(released_values(variable, np.array([0, 0, 1, 1]), 2)).all()


@pytest.mark.parametrize("how", ["log", "rank"])
def test_transforms_are_for_the_distance_alone(how):
    values = [1.0, 10.0, 100.0, 1000.0]
    variable = Variable("x", "number", np.array(values), Column("number", transform=how))
    C = encoder_of(variable).apply(variable.values).ravel()
    assert np.diff(C) == pytest.approx(np.full(3, C[1] - C[0]))  # equal steps
    released = released_values(variable, np.array([0, 0, 1, 1]), 2)
    assert released.tolist() == [5.5, 550.0]
