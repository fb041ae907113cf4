"""How many partitions there are: why the best one cannot be found by trying all."""

from __future__ import annotations

from math import comb

from microagg.plan.settings import check_count, check_k


def count_partitions(n: int, k: int) -> int:
    """Count the partitions of n records into groups of k to 2k−1, exactly.

    The first record's group has some size s, for which there are (n−1 choose s−1) ways, and
    the others are partitioned in turn: a simpler recurrence for the numbers of Laszlo &
    Mukherjee 2005, Appendix A and Table 11. O(nk) additions of large integers.

    >>> count_partitions(10, 3)
    2226
    """
    n = check_count("n, the number of records,", n)
    k = check_k(k, n)
    ways = [1] + [0] * n
    for m in range(k, n + 1):
        sizes = range(k, min(2 * k - 1, m) + 1)
        ways[m] = sum(comb(m - 1, s - 1) * ways[m - s] for s in sizes)
    return ways[n]
