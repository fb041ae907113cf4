"""The labels in docs/best are what they say they are."""

import numpy as np
import pytest
from benchmarks.papers import best_known

from published import BEST_KNOWN


@pytest.mark.parametrize("k", best_known.SIZES)
@pytest.mark.parametrize("data", best_known.DATA)
def test_labels_are_a_partition_of_the_loss_and_gap_told(reference, data, k):
    known = best_known.read(data, k, reference(data))
    told = dict(
        line[2:].split(": ")
        for line in best_known.path_of(data, k).read_text().splitlines()
        if line.startswith("#")
    )
    assert np.bincount(known.labels).min() >= k
    assert known.sse == pytest.approx(float(told["SSE"]), rel=1e-12)
    assert known.bound <= known.sse
    assert known.loss <= BEST_KNOWN[data][k] * 1.005
