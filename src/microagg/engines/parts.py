"""A table in parts: the verbs by which steps look at all its records, and its plan, completed by the first.

What the draft says about all records, that a column has one value throughout, is looked up in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from operator import or_
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from microagg.base.formatting import names, plural
from microagg.drafting.draft import Completed, complete
from microagg.engines.capabilities import check_plan_in_parts
from microagg.engines.encoding import Encoding, PackedRows
from microagg.errors import InputError
from microagg.grouping.read_table import no_records
from microagg.measure.row_keys import row_keys
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.variable import variable_of

DRAFTED = 1 << 16  # records by which columns are judged

Found = TypeVar("Found")
Merge = Callable[[Found, Found], Found]
"""Joins what is known of some records and of others."""
Choose = Callable[[PackedRows], PackedRows]
"""Returns some of the records."""


class Parts(Protocol):
    """A table in parts. Steps are functions of Arrow tables; the engine calls them where the records are."""

    @property
    def is_text(self) -> bool:
        """Whether records also come as a CSV file holds them."""

    @property
    def names(self) -> list[Any]:
        """Names of the columns."""

    def empty(self) -> pa.Table:
        """Return the types of the columns."""

    def first(self, records: int, work: Callable[[pa.Table], Found]) -> Found | None:
        """Look at the first records, at most some number of them; None: there is none."""

    def reduce(
        self, work: Callable[..., Found], merge: Merge[Found], columns: Iterable[Any]
    ) -> Found | None:
        """Summarise batches by ``work(table, written=…)``, which needs some columns; merge the summaries."""

    def gather(
        self, encoding: Encoding, choose: Choose, work: Callable[[Iterable[PackedRows]], Found]
    ) -> Found:
        """Bring some records together, chosen from those of each batch, and work on them."""


def completed(parts: Parts, plan: Plan) -> Completed:
    """Fill in what a plan leaves open by what the first records look like; refuse what cannot be done."""
    plan.check_complete()
    check_plan_in_parts(plan)
    plan.roles(parts.names)
    looked = parts.first(DRAFTED, partial(_from_head, plan=plan, is_csv=parts.is_text))
    if looked is None:
        raise no_records()
    drafted, constant = looked

    def values_of(table: pa.Table, written: pa.Table | None) -> set[tuple[Any, int]]:
        """Return each of these columns with the key of its value, or two keys if it has several."""
        whole = table if written is None else written
        keys = {name: np.unique(row_keys([whole[name]])[:, 0])[:2].tolist() for name in constant}
        return {(name, key) for name in constant for key in keys[name]}

    values = (parts.reduce(values_of, or_, constant) if constant else None) or set()
    often = Counter(name for name, _ in values)
    varying = [name for name in constant if often[name] > 1]
    if varying:
        has, it = ("has", "it") if len(varying) == 1 else ("have", "them")
        raise InputError(
            f"Without named columns, columns are judged by the first {plural(DRAFTED, 'record')}; "
            f"{names(varying)} {has} one value there and others later. Say what to do: name a kind to "
            f"protect {it} (--kind), leave {it} out (--drop), or keep {it} although an attacker may know "
            f"{it} (--known)."
        )
    return drafted


def with_order_of_types(drafted: Completed, head: pa.Table, is_csv: bool) -> Completed:
    """Name the levels of columns whose type says their order, which Spark does not hand on.

    ``head`` has the first records as the file holds them.
    """
    plan, frame = drafted.plan, Frame(head)
    columns = dict(plan.columns)
    for name in dict.fromkeys([*(plan.blocks[0].columns or ()), *plan.coarsened]):
        setting, codes = plan.column(name), plan.missing.codes.get(name, ())
        keeps_order = setting.coarsen is None or setting.coarsen.rare is not None
        if setting.kind is None and keeps_order and frame.is_ordered(name):
            levels = variable_of(frame, name, setting, codes, missing_words(is_csv)).levels
            columns[name] = setting.of_kind("ordinal", levels=levels)
    return replace(drafted, plan=replace(plan, columns=columns))


def _from_head(head: pa.Table, plan: Plan, is_csv: bool) -> tuple[Completed, list[Any]]:
    """Look at the first records: the plan, and the columns kept as constant ones."""
    frame, words = Frame(head), missing_words(is_csv)
    drafted = complete(frame, plan, words)
    for name in drafted.plan.blocks[0].columns or ():
        setting, codes = drafted.plan.column(name), drafted.plan.missing.codes.get(name, ())
        if setting.kind is None and not codes and frame.odd_numbers(name) is not None:
            variable_of(frame, name, setting, codes, words)  # which refuses it
    constant = set(drafted.plan.known) - set(plan.known) if drafted.guesses else set()
    return drafted, [name for name in head.column_names if name in constant]
