"""search(): the green plan that keeps most of a table within a largest loss.

The plan starts as the draft: every column protected. If it loses too much, or an analysis moves too far,
decisions about what is open are tried on a sample, each alone: drop a column, make it coarser, let a column
of an analysis count more, another k if that is asked for. The search takes the decision that brings the plan
nearest to the targets for the information that it gives up, and continues from there with the decisions that
looked best before. A dropped column gives up all its remaining information, a recoded one the loss of its
recoding, a smaller k as many columns as its share of k. Estimates follow the figures of the whole table,
first with little effort. A plan near the targets is carried out there as it is; if it misses them, the search
continues. Then needless decisions are taken back and, as far as the loss allows, columns to be kept become
strata, whose values stay exact. Nothing is ever called confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from microagg.comparing.search_result import FoundPlan
from microagg.comparing.search_steps import Open, SearchState
from microagg.comparing.trials import check_budget
from microagg.engines.memory.table import Table
from microagg.errors import InputError, shown
from microagg.plan.checks import no_column
from microagg.plan.plan import Plan
from microagg.plan.settings import check_k
from microagg.tables.frame import Frame

SAMPLE = 2_500
BUDGET = 120.0
MOST_MOVED = 0.5
"""Share of its 95 % interval by which an analysis may move if the plan says nothing: half of it, so that the
estimate stays within."""


def search(
    frame: Any,
    plan: Plan | None = None,
    *,
    max_loss: float | None = None,
    max_linkage: float | None = None,
    max_moved: float | None = None,
    keep: Iterable[Any] = (),
    may_drop: Iterable[Any] | None = None,
    k: Iterable[int] = (),
    decided: Collection[Any] | None = None,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
) -> FoundPlan:
    """Search the green plan that keeps most of a table within a largest loss.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow, or a :class:`Table` that was read
    plan : what is decided already; columns that it names keep their roles. By default nothing is.
    max_loss, max_linkage : most information lost, in percent, and largest share of records linked; by default
        those that the plan accepts
    max_moved : largest share of its 95 % interval by which an analysis of the plan may move; by default what
        the plan accepts, or one half. Columns of analyses are made to count more where that is needed; then
        the loss also keeps to its target with all columns counted alike.
    keep : columns that are not dropped or made coarser; they become strata, and so stay exact, if the loss
        allows
    may_drop : columns that may be dropped; by default all open ones
    k : other k that the search may choose
    decided : protected columns that stay as they are; by default those that the plan names
    sample : most records to group for an estimate
    budget : seconds for the estimates
    progress : called with the number of estimates made and to be made; it may raise
        :class:`microagg.StopSearch`

    Returns
    -------
    FoundPlan
        A :class:`microagg.Plan` with ``steps``, ``figures`` of the whole table, ``meets`` and ``words``. If
        no plan meets the targets, it is the nearest one.

    >>> import pyarrow as pa
    >>> t = pa.table({"a": [1, 2, 3, 7, 8, 9], "b": [1, 5, 9, 9, 5, 1]})
    >>> found = search(t, Plan.of(k=3, kinds={"a": "integer", "b": "integer"}), max_loss=20)
    >>> found.meets, found.drop, round(found.figures.loss, 1)
    (True, ('b',), 6.9)
    """
    records = frame if isinstance(frame, Table) else Table(Frame(frame))
    plan = plan or Plan()
    limits = {"loss": max_loss, "linkage": max_linkage, "moved": max_moved}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    accept = replace(plan.accept, **given)
    if not accept.targets:
        raise InputError(
            "A search needs a target: a largest loss (max_loss=10, --max-loss 10) or a largest share of "
            "linked records (max_linkage=0.1, --max-linkage 0.1)."
        )
    kept, droppable = list(keep), None if may_drop is None else list(may_drop)
    for name in [*kept, *(droppable or [])]:
        if name not in records.frame.names:
            raise no_column(name, records.frame.names)
    if both := [name for name in kept if name in (droppable or ())]:
        raise InputError(
            f"A column is kept or may be dropped, not both; {shown(both[0])} is in keep and may_drop."
        )
    full = records.checked(plan)
    if decided is None:
        decided = {name for block in plan.blocks for name in block.columns or ()}
    if accept.moved is None:
        accept = replace(accept, moved=MOST_MOVED)
    protected = [name for block in full.blocks for name in block.columns or ()]
    weighed = {name for name, own in plan.columns.items() if own.importance != 1}
    is_open = Open(
        columns=[name for name in protected if name not in decided],
        keep=kept,
        may_drop=droppable,
        k=sorted({check_k(one, len(records)) for one in k}),
        importance=[name for name in protected if name not in weighed],
    )
    size, seconds = min(sample, len(records)), check_budget(budget)
    return SearchState(records, full, is_open, accept, size, seconds, progress).run()
