"""Protect microdata by microaggregation.

``protect`` a data frame, ``partition`` a matrix, list the ``methods``; the command ``microagg``
does the same for files. See the README for a tour.
"""

from importlib import import_module
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
    from microagg.algorithms.ordering.cut import cut, order
    from microagg.algorithms.result import Partition
    from microagg.algorithms.univariate.sorted_cut import cut_sorted
    from microagg.algorithms.variable_size.spanning_tree import minimum_spanning_tree
    from microagg.comparing.attack import attack
    from microagg.comparing.comparison import compare
    from microagg.comparing.prices import Prices, prices
    from microagg.comparing.search import search
    from microagg.datasets import simulate_clusters
    from microagg.drafting.draft import draft
    from microagg.engines.memory.protect import protect
    from microagg.engines.memory.release import Release
    from microagg.estimator import Microaggregator
    from microagg.evidence import Evidence
    from microagg.evidence.sentences import Caution
    from microagg.formats.layouts import CsvFormat
    from microagg.grouping.partition import count_partitions, lower_bound, partition, refine
    from microagg.job.run import protect_file
    from microagg.measure.fidelity import fidelity
    from microagg.measure.risk import risk
    from microagg.measure.utility import utility
    from microagg.measure.verify import Verification, verify
    from microagg.plan.block import Block
    from microagg.plan.column import Column
    from microagg.plan.plan import Plan
    from microagg.plan.registry import methods
    from microagg.plan.sections import Roles

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
    "attack",
    "compare",
    "count_partitions",
    "cut",
    "cut_sorted",
    "draft",
    "fidelity",
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
    "utility",
    "verify",
]


# Where each name is; looked up when first used, so that importing stays fast.
_HOMES = {
    "Block": "plan.block",
    "Caution": "evidence.sentences",
    "Column": "plan.column",
    "CsvFormat": "formats.layouts",
    "Evidence": "evidence",
    "Microaggregator": "estimator",
    "Partition": "algorithms.result",
    "Plan": "plan.plan",
    "Prices": "comparing.prices",
    "Release": "engines.memory.release",
    "Roles": "plan.sections",
    "Verification": "measure.verify",
    "attack": "comparing.attack",
    "compare": "comparing.comparison",
    "count_partitions": "grouping.partition",
    "cut": "algorithms.ordering.cut",
    "cut_sorted": "algorithms.univariate.sorted_cut",
    "draft": "drafting.draft",
    "fidelity": "measure.fidelity",
    "lower_bound": "grouping.partition",
    "methods": "plan.registry",
    "minimum_spanning_tree": "algorithms.variable_size.spanning_tree",
    "order": "algorithms.ordering.cut",
    "partition": "grouping.partition",
    "prices": "comparing.prices",
    "protect": "engines.memory.protect",
    "protect_file": "job.run",
    "refine": "grouping.partition",
    "risk": "measure.risk",
    "search": "comparing.search",
    "simulate_clusters": "datasets",
    "utility": "measure.utility",
    "verify": "measure.verify",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"microagg.{_HOMES[name]}"), name)
    if name == "spark":
        return import_module("microagg.spark")
    raise AttributeError(f"module 'microagg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
