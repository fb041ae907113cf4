"""NIST's score, as the benchmark computes it; its figures equal those of the package sdnist 2.4."""

import itertools

import numpy as np
import pandas as pd
import pytest
from benchmarks import nist

from conftest import reference_file
from support import naive_measures as naive


def test_the_score_is_that_of_the_naive_twin():
    rng = np.random.default_rng(0)
    before, after = (
        pd.DataFrame(rng.integers(0, 4, (n, 4)), columns=["PUMA", "a", "b", "c"]) for n in (90, 70)
    )
    for within in (None, "PUMA"):
        extra = [] if within is None else [within]
        moved = [
            naive.in_another_cell(*(table[[*extra, *pair]].to_numpy() for table in (before, after)))
            for pair in itertools.combinations("abc", 2)
        ]
        score = nist.k_marginal(before, after, within)
        assert score == pytest.approx(1_000 * (1 - sum(moved) / len(moved)))


def test_the_bins_and_the_score_are_those_of_sdnist():
    """What sdnist 2.4 gives for a bootstrap of the excerpt, by its own bins."""
    original = nist.excerpt(reference_file("ma2019").parent)
    binned, bins = nist.binned_target(original)
    again = nist.binned_like(original.sample(frac=1, replace=True, random_state=0), bins)
    assert nist.k_marginal(binned, again) == pytest.approx(977.2741061456366)
    assert nist.k_marginal(binned, again, within="PUMA") == pytest.approx(956.6392730582022)
