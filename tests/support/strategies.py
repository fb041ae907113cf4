"""Inputs for the shared tests: the shapes and values on which methods break."""

import numpy as np
from hypothesis import strategies as st

# Sizes at which the number of groups or the way of forming the last ones changes.
EDGE_SIZES = [
    lambda k: k,
    lambda k: k + 1,
    lambda k: 2 * k - 1,
    lambda k: 2 * k,
    lambda k: 2 * k + 1,
    lambda k: 3 * k - 1,
    lambda k: 3 * k,
    lambda k: 4 * k + 1,
]


@st.composite
def tables(draw, max_rows=40, max_columns=4):
    """A matrix and a k that fits it: continuous, tied, constant or far from 0."""
    k = draw(st.integers(1, 8))
    n = draw(st.one_of(st.integers(k, max_rows), st.sampled_from(EDGE_SIZES).map(lambda f: f(k))))
    d = draw(st.integers(1, max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "ties", "constant", "offset", "duplicates", "skewed"]))
    if kind == "normal":
        X = rng.normal(size=(n, d))
    elif kind == "ties":
        X = rng.integers(0, 4, size=(n, d)).astype(float)
    elif kind == "constant":
        X = rng.integers(0, 9, size=(n, d)).astype(float)
        X[:, rng.integers(d)] = 7.25
    elif kind == "offset":
        X = rng.integers(0, 1000, size=(n, d)) + 1e9
    elif kind == "duplicates":
        X = rng.normal(size=(n, d))[rng.integers(0, max(n // 3, 1), size=n)]
    else:
        X = rng.lognormal(sigma=3, size=(n, d))
    return X, k


def whole_numbers(rng, n, d, high=1000):
    """Whole numbers, to which an offset of 1e9 can be added without rounding."""
    return rng.integers(0, high, size=(n, d)).astype(float)
