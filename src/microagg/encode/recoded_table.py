"""A table in memory before and after its columns are recoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.bands import level_text
from microagg.encode.hierarchy import inner_nodes
from microagg.encode.prepare import weights_of
from microagg.encode.recode import Recoder, before_of, fit, recoded_plan, tally
from microagg.errors import InputError, shown
from microagg.plan.plan import Plan
from microagg.tables.as_written import codes_as_written
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.variable import Variable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class RecodedTable:
    """A table whose columns are recoded by a plan."""

    frame: Frame
    text: pa.Table | None
    """The same table as it stands in a CSV file; recoded columns are as in the frame."""
    plan: Plan
    """Of the recoded table: bands are an ordinal column."""
    given: Frame
    """The table as it came."""
    recoders: Mapping[Any, Recoder]

    def columns(self, rows: Labels | None) -> dict[Any, Recoded]:
        """Return the recoded columns before and after; ``rows`` are the records that are kept."""
        found = {}
        for name, recoder in self.recoders.items():
            before = before_of(self.given, recoder)
            found[name] = Recoded(recoder, before if rows is None else before.taken(rows))
        return found


@dataclass(frozen=True, eq=False)
class Recoded:
    """A column as it was before it was recoded."""

    recoder: Recoder
    _read: Variable

    @property
    def before(self) -> Variable:
        """The original column; levels that replace several of its levels are numbered after them."""
        if not self.recoder.becomes or self._read.kind == "hierarchy":
            return self._read
        merged, shares = self.recoder.merged()
        place = {level: at for at, level in enumerate(self.recoder.levels)}
        at = [place[level] for level in self._read.levels if level in place]
        there = [level in place for level in self._read.levels]
        found = np.zeros((len(merged), len(there)))
        found[:, there] = shares[:, at]
        return replace(self._read, merged=tuple(merged), merged_from=found)

    def stands_for(self, released: Floats, after: Variable) -> Floats:
        """Return released values in the numbering of the original.

        Parameters
        ----------
        released : values of the recoded column, in the numbering of ``after``; NaN: missing
        after : the recoded column
        """
        if self.recoder.how.bands is not None:
            by_label = dict(zip(self.recoder.labels, self.recoder.places.tolist(), strict=True))
            values = [by_label[str(level)] for level in after.levels]
        elif after.is_category:
            known = [*self._read.levels]
            known += inner_nodes(self._read) if after.kind == "hierarchy" else self.before.merged
            place = {level_text(level): at for at, level in reversed(list(enumerate(known)))}
            values = [float(place[level_text(level)]) for level in after.levels]
            if after.kind == "hierarchy":
                values += [float(place.get(node, len(known))) for node in inner_nodes(after)]
        else:
            return np.asarray(released + (after.origin - self._read.origin))
        there = ~np.isnan(released)
        found = np.full(len(released), np.nan)
        found[there] = np.array([*values, np.nan])[released[there].astype(np.int64)]
        return found


def recode_table(
    table: Frame,
    plan: Plan,
    text: pa.Table | None = None,
    coded: Mapping[Any, Coded] | None = None,
    fitted: Mapping[Any, Recoder] | None = None,
) -> RecodedTable | None:
    """Recode the columns of a table by its plan; None if the plan recodes none.

    ``text``, ``coded`` and ``fitted`` are as for :func:`microagg.grouping.read_table.take_in`.
    """
    import pyarrow as pa

    if not plan.coarsened:
        return None
    check_recoded(plan, table.names)
    words = missing_words(text is not None)
    recoders, columns, facts = {}, {}, {}
    codes = dict(plan.missing.codes)
    for name in plan.coarsened:
        if fitted is not None:
            recoder = fitted[name]
        else:
            weights = None if plan.weight is None else weights_of(table, plan.weight.column)
            found = tally(table, plan, name, words, _units(table, plan, text), weights)
            recoder = fit(table, plan, name, found, words)
        recoders[name] = recoder
        column = recoder.column(table)
        facts[name] = recoder.facts(table, column)
        if recoder.how.bands is not None:
            if name in (coded or {}) and name not in codes:
                column = _with_codes(column, (coded or {})[name])
                codes[name] = tuple(_number(code) for code in (coded or {})[name].codes)
            column = _in_order(column, recoder.labels)
        columns[name] = table.arrow_like(name, column)
    native = table.with_columns(columns)
    if isinstance(native, pa.Table):
        fields = [
            own.with_metadata(changed.as_metadata())
            if (changed := facts.get(own.name)) is not None
            else own
            for own in native.schema
        ]
        native = native.cast(pa.schema(fields, native.schema.metadata))
    frame = Frame(native)
    if text is not None:
        for name in recoders:
            at = text.column_names.index(name)
            text = text.set_column(at, name, frame.arrow_column(name))
    after = recoded_plan(plan, recoders.values())
    after = replace(after, missing=replace(plan.missing, codes=codes))
    return RecodedTable(frame, text, after, table, recoders)


def _with_codes(column: Any, coded: Coded) -> Any:
    """Put the codes of a file for missing values into a column of bands."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [None if tag < 0 else _number(coded.codes[tag]) for tag in coded.tags.tolist()]
    return pc.if_else(pa.array(coded.tags >= 0), pa.array(texts, column.type), column)


def _number(code: float | str) -> str:
    return code if isinstance(code, str) else f"{code:g}"


def check_recoded(plan: Plan, names: Sequence[Any]) -> None:
    """Refuse to recode a column that is not released by its values."""
    roles = plan.roles(names)
    released = {*roles.protected, *roles.known}
    for name in plan.coarsened:
        if name not in released:
            raise InputError(
                f"Only columns that are protected, known or strata can be recoded; {shown(name)} is not. "
                "Leave its coarsen out, or change its role."
            )


def _in_order(column: Any, labels: Sequence[str]) -> Any:
    """Return bands as an Arrow column of ordered categories; codes for missing values come last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    others = [text for text in pc.unique(column).to_pylist() if text not in {*labels, None}]
    listed = pa.array([*labels, *sorted(others)], pa.string())
    indices = pc.index_in(column, value_set=listed).combine_chunks()
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), listed, ordered=True)]
    )


def _units(table: Frame, plan: Plan, text: pa.Table | None) -> Labels | None:
    if not plan.units:
        return None
    written = table if text is None else Frame(text)
    return codes_as_written(written, plan.units[0], text is not None)
