"""Means, medians and sums of squares by group, against rational arithmetic."""

import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive_weighted
from microagg import InputError
from microagg.encode.number import group_aggregates
from microagg.kernels.labels import canonical_labels, group_means, group_sizes, sum_of_squares

values = st.lists(st.tuples(st.integers(0, 4), st.floats(-1e6, 1e6)), min_size=1, max_size=30)


@given(values, st.sampled_from([0.0, 1e9, 1e15]))
def test_means_are_right_to_the_last_digits(pairs, offset):
    labels = canonical_labels(np.array([label for label, _ in pairs]))
    column = np.array([value for _, value in pairs]) + offset
    for g, mean in enumerate(group_means(column, labels)):
        members = [Fraction(float(v)) for v in column[labels == g]]
        exact = sum(members) / len(members)
        # The mean of differences is off by rounding of the spread; the result by one of its own.
        spread = float(max(members) - min(members))
        assert abs(Fraction(float(mean)) - exact) <= 1e-14 * spread + abs(np.spacing(float(exact)))


@given(values)
def test_medians(pairs):
    labels = canonical_labels(np.array([label for label, _ in pairs]))
    column = np.array([value for _, value in pairs])
    released = group_aggregates(column, labels, "median")[labels]
    for g in range(labels.max() + 1):
        expected = statistics.median(column[labels == g].tolist())
        assert released[labels == g] == pytest.approx(expected, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("how", ["mean", "median"])
def test_equal_values_stay_as_they_are(how):
    column = np.array([0.1, 0.1, 0.1, 1e308, 1e308, 1e308])
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert group_aggregates(column, labels, how)[labels].tolist() == column.tolist()


@pytest.mark.parametrize("how", ["mean", "median"])
def test_huge_values_do_not_overflow(how):
    column = np.array([1.7e308, -1.7e308, 1.7e308, 1.7e308])
    assert group_aggregates(column, np.array([0, 0, 1, 1]), how).tolist() == [0, 1.7e308]


def test_whole_means_come_out_whole():
    column = np.array([1.0, 2.0, 6.0, 7.0, 7.0])
    assert group_means(column, np.array([0, 0, 0, 1, 1])).tolist() == [3.0, 7.0]


def test_labels_are_numbered_by_first_appearance():
    assert canonical_labels(np.array([9, 3, 3, 9, 0])).tolist() == [0, 1, 1, 0, 2]
    assert group_sizes(np.array([0, 1, 1, 0, 2])).tolist() == [2, 2, 1]


@given(values)
def test_squares_against_their_definition(pairs):
    labels = canonical_labels(np.array([label for label, _ in pairs]))
    column = np.array([value for _, value in pairs])
    exact = float(naive_weighted.sse(column[:, None], np.ones(len(column)), labels.tolist()))
    assert sum_of_squares(column[:, None], labels) == pytest.approx(exact, rel=1e-9, abs=1e-9)


weighted_values = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-(10**6), 10**6), st.floats(1e-3, 1e6)),
    min_size=1,
    max_size=30,
)


@given(weighted_values, st.sampled_from([0.0, 1e9, 2.0**45]))
@example([(0, 0, 0.5), (0, 1, 1.0)], 2.0**45)
def test_weighted_means_and_squares_are_right_to_the_last_digits(triples, offset):
    labels = canonical_labels(np.array([label for label, _, _ in triples]))
    column = np.array([value for _, value, _ in triples]) + offset
    weights = np.array([weight for _, _, weight in triples])
    means = group_means(column, labels, weights)
    spread = float(np.ptp(column))
    for g, found in enumerate(means):
        own = labels == g
        values = naive_weighted.exactly(column[own])
        exact = naive_weighted.mean(values, naive_weighted.exactly(weights[own]))
        assert abs(Fraction(float(found)) - exact) <= 1e-14 * spread + np.spacing(abs(float(exact)))
    squares = float(naive_weighted.sse(column[:, None], weights, labels.tolist()))
    found = sum_of_squares(column[:, None], labels, weights)
    assert found == pytest.approx(squares, rel=1e-9, abs=1e-9)


@given(weighted_values)
@example([(0, 44423, 1.9), (0, 0, 31303.0)])
def test_weighted_totals_are_kept_in_every_group_and_in_all(triples):
    labels = canonical_labels(np.array([label for label, _, _ in triples]))
    column = np.array([abs(value) + 1.0 for _, value, _ in triples])
    weights = np.array([weight for _, _, weight in triples])
    released = group_means(column, labels, weights)[labels]
    for own in [labels == g for g in range(labels.max() + 1)] + [labels >= 0]:
        before = sum(
            w * v
            for w, v in zip(*map(naive_weighted.exactly, (weights[own], column[own])), strict=True)
        )
        after = sum(
            w * v
            for w, v in zip(
                *map(naive_weighted.exactly, (weights[own], released[own])), strict=True
            )
        )
        assert abs(after - before) <= 1e-14 * before


def test_weights_in_any_unit_and_equal_values():
    column, labels = np.array([0.1, 0.1, 1.0, 2.0]), np.array([0, 0, 1, 1])
    for unit in (1.0, 2.0**900, 2.0**-900):
        means = group_means(column, labels, np.array([3.0, 5.0, 3.0, 1.0]) * unit)
        assert means.tolist() == [0.1, 1.25]
    huge = np.array([1.7e308, -1.7e308, 1.0, 1.0])
    assert group_means(huge, labels, np.ones(4) * 1e308).tolist() == [0.0, 1.0]


def test_a_light_record_far_off_leaves_the_digits_of_the_others():
    column, weights = np.array([1e8, 0.0, 1.0]), np.array([1e-9, 1.0, 1.0])
    exact = float(naive_weighted.sse(column[:, None], weights, [0, 0, 0]))
    assert sum_of_squares(column[:, None], np.zeros(3, np.int64), weights) == pytest.approx(
        exact, rel=1e-12
    )


def test_unknown_aggregate():
    with pytest.raises(InputError, match="aggregate is one of 'mean'"):
        group_aggregates(np.zeros(3), np.zeros(3, dtype=np.int64), "mode")


def test_sums_of_squares_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_003, 3)) + 1e6
    labels = canonical_labels(rng.integers(0, 30_000, 100_003))
    found = set()
    for count in (1, 2, 3, 16):
        monkeypatch.setattr("microagg.compile.threads.thread_count", lambda count=count: count)
        found.add(sum_of_squares(X, labels))
    assert len(found) == 1
    monkeypatch.setattr("microagg.kernels.label_loops._MANY", 10)
    few = np.array([0, 1, 1, 0, 2, 2, 2, 0, 1, 1, 0])
    assert sum_of_squares(np.arange(11.0)[:, None], few) == 110
