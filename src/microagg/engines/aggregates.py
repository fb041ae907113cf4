"""What the groups of a chunk release, and how it is put into the batches of a table.

The rules are those of :mod:`microagg.releasing.release_values`; here they work on records of one
chunk, with what is known of the whole table, and give plain numbers. :func:`put_back` turns these into
columns of their own type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.algorithms.result import GroupCount
from microagg.base.typing import Floats, Labels
from microagg.encode.batch_statistics import Moments
from microagg.encode.recoded_table import Recoded
from microagg.encode.space import names_of_levels
from microagg.engines.chunks import requirements
from microagg.engines.encoding import Coder, Encoding, PackedRows, Records
from microagg.engines.write_and_count import as_required, counted_file
from microagg.errors import VerificationError
from microagg.evidence.measured import CountedFile
from microagg.formats.atomic import sha256
from microagg.grouping.require.requirement import Requirement
from microagg.kernels.labels import canonical_labels
from microagg.measure.verify import Verification
from microagg.plan.column import CATEGORIES
from microagg.releasing.release_values import (
    MissingCounts,
    by_columns,
    native_column,
    release_records,
    released_weights,
    with_codes,
)
from microagg.releasing.rounding import Rounding, rounding_of
from microagg.releasing.swap import ReleaseTerms, Swapping
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable

_MISSING = np.uint64(0x7FF8000000000000)  # the bits of a plain NaN
_SAMPLED = 40_000  # records of whole groups in which a release is measured, about


GROUP = ("group",)  # name of the number of a record's group, which no file has


class ReleasedValues(NamedTuple):
    """What each record of a chunk releases: the same for all records of a group, or swapped values."""

    values: Floats  # (n, columns), NaN where missing
    states: Labels  # (n, columns)
    weights: Floats | None  # the mean of the group, or dealt, where that is released
    dealt: PackedRows | None = None
    """(n, …) of swapped values, what no file tells: see :func:`dealt_columns`."""

    def packed(self) -> PackedRows:
        """As whole numbers of 64 bits, a row a record: values, the weight, and what was dealt.

        A missing value has its state in the bits that tell one NaN from another.
        """
        missing = _MISSING + self.states.astype(np.uint64)
        parts = [np.where(np.isnan(self.values), missing, self.values.view(np.uint64))]
        if self.weights is not None:
            parts.append(np.ascontiguousarray(self.weights).view(np.uint64)[:, None])
        if self.dealt is not None:
            parts.append(self.dealt)
        return np.hstack(parts)

    @classmethod
    def of(cls, packed: PackedRows, encoding: Encoding) -> ReleasedValues:
        """Read what :meth:`packed` wrote."""
        after = len(encoding.coders)
        bits, weights = np.ascontiguousarray(packed[:, :after]), None
        values = bits.view(np.float64)
        states = np.where(np.isnan(values), bits ^ _MISSING, 0).astype(np.int64)
        if encoding.releases_weight:
            weights = np.ascontiguousarray(packed[:, after]).view(np.float64)
            after += 1
        return cls(values, states, weights, packed[:, after:] if encoding.is_swapped else None)


def n_released(encoding: Encoding) -> int:
    """Return how many numbers :meth:`ReleasedValues.packed` has for each record."""
    return len(encoding.coders) + encoding.releases_weight + len(dealt_columns(encoding))


def dealt_columns(
    encoding: Encoding, written: Mapping[Any, Any] = MappingProxyType({})
) -> list[Any]:
    """Name what travels with each row of swapped values, since no file tells it.

    :data:`GROUP` is the number of the row's group. If k counts units, ``(unit, column)`` is, for each
    promise, the key of the unit whose value the row got in the promise's first column: a value stands for the
    units that had it, whatever rows it was dealt to. Names are those of a file, as for
    :meth:`microagg.plan.plan.Plan.promises`.
    """
    if not encoding.is_swapped:
        return []
    if encoding.unit is None:
        return [GROUP]
    promises = encoding.plan.promises(written)
    return [GROUP, *((promise.unit, *list(promise.columns or ())[:1]) for promise in promises)]


def _shared_values(
    encoding: Encoding, records: Records, labels: Labels, swapping: Swapping, number: int
) -> tuple[ReleasedValues, Labels]:
    """Release the records of a chunk by their groups; also return their states before values are dealt.

    Each chunk has at least k units of each of its strata, since it has whole groups. What was dealt is
    refused if it is not what a random dealing of the same values would be.
    """
    plan = encoding.plan
    # Dates count from the first of the chunk: so far from 0, microseconds are at the end of a double.
    variables, origins = [], np.zeros(len(encoding.coders))
    for j, coder in enumerate(encoding.coders):
        column = np.ascontiguousarray(records.values[:, j])
        if coder.variable.kind == "date" and not np.isnan(column).all():
            origins[j] = np.nanmin(column)
        variables.append(replace(coder.variable, values=column - origins[j]))
    relative_weights = encoding.relative_weights(records)
    units = None if records.units is None else np.unique(records.units, return_inverse=True)[1]
    roundings = [
        _rounding(encoding, coder, relative_weights is not None, origin)
        for coder, origin in zip(encoding.coders, origins.tolist(), strict=True)
    ]
    cells = encoding.cell_of(records)
    terms = ReleaseTerms(encoding.block, plan, relative_weights, units, swapping, cells)
    values, states, dealt = release_records(
        variables, encoding.states(records), [labels] * len(variables), roundings, terms
    )
    weights = None
    if encoding.releases_weight and plan.weight is not None and records.weights is not None:
        spread = encoding.weight_spread
        weights, of_donors = released_weights(records.weights, labels, spread, terms)
        if dealt is not None and of_donors is not None:
            dealt = dealt.with_column(plan.weight.column, *of_donors)
    shared = ReleasedValues(values + origins, states, weights)
    if dealt is None:
        return shared, states
    fault = dealt.fault()
    if fault is not None:
        raise VerificationError(f"In a part of the table {fault}. Nothing was written.")
    travels = [(number << 32) + labels]
    for _, name in dealt_columns(encoding)[1:]:
        assert records.units is not None
        travels.append(records.units[dealt.donors[list(dealt.names).index(name)]])
    extra = np.column_stack(travels).view(np.uint64)
    before = np.column_stack([column[1] for column in dealt.before[: len(variables)]])
    return shared._replace(dealt=extra), before


def _rounding(
    encoding: Encoding, coder: Coder, weighted: bool = False, origin: float = 0.0
) -> Rounding:
    """Return how a column is rounded, of which values are counted from an origin."""
    steps = coder.steps.from_origin(origin)
    return rounding_of(coder.variable, encoding.plan, encoding.block, steps, coder.spread, weighted)


def put_back(encoding: Encoding, table: pa.Table, shared: ReleasedValues) -> pa.Table:
    """Put released values into a batch of the table, whose rows they belong to, in the columns' own types.

    The other columns of the batch come out as they are, or recoded.
    """
    frame = Frame(encoding.recoded(table)[0])
    new: dict[Any, Any] = {}
    for j, (coder, variable) in enumerate(zip(encoding.coders, encoding.read(frame), strict=True)):
        column = frame, variable, np.ascontiguousarray(shared.values[:, j]), shared.states[:, j]
        if coder.variable.kind in CATEGORIES:
            new[coder.variable.name] = _native_category(*column, coder.variable.admissible)
        else:
            new[coder.variable.name] = native_column(*column, _rounding(encoding, coder).whole)
    if shared.weights is not None and encoding.plan.weight is not None:
        name = encoding.plan.weight.column
        new[name] = frame.doubles_like(name, shared.weights)
    released = frame.with_columns(new)
    gone = set(encoding.plan.drop)
    if encoding.plan.weight is not None and encoding.plan.weight.release == "drop":
        gone.add(encoding.plan.weight.column)
    return released.select([name for name in released.column_names if name not in gone])


def _native_category(
    frame: Frame, variable: Variable, values: Floats, states: Labels, admissible: Any
) -> Any:
    """Make the released column of levels, which the batch need not have.

    A type with an order lists the same levels in all batches: those that are ``admissible``.
    """
    at = pa.array(np.nan_to_num(values).astype(np.int64), mask=np.isnan(values))
    levels = names_of_levels(variable)
    has_nodes = len(levels) > len(variable.levels)
    array = pa.array(list(map(str, levels)) if has_nodes else levels).take(at)
    if (states >= 2).any():
        array = with_codes(array, states, variable.codes)
    kind = frame.arrow_column(variable.name).type
    if not frame.is_ordered(variable.name):
        return array.cast(kind)
    fit = np.flatnonzero(admissible).tolist()
    listed = pa.array([*(levels[at] for at in fit), *map(str, variable.codes)], kind.value_type)
    numbers = pc.index_in(array.cast(kind.value_type), value_set=listed).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(numbers, listed, ordered=True)


def listing_released_levels(encoding: Encoding, released: Iterable[Floats]) -> Encoding:
    """Let a type with an order list only levels that some group releases; others would reveal originals.

    ``released`` are the values of groups, (groups, columns).
    """
    coders = list(encoding.coders)
    ordinal = [j for j, coder in enumerate(coders) if coder.variable.kind == "ordinal"]
    lists = {j: np.zeros(len(coders[j].variable.levels), bool) for j in ordinal}
    for values in released if lists else ():
        for j, seen in lists.items():
            seen[values[~np.isnan(values[:, j]), j].astype(np.int64)] = True
    for j, seen in lists.items():
        coders[j] = coders[j]._replace(variable=replace(coders[j].variable, admissible=seen))
    return replace(encoding, coders=tuple(coders))


@dataclass(eq=False)
class Sums:
    """Figures of a release, added up over the records of a chunk; sums of chunks add up further."""

    within: Floats
    """(columns,) squares about the means of groups, see :class:`microagg.measure.utility.LossScale`."""
    released: Floats
    """(columns,) the same of squared distances of records to what they release."""
    groups: GroupCount
    cells: Labels
    """(columns, 4): missing, blanked, filled, codes lost, as in ``MissingCounts``."""
    after: list[Moments]
    """Of the released numbers of each column."""
    worst: list[float]
    """The worst figure of each requirement."""
    holds: list[bool]

    def merge(self, other: Sums, rules: Sequence[Requirement]) -> Sums:
        """Add those of another chunk; ``rules`` are the requirements, of any records."""
        return Sums(
            self.within + other.within,
            self.released + other.released,
            self.groups.merge(other.groups),
            self.cells + other.cells,
            [a.merge(b) for a, b in zip(self.after, other.after, strict=True)],
            [r.worse(a, b) for r, a, b in zip(rules, self.worst, other.worst, strict=True)],
            [a and b for a, b in zip(self.holds, other.holds, strict=True)],
        )


def _sums_of(
    encoding: Encoding,
    records: Records,
    labels: Labels,
    shared: ReleasedValues,
    states: Labels,
    rules: Sequence[Requirement],
) -> Sums:
    """Add up the figures of the records of a chunk; ``states`` are those before values are dealt."""
    weights = encoding.relative_weights(records)
    w = np.ones(len(records)) if weights is None else weights
    columns = len(encoding.coders)
    within, released = np.zeros(columns), np.zeros(columns)
    cells, after = np.zeros((columns, 4), dtype=np.int64), [Moments()] * columns
    original_states = encoding.original_states(records)
    recoded = np.cumsum([coder.recoder is not None for coder in encoding.coders]) - 1

    def add(j: int) -> None:
        coder = encoding.coders[j]
        x, y = (np.ascontiguousarray(M[:, j]) for M in (records.values, shared.values))
        against = y  # the original, of which a recoded column may have other levels
        if coder.recoder is not None:
            x = np.ascontiguousarray(records.originals[:, recoded[j]])
            against = Recoded(coder.recoder, coder.before).stands_for(y, coder.variable)
        within[j], released[j] = coder.losses.shares(x, against, labels, w)
        cells[j] = MissingCounts.of(original_states[:, j], states[:, j])
        kept = ~np.isnan(y) & (coder.variable.kind not in CATEGORIES)
        after[j] = Moments().add(y[kept], None if weights is None else w[kept])

    by_columns(add, columns)
    return Sums(
        within,
        released,
        GroupCount.of(np.bincount(labels)),
        cells,
        after,
        [rule.figure(labels) for rule in rules],
        [rule.holds(labels) for rule in rules],
    )


class Finished(NamedTuple):
    """The released values of a chunk, and their figures."""

    records: Records
    labels: Labels  # groups 0, 1, … of the records
    shared: ReleasedValues
    sums: Sums
    sampled: Labels  # records of whole groups, for measures of a sample


def finish_chunk(
    encoding: Encoding, packed: PackedRows, groups: Labels, number: int, secret: bytes
) -> Finished:
    """Release the records of a chunk by their groups, after the last turn.

    ``secret`` are random numbers of the operating system, by which values are swapped; it is kept nowhere.
    """
    records, labels = encoding.records_of(packed), canonical_labels(groups)
    rules = requirements(encoding, records)
    swapping = Swapping(secret, encoding.strata[records.cells], rules, str(number))
    shared, states = _shared_values(encoding, records, labels, swapping, number)
    sums = _sums_of(encoding, records, labels, shared, states, rules)
    first = np.unique(labels, return_index=True)[1]
    # By the second half: the first record of a group is the one whose first half is least.
    limit = np.uint64(min(_SAMPLED / encoding.records, 1.0) * (2.0**64 - 2048))
    sampled = np.flatnonzero((records.keys[first, 1] < limit)[labels])
    return Finished(records, labels, shared, sums, sampled)


def added_up(encoding: Encoding, chunks: Iterable[Sums]) -> Sums:
    """Add up the sums of chunks."""
    rules = _rules_of(encoding)
    return reduce(lambda one, other: one.merge(other, rules), chunks)


def counted_in_parts(
    encoding: Encoding, sums: Sums, part: Path, target: Path, verified: Sequence[Verification]
) -> CountedFile:
    """Return what was counted in a temporary file, with the worst figures of requirements, if it holds.

    Parameters
    ----------
    encoding, sums : of the whole table
    part, target : the temporary file, and the name that it will have
    verified : what was counted in it of each promise
    """
    rules = zip(_rules_of(encoding), sums.worst, sums.holds, strict=True)
    met = tuple(as_required(rule, rule.say(worst), holds) for rule, worst, holds in rules)
    return counted_file(target, verified, sha256(part), met, encoding.records)


def _rules_of(encoding: Encoding) -> list[Requirement]:
    """Return what groups must satisfy in addition to k, for no records in particular."""
    return requirements(encoding, encoding.records_of(np.zeros((0, encoding.width), np.uint64)))
