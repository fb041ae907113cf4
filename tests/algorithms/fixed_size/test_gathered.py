"""The diameter and the centroid method against the published figures."""

import numpy as np
import pytest

import microagg
from microagg.algorithms.fixed_size import diameter
from published import CENTROID, CENTROID_CHECKED, DIAMETER


@pytest.mark.parametrize("data", DIAMETER)
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_published_information_loss_of_diameter(data, k, reference):
    loss = microagg.partition(reference(data), k, method="diameter").information_loss
    assert round(loss, 2) == DIAMETER[data][k]


@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_published_information_loss_of_centroid(k, reference):
    loss = microagg.partition(reference("census"), k, method="centroid").information_loss
    assert round(loss, 2) == CENTROID["census"][k]


@pytest.mark.parametrize("k", CENTROID_CHECKED)
def test_information_loss_of_centroid_where_the_paper_departs_from_its_pseudocode(k, reference):
    loss = microagg.partition(reference("tarragona"), k, method="centroid").information_loss
    assert round(loss, 2) == CENTROID_CHECKED[k] < CENTROID["tarragona"][k]


def test_the_second_group_is_skipped_when_the_first_took_its_record():
    # The farthest pair are records 2 and 5; 3 and then 5 join 2, so there is nothing to gather at 5.
    X = np.array([[8.0, 8], [8, 7], [4, 1], [2, 7], [9, 6], [2, 9]])
    assert diameter(X, 3).labels.tolist() == [1, 1, 0, 0, 1, 0]
