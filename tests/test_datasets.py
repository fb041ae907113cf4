"""Simulated clusters: the recipe of the MST paper."""

from __future__ import annotations

import numpy as np
import pytest

import microagg


def test_recipe():
    X, cluster = microagg.simulate_clusters(
        n_clusters=300, n_features=4, min_size=5, max_size=9, sigma=0.02, random_state=3
    )
    sizes = np.bincount(cluster)
    assert X.shape == (len(cluster), 4)
    assert (len(sizes), sizes.min(), sizes.max()) == (300, 5, 9)
    centres = np.array([X[cluster == c].mean(axis=0) for c in range(300)])
    assert np.abs(centres).max() < 1.1
    assert centres.std() == pytest.approx(1 / np.sqrt(3), rel=0.05)  # uniform on [-1, 1]
    assert (X - centres[cluster]).std() == pytest.approx(0.02 * np.sqrt(6 / 7), rel=0.05)


def test_same_seed_same_data():
    first, _ = microagg.simulate_clusters(n_clusters=5)
    again, _ = microagg.simulate_clusters(n_clusters=5)
    other, _ = microagg.simulate_clusters(n_clusters=5, random_state=1)
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_clusters": 0},
        {"min_size": 9, "max_size": 8},
        {"sigma": -1},
        {"sigma": float("nan")},
        {"sigma": np.inf},
        {"n_clusters": 2.5},
        {"n_clusters": "3"},
        {"max_size": 10**30},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(microagg.InputError, match="simulate_clusters needs"):
        microagg.simulate_clusters(**settings)


def test_bad_seed():
    with pytest.raises(microagg.InputError, match="random_state must be a whole number"):
        microagg.simulate_clusters(random_state=-1)
