"""Distinct units in each group: counted by a naive twin, merged no more than needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import InputError
from microagg.grouping.require.requirement_search import repair
from microagg.grouping.require.value_rules import Units, check_units, distinct_units


def naive_distinct(labels, units):
    """Distinct units of each group, by sets."""
    groups = {}
    for label, unit in zip(labels, units, strict=True):
        groups.setdefault(int(label), set()).add(int(unit))
    return [len(groups[label]) for label in range(len(groups))]


@st.composite
def tables(draw):
    """Records in groups of at least k, with at least k units in all; several records of a unit."""
    k = draw(st.integers(1, 4))
    groups = draw(st.integers(1, 8))
    extra = draw(st.integers(0, 12))
    labels = np.concatenate(
        [
            np.repeat(np.arange(groups), k),
            np.array(
                draw(st.lists(st.integers(0, groups - 1), min_size=extra, max_size=extra)), int
            ),
        ]
    )
    units = np.array(draw(st.lists(st.integers(0, 9), min_size=len(labels), max_size=len(labels))))
    units[:k] = np.arange(k)  # else no groups could do
    seed = draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(labels), draw(st.integers(1, 3))))
    if draw(st.booleans()):
        X = np.round(X)  # centroids that coincide
    order = rng.permutation(len(labels))
    return X[order], labels[order], units[order], k


@given(tables())
def test_the_count_equals_its_naive_twin(table):
    _, labels, units, _ = table
    assert distinct_units(labels, units).tolist() == naive_distinct(labels, units)


@given(tables())
def test_every_group_has_k_units_and_only_whole_groups_were_merged(table):
    X, labels, units, k = table
    found = repair(X, k, [Units(units, k)], labels)
    assert min(naive_distinct(found, units)) >= k
    # Records that shared a group still do, so that k and all that held for the groups holds on.
    for label in range(labels.max() + 1):
        assert len(set(found[labels == label].tolist())) == 1
    # Groups 0, 1, … by first appearance.
    assert list(dict.fromkeys(found.tolist())) == list(range(found.max() + 1))


@given(tables())
def test_no_group_is_merged_without_need(table):
    X, labels, units, k = table
    found = repair(X, k, [Units(units, k)], labels)
    enough = {g for g, count in enumerate(naive_distinct(labels, units)) if count >= k}
    for group in range(found.max() + 1):
        merged = set(labels[found == group].tolist())
        assert len(merged) == 1 or merged - enough  # one of them was short
    if len(enough) == labels.max() + 1:
        assert len(set(zip(labels.tolist(), found.tolist(), strict=True))) == len(enough)


def test_the_cheapest_partner_is_taken():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [14.0], [15.0]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    units = np.array([0, 1, 2, 2, 3, 4])  # the middle group has one unit
    assert repair(X, 2, [Units(units, 2)], labels).tolist() == [0, 0, 1, 1, 1, 1]


def test_many_records_of_one_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    labels = np.arange(3000) // 3
    units = np.where(rng.random(3000) < 0.9, 0, rng.integers(1, 50, 3000))
    found = repair(X, 3, [Units(units, 3)], labels)
    assert min(naive_distinct(found, units)) >= 3
    assert found.max() > 20


def test_too_few_units_are_refused():
    with pytest.raises(
        InputError,
        match=r"k=3 needs at least 3 distinct values of the unit hid; .* has 2\. Lower k",
    ):
        check_units(np.array([0, 1, 0, 1]), 3, "hid")
    check_units(np.array([0, 1, 2]), 3, "hid")
