"""Shares below k with columns known or left out, against naive twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive_measures as naive
from microagg.measure.both_tables import pair
from microagg.measure.known_columns import Known, enough, rank


def grouped(n, size):
    """A table of one column, released in groups of some size."""
    X = np.arange(float(n)).reshape(-1, 1)
    Y = np.minimum(X // size, n // size - 1)
    return pair(X, Y)


def values(column):
    return [None if code < 0 else code for code in column.codes.tolist()]


@st.composite
def released(draw):
    size, n = draw(st.integers(1, 8)), draw(st.integers(8, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = st.tuples(st.sampled_from([1, 2, 4, n]), st.sampled_from(["whole", "other"]))
    known = {}
    for j, (levels, kind) in enumerate(draw(st.lists(kinds, max_size=5))):
        codes = np.unique(rng.integers(-1, levels, n), return_inverse=True)[1] - rng.integers(0, 2)
        known[f"known {j}"] = Known(codes.astype(np.int64), kind)
    return grouped(n, size), known, draw(st.integers(1, 6))


@given(table=released())
def test_shares_equal_the_naive_twin(table):
    both, known, k = table
    safe = both.protected.tolist()
    found = {harm.name: harm for harm in rank(both, known, k)}
    assert set(found) == set(known)
    for name, column in known.items():
        assert found[name].distinct == len(set(values(column)) - {None})
        assert found[name].alone == naive.below(safe, k, values(column))


@given(table=released())
def test_what_is_enough_to_drop_is_enough_and_not_more(table):
    both, known, k = table
    safe = both.protected.tolist()
    dropped = enough(both, known, k)
    if naive.below(safe, k) > 0:
        assert dropped is None
        return
    kept = [values(column) for name, column in known.items() if name not in dropped]
    assert naive.below(safe, k, *kept) == 0
    for name in dropped:
        assert naive.below(safe, k, *kept, values(known[name])) > 0


def test_a_column_that_decides_comes_first_and_a_constant_one_last():
    both = grouped(60, 6)
    codes = {"half": np.arange(60) % 2, "nothing": np.zeros(60, int), "id": np.arange(60)}
    ranked = rank(both, {name: Known(column) for name, column in codes.items()}, 3)
    assert [harm.name for harm in ranked] == ["id", "half", "nothing"]
    assert [harm.alone for harm in ranked] == [1.0, 0.0, 0.0]


def test_what_each_does_alone_decides_then_the_number_of_values():
    both = grouped(60, 6)
    known = {
        "six a group": Known(np.arange(60) % 6),
        "some groups": Known(np.where(np.arange(60) < 30, np.arange(60) % 6, 0)),
        "again six": Known((np.arange(60) % 6)[::-1].copy()),
    }
    ranked = rank(both, known, 3)
    assert [harm.name for harm in ranked] == ["six a group", "again six", "some groups"]
    assert [harm.alone for harm in ranked] == [1.0, 1.0, 0.5]


def test_no_known_column_and_k_beyond_the_records():
    both = grouped(12, 4)
    assert rank(both, {}, 3) == []
    assert enough(both, {}, 3) == []
    assert enough(both, {"sex": Known(np.arange(12) % 2)}, 13) is None
    assert rank(both, {"sex": Known(np.arange(12) % 2)}, 13)[0].alone == 1.0
