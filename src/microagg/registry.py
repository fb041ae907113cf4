"""The list of methods. The command, the docs and the tests iterate over it.

To add one: a file under ``methods/`` with a function ``name(X, k, *, progress=None, ...)
-> labels``, and an entry here. The function's module is imported on first use only, so that
``import microagg`` loads no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

# Bound before the function methods(), which the package of that name would hide otherwise.
import microagg.methods  # noqa: F401
from microagg.errors import InputError, listed, shown
from microagg.groups import Labels

__all__ = ["METHODS", "Method", "Option", "find", "methods"]

Guarantee = Literal["exact", "approximation", "heuristic"]


@dataclass(frozen=True)
class Option:
    """A setting that a method takes beside the data and k."""

    name: str
    default: object
    help: str


@dataclass(frozen=True)
class Method:
    """One row of the registry."""

    name: str
    family: str
    paper: str
    guarantee: Guarantee
    cost: str
    summary: str
    implementation: str
    options: tuple[Option, ...] = ()
    one_column: bool = False  # works on a single column, and on its values as they are

    @property
    def exact(self) -> bool:
        """Whether the partition is proved to have the least possible loss."""
        return self.guarantee == "exact"

    @property
    def function(self) -> Callable[..., Labels]:
        """The function itself: ``(X, k, *, progress=None, **options) -> labels``."""
        module, name = self.implementation.split(":")
        function: Callable[..., Labels] = getattr(import_module(module), name)
        return function

    def as_dict(self) -> dict[str, object]:
        """Plain data, as ``microagg methods --json`` prints it."""
        return {
            "name": self.name,
            "family": self.family,
            "paper": self.paper,
            "exact": self.exact,
            "guarantee": self.guarantee,
            "cost": self.cost,
            "summary": self.summary,
            "one_column": self.one_column,
            "options": {option.name: option.default for option in self.options},
        }


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="auto",
            family="our own",
            paper="",
            guarantee="heuristic",
            cost="O(n²/k · d)",
            summary="chooses for you; at present always mdav",
            implementation="microagg.methods.auto:auto",
        ),
        Method(
            name="mdav",
            family="fixed size",
            paper="Domingo-Ferrer & Torra 2005",
            guarantee="heuristic",
            cost="O(n²/k · d)",
            summary="groups of k from the outside in: around the record farthest from the "
            "centroid, then around the record farthest from that one",
            implementation="microagg.methods.fixed_size.mdav:mdav",
        ),
    )
}


def methods() -> list[Method]:
    """List the methods, one row each: name, family, paper, exact, cost, options.

    >>> [m.name for m in methods() if m.family == "fixed size"]
    ['mdav']
    """
    return list(METHODS.values())


def find(name: str) -> Method:
    """Look a method up by name."""
    try:
        return METHODS[name]
    except (KeyError, TypeError):
        raise InputError(
            f"method={shown(name)} is not known; choose one of {listed(METHODS, limit=99)}."
        ) from None
