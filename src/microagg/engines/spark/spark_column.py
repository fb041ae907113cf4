"""One column on Spark: the optimal cut, put together from stretches of its order.

The driver sees columns of the order at which groups may begin and end, a few for each stretch, and no value
(see :mod:`microagg.engines.one_column`).
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg.algorithms.univariate.chain import Starts, overlap_for, trace
from microagg.algorithms.univariate.stretches import Crossing, crossing, crossings_meet
from microagg.base.typing import Labels
from microagg.engines.encoding import Encoding, Words
from microagg.engines.one_column import Splits, places_of, sorted_words
from microagg.engines.spark.spark_frames import (
    by_chunk,
    mapped,
    pack,
    unpack,
    word_columns,
    word_schema,
    words_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["cut_column"]


def cut_column(
    records: DataFrame, encoding: Encoding, splits: Splits, width: int
) -> tuple[DataFrame, int]:
    """Records with the group of each, by the stretch in which the group ends, and the number of stretches.

    ``width`` is the number of words of a record.
    """
    places = splits.first[-1]
    with_groups = word_schema(width, "group", "chunk")
    moved = np.arange(places)  # the stretch that each place belongs to
    while True:
        placed = mapped(
            records, partial(_placed, encoding, splits, moved), word_schema(width, "chunk")
        )
        counts = np.zeros(places, dtype=np.int64)
        for row in placed.groupBy("chunk").count().toDF("chunk", "records").collect():
            counts[row.chunk] = row.records
        stretches = [
            [place for place in range(low, high) if counts[place]]
            for low, high in pairwise(splits.first)
        ]
        begins = {place: int(counts[own[0] : place].sum()) for own in stretches for place in own}
        lent = _borrowers(stretches, begins, encoding.k)
        ordered = by_chunk(placed, places, partial(_in_order, encoding, begins, lent), with_groups)
        cut = by_chunk(ordered, places, partial(_crossing, encoding, begins), "packed binary")
        found = {one.place: one for one in (unpack(bytes(row.packed)) for row in cut.collect())}
        apart = _do_not_meet(stretches, found, encoding.k)
        if not len(apart):
            break
        for place, before in apart:  # cut together with the stretch before it
            moved[moved == place] = before
    entries, following = _put_together(stretches, found)
    ends = partial(_ends, encoding, begins, entries, following)
    return by_chunk(ordered, places, ends, with_groups), places


def _placed(encoding: Encoding, splits: Splits, moved: Labels, rows: pa.Table) -> pa.Table:
    """Records with their stretch of the order."""
    return rows.append_column("chunk", pa.array(moved[places_of(encoding, splits, words_of(rows))]))


def _in_order(
    encoding: Encoding,
    begins: dict[int, int],
    borrowers: dict[int, tuple[tuple[int, int], ...]],
    number: int,
    rows: pa.Table,
) -> pa.Table:
    """All records of a stretch in their order, with the column of each, and those lent to others.

    A stretch is cut as if the values began a little before it: the last records before it are lent to it.
    ``begins`` has the column at which each stretch begins, counted over its cell; ``borrowers`` for each
    stretch those that borrow from it, and from which column on.
    """
    words = words_of(rows)
    words = sorted_words(encoding.records_of(words), words)
    columns = begins[number] + np.arange(len(words))
    parts = [(words, columns, np.full(len(words), number))]
    for other, begin in borrowers.get(number, ()):
        lent = columns >= begin
        parts.append((words[lent], columns[lent], np.full(int(lent.sum()), other)))
    return _with_groups(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _with_groups(words: Words, groups: Labels, chunks: Labels) -> pa.Table:
    return pa.table({**word_columns(words), "group": groups, "chunk": chunks})


def _crossing(encoding: Encoding, begins: dict[int, int], number: int, rows: pa.Table) -> pa.Table:
    """What a stretch, with the records lent to it, tells of its cuts: columns, no values."""
    return pa.table({"packed": [pack(_cut(encoding, begins, number, rows)[0])]})


def _cut(
    encoding: Encoding, begins: dict[int, int], number: int, rows: pa.Table
) -> tuple[Crossing, Any, Words, Labels]:
    columns = rows.column("group").to_numpy()
    order = np.argsort(columns, kind="stable")
    words, columns = words_of(rows)[order], columns[order]
    records = encoding.records_of(words)
    apart = encoding.apart(records)
    values = np.ascontiguousarray(records.values[:, 0])
    if encoding.releases_no_value(0 if apart is None else int(apart[0])):
        values = columns.astype(np.float64)  # any records may go together
    found, back = crossing(number, values, int(columns[0]), begins[number], encoding.k)
    return found, back, words, columns


def _ends(
    encoding: Encoding,
    begins: dict[int, int],
    entries: dict[int, int],
    following: dict[int, tuple[int, int]],
    number: int,
    rows: pa.Table,
) -> pa.Table:
    """Records of a stretch with the column at which their group ends, and the stretch in which that lies.

    ``entries`` has the column at which the groups after each stretch begin; ``following`` the end of the
    first group that ends after it, and the stretch in which it does.
    """
    found, back, words, columns = _cut(encoding, begins, number, rows)
    ends, _ = trace(Starts(found.start, found.first, back), entries[number])
    own = columns >= found.first
    words, columns = words[own], columns[own]
    at = np.searchsorted(ends, columns, side="right")
    later, place = following.get(number, (0, number))
    chunks = np.where(at < len(ends), number, place)
    return _with_groups(words, np.append(ends, later)[at], chunks)


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
