"""The columns of a table before and after they are recoded, for all engines.

What is counted in batches is merged, and gives the recodings of the table; then each batch is recoded by
itself. A table in memory is one batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.bands import level_text
from microagg.encode.batch_statistics import Tally
from microagg.encode.hierarchy import inner_nodes
from microagg.encode.prepare import weights_of
from microagg.encode.recode import Recoder, before_of, fit, recoded_plan, tally, unfitted
from microagg.errors import InputError, shown
from microagg.plan.plan import Plan
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.release_frame import reordered
from microagg.tables.variable import Variable, column_of

Tallies = dict[Any, Tally]


def tally_columns(frame: Frame, plan: Plan, is_csv: bool, units: Labels | None) -> Tallies:
    """Count in a batch what recodings need, without records that the policy ``drop`` leaves out.

    Parameters
    ----------
    frame : the batch, before any recoding
    plan : with the recodings
    is_csv : whether it comes from a CSV file
    units : (n,) keys of whose records these are, the same in all batches; None: k counts records
    """
    complete = complete_rows(frame, plan, is_csv)
    if complete is not None:
        rows = np.flatnonzero(complete)
        frame, units = Frame(reordered(frame.native, rows)), None if units is None else units[rows]
    weights = None if plan.weight is None else weights_of(frame, plan.weight.column)
    words = missing_words(is_csv)
    return {
        name: tally(unfitted(frame, plan, name, words), frame, plan.k, units, weights)
        for name in plan.coarsened
    }


def complete_rows(frame: Frame, plan: Plan, is_csv: bool) -> NDArray[np.bool_] | None:
    """Return which records of a batch the policy ``drop`` keeps, (n,); None: the policy keeps all.

    Parameters
    ----------
    frame : the batch, before any recoding, which changes nothing about it
    plan : with a role for every column
    is_csv : whether the batch comes from a CSV file
    """
    if plan.missing.policy != "drop":
        return None
    words = missing_words(is_csv)
    missing = [
        before_of(frame, unfitted(frame, plan, name, words)).missing
        if name in plan.coarsened
        else column_of(frame, plan, name, words, in_batches=True).missing
        for block in plan.blocks
        for name in block.columns or ()
    ]
    return np.asarray(~np.any(missing, axis=0))


def fit_recoders(plan: Plan, counted: Tallies, frame: Frame, is_csv: bool) -> dict[Any, Recoder]:
    """Fit the recodings of ``plan`` to what was ``counted`` in all batches.

    ``frame`` has the types of the table; ``is_csv`` says that it comes from a CSV file.
    """
    words = missing_words(is_csv)
    return {
        name: fit(unfitted(frame, plan, name, words), frame, tally)
        for name, tally in counted.items()
    }


def recoded_batch(
    frame: Frame,
    text: pa.Table | None,
    recoders: Mapping[Any, Recoder],
    coded: Mapping[Any, Coded] | None = None,
    ordered: bool = False,
) -> tuple[Frame, pa.Table | None]:
    """Recode the columns of a batch, typed and as a CSV file holds it.

    Parameters
    ----------
    frame : the batch, typed
    text : the same as it stands in a CSV file; None: it does not come from one
    recoders : fitted to the whole table, by column
    coded : codes of the file for missing values, which bands keep
    ordered : whether bands are categories, so that the type of the column tells their order; else texts
    """
    columns, facts = {}, {}
    for name, recoder in recoders.items():
        column = recoder.column(frame)
        facts[name] = recoder.facts(frame, column)
        if recoder.how.bands is not None:
            if coded and name in coded:
                codes, tags = coded[name]
                texts = [None if tag < 0 else _number(codes[tag]) for tag in tags.tolist()]
                column = pc.if_else(pa.array(tags >= 0), pa.array(texts, column.type), column)
            column = _in_order(column, recoder.labels) if ordered else column
        columns[name] = frame.arrow_like(name, column)
    native = frame.with_columns(columns)
    if isinstance(native, pa.Table):
        schema = native.schema
        for at, field in enumerate(schema):
            changed = facts.get(field.name)
            if changed is not None:
                schema = schema.set(at, field.with_metadata(changed.as_metadata()))
        native = native.cast(schema)
    after = Frame(native)
    if text is not None:
        for name in recoders:
            at = text.column_names.index(name)
            text = text.set_column(at, name, after.arrow_column(name))
    return after, text


def _number(code: float | str) -> str:
    return code if isinstance(code, str) else f"{code:g}"


def _in_order(column: Any, labels: Sequence[str]) -> Any:
    """Return bands as an Arrow column of ordered categories; codes for missing values come last."""
    others = [text for text in pc.unique(column).to_pylist() if text not in {*labels, None}]
    listed = pa.array([*labels, *sorted(others)], pa.string())
    indices = pc.index_in(column, value_set=listed).combine_chunks()
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), listed, ordered=True)]
    )


def recoders_of(table: Frame, plan: Plan, text: pa.Table | None = None) -> dict[Any, Recoder]:
    """Fit the recodings of a plan to a table in memory.

    Parameters
    ----------
    table : all its records
    plan : with a role for every column
    text : the same table as it stands in a CSV file
    """
    if not plan.coarsened:
        return {}
    check_recoded(plan, table.names)
    written, is_csv = table if text is None else Frame(text), text is not None
    unit = next(iter(plan.units), None)
    units = None if unit is None else codes_as_written(written, unit, is_csv)
    return fit_recoders(plan, tally_columns(table, plan, is_csv, units), table, is_csv)


def recode_table(
    table: Frame,
    plan: Plan,
    recoders: Mapping[Any, Recoder],
    text: pa.Table | None = None,
    coded: Mapping[Any, Coded] | None = None,
) -> tuple[Frame, pa.Table | None, Plan]:
    """Recode the columns of a table in memory; return it, its text, and its plan, by which bands are ordinal.

    Parameters
    ----------
    table : the table, or some of its records
    plan : by which it is recoded
    recoders : fitted to the whole table, by column
    text : the same records as they stand in a CSV file; recoded columns then are as in the table
    coded : codes for missing values of the file that the table came from, by column
    """
    coded, codes = dict(coded or {}), dict(plan.missing.codes)
    for name in list(coded):
        if name not in recoders or recoders[name].how.bands is None or name in codes:
            del coded[name]
        else:
            codes[name] = tuple(map(_number, coded[name].codes))
    frame, text = recoded_batch(table, text, recoders, coded, ordered=True)
    after = recoded_plan(plan, recoders.values())
    return frame, text, replace(after, missing=replace(plan.missing, codes=codes))


def check_recoded(plan: Plan, names: Sequence[Any]) -> None:
    """Refuse a ``plan`` that recodes one of the columns ``names`` that is not released by its values."""
    roles = plan.roles(names)
    released = {*roles.protected, *roles.known}
    for name in plan.coarsened:
        if name not in released:
            raise InputError(
                f"Only columns that are protected, known or strata can be recoded; {shown(name)} is not. "
                "Leave its coarsen out, or change its role."
            )


@dataclass(frozen=True, eq=False)
class Recoded:
    """A column as it was before it was recoded."""

    recoder: Recoder
    _read: Variable

    @property
    def before(self) -> Variable:
        """The original column; levels that replace several of its levels are numbered after them."""
        if not self.recoder.becomes or self._read.kind in ("hierarchy", "ordinal"):
            return self._read
        merged, shares = self.recoder.merged()
        number = {level: at for at, level in enumerate(self.recoder.levels)}
        numbers = [number[level] for level in self._read.levels if level in number]
        is_known = [level in number for level in self._read.levels]
        merged_from = np.zeros((len(merged), len(is_known)))
        merged_from[:, is_known] = shares[:, numbers]
        return replace(self._read, merged=tuple(merged), merged_from=merged_from)

    def stands_for(self, released: Floats, after: Variable) -> Floats:
        """Return released values in the numbering of the original.

        Parameters
        ----------
        released : values of the recoded column, in the numbering of ``after``; NaN: missing
        after : the recoded column
        """
        if not after.is_category:
            return np.asarray(released + (after.origin - self._read.origin))
        levels, known = [*after.levels], [*self._read.levels]
        if after.kind == "hierarchy":
            levels, known = [*levels, *inner_nodes(after)], [*known, *inner_nodes(self._read)]
        else:
            known += self.before.merged
        if self.recoder.how.bands is not None:
            places = dict(zip(self.recoder.labels, self.recoder.places.tolist(), strict=True))
        else:
            places = {level_text(level): at for at, level in reversed(list(enumerate(known)))}
        # A level that the original does not know stands after all that it knows.
        of_levels = [float(places.get(level_text(level), len(known))) for level in levels]
        numbers = np.where(np.isnan(released), -1, released).astype(np.int64)
        return np.array([*of_levels, np.nan])[numbers]


def loss_by_recoding(recoder: Recoder) -> tuple[float, float]:
    """Return the share of its information that a column loses by ``recoder`` alone, and its weight in all."""
    if not recoder.parts or not recoder.counts_levels:
        count, lost, spread = recoder.every.count, recoder.lost, recoder.every.squares
    else:
        parts = [recoder.parts[level] for level in recoder.levels]
        count, mass = sum(part.count for part in parts), np.array([part.weight for part in parts])
        spread = float(mass.sum() - np.square(mass).sum() / mass.sum())
        shares = recoder.merged()[1]
        squares = np.square(shares).sum(axis=1, keepdims=True)
        mass[[level not in recoder.becomes for level in recoder.levels]] = 0.0
        lost = float((mass * (shares > 0) * (1 - 2 * shares + squares)).sum())
    return (lost / spread, recoder.before.importance * (count - 1)) if spread > 0 else (0.0, 0.0)
