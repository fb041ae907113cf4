"""The requirement that keeps groups from disclosing confidential values, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from microagg.errors import MicroaggError
from microagg.evidence.measured import Cure
from microagg.grouping.require.requirement_search import is_compiled
from microagg.measure.agreement import Agreement, disclosed_share
from microagg.measure.utility import Utility
from microagg.plan.plan import Plan


class _Disclosure(Protocol):
    """What groups disclose, and what was lost."""

    @property
    def agreements(self) -> Mapping[Any, Agreement]: ...
    @property
    def utility(self) -> Utility: ...


Result = TypeVar("Result", bound=_Disclosure)


def cure_of(plan: Plan, now: Result, again: Callable[[Plan], Result]) -> Cure | None:
    """Find the requirement that cures groups which disclose; None if none do, or nothing cures them.

    Parameters
    ----------
    plan : the plan that was carried out
    now : the figures of its release
    again : carries out another plan on the same table
    """
    accepted = plan.accept.agreeing
    if disclosed_share(now.agreements.values()) <= accepted or not is_compiled():
        return None
    disclosed = [name for name, one in now.agreements.items() if one.records]
    require = {"distinct": dict.fromkeys(disclosed, 2)}
    try:
        cured = again(plan.override(require=require, method="auto", effort="fast"))
    except MicroaggError:  # it cannot be met
        return None
    if disclosed_share(cured.agreements.values()) > accepted:
        return None
    return Cure(require, cured.utility.information_loss, now.utility.information_loss)
