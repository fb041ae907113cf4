"""A release of a table larger than memory: written batch by batch, counted in the file, and measured."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from microagg.delivering.write_and_count import refuse_broken
from microagg.engines.disk import DiskRun, OnProgress, group_from_disk
from microagg.engines.disk_counts import CountsOnDisk
from microagg.engines.evidence_at_scale import measured_at_scale, sought
from microagg.engines.finishing import required
from microagg.engines.gathered_on_disk import GatheredOnDisk
from microagg.engines.release_counts import Counts, Places, count_release
from microagg.engines.scratch import Scratch, check_room
from microagg.errors import VerificationError
from microagg.evidence.measured import CountedFile, Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import Batch, BatchSource, BatchWriter, open_batches
from microagg.formats.formulas import formula_cells, with_escaped_formulas
from microagg.formats.layouts import FileFormat
from microagg.grouping.read_table import broken_relation
from microagg.measure.linkage import count_near, linkage_of
from microagg.measure.verify import Verification
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
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
    _gathered: GatheredOnDisk = field(init=False)
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
        self._gathered = gathered = GatheredOnDisk(
            self.source, self.plan, self.roles, self.run, self.scratch, self.memory
        )
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
        alone = sought(run.encoding, sample)
        near = count_near(run.encoding.attacker, alone, run.released_groups())
        found = measured_at_scale(
            run.encoding,
            sample,
            plan=self.plan,
            summary=run.summary,
            sums=run.sums,
            counts=self._counts,
            alone=linkage_of(near, self.records),
            with_known=gathered.linked("known", sample),
            if_claimed=gathered.linked("claimed", sample),
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
