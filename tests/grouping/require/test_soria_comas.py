"""The three algorithms for t-closeness: published sizes, naive twins, valid groups, ours beside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_requirements as naive
from microagg.algorithms.required.soria_comas import closeness_group_size, k_first, merging, t_first
from microagg.grouping.require.requirement import demands_of, violations_of
from microagg.grouping.require.requirement_search import satisfy
from microagg.grouping.require.value_rules import Closeness
from microagg.kernels.labels import canonical_labels, sum_of_squares


def squared(X, a, b):
    return float(sum((x - y) ** 2 for x, y in zip(X[a], X[b], strict=True)))


def far(X, left, point):
    return max(left, key=lambda i: (float(((X[i] - point) ** 2).sum()), -i))


def naive_merging(X, codes, t, groups):
    groups = {min(group): sorted(group) for group in groups}
    while True:
        worst, most = None, 0.0
        for name in sorted(groups):
            distance = naive.closeness(codes, t, True, groups[name])
            if distance > most + 1e-12:
                worst, most = name, distance
        if worst is None or len(groups) == 1:
            return list(groups.values())
        centre = X[groups[worst]].mean(axis=0)
        others = [name for name in groups if name != worst]
        partner = min(
            others, key=lambda name: float(((X[groups[name]].mean(axis=0) - centre) ** 2).sum())
        )
        # The union keeps the number of the farthest group, by which ties are decided.
        groups[worst] = groups[worst] + groups.pop(partner)


def naive_t_first(X, codes, k, t):
    n = len(X)
    size = closeness_group_size(n, k, t)
    order = sorted(range(n), key=lambda i: (codes[i], i))
    lengths = [n // size] * size
    middle = [size // 2] if size % 2 else [size // 2 - 1, size // 2]
    for extra in range(n % size):
        lengths[middle[extra % len(middle)]] += 1
    subsets, at = [], 0
    for length in lengths:
        subsets.append(order[at : at + length])
        at += length
    groups, seed, total = [], None, n // size
    while len(groups) < total:
        left = [i for subset in subsets for i in subset]
        if seed is None:
            start = again = far(X, left, X[left].mean(axis=0))
        else:
            start, again = far(X, left, X[seed]), None
        group, extra = [], False
        for subset in subsets:
            times = 2 if not extra and len(subset) > total - len(groups) else 1
            extra = extra or times == 2
            for _ in range(times):
                row = min(subset, key=lambda i: (squared(X, i, start), i))
                subset.remove(row)
                group.append(row)
        groups.append(group)
        seed = again
    return naive_merging(X, codes, t, groups)


def naive_k_first(X, codes, k, t):
    left, groups, seed = list(range(len(X))), [], None
    while len(left) >= 2 * k:
        if seed is None:
            start = again = far(X, left, X[left].mean(axis=0))
        else:
            start, again = far(X, left, X[seed]), None
        near = sorted(left, key=lambda i: (squared(X, i, start), i))
        group, others = near[:k], near[k:]
        while naive.closeness(codes, t, True, group) > 1e-11 and others:
            new = others.pop(0)
            best, place = naive.closeness(codes, t, True, group), None
            for a in range(k):
                distance = naive.closeness(codes, t, True, [*group[:a], new, *group[a + 1 :]])
                if distance < best - 1e-12:
                    best, place = distance, a
            if place is not None:
                group[place] = new
        groups.append(group)
        left = [i for i in left if i not in group]
        seed = again
    return naive_merging(X, codes, t, [*groups, left] if left else groups)


@st.composite
def tables(draw):
    """Whole coordinates of few records would tie; reals do not, so that twins agree."""
    n = draw(st.integers(4, 24))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    codes = rng.permutation(n) if draw(st.booleans()) else rng.integers(0, n, n)
    k = draw(st.integers(1, min(4, n // 2)))
    return rng.normal(size=(n, 2)), codes, k, draw(st.sampled_from([0.08, 0.15, 0.3, 0.45]))


def as_sets(groups):
    return {frozenset(int(i) for i in group) for group in groups}


def groups_of(labels):
    return [np.flatnonzero(labels == g) for g in range(labels.max() + 1)]


@given(tables())
def test_quantiles_first_equals_its_twin(table):
    X, codes, k, t = table
    found = t_first(X, k, demands_of([Closeness(codes, t)]))
    assert violations_of(found, k, [Closeness(codes, t)]).sum() == 0
    assert as_sets(groups_of(found)) == as_sets(naive_t_first(X, codes, k, t))


@given(tables())
def test_k_first_equals_its_twin(table):
    X, codes, k, t = table
    found = k_first(X, k, demands_of([Closeness(codes, t)]))
    assert violations_of(found, k, [Closeness(codes, t)]).sum() == 0
    assert as_sets(groups_of(found)) == as_sets(naive_k_first(X, codes, k, t))


@given(tables())
def test_merging_equals_its_twin(table):
    X, codes, k, t = table
    labels = canonical_labels(np.arange(len(X)) // max(k, 2))
    if (np.bincount(labels) < k).any():
        labels[labels == labels.max()] -= 1
    found = merging(X, k, demands_of([Closeness(codes, t)]), labels)
    assert violations_of(found, k, [Closeness(codes, t)]).sum() == 0
    twin = naive_merging(X, codes, t, [g.tolist() for g in groups_of(labels)])
    assert as_sets(groups_of(found)) == as_sets(twin)


def test_group_sizes_as_published():
    wanted = {0.01: 49, 0.05: 10, 0.09: 6, 0.13: 4, 0.17: 3, 0.21: 3, 0.25: 2}
    assert {t: closeness_group_size(1080, 2, t) for t in wanted} == wanted
    assert closeness_group_size(10, 20, 0.5) == 10  # a table smaller than a group is one


def test_distinct_values_are_close_by_quantiles_alone():
    rng = np.random.default_rng(1)
    X, codes = rng.normal(size=(120, 3)), rng.permutation(120)
    found = t_first(X, 2, demands_of([Closeness(codes, 0.1)]))
    sizes = np.bincount(found)
    assert set(sizes.tolist()) <= {closeness_group_size(120, 2, 0.1), 6}


@pytest.mark.parametrize(
    ("k", "t"),
    [
        pytest.param(2, 0.25, marks=pytest.mark.long),
        (5, 0.1),
        pytest.param(10, 0.05, marks=pytest.mark.long),
    ],
)
def test_our_search_loses_less_than_all_three(reference, k, t):
    from microagg.encode.scale import fit_scale

    raw = reference("census")
    codes, raw = raw[:, 10], np.delete(raw, 10, axis=1)
    X = fit_scale(raw).apply(raw)
    wanted = Closeness(codes, t)
    found = satisfy(X, k, [wanted], effort="fast")
    assert violations_of(found, k, [wanted]).sum() == 0
    for method in (merging, k_first, t_first):
        other = method(X, k, demands_of([wanted]))
        assert sum_of_squares(X, found) < 0.95 * sum_of_squares(X, other)
