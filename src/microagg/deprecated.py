"""Names of version 0.1 that still work in 0.2 and go with 0.3; whoever uses one is told the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["OldMethodNames", "OldReleaseNames"]


class Renamed:
    """An attribute under its old name: it warns, and gives what stands under the new one."""

    def __init__(self, new: str, give: Callable[[Any], Any]) -> None:
        self.new, self.give = new, give

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return self
        warnings.warn(
            f"{owner.__name__}.{self.name} is {self.new} since microagg 0.2; the old name goes with 0.3.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.give(instance)


class OldMethodNames:
    """What a row of the registry had in 0.1."""

    cost = Renamed("Method.time", lambda method: method.time)


class OldReleaseNames:
    """What a release had in 0.1."""

    settings = Renamed("Release.plan.settings()", lambda release: release.plan.settings())
    untouched = Renamed("Release.roles.released", lambda release: release.roles.released)
    aggregate = Renamed(
        "Release.plan.blocks[0].aggregate",
        lambda release: release.plan.blocks[0].aggregate or "mean",
    )
    identifying = Renamed(
        "among Release.cautions",
        lambda release: [
            name
            for name in release.roles.known
            if any(caution.columns == (name,) for caution in release.cautions)
        ],
    )
