"""Options of methods: more attempts never lose more, and what makes no sense is refused in words."""

import numpy as np
import pytest

import microagg

WHOLE = "must be a whole number of at least"
# Method, option, values that it does not have, and what is said of them.
REFUSED = [
    ("genetic", "generations", [0, 1.5, "many"], f"generations {WHOLE} 1"),
    (
        *("kmeans-merge", "factor", [0, -1, np.nan, np.inf, "1", None, True]),
        "factor must be a number above 0",
    ),
    (
        *("v-mdav", "gamma", [-0.1, np.nan, np.inf, "automatic", None, [0.2], True]),
        "gamma=.* is not a finite number of at least 0",
    ),
    ("optimal", "nodes", ["many", -1, 1.5, True], f"nodes {WHOLE} 0"),
    ("pca", "cut", ["all"], "cut must be 'records' or 'projected'; got 'all'"),
    ("random-projection", "n_projections", [0, 1.5, True, "two"], f"n_projections {WHOLE}"),
    ("rep-ord-mic", "starts", [0, 1.5, True, "two"], f"starts {WHOLE}"),
    ("rep-ord-mic", "start_labels", [[1]], "start_labels must be 9 whole numbers"),
    ("mdav", "refine", ["heroic"], "refine is one of"),
]


@pytest.mark.parametrize(
    ("method", "option", "value", "words"),
    [(method, option, value, words) for method, option, some, words in REFUSED for value in some],
)
def test_a_value_that_makes_no_sense_is_refused(method, option, value, words):
    with pytest.raises(microagg.InputError, match=words):
        microagg.partition(np.zeros((9, 2)), 2, method=method, **{option: value})


@pytest.mark.parametrize(
    ("method", "option", "values"),
    [
        ("genetic", "generations", (1, 30, 900)),
        ("random-projection", "n_projections", (1, 5, 20)),
        ("rep-ord-mic", "starts", (1, 50, 100)),
    ],
)
def test_more_attempts_never_lose_more(method, option, values):
    """The many begin with the few; another seed draws others."""
    X = np.random.default_rng(2).normal(size=(120, 3))
    found = [microagg.partition(X, 4, method=method, **{option: value}) for value in values]
    losses = [partition.sse for partition in found]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > losses[-1]
    other = microagg.partition(X, 4, method=method, random_state=1, **{option: values[0]})
    assert other.labels.tolist() != found[0].labels.tolist()
