"""What the workers of a distributed engine do: Arrow tables in, Arrow tables out, nothing kept between.

An engine sends these objects to its workers and hands them batches, or all rows with one key. Whatever it
does twice, or in another order, gives the same. Columns have plain names on the way: ``c0``, ``c1``, … are
those of the user, ``w0``, … the words of a record as whole numbers, ``s0``, … the words of what it releases.

Errors that leave a worker hold no value of the table, for they end up in logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.encode.recode import Recoder
from microagg.groups import Floats, Labels, canonical_labels
from microagg.plan import Plan
from microagg.scale_out.aggregates import (
    Sums,
    shared_values,
    sums_of,
    whole_groups,
)
from microagg.scale_out.blocks import BlockPlan, in_sample, plan_blocks, requirements, work_on_block
from microagg.scale_out.completing import complete_from_head, some_keys
from microagg.scale_out.counting import row_keys
from microagg.scale_out.rare import Rare, with_rare_joined
from microagg.scale_out.recipe import Recipe, Records, Words
from microagg.scale_out.recoding import recoded_batch, tallies
from microagg.scale_out.summaries import TableSummary, summarise
from microagg.scale_out.worker_tables import (
    TOLD,
    Batches,
    Layout,
    all_words,
    gathered,
    guarded,
    pack,
    streaming,
    word_columns,
    words_of,
)

__all__ = [
    "Assign",
    "Complete",
    "Encode",
    "Feasible",
    "Finish",
    "JoinRare",
    "PlanBlocks",
    "RareRecords",
    "Sampled",
    "Seen",
    "SomeKeys",
    "Summaries",
    "Tallied",
    "Told",
    "Work",
]


@dataclass(frozen=True, eq=False)
class Complete:
    """The first rows → the completed plan, the columns kept as constant ones, and the number of rows."""

    plan: Plan
    layout: Layout
    fields: Mapping[str, Any]
    """Metadata of columns, as far as a file has some."""

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Do so in one task."""
        held = list(batches)
        if held:
            head = self.layout.table(pa.Table.from_batches(held))
            told = [field.with_metadata(self.fields.get(field.name)) for field in head.schema]
            found = complete_from_head(head.cast(pa.schema(told)), self.plan)
            yield pa.table({"packed": [pack((*found, head.num_rows))]})


@dataclass(frozen=True, eq=False)
class SomeKeys:
    """Rows of some columns → keys of the values of each, of all or of several."""

    columns: tuple[str, ...]

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            yield pa.table({"packed": [pack(some_keys(rows, self.columns))]})


@dataclass(frozen=True, eq=False)
class Tallied:
    """Rows of the columns that matter → what their recodings need to know of them."""

    plan: Plan
    layout: Layout

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        for rows in gathered(batches):
            yield pa.table({"packed": [pack(tallies(self.layout.table(rows), self.plan))]})


@dataclass(frozen=True, eq=False)
class Summaries:
    """Rows of the columns that matter → one summary."""

    plan: Plan
    layout: Layout
    recoders: Mapping[Any, Recoder]

    @streaming
    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Go through the batches of a task."""
        total: TableSummary | None = None
        for rows in gathered(batches):
            own = summarise(recoded_batch(self.layout.table(rows), self.recoders), self.plan)
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
                seen, _ = self.recipe.recoded(table)
                beside = row_keys([seen.column(name) for name in self.known])[:, :1]
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
        words = all_words(batches, self.recipe.width)
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
            recipe.seen_by_attacker(records.values, recipe.original_states(records))[chosen],
            recipe.seen_by_attacker(shared.values, shared.states)[chosen],
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


def _one_word(words: Words) -> Labels:
    columns = [pa.array(column) for column in word_columns(words).values()]
    return np.ascontiguousarray(row_keys(columns)[:, 0]).view(np.int64)
