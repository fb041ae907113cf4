"""A release of a table larger than memory: written batch by batch, counted in the file, and measured."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
    counted_in_parts,
    dealt_columns,
    listing_released_levels,
    put_back,
)
from microagg.engines.disk import OnProgress, group_from_disk
from microagg.engines.evidence_at_scale import Sample, measured_at_scale, sought
from microagg.engines.release_counts import CountedColumns, CountsOnDisk, count_release
from microagg.engines.scratch import Shelf, check_room, in_random_order
from microagg.errors import VerificationError, shown
from microagg.evidence.measured import CountedFile, Counts, Measured
from microagg.formats.batches import BatchSource, open_batches, write_batches
from microagg.formats.csv import cell_texts, formula_cells, with_escaped_formulas
from microagg.formats.layouts import CsvFormat, FileFormat, completed_csv
from microagg.formats.parquet import key_places
from microagg.grouping.read_table import broken_relation
from microagg.measure.count_by_keys import ClassCounter
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import Linkage, ReleasedRows, count_near, linkage_of
from microagg.measure.row_keys import Keys, row_keys
from microagg.measure.verify import Verification
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.release_frame import left_out_words, released_schema, with_schema

_WORD = 8
# Bytes of rows that are brought into random order at a time: Arrow's texts end at 2 GiB.
_HELD = 1 << 30


class ReleasedBatch(NamedTuple):
    """Records of a batch that are released, before and after."""

    rows: Labels  # (n,) of the input
    before: pa.Table
    text: pa.Table  # the same as a CSV file holds it
    released: pa.Table
    written: pa.Table  # with the untouched columns of a CSV file as it holds them
    values: ReleasedValues


def _sum_of_lists(table: pa.Table, names: list[str], groups: Any, csv: CsvFormat | None) -> Keys:
    """Return a sum of keys, (2,), of what rows have in some columns and of their groups, in any order.

    ``csv`` is the format of a CSV file, whose texts are compared; None: of a Parquet file values are.
    """
    columns = [table[name] if csv is None else cell_texts(name, table[name], csv) for name in names]
    total: Keys = row_keys([groups, *columns]).sum(axis=0, dtype=np.uint64)
    return total


class DiskRelease:
    """A table on disk whose records are grouped, to be written, and then counted and measured.

    Parameters
    ----------
    source : the table
    plan : with the columns to protect named
    folder : where records are kept
    memory : bytes that tables of keys may take; chunks may take twice that
    on_progress : is called with how far the grouping is; may raise to end it

    Attributes
    ----------
    left_out : metadata of the source that the written file does not have, in words; known once it is written
    """

    _counts: Counts

    def __init__(
        self, source: BatchSource, plan: Plan, folder: Path, memory: int, on_progress: OnProgress
    ) -> None:
        self.source, self.plan, self.folder, self.memory = source, plan, folder, memory
        self.roles = plan.roles(source.names)
        self._csv = source.format.csv if source.is_text else None
        self.left_out: list[str] = []
        # Swapped values travel with the units that had them.
        width = 8 + (4 if plan.is_swapped else 2) * len(plan.blocks[0].columns or ())
        check_room(folder, 2 * (source.rows * width * _WORD + source.bytes_in_memory))
        self.run = group_from_disk(source, plan, folder, on_progress, 2 * memory)
        self.encoding = encoding = self.run.encoding
        self._known = Shelf(folder / "known")  # keys of what records have in each view
        changed = [*(coder.variable.name for coder in encoding.coders), *encoding.recoders]
        self._changed = list(dict.fromkeys(changed))  # columns
        # What is looked at while the table is written: of the sampled records what they are before, as text,
        # after, what groups release, and keys by view.
        self._sampled: list[list[Any]] = [[], [], [], [], []]
        self._formulas: dict[str, int] = collections.Counter()
        self._uniques = ClassCounter(folder, memory // 2)
        self._dropped = [name for name in plan.units if name in self.roles.dropped]
        # Files of what is kept of each row and not written, in the order that _gather returns.
        self._key_files: dict[Any, Path] = {}
        self._batches = 0

    def shared(self, first: int, last: int) -> tuple[Labels, ReleasedValues]:
        """Rows of the input from one to before another that are released, and what each releases."""
        places = list(range(first // disk.AT_ONCE, (last - 1) // disk.AT_ONCE + 1))
        packed = self.run.released.take(places)
        rows = packed[:, 0].astype(np.int64)
        inside = np.flatnonzero((rows >= first) & (rows < last))
        order = inside[np.argsort(rows[inside])]
        return rows[order], ReleasedValues.of(packed[order, 1:], self.encoding)

    def released_rows(self, view: int | None = None) -> Iterator[ReleasedRows]:
        """Yield what all records release, with the keys of their values of a view if its number is given."""
        total = self.source.rows
        for first in range(0, total, disk.AT_ONCE):
            _, shared = self.shared(first, min(first + disk.AT_ONCE, total))
            keys = None if view is None else self._known.take([first // disk.AT_ONCE])[:, view]
            yield ReleasedRows(shared.values, shared.states, known=keys)

    def batches(self) -> Iterator[ReleasedBatch]:
        """Yield the records that are released, before and after, in the order of the input."""
        changed = list(self._changed)
        if self.plan.weight is not None and self.plan.weight.release == "mean":
            changed.append(self.plan.weight.column)
        values = (rows.values for rows in self.released_rows())
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
            yield ReleasedBatch(rows, before, text, released, written, shared)

    def write(
        self, part: Path, target: Path, form: FileFormat, on_progress: OnProgress, escape: bool
    ) -> CountedFile:
        """Write the released table to a temporary file next to its target, and count in what was written.

        Raises
        ------
        VerificationError
            If what was read back does not keep what was promised.
        """
        schema, encoding = self._released_schema(), self.encoding
        names = schema.names
        if escape:
            schema = with_escaped_formulas(schema.empty_table()).schema
        written_names = dict(zip(names, schema.names, strict=True))
        unwritten = [*self._dropped, *dealt_columns(encoding, written_names)]
        self._key_files = {name: self.folder / f"keys-{j}" for j, name in enumerate(unwritten)}
        to_csv = part.suffix.lower() in (".csv", ".tsv", ".txt")
        changed = [written_names.get(name, name) for name in self._changed]
        tables = self._checked_tables(schema, to_csv, escape, on_progress)
        if not self.plan.keep_order:
            folder = form.folder
            by_folder = part.is_dir() and folder.keeps_places(names, changed, encoding.records)
            changed += [] if by_folder else folder.keys
            tables = in_random_order(
                tables,
                self.folder / "random order",
                encoding.records,
                min(self.memory // 4, _HELD),
                # The columns that folders give were not changed.
                partial(key_places, folder.pieces) if by_folder else None,
                len({piece.keys for piece in folder.pieces}) if by_folder else 1,
            )
        columns = len(schema.names)
        promises = self.plan.promises(written_names)
        listed = [*dict.fromkeys(name for promise in promises for name in promise.columns or ())]
        csv = completed_csv(part, form.csv) if to_csv else None
        lists = np.zeros(2, np.uint64)  # what the rows of each group have, less what the file has

        def written() -> Iterator[pa.Table]:
            """Yield what is written, and gather from each table what is counted in it."""
            nonlocal lists
            done = self.encoding.records
            for table in tables:
                yield table.select(range(columns))
                extra = zip(self._key_files.values(), table.columns[columns:], strict=True)
                for path, keys in extra:
                    with path.open("ab") as file:
                        file.write(keys.to_numpy().tobytes())  # which says why, if it cannot
                if encoding.is_swapped:
                    groups = table.column(columns + list(self._key_files).index(GROUP))
                    lists += _sum_of_lists(table, listed, groups, csv)
                done += table.num_rows
                on_progress("writing", done, 2 * self.encoding.records)

        write_batches(written(), part, form, schema, self.encoding.records, changed)
        self.left_out = left_out_words(self.source.schema, schema)
        verified, self._counts = self._count(part, written_names)
        if encoding.is_swapped:
            groups, back = self._gathered_keys()[GROUP], open_batches(part, self._csv)
            for batch in back.batches(listed):
                there = groups.slice(batch.first, batch.as_written.num_rows)
                lists -= _sum_of_lists(batch.as_written, listed, there, csv)
        if lists.any():
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and its groups do not have the values that were "
                "dealt. The file was removed."
            )
        return counted_in_parts(encoding, self.run.sums, part, target, verified)

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
            on_progress("writing", done, 2 * self.encoding.records)

    def _gather(self, batch: ReleasedBatch) -> list[Keys]:
        """Look at a batch before and after; return what is kept of each row and not written.

        These are the keys of dropped units and, if values are swapped, what was dealt.
        """
        self._batches += 1
        is_text = self.source.is_text
        protected = (batch.before[coder.variable.name] for coder in self.encoding.coders)
        self._uniques.add(row_keys(list(protected)))
        recoded, written = self.encoding.recoded(batch.before, batch.text if is_text else None)
        whole = Frame(recoded if written is None else written)
        keys = [np.zeros((len(batch.rows), 0), np.uint64)]
        for columns in views_of(self.roles).values():
            values = [values_as_written(whole, name, is_text) for name in columns]
            keys.append(row_keys(values)[:, :1])
        known = np.hstack(keys)
        self._known.put(self._batches, known, batch.rows // disk.AT_ONCE)
        at = np.flatnonzero(np.isin(batch.rows, self.run.sampled[:, 0]))
        tables = (table.take(pa.array(at)) for table in (batch.before, batch.text, batch.released))
        samples = *tables, batch.values.packed()[at], known[at]
        for held, sample in zip(self._sampled, samples, strict=True):
            held.append(sample)
        units = ([values_as_written(whole, name, is_text)] for name in self._dropped)
        unit_keys = [np.ascontiguousarray(row_keys(values)[:, 0]) for values in units]
        dealt = batch.values.dealt
        return [*unit_keys, *(() if dealt is None else np.ascontiguousarray(dealt.T))]

    def _gathered_keys(self) -> dict[Any, pa.Array]:
        """Return keys that the file does not have, such as those of units, in the order of its records."""
        arrays = {}
        for name, path in self._key_files.items():
            keys = np.memmap(path, dtype=np.uint64, mode="r")
            arrays[name] = pa.Array.from_buffers(pa.uint64(), len(keys), [None, pa.py_buffer(keys)])
        return arrays

    def _count(self, part: Path, written: Mapping[str, str]) -> tuple[list[Verification], Counts]:
        """Count the promises, and classes of records, in the file that was written.

        ``written`` has the names of the columns there.
        """
        encoding, promises = self.encoding, self.plan.promises(written)
        back = open_batches(part, self._csv)
        rows = CountsOnDisk(back, self.folder, self.memory, self._gathered_keys())
        typed = Frame(self.source.schema.empty_table())
        values: list[Any] = [written[coder.variable.name] for coder in encoding.coders]
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

    def measured(self, **measures: Any) -> Measured:
        """Measure what was written; ``measures`` are as for :func:`.measured_at_scale`."""
        encoding, run = self.encoding, self.run
        before, text, after = map(pa.concat_tables, self._sampled[:3])
        released, known = map(np.concatenate, self._sampled[3:])
        shared = ReleasedValues.of(released, encoding)
        written = text if self.source.is_text else None
        sample = Sample(before, after, written, run.sampled[:, 1], shared)
        linked: dict[str | None, Linkage] = {}
        for at, view in enumerate([None, *views_of(self.roles)], -1):
            wanted = sought(encoding, sample, None if view is None else known[:, at])
            rows = self.released_rows(None if view is None else at)
            near = count_near(encoding.attacker, wanted, rows)
            linked[view] = linkage_of(near, encoding.records)
        together = []  # dropped units of which two rows follow each other in the file
        for name in self._dropped if self.plan.keep_order else ():
            keys = self._gathered_keys()[name].to_numpy()
            together += [name] if (keys[1:] == keys[:-1]).any() else []
        measured = measured_at_scale(
            encoding,
            sample,
            summary=run.summary,
            sums=run.sums,
            counts=self._counts,
            linked=linked,
            together=sorted(together, key=str),
            **measures,
        )
        return replace(measured, formulas=self._formulas)

    def _released_schema(self) -> pa.Schema:
        """Return the schema of the released table, with the metadata that a release needs and no other."""
        tables = (batch.written for batch in self.batches())
        first = next(tables)
        # If there are codes this is a pass of its own: labels stand in front of the records.
        every = itertools.chain([first], tables)
        return released_schema(first.schema, every, self.encoding.records)
