"""protect(): the way of a table on one page.

plan → roles → encode, scale → partition → aggregate → release, whose evidence is measured when asked for
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import names as listed_names
from microagg.base.formatting import share
from microagg.base.progress import Clock, Listener
from microagg.base.typing import Floats, Labels
from microagg.drafting.draft import Completed, complete
from microagg.drafting.guess import Guess
from microagg.encode.space import Space
from microagg.engines.memory.release import Release
from microagg.engines.memory.suppress import with_fewer_records
from microagg.engines.write_and_count import ReleasedTable
from microagg.errors import InputError
from microagg.evidence.cautions import warn_of
from microagg.evidence.measured import Part
from microagg.evidence.measuring import Measuring
from microagg.evidence.sentences import Caution
from microagg.grouping.group_table import codes_as_dealt, group, merge_agreeing, merge_groups
from microagg.grouping.households import group_households
from microagg.grouping.one_cell import Problem
from microagg.grouping.read_table import Intake, PartInput, part_input, take_in
from microagg.grouping.require.from_plan import steering_requirements
from microagg.grouping.require.requirement import Requirement
from microagg.kernels.labels import combine, sum_of_squares
from microagg.ledger.carry import Carrying
from microagg.measure.analyses import check_analyses
from microagg.measure.pairing import largest_share
from microagg.plan.block import Block
from microagg.plan.plan import UNSET, Plan
from microagg.releasing.dealt import SECRET_BYTES
from microagg.releasing.release_values import (
    Released,
    release_block,
    release_weight_and_strata,
    released_strata,
)
from microagg.releasing.swap import ReleaseTerms, Swapping
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.release_frame import left_out_words, random_order, released_frame, reordered

if TYPE_CHECKING:
    import pyarrow as pa

_NO_SETTINGS = ("frame", "plan", "progress", "options")  # parameters of protect()
_COLUMNS_NAMED = 12  # in the sentence about columns that cannot be read


def protect(
    frame: Any,
    k: int = UNSET,
    *,
    plan: Plan | None = None,
    columns: Iterable[Any] | None = UNSET,
    method: str = UNSET,
    aggregate: str | None = UNSET,
    scale: str = UNSET,
    per_column: bool = UNSET,
    release: str = UNSET,
    categories: str = UNSET,
    together: Iterable[Iterable[Any]] = UNSET,
    standing: float | None = UNSET,
    refine: bool | str = UNSET,
    bound: bool | str | None = UNSET,
    drop: Iterable[Any] = UNSET,
    renumber: Iterable[Any] = UNSET,
    confidential: Iterable[Any] | Mapping[Any, str] = UNSET,
    known: Iterable[Any] = UNSET,
    unit: Any = UNSET,
    strata: Any = UNSET,
    weight: Any = UNSET,
    missing: Any = UNSET,
    suppress: Any = UNSET,
    kinds: Mapping[Any, Any] = UNSET,
    coarsen: Mapping[Any, Any] = UNSET,
    relations: Iterable[str] = UNSET,
    require: Mapping[str, Any] = UNSET,
    analyses: str | Iterable[Any] = UNSET,
    round: bool | str = UNSET,  # noqa: A002 - the word that users look for
    digits: int | str | None = UNSET,
    keep_order: bool | None = UNSET,
    max_loss: float | None = UNSET,
    max_linkage: float | None = UNSET,
    max_agreeing: float | None = UNSET,
    max_pairing: float | None = UNSET,
    max_moved: float | None = UNSET,
    max_tables: float | None = UNSET,
    max_inference: float | None = UNSET,
    random_state: int | None = UNSET,
    progress: Listener | None = None,
    **options: Any,
) -> Release:
    """Protect a table: replace values by those of groups of at least k similar records.

    Every keyword is a setting of :class:`microagg.Plan`; with ``plan``, those given override it.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow. Never changed.
    k : int
        Least number of records (or units) that share their protected values.
    plan : Plan, optional
        The settings written down, from :func:`microagg.draft` or :meth:`microagg.Plan.from_toml`.
    columns : names of the columns to protect. By default every column gets a role that protects the people
        in the table, see :func:`microagg.draft`: identifiers and names are dropped.
    method, scale, random_state, progress, refine, bound, **options
        As for :func:`microagg.partition`.
    aggregate : {"mean", "median", "midrange", "maximum", "minimum"}
        What a group releases; by default the mean, or what fits the ``cost`` of the method.
    per_column : bool
        Protect each column by itself (individual ranking). Loses far less, but is no
        k-anonymity of the combination of columns.
    release : {"mean", "swap"}
        What rows release: with "mean", the default, all rows of a group the same values; with "swap" the
        values of the group, dealt to its rows at random, column by column: tables, spreads and analyses
        survive. See :mod:`microagg.releasing.swap`.
    categories : {"mode", "draw"}
        What a group releases of categories, where it releases means: the most frequent one, or that of a
        random member, by which rare categories keep their share.
    together : sets of names
        Columns whose values are swapped together, such as ``[["age", "birth_year"]]``.
    standing : float, optional
        With swapping: groups that agree in nearly all columns are merged, until chance is expected to make
        at most this share of the rows equal to a record, such as 0.001.
    drop, renumber : names
        Columns to leave out, and to replace by random numbers, one for each value.
    confidential : names, or mapping of names to reasons
        Columns left as they are that no attacker knows but many would like to. It is a claim: a reason can
        be given for each (``{"diagnosis": "medical file; in no register"}``), and the evidence has what it
        stakes.
    known : names
        Columns left as they are on purpose. All columns without a role count as known to an attacker.
    unit : name, optional
        Column that tells whose record it is (person, household, firm): k then counts its distinct
        values in each group. ``{"column": "db030", "name": "household"}`` also says what a unit is called.
    strata : names
        Columns whose values never share a group, or ``{"columns": [...], "small": "merge"}`` to merge
        strata with fewer than k units.
    weight : name
        Column of survey weights: means are weighted, and the weight is released as the group's mean, which
        keeps all weighted totals. ``{"column": "w", "release": "keep"}`` keeps it as it is, ``"drop"``
        leaves it out.
    missing : {"pattern", "majority", "fill", "drop", "error"}
        What becomes of missing values: by default groups share what is missing. Also ``{"policy": ...,
        "most": 0.01, "codes": {"income": [-8]}}``, see :class:`microagg.plan.sections.Missing`.
    suppress : float
        Largest share of the records that may be left out, in whole units, where that lowers the loss most;
        ``{"most": 0.01, "weighted": True}`` also where there are weights, whose totals then change. The
        evidence is about the records that stay, and says how many were left out and what that gained.
    kinds : mapping of names to kinds, where the type of the column does not tell
        Numbers that look like codes are nominal unless a kind is given. One of "number", "integer",
        "boolean", "nominal", "ordinal", "date", "spiked", "hierarchy"; a list of levels from low to high for
        an ordinal column; or a mapping of settings of :class:`microagg.plan.column.Column`.
    coarsen : mapping of names to recodings, applied before groups are formed and counted as loss
        Of numbers ``{"age": {"bands": 5, "top": 80}}`` (or ``{"bands": [0, 18, 65]}``, ``{"round": 100}``,
        ``{"top": 80, "bottom": 16}``), of categories ``{"rare": 20}`` (levels of fewer records become
        "other"), of codes ``{"prefix": 2}``, of dates ``{"to": "month"}``; also for strata and known columns.
    relations : texts such as "gross = net + tax"
        What holds in every record; checked before and after.
    require : mapping
        What groups must satisfy in addition to k, see :class:`microagg.plan.block.Require`.
    analyses : texts such as "income ~ age + sex", "income by region", "poverty(income)"
        What must survive: run on both tables, see :mod:`microagg.plan.analysis_formulas`.
    round : bool or "totals"
        Round the aggregates of whole-number columns, which then keep their type. Groups stay
        indistinguishable; column means are kept up to rounding only, with "totals" their total to the unit.
    digits : int or "exact", optional
        Decimals of released values. By default means and the released weight are rounded to a millionth of
        the column's standard deviation, and weighted means to the steps in which the column moves (whole
        numbers, cents): finer digits would show who is in a group. Groups are rounded up or down so that
        weighted totals stay. Finer digits, and "exact" ones, make the verdict amber.
    keep_order : bool, optional
        Whether rows keep their order. By default a file is written in random order, which differs from file
        to file and comes from no seed, and ``data`` keeps the order and index of ``frame``: do not publish
        ``data``, but what :meth:`Release.write` writes. False puts ``data`` in random order, too; True keeps
        the order in files, and the order is judged.
    max_loss, max_linkage, max_agreeing, max_pairing, max_moved, max_tables, max_inference : float, optional
        What is accepted: information loss in percent, share of records linked, share of records whose
        group discloses a confidential value (none by default), share of people whose row is picked by how
        confidential columns go with protected ones (1/k by default), share of its 95 % interval by
        which an analysis moves, how many times as far as in another sample tables of three columns
        move, and the share of values that an attack guesses beyond those that it guesses about people who
        are not in the file. Checked, and reported in the evidence.

    Returns
    -------
    Release
        ``data`` has the type, row order, index and column order of ``frame``; ``evidence`` all that is
        claimed about it.

    Warns
    -----
    DisclosureRiskWarning
        For every caution that a disclosure board should weigh; see ``Release.cautions``.

    >>> import pyarrow as pa
    >>> t = pa.table({"age": [30, 31, 34, 61, 65, 66]})
    >>> r = protect(t, k=3, columns=["age"])
    >>> r.data["age"].to_pylist(), r.risk.smallest_class, r.evidence.verdict
    ([31.66667, 31.66667, 31.66667, 64.0, 64.0, 64.0], 3, 'green')
    """
    settings = {name: value for name, value in locals().items() if name not in _NO_SETTINGS}
    whole = (Plan() if plan is None else plan).override(**settings, **options)
    protected = protect_table(Frame(frame), whole, progress, is_frame=True)
    warn_of(protected.cautions)
    return protected


def protect_table(
    table: Frame,
    plan: Plan | Completed,
    progress: Listener | None = None,
    text: pa.Table | None = None,
    coded: Mapping[Any, Coded] | None = None,
    *,
    rows: Labels | None = None,
    on_plan: Callable[[Plan], None] | None = None,
    clock: Clock | None = None,
    is_frame: bool = False,
    carrying: Carrying | None = None,
) -> Release:
    """Protect a table by a plan; nothing is warned of, cautions are part of the release.

    Parameters
    ----------
    table : never changed
    plan : completed here, unless :func:`microagg.drafting.draft.complete` did so, maybe from a larger table
    progress : is called with the records grouped; may raise :class:`microagg.StopSearch`
    text : the same table as it stands in a CSV file
    coded : what stands for missing values in the file that the table came from, by column
    rows : of the table that are protected; None: all
    on_plan : is called with the plan as it is carried out, before the grouping
    clock : to which the seconds of each stage are added
    is_frame : whether the table is handed over as a frame, whose order is kept
    carrying : with the groups of earlier releases of the same people
    """
    clock = clock or Clock()
    if isinstance(plan, Plan):
        plan.check_complete()
        with clock.time("check"):
            plan = complete(table, plan, missing_words(text is not None), coded)
    guesses, plan = plan.guesses, plan.plan

    def protected(plan: Plan, rows: Labels | None, **watch: Any) -> Release:
        """Protect some rows by a plan that has a role for every column."""
        completed = Completed(plan, guesses)
        return protect_table(
            table, completed, text=text, coded=coded, rows=rows, is_frame=is_frame, **watch
        )

    if plan.suppress.most:
        watch = {"progress": progress, "clock": clock, "on_plan": on_plan, "carrying": carrying}
        return with_fewer_records(plan, lambda plan, rows: protected(plan, rows, **watch))
    with clock.time("check"):
        if carrying is not None:
            rows = carrying.choose(table, text, plan)
        intake = take_in(table, plan, text, coded, rows=rows)
        if carrying is not None:
            intake = carrying.freeze(intake)
        gone = {*intake.roles.dropped, *intake.roles.renumbered}
        before = intake.original or intake.frame
        check_analyses(plan.analyses, before, gone, whole=True, categories=plan.categories)
        wanted = [
            (block, part_input(intake, block, chosen))
            for block in plan.blocks
            for names in [list(block.columns or ())]
            for chosen in ([[name] for name in names] if block.per_column else [names])
        ]
    if on_plan is not None:
        on_plan(plan)
    secret = secrets.token_bytes(SECRET_BYTES)
    parts, released, households, swapping = zip(
        *(
            _group_and_release(intake, *block, progress, clock, secret, carrying)
            for block in wanted
        ),
        strict=True,
    )
    _check_chance(intake, parts)
    with clock.time("aggregate"):
        columns = {name: column for block in released for name, column in block.columns.items()}
        # Weight and strata are released by the groups of the first part: a plan with several parts has none.
        extra, recoded, dealt_weight = release_weight_and_strata(
            intake,
            *wanted[0],
            parts[0].partition.labels,
            households[0],
            swapping[0] if wanted[0][0].is_swapped else None,
            None if carrying is None else carrying.mean_weights(),
        )
        columns |= extra
        data = released_frame(
            intake.frame,
            columns,
            drop=intake.roles.dropped,
            renumber=intake.roles.renumbered,
            text=None if intake.text is None else Frame(intake.text),
        )
        order = None if plan.keep_order else random_order(len(intake))
        if plan.keep_order is False:
            assert order is not None
            data = reordered(data, order)
    measuring = Measuring(
        plan,
        intake,
        parts,
        Frame(intake.frame.with_columns(columns)),
        np.hstack([block.values for block in released]),
        np.hstack([block.states for block in released]),
        np.hstack([block.groups for block in released]),
        {name: counts for block in released for name, counts in block.missing_counts.items()},
        recoded,
        _about_unreadable(table, guesses or {}, plan),
        lambda other: protect_table(table, other, None, text, coded)._measuring,
        is_frame=is_frame,
    )
    dealt = [block.dealt for block in released]
    if dealt_weight is not None and dealt[0] is not None:
        dealt[0] = dealt[0].with_column(*dealt_weight)
    return Release(
        data=data,
        plan=plan,
        roles=intake.roles,
        parts=parts,
        seconds=clock.seconds,
        _measuring=measuring,
        _again=protected,
        released_table=ReleasedTable(
            data,
            plan,
            intake,
            [given for _, given in wanted],
            measuring.recoded_columns,
            order,
            dealt,
        ),
        drafted=guesses,
        left_out=_left_out(table.native, data),
    )


def _group_and_release(
    intake: Intake,
    block: Block,
    given: PartInput,
    progress: Listener | None,
    clock: Clock,
    secret: bytes,
    carrying: Carrying | None = None,
) -> tuple[Part, Released, Labels | None, Swapping | None]:
    """Group the records by some columns, and release the values of the groups.

    Returns
    -------
    the groups, what they release, the group of each record's household where households stay together, and
    how values are swapped
    """
    plan, states, households = intake.plan, given.states, None
    steering = steering_requirements(block, given.requirements) if block.is_swapped else []
    weighted = plan.weight is not None and plan.weight.grouping == "weighted"
    weights, base = intake.relative_weights if weighted else None, None
    names = [variable.name for variable in given.variables]

    def solve(
        space: Space,
        cells: Labels,
        rules: Sequence[Requirement],
        k: int | None = block.k,
        masses: Floats | None = None,
    ) -> Partition:
        """Group all records, some of them, which then count alike, or, with masses, groups of them."""
        asked = block if k == block.k else replace(block, k=k)
        if masses is not None:
            asked = replace(asked, method="auto", options={}, bound=None)
        elif len(space.matrix) == len(intake):
            masses = weights
        return group(Problem(space, asked, rules, masses, plan.seed), cells, progress=progress)

    with clock.time("partition"):
        if plan.unit_of(block).mode == "together":
            together = group_households(intake, block, given, progress)
            partition, states = together.partition, together.states
            households = (together.of_households, together.shared)
        elif carrying is not None:
            partition = carrying.group(intake, block, given, solve)
        else:
            rules = [rule for rule in given.requirements if rule not in steering]
            partition = solve(given.space, given.cells, rules)
            if steering:
                base = partition.labels
                partition = merge_groups(
                    partition, given.space, given.cells, given.requirements, weights
                )
            if block.standing is not None:
                X, values = given.space.scaled, np.column_stack([v.values for v in given.variables])
                codes = codes_as_dealt(plan, block, names, values, given.states)
                labels = merge_agreeing(partition.labels, X, given.cells, codes, block.standing)
                partition = replace(
                    partition, labels=labels, sse=sum_of_squares(X, labels, weights)
                )
    part = Part(np.arange(len(intake)), names, partition, given.space.matrix.shape[1], base)
    swapping = None
    with clock.time("aggregate"):
        if block.is_swapped or block.draws:
            strata = released_strata(intake, block, given, partition.labels)
            swapping = Swapping(secret, strata, given.requirements, str(names[0]))
            if carrying is not None and block.is_swapped:
                frozen = carrying.values.share
                swapping = swapping._replace(strata=carrying.cohorts(strata), frozen=frozen)
            elif carrying is not None:
                swapping = swapping._replace(lots=carrying.values.lots)
        units, weights = intake.units_of(block), intake.relative_weights
        terms = ReleaseTerms(block, plan, weights, units, swapping, given.cells)
        earlier = None if carrying is None else (carrying.values.labels, carrying.values.settle)
        released = release_block(
            intake.frame, given.variables, states, partition.labels, terms, households, earlier
        )
    return part, released, None if households is None else households[0], swapping


def _check_chance(intake: Intake, parts: Sequence[Part]) -> None:
    """Refuse to swap in several blocks if someone is then among fewer than k.

    Who knows the groups of all blocks looks for a person in their intersection.
    """
    plan = intake.plan
    if len(parts) == 1 or not plan.is_swapped:
        return
    labels = combine([part.partition.labels if part.base is None else part.base for part in parts])
    units = np.arange(len(labels)) if intake.units is None else intake.units
    largest = largest_share(labels, units)
    if largest.max() > 1 / plan.k:
        raise InputError(
            f"Swapped columns of several blocks need groups whose intersections hold at least k = {plan.k:,} "
            f"{plan.words_of_unit(intake.roles.unit)}; {share(float((largest > 1 / plan.k).mean()))} of the "
            "records are in a smaller one. Swap all columns in one block."
        )


def _left_out(given: Any, data: Any) -> list[str]:
    """Say which metadata of a frame its release does not have."""
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return left_out_words(given.schema, data.schema)
    if getattr(given, "attrs", None):
        return [
            "Left out, because a release does not need it: the attributes (attrs) of the frame."
        ]
    return []


def _about_unreadable(
    table: Frame, guesses: Mapping[Any, Guess], plan: Plan
) -> tuple[Caution, ...]:
    """Say which columns the draft drops since their values cannot be read, and where the fault is."""
    left = [name for name, guess in guesses.items() if guess.unreadable and name in plan.notes]
    if not left:
        return ()
    described, hints = [], set()
    for name in left[:_COLUMNS_NAMED]:
        what: str = guesses[name].looks_like
        if what == "quantity":
            what = "infinite values"
        elif what == "number stored as text" and (cells := table.odd_numbers(name)) is not None:
            what = cells.in_words()
            hints.add(cells.hint)
        described.append(f"{listed_names([name])} ({what})")
    more = f" and {len(left) - _COLUMNS_NAMED} more" if len(left) > _COLUMNS_NAMED else ""
    words = f"The draft drops columns whose values cannot be read: {', '.join(described)}{more}."
    way_out = "Correct them to have them protected; the plan's notes say how."
    return (Caution("warning", tuple(left), words, " ".join([*sorted(hints - {""}), way_out])),)
