"""Random mixed tables by random plans, from file to file: what is claimed is counted again by pandas."""

from __future__ import annotations

import pytest

from attacks.sweep import compare_engines, sweep


def test_random_mixed_tables_keep_every_promise_or_are_refused(tmp_path):
    ends = sweep(tmp_path, range(60))
    assert ends["amber"] + ends["green"] >= 30
    assert ends["green"] >= 2
    assert ends["values compared"] > 1_000
    assert set(ends) <= {"green", "amber", "refused", "no plan", "values compared"}


def test_disk_says_what_memory_says(tmp_path):
    ends = compare_engines(tmp_path, range(12), "disk")
    assert not [what for what in ends if what.startswith("differs")], ends
    assert ends["amber"] + ends["green"] >= 6


@pytest.mark.long
@pytest.mark.parametrize("start", range(10_000, 14_000, 500))
def test_four_thousand_random_mixed_tables(tmp_path, start):
    sweep(tmp_path, range(start, start + 500))
