"""The requirement that keeps groups from disclosing confidential values, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from microagg.errors import MicroaggError
from microagg.evidence.measured import Cure
from microagg.grouping.require.value_rules import WITHIN
from microagg.measure.agreement import Agreement, disclosed_share
from microagg.measure.utility import Utility
from microagg.plan.plan import Plan

_EASILY_TRIED = 20_000  # records up to which a fast search takes about two seconds


class _Disclosure(Protocol):
    """What groups disclose, and what was lost."""

    @property
    def agreements(self) -> Mapping[Any, Agreement]: ...
    @property
    def utility(self) -> Utility: ...


Result = TypeVar("Result", bound=_Disclosure)


def cure_of(plan: Plan, now: Result, again: Callable[[Plan], Result]) -> Cure | None:
    """Find the requirement that cures groups which disclose, and try it.

    Parameters
    ----------
    plan : the plan that was carried out
    now : the figures of its release
    again : carries out another plan on the same table

    Returns
    -------
    None if no group discloses more than the plan accepts. A cure without a loss was not tried, since the
    table is large; one without requirements says that none was found.
    """
    accepted, loss = plan.accept.agreeing, now.utility.information_loss
    if disclosed_share(now.agreements.values()) <= accepted:
        return None
    records = next(iter(now.agreements.values())).of
    for require, drop in _candidates(plan, now.agreements):
        if records > _EASILY_TRIED:
            return Cure(require, drop, None, loss)
        known = [name for name in plan.known if name not in drop]
        try:
            cured = again(
                plan.override(require=require, drop=[*plan.drop, *drop], known=known, effort="fast")
            )
        except MicroaggError:  # it cannot be met
            continue
        if disclosed_share(cured.agreements.values()) <= accepted:
            return Cure(require, drop, cured.utility.information_loss, loss)
    return Cure({}, (), None, loss)


def _candidates(
    plan: Plan, agreements: Mapping[Any, Agreement]
) -> Iterator[tuple[Mapping[str, Mapping[Any, float]], tuple[Any, ...]]]:
    """List requirements that the plan does not have yet, the surest first, and known columns to drop.

    Other groups may disclose other columns, unless all are hidden. Someone who knows a column tells records
    of a group apart by it, which no requirement prevents.
    """
    every = list(agreements)
    disclosed = [name for name, one in agreements.items() if one.records]
    known = tuple(name for name in plan.known if name not in plan.shared_strata)
    for drop in [(), known] if known else [()]:
        for columns in [every, disclosed] if len(disclosed) < len(every) else [every]:
            new = [name for name in columns if not _hides(plan, name)]
            if new or drop:
                yield ({"hidden": dict.fromkeys(new, WITHIN)} if new else {}), drop


def _hides(plan: Plan, name: Any) -> bool:
    """Tell whether every block of a plan requires that a column is hidden."""
    return all(block.require.hidden.get(name, 0.0) >= WITHIN for block in plan.blocks)
