"""From disk: a table in blocks, of which one is in memory at a time.

Passes over the input: one summarises it and keeps a sample by the keys of rows, one turns it into records,
by block, on a shelf of the scratch folder. Then the blocks are worked on one after the other, turn after
turn; what each record releases goes to a last shelf, by the part of the output it belongs to. A
third pass over the input writes the output, rows and untouched columns as they came. All moves are sequential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.errors import InputError
from microagg.groups import canonical_labels
from microagg.plan import Plan
from microagg.scale_out.aggregates import Losses, Shared, losses_of, put_back, shared_values
from microagg.scale_out.blocks import (
    LEAF,
    BlockPlan,
    in_sample,
    plan_blocks,
    requirements,
    sample_share,
    work_on_block,
)
from microagg.scale_out.counting import row_keys
from microagg.scale_out.recipe import Recipe, TableSummary, recipe_of, summarise
from microagg.scale_out.scratch import Scratch, Shelf
from microagg.tables.batches import Batch, BatchSource

__all__ = ["DiskRun", "Told", "group_from_disk"]

AT_ONCE = 1 << 17  # records of a batch
_BATCHES = 4  # that are put on the shelf together

Told = Callable[[str, int, int], None]
"""Hears of a stage, records done and all of them."""


class _Sample:
    """Rows with the lowest keys, as many as are needed and at most twice that."""

    def __init__(self) -> None:
        self.share = 1.0
        self._tables: list[tuple[pa.Table, pa.Table, Any]] = []
        self._held = self._seen = 0

    def add(self, batch: Batch) -> None:
        """Keep the rows of a batch that are in the sample so far."""
        whole = batch.as_written
        keys = row_keys([whole.column(j) for j in range(whole.num_columns)])
        self._seen += len(keys)
        self._keep(batch.table, batch.as_written, keys)
        wanted = sample_share(self._seen) * self._seen
        while self._held > 2 * wanted:
            self.share /= 2
            old, self._tables, self._held = self._tables, [], 0
            for kept in old:
                self._keep(*kept)

    def _keep(self, table: pa.Table, written: pa.Table, keys: Any) -> None:
        inside = in_sample(keys, self.share)
        chosen = np.flatnonzero(inside)
        if len(chosen):
            rows = pa.array(chosen)
            same = written is table
            taken = table.take(rows)
            self._tables.append((taken, taken if same else written.take(rows), keys[inside]))
            self._held += len(chosen)

    def words(self, recipe: Recipe) -> Any:
        """Words of the records in the sample."""
        share = min(self.share, sample_share(self._seen))
        found = []
        for table, written, _ in self._tables:
            words = recipe.words(table, written if recipe.is_csv else None)
            found.append(words[in_sample(recipe.records_of(words).keys, share)])
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class DiskRun:
    """A table whose records have been grouped; what they release is on a shelf."""

    recipe: Recipe
    summary: TableSummary
    block_plan: BlockPlan
    losses: Losses
    _released: Shelf
    _source: BatchSource

    def batches(self) -> Iterator[tuple[pa.Table, Batch, Any]]:
        """Released tables in the order of the input, each with the batch it comes from and the rows kept."""
        columns = len(self.recipe.coders)
        for batch in self._source.batches(at_once=AT_ONCE):
            kept = self.recipe.kept(self.recipe.variables(batch.table))
            n = batch.table.num_rows
            rows = np.arange(n) if kept is None else np.flatnonzero(kept)
            places = range(batch.first // AT_ONCE, (batch.first + n - 1) // AT_ONCE + 1)
            words = self._released.take(list(places))
            at = words[:, 0].astype(np.int64) - batch.first
            inside = (at >= 0) & (at < n)
            words, at = words[inside], at[inside]
            order = np.argsort(at)
            if not np.array_equal(at[order], rows):
                raise AssertionError("records were lost or doubled on the way")
            table = batch.table if kept is None else batch.table.take(pa.array(rows))
            shared = Shared.of(np.ascontiguousarray(words[order, 1:]), columns)
            yield put_back(self.recipe, table, shared), batch, kept


def group_from_disk(
    source: BatchSource,
    plan: Plan,
    scratch: Scratch,
    told: Told = lambda stage, done, total: None,
    leaf: int = LEAF,
) -> DiskRun:
    """Group the records of a table that is read in parts.

    Parameters
    ----------
    source : the table
    plan : with the columns to protect named
    scratch : where records are kept, and where a killed run left off
    told : hears how far it is; may raise to end the run
    leaf : records in a block, about
    """
    fitted = scratch.kept("fitted")
    if fitted is None:
        fitted = _fit(source, plan, told, leaf)
        scratch.keep("fitted", fitted)
    recipe, summary, block_plan = fitted
    shelf = scratch.shelf("turn-0")
    if scratch.kept("sound") is None:
        _shelve(source, recipe, block_plan, shelf, told)
        block_plan = _with_sound_blocks(recipe, block_plan, shelf)
        scratch.keep("sound", block_plan)
    block_plan = scratch.kept("sound")
    for turn in range(block_plan.rounds + 1):
        if scratch.kept(f"done-{turn}"):
            continue
        current = scratch.shelf(f"turn-{turn}")
        following = scratch.shelf("released" if turn == block_plan.rounds else f"turn-{turn + 1}")
        _work(recipe, block_plan, turn, current, following, scratch, told)
        scratch.keep(f"done-{turn}", True)
        current.remove()
    losses = _losses(recipe, block_plan, scratch)
    return DiskRun(recipe, summary, block_plan, losses, scratch.shelf("released"), source)


def _fit(
    source: BatchSource, plan: Plan, told: Told, leaf: int
) -> tuple[Recipe, TableSummary, BlockPlan]:
    summary, sample, total = None, _Sample(), source.rows
    for batch in source.batches(at_once=AT_ONCE):
        written = batch.as_written if source.is_text else None
        own = summarise(batch.table, plan, written)
        summary = own if summary is None else summary.merge(own)
        sample.add(batch)
        told("reading", summary.records, total)
    if summary is None:
        raise InputError(
            "A table to protect has at least one record; this one has none. Check that it was read whole."
        )
    recipe = recipe_of(plan, summary, source.is_text)
    recipe.check_cells()
    return recipe, summary, plan_blocks(recipe, sample.words(recipe), leaf)


def _shelve(source: BatchSource, recipe: Recipe, plan: BlockPlan, shelf: Shelf, told: Told) -> None:
    """Put all records on a shelf, by block."""
    held: list[Any] = []

    def put(number: int) -> None:
        words = np.concatenate(held)
        held.clear()
        records = recipe.records_of(words)
        places = plan.assign(recipe.coordinates(records), recipe.apart(records), records.keys)
        shelf.put(number, words, places)

    number, total = 0, source.rows
    for at, batch in enumerate(source.batches(at_once=AT_ONCE)):
        number = at // _BATCHES
        if not shelf.has(number):
            written = batch.as_written if source.is_text else None
            words = recipe.words(batch.table, written)
            rows = batch.first + np.arange(batch.table.num_rows)
            kept = recipe.kept(recipe.variables(batch.table))
            rows = rows if kept is None else rows[kept]
            held.append(np.column_stack([words, rows.astype(np.uint64)]))
            if at % _BATCHES == _BATCHES - 1:
                put(number)
        told("encoding", batch.first + batch.table.num_rows, total)
    if held:
        put(number)


def _with_sound_blocks(recipe: Recipe, plan: BlockPlan, shelf: Shelf) -> BlockPlan:
    """Join blocks that cannot be groups by themselves with their siblings."""
    counts = shelf.counts(plan.n_places())
    asked = recipe.unit is not None or bool(recipe.block.require)

    def sound(blocks: list[int]) -> bool:
        if int(counts[blocks].sum()) < recipe.k:
            return False
        if not asked:
            return True
        records = recipe.records_of(shelf.take(blocks))
        return all(rule.feasible() for rule in requirements(recipe, records))

    return plan.with_sound(sound)


def _work(
    recipe: Recipe,
    plan: BlockPlan,
    turn: int,
    current: Shelf,
    following: Shelf,
    scratch: Scratch,
    told: Told,
) -> None:
    """Work on every block in one turn."""
    done = 0
    total = recipe.records * (plan.rounds + 1)
    for number, places in plan.sources(turn):
        if following.has(number):
            done += int(current.counts(plan.n_places(turn))[places].sum())
            continue
        words = current.take(places)
        if not len(words):
            continue
        groups = None
        if turn:
            groups, words = words[:, -1].astype(np.int64), words[:, :-1]
        moved = work_on_block(recipe, plan, number, words, groups, turn)
        if moved.blocks is not None:
            following.put(
                number, np.column_stack([moved.words, moved.groups.astype(np.uint64)]), moved.blocks
            )
        else:
            records = recipe.records_of(moved.words)
            labels = canonical_labels(moved.groups)
            shared = shared_values(recipe, records, labels)
            losses = losses_of(recipe, records, labels, shared)
            scratch.keep(f"losses-{number}", losses)
            row = records.beside[:, :1]
            following.put(
                number,
                np.hstack([row, shared.words()]),
                (row[:, 0] // np.uint64(AT_ONCE)).astype(np.int64),
            )
        done += len(words)
        told("grouping", turn * recipe.records + done, total)


def _losses(recipe: Recipe, plan: BlockPlan, scratch: Scratch) -> Losses:
    """Add up what blocks lost, in the order of their numbers."""
    total = Losses(0.0, np.zeros(len(recipe.coders)), 0)
    for number, _ in plan.sources(plan.rounds):
        own = scratch.kept(f"losses-{number}")
        total = total if own is None else total.plus(own)
    return total
