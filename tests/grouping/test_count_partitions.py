"""The number of partitions, against the published table and against counting them."""

import numpy as np
import pytest

import microagg
from published import COUNTS


@pytest.mark.parametrize(
    ("size", "published"), [((n, k), count) for n in COUNTS for k, count in COUNTS[n].items()]
)
def test_published_table(size, published):
    count = microagg.count_partitions(*size)
    digits = len(published.split("e")[0]) - 2
    assert (
        f"{count:.{digits}e}".replace("e+", "e") if "e" in published else str(count)
    ) == published


def partitions(records):
    """All partitions of a list, one by one."""
    if not records:
        yield []
        return
    first, *others = records
    for rest in partitions(others):
        yield [[first], *rest]
        for g in range(len(rest)):
            yield [*rest[:g], [first, *rest[g]], *rest[g + 1 :]]


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (5, 2), (7, 3), (8, 2), (9, 4), (9, 9)])
def test_counted_one_by_one(n, k):
    valid = sum(
        all(k <= len(group) <= 2 * k - 1 for group in groups)
        for groups in partitions(list(range(n)))
    )
    assert microagg.count_partitions(n, k) == valid


def test_numbers_of_numpy():
    assert microagg.count_partitions(np.int64(10), np.int64(3)) == 2226


def test_bad_sizes():
    with pytest.raises(microagg.InputError, match="n, the number of records, must be a whole"):
        microagg.count_partitions(10.0, 3)
    with pytest.raises(microagg.InputError, match="k=5 needs at least 5"):
        microagg.count_partitions(4, 5)
