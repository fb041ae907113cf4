"""Write a released table to a file, read it back, and count in it what was promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.base.formatting import plural
from microagg.errors import VerificationError, listed, shown
from microagg.evidence.measured import CountedFile, Required
from microagg.formats.atomic import replacing
from microagg.formats.csv import no_formulas, with_escaped_formulas
from microagg.formats.files import (
    FORMATS,
    cannot_hold,
    difference,
    kind_of,
    read_file,
    write_file,
)
from microagg.formats.layouts import FileFormat, FolderLayout
from microagg.formats.parquet import key_places
from microagg.grouping.read_table import Intake, PartInput, broken_relation
from microagg.grouping.require.requirement import Requirement
from microagg.grouping.require.value_rules import Units
from microagg.kernels.labels import combine
from microagg.measure.verify import Verification, verify_all
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.releasing.dealt import Dealt
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.release_frame import released_table, reordered

if TYPE_CHECKING:
    import pyarrow as pa

    from microagg.base.typing import Labels


@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """A released table, and what is needed to write it and to check what was written."""

    data: Any
    plan: Plan
    intake: Intake
    """The table as it came."""
    inputs: Sequence[PartInput]
    """The columns of each part, encoded, with what its groups must satisfy."""
    recoded_columns: tuple[Any, ...] = ()
    """Strata that are released otherwise than they came."""
    order: Labels | None = None
    """Of the rows in a file, drawn once; None: as they came. Those of ``data`` have it already if the plan
    says that a frame does not keep its order."""
    dealt: Sequence[Dealt | None] = ()
    """For each part what was dealt to its rows; None: the part is not swapped."""

    @property
    def roles(self) -> Roles:
        """Role of each column."""
        return self.intake.roles

    @property
    def as_written(self) -> Frame | None:
        """Columns left as they are, as they stand in a CSV file, in the order of the rows of ``data``."""
        if self.intake.text is None:
            return None
        names = [name for name in self.roles.released if name not in self.recoded_columns]
        left = self.intake.text.select(names)
        return Frame(left if self.plan.keep_order is not False else left.take(self.order))

    def table(self, kind: str, kept: pa.Table | None = None) -> pa.Table:
        """Return the table as it is written to a file of some kind.

        ``kept`` has the columns that stay what they are as the file that was read holds them.
        """
        table = Frame(self.data).to_arrow(unnamed_index=FORMATS[kind].keeps_facts)
        if self.plan.keep_order is None:
            table = table.take(self.order)
        if kept is not None and self.intake.rows is not None:
            kept = kept.take(self.intake.rows)
        there = frozenset(() if kept is None else kept.column_names)
        for name in self.roles.released:
            if kept is not None and name in there and name not in self.recoded_columns:
                column = kept[name] if self.order is None else kept[name].take(self.order)
                at = table.column_names.index(name)
                table = table.set_column(at, kept.schema.field(name), column)
        return released_table(table)

    def placed_in(self, folder: FolderLayout) -> ReleasedTable:
        """Return the table with its rows by the files of a folder such as year=2024, in random order within.

        It stays as it is if its order is kept, or if the folders no longer tell what its records have.
        """
        places = key_places(folder.pieces, Frame(self.data).to_arrow(unnamed_index=False))
        if self.order is None or places is None:
            return self
        has_order = self.plan.keep_order is False  # of the file, in data
        by_file = np.argsort(places if has_order else places[self.order], kind="stable")
        data = reordered(self.data, by_file) if has_order else self.data
        return replace(self, data=data, order=self.order[by_file])

    def deliver(self, target: Path, form: FileFormat | None, escape: bool) -> CountedFile:
        """Write the table to a file that gets its name only after it was read back and counted."""
        kind = kind_of(target, writing=True)  # an unknown ending is refused before any work
        if FORMATS[kind].limits_values:
            cannot_hold(Frame(self.data).to_arrow(unnamed_index=False), kind)
        if escape and not FORMATS[kind].has_formulas:
            raise no_formulas(target)
        with replacing(target) as part:
            return self.write(self.table(kind), part, target, form or FileFormat(), escape)

    def write(
        self, table: pa.Table, part: Path, target: Path, form: FileFormat, escape: bool
    ) -> CountedFile:
        """Write the table to a temporary file next to its target, read it back and count.

        Raises
        ------
        VerificationError
            If what was read back does not keep what was promised, or is not what was written.
        """
        if escape:
            table = with_escaped_formulas(table)
        # An index comes last.
        written = dict(zip(Frame(self.data).names, table.column_names, strict=False))
        write_file(table, part, form)
        back = read_file(part, csv=form.csv, sheet=form.excel.sheet, hashed=True)
        units = self._units_not_told(written)
        verified = verify_all(back, self.plan.promises(written), units=units)
        broken, file = broken_relation(self.plan, Frame(back.table)), Frame(back.as_written)
        if broken is not None:
            raise _refused(target, f"does not keep the relation {broken}")

        def codes(name: Any) -> Labels:
            """Return codes of the values in the file, in the order of the records."""
            rows = codes_as_written(file, written[name], back.is_text)
            in_order = np.empty_like(rows)
            in_order[slice(None) if self.order is None else self.order] = rows
            return in_order

        for dealt in self.dealt:
            if dealt is not None and (fault := dealt.fault(codes)):
                raise _refused(target, fault)
        required = self._required(codes)
        counted = counted_file(target, verified, back.sha256, required, len(self.intake))
        same = [written[name] for name in self.roles.released if name in written]
        differs = difference(table, back, same)
        if differs is not None:
            raise _refused(target, f"is not what was written: {differs}", " Write another format.")
        return counted

    def _required(self, codes: Callable[[Any], Labels]) -> tuple[Required, ...]:
        """Count requirements over the combinations of values in a file that was read back.

        Each is counted over the records of equal values, which are unions of groups, or over the groups
        of swapped values; what the file no longer tells, such as a dropped unit, is known of each record.
        ``codes`` gives those of a column in the file, in the order of the records.
        """
        required = []
        for encoded, dealt in zip_longest(self.inputs, self.dealt):
            if not encoded.requirements:
                continue
            if dealt is not None:
                labels = dealt.labels
            else:
                columns = [variable.name for variable in encoded.variables]
                shared = self.plan.also_shared(self.plan.block_of(columns))
                labels = combine([codes(name) for name in [*columns, *shared]])
            required += [
                as_required(rule, rule.say(rule.figure(labels)), rule.holds(labels))
                for rule in encoded.requirements
            ]
        return tuple(required)

    def _units_not_told(self, written: Mapping[Any, str]) -> dict[Any, pa.Array]:
        """Return units that the file does not tell, in the order of its rows.

        These are dropped units, by their column; and the units that had the values of swapped columns, by the
        unit and the column: a value stands for the units that had it, whatever rows it was dealt to.
        """
        import pyarrow as pa

        units_by: dict[Any, Labels] = {
            written.get(name, name): self.intake.units_by[name]
            for name in self.plan.units
            if name in self.roles.dropped
        }
        for part in self.dealt:
            unit = part and self.plan.unit_of(self.plan.block_of(part.names)).column
            if part is not None and unit is not None:
                for name, donors in zip(part.names, part.donors, strict=True):
                    key = written.get(unit, unit), written[name]
                    units_by[key] = self.intake.units_by[unit][donors]
        if self.order is not None:
            units_by = {key: units[self.order] for key, units in units_by.items()}
        return {key: pa.array(units, mask=units < 0) for key, units in units_by.items()}


def as_required(rule: Requirement, figure: str, passed: bool) -> Required:
    """Return a requirement with the figure of the worst group."""
    return Required(rule.describe(), figure, passed, isinstance(rule, Units))


def counted_file(
    target: Path,
    verified: Sequence[Verification],
    sha256: str,
    required: tuple[Required, ...],
    records: int,
) -> CountedFile:
    """Return what was counted in a file that was read back, by the name that it will have.

    Raises
    ------
    VerificationError
        If it does not keep what was promised, or has not all records.
    """
    counted = CountedFile(str(target), tuple(verified), sha256, required)
    failed = next((requirement for requirement in counted.required if not requirement.passed), None)
    if failed is not None:
        raise _refused(
            target, f"does not have {failed.words}: in the worst group it is {failed.found}"
        )
    least = counted.least
    if not counted.holds or least.records != records:
        raise _refused(
            target,
            f"does not hold: {least.records:,} of {plural(records, 'record')} are there and "
            f"{least.records_below_k:,} share their values in {listed(least.columns)} with too few others "
            f"for k = {least.k:,}",
        )
    return counted


def _refused(target: Path, fault: str, way_out: str = "") -> VerificationError:
    return VerificationError(
        f"{shown(str(target), 300)} was read back and {fault}. The file was removed.{way_out}"
    )
