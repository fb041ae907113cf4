"""The released values of a chunk after the last turn, and the sums of all chunks together."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Labels
from microagg.engines.aggregates import (
    Shared,
    Sums,
    shared_values,
    sums_of,
    swapped_values,
    whole_groups,
)
from microagg.engines.chunks import requirements
from microagg.engines.encoding import Encoding, Records, Words
from microagg.engines.write_and_count import as_required
from microagg.evidence.measured import Required
from microagg.grouping.require.requirement import Requirement
from microagg.kernels.labels import canonical_labels
from microagg.releasing.swap import Swapping


class Finished(NamedTuple):
    """The released values of a chunk, and their figures."""

    records: Records
    labels: Labels  # groups 0, 1, … of the records
    shared: Shared
    sums: Sums
    sampled: Labels  # records of whole groups, for measures of a sample


def finish_chunk(
    encoding: Encoding, words: Words, groups: Labels, number: int, secret: bytes
) -> Finished:
    """Release the records of a chunk by their groups, after the last turn.

    Parameters
    ----------
    words : of the records
    groups : (n,) group of each record
    number : of the chunk
    secret : of the operating system's random numbers, by which values are swapped; kept nowhere
    """
    records, labels = encoding.records_of(words), canonical_labels(groups)
    rules, states = requirements(encoding, records), None
    if encoding.is_swapped:
        swapping = Swapping(secret, encoding.strata_of(records), rules, str(number))
        shared, states = swapped_values(encoding, records, labels, swapping, number)
    else:
        shared = shared_values(encoding, records, labels)
    sums = sums_of(encoding, records, labels, shared, rules, states)
    return Finished(records, labels, shared, sums, whole_groups(encoding, records, labels))


def _rules_of(encoding: Encoding) -> list[Requirement]:
    """Return what groups must satisfy in addition to k, for no records in particular."""
    return requirements(
        encoding, encoding.records_of(np.zeros((0, encoding.width), dtype=np.uint64))
    )


def added_up(encoding: Encoding, chunks: Iterable[Sums]) -> Sums:
    """Add up the sums of chunks."""
    rules = _rules_of(encoding)
    return reduce(lambda one, other: one.merge(other, rules), chunks)


def required(encoding: Encoding, sums: Sums) -> tuple[Required, ...]:
    """Return the requirements in addition to k, with the figure of the worst group of all."""
    return tuple(
        as_required(rule, rule.say(worst), kept)
        for rule, worst, kept in zip(_rules_of(encoding), sums.worst, sums.holds, strict=True)
    )
