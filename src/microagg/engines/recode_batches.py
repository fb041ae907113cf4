"""Recoding of a table that is read in parts: counted batch by batch, then a function of each batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Floats
from microagg.encode.bands import level_text
from microagg.encode.level_counts import Tally
from microagg.encode.prepare import weights_of
from microagg.encode.recode import Recoder, fit, tally
from microagg.measure.row_keys import row_keys
from microagg.plan.plan import Plan
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import missing_words

Tallies = dict[Any, Tally]


def tallies(table: pa.Table, plan: Plan, written: pa.Table | None = None) -> Tallies:
    """Count in a batch what the recodings of its columns need; ``written`` is as a CSV file holds it."""
    frame, is_csv = Frame(table), written is not None
    units, weights = None, None
    if plan.units:
        text = frame if written is None else Frame(written)
        units = row_keys([values_as_written(text, plan.units[0], is_csv)])[:, 0].view(np.int64)
    if plan.weight is not None:
        weights = weights_of(frame, plan.weight.column)
    words = missing_words(is_csv)
    return {name: tally(frame, plan, name, words, units, weights) for name in plan.coarsened}


def merged(one: Tallies, other: Tallies) -> Tallies:
    """Put together what was counted in two batches."""
    return {name: own.merge(other[name]) for name, own in one.items()}


def recoders_of(
    plan: Plan, counted: Tallies, head: pa.Table, is_csv: bool = False
) -> dict[Any, Recoder]:
    """Fit the recodings to what was counted in all batches; ``head`` has the types of the table."""
    words = missing_words(is_csv)
    return {name: fit(Frame(head), plan, name, one, words) for name, one in counted.items()}


def recoded_batch(table: pa.Table, recoders: Mapping[Any, Recoder]) -> pa.Table:
    """Return a batch with its columns recoded."""
    frame = Frame(table)
    for name, recoder in recoders.items():
        column = recoder.column(frame)
        at = table.column_names.index(name)
        facts = recoder.facts(frame, column)
        own = table.schema.field(at).with_type(column.type)
        table = table.set_column(
            at, own if facts is None else own.with_metadata(facts.as_metadata()), column
        )
    return table


def recoded_text(written: pa.Table, recoded: pa.Table, recoders: Mapping[Any, Recoder]) -> pa.Table:
    """Return a batch as a CSV file holds it, but for its recoded columns."""
    for name in recoders:
        at = written.column_names.index(name)
        written = written.set_column(at, recoded.schema.field(name), recoded[name])
    return written


def loss_by_recoding(recoder: Recoder) -> tuple[float, float]:
    """Share of the information that a column loses by its recoding alone, and its weight in all losses."""
    if not recoder.parts or recoder.how.kinds[0] != "nominal":
        every = recoder.every
        if not every.squares > 0:
            return 0.0, 0.0
        return recoder.lost / every.squares, recoder.before.importance * (every.count - 1)
    mass = {level: part.weight for level, part in recoder.parts.items()}
    total, count = sum(mass.values()), sum(part.count for part in recoder.parts.values())
    spread = total - sum(one * one for one in mass.values()) / total
    if not spread > 0:
        return 0.0, 0.0
    merged, shares = recoder.merged()
    lost = 0.0
    for one, share in zip(merged, shares, strict=True):
        square = float(share @ share)
        for level, own in zip(recoder.levels, share.tolist(), strict=True):
            if recoder.becomes.get(level) == one:
                lost += mass[level] * (1 - 2 * own + square)
    return lost / spread, recoder.before.importance * (count - 1)


def level_places(recoder: Recoder, levels: Iterable[Any]) -> Floats:
    """Return where the levels of a recoded column stand, in the numbering of the original."""
    if recoder.how.bands is not None:
        place = dict(zip(recoder.labels, recoder.places.tolist(), strict=True))
    else:
        merged, _ = recoder.merged()
        place = {
            level_text(level): float(at) for at, level in enumerate([*recoder.levels, *merged])
        }
    return np.array([place[level_text(level)] for level in levels])
