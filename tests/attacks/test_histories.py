"""Random histories of tables, attacked over all their files: nothing follows about fewer than k units."""

import pytest

from attacks.histories import attacked

QUICK, LONG = range(4), range(1000)


@pytest.mark.parametrize("seeds", [QUICK, pytest.param(LONG, marks=pytest.mark.long)])
def test_nothing_follows_from_histories(seeds):
    found = [attacked(seed, ledger=True) for seed in seeds]
    assert [faults for faults, _, _ in found if faults] == []
    assert sum(files for _, files, _ in found) > 2 * len(seeds)


def test_the_attack_works_without_a_ledger():
    assert sum(bool(attacked(seed, ledger=False)[0]) for seed in QUICK) > 1
