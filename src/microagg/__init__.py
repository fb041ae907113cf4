"""Protect microdata by microaggregation.

``protect`` a data frame, ``partition`` a matrix, list the ``methods``; the command ``microagg``
does the same for files. See the README for a tour.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from microagg.version import VERSION

if TYPE_CHECKING:
    from microagg.algorithms.ordering.cut import cut as cut
    from microagg.algorithms.ordering.cut import order as order
    from microagg.algorithms.result import Partition as Partition
    from microagg.algorithms.univariate.sorted_cut import cut_sorted as cut_sorted
    from microagg.algorithms.variable_size.spanning_tree import (
        minimum_spanning_tree as minimum_spanning_tree,
    )
    from microagg.comparing.attack import attack as attack
    from microagg.comparing.comparison import compare as compare
    from microagg.comparing.prices import Prices as Prices
    from microagg.comparing.prices import prices as prices
    from microagg.comparing.search import search as search
    from microagg.datasets import simulate_clusters as simulate_clusters
    from microagg.drafting.draft import draft as draft
    from microagg.engines.memory.protect import protect as protect
    from microagg.engines.memory.release import Release as Release
    from microagg.errors import DisclosureRiskWarning as DisclosureRiskWarning
    from microagg.errors import InputError as InputError
    from microagg.errors import MicroaggError as MicroaggError
    from microagg.errors import RejectedError as RejectedError
    from microagg.errors import StopSearch as StopSearch
    from microagg.errors import TableError as TableError
    from microagg.errors import VerificationError as VerificationError
    from microagg.estimator import Microaggregator as Microaggregator
    from microagg.evidence import Evidence as Evidence
    from microagg.evidence.sentences import Caution as Caution
    from microagg.formats.layouts import CsvFormat as CsvFormat
    from microagg.grouping.partition import count_partitions as count_partitions
    from microagg.grouping.partition import lower_bound as lower_bound
    from microagg.grouping.partition import partition as partition
    from microagg.grouping.partition import refine as refine
    from microagg.job.run import protect_file as protect_file
    from microagg.measure.fidelity import fidelity as fidelity
    from microagg.measure.risk import risk as risk
    from microagg.measure.utility import utility as utility
    from microagg.measure.verify import Verification as Verification
    from microagg.measure.verify import verify as verify
    from microagg.plan.block import Block as Block
    from microagg.plan.column import Column as Column
    from microagg.plan.plan import Plan as Plan
    from microagg.plan.registry import methods as methods
    from microagg.plan.sections import Roles as Roles

__version__ = VERSION

# The names of each module; loaded when first used, so that importing stays fast.
_NAMES_OF = {
    "algorithms.ordering.cut": "cut order",
    "algorithms.result": "Partition",
    "algorithms.univariate.sorted_cut": "cut_sorted",
    "algorithms.variable_size.spanning_tree": "minimum_spanning_tree",
    "comparing.attack": "attack",
    "comparing.comparison": "compare",
    "comparing.prices": "Prices prices",
    "comparing.search": "search",
    "datasets": "simulate_clusters",
    "drafting.draft": "draft",
    "engines.memory.protect": "protect",
    "engines.memory.release": "Release",
    "errors": "DisclosureRiskWarning InputError MicroaggError RejectedError StopSearch TableError "
    "VerificationError",
    "estimator": "Microaggregator",
    "evidence": "Evidence",
    "evidence.sentences": "Caution",
    "formats.layouts": "CsvFormat",
    "grouping.partition": "count_partitions lower_bound partition refine",
    "job.run": "protect_file",
    "measure.fidelity": "fidelity",
    "measure.risk": "risk",
    "measure.utility": "utility",
    "measure.verify": "Verification verify",
    "plan.block": "Block",
    "plan.column": "Column",
    "plan.plan": "Plan",
    "plan.registry": "methods",
    "plan.sections": "Roles",
}
_HOMES = {name: module for module, names in _NAMES_OF.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"microagg.{_HOMES[name]}"), name)
    if name == "spark":
        return import_module("microagg.spark")
    raise AttributeError(f"module 'microagg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
