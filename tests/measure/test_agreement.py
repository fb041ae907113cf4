"""Records whose group discloses a confidential value: by a naive count, and at the edges of the rule."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microagg.measure.risk import agreement, disclosed_share


def naive(values, groups, near):
    """Records disclosed exactly, and closely, one by one."""
    n, exact, close = len(values), 0, 0
    for value, group in zip(values, groups, strict=True):
        own = [v for v, g in zip(values, groups, strict=True) if g == group]
        often = values.count(value)
        if often * 10 > n if near else often * 2 >= n:  # no news
            continue
        if set(own) == {value}:
            exact += 1
            continue
        if not near or None in own:
            continue
        span = 0.05 * abs(value) * (1 + 1e-9)
        there = [v for v in values if v is not None]
        if all(abs(v - value) <= span for v in own):
            close += sum(abs(v - value) <= span for v in there) * 2 < n
    return exact, close


def counted(values, groups, near):
    numbers = np.array([math.nan if v is None else v for v in values])
    codes = np.unique(np.nan_to_num(numbers, nan=1e9), return_inverse=True)[1].reshape(-1)
    found = agreement(codes, np.array(groups), numbers if near else None)
    assert found.records == found.disclosed.sum()
    return found.exact, found.close


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0, 100, 101, 104, 105, 111, -100, -104, 2]), st.integers(0, 9)
        ),
        min_size=1,
        max_size=50,
    ),
    st.booleans(),
)
def test_as_counted_one_by_one(records, near):
    values = [float(v) if v is not None else None for v, _ in records]
    groups = np.unique([g for _, g in records], return_inverse=True)[1].reshape(-1).tolist()
    assert counted(values, groups, near) == naive(values, groups, near)


def test_what_half_of_all_have_is_no_news():
    values, groups = [1.0, 1.0, 1.0, 2.0, 2.0, 3.0], [0, 0, 0, 1, 1, 1]
    found = agreement(np.array(values, dtype=int), np.array(groups))
    assert (found.exact, found.harmless) == (0, 3)
    found = agreement(np.array([1, 1, 1, 2, 2, 3, 3]), np.array([0, 0, 0, 1, 1, 1, 1]))
    assert (found.exact, found.harmless) == (3, 0)
    # Near what half of all have, too: everybody is between 99 and 101.
    middle = [99.0, 100.0, 101.0, 99.5, 100.5, 100.2]
    assert counted(middle, groups, near=True) == (0, 0)


def test_the_share_of_disclosed_records_counts_a_record_once():
    first = agreement(np.array([0, 0, 1, 2, 3, 4]), np.array([0, 0, 1, 1, 2, 2]))
    second = agreement(np.array([0, 0, 1, 1, 3, 4]), np.array([0, 0, 1, 1, 2, 2]))
    assert (first.exact, second.exact) == (2, 4)
    assert disclosed_share([]) == 0.0
    assert disclosed_share([first, second]) == 4 / 6
    # Without knowing which records these are, their numbers are added, up to all.
    counted = [replace(one, disclosed=None) for one in (first, second)]
    assert disclosed_share(counted[:1]) == 2 / 6
    assert disclosed_share(counted) == 1.0
    assert disclosed_share([first, counted[1], counted[1]]) == 1.0
