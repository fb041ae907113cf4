"""Measure a table against its release, in memory: all figures, and what calls for a caution."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from microagg.base.typing import Labels
from microagg.drafting.guess import FEW
from microagg.drafting.infer import seen_again, tells_time
from microagg.encode.steps import Steps
from microagg.errors import MicroaggError
from microagg.evidence.measured import Cure, Measured, Signs
from microagg.evidence.table_figures import TableFigures
from microagg.grouping.require.value_rules import WITHIN
from microagg.kernels.labels import combine, standard_deviation
from microagg.measure.analyses import check_analyses
from microagg.measure.before_and_after import column
from microagg.measure.disclosure_signs import (
    SortedColumn,
    determines,
    identifiers,
    sorted_column,
    unmixed_units,
)
from microagg.measure.known_columns import Known, ascending_codes, enough, known_columns
from microagg.measure.linked_rows import linking_columns, lying_together
from microagg.measure.risk import Risk, disclosed_share
from microagg.measure.utility import Utility
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import EXACT
from microagg.releasing.rounding import default_steps

_EASILY_TRIED = 20_000  # records up to which a fast search takes about two seconds


class Measuring(TableFigures):
    """A table before and after, rows in the order given, and what is measured of it."""

    @cached_property
    def signs(self) -> Signs:
        """What calls for a caution."""
        roles, both, known = self.roles, self.both, self.known
        below = self.below_k_with_known if known else 0.0
        # Strata are part of what k records share, and so is all that follows from them.
        strata = self.plan.shared_strata
        extra = {name: column for name, column in known.items() if name not in strata}
        hidden = self.as_in_file([*roles.dropped, *roles.renumbered])
        uncounted: list[Any] = []  # in a sample, which may not have all rows of a unit
        if self.counted is not None and self.is_sample:
            uncounted = [name for name in self.plan.units if name in roles.released]
            uncounted += self.counted.together
        runs: dict[Any, Known] = {}  # rows of dropped units that lie together
        if self.plan.keep_order:
            runs = lying_together(linking_columns(self.as_in_file(roles.dropped), self.plan.units))
        classes = _classes_of_records(self)
        return Signs(
            records=self.records,
            looked_at=len(both),
            below_k=below,
            harms=self.harms if below else (),
            enough=enough(both, known, self.plan.k, self.intake.units) if below else None,
            identifiers=identifiers(extra),
            determined=determines({**extra, **self.confidential}, both),
            linked_rows=self.linked_rows(),
            uncounted_rows=uncounted,
            lying_together=self.linked_rows(runs),
            sorted_by=_sorted_by(self),
            fine_digits=_fine_digits(self),
            frame_in_order=self.is_frame and self.plan.keep_order is None,
            unmixed=unmixed_units(classes, {**known, **hidden}, _seen_again(self)),
            agreements=self.agreements,
            cure=None if self.again is None else cure_of(self.plan, self, self.again),
            steered=[  # other than by merging whole groups
                name
                for part in self.parts
                if part.base is None and (block := self.plan.block_of(part.columns)).is_swapped
                for name in block.require.columns
                if name not in roles.protected
            ],
            pairing=self.pairing,
            missing_counts=self.missing_counts,
            recoded=self.recoded,
            row_labels=self.intake.frame.distinct_row_labels(),
            unreadable=self.unreadable,
        )

    def measure(self, *, analyses: Iterable[Any] = ()) -> tuple[Utility, Risk]:
        """Return loss and risk, with analyses as for :func:`microagg.utility`."""
        analyses = [analyses] if isinstance(analyses, str) else list(analyses)
        gone = {*self.roles.dropped, *self.roles.renumbered}  # whose values would be reported
        frame = self.intake.original or self.intake.frame
        check_analyses(analyses, frame, gone, whole=False)
        return self.with_analyses(self.utility, analyses), self.risk

    def measured(self, **measures: Any) -> Measured:
        """Return all figures; ``measures`` are as for :meth:`measure`."""
        utility, alone = self.measure(**measures)
        return Measured(
            roles=self.roles,
            parts=self.parts,
            signs=self.signs,
            utility=utility,
            fidelity=self.fidelity,
            alone=alone,
            with_known=self.with_known,
            if_confidential_known=self.if_confidential_known,
            harms=self.harms,
            stakes=self.counts.stakes,
            summaries=self.summaries,
            weighted=self.both.weights is not None,
            dropped=self.intake.dropped if self.counted is None else self.counted.dropped,
            suppressed=self.suppressed,
            swap=self.swap,
        )

    def pictures(self) -> dict[str, Any]:
        """Return what a report draws, as plain data."""
        both, least = self.both_as_given, max(self.plan.k, 3)
        return {
            "distributions": {
                str(v.name): column(
                    v, [both.original[:, j], both.protected[:, j]], least, both.before
                )
                for j, v in enumerate(both.variables)
            }
        }


def _sorted_by(table: TableFigures) -> list[SortedColumn]:
    """Return columns by which rows are sorted, if their order is kept, which a sample has, too."""
    if not table.plan.keep_order:
        return []
    roles, frame = table.roles, table.intake.original or table.intake.frame
    weight = [] if roles.weight is None else [roles.weight]
    wanted = [*roles.protected, *roles.known, *roles.dropped, *roles.renumbered, *weight]
    columns = (sorted_column(name, ascending_codes(frame, name)) for name in dict.fromkeys(wanted))
    return [column for column in columns if column is not None]


def _fine_digits(table: TableFigures) -> list[Any]:
    """Return columns whose means have finer digits by the plan than by default."""
    digits, columns = table.plan.digits, []
    for name, variable in table.intake.variables.items() if digits is not None else ():
        block = table.plan.block_of([name])
        if variable.is_category or variable.kind == "date":
            continue
        if table.plan.column(name).round != "no" or block.released not in ("mean", "midrange"):
            continue
        values = variable.values[~variable.missing]
        weighted = table.intake.relative_weights is not None and not block.is_swapped
        usual = default_steps(
            standard_deviation(values),
            Steps.of(values) if weighted and block.released == "mean" else None,
        )
        if usual is not None and (
            not isinstance(digits, int) or Steps.of_decimals(digits).size < usual.size
        ):
            columns.append(name)
    weight = table.plan.weight
    if digits == EXACT and weight is not None and weight.release == "mean":
        columns.append(weight.column)
    return columns


def _seen_again(table: TableFigures) -> dict[Any, Known]:
    """Return protected names or codes that go on in time, as people and firms that are asked every year."""
    variables = table.intake.variables
    nominal = [name for name, variable in variables.items() if variable.kind == "nominal"]
    times = [
        name
        for name, variable in variables.items()
        if name not in nominal and tells_time(name, variable.kind, len(np.unique(variable.values)))
    ]
    if not nominal or not times:
        return {}
    sorts = [
        name
        for name, variable in variables.items()
        if variable.kind in ("nominal", "ordinal", "boolean") and name not in times
    ]
    columns = known_columns(table.intake.frame, list(dict.fromkeys([*nominal, *sorts, *times])))
    time = combine([columns[name].codes for name in times])
    sorts = [name for name in sorts if columns[name].distinct <= FEW]
    returning = {}
    for name in nominal:
        others = [columns[other].codes for other in sorts if other != name]
        if all(seen_again(columns[name].codes, time, others)):
            returning[name] = columns[name]
    return returning


def _classes_of_records(table: TableFigures) -> list[tuple[Labels, int]]:
    """Return classes by the released values of each part whose k counts records, and this k."""
    classes = []
    position = {name: j for j, name in enumerate(table.both.names)}
    for part in table.parts:
        block = table.plan.block_of(part.columns)
        if table.plan.unit_of(block).column is not None:
            continue
        if block.is_swapped:
            classes.append((part.partition.labels, part.partition.k))
        else:
            values = table.both.of_columns(position[name] for name in part.columns)
            shared = known_columns(table.after, table.plan.also_shared(block))
            codes = (column.codes for column in shared.values())
            classes.append((combine([values.classes, *codes]), part.partition.k))
    return classes


def cure_of(plan: Plan, now: TableFigures, again: Callable[[Plan], TableFigures]) -> Cure | None:
    """Find the requirement that cures groups which disclose, and try it ``again`` on the same table.

    ``now`` are the figures of the release by ``plan``. None if no group discloses more than the plan accepts.
    A cure without a loss was not tried, since the table is large; one without requirements says that none was
    found.
    """
    agreements, accepted = now.agreements, plan.accept.agreeing
    if disclosed_share(agreements.values()) <= accepted:
        return None
    loss, every = now.utility.information_loss, list(agreements)
    disclosed = [name for name, agreement in agreements.items() if agreement.records]
    hidden = [block.require.hidden for block in plan.blocks]
    known = tuple(name for name in plan.known if name not in plan.shared_strata)
    # The surest first. Other groups may disclose other columns, unless all are hidden. Someone who knows a
    # column tells records of a group apart by it, which no requirement prevents.
    for drop, columns in itertools.product(
        [(), known] if known else [()],
        [every, disclosed] if len(disclosed) < len(every) else [every],
    ):
        new = [name for name in columns if any(asked.get(name, 0.0) < WITHIN for asked in hidden)]
        if not (new or drop):
            continue
        require = {"hidden": dict.fromkeys(new, WITHIN)} if new else {}
        if agreements[every[0]].of > _EASILY_TRIED:
            return Cure(require, drop, None, loss)
        left = [name for name in plan.known if name not in drop]
        try:
            cured = again(
                plan.override(require=require, drop=[*plan.drop, *drop], known=left, effort="fast")
            )
        except MicroaggError:  # it cannot be met
            continue
        if disclosed_share(cured.agreements.values()) <= accepted:
            return Cure(require, drop, cured.utility.information_loss, loss)
    return Cure({}, (), None, loss)
