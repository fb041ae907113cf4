"""What the workers of a distributed engine do once groups are there: released rows, and who is linked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from microagg.errors import InputError
from microagg.groups import Floats, Labels
from microagg.measure.linkage import radii
from microagg.scale_out.aggregates import (
    Shared,
    put_back,
)
from microagg.scale_out.counting import row_keys
from microagg.scale_out.recipe import Recipe
from microagg.scale_out.worker_tables import Batches, Layout, gathered, guarded, streaming, words_of
from microagg.scale_out.workers import Seen

__all__ = ["Keyed", "Rivals", "Rows", "rows_changed"]


def rows_changed() -> InputError:
    """Say that a table was another one when it was read again."""
    return InputError(
        "A table is read several times and must be the same each time; rows were found that were "
        "not there before. Leave out what is random, or write the table to a file and read that."
    )


@dataclass(frozen=True, eq=False)
class Keyed:
    """Rows → those that are released, with their keys and the bucket in which they find their values."""

    recipe: Recipe
    layout: Layout
    buckets: int

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            table = self.layout.told_apart(rows)
            kept = self.recipe.kept(self.recipe.variables(table))
            keys = row_keys([table.column(j) for j in range(table.num_columns)]).view(np.int64)
            out = rows.select([f"c{j}" for j in range(len(self.layout.names))])
            for at in (0, 1):
                own = pa.array(np.ascontiguousarray(keys[:, at]))
                out = out.append_column(f"h{at + 1}", own)
            # As Spark's pmod has it: never below 0.
            out = out.append_column("bucket", pa.array(np.mod(keys[:, 0], self.buckets)))
            yield out if kept is None else out.filter(pa.array(kept))


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a bucket, and all values released for them → released rows.

    Both are brought into the order of the keys. Rows with the same key are equal in all columns, so
    that it does not matter which of them gets which of their values.
    """

    recipe: Recipe
    layout: Layout
    schema: pa.Schema
    """Of the released rows."""
    unit: int | None
    """Place of the unit in the rows, if it is dropped from what is released."""

    @guarded
    def __call__(self, rows: pa.Table, values: pa.Table) -> pa.Table:
        """Do so for one bucket."""
        order, keys = _by_key(rows)
        other, their_keys = _by_key(values)
        if not np.array_equal(keys, their_keys):
            raise rows_changed()
        rows, values = rows.take(pa.array(order)), values.take(pa.array(other))
        shared = Shared.of(words_of(values, "s"), len(self.recipe.coders))
        out = put_back(self.recipe, self.layout.table(rows), shared)
        columns = list(out.columns)
        if self.unit is not None:
            columns.append(rows.column(f"c{self.unit}"))
        cast = [c.cast(field.type) for c, field in zip(columns, self.schema, strict=True)]
        return pa.table(cast, schema=self.schema)


def _by_key(rows: pa.Table) -> tuple[Labels, Labels]:
    """Order of the keys, in which values that share a key follow each other, and the sorted keys."""
    keys = np.column_stack([rows.column(name).to_numpy() for name in ("h1", "h2")])
    more = tuple(words_of(rows, "s").T[::-1])
    order = np.lexsort((*more, keys[:, 1], keys[:, 0]))
    return order, keys[order]


@dataclass(frozen=True, eq=False)
class Rivals:
    """Classes of released records → how many are nearer to each sampled record than its twin, and as near."""

    recipe: Recipe
    seen: Seen
    with_known: bool
    """Whether records are compared with those of equal known values only."""

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        n = len(self.seen.before)
        counts = np.zeros((n, 2), dtype=np.int64)
        for rows in gathered(batches):
            shared = Shared.of(words_of(rows, "s"), len(self.recipe.coders))
            points = self.recipe.seen_by_attacker(shared.values, shared.states)
            sizes = rows.column("records").to_numpy()
            if not self.with_known:
                counts += _rivals(self.seen, points, sizes)
                continue
            known = rows.column("known").to_numpy()
            theirs = np.ascontiguousarray(self.seen.known[:, 0]).view(np.int64)
            for value in np.intersect1d(known, theirs).tolist():
                own, mine = known == value, np.flatnonzero(theirs == value)
                counts[mine] += _rivals(self.seen.taken(mine), points[own], sizes[own])
        yield pa.table({"row": np.arange(n), "nearer": counts[:, 0], "as_near": counts[:, 1]})


def _rivals(seen: Seen, points: Floats, sizes: Labels) -> Labels:
    """Records nearer than a record's own twin, and as near but for rounding, shape (n, 2)."""
    from microagg.kernels.kd_tree import build, for_thread
    from microagg.kernels.rivals import credit_links

    n = len(seen.before)
    inner, outer = radii(seen.before, seen.after)
    tree = for_thread(build(np.ascontiguousarray(points), np.arange(len(points))))
    found = np.zeros((n, 2), dtype=np.int64)
    for at, most in enumerate((np.nextafter(inner, -1.0), outer)):
        credit = np.zeros(n)  # one over the records within, none of which is too near
        credit_links(seen.before, np.arange(n), np.full(n, -1.0), most, tree, sizes, credit)
        found[:, at] = np.rint(np.divide(1.0, credit, out=np.zeros(n), where=credit > 0))
    found[:, 1] -= found[:, 0]
    return found
