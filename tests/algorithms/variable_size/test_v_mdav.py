"""V-MDAV: the toy example of the paper, and its gamma."""

import pytest

import microagg
from published import V_MDAV

TOY = [
    (2.4, 3), (1.68, 4.9), (3.18, 5.54), (5.32, 3.6), (18.68, 11.49), (20.14, 9.56), (19.85, 12.33),
    (13.67, 18.9), (17.11, 21), (16.07, 19.23), (21.28, 18.9), (22, 21), (23, 18.5),
]  # fmt: skip


@pytest.mark.parametrize("data", V_MDAV)
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_auto_is_no_worse_than_the_two_values_of_the_paper(data, k, reference):
    X = reference(data)
    auto, low, high = (
        microagg.partition(X, k, method="v-mdav", gamma=gamma).sse for gamma in ("auto", 0.2, 1.1)
    )
    assert auto <= min(low, high)


def test_toy_example_of_the_paper():
    # The four clusters, one of which has four records, are found with the gamma for clusters.
    p = microagg.partition(TOY, 3, method="v-mdav", gamma=1.1, scale="none")
    assert p.labels.tolist() == [0] * 4 + [1] * 3 + [2] * 3 + [3] * 3
    fixed = microagg.partition(TOY, 3, method="mdav", scale="none")
    assert fixed.sse > 4 * p.sse
