"""The way of a table through chunks in one process and one loop: what every engine must give."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from microagg.encode.recoded_table import complete_rows
from microagg.engines.aggregates import ReleasedValues, Sums, put_back, shared_values, sums_of
from microagg.engines.chunks import (
    in_sample,
    plan_chunks,
    requirements,
    sample_share,
    work_on_chunk,
)
from microagg.engines.fit import encoding_of, join_rare_patterns
from microagg.engines.table_summary import summarise
from microagg.kernels.labels import canonical_labels
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame


class _OneBatch(NamedTuple):
    table: pa.Table

    def gather(self, encoding, choose, work):
        return work([choose(encoding.packed(self.table))])


class Alone(NamedTuple):
    data: pa.Table
    sums: Sums
    places: int
    rounds: int


def protect_alone(table: pa.Table, plan: Plan, leaf: int) -> Alone:
    """Protect a table; released rows are in the order of the original ones."""
    kept = complete_rows(Frame(table), plan, is_csv=False)
    complete = table if kept is None else table.filter(pa.array(kept))
    encoding = encoding_of(plan, summarise(complete, plan))
    encoding = join_rare_patterns(_OneBatch(table), encoding)
    rows = np.arange(table.num_rows) if kept is None else np.flatnonzero(kept)
    packed = np.column_stack([encoding.packed(table), np.arange(len(rows), dtype=np.uint64)])
    records = encoding.records_of(packed)
    sample = in_sample(records.keys, sample_share(encoding.records))
    chunks = plan_chunks(encoding, packed[sample][:, : encoding.width], leaf)
    where = encoding.coordinates(records), encoding.cell_of(records), records.keys
    places = chunks.assign(*where)

    def why_not(some: list[int]) -> str:
        inside = encoding.records_of(packed[np.isin(places, some)])
        sound = len(inside) >= encoding.k and all(
            rule.feasible() for rule in requirements(encoding, inside)
        )
        return "" if sound else "too few"

    chunks = chunks.with_sound(why_not)
    number, groups = chunks.assign(*where), None
    for turn in range(chunks.rounds + 1):
        moved = []
        for chunk in np.unique(number).tolist():
            inside = number == chunk
            own = None if groups is None else groups[inside]
            moved.append(work_on_chunk(encoding, chunks, chunk, packed[inside], own, turn))
        if turn < chunks.rounds:
            number = np.concatenate([one.chunks for one in moved])
            groups = np.concatenate([one.groups for one in moved])
            packed = np.concatenate([one.packed for one in moved])
    out, sums = np.empty((len(rows), 0)), []
    for one in moved:
        inside, labels = encoding.records_of(one.packed), canonical_labels(one.groups)
        shared, states = shared_values(encoding, inside, labels)
        rules = requirements(encoding, inside)
        sums.append(sums_of(encoding, inside, labels, shared, states, rules))
        if not out.shape[1]:
            out = np.empty((len(rows), shared.packed().shape[1]), dtype=np.uint64)
        out[inside.extra[:, 0].astype(np.int64)] = shared.packed()
    shared = ReleasedValues.of(out, encoding)
    data = put_back(encoding, table.take(pa.array(rows)), shared)
    rules = requirements(encoding, records.taken(slice(0)))
    total = reduce(lambda one, other: one.merge(other, rules), sums)
    return Alone(data, total, chunks.n_places(), chunks.rounds)
