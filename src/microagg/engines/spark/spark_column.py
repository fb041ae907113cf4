"""One column on Spark: the optimal cut, put together from stretches of its order.

The driver sees columns of the order at which groups may begin and end, a few for each stretch, and no value
(see :mod:`microagg.engines.one_column`).
"""

from __future__ import annotations

import operator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.algorithms.univariate.chain import Starts, trace
from microagg.algorithms.univariate.stretches import Crossing, crossing
from microagg.base.typing import Labels
from microagg.engines.encoding import Encoding, Words
from microagg.engines.one_column import (
    Splits,
    borrowers,
    do_not_meet,
    places_of,
    put_together,
    sorted_words,
    values_to_cut,
)
from microagg.engines.spark.spark_bundles import (
    bundle_schema,
    in_bundles,
    numbers_of,
    word_columns,
    word_names,
    words_of,
)
from microagg.engines.spark.spark_frames import by_chunk, mapped, pack, reduced, unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def cut_column(
    records: DataFrame, encoding: Encoding, splits: Splits, width: int
) -> tuple[DataFrame, int]:
    """Return records with their groups, by the stretch in which a group ends, and the number of stretches.

    ``width`` is the number of words of a record.
    """
    places = splits.first[-1]
    with_groups = bundle_schema([*word_names(width), "group"])
    moved = np.arange(places)  # the stretch that each place belongs to
    while True:
        placed = mapped(records, partial(_placed, encoding, splits, moved), records.schema)
        counts = count_places(placed, places)
        stretches = [
            [place for place in range(low, high) if counts[place]]
            for low, high in pairwise(splits.first)
        ]
        begins = {place: int(counts[own[0] : place].sum()) for own in stretches for place in own}
        lent = borrowers(stretches, begins, encoding.k)
        ordered = by_chunk(placed, places, partial(_in_order, encoding, begins, lent), with_groups)
        cut = by_chunk(ordered, places, partial(_crossing, encoding, begins), "packed binary")
        found = {one.place: one for one in (unpack(bytes(row.packed)) for row in cut.collect())}
        apart = do_not_meet(stretches, found, encoding.k)
        if not len(apart):
            break
        for place, before in apart:  # cut together with the stretch before it
            moved[moved == place] = before
    entries, following = put_together(stretches, found)
    ends = partial(_ends, encoding, begins, entries, following)
    return by_chunk(ordered, places, ends, with_groups), places


def count_places(placed: DataFrame, places: int) -> Labels:
    """Count the records that go to each place."""

    def counted(rows: pa.Table) -> Labels:
        lengths = pc.binary_length(rows.column("w0")).to_numpy() // 8
        return np.bincount(rows.column("chunk").to_numpy(), lengths, places).astype(np.int64)

    counts = reduced(placed.select("chunk", "w0"), counted, operator.add)
    return np.zeros(places, dtype=np.int64) if counts is None else counts


def _placed(encoding: Encoding, splits: Splits, moved: Labels, rows: pa.Table) -> pa.Table:
    """Send records to their stretch of the order."""
    words = words_of(rows)
    return in_bundles(word_columns(words), moved[places_of(encoding, splits, words)])


def _in_order(
    encoding: Encoding,
    begins: dict[int, int],
    lent_to: dict[int, tuple[tuple[int, int], ...]],
    number: int,
    rows: pa.Table,
) -> pa.Table:
    """Return all records of a stretch in their order, with the column of each, and those lent to others.

    A stretch is cut as if the values began a little before it: the last records before it are lent to it.
    ``begins`` has the column at which each stretch begins, counted over its cell; ``lent_to`` for each
    stretch those that borrow from it, and from which column on.
    """
    words = words_of(rows)
    words = sorted_words(encoding.records_of(words), words)
    columns = begins[number] + np.arange(len(words))
    parts = [(words, columns, np.full(len(words), number))]
    for other, begin in lent_to.get(number, ()):
        lent = columns >= begin
        parts.append((words[lent], columns[lent], np.full(int(lent.sum()), other)))
    return _with_groups(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _with_groups(words: Words, groups: Labels, chunks: Labels) -> pa.Table:
    return in_bundles({**word_columns(words), "group": groups}, chunks)


def _crossing(encoding: Encoding, begins: dict[int, int], number: int, rows: pa.Table) -> pa.Table:
    """Report where a stretch, with the records lent to it, may be cut: columns, no values."""
    return pa.table({"packed": [pack(_cut(encoding, begins, number, rows)[0])]})


def _cut(
    encoding: Encoding, begins: dict[int, int], number: int, rows: pa.Table
) -> tuple[Crossing, Any, Words, Labels]:
    columns = numbers_of(rows.column("group"))
    order = np.argsort(columns, kind="stable")
    words, columns = words_of(rows)[order], columns[order]
    values = values_to_cut(encoding, words, int(columns[0]))
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
    """Add to records the column at which their group ends, and the stretch in which that lies.

    ``entries`` has the column at which the groups after each stretch begin; ``following`` the end of the
    first group that ends after it, and the stretch in which it does.
    """
    found, back, words, columns = _cut(encoding, begins, number, rows)
    ends, _ = trace(Starts(found.start, found.first, back), entries[number])
    own = columns >= found.first
    words, columns = words[own], columns[own]
    at = np.searchsorted(ends, columns, side="right")
    later, place = following[number]
    chunks = np.where(at < len(ends), number, place)
    return _with_groups(words, np.append(ends, later)[at], chunks)
