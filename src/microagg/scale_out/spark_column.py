"""One column on Spark: the optimal cut, put together from stretches of its order.

The driver sees columns of the order at which groups may begin and end, a few for each stretch, and no value
(see :mod:`microagg.scale_out.one_column`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.methods.univariate.chain import overlap_for
from microagg.methods.univariate.stretches import Crossing, crossings_meet
from microagg.scale_out.blocks import sample_share
from microagg.scale_out.one_column import STRETCH, Splits
from microagg.scale_out.recipe import Recipe
from microagg.scale_out.worker_tables import unpack
from microagg.scale_out.workers import Sampled
from microagg.scale_out.workers_column import Cut, Ends, InOrder, Place, PlanSplits

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

__all__ = ["cut_column"]


def cut_column(
    records: DataFrame, recipe: Recipe, words: str, by_block: Callable[[DataFrame, int], Any]
) -> tuple[DataFrame, int]:
    """Records with the group of each, by the stretch in which the group ends, and the number of stretches."""
    splits = _splits(records, recipe, words)
    places = splits.first[-1]
    joined = np.arange(places)
    while True:
        placed = records.mapInArrow(Place(recipe, splits, joined), f"{words}, block long")
        counts = np.zeros(places, dtype=np.int64)
        for row in placed.groupBy("block").count().toDF("block", "records").collect():
            counts[row.block] = row.records
        stretches = [
            [place for place in range(low, high) if counts[place]]
            for low, high in pairwise(splits.first)
        ]
        begins = {place: int(counts[own[0] : place].sum()) for own in stretches for place in own}
        ordered = by_block(placed, places).applyInArrow(
            _of_two(InOrder(recipe, begins, _borrowers(stretches, begins, recipe.k))),
            f"{words}, group long, block long",
        )
        cut = by_block(ordered, places).applyInArrow(_of_two(Cut(recipe, begins)), "packed binary")
        found = {one.place: one for one in (unpack(bytes(row.packed)) for row in cut.collect())}
        apart = _do_not_meet(stretches, found, recipe.k)
        if not len(apart):
            break
        for place, before in apart:  # cut together with the stretch before it
            joined[joined == place] = before
    entries, following = _put_together(stretches, found)
    ends = by_block(ordered, places).applyInArrow(
        _of_two(Ends(recipe, begins, entries, following)), f"{words}, group long, block long"
    )
    return ends, places


def _splits(records: DataFrame, recipe: Recipe, words: str) -> Splits:
    share = sample_share(recipe.records)
    sample = records.mapInArrow(Sampled(recipe, share), words).repartition(1)
    (row,) = sample.mapInArrow(PlanSplits(recipe, STRETCH), "packed binary").collect()
    found: Splits = unpack(bytes(row.packed))
    return found


def _borrowers(
    stretches: list[list[int]], begins: dict[int, int], k: int
) -> dict[int, tuple[tuple[int, int], ...]]:
    """For each stretch, those after it that need its last records, and from which column on."""
    found: dict[int, list[tuple[int, int]]] = {}
    for own in stretches:
        for at, place in enumerate(own[1:], 1):
            needed = max(begins[place] - overlap_for(k), 0)
            before = at - 1
            while True:
                found.setdefault(own[before], []).append((place, needed))
                if begins[own[before]] <= needed:
                    break
                before -= 1
    return {place: tuple(who) for place, who in found.items()}


def _do_not_meet(
    stretches: list[list[int]], found: dict[int, Crossing], k: int
) -> list[tuple[int, int]]:
    """Stretches whose cuts are not proved to go on from those before, each with the stretch before it.

    Of neighbours every other one is named, since both would change.
    """
    apart: list[tuple[int, int]] = []
    for own in stretches:
        taken = -1
        for before, place in pairwise(own):
            if before != taken and not crossings_meet(found[before], found[place], k):
                apart.append((place, before))
                taken = place
    return apart


def _put_together(
    stretches: list[list[int]], found: dict[int, Crossing]
) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Where groups after each stretch begin, and the first end after it with the stretch it lies in."""
    entries: dict[int, int] = {}
    following: dict[int, tuple[int, int]] = {}
    for own in stretches:
        column, later = (found[own[-1]].end if own else 0), (0, 0)
        for place in reversed(own):
            entries[place], following[place] = column, later
            if column > found[place].first:  # else no group ends here
                column, first_end = found[place].exits[column]
                later = (first_end, place)
    return entries, following


def _of_two(work: Any) -> Any:
    """As a plain function of two arguments, which Spark counts."""

    def apply(one: Any, other: Any) -> Any:
        return work(one, other)

    return apply
