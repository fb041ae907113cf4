"""What is compiled together, and which of it a job needs.

A part names kernels that are compiled together. To compile one it is called with the types that it
will meet and as little work as possible; tests/test_warm.py holds that nothing is left to compile then.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.plan.registry import METHODS
from microagg.plan.settings import FEW_RECORDS, LARGE_K

if TYPE_CHECKING:
    from microagg.plan.plan import Block, Plan

__all__ = ["AFTER_GROUPING", "PARTS", "needed"]

_N, _K, _D = 24, 3, 2  # records, k and columns of the tables that kernels are called with


def _sample() -> Any:
    import numpy as np

    return np.random.default_rng(0).normal(size=(_N, _D))


def _weights() -> Any:
    import numpy as np

    return np.linspace(0.5, 1.5, _N)


def _labels() -> Any:
    import numpy as np

    return np.arange(_N) // _K


def _demands() -> Any:
    """At least one unit in each group."""
    import numpy as np

    from microagg.grouping.require.requirement import demands_of
    from microagg.grouping.require.value_rules import Units

    return demands_of([Units(np.arange(_N), 1)], _N)


def _no_cells(most: Any, *given: Any) -> tuple[Any, ...]:
    """Arguments of a pass over no cell."""
    import numpy as np

    from microagg.algorithms.refine.anneal import Heat
    from microagg.algorithms.refine.cells import Fresh, Groups
    from microagg.base.progress import new_state

    count = _N // _K
    old = Groups(np.arange(_N), np.arange(0, _N + 1, _K), np.zeros((count, _D)))
    new = Fresh(
        np.zeros(1, np.intp), np.zeros(_N, np.intp), np.zeros(count, np.intp), np.zeros((count, _D))
    )
    groups, first, seeds = np.arange(count), np.array([0, count]), np.zeros(1, np.uint64)
    heat, sse = Heat(1.0, 0.0, 1.0), np.zeros(1)
    return *given, old, groups, first, 0, 0, _K, most, 1.0, heat, seeds, new, sse, new_state()


def _search() -> None:
    from microagg.algorithms.refine.anneal import anneal_cells

    anneal_cells(*_no_cells(2, _sample(), None))


def _weighted_search() -> None:
    from microagg.algorithms.refine.anneal import anneal_cells
    from microagg.kernels.labels import sum_of_squares

    anneal_cells(*_no_cells(2, _sample(), _weights()))
    sum_of_squares(_sample(), _labels(), _weights())


def _required_search() -> None:
    from microagg.algorithms.required.anneal import Search, anneal_cells

    anneal_cells(*_no_cells(Search(2, _N, 0.1), _sample(), _weights(), _demands()))


def _last_search() -> None:
    import numpy as np

    from microagg.algorithms.refine.last_search import search_cells
    from microagg.grouping.require.requirement import demands_of
    from microagg.kernels.release_kinds import MODE, Releases

    numbers, none = np.zeros((_N, 1)), np.zeros(0)
    releases = Releases(
        X=_sample(),
        kind=np.array([MODE], np.intp),
        unit=np.ones(1),
        origin=np.zeros(1),
        points=none,
        start=np.zeros(2, np.intp),
        level=numbers.astype(np.intp),
        value=numbers,
        blank=numbers,
        majority=False,
    )
    X, old, groups, first, begin, end, k, _, *rest = _no_cells(None, _sample())
    demands = demands_of([], _N)
    search_cells(X, _weights(), releases, demands, old, groups, first, begin, end, k, *rest)


def _required_start() -> None:
    from microagg.algorithms.required.start import rounds
    from microagg.base.progress import new_state
    from microagg.kernels.remaining import none_left

    rounds(none_left(_sample()), _weights(), _demands(), 0, _K, _N, 0, new_state())


def _required_merging() -> None:
    import numpy as np

    from microagg.algorithms.required.merge import merge
    from microagg.kernels.labels import sum_of_squares
    from microagg.kernels.require_demands import violations

    violations(_demands(), np.arange(_N), np.arange(0, _N + 1, _K), _K)
    merge(_sample(), _weights(), _demands(), np.arange(_N), _K)
    sum_of_squares(_sample(), _labels(), _weights())


def _evaluation() -> None:
    from microagg.kernels.labels import canonical_labels, sum_of_squares

    labels = _labels()
    canonical_labels(labels[::-1].copy())
    labels.flags.writeable = False
    canonical_labels(labels)
    sum_of_squares(_sample(), _labels())


def _start() -> None:
    import numpy as np

    from microagg.algorithms.auto import mdav_in_blocks
    from microagg.algorithms.refine.cells import Fresh, compacted, grouped, split_groups
    from microagg.base.progress import new_state

    X = _sample()
    mdav_in_blocks(X, _K, new_state(), 0)
    groups = grouped(X, _labels(), _N // _K)
    split_groups(groups.centroid, 2, np.zeros(1, np.uint64))
    compacted(Fresh(groups.start, groups.rows, np.diff(groups.start), groups.centroid))


def _large_start() -> None:
    import numpy as np

    from microagg.algorithms.refine.cells import part_placed, place_some, plan_halvings

    plan, _, _ = plan_halvings(_N, 2, np.zeros(1, np.uint64))
    groups, keys = np.arange(_N), np.zeros(_N)
    place_some(_sample(), groups, keys, plan, 0, 0, _N)
    part_placed(groups, keys, plan, 0)


def _linkage() -> None:
    import numpy as np

    from microagg.kernels.nearer_counts import WIDTH, credit_links_by_scan, in_blocks

    X, rows, sizes = _sample(), np.arange(_N), np.ones(_N, np.int64)
    radius, credit = np.zeros(_N), np.zeros(_N)
    args = in_blocks(X), sizes, rows, rows, np.empty(WIDTH), credit
    credit_links_by_scan(X, rows, radius, radius, *args)


def _linkage_in_a_tree() -> None:
    import numpy as np

    from microagg.kernels.kd_tree import build, for_thread
    from microagg.kernels.nearer_counts import credit_links

    X, rows, sizes = _sample(), np.arange(_N), np.ones(_N, np.int64)
    radius, credit = np.zeros(_N), np.zeros(_N)
    credit_links(X, rows, radius, radius, for_thread(build(X, rows)), sizes, credit)


def _mdav(weights: Any = None) -> None:
    """Those of many records; the shells and the tree are the part "left"."""
    from microagg.kernels.remaining import none_left

    _rounds(none_left(_sample(), weights), both=3 * _K)


def _rounds(left: Any, moving: Any = None, both: int | None = None) -> None:
    from microagg.base.progress import new_state
    from microagg.kernels.outside_in import rounds, scratch

    rounds(left, None, moving, both, 0, _K, 2 * _K, 0, 0, *scratch(_K), new_state())


def _mdav_of_few(weights: Any = None) -> None:
    from microagg.kernels.remaining import all_left

    _rounds(all_left(_sample(), weights, in_tree=False), both=3 * _K)


def _centroid() -> None:
    import numpy as np

    from microagg.kernels.remaining import none_left

    _method("centroid")()
    _rounds(none_left(_sample()), np.empty((2, _D)))


def _ahead(weights: Any = None, moving: Any = None) -> None:
    """Rounds of mdav for which threads search; with scratch for moving centres, those of centroid."""
    from microagg.base.progress import new_state
    from microagg.kernels.outside_in import scratch
    from microagg.kernels.remaining import none_left
    from microagg.kernels.search_ahead import choose, eyes_of, look, new_ahead, rounds_ahead

    left, both = none_left(_sample(), weights), 3 * _K if moving is None else None
    ahead = new_ahead(_N, 1, _K, moving is not None)
    choose(left, ahead, 0, 0)
    look(eyes_of(left.tree, ahead), moving, left.X, both, ahead, 0, 0, 1)
    rounds_ahead(left, ahead, moving, both, 0, _K, 0, 0, *scratch(_K), new_state())


def _centroid_in_threads() -> None:
    import numpy as np

    _ahead(moving=np.empty((2, _D)))


def _closeness() -> None:
    import numpy as np

    from microagg.algorithms.required.soria_comas import k_first, t_first
    from microagg.grouping.require.requirement import demands_of
    from microagg.grouping.require.value_rules import Closeness

    demands = demands_of([Closeness(np.arange(_N) % 4, 0.5)], _N)
    for method in (k_first, t_first):
        method(_sample(), _K, demands)


def _left() -> None:
    from microagg.kernels.remaining import all_left

    all_left(_sample())


def _weighted_left() -> None:
    from microagg.kernels.remaining import all_left

    all_left(_sample(), _weights())


def _large_search(weights: Any = None) -> None:
    from microagg.algorithms.refine.large import anneal_large_cells

    anneal_large_cells(*_no_cells(2, _sample(), weights))


def _pairs(weights: Any = None) -> None:
    from microagg.algorithms.refine.pairs import part_pairs
    from microagg.base.progress import new_state

    part_pairs(_sample(), weights, _labels(), _K, 1, 0, new_state())


def _bound() -> None:
    from microagg.bounds.repeated_pricing import EXACT_K
    from microagg.grouping.improve import lower_bound

    for k, effort in ((_K, "fast"), (_K, "balanced"), (EXACT_K + 1, "balanced")):
        lower_bound(_sample(), k, effort=effort)


def _best() -> None:
    from microagg.grouping.improve import refine

    refine(_sample(), _labels(), _K, effort="best", time_limit=1.0)


def _one_column() -> None:
    import numpy as np

    from microagg.grouping.partition import partition

    partition(_sample()[:, :1], _K)
    partition(np.random.default_rng(0).random(300_000), _K)  # in several threads


def _method(name: str) -> Callable[[], None]:
    def compile_it() -> None:
        from microagg.grouping.partition import partition

        method = METHODS[name]
        few: dict[str, Any] = {"starts": 2, "n_projections": 2, "nodes": 0, "generations": 1}
        options = {option.name: few[option.name] for option in method.options if option.name in few}
        X = _sample()[:, :1] if method.one_column else _sample()
        partition(X, _K, method=name, **options)

    return compile_it


def _parts_of_a_table() -> None:
    """What tables that are read in parts need beside."""
    from tempfile import TemporaryDirectory

    import numpy as np
    import pyarrow as pa

    from microagg.encode.batch_statistics import Moments
    from microagg.kernels.halving_tree import leaves_of
    from microagg.measure.count_classes import count_out_of_core, row_keys
    from microagg.measure.link_batches import link_sample

    Moments().add(_sample()[:, 0].copy())
    leaves_of(_sample(), np.zeros((1, _D)), np.zeros(1), np.zeros(len(_sample()), dtype=np.int64))
    keys = row_keys([pa.array([1.0, 2.0]), pa.array(["a", "b"])])
    with TemporaryDirectory() as folder:
        count_out_of_core([(keys, None)], Path(folder), 1 << 20)
        count_out_of_core([(keys, keys)], Path(folder), 1 << 20)
    link_sample(_sample(), _sample(), [(_sample(), None)], len(_sample()))


# Methods that begin with the groups of another one.
_AFTER = {"cbfs-mhm": "centroid", "igd": "mdav", "imhm": "mdav", "mdav-mhm": "mdav"}

# The longest first, so that no processor waits for the last of them.
PARTS: dict[str, Callable[[], None]] = {
    "search": _search,
    "required search": _required_search,
    "last search": _last_search,
    "weighted search": _weighted_search,
    "required start": _required_start,
    "required merging": _required_merging,
    "mdav": _mdav,
    "weighted mdav": lambda: _mdav(_weights()),
    "mdav in threads": _ahead,
    "weighted mdav in threads": lambda: _ahead(_weights()),
    "large search": _large_search,
    "weighted large search": lambda: _large_search(_weights()),
    "mdav of few": _mdav_of_few,
    "weighted mdav of few": lambda: _mdav_of_few(_weights()),
    "start": _start,
    "large start": _large_start,
    "left": _left,
    "weighted left": _weighted_left,
    "pairs": _pairs,
    "weighted pairs": lambda: _pairs(_weights()),
    "one column": _one_column,
    "best": _best,
    "evaluation": _evaluation,
    "centroid": _centroid,
    "centroid in threads": _centroid_in_threads,
    "closeness": _closeness,
    "parts of a table": _parts_of_a_table,
}
PARTS |= {
    name: _method(name)
    for name, method in METHODS.items()
    if method.for_numbers and name not in (*PARTS, "auto")
}
# What measures groups and their bounds is compiled while they are searched for.
_MEASURING = {"bound": _bound, "linkage in a tree": _linkage_in_a_tree, "linkage": _linkage}
AFTER_GROUPING = tuple(_MEASURING)
PARTS |= _MEASURING


def needed(plan: Plan, records: int | None, bound: bool, engine: str | None = None) -> list[str]:
    """Parts that a job will need, as far as its plan and the number of records tell; None: maybe many.

    Of a plan that names no columns, only what every draft needs: the table tells the rest.
    """
    found = {"evaluation", "linkage"}
    if engine in ("disk", "spark"):
        found.add("parts of a table")
    many = records is None or records > FEW_RECORDS
    if many:
        found.add("linkage in a tree")

    def mdav(heavy: str = "") -> set[str]:
        # Parts of a large table may be small.
        large = {f"{heavy}mdav", f"{heavy}left"} if many else set()
        return {f"{heavy}mdav of few"} | large

    heavy = "weighted " if plan.weight is not None else ""
    for block in plan.blocks:
        if block.columns is None:
            if block.method == "auto":
                found |= {"last search", "start"}
            continue
        searched = block.method == "auto" or bool(block.refine)
        required = plan.unit_of(block).column is not None or bool(block.require)
        close = METHODS[block.method].closeness
        if (searched or required) and not close and _may_be_mixed(plan, block):
            found.add("last search")
        in_pairs = (block.k or 0) > LARGE_K
        if searched:
            ways = {"large search", "pairs"} if in_pairs else {"search"}
            found |= {"start", *(f"{heavy}{way}" for way in ways)}
            if many:
                found.add("large start")
        methods = {block.method, _AFTER.get(block.method, block.method)} - {"auto"}
        if "mdav" in methods or (searched and (in_pairs or many)):
            found |= mdav(heavy)
            if many:
                found.add(f"{heavy}mdav in threads")
        found |= methods - {"mdav"}
        if "centroid" in methods and many:
            found.add("centroid in threads")
        if close:
            found |= {"closeness", *mdav()}
        if required:
            found |= {"required search", "required start", "required merging", "left"}
            found |= mdav(heavy)
        if block.per_column or len(block.columns) == 1:
            found.add("one column")
    if bound:
        found |= {"bound", *mdav()}
    return [name for name in PARTS if name in found]


def _may_be_mixed(plan: Plan, block: Block) -> bool:
    """Whether a block has columns that are no numbers, as far as the plan tells."""
    kinds = {plan.column(name).kind for name in block.columns or ()}
    return bool(kinds & {"boolean", "nominal", "ordinal", "spiked"})
