"""Protect microdata by microaggregation.

``protect`` a data frame, ``partition`` a matrix, list the ``methods``; the command ``microagg``
does the same for files. See the README for a tour.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from microagg.errors import (
    DisclosureRiskWarning,
    InputError,
    MicroaggError,
    RejectedError,
    StopSearch,
    TableError,
    VerificationError,
)
from microagg.version import VERSION

if TYPE_CHECKING:
    from microagg.comparing.comparison import compare, suggest
    from microagg.comparing.pricing import Prices, prices
    from microagg.comparing.searching import search
    from microagg.counts import count_partitions
    from microagg.datasets import simulate_clusters
    from microagg.draft import draft
    from microagg.estimator import Microaggregator
    from microagg.evidence import Evidence
    from microagg.evidence.sentences import Caution
    from microagg.improve import lower_bound, refine
    from microagg.job import protect_file
    from microagg.measure.risk import risk
    from microagg.measure.utility import utility
    from microagg.methods.ordering.cut import cut
    from microagg.methods.ordering.orders import order
    from microagg.methods.univariate.sorted_cut import cut_sorted
    from microagg.methods.variable_size.spanning_tree import minimum_spanning_tree
    from microagg.partition import partition
    from microagg.plan import Block, Column, Plan, Roles
    from microagg.protect import protect
    from microagg.registry import methods
    from microagg.release import Release
    from microagg.results import Partition
    from microagg.tables.files import CsvFormat
    from microagg.verify import Verification, verify

__version__ = VERSION

__all__ = [
    "Block",
    "Caution",
    "Column",
    "CsvFormat",
    "DisclosureRiskWarning",
    "Evidence",
    "InputError",
    "MicroaggError",
    "Microaggregator",
    "Partition",
    "Plan",
    "Prices",
    "RejectedError",
    "Release",
    "Roles",
    "StopSearch",
    "TableError",
    "Verification",
    "VerificationError",
    "compare",
    "count_partitions",
    "cut",
    "cut_sorted",
    "draft",
    "lower_bound",
    "methods",
    "minimum_spanning_tree",
    "order",
    "partition",
    "prices",
    "protect",
    "protect_file",
    "refine",
    "risk",
    "search",
    "simulate_clusters",
    "suggest",
    "utility",
    "verify",
]


# Where each name is; looked up when first used, so that importing stays fast.
_HOMES = {
    "Block": "plan",
    "Caution": "evidence.sentences",
    "Column": "plan",
    "CsvFormat": "tables.files",
    "Evidence": "evidence",
    "Microaggregator": "estimator",
    "Partition": "results",
    "Plan": "plan",
    "Prices": "comparing.pricing",
    "Release": "release",
    "Roles": "plan",
    "Verification": "verify",
    "compare": "comparing.comparison",
    "count_partitions": "counts",
    "cut": "methods.ordering.cut",
    "cut_sorted": "methods.univariate.sorted_cut",
    "draft": "draft",
    "lower_bound": "improve",
    "methods": "registry",
    "minimum_spanning_tree": "methods.variable_size.spanning_tree",
    "order": "methods.ordering.orders",
    "partition": "partition",
    "prices": "comparing.pricing",
    "protect": "protect",
    "protect_file": "job",
    "refine": "improve",
    "risk": "measure.risk",
    "search": "comparing.searching",
    "simulate_clusters": "datasets",
    "suggest": "comparing.comparison",
    "utility": "measure.utility",
    "verify": "verify",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"microagg.{_HOMES[name]}"), name)
    if name == "spark":
        return import_module("microagg.spark")
    raise AttributeError(f"module 'microagg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps public functions that share their name with a module, such as protect, in their place."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a module puts it into its package under its name.
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
