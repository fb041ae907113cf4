"""Protect microdata by microaggregation.

``protect`` a data frame, ``partition`` a matrix, list the ``methods``; the command ``microagg``
does the same for files. See the README for a tour.
"""

from typing import TYPE_CHECKING, Any

from microagg.compare import compare, suggest
from microagg.errors import (
    DisclosureRiskWarning,
    InputError,
    MicroaggError,
    StopSearch,
    TableError,
    VerificationError,
)
from microagg.partition import partition
from microagg.protect import Release, protect
from microagg.registry import methods
from microagg.results import Partition

if TYPE_CHECKING:
    from microagg.counts import count_partitions
    from microagg.datasets import simulate_clusters
    from microagg.estimator import Microaggregator
    from microagg.improve import lower_bound, refine
    from microagg.measure.risk import risk
    from microagg.measure.utility import utility
    from microagg.methods.ordering.cut import cut
    from microagg.methods.ordering.orders import order
    from microagg.methods.univariate.sorted_cut import cut_sorted
    from microagg.methods.variable_size.spanning_tree import minimum_spanning_tree

__version__ = "0.1.0"

__all__ = [
    "DisclosureRiskWarning",
    "InputError",
    "MicroaggError",
    "Microaggregator",
    "Partition",
    "Release",
    "StopSearch",
    "TableError",
    "VerificationError",
    "compare",
    "count_partitions",
    "cut",
    "cut_sorted",
    "lower_bound",
    "methods",
    "minimum_spanning_tree",
    "order",
    "partition",
    "protect",
    "refine",
    "risk",
    "simulate_clusters",
    "suggest",
    "utility",
]


# Names that are looked up when first used, so that importing stays fast. The functions that
# share their name with a module (compare, partition, protect, methods) cannot be among them:
# importing the module would put it in their place.
_LAZY = {
    "Microaggregator": "microagg.estimator",
    "count_partitions": "microagg.counts",
    "cut": "microagg.methods.ordering.cut",
    "cut_sorted": "microagg.methods.univariate.sorted_cut",
    "lower_bound": "microagg.improve",
    "minimum_spanning_tree": "microagg.methods.variable_size.spanning_tree",
    "refine": "microagg.improve",
    "order": "microagg.methods.ordering.orders",
    "risk": "microagg.measure.risk",
    "simulate_clusters": "microagg.datasets",
    "utility": "microagg.measure.utility",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'microagg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
