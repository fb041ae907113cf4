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
from typing import Any

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


def component(X: Floats) -> Floats:
    """First principal component of centred data, a unit vector."""
    vector: Floats = np.linalg.eigh(np.einsum("ij,ik->jk", X, X))[1][:, -1]
    return vector if vector[np.abs(vector).argmax()] > 0 else -vector


def z_direction(X: Floats) -> Floats:
    """Direction along which the sum of z-scores grows; 0 for constant columns."""
    spread: Floats = np.sqrt(np.einsum("ij,ij->j", X, X))
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)


def _along_the_best(
    directions_of: Callable[..., Floats], description: str
) -> tuple[Callable[..., Outcome], Callable[..., Order]]:
    """Make a method and its order, along the best of some directions.

    >>> pca(np.array([[-2.0, -1.0], [2.0, 1.0], [-2.0, -1.5], [2.0, 1.5]]), 2).labels.tolist()
    [1, 0, 1, 0]
    """

    def best(
        X: Floats, k: int, *, cut: str = "records", state: State | None = None, **options: Any
    ) -> tuple[Order, Labels]:
        if cut not in ("records", "projected"):
            raise InputError(f"cut must be 'records' or 'projected'; got {shown(cut)}.")

        def attempt(direction: Floats, attempt_state: State) -> tuple[float, tuple[Order, Labels]]:
            projected = np.einsum("ij,j->i", X, direction)
            order = sorted_order(projected)[0].astype(np.int64, copy=False)
            if cut == "projected":
                labels = fastest(projected[:, None], k, state=attempt_state).labels
            else:
                labels = labels_along(X, order, k, attempt_state)
            return sum_of_squares(X, labels), (order, labels)

        state = new_state() if state is None else state
        return best_of(list(directions_of(X, **options)), attempt, len(X), state)

    def method(X: Floats, k: int, **options: Any) -> Outcome:
        return Outcome(best(X, k, **options)[1])

    def order(X: Floats, k: int, **options: Any) -> Order:
        return best(X, k, **options)[0]

    method.__doc__, order.__doc__ = (
        f"Partition along {description}.",
        f"Order records along {description}.",
    )
    return method, order


pca, pca_order = _along_the_best(lambda X: component(X)[None], "the first principal component")
z_score, z_score_order = _along_the_best(lambda X: z_direction(X)[None], "the sum of z-scores")
random_projection, random_projection_order = _along_the_best(
    lambda X, n_projections=10, random_state=0: np.random.default_rng(random_state).random(
        (check_count("n_projections", n_projections), X.shape[1])
    ),
    "the best of ``n_projections`` random directions",
)
