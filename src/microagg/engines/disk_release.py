"""A release of a table larger than memory: written batch by batch, counted in the file, and measured."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines import disk
from microagg.engines.aggregates import (
    GROUP,
    ReleasedValues,
    dealt_columns,
    listing_released_levels,
    put_back,
    required,
)
from microagg.engines.disk import OnProgress, group_from_disk
from microagg.engines.encoding import PackedRows
from microagg.engines.evidence_at_scale import Sample, measured_at_scale, sought
from microagg.engines.release_counts import CountedColumns, CountsOnDisk, count_release
from microagg.engines.scratch import Scratch, check_room, in_random_order
from microagg.engines.write_and_count import counted_file
from microagg.errors import VerificationError, shown
from microagg.evidence.measured import CountedFile, Counts, Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import BatchSource, BatchWriter, open_batches
from microagg.formats.csv import cell_texts, formula_cells, with_escaped_formulas
from microagg.formats.layouts import CsvFormat, FileFormat, FolderLayout, completed_csv
from microagg.formats.parquet_folders import key_places
from microagg.grouping.read_table import broken_relation
from microagg.measure.count_by_keys import ClassCounter
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import Linkage, ReleasedRows, count_near, linkage_of
from microagg.measure.row_keys import Keys, row_keys
from microagg.measure.verify import Verification
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.release_frame import (
    PresentCodes,
    left_out_words,
    released_schema,
    with_schema,
)

_WORD = 8
# Bytes of rows that are brought into random order at a time: Arrow's texts end at 2 GiB.
_HELD = 1 << 30


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


class ReleasedBatch(NamedTuple):
    """Records of a batch that are released, before and after."""

    rows: Labels  # (n,) of the input
    before: pa.Table
    text: pa.Table  # the same as a CSV file holds it
    released: pa.Table
    written: pa.Table  # with the untouched columns of a CSV file as it holds them
    dealt: PackedRows | None  # see ReleasedValues


def _folders_of(folder: FolderLayout, table: pa.Table) -> Labels:
    """Return the place of each record's folder; the columns that folders give were not changed."""
    places = key_places(folder.pieces, table)
    assert places is not None
    return places


class DiskRelease:
    """A table on disk whose records are grouped, to be written, and then counted and measured.

    Parameters
    ----------
    source : the table
    plan : with the columns to protect named
    scratch : where records are kept, and where a killed run left off
    memory : bytes that tables of keys may take; chunks may take twice that
    on_progress : is called with how far the grouping is; may raise to end it

    Attributes
    ----------
    left_out : metadata of the source that the written file does not have, in words; known once it is written
    """

    _counts: Counts

    def __init__(
        self,
        source: BatchSource,
        plan: Plan,
        scratch: Scratch,
        memory: int,
        on_progress: OnProgress,
    ) -> None:
        self.source, self.plan, self.scratch, self.memory = source, plan, scratch, memory
        self.roles = plan.roles(source.names)
        self.left_out: list[str] = []
        # Swapped values travel with the units that had them.
        width = 8 + (4 if plan.is_swapped else 2) * len(plan.blocks[0].columns or ())
        check_room(scratch.folder, 2 * (source.rows * width * _WORD + source.bytes_in_memory))
        self.run = group_from_disk(source, plan, scratch, on_progress, memory=2 * memory)
        self.encoding = self.run.encoding

    @property
    def records(self) -> int:
        """Records that are released."""
        return self.encoding.records

    def shared(self, first: int, last: int) -> tuple[Labels, ReleasedValues]:
        """Rows of the input from one to before another that are released, and what each releases."""
        places = list(range(first // disk.AT_ONCE, (last - 1) // disk.AT_ONCE + 1))
        packed = self.scratch.shelf("released").take(places)
        rows = packed[:, 0].astype(np.int64)
        inside = np.flatnonzero((rows >= first) & (rows < last))
        order = inside[np.argsort(rows[inside])]
        return rows[order], ReleasedValues.of(
            np.ascontiguousarray(packed[order, 1:]), self.encoding
        )

    def released_rows(self, view: str | None = None) -> Iterator[ReleasedRows]:
        """Yield what all records release, with the keys of their values of a view if one is named."""
        total = self.source.rows
        for first in range(0, total, disk.AT_ONCE):
            _, shared = self.shared(first, min(first + disk.AT_ONCE, total))
            keys = None
            if view is not None:
                keys = self.scratch.shelf(view).take([first // disk.AT_ONCE])[:, 0]
            yield ReleasedRows(shared.values, shared.states, known=keys)

    def released_groups(self) -> Iterator[ReleasedRows]:
        """Yield what groups release, and the records of each; swapped values row by row."""
        if self.encoding.is_swapped:
            yield from self.released_rows()
            return
        for number in self.run.numbers:
            packed = self.scratch.shelf("groups").take([number])
            if len(packed):
                shared = ReleasedValues.of(np.ascontiguousarray(packed[:, :-1]), self.encoding)
                sizes = packed[:, -1].astype(np.int64)
                yield ReleasedRows(shared.values, shared.states, sizes)

    def batches(self) -> Iterator[ReleasedBatch]:
        """Yield the records that are released, before and after, in the order of the input."""
        changed = {*(coder.name for coder in self.encoding.coders), *self.encoding.recoders}
        if self.plan.weight is not None and self.plan.weight.release == "mean":
            changed.add(self.plan.weight.column)
        values = (groups.values for groups in self.released_groups())
        encoding = listing_released_levels(self.encoding, values)
        for batch in disk.read_ahead(self.source):
            n, kept = batch.table.num_rows, self.encoding.kept(batch.table)
            rows, shared = self.shared(batch.first, batch.first + n)
            wanted = np.arange(n) if kept is None else np.flatnonzero(kept)
            if not np.array_equal(rows - batch.first, wanted):
                raise AssertionError("records were lost or doubled on the way")
            before, text = batch.table, batch.as_written
            if kept is not None:
                before, text = (table.take(pa.array(wanted)) for table in (before, text))
            released = written = put_back(encoding, before, shared)
            for at, name in enumerate(released.column_names) if self.source.is_text else ():
                if name in changed:
                    continue
                written = written.set_column(at, text.schema.field(name), text[name])
            yield ReleasedBatch(rows, before, text, released, written, shared.dealt)

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
        schema = self.released_schema()
        names = schema.names
        if escape:
            schema = with_escaped_formulas(schema.empty_table()).schema
        written_names = dict(zip(names, schema.names, strict=True))
        self._begin_gathering(written_names)
        encoding = self.encoding
        to_csv = part.suffix.lower() in (".csv", ".tsv", ".txt")
        changed = [*dict.fromkeys([*(coder.name for coder in encoding.coders), *encoding.recoders])]
        changed = [written_names.get(name, name) for name in changed]
        tables = self._checked_tables(schema, to_csv, escape, on_progress)
        target_format = form.format if isinstance(form, BatchSource) else form
        if not self.plan.keep_order:
            folder = target_format.folder
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
        promises = self.plan.promises(written_names)
        lists = _GroupLists(
            [*dict.fromkeys(name for promise in promises for name in promise.columns or ())],
            completed_csv(part, target_format.csv) if to_csv else None,
        )
        with BatchWriter(part, form, schema, rows=self.records, changed=changed) as writer:
            for table in tables:
                writer.write(table.select(range(columns)))
                self._gather_keys(table.columns[columns:])
                if encoding.is_swapped:
                    lists.add(table, table.column(columns + self._unwritten.index(GROUP)))
                done += table.num_rows
                on_progress("writing", done, 2 * self.records)
        self.left_out = left_out_words(self.source.schema, schema)
        verified, self._counts = self._count(part, written_names)
        if encoding.is_swapped and not self._has_lists(part, lists):
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and its groups do not have the values that were "
                "dealt. The file was removed."
            )
        met = required(encoding, self.run.sums)
        return counted_file(target, verified, sha256(part), met, self.records)

    def _checked_tables(
        self, schema: pa.Schema, to_csv: bool, escape: bool, on_progress: OnProgress
    ) -> Iterator[pa.Table]:
        """Yield tables as they are written, in the order of the input, and gather what is looked at.

        The last columns are what is counted later and not written: keys of dropped units, and with swapped
        values the groups.
        """
        done = 0
        for batch in self.batches():
            written = batch.written
            broken = broken_relation(self.plan, Frame(batch.released))
            if broken is not None:
                raise VerificationError(
                    f"The released values do not keep the relation {broken}. Nothing was written."
                )
            if to_csv and not escape:
                self._formulas.update(formula_cells(written))
            table = with_schema(with_escaped_formulas(written) if escape else written, schema)
            for keys in self._gather(batch):
                table = table.append_column("not written", pa.array(keys))
            yield table
            done += written.num_rows
            on_progress("writing", done, 2 * self.records)

    def _begin_gathering(self, written: Mapping[str, str]) -> None:
        """Get ready to look at the table while it is written: a sample, keys for counts and for linkage.

        ``written`` has the names of the columns in the file.
        """
        self._formulas: dict[str, int] = collections.Counter()
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []
        self._text: list[pa.Table] = []
        self._uniques = ClassCounter(self.scratch.folder, self.memory // 2)
        self._views = views_of(self.roles)
        self._sample_keys: dict[str, list[Any]] = {view: [] for view in self._views}
        self._dropped = [name for name in self.plan.units if name in self.roles.dropped]
        # What is kept of each row and not written, in the order of the columns that :meth:`_gather` returns.
        self._unwritten = [*self._dropped, *dealt_columns(self.encoding, written)]
        self._key_files = {
            name: self.scratch.folder / f"keys-{j}" for j, name in enumerate(self._unwritten)
        }
        for path in self._key_files.values():
            path.unlink(missing_ok=True)
        self._last_units: dict[Any, Keys] = {}
        self._together: set[Any] = set()  # dropped units of which two rows follow each other
        self._batches = 0
        for view in self._views:
            self.scratch.shelf(view).remove()

    def _gather(self, batch: ReleasedBatch) -> list[Keys]:
        """Look at a batch before and after; return what :meth:`_gather_keys` needs of its rows.

        These are the keys of dropped units and, if values are swapped, what was dealt.
        """
        self._batches += 1
        is_text = self.source.is_text
        self._uniques.add(row_keys([batch.before[coder.name] for coder in self.encoding.coders]))
        recoded, written = self.encoding.recoded(batch.before, batch.text if is_text else None)
        whole = Frame(recoded if written is None else written)
        keys = {}
        for view, columns in self._views.items():
            values = [values_as_written(whole, name, is_text) for name in columns]
            keys[view] = row_keys(values)[:, :1]
            self.scratch.shelf(view).put(self._batches, keys[view], batch.rows // disk.AT_ONCE)
        at = np.flatnonzero(np.isin(batch.rows, self.run.sampled[:, 0]))
        if len(at):
            chosen = pa.array(at)
            self._before.append(batch.before.take(chosen))
            self._after.append(batch.released.take(chosen))
            if is_text:
                self._text.append(batch.text.take(chosen))
            for view, view_keys in keys.items():
                self._sample_keys[view].append(view_keys[at, 0])
        units = ([values_as_written(whole, name, is_text)] for name in self._dropped)
        unit_keys = [np.ascontiguousarray(row_keys(values)[:, 0]) for values in units]
        dealt = () if batch.dealt is None else np.ascontiguousarray(batch.dealt.T)
        return [*unit_keys, *dealt]

    def _gather_keys(self, columns: Sequence[pa.ChunkedArray]) -> None:
        """Keep keys that no file tells, a column for each, in the order in which records are written."""
        for (name, path), column in zip(self._key_files.items(), columns, strict=True):
            keys = column.to_numpy()
            if name in self._dropped:
                before = np.append(self._last_units.get(name, ~keys[:1]), keys[:-1])
                if (keys == before).any():
                    self._together.add(name)
                self._last_units[name] = keys[-1:]
            with path.open("ab") as file:
                file.write(keys.tobytes())  # which says why, if it cannot

    def _gathered_keys(self) -> dict[Any, pa.Array]:
        """Return keys that the file does not have, such as those of units, in the order of its records."""
        arrays = {}
        for name, path in self._key_files.items():
            keys = np.memmap(path, dtype=np.uint64, mode="r")
            arrays[name] = pa.Array.from_buffers(pa.uint64(), len(keys), [None, pa.py_buffer(keys)])
        return arrays

    def _sample(self) -> Sample:
        """Return the sampled records."""
        rows, labels = self.run.sampled.T
        packed = []
        for number in np.unique(rows // disk.AT_ONCE).tolist():
            there, shared = self.shared(number * disk.AT_ONCE, (number + 1) * disk.AT_ONCE)
            at = np.searchsorted(there, rows[rows // disk.AT_ONCE == number])
            packed.append(shared.packed()[at])
        shared = ReleasedValues.of(np.concatenate(packed), self.encoding)
        text = pa.concat_tables(self._text) if self._text else None
        before, after = pa.concat_tables(self._before), pa.concat_tables(self._after)
        return Sample(before, after, text, labels, shared)

    def _linked(self, sample: Sample) -> dict[str | None, Linkage]:
        """Look for the sampled records among all released ones, alone (None) and with what views add."""
        encoding = self.encoding
        near: dict[str | None, Labels] = {
            None: count_near(encoding.attacker, sought(encoding, sample), self.released_groups())
        }
        for view, keys in self._sample_keys.items():
            wanted = sought(encoding, sample, np.concatenate(keys))
            near[view] = count_near(encoding.attacker, wanted, self.released_rows(view))
        return {view: linkage_of(counts, self.records) for view, counts in near.items()}

    def _count(self, part: Path, written: Mapping[str, str]) -> tuple[list[Verification], Counts]:
        """Count the promises, and classes of records, in the file that was written.

        ``written`` has the names of the columns there.
        """
        csv = self.source.format.csv if self.source.is_text else None
        encoding = self.encoding
        promises, back = self.plan.promises(written), open_batches(part, csv)
        rows = CountsOnDisk(back, self.scratch.folder, self.memory, self._gathered_keys())
        typed = Frame(self.source.schema.empty_table())
        values: list[Any] = [written[coder.name] for coder in encoding.coders]
        shared: list[Any] = list(promises[0].columns or ())
        if encoding.is_swapped:  # rows that belong to the same people release different values
            strata = [written[name] for name in self.plan.also_shared()]
            values, shared = [GROUP], [GROUP, *strata]
        at = CountedColumns(
            values=values,
            shared=shared,
            known=[written[name] for name in self.roles.known if written[name] not in shared],
            confidential={name: written[name] for name in self.roles.confidential},
            numbers=[name for name in self.roles.confidential if typed.is_numeric(name)],
            unit=written.get(encoding.unit, encoding.unit),
        )
        return count_release(rows, at, encoding.k, self._uniques.sizes().unique, promises)

    def _has_lists(self, part: Path, written: _GroupLists) -> bool:
        """Return whether the file has in each group the values that were written to it."""
        back = open_batches(part, self.source.format.csv if self.source.is_text else None)
        groups = self._gathered_keys()[GROUP]
        lists = _GroupLists(written.columns, written.csv)
        for batch in back.batches(written.columns):
            lists.add(batch.as_written, groups.slice(batch.first, batch.as_written.num_rows))
        return lists.sums == written.sums

    def measured(self, **measures: Any) -> Measured:
        """Measure what was written; ``measures`` are as for :func:`.measured_at_scale`."""
        run, sample = self.run, self._sample()
        measured = measured_at_scale(
            self.encoding,
            sample,
            plan=self.plan,
            summary=run.summary,
            sums=run.sums,
            counts=self._counts,
            linked=self._linked(sample),
            together=sorted(self._together, key=str) if self.plan.keep_order else (),
            **measures,
        )
        return replace(measured, formulas=self._formulas)

    def released_schema(self) -> pa.Schema:
        """Return the schema of the released table, with the metadata that a release needs and no other."""
        tables = (batch.written for batch in self.batches())
        first = next(tables)
        present = PresentCodes(first.schema)
        if present.any_to_look_for:  # a pass of its own: labels stand in front of the records
            for written in itertools.chain([first], tables):
                present.add(written)
        return released_schema(first.schema, present, self.records)
