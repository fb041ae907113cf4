"""Read a table by its plan, before any group is formed: typed columns, weights, units and cells.

Everything that can be wrong with a table is found here, before any work: values that do not fit their kind,
wrong weights, strata that are too small, relations that do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.base.formatting import percent, plural
from microagg.base.typing import Floats, Labels
from microagg.drafting.guess import FEW
from microagg.encode.missing import distinct_rows, group_states, join_patterns, rows_of_each
from microagg.encode.prepare import weights_of
from microagg.encode.recode import Recoder, before_of
from microagg.encode.recoded_table import Recoded, complete_rows, recode_table, recoders_of
from microagg.encode.release_rules import with_releases
from microagg.encode.space import Space, are_plain, space_of, with_admissible
from microagg.encode.strata import count_units, strata_of, stratum_too_small
from microagg.errors import InputError, shown
from microagg.grouping.require.from_plan import can_be_group, requirements_of, within
from microagg.grouping.require.requirement import Requirement, check_feasible
from microagg.kernels.labels import canonical_labels
from microagg.plan.block import Block
from microagg.plan.column import Column
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.plan.settings import check_k
from microagg.tables.file_metadata import Coded
from microagg.tables.finite import first_row
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.release_frame import reordered
from microagg.tables.variable import Variable, column_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Intake:
    """A table, read by its plan."""

    frame: Frame
    text: pa.Table | None  # the same table as it stands in a CSV file
    plan: Plan
    roles: Roles
    variables: Mapping[Any, Variable]  # the protected columns
    weights: Floats | None  # of the records, as given
    units_by: Mapping[Any, Labels]  # of the records, by column that a block counts; −1: missing
    strata_by: Mapping[Any, Labels]  # of the records, by the columns of the strata of a block
    rows: Labels | None  # kept records of the given table, where some are left out; None: all
    given: int  # records of the given table
    suppressed: int = 0  # records that are left out since that lowers the loss
    recoded: Mapping[Any, Recoded] = field(default_factory=dict)  # columns before they were recoded
    original: Frame | None = None  # the table before it was recoded; None: nothing was

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def dropped(self) -> int:
        """Records that are left out for missing values."""
        return self.given - len(self) - self.suppressed

    @property
    def units(self) -> Labels | None:
        """Units of all protected columns together, see :class:`microagg.plan.sections.Roles`."""
        return self.units_by.get(self.roles.unit)

    def units_of(self, block: Block) -> Labels | None:
        """Return the units that k counts in a block; None: records."""
        return self.units_by.get(self.plan.unit_of(block).column)

    def strata_of(self, block: Block) -> Labels | None:
        """Return the strata of a block; None: it has none."""
        return self.strata_by.get(self.plan.strata_of(block).columns)

    @property
    def plain(self) -> bool:
        """Whether all protected columns are complete numbers, and all records count alike."""
        columns = list(self.variables.values())
        return self.relative_weights is None and are_plain(columns)

    @property
    def relative_weights(self) -> Floats | None:
        """Weights with a mean of 1; None if all weights are equal."""
        w = self.weights
        if w is None or (w == w[0]).all():
            return None
        return np.asarray(w / w.mean())


@dataclass(frozen=True, eq=False)
class PartInput:
    """Columns that get one partition, ready to be grouped."""

    variables: Sequence[Variable]
    space: Space
    states: Labels  # (n, columns), with what the join of patterns blanks
    cells: Labels  # (n,) records of different ones never share a group
    strata_merged: bool
    requirements: Sequence[Requirement]  # of every group in addition to k, for all records


def take_in(
    table: Frame,
    plan: Plan,
    text: pa.Table | None = None,
    coded: Mapping[Any, Coded] | None = None,
    fitted: Mapping[Any, Recoder] | None = None,
    rows: Labels | None = None,
) -> Intake:
    """Read the columns of a table by a plan, and check everything that can be wrong with them.

    Records that the policy ``drop`` leaves out are left out first; then columns are recoded, if the plan asks
    for it: the plan of the result is that of the recoded table.

    Parameters
    ----------
    table : n records; never changed
    plan : with a role for every column
    text : the same records as they stand in a CSV file
    coded : codes for missing values of the file that the table came from, by column
    fitted : the recodings, if these records are a sample of a larger table, which was checked
    rows : (m,) records that the plan does not leave out, ascending; None: all
    """
    roles, given, is_csv = plan.roles(table.names), len(table), text is not None
    if not given:
        raise no_records()
    for block in plan.blocks:
        check_k(block.k or 1, given)
    coded = coded or {}
    recoders = recoders_of(table, plan, text) if fitted is None else fitted
    suppressed = 0 if rows is None else given - len(rows)
    complete = complete_rows(table, plan, is_csv)
    if complete is not None:
        suppressed = 0 if rows is None else int(complete.sum() - complete[rows].sum())
        rows = np.flatnonzero(complete) if rows is None else rows[complete[rows]]
    if rows is not None and len(rows) < given:
        if not len(rows):
            raise no_complete_record()
        table = Frame(reordered(table.native, rows))
        # Types then list no category that only other records have.
        listed = [name for name in table.names if table.kind_in_words(name) == "categories"]
        every = np.arange(len(rows))
        table = Frame(table.with_columns({name: table.take(name, every) for name in listed}))
        text = None if text is None else text.take(rows)
        coded = {name: Coded(tagged.codes, tagged.tags[rows]) for name, tagged in coded.items()}
    original, recoded = None, {}
    if recoders:
        original = table
        recoded = {name: Recoded(how, before_of(table, how)) for name, how in recoders.items()}
        table, text, plan = recode_table(table, plan, recoders, text, coded)
    variables = {}
    for name in roles.protected:
        variable = column_of(table, plan, name, missing_words(is_csv), coded)
        variables[name] = recoders[name].placed(variable) if name in recoders else variable
        if plan.missing.policy == "error" and variable.missing.any():
            raise refused_as_missing(variable)
    written = table if text is None else Frame(text)
    units = {name: codes_as_written(written, name, is_csv) for name in plan.units}
    if units:
        # Of nested units, such as plants and firms, the fewest are the strictest.
        roles = replace(roles, unit=min(units, key=lambda name: len(np.unique(units[name]))))
    if fitted is None:
        for name, variable in variables.items():
            levels, present = int((variable.rows >= 0).sum()), int((~variable.missing).sum())
            check_no_identifier(name, variable.kind, variable.setting, levels, present)
    weights = None if plan.weight is None else weights_of(table, plan.weight.column)
    check_relations(plan, table, variables)
    sets = {plan.strata_of(block).columns for block in plan.blocks} - {()}
    strata = {names: strata_of(table, names, None if text is None else written) for names in sets}
    return Intake(
        frame=table,
        text=text,
        plan=plan,
        roles=roles,
        variables=variables,
        weights=weights,
        units_by=units,
        strata_by=strata,
        rows=rows,
        given=given,
        suppressed=suppressed,
        recoded=recoded,
        original=original,
    )


def no_records() -> InputError:
    """Return the error about a table with nothing to protect."""
    return InputError(
        "A table to protect has at least one record; this one has none. Check that it was read whole."
    )


def no_complete_record() -> InputError:
    """Return the error about a table whose records the policy drop leaves out, all of them."""
    return InputError(
        'missing = "drop" leaves out records with a missing value; every record has one. Say another '
        'policy, such as "pattern".'
    )


def refused_as_missing(variable: Variable) -> InputError:
    """Return the error about missing values of ``variable`` where the policy refuses them."""
    return InputError(
        "Columns to protect must have no missing values by the policy error; column "
        f"{shown(variable.name)} has some, the first in {first_row(variable.missing)}. Fill them, or say "
        'missing = "pattern".'
    )


def check_no_identifier(name: Any, kind: str, setting: Column, levels: int, present: int) -> None:
    """Refuse names and ids as categories: a group would release the name of one of its members.

    ``setting`` is what the plan says of the column; ``levels`` is the number of different values that it has,
    ``present`` that of its records that have a value.
    """
    if kind not in ("nominal", "hierarchy") or setting.levels is not None:
        return
    if levels > FEW and 2 * levels > present:
        raise InputError(
            f"A group releases its most frequent category; column {shown(name)} has {levels:,} "
            f"different values in {plural(present, 'record')}, so this would be the name or id of "
            "one of them. Drop the column, or have coarser categories: --coarsen COLUMN=prefix:2 or rare:20."
        )


def check_relations(plan: Plan, frame: Frame, variables: Mapping[Any, Variable]) -> None:
    """Refuse a table in which a relation of ``plan`` does not hold; ``variables`` are those it protects."""
    for relation in plan.relations:
        values = {}
        for name in relation.columns:
            variable = variables.get(name)
            values[name] = _numbers(frame, name) if variable is None else variable.values
            if variable is not None and variable.is_category:
                raise InputError(
                    f"A relation is about numbers; {shown(name)} in {shown(relation.text, 200)} is of kind "
                    f"{variable.kind}. Leave the relation out, or name it as a number."
                )
        wrong = relation.broken(values)
        if wrong.any():
            raise InputError(
                f"A relation holds in every record before release; {shown(relation.text, 200)} does not in "
                f"{plural(int(wrong.sum()), 'record')}, the first in {first_row(wrong)}. Correct those "
                "records, or leave the relation out."
            )


def _numbers(frame: Frame, name: Any) -> Floats:
    if not frame.is_numeric(name):
        raise InputError(
            f"A relation is about numbers; column {shown(name)} holds {frame.kind_in_words(name)}."
        )
    return frame.doubles(name)


def broken_relation(plan: Plan, frame: Frame) -> str | None:
    """Name the first relation of ``plan`` that ``frame``, a released table, breaks; None: all hold."""
    for relation in plan.relations:
        values = {name: _numbers(frame, name) for name in relation.columns}
        wrong = relation.broken(values)
        if wrong.any():
            return f"{shown(relation.text, 200)} in {plural(int(wrong.sum()), 'record')}"
    return None


def part_input(intake: Intake, block: Block, columns: Sequence[Any]) -> PartInput:
    """Encode columns and find the cells in which groups may form.

    Refused are strata with fewer than k units, and joins of rare patterns that blank too much.

    Parameters
    ----------
    intake : the table
    block : with k, strata, unit and requirements
    columns : names of the columns that get one partition
    """
    plan, k, policy = intake.plan, block.k or 1, intake.plan.missing.policy
    units, unit = intake.units_of(block), plan.unit_of(block)
    variables, weights = [intake.variables[name] for name in columns], intake.relative_weights
    space = space_of(variables, block.scale, weights, states=policy in ("majority", "fill"))
    requirements = requirements_of(intake.frame, block, units, unit.column, intake.weights)
    check_feasible(requirements)
    strata, merged = np.zeros(len(intake), dtype=np.int64), False
    given_strata = intake.strata_of(block)
    if given_strata is not None:
        strata = _merge_small(intake, block, given_strata, space.scaled)
        merged = int(strata.max()) < int(given_strata.max())
    for rows in rows_of_each(strata) if strata.any() else ():
        check_feasible(within(requirements, rows))
    states = np.column_stack([variable.states for variable in variables])
    cells = strata
    # Whole households have patterns of their own, see households.py.
    if policy == "pattern" and states.any() and unit.mode != "together":
        enough = partial(can_be_group, requirements) if block.require else None
        joined = join_patterns(states, strata, k, units, space.scaled, enough)
        check_blanked(states, None, joined.blanked, plan)
        states, cells = joined.states, joined.cells
    # Swapped groups release their values, and groups of places in households are made afterwards.
    if unit.mode != "together" and not block.is_swapped:
        able = [with_admissible(variable, k, units) for variable in variables]
        space = with_releases(space, able, states, weights, policy, block.released)
    return PartInput(variables, space, states, cells, merged, requirements)


def _merge_small(intake: Intake, block: Block, strata: Labels, scaled: Floats) -> Labels:
    """Refuse strata with fewer than k units, or merge them; return the strata in which groups may form.

    A stratum is merged with the one that agrees with it in most of the columns and is nearest by its mean, of
    ``scaled`` coordinates. Groups that then hold records of several strata release the one that most of them
    have, so that it is shared like any other value.
    """
    strata, k, wanted = strata.copy(), block.k or 1, intake.plan.strata_of(block)
    while True:
        g = int(strata.max()) + 1
        shared = count_units(strata, intake.units_of(block), g)
        sizes = np.bincount(strata, minlength=g)
        short = np.flatnonzero((sizes > 0) & (shared < k))
        if not len(short):
            return canonical_labels(strata)
        first = np.array([int(np.argmax(strata == stratum)) for stratum in range(g)])
        worst = int(short[np.argmin(shared[short])])
        others = np.flatnonzero((sizes > 0) & (np.arange(g) != worst))
        written = intake.frame if intake.text is None else Frame(intake.text)
        categories = [written.categories(name) for name in wanted.columns]
        if wanted.small != "merge" or not len(others):
            names = {
                tuple(levels[codes[first[at]]] for codes, levels in categories): int(shared[at])
                for at in short
            }
            who = intake.plan.words_of_unit(intake.plan.unit_of(block).column)
            raise stratum_too_small(wanted.columns, names, k, who)
        members = strata == worst
        differences = sum(codes[first[others]] != codes[first[worst]] for codes, _ in categories)
        means = np.column_stack([np.bincount(strata, x, minlength=g)[others] for x in scaled.T])
        apart = np.square(means / sizes[others, None] - scaled[members].mean(axis=0)).sum(axis=1)
        strata[members] = others[np.lexsort((others, apart, differences))[0]]


def check_blanked(states: Labels, often: Labels | None, blanked: int, plan: Plan) -> None:
    """Refuse to blank too many values by joining patterns; say what each policy would do, in figures.

    Parameters
    ----------
    states : (n, columns) state of each value of records, or of patterns
    often : (n,) number of records that have each pattern; None: ``states`` are those of records
    blanked : number of values that the join blanks
    plan : with the share of the values that may be blanked
    """
    often = np.ones(len(states), dtype=np.int64) if often is None else often
    n = int(often.sum())
    cells = n * states.shape[1]
    if blanked <= plan.missing.most * cells:
        return
    patterns, which = distinct_rows(states)
    sizes = np.bincount(which, often).astype(np.int64)
    missing = int(np.count_nonzero(patterns, axis=1) @ sizes)
    incomplete = int(sizes[patterns.any(axis=1)].sum())
    needed = np.ceil(1000 * blanked / cells) / 1000
    # What the policy majority fills and blanks in groups of records of like patterns. Groups within one
    # pattern change nothing: of each pattern fewer than 2 k records are enough.
    k, order = plan.k, np.lexsort(patterns.T[::-1])
    few = np.where(sizes < 2 * k, sizes, k + sizes % k)[order]
    alike = np.repeat(patterns[order], few, axis=0)
    labels = np.minimum(np.arange(len(alike)) // k, max(len(alike) // k - 1, 0))
    released = group_states(alike, labels, int(labels.max()) + 1, "majority")[labels]
    filled = int(np.count_nonzero((alike != 0) & (released == 0)))
    emptied = int(np.count_nonzero((alike == 0) & (released != 0)))
    raise InputError(
        "The records of a group miss the same values, and rare patterns of missing values are joined by "
        f"blanking values, at most {percent(100 * plan.missing.most)} of them. Here "
        f"{plural(len(patterns), 'pattern')} would need {blanked:,} of {plural(cells, 'value')} blanked "
        f"({percent(100 * blanked / cells)}). Other policies: majority would fill {plural(filled, 'value')} "
        f"and blank {f'{emptied:,}' if emptied else 'none'} where groups are formed by patterns alone. "
        f"fill would fill up to {plural(missing, 'value')} ({percent(100 * missing / cells)}). drop would "
        f"leave out {incomplete:,} of {plural(n, 'record')} ({percent(100 * incomplete / n)}). Choose one "
        f"of them by missing, --missing, allow more by most = {needed:g}, --missing-most {needed:g}, or "
        "protect fewer columns together."
    )
