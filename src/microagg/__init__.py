"""Protect microdata by microaggregation.

``protect`` a data frame, ``partition`` a matrix, list the ``methods``; the command ``microagg``
does the same for files. See the README for a tour.
"""

from typing import TYPE_CHECKING, Any

from microagg.datasets import simulate_clusters
from microagg.errors import (
    DisclosureRiskWarning,
    InputError,
    MicroaggError,
    TableError,
    VerificationError,
)
from microagg.measure.risk import risk
from microagg.measure.utility import utility
from microagg.partition import partition
from microagg.protect import Release, protect
from microagg.registry import methods
from microagg.results import Partition

if TYPE_CHECKING:
    from microagg.estimator import Microaggregator

__version__ = "0.1.0"

__all__ = [
    "DisclosureRiskWarning",
    "InputError",
    "MicroaggError",
    "Microaggregator",
    "Partition",
    "Release",
    "TableError",
    "VerificationError",
    "methods",
    "partition",
    "protect",
    "risk",
    "simulate_clusters",
    "utility",
]


def __getattr__(name: str) -> Any:
    # The estimator needs scikit-learn, which takes longer to load than all the rest.
    if name == "Microaggregator":
        from microagg.estimator import Microaggregator

        return Microaggregator
    raise AttributeError(f"module 'microagg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
