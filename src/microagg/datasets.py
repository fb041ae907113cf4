"""Data to try methods on."""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, shown
from microagg.plan.checks import as_number
from microagg.plan.settings import check_count, check_random_state

__all__ = ["simulate_clusters"]


_LARGEST_SIZE = 2**31


def simulate_clusters(
    n_clusters: int = 200,
    n_features: int = 10,
    min_size: int = 10,
    max_size: int = 100,
    sigma: float = 0.01,
    random_state: int | None = 0,
) -> tuple[Floats, Labels]:
    """Draw records in Gaussian clusters, the recipe of Laszlo & Mukherjee 2005, section 4.

    Centres are uniform in the cube [−1, 1]^d, sizes uniform from ``min_size`` to
    ``max_size`` (both included), coordinates normal around the centre.

    Parameters
    ----------
    n_clusters, n_features : int, at least 1
    min_size, max_size : int, 1 ≤ min_size ≤ max_size
    sigma : float, at least 0
        Standard deviation of each coordinate within a cluster.
    random_state : int or None

    Returns
    -------
    X : float64 array of shape (n, n_features)
    cluster : int64 array of shape (n,), the cluster of each record, ascending

    >>> X, cluster = simulate_clusters(n_clusters=3, n_features=2, min_size=4, max_size=4)
    >>> X.shape, cluster.tolist()
    ((12, 2), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """
    n_clusters = check_count("n_clusters", n_clusters)
    n_features = check_count("n_features", n_features)
    min_size, max_size = check_count("min_size", min_size), check_count("max_size", max_size)
    if not min_size <= max_size <= _LARGEST_SIZE:
        raise InputError(
            f"max_size must be at least min_size and at most {_LARGEST_SIZE}; got "
            f"min_size={min_size} and max_size={max_size}."
        )
    spread = as_number(sigma)
    if spread is None or not 0 <= spread < np.inf:
        raise InputError(f"sigma must be a finite number of at least 0; got {shown(sigma)}.")
    check_random_state(random_state)
    rng = np.random.default_rng(random_state)
    centres = rng.uniform(-1, 1, size=(n_clusters, n_features))
    sizes = rng.integers(min_size, max_size, size=n_clusters, endpoint=True)
    cluster = np.repeat(np.arange(n_clusters, dtype=np.int64), sizes)
    return rng.normal(centres[cluster], spread), cluster
