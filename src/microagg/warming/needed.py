"""Which parts a job needs compiled. A part is a set of kernels that are compiled together (parts.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microagg.plan.registry import METHODS
from microagg.plan.settings import EXACT_K, FEW_RECORDS, LARGE_K

if TYPE_CHECKING:
    from microagg.plan.block import Block
    from microagg.plan.plan import Plan

__all__ = ["AFTER_GROUPING", "PARTS", "WEIGHTED", "needed"]

# They come with and without weights; the name of the first is that of the second after this word.
WEIGHTED = "weighted "

# Used when the groups are there: compiled while groups are searched for.
AFTER_GROUPING = ("bound", "bound of larger k", "linkage in a tree", "linkage")

# Compiled in this order, the longest first, so that no processor waits for the last of them.
PARTS = (
    *("weighted search", "last search", "search"),
    *("required merging", "required start", "mdav", "weighted mdav"),
    *("mdav in threads", "weighted mdav in threads", "large search", "weighted large search"),
    *("mdav of few", "weighted mdav of few", "start", "large start", "left", "weighted left"),
    *("pairs", "weighted pairs", "one column", "best", "evaluation", "centroid in threads"),
    *("closeness", "tables in parts"),
    *(
        name
        for name, method in METHODS.items()
        if method.for_numbers and name not in ("auto", "mdav")
    ),
    *AFTER_GROUPING,
)

# Methods that begin with the groups of another one.
_FIRST = {"cbfs-mhm": "centroid", "igd": "mdav", "imhm": "mdav", "mdav-mhm": "mdav"}

_NOT_NUMBERS = {"boolean", "nominal", "ordinal", "spiked"}


def needed(plan: Plan, records: int | None, bound: bool, engine: str | None = None) -> list[str]:
    """List the parts that a job will need, in the order in which they are compiled.

    Parameters
    ----------
    records : None if their number is not known yet: there may be many
    bound : whether a lower bound is shown, where the plan allows to prove one within seconds
    """
    many = records is None or records > FEW_RECORDS
    found = {"evaluation", "linkage"}
    if many:
        found.add("linkage in a tree")
    if engine in ("disk", "spark"):
        found.add("tables in parts")
    if bound and records is not None and plan.is_easily_bound(records):
        found |= {"bound", *_mdav(many)} if plan.k <= EXACT_K else {"bound of larger k"}
    for block in plan.blocks:
        found |= _needed_by(plan, block, many)
    if engine == "spark":  # whose tasks have one thread each
        found = {name for name in found if not name.endswith("in threads")}
    return [name for name in PARTS if name in found]


def _mdav(many: bool, prefix: str = "") -> set[str]:
    """Name the parts of mdav; small pieces of a large table are grouped as few records are."""
    return {f"{prefix}mdav of few"} | ({f"{prefix}mdav", f"{prefix}left"} if many else set())


def _needed_by(plan: Plan, block: Block, many: bool) -> set[str]:
    """Name the parts that form the groups of a block.

    If the plan names no columns, these are the parts that every draft needs: the rest is asked for when the
    draft is made.
    """
    searched = block.method == "auto" or bool(block.refine)
    if block.columns is None:
        return {"last search", "start"} if block.method == "auto" else set()
    prefix = WEIGHTED if plan.weight is not None else ""
    required = plan.unit_of(block).column is not None or bool(block.require)
    by_closeness = METHODS[block.method].closeness
    large_k = (block.k or 0) > LARGE_K
    methods = {block.method, _FIRST.get(block.method, block.method)} - {"auto"}
    found = methods - {"mdav"}
    if searched:
        searches = ("large search", "pairs") if large_k else ("search",)
        found |= {"start", *(f"{prefix}{search}" for search in searches)}
        found |= {"large start"} if many else set()
    if "mdav" in methods or (searched and (large_k or many)):
        found |= _mdav(many, prefix) | ({f"{prefix}mdav in threads"} if many else set())
    if "centroid" in methods and many:
        found.add("centroid in threads")
    if by_closeness:
        found |= {"closeness", *_mdav(many)}
    if required:
        # The search under requirements is that with weights, which are all 1 where there are none.
        found |= {"weighted search", "required start", "required merging", "left"}
        found |= _mdav(many, prefix)
    kinds = {plan.column(name).kind for name in block.columns}
    if (searched or required) and not by_closeness and kinds & _NOT_NUMBERS:
        found.add("last search")
    if block.per_column or len(block.columns) == 1:
        found.add("one column")
    return found
