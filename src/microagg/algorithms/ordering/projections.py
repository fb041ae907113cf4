"""Orders by projection to a line: pca, z-score, random-projection.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      Sort them along one direction: the first principal component (pca), the sum of the
          standardised columns (z-score), or the best of some random directions with entries
          between 0 and 1 (random-projection).
Cost      O(n·d² + n log n) for pca, O(n·d + n log n) for the others, each random direction anew;
          the cut takes O(kn·d).
Paper     pca and z-score: Rebollo-Monedero et al. 2013, as in section 3 of Mortazavi 2020. pca and
          random-projection: Stamm & Schaub 2024, section 5.2.
Here      The sequence is cut by the SSE of all columns. ``cut="projected"`` cuts it by the SSE of
          the projected values instead, as Stamm & Schaub do, with their exact methods for
          one column; that never loses less. The component points so that its largest entry
          (the first of equals) is positive. Sums are taken without threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.ordering.cut import Order, labels_along
from microagg.algorithms.result import Outcome
from microagg.algorithms.univariate.order import sorted_order
from microagg.algorithms.univariate.sorted_cut import fastest
from microagg.base.progress import State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import best_of
from microagg.errors import InputError, shown
from microagg.kernels.labels import sum_of_squares
from microagg.plan.settings import check_count


class _Sorted(NamedTuple):
    order: Order
    labels: Labels


def component(X: Floats) -> Floats:
    """First principal component of centred data, a unit vector."""
    vector: Floats = np.linalg.eigh(np.einsum("ij,ik->jk", X, X))[1][:, -1]
    return vector if vector[np.abs(vector).argmax()] > 0 else -vector


def z_direction(X: Floats) -> Floats:
    """Direction along which the sum of z-scores grows; 0 for constant columns."""
    spread: Floats = np.sqrt(np.einsum("ij,ij->j", X, X))
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)


def random_directions(d: int, count: int, random_state: int | None) -> Floats:
    """Directions with entries between 0 and 1."""
    return np.random.default_rng(random_state).random((count, d))


def _along(X: Floats, k: int, direction: Floats, cut: str, state: State) -> tuple[float, _Sorted]:
    """Sort along a direction and cut; SSE, order and labels."""
    projected = np.einsum("ij,j->i", X, direction)
    order = sorted_order(projected)[0].astype(np.int64, copy=False)
    if cut == "projected":
        labels = fastest(projected[:, None], k, state=state).labels
    else:
        labels = labels_along(X, order, k, state)
    return sum_of_squares(X, labels), _Sorted(order, labels)


def _along_the_best(
    directions_of: Callable[..., Floats], description: str
) -> tuple[Callable[..., Outcome], Callable[..., Order]]:
    """Make a method and its order, along the best of some directions.

    >>> pca(np.array([[-2.0, -1.0], [2.0, 1.0], [-2.0, -1.5], [2.0, 1.5]]), 2).labels.tolist()
    [1, 0, 1, 0]
    """

    def best(X: Floats, k: int, cut: str, state: State | None, **options: Any) -> _Sorted:
        if cut not in ("records", "projected"):
            raise InputError(f"cut must be 'records' or 'projected'; got {shown(cut)}.")
        state = new_state() if state is None else state
        directions = list(directions_of(X, **options))
        return best_of(directions, lambda line, own: _along(X, k, line, cut, own), len(X), state)

    def method(
        X: Floats, k: int, *, cut: str = "records", state: State | None = None, **options: Any
    ) -> Outcome:
        return Outcome(best(X, k, cut, state, **options).labels)

    def order(
        X: Floats, k: int, *, cut: str = "records", state: State | None = None, **options: Any
    ) -> Order:
        return best(X, k, cut, state, **options).order

    method.__doc__, order.__doc__ = (
        f"Partition along {description}.",
        f"Order records along {description}.",
    )
    return method, order


pca, pca_order = _along_the_best(lambda X: component(X)[None], "the first principal component")
z_score, z_score_order = _along_the_best(lambda X: z_direction(X)[None], "the sum of z-scores")
random_projection, random_projection_order = _along_the_best(
    lambda X, n_projections=10, random_state=0: random_directions(
        X.shape[1], check_count("n_projections", n_projections), random_state
    ),
    "the best of ``n_projections`` random directions",
)
