"""Loss by column in one unit for all kinds: naive twins, and what must hold whatever the table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import naive_mixed as naive
from measure_mixed import CODES, listed, mixed_pairs, random_pair
from microagg.encode.space import encoder_of
from microagg.measure.both_tables import Pair
from microagg.measure.utility import losses, utility_of
from microagg.plan.column import Column
from microagg.tables.variable import Variable


def column(kind, values, levels=(), **setting):
    return Variable(
        "x", kind, np.array(values, dtype=float), Column(kind, **setting), tuple(levels)
    )


def pair_of(variable, released, labels=None, **more):
    return Pair(
        [variable],
        np.array(released, dtype=float)[:, None],
        labels=None if labels is None else np.array(labels)[:, None],
        **more,
    )


@given(both=mixed_pairs())
def test_losses_equal_their_naive_twins(both):
    found = losses(both)
    w = np.ones(len(both)) if both.weights is None else both.weights
    for j, variable in enumerate(both.variables):
        kind = "nominal" if variable.kind == "boolean" else variable.kind
        levels = () if kind == "ordinal" else (variable.levels,)
        before, after = (listed(x, *levels) for x in (variable, both.protected[:, j]))
        prefixes = (1, 2) if kind == "hierarchy" else ()
        labels, mass = both.labels[:, 0].tolist(), w.tolist()
        expected = naive.loss(kind, before, after, labels, mass, prefixes=prefixes)
        assert (found.within[j], found.released[j]) == pytest.approx(expected or (0, 0), abs=1e-9)
        assert (found.inertia[j] > 0) == (expected is not None)


@given(both=mixed_pairs())
def test_equal_weights_are_no_weights(both):
    plain = utility_of(replace(both, weights=None)).as_dict()
    weighted = utility_of(replace(both, weights=np.ones(len(both)))).as_dict()
    flat, other = _flat(plain), _flat(weighted)
    assert flat.keys() == other.keys()
    assert other == pytest.approx(flat, abs=1e-6)


def _flat(value, name=""):
    if isinstance(value, dict):
        return {k: v for key, e in value.items() for k, v in _flat(e, f"{name}/{key}").items()}
    return {} if isinstance(value, list) else {name: value}


def test_groups_of_one_category_lose_nothing_whatever_their_weights():
    for seed in range(99):
        rng = np.random.default_rng(seed)
        groups, weights = rng.integers(0, 20, 200), rng.uniform(0.5, 9, 200)
        sex = column("nominal", groups % 2, ["f", "m"])
        found = losses(pair_of(sex, sex.values, groups, weights=weights))
        assert (found.within.item(), found.released.item()) == (0, 0)


def test_losses_equal_those_of_the_coordinates_that_the_grouping_uses():
    both = random_pair(
        np.random.default_rng(3), ["number", "spiked", "ordinal", "nominal", "hierarchy"], 40
    )
    found = losses(both)
    for j, variable in enumerate(both.variables):
        C = encoder_of(variable).apply(variable.values)
        labels = both.labels[:, 0]
        means = np.array([C[labels == label].mean(axis=0) for label in labels])
        assert found.within[j] == pytest.approx(np.square(C - means).sum() / (len(C) - 1))
        R = encoder_of(variable).apply(both.protected[:, j])
        assert found.released[j] == pytest.approx(np.square(C - R).sum() / (len(C) - 1))


def test_of_many_levels_the_loss_is_exact_though_coordinates_are_projected():
    rng = np.random.default_rng(0)
    values, labels = rng.integers(0, 200, 600).astype(float), np.arange(600) // 3
    variable = column("nominal", values, range(200))
    first = values.reshape(-1, 3)[:, 0].repeat(3)
    found = losses(pair_of(variable, first, labels))
    expected = naive.loss("nominal", values.tolist(), first.tolist(), labels.tolist(), [1.0] * 600)
    assert (found.within[0], found.released[0]) == pytest.approx(expected)


def test_a_released_node_is_the_mean_of_its_codes():
    # Codes A1x … of CODES; the group of the first two releases A1, numbered after root, A, B, C.
    variable = column("hierarchy", [0, 1, 3, 5], CODES, prefixes=(1, 2), release="node")
    variable = replace(variable, rows=np.array([0, 1, -1, 2, -1, 3]))
    inner = ["*", "A", "B", "C", "A1", "A2", "B1", "C3"]
    at = len(CODES) + inner.index("A1")
    found = losses(pair_of(variable, [at, at, 3, 5], [0, 0, 1, 2]))
    C = encoder_of(variable).apply(variable.values)
    R = encoder_of(variable).apply(np.array([at, at, 3, 5], dtype=float))
    assert found.released[0] == pytest.approx(np.square(C - R).sum() / 3)
    # Both codes of the node, equally often.
    assert found.released[0] == pytest.approx(found.within[0])


def test_importance_and_values_that_are_there_decide_how_much_a_column_counts():
    a = column("number", [1, 2, 3, np.nan], importance=3.0)
    b = column("nominal", [0, 1, 0, 1], "xy")
    both = Pair(
        [replace(a, name="a"), replace(b, name="b")],
        np.array([[1.5, 0], [1.5, 0], [3, 0], [np.nan, 0]]),
        labels=np.array([[0, 0], [0, 0], [1, 1], [1, 1]]),
    )
    u = utility_of(both)
    assert u.by_column == pytest.approx({"a": 25, "b": 200})
    assert u.group_loss_by_column == pytest.approx({"a": 25, "b": 100})
    assert u.information_loss == pytest.approx((3 * 2 * 25 + 3 * 200) / (3 * 2 + 3))
    assert u.group_loss == pytest.approx((3 * 2 * 25 + 3 * 100) / (3 * 2 + 3))


def test_blanked_values_are_at_the_mean_and_filled_ones_do_not_count():
    both = pair_of(column("number", [1, 2, 3, 6, np.nan]), [1, 2, np.nan, 6, 4])
    u = utility_of(both)
    assert u.group_loss == u.information_loss == pytest.approx(0)  # 3 is the mean
    assert (u.blanked, u.filled) == ({"x": 1}, {"x": 1})


def test_groups_that_are_not_told():
    nominal = column("nominal", [0, 0, 1, 1, 1, 1], "ab")
    # Rows in classes of two or more are groups; here each is of one released value.
    told = losses(pair_of(nominal, [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]))
    assert np.vstack(losses(pair_of(nominal, [0, 0, 0, 1, 1, 1]))) == pytest.approx(np.vstack(told))
    # With a record alone in its row, a swap must not pass as a group of one.
    number = column("number", [1, 2, 3, 4, 5, 6])
    swapped = Pair(
        [replace(number, name="n"), replace(nominal, name="c")],
        np.column_stack([number.values, [1, 1, 0, 0, 1, 1]]),
    )
    u = utility_of(swapped)
    assert u.by_column["n"] == 0
    assert u.group_loss_by_column["c"] == pytest.approx(100 * (4 * 2 * 0.5 * 0.5) / (6 * 4 / 9))
    assert u.changed == {"c": pytest.approx(4 / 6)}


def test_a_transformed_number_loses_in_what_it_is_grouped_by():
    variable = column("number", [1, 10, 100, 1000], transform="log")
    u = utility_of(pair_of(variable, [5.5, 5.5, 550, 550], [0, 0, 1, 1]))
    log = np.log10([1, 10, 100, 1000])
    expected = 100 * np.square(log - [0.5, 0.5, 2.5, 2.5]).sum() / np.square(log - 1.5).sum()
    assert u.group_loss == pytest.approx(expected)
    assert u.information_loss > u.group_loss


def test_columns_with_their_own_groups():
    a = column("nominal", [0, 1, 0, 1], "xy")
    both = Pair(
        [a, replace(a, name="b")],
        np.zeros((4, 2)),
        labels=np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
    )
    assert losses(both).within == pytest.approx([1.0, 0.0])
