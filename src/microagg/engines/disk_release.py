"""A release of a table larger than memory: written batch by batch, counted in the file, and measured."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.delivering.write_and_count import refuse_broken
from microagg.engines.aggregates import Shared
from microagg.engines.disk import AT_ONCE, DiskRun, OnProgress, group_from_disk
from microagg.engines.disk_counts import CountsOnDisk
from microagg.engines.evidence_at_scale import Sample, measured_at_scale, sought
from microagg.engines.finishing import required
from microagg.engines.release_counts import Counts, Places, count_release
from microagg.engines.scratch import Scratch, check_room
from microagg.engines.sought import views_of
from microagg.errors import VerificationError
from microagg.evidence.measured import CountedFile, Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import Batch, BatchSource, BatchWriter, open_batches
from microagg.formats.formulas import formula_cells, with_escaped_formulas
from microagg.formats.layouts import FileFormat
from microagg.grouping.read_table import broken_relation
from microagg.measure.count_by_keys import ClassCounter
from microagg.measure.link_batches import linkage_of
from microagg.measure.linkage import Linkage
from microagg.measure.row_keys import row_keys
from microagg.measure.verify import Verification
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame
from microagg.tables.released_metadata import (
    PresentCodes,
    left_out_words,
    released_schema,
    with_schema,
)

_WORD = 8


@dataclass(eq=False)
class DiskRelease:
    """A table on disk that was grouped, to be written and then measured."""

    source: BatchSource
    plan: Plan
    roles: Roles
    run: DiskRun
    scratch: Scratch
    memory: int
    left_out: list[str] = field(default_factory=list)
    """Metadata of the source that the written file does not have, in words."""
    _formulas: dict[str, int] = field(default_factory=collections.Counter)
    _gathered: _Gathered = field(init=False)
    _counts: Counts = field(init=False)

    @classmethod
    def grouped(
        cls,
        source: BatchSource,
        plan: Plan,
        scratch: Scratch,
        memory: int,
        on_progress: OnProgress,
    ) -> DiskRelease:
        """Group the records of a table, whose columns to protect are named."""
        roles = plan.roles(source.names)
        width = 8 + 2 * len(plan.blocks[0].columns or ())
        check_room(scratch.folder, 2 * source.rows * width * _WORD + source.bytes_in_memory)
        run = group_from_disk(source, plan, scratch, on_progress, memory=2 * memory)
        return cls(source, plan, roles, run, scratch, memory)

    @property
    def records(self) -> int:
        """Records that are released."""
        return self.run.encoding.records

    def written_tables(self) -> Iterator[tuple[pa.Table, pa.Table, Batch, Any]]:
        """Yield released tables, as written and as typed, with the batch and the rows that they come from."""
        for table, batch, kept in self.run.batches():
            written = table
            if self.source.is_text:
                text = batch.as_written if kept is None else batch.as_written.filter(pa.array(kept))
                for name in self._untouched(table):
                    at = table.column_names.index(name)
                    written = written.set_column(at, text.schema.field(name), text[name])
            yield written, table, batch, kept

    def write(
        self,
        part: Path,
        target: Path,
        form: FileFormat | BatchSource,
        on_progress: OnProgress,
        escape: bool = False,
    ) -> CountedFile:
        """Write the released table to a temporary file next to its target, and count in what was written.

        Raises
        ------
        VerificationError
            If what was read back does not keep what was promised.
        """
        self._gathered = gathered = _Gathered(self)
        schema = self.released_schema()
        if escape:
            schema = with_escaped_formulas(schema.empty_table()).schema
        encoding = self.run.encoding
        to_csv = part.suffix.lower() in (".csv", ".tsv", ".txt")
        changed = [*dict.fromkeys([*(coder.name for coder in encoding.coders), *encoding.recoders])]
        done = 0
        with BatchWriter(part, form, schema, rows=self.records, changed=changed) as writer:
            for written, typed, batch, kept in self.written_tables():
                broken = broken_relation(self.plan, Frame(typed))
                if broken is not None:
                    raise VerificationError(
                        f"The released values do not keep the relation {broken}. Nothing was written."
                    )
                if to_csv and not escape:
                    self._formulas.update(formula_cells(written))
                as_released = with_escaped_formulas(written) if escape else written
                writer.write(with_schema(as_released, schema))
                gathered.add(typed, batch, kept)
                done += written.num_rows
                on_progress("writing", done, self.records)
        self.left_out = left_out_words(self.source.schema, schema)
        found, self._counts = self._count(part)
        met = required(encoding, self.run.sums)
        counted = CountedFile(str(target), tuple(found), sha256(part), met)
        refuse_broken(counted, target, self.records)
        return counted

    def _count(self, part: Path) -> tuple[list[Verification], Counts]:
        """Count the promises, and classes of records, in the file that was written."""
        csv = self.source.format.csv if self.source.is_text else None
        encoding, gathered, promises = self.run.encoding, self._gathered, self.plan.promises()
        back, shared = open_batches(part, csv), list(promises[0].columns or ())
        rows = CountsOnDisk(back, self.scratch.folder, self.memory, gathered.units())
        at = Places(
            values=[coder.name for coder in encoding.coders],
            shared=shared,
            known=[name for name in self.roles.known if name not in shared],
            confidential={name: name for name in self.roles.confidential},
            unit=encoding.unit,
        )
        return count_release(rows, at, encoding.k, gathered.unique_before, promises)

    def measured(self, **measures: Any) -> Measured:
        """Measure what was written; ``measures`` are as for :func:`.measured_at_scale`."""
        run, gathered = self.run, self._gathered
        sample = gathered.sample()
        rivals = sought(run.encoding, sample).rivals(run.encoding, run.released_groups())
        found = measured_at_scale(
            self.plan,
            run.encoding,
            run.summary,
            run.sums,
            sample,
            self._counts,
            linkage_of(rivals, self.records),
            gathered.linked("known", sample),
            gathered.linked("claimed", sample),
            **measures,
        )
        return replace(found, formulas=self._formulas)

    def released_schema(self) -> pa.Schema:
        """Return the schema of the released table, with the metadata that a release needs and no other."""
        tables = (written for written, *_ in self.written_tables())
        first = next(tables)
        present = PresentCodes(first.schema)
        if present.any_to_look_for:  # a pass of its own: labels stand in front of the records
            for written in itertools.chain([first], tables):
                present.add(written)
        return released_schema(first.schema, present, self.records)

    def _untouched(self, table: pa.Table) -> list[str]:
        changed = {*(coder.name for coder in self.run.encoding.coders), *self.run.encoding.recoders}
        if self.plan.weight is not None and self.plan.weight.release == "mean":
            changed.add(self.plan.weight.column)
        return [name for name in table.column_names if name not in changed]


class _Gathered:
    """What is gathered while the output is written."""

    def __init__(self, table: DiskRelease) -> None:
        self._table = table
        run = table.run
        self._wanted = run.sampled
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []
        self._text: list[pa.Table] = []
        self._uniques = ClassCounter(table.scratch.folder, table.memory // 2)
        self.views = views_of(table.roles)
        self._sample_keys: dict[str, list[Any]] = {view: [] for view in self.views}
        dropped = [name for name in table.plan.units if name in table.roles.dropped]
        self._units = {name: table.scratch.folder / f"unit-{j}" for j, name in enumerate(dropped)}
        for path in self._units.values():
            path.unlink(missing_ok=True)
        self._batches = 0
        for view in self.views:
            table.scratch.shelf(view).remove()
        self._keys_at = {view: table.scratch.shelf(view) for view in self.views}

    def add(self, released: pa.Table, batch: Batch, kept: Any) -> None:
        """Look at a batch before and after."""
        self._batches += 1
        table = batch.table if kept is None else batch.table.filter(pa.array(kept))
        text = batch.as_written if kept is None else batch.as_written.filter(pa.array(kept))
        source = self._table.source
        rows = batch.first + (np.arange(table.num_rows) if kept is None else np.flatnonzero(kept))
        protected = [coder.name for coder in self._table.run.encoding.coders]
        self._uniques.add(row_keys([table[name] for name in protected]))
        seen, written = self._table.run.encoding.recoded(table, text if source.is_text else None)
        whole = Frame(seen if written is None else written)
        keys = {}
        for view, columns in self.views.items():
            values = [values_as_written(whole, name, source.is_text) for name in columns]
            keys[view] = row_keys(values)[:, :1]
            self._keys_at[view].put(self._batches, keys[view], rows // AT_ONCE)
        for name, path in self._units.items():
            own = row_keys([values_as_written(whole, name, source.is_text)])[:, 0]
            with path.open("ab") as file:
                file.write(own.tobytes())  # which says why, if it cannot
        at = np.flatnonzero(np.isin(rows, self._wanted[:, 0]))
        if len(at):
            chosen = pa.array(at)
            self._before.append(table.take(chosen))
            self._after.append(released.take(chosen))
            if source.is_text:
                self._text.append(text.take(chosen))
            for view, own_keys in keys.items():
                self._sample_keys[view].append(own_keys[at, 0])

    @property
    def unique_before(self) -> int:
        """Records whose original values no other has."""
        return self._uniques.tally().unique

    def units(self) -> dict[Any, pa.Array]:
        """Return the units that the file no longer has, as they were."""
        found = {}
        for name, path in self._units.items():
            keys = np.memmap(path, dtype=np.uint64, mode="r")
            found[name] = pa.Array.from_buffers(pa.uint64(), len(keys), [None, pa.py_buffer(keys)])
        return found

    def sample(self) -> Sample:
        """Return the sampled records."""
        run = self._table.run
        rows, labels = self._wanted[:, 0], self._wanted[:, 1]
        parts = []
        for number in np.unique(rows // AT_ONCE).tolist():
            own, shared = run.shared(number * AT_ONCE, (number + 1) * AT_ONCE)
            at = np.searchsorted(own, rows[rows // AT_ONCE == number])
            weights = None if shared.weights is None else shared.weights[at]
            parts.append((shared.values[at], shared.states[at], weights))
        weights = None if parts[0][2] is None else np.concatenate([p[2] for p in parts])
        shared = Shared(
            np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), weights
        )
        text = pa.concat_tables(self._text) if self._text else None
        before, after = pa.concat_tables(self._before), pa.concat_tables(self._after)
        return Sample(before, after, text, labels, shared)

    def linked(self, view: str, sample: Sample) -> Linkage | None:
        """Link records for an attacker who knows the columns of a view; None where it has none."""
        if view not in self.views:
            return None
        encoding, keys = self._table.run.encoding, np.concatenate(self._sample_keys[view])
        rivals = sought(encoding, sample, keys).rivals(encoding, self._released_with_keys(view))
        return linkage_of(rivals, encoding.records)

    def _released_with_keys(self, view: str) -> Iterator[tuple[Shared, None, Any]]:
        """Yield what all records release, and the keys of their values of a view."""
        run, total = self._table.run, self._table.source.rows
        for first in range(0, total, AT_ONCE):
            _, shared = run.shared(first, min(first + AT_ONCE, total))
            yield shared, None, self._keys_at[view].take([first // AT_ONCE])[:, 0]
