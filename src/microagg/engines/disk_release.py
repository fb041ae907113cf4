"""A release of a table larger than memory: written batch by batch, counted in the file, and measured."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import GROUP
from microagg.engines.disk import DiskRun, OnProgress, group_from_disk
from microagg.engines.disk_counts import CountsOnDisk
from microagg.engines.evidence_at_scale import measured_at_scale, sought
from microagg.engines.finishing import required
from microagg.engines.gathered_on_disk import GatheredOnDisk
from microagg.engines.release_counts import Counts, Places, count_release
from microagg.engines.scratch import Scratch, check_room, in_random_order
from microagg.engines.write_and_count import refuse_broken
from microagg.errors import VerificationError, shown
from microagg.evidence.measured import CountedFile, Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import Batch, BatchSource, BatchWriter, open_batches
from microagg.formats.csv import cell_texts
from microagg.formats.formulas import formula_cells, with_escaped_formulas
from microagg.formats.layouts import CsvFormat, FileFormat, FolderLayout, completed_csv
from microagg.formats.parquet_folders import key_places
from microagg.grouping.read_table import broken_relation
from microagg.measure.linkage import count_near, linkage_of
from microagg.measure.row_keys import row_keys
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
_HELD = (
    1 << 30
)  # bytes of rows that are brought into random order at a time: Arrow's texts end at 2 GiB


@dataclass
class _GroupLists:
    """What rows have in some columns, group by group, whatever their order: a sum of keys of 128 bits."""

    columns: Sequence[str]
    csv: CsvFormat | None
    """Of a CSV file, whose texts are compared; None: a Parquet file, whose values are."""
    sums: tuple[int, int] = (0, 0)

    def add(self, table: pa.Table, groups: pa.Array | pa.ChunkedArray) -> None:
        """Add rows, and the number of the group of each."""
        cells = [table[name] for name in self.columns]
        if self.csv is not None:
            texts = zip(self.columns, cells, strict=True)
            cells = [cell_texts(name, column, self.csv) for name, column in texts]
        keys = row_keys([groups, *cells])
        first, second = keys.sum(axis=0, dtype=np.uint64).tolist()
        self.sums = (self.sums[0] + first) % 2**64, (self.sums[1] + second) % 2**64


def _folders_of(folder: FolderLayout, table: pa.Table) -> Labels:
    """Return the place of each record's folder; the columns that folders give were not changed."""
    places = key_places(folder.pieces, table)
    assert places is not None
    return places


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
        # Swapped values travel with the units that had them.
        width = 8 + (4 if plan.is_swapped else 2) * len(plan.blocks[0].columns or ())
        check_room(scratch.folder, 2 * (source.rows * width * _WORD + source.bytes_in_memory))
        run = group_from_disk(source, plan, scratch, on_progress, memory=2 * memory)
        return cls(source, plan, roles, run, scratch, memory)

    @property
    def records(self) -> int:
        """Records that are released."""
        return self.run.encoding.records

    def written_tables(self) -> Iterator[tuple[pa.Table, pa.Table, Batch, Any, Any]]:
        """Yield released tables, as written and as typed, with the rest of :meth:`DiskRun.batches`."""
        for table, batch, kept, dealt in self.run.batches():
            written = table
            if self.source.is_text:
                text = batch.as_written if kept is None else batch.as_written.filter(pa.array(kept))
                for name in self._untouched(table):
                    at = table.column_names.index(name)
                    written = written.set_column(at, text.schema.field(name), text[name])
            yield written, table, batch, kept, dealt

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
        names = schema.names
        if escape:
            schema = with_escaped_formulas(schema.empty_table()).schema
        written_names = dict(zip(names, schema.names, strict=True))
        encoding = self.run.encoding
        to_csv = part.suffix.lower() in (".csv", ".tsv", ".txt")
        changed = [*dict.fromkeys([*(coder.name for coder in encoding.coders), *encoding.recoders])]
        changed = [written_names.get(name, name) for name in changed]
        tables = self._checked_tables(schema, to_csv, escape, on_progress)
        if not self.plan.keep_order:
            folder = (form.format if isinstance(form, BatchSource) else form).folder
            by_folder = part.is_dir() and folder.keeps_places(names, changed, self.records)
            changed += [] if by_folder else folder.keys
            tables = in_random_order(
                tables,
                self.scratch.folder / "random order",
                self.records,
                min(self.memory // 4, _HELD),
                partial(_folders_of, folder) if by_folder else None,
                len({piece.keys for piece in folder.pieces}) if by_folder else 1,
            )
        done, columns = self.records, len(schema.names)
        own_csv = (form.format if isinstance(form, BatchSource) else form).csv
        promised = (name for promise in self.plan.promises() for name in promise.columns or ())
        lists = _GroupLists(
            [*dict.fromkeys(written_names[name] for name in promised)],
            completed_csv(part, own_csv) if to_csv else None,
        )
        with BatchWriter(part, form, schema, rows=self.records, changed=changed) as writer:
            for table in tables:
                writer.write(table.select(range(columns)))
                gathered.add_keys(table.columns[columns:])
                if encoding.is_swapped:
                    lists.add(table, table.column(columns + gathered.names.index(GROUP)))
                done += table.num_rows
                on_progress("writing", done, 2 * self.records)
        self.left_out = left_out_words(self.source.schema, schema)
        found, self._counts = self._count(part, written_names)
        if encoding.is_swapped and not self._has_lists(part, lists):
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and its groups do not have the values that were "
                "dealt. The file was removed."
            )
        met = required(encoding, self.run.sums)
        counted = CountedFile(str(target), tuple(found), sha256(part), met)
        refuse_broken(counted, target, self.records)
        return counted

    def _checked_tables(
        self, schema: pa.Schema, to_csv: bool, escape: bool, on_progress: OnProgress
    ) -> Iterator[pa.Table]:
        """Yield tables as they are written, in the order of the input, and gather what is looked at.

        The last columns are what is counted later and not written: keys of dropped units, and with swapped
        values the groups.
        """
        done = 0
        for written, typed, batch, kept, dealt in self.written_tables():
            broken = broken_relation(self.plan, Frame(typed))
            if broken is not None:
                raise VerificationError(
                    f"The released values do not keep the relation {broken}. Nothing was written."
                )
            if to_csv and not escape:
                self._formulas.update(formula_cells(written))
            table = with_schema(with_escaped_formulas(written) if escape else written, schema)
            for keys in self._gathered.add(typed, batch, kept, dealt):
                table = table.append_column("not written", pa.array(keys))
            yield table
            done += written.num_rows
            on_progress("writing", done, 2 * self.records)

    def _count(self, part: Path, written: Mapping[str, str]) -> tuple[list[Verification], Counts]:
        """Count the promises, and classes of records, in the file that was written.

        ``written`` has the names of the columns there.
        """
        csv = self.source.format.csv if self.source.is_text else None
        encoding, gathered = self.run.encoding, self._gathered
        promises = []
        for promise in self.plan.promises():
            columns, unit = list(promise.columns or ()), written.get(promise.unit, promise.unit)
            if encoding.is_swapped and unit is not None:
                unit = (promise.unit, columns[0])  # the units that had the values
            names = [written[name] for name in columns]
            promises.append(promise._replace(columns=names, unit=unit))
        back = open_batches(part, csv)
        rows = CountsOnDisk(back, self.scratch.folder, self.memory, gathered.keys())
        typed = Frame(self.source.schema.empty_table())
        values: list[Any] = [written[coder.name] for coder in encoding.coders]
        shared: list[Any] = list(promises[0].columns or ())
        if encoding.is_swapped:  # rows that belong to the same people release different values
            strata = [written[name] for name in self.plan.also_shared()]
            values, shared = [GROUP], [GROUP, *strata]
        at = Places(
            values=values,
            shared=shared,
            known=[written[name] for name in self.roles.known if written[name] not in shared],
            confidential={name: written[name] for name in self.roles.confidential},
            numbers=[name for name in self.roles.confidential if typed.is_numeric(name)],
            unit=written.get(encoding.unit, encoding.unit),
        )
        verified, counts = count_release(rows, at, encoding.k, gathered.unique_before, promises)
        unit = written.get(encoding.unit, encoding.unit)
        return [replace(one, unit=unit) for one in verified], counts

    def _has_lists(self, part: Path, written: _GroupLists) -> bool:
        """Return whether the file has in each group the values that were written to it."""
        back = open_batches(part, self.source.format.csv if self.source.is_text else None)
        groups = self._gathered.keys()[GROUP]
        lists = _GroupLists(written.columns, written.csv)
        for batch in back.batches(written.columns):
            lists.add(batch.as_written, groups.slice(batch.first, batch.as_written.num_rows))
        return lists.sums == written.sums

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
            together=sorted(gathered.together, key=str) if self.plan.keep_order else (),
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
