"""What the workers of a distributed engine do: Arrow tables in, Arrow tables out, nothing kept between.

An engine sends these objects to its workers and hands them batches, or all rows with one key. Whatever it
does twice, or in another order, gives the same. Columns have plain names on the way: ``c0``, ``c1``, … are
those of the user, ``w0``, … the words of a record as whole numbers, ``s0``, … the words of what it releases.

Errors that leave a worker hold no value of the table, for they end up in logs.
"""

from __future__ import annotations

import functools
import os
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.encode.inertia import corners
from microagg.encode.nominal import simplex
from microagg.errors import InputError, MicroaggError, fault_words
from microagg.groups import Floats, Labels, canonical_labels
from microagg.kernels.threads import limit_threads
from microagg.measure.linkage import radii
from microagg.methods.univariate.chain import Starts, trace
from microagg.methods.univariate.stretches import Crossing, crossing
from microagg.plan import Plan
from microagg.scale_out.aggregates import (
    Shared,
    Sums,
    put_back,
    shared_values,
    sums_of,
    whole_groups,
)
from microagg.scale_out.blocks import BlockPlan, in_sample, plan_blocks, requirements, work_on_block
from microagg.scale_out.counting import row_keys
from microagg.scale_out.one_column import Splits, sorted_words, split_column
from microagg.scale_out.rare import Rare, with_rare_joined
from microagg.scale_out.recipe import Recipe, Records, Words
from microagg.scale_out.summaries import TableSummary, summarise

__all__ = [
    "TOLD",
    "Among",
    "Assign",
    "Cut",
    "Encode",
    "Ends",
    "Feasible",
    "Finish",
    "FinishColumn",
    "InOrder",
    "JoinRare",
    "Keyed",
    "Layout",
    "Place",
    "PlanBlocks",
    "PlanSplits",
    "RareRecords",
    "Rivals",
    "Rows",
    "Sampled",
    "Seen",
    "Summaries",
    "Told",
    "Work",
    "guarded",
    "pack",
    "unpack",
    "word_columns",
    "words_of",
]

AT_ONCE = 1 << 17  # rows of the tables into which the batches of an engine are gathered
TOLD = "told"  # column of what a block tells of itself, at one of its records

Batches = Iterable[pa.RecordBatch]


def pack(thing: object) -> bytes:
    """Something small for the driver, as bytes; sums over bins are mostly zeros."""
    return zlib.compress(pickle.dumps(thing), 1)


def unpack(given: bytes) -> Any:
    """Read what :func:`pack` wrote."""
    return pickle.loads(zlib.decompress(given))


def guarded(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let errors out only in words that hold no value, and use the processors of one task."""

    @functools.wraps(work)
    def run(*given: Any) -> Any:
        limit_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))  # which engines set for a task
        try:
            return work(*given)
        except MicroaggError:
            raise
        except Exception as error:
            if os.environ.get("MICROAGG_TRACEBACK"):
                raise
            raise MicroaggError(fault_words(error)) from None

    return run


def streaming(work: Callable[..., Iterator[pa.Table]]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """The same for work that goes from batch to batch."""
    step = guarded(lambda found: next(found, None))

    @functools.wraps(work)
    def run(*given: Any) -> Iterator[pa.RecordBatch]:
        found = work(*given)
        while (table := step(found)) is not None:
            yield from table.to_batches()

    return run


@dataclass(frozen=True)
class Layout:
    """The user's columns, and how rows of the engine become a table of these."""

    names: tuple[str, ...]
    nested: tuple[int, ...] = ()
    """Places of lists, maps and records, which are told apart by their text in columns t0, t1, …."""

    def table(self, rows: pa.Table) -> pa.Table:
        """The user's table, with the user's names."""
        return rows.select([f"c{j}" for j in range(len(self.names))]).rename_columns(
            list(self.names)
        )

    def told_apart(self, rows: pa.Table) -> pa.Table:
        """The same with text in the place of nested values, which have no keys."""
        found = self.table(rows)
        for at, j in enumerate(self.nested):
            found = found.set_column(j, self.names[j], rows.column(f"t{at}"))
        return found


def gathered(batches: Batches) -> Iterator[pa.Table]:
    """Tables of about AT_ONCE rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def word_columns(words: Words, letter: str = "w") -> dict[str, Any]:
    """Words as columns of whole numbers."""
    signed = words.view(np.int64)
    return {f"{letter}{j}": np.ascontiguousarray(signed[:, j]) for j in range(words.shape[1])}


def words_of(table: pa.Table, letter: str = "w") -> Words:
    """Read what :func:`word_columns` gave."""
    names = [name for name in table.column_names if name[0] == letter and name[1:].isdigit()]
    names.sort(key=lambda name: int(name[1:]))
    found = np.empty((table.num_rows, len(names)), dtype=np.int64)
    for j, name in enumerate(names):
        found[:, j] = table.column(name).to_numpy()
    return found.view(np.uint64)


@dataclass(frozen=True, eq=False)
class Summaries:
    """Rows of the columns that matter → one summary."""

    plan: Plan
    layout: Layout

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        total: TableSummary | None = None
        for rows in gathered(batches):
            own = summarise(self.layout.table(rows), self.plan)
            total = own if total is None else total.merge(own)
        if total is not None:
            yield pa.table({"packed": [pack(total)]})


@dataclass(frozen=True, eq=False)
class Encode:
    """Rows → records: their words, and beside them a key of the columns that an attacker knows."""

    recipe: Recipe
    layout: Layout
    known: tuple[str, ...]

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            table = self.layout.told_apart(rows)
            words = self.recipe.words(table)
            if self.known:
                beside = row_keys([table.column(name) for name in self.known])[:, :1]
                kept = self.recipe.kept(self.recipe.variables(table))
                words = np.hstack([words, beside if kept is None else beside[kept]])
            yield pa.table(word_columns(words))


@dataclass(frozen=True, eq=False)
class RareRecords:
    """Records → those that are needed to join rare patterns of missing values."""

    recipe: Recipe

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        rare = Rare(self.recipe)
        for rows in gathered(batches):
            rare.add(words_of(rows))
        if rare.found:
            yield pa.table(word_columns(rare.words()))


@dataclass(frozen=True, eq=False)
class JoinRare:
    """All of these → the recipe in which they are joined."""

    recipe: Recipe

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        words = (words_of(rows) for rows in gathered(batches))
        yield pa.table({"packed": [pack(with_rare_joined(self.recipe, words))]})


@dataclass(frozen=True, eq=False)
class Sampled:
    """Records → those in a sample."""

    recipe: Recipe
    share: float

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            keys = self.recipe.records_of(words_of(rows)).keys
            yield rows.filter(pa.array(in_sample(keys, self.share)))


@dataclass(frozen=True, eq=False)
class PlanBlocks:
    """The whole sample → the plan of blocks, as text."""

    recipe: Recipe
    leaf: int

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        held = [words_of(rows) for rows in gathered(batches)]
        words = np.concatenate(held) if held else np.zeros((0, self.recipe.width), np.uint64)
        yield pa.table({"plan": [plan_blocks(self.recipe, words, self.leaf).to_json()]})


@dataclass(frozen=True, eq=False)
class Assign:
    """Records → the same with their block."""

    recipe: Recipe
    blocks: BlockPlan

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            records = self.recipe.records_of(words_of(rows))
            found = self.blocks.assign(
                self.recipe.coordinates(records), self.recipe.apart(records), records.keys
            )
            yield rows.append_column("block", pa.array(found))


@dataclass(frozen=True, eq=False)
class PlanSplits:
    """The whole sample → where the order of one column is split."""

    recipe: Recipe
    stretch: int

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        held = [words_of(rows) for rows in gathered(batches)]
        words = np.concatenate(held) if held else np.zeros((0, self.recipe.width), np.uint64)
        yield pa.table({"packed": [pack(split_column(self.recipe, words, self.stretch))]})


@dataclass(frozen=True, eq=False)
class Place:
    """Records → the same with their stretch of the order."""

    recipe: Recipe
    splits: Splits
    joined: Labels
    """The stretch that each place belongs to."""

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            records = self.recipe.records_of(words_of(rows))
            values = np.ascontiguousarray(records.values[:, 0])
            found = self.splits.assign(values, self.recipe.apart(records), records.keys)
            yield rows.append_column("block", pa.array(self.joined[found]))


@dataclass(frozen=True, eq=False)
class InOrder:
    """All records of a stretch → the same in their order, with the column of each, and those lent to others.

    A stretch is cut as if the values began a little before it: the last records before it are lent to it.
    """

    recipe: Recipe
    begins: dict[int, int]
    """Column at which each stretch begins, counted over its cell."""
    borrowers: dict[int, tuple[tuple[int, int], ...]]
    """For each stretch: those that borrow from it, and from which column on."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        number, words = key[0].as_py(), words_of(rows)
        words = sorted_words(self.recipe.records_of(words), words)
        columns = self.begins[number] + np.arange(len(words))
        parts = [(words, columns, np.full(len(words), number))]
        for other, begin in self.borrowers.get(number, ()):
            lent = columns >= begin
            parts.append((words[lent], columns[lent], np.full(int(lent.sum()), other)))
        whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return pa.table({**word_columns(whole[0]), "group": whole[1], "block": whole[2]})


@dataclass(frozen=True, eq=False)
class Cut:
    """All records of a stretch, and those lent to it → what it tells of its cuts: columns, no values."""

    recipe: Recipe
    begins: dict[int, int]

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        return pa.table({"packed": [pack(self._cut(key, rows)[0])]})

    def _cut(self, key: Sequence[Any], rows: pa.Table) -> tuple[Crossing, Any, Words, Labels]:
        number, columns = key[0].as_py(), rows.column("group").to_numpy()
        order = np.argsort(columns, kind="stable")
        words, columns = words_of(rows)[order], columns[order]
        values = np.ascontiguousarray(self.recipe.records_of(words).values[:, 0])
        first = self.begins[number]
        if np.isnan(values[0]):  # records without a value, of which any may go together
            values = columns.astype(np.float64)
        found, back = crossing(number, values, int(columns[0]), first, self.recipe.k)
        return found, back, words, columns


@dataclass(frozen=True, eq=False)
class Ends(Cut):
    """The same → records of the stretch with the column at which their group ends, and where that lies."""

    entries: dict[int, int]
    """Column at which the groups after each stretch begin."""
    following: dict[int, tuple[int, int]]
    """For each stretch: end of the first group that ends after it, and the stretch in which it does."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        number = key[0].as_py()
        found, back, words, columns = self._cut(key, rows)
        starts = Starts(found.start, found.first, back)
        ends, _ = trace(starts, self.entries[number])
        own = columns >= found.first
        words, columns = words[own], columns[own]
        at = np.searchsorted(ends, columns, side="right")
        later, place = self.following.get(number, (0, number))
        groups = np.append(ends, later)[at]
        blocks = np.where(at < len(ends), number, place)
        return pa.table({**word_columns(words), "group": groups, "block": blocks})


@dataclass(frozen=True, eq=False)
class Feasible:
    """All records of a block → whether they satisfy, as one group, what is required."""

    recipe: Recipe

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one block, whose number is the key."""
        records = self.recipe.records_of(words_of(rows))
        sound = all(rule.feasible() for rule in requirements(self.recipe, records))
        return pa.table(
            {"block": [key[0].as_py()], "records": [rows.num_rows], "sound": [bool(sound)]}
        )


@dataclass(frozen=True, eq=False)
class Work:
    """All records of a block → the same with their groups, and their block in the next turn."""

    recipe: Recipe
    blocks: BlockPlan
    turn: int

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one block, whose number is the key."""
        words, groups, blocks = self._moved(key, rows)
        return pa.table({**word_columns(words), "group": groups, "block": blocks})

    def _moved(self, key: Sequence[Any], rows: pa.Table) -> Any:
        groups = rows.column("group").to_numpy() if self.turn else None
        number = key[0].as_py()
        return work_on_block(self.recipe, self.blocks, number, words_of(rows), groups, self.turn)


class Seen(NamedTuple):
    """Some records as an attacker has them, and what they release."""

    keys: Words  # (n, 2)
    before: Floats  # (n, c) coordinates
    after: Floats
    known: Words  # (n, 1) key of the known columns, or none at all: (n, 0)

    def taken(self, rows: Any) -> Seen:
        """Return some of them."""
        return Seen(*(part[rows] for part in self))


class Told(NamedTuple):
    """What a block tells of itself."""

    number: int
    sums: Sums
    seen: Seen


@dataclass(frozen=True, eq=False)
class Finish(Work):
    """All records of a block in the last turn → what each releases, by the key of its row.

    Records with the same ``values`` release the same in the protected columns, those of a ``class`` the same
    weight as well; ``unit`` and ``known`` are keys. At one record stands what the block tells of itself.
    """

    share: float
    """Of the records that are looked at as an attacker would."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one block, whose number is the key."""
        moved = self._moved(key, rows)
        return self._finished(key, moved.words, moved.groups)

    def _finished(self, key: Sequence[Any], words: Words, groups: Labels) -> pa.Table:
        recipe = self.recipe
        records, labels = recipe.records_of(words), canonical_labels(groups)
        shared = shared_values(recipe, records, labels)
        chosen = np.flatnonzero(in_sample(records.keys, self.share))
        seen = Seen(
            records.keys[chosen],
            seen_as(recipe, records.values, recipe.states(records))[chosen],
            seen_as(recipe, shared.values, shared.states)[chosen],
            records.beside[chosen],
        )
        sums = sums_of(recipe, records, labels, shared, requirements(recipe, records))
        told = Told(key[0].as_py(), sums, seen)
        out = shared.words()
        found: dict[str, Any] = {
            "h1": np.ascontiguousarray(records.keys[:, 0]).view(np.int64),
            "h2": np.ascontiguousarray(records.keys[:, 1]).view(np.int64),
            "values": _one_word(shared._replace(weights=None).words()),
            "class": _one_word(out),
            "whole_group": self._whole_groups(key, records, labels),
            **word_columns(out, "s"),
        }
        if records.units is not None:
            found["unit"] = records.units
        if records.beside.shape[1]:
            found["known"] = np.ascontiguousarray(records.beside[:, 0]).view(np.int64)
        first = pa.array([pack(told)], pa.binary())
        found[TOLD] = pa.concat_arrays([first, pa.nulls(len(records) - 1, pa.binary())])
        return pa.table(found)

    def _whole_groups(self, key: Sequence[Any], records: Records, labels: Labels) -> Labels:
        """Number of the group of records in the sample of whole groups, −1 of all others."""
        found = np.full(len(labels), -1, dtype=np.int64)
        chosen = whole_groups(self.recipe, records, labels)
        found[chosen] = (key[0].as_py() << 32) + labels[chosen]
        return found


@dataclass(frozen=True, eq=False)
class FinishColumn(Finish):
    """The same for one column, whose groups are known."""

    @guarded
    def __call__(self, key: Sequence[Any], rows: pa.Table) -> pa.Table:
        """Do so for one stretch, whose number is the key."""
        words, groups = words_of(rows), rows.column("group").to_numpy()
        records = self.recipe.records_of(words)
        keys = records.keys
        order = np.lexsort((keys[:, 1], keys[:, 0], records.values[:, 0], groups))
        return self._finished(key, words[order], groups[order])


def _one_word(words: Words) -> Labels:
    columns = [pa.array(column) for column in word_columns(words).values()]
    return np.ascontiguousarray(row_keys(columns)[:, 0]).view(np.int64)


def seen_as(recipe: Recipe, values: Floats, states: Labels) -> Floats:
    """Coordinates in which an attacker compares records: as :mod:`microagg.measure.coordinates` has them."""
    found = []
    for j, coder in enumerate(recipe.coders):
        found.append(coder.encoder.apply(np.ascontiguousarray(values[:, j])))
        patterns, sizes = recipe.patterns[:, j], recipe.sizes
        if patterns.any():
            n, cells = recipe.records, len(sizes)
            fitted = corners(simplex(int(patterns.max()) + 1), patterns, sizes / sizes.mean())
            # Fitted to one record a cell: here are as many as there are.
            scale = np.sqrt((n - 1) / n * cells / max(cells - 1, 1))
            found.append(fitted.apply(states[:, j].astype(np.float64)) * scale)
    return np.ascontiguousarray(np.hstack(found))


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
class Among:
    """Rows with keys → those whose first key is among some."""

    keys: Labels

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            yield rows.filter(pa.array(np.isin(rows.column("h1").to_numpy(), self.keys)))


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
            raise InputError(
                "A table is read several times and must be the same each time; rows were found that were "
                "not there before. Leave out what is random, or write the table to a file and read that."
            )
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
            points = seen_as(self.recipe, shared.values, shared.states)
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
