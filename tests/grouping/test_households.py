"""Households as records: every person once, members in an order of their own, groups shared throughout."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import InputError
from microagg.base.progress import new_state
from microagg.grouping.households import household_records, person_labels
from microagg.kernels.labels import canonical_labels
from microagg.kernels.outside_in import mdav_labels


@st.composite
def tables(draw):
    """Persons in households of 1 to 5, in any order of rows, and a k that the table allows."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=14))
    households = np.repeat(np.arange(len(sizes)) * 7 - 3, sizes)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    order = rng.permutation(len(households))
    X = rng.integers(0, 5, size=(len(households), draw(st.integers(1, 3)))).astype(float)
    return X, households[order], draw(st.integers(1, min(4, len(sizes))))


@given(tables())
def test_every_person_stands_at_one_place_of_one_household(table):
    X, households, k = table
    found = household_records(X, households, k)
    seen = np.concatenate([one.rows[one.rows >= 0] for one in found])
    assert sorted(seen.tolist()) == list(range(len(X)))
    for one in found:
        assert len(one.rows) >= k
        assert one.matrix.shape == (len(one.rows), one.rows.shape[1] * X.shape[1])
        for rows, values in zip(one.rows, one.matrix, strict=True):
            members = rows[rows >= 0]
            assert len(set(households[members].tolist())) == 1
            assert len(members) == (households == households[members[0]]).sum()
            assert (rows[len(members) :] == -1).all()
            filled = [*members, *[members[-1]] * (len(rows) - len(members))]
            assert values.tolist() == X[filled].reshape(-1).tolist()


@given(tables())
def test_classes_are_sizes_unless_there_are_too_few(table):
    X, households, k = table
    sizes = np.unique(households, return_counts=True)[1]
    found = household_records(X, households, k)
    if all((sizes == size).sum() >= k for size in set(sizes.tolist())):
        assert [one.rows.shape[1] for one in found] == sorted(set(sizes.tolist()))
        assert all((one.rows >= 0).all() for one in found)
    widths = [one.rows.shape[1] for one in found]
    assert widths == sorted(widths)


@given(tables(), st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(table, seed):
    X, households, k = table
    order = np.random.default_rng(seed).permutation(len(X))

    def described(found):
        return sorted(
            (one.matrix.shape[1], sorted(map(tuple, one.matrix.tolist()))) for one in found
        )

    first = household_records(X, households, k)
    assert described(first) == described(household_records(X[order], households[order], k))


@given(tables())
def test_values_are_shared_by_k_households_at_every_place(table):
    X, households, k = table
    found = household_records(X, households, k)
    labels = [canonical_labels(mdav_labels(one.matrix, k, new_state())) for one in found]
    persons = person_labels(found, labels)
    for group in np.unique(persons):
        assert len(set(households[persons == group].tolist())) >= k
    # Whoever shares a group with one household of a group shares all of its groups with it.
    together = {}
    for one, groups in zip(found, labels, strict=True):
        for rows, g in zip(one.rows, groups, strict=True):
            together.setdefault((one.rows.shape[1], int(g)), []).append(
                {int(p) for p in persons[rows[rows >= 0]]}
            )
    for shared in together.values():
        assert all(places == shared[0] for places in shared)


def test_too_few_households_are_refused():
    with pytest.raises(
        InputError, match=r"k=3 needs at least 3 households; the table has 2\. Lower"
    ):
        household_records(np.zeros((3, 1)), np.array([0, 0, 1]), 3)
