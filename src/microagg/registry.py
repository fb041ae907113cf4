"""The list of methods. The command, the docs and the tests iterate over it.

To add one: a file under ``methods/`` with a function ``name(X, k, *, progress=None, ...)
-> labels``, and an entry here. The function's module is imported on first use only, so that
``import microagg`` loads no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

# Bound before the function methods(), which the package of that name would hide otherwise.
import microagg.methods  # noqa: F401
from microagg.errors import InputError, listed, shown

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
    implementation: str = ""  # module:function for any number of columns, on scaled values
    univariate: str = ""  # the same for one column, on its values as they are
    options: tuple[Option, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the partition is proved to have the least possible loss."""
        return self.guarantee == "exact"

    @property
    def one_column(self) -> bool:
        """Whether the method works on a single column only."""
        return not self.implementation

    def takes_raw(self, n_columns: int) -> bool:
        """Whether the values are wanted as they are: exact methods are exact for those."""
        return n_columns == 1 and bool(self.univariate)

    def function(self, n_columns: int) -> Callable[..., Any]:
        """Load the function ``(X, k, *, progress=None, **options)`` for so many columns.

        It returns labels; one that takes raw values numbers them by first appearance and also
        returns SSE/SST.
        """
        place = self.univariate if self.takes_raw(n_columns) else self.implementation
        module, name = place.split(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
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


_COST = Option(
    "cost",
    "sse",
    "what is minimised: sse, sae, max, round-up or round-down (one column only)",
)


def _univariate(name: str, paper: str, cost: str, summary: str) -> Method:
    return Method(
        name=name,
        family="univariate",
        paper=paper,
        guarantee="exact",
        cost=cost,
        summary=summary,
        univariate=f"microagg.methods.univariate.sorted_cut:{name.replace('-', '_')}",
        options=(_COST,),
    )


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="auto",
            family="our own",
            paper="",
            guarantee="heuristic",
            cost="O(n²/k · d)",
            summary="chooses for you: the fastest exact method for one column, mdav for several",
            implementation="microagg.methods.auto:auto",
            univariate="microagg.methods.univariate.sorted_cut:fastest",
            options=(_COST,),
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
        _univariate(
            "hansen-mukherjee",
            "Hansen & Mukherjee 2003",
            "O(kn)",
            "shortest path through a graph whose arcs are the groups of k to 2k−1 values",
        ),
        _univariate(
            "simple",
            "Stamm & Schaub 2024",
            "O(kn)",
            "dynamic program that tries all k starts of the last group",
        ),
        _univariate(
            "simple-plus",
            "Stamm & Schaub 2024",
            "O(kn)",
            "the same from the last best start on, which never moves back",
        ),
        _univariate(
            "wilber",
            "Wilber 1988; Stamm & Schaub 2024",
            "O(n)",
            "guesses starts ahead by matrix searching, then checks them",
        ),
        _univariate(
            "galil-park",
            "Galil & Park 1990; Stamm & Schaub 2024",
            "O(n)",
            "looks ahead in squares by matrix searching",
        ),
        _univariate(
            "staggered",
            "Stamm & Schaub 2024",
            "O(n)",
            "matrix searching in blocks along the diagonal, each of which needs no guess",
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
