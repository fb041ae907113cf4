"""Simulated clusters: the recipe of the MST paper."""

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
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1; got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number"),
        ({"min_size": 9, "max_size": 8}, "max_size must be at least min_size"),
        ({"max_size": 10**30}, "max_size must be at least min_size and at most"),
        ({"sigma": -1}, "sigma must be a finite number of at least 0; got -1"),
        ({"sigma": float("nan")}, "sigma must be a finite number"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(microagg.InputError, match=message):
        microagg.simulate_clusters(**settings)


def test_numbers_of_numpy_are_numbers():
    X, cluster = microagg.simulate_clusters(
        np.int64(3), np.int32(2), np.int64(4), np.uint8(4), np.float32(0.1), np.int64(1)
    )
    assert X.shape == (12, 2)
    assert np.bincount(cluster).tolist() == [4, 4, 4]


def test_bad_seed():
    with pytest.raises(microagg.InputError, match="random_state must be a whole number"):
        microagg.simulate_clusters(random_state=-1)
