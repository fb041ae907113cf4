"""protect(): the way of a table on one page.

plan → roles → encode, scale → partition → aggregate → release, whose evidence is measured when asked for
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.aggregate import aggregate as group_aggregate
from microagg.draft import Guess, guess, quantities
from microagg.encode.scale import fit_scale
from microagg.errors import DisclosureRiskWarning
from microagg.evidence import Caution, Part
from microagg.groups import Floats, standard_deviation, sum_of_squares
from microagg.partition import partition
from microagg.plan import UNSET, Block, Plan
from microagg.progress import Listener
from microagg.release import Release
from microagg.require.units import check_units, merge_for_units
from microagg.results import Partition
from microagg.tables.exact import codes_as_written
from microagg.tables.frames import Frame
from microagg.tables.matrix import columns_matrix
from microagg.tables.outgoing import outgoing
from microagg.words import names as listed_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["protect", "protect_table"]

# Released means keep this share of a column's standard deviation, unless digits are given.
_KEPT = 1e-6
_TOLD = 12  # columns that a sentence names


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
    refine: bool | str = UNSET,
    bound: bool | str | None = UNSET,
    drop: Iterable[Any] = UNSET,
    renumber: Iterable[Any] = UNSET,
    confidential: Iterable[Any] = UNSET,
    unit: Any = UNSET,
    kinds: Mapping[Any, str] = UNSET,
    round: bool = UNSET,  # noqa: A002 - the word that users look for
    digits: int | None = UNSET,
    shuffle: bool = UNSET,
    max_loss: float | None = UNSET,
    max_linkage: float | None = UNSET,
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
    columns : names of the columns to protect; by default those that look like quantities, see
        :func:`microagg.draft`
    method, scale, random_state, progress, refine, bound, **options
        As for :func:`microagg.partition`.
    aggregate : {"mean", "median", "midrange", "maximum", "minimum"}
        What a group releases; by default the mean, or what fits the ``cost`` of the method.
    per_column : bool
        Protect each column by itself (individual ranking). Loses far less, but is no
        k-anonymity of the combination of columns.
    drop, renumber, confidential : names
        Columns to leave out; to replace by random numbers, one for each value; and those that no attacker
        knows but many would like to. All others that are not protected count as known.
    unit : name, optional
        Column that tells whose record it is (person, household, firm): k then counts its distinct
        values in each group.
    kinds : mapping of names to "number" or "integer", where the type of the column does not tell
    round : bool
        Round the aggregates of whole-number columns, which then keep their type. Groups stay
        indistinguishable; column means are kept up to rounding only.
    digits : int, optional
        Decimals of released values. By default means are rounded to a millionth of the column's
        standard deviation, and no finer.
    shuffle : bool
        Release the rows in a random order, which differs from call to call.
    max_loss, max_linkage : float, optional
        What is accepted: information loss in percent, and share of records linked. Checked and told.

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
    given = {
        name: value
        for name, value in locals().items()
        if name not in ("frame", "plan", "progress", "options")
    }
    whole = (Plan() if plan is None else plan).override(**given, **options)
    release = protect_table(Frame(frame), whole, progress)
    for caution in release.cautions:
        if caution.severity != "note":
            warnings.warn(caution.sentence, DisclosureRiskWarning, stacklevel=2)
    return release


def protect_table(
    table: Frame,
    plan: Plan,
    progress: Listener | None = None,
    guesses: Mapping[Any, Guess] | None = None,
    text: pa.Table | None = None,
) -> Release:
    """Protect a table by a plan; nothing is warned of, cautions are part of the release.

    ``text`` is the same table as it stands in a CSV file.
    """
    plan.check_complete()
    written = None if text is None else Frame(text)
    clock = Clock()
    with clock.time("check"):
        plan, odd = _completed(table, plan, guesses)
        roles = plan.roles(table.names)
        matrix = columns_matrix(table, roles.protected)
        whole = [name for name in roles.protected if _stays_whole(table, plan, name)]
        for name in whole:
            table.check_roundable(name, matrix[:, roles.protected.index(name)])
        units = None
        if roles.unit is not None:
            units = codes_as_written(written or table, roles.unit, written is not None)
            most = max(block.k or 1 for block in plan.blocks)
            check_units(units, most, listed_names([roles.unit]))
    place = {name: j for j, name in enumerate(roles.protected)}
    with clock.time("partition"):
        parts = []
        for block in plan.blocks:
            chosen = list(block.columns or ())
            for columns in [[name] for name in chosen] if block.per_column else [chosen]:
                X = matrix[:, [place[name] for name in columns]]
                found = _grouped(X, block, plan, progress)
                if units is not None:
                    found = _with_units(found, X, units)
                parts.append(Part(np.arange(len(X)), columns, found))
    with clock.time("aggregate"):
        released = np.empty_like(matrix)
        for part, block in zip(parts, _block_of_parts(plan), strict=True):
            for name in part.columns:
                values = matrix[:, place[name]]
                means = group_aggregate(values, part.partition.labels, block.released)
                released[:, place[name]] = (
                    np.rint(means) if name in whole else _rounded(means, values, plan, block)
                )
        data, order = outgoing(
            table,
            dict(zip(roles.protected, released.T, strict=True)),
            whole=whole,
            drop=roles.dropped,
            renumber=roles.renumbered,
            shuffle=plan.shuffle,
            text=written,
        )
    return Release(
        data=data,
        plan=plan,
        roles=roles,
        parts=parts,
        seconds=clock.seconds,
        _given=table,
        _original=matrix,
        _protected=released,
        _text=text,
        _units=units,
        _order=order,
        _odd=odd,
    )


def _completed(
    table: Frame, plan: Plan, guesses: Mapping[Any, Guess] | None
) -> tuple[Plan, tuple[Caution, ...]]:
    """Fill in the columns that nobody named by those that look like quantities."""
    if plan.blocks[0].columns is not None:
        return plan, ()
    guesses = guess(table) if guesses is None else guesses
    spoken_for = {*plan.drop, *plan.renumber, *plan.confidential, plan.unit}
    chosen = quantities(guesses, spoken_for)
    notes = {name: found.reason for name, found in guesses.items() if name not in spoken_for}
    left = [name for name, found in guesses.items() if found.to_be_told and name not in spoken_for]
    odd = (_about_left(table, guesses, left),) if left else ()
    block = replace(plan.blocks[0], columns=tuple(chosen))
    return replace(plan, blocks=(block,), notes=notes), odd


def _about_left(table: Frame, guesses: Mapping[Any, Guess], left: list[Any]) -> Caution:
    """Say which columns were left by what they look like, and where numbers are text, why."""
    told, hints = [], set()
    for name in left[:_TOLD]:
        looks: str = guesses[name].looks_like
        if looks == "quantity":
            looks = "quantity with missing or infinite values"
        cells = table.odd_numbers(name) if looks == "number stored as text" else None
        told.append(f"{listed_names([name])} ({looks if cells is None else cells.in_words()})")
        hints.add("" if cells is None else cells.hint)
    more = f" and {len(left) - _TOLD} more" if len(left) > _TOLD else ""
    way_out = "Name the columns if that is wrong; microagg plan writes the choice down for editing."
    return Caution(
        "warning",
        tuple(left),
        "Nobody named the columns to protect, and these were left as they are by what they look like: "
        f"{', '.join(told)}{more}.",
        " ".join([*sorted(hints), way_out]).strip(),
    )


def _stays_whole(table: Frame, plan: Plan, name: Any) -> bool:
    column = plan.column(name)
    return column.round == "nearest" and (
        column.kind == "integer" or (column.kind is None and table.is_integer(name))
    )


def _grouped(X: Floats, block: Block, plan: Plan, progress: Listener | None) -> Partition:
    return partition(
        X,
        block.k or 1,
        method=block.method,
        scale=block.scale,
        random_state=plan.seed,
        refine=block.refine,
        bound=block.bound or False,
        progress=progress,
        **block.options,
    )


def _with_units(found: Partition, X: Floats, units: Any) -> Partition:
    """Merge groups until each has k distinct units."""
    scaled = fit_scale(X, found.scale).apply(X)
    labels = merge_for_units(scaled, found.labels, units, found.k)
    return replace(found, labels=labels, sse=sum_of_squares(scaled, labels))


def _block_of_parts(plan: Plan) -> Iterator[Block]:
    for block in plan.blocks:
        for _ in range(len(block.columns or ()) if block.per_column else 1):
            yield block


def _rounded(released: Floats, original: Floats, plan: Plan, block: Block) -> Floats:
    """Round to the digits asked for, or means to a millionth of the standard deviation.

    Sixteen digits of a mean tell nothing more about people, but fractions betray the sizes of groups.
    """
    decimals = plan.digits
    if decimals is None:
        spread = standard_deviation(original)
        if block.released not in ("mean", "midrange") or not 0 < spread < np.inf:
            return released
        decimals = max(0, int(np.ceil(-np.log10(_KEPT * spread))))
    # Values so large, or spread so narrowly, that they have no such decimals stay as they are.
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.round(released, decimals)
    # Adding 0 makes 0 of −0, which would tell that a mean is just below.
    return np.where(np.isfinite(found), found + 0.0, released)


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
