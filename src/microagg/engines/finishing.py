"""What the groups of a block release once the last turn is done, and what is told of all blocks together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Labels
from microagg.engines.aggregates import Shared, Sums, shared_values, sums_of, whole_groups
from microagg.engines.blocks import requirements
from microagg.engines.encoding import Recipe, Records, Words
from microagg.grouping.require.requirement import Requirement
from microagg.kernels.labels import canonical_labels

__all__ = ["Finished", "added_up", "finish_block", "rules_of"]


class Finished(NamedTuple):
    """What the groups of a block release, and what is told of them."""

    records: Records
    labels: Labels  # groups 0, 1, … of the records
    shared: Shared
    sums: Sums
    sampled: Labels  # records of whole groups, for measures of a sample


def finish_block(recipe: Recipe, words: Words, groups: Labels) -> Finished:
    """Aggregate the records of a block by their groups, after the last turn."""
    records, labels = recipe.records_of(words), canonical_labels(groups)
    shared = shared_values(recipe, records, labels)
    sums = sums_of(recipe, records, labels, shared, requirements(recipe, records))
    return Finished(records, labels, shared, sums, whole_groups(recipe, records, labels))


def rules_of(recipe: Recipe) -> list[Requirement]:
    """What groups must satisfy beside k, of no records in particular."""
    return requirements(recipe, recipe.records_of(np.zeros((0, recipe.width), dtype=np.uint64)))


def added_up(recipe: Recipe, blocks: Iterable[Sums]) -> Sums:
    """Add up what blocks tell of themselves."""
    rules = rules_of(recipe)
    return reduce(lambda one, other: one.merge(other, rules), blocks)
