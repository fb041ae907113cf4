"""Random histories of tables, attacked over all their files: nothing follows about fewer than k units."""

import pytest

from attacks.histories import attacked

QUICK, LONG = range(4), range(1000)


def test_nothing_follows_from_a_sample_of_histories():
    found = [attacked(seed, ledger=True) for seed in QUICK]
    assert [faults for faults, _, _ in found if faults] == []
    assert sum(files for _, files, _ in found) > 2 * len(QUICK)


def test_the_attack_works_without_a_ledger():
    assert sum(bool(attacked(seed, ledger=False)[0]) for seed in QUICK) > 1


@pytest.mark.long
def test_nothing_follows_from_many_histories():
    found = [attacked(seed, ledger=True)[0] for seed in LONG]
    assert [faults for faults in found if faults] == []
