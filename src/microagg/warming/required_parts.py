"""How the parts that only requirements other than k need are compiled; see :mod:`microagg.warming.parts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from microagg.algorithms.required import start as required_start
from microagg.algorithms.required.merge import merge
from microagg.algorithms.required.soria_comas import k_first, t_first
from microagg.base.progress import new_state
from microagg.grouping.require.requirement import demands_of
from microagg.grouping.require.value_rules import Closeness
from microagg.kernels.labels import sum_of_squares
from microagg.kernels.remaining import none_left
from microagg.kernels.require_demands import violations
from microagg.warming.tiny_table import DEMANDS, LABELS, WEIGHTS, K, N, X


def _required_start(_: Any) -> None:
    required_start.rounds(none_left(X), WEIGHTS, DEMANDS, 0, K, N, 0, new_state())


def _required_merging(_: Any) -> None:
    violations(DEMANDS, np.arange(N), np.arange(0, N + 1, K), K)
    merge(X, WEIGHTS, DEMANDS, np.arange(N), K)
    sum_of_squares(X, LABELS, WEIGHTS)


def _closeness(_: Any) -> None:
    demands = demands_of([Closeness(np.arange(N) % 4, 0.5)], N)
    for method in (k_first, t_first):
        method(X, K, demands)


REQUIRED_PARTS: dict[str, Callable[[Any], object]] = {
    "closeness": _closeness,
    "required merging": _required_merging,
    "required start": _required_start,
}
