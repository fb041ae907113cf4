"""Recoding: the values of a column become coarser before anything else sees them.

A recoding is fitted to what is counted in the whole column (:class:`Tally`, which merges over batches) and
is then a function of a batch. So it is the same in memory, on disk and on Spark.

- ``round``, ``top``, ``bottom`` and ``to`` give values of the column's own type. A value that stays what it
  is keeps its cell.
- ``bands`` give categories in order, named such as 20–24 or 80 or more. For distance, release and loss a
  band stands where the mean of its original values is.
- ``rare`` and ``prefix`` give fewer levels. A level that several became stands for their mean. In an order,
  rare levels are merged with neighbours, and all of them become the most frequent one, which keeps its place.

Missing values and codes for missing values stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.encode.bands import band_ends, band_label, level_text, number_text, rounded
from microagg.encode.batch_statistics import Share, Tally, least_units
from microagg.errors import InputError, shown
from microagg.plan.column import Coarsen, Column
from microagg.plan.plan import Plan
from microagg.tables.dates import dates_in_text, floored, instants, written_dates
from microagg.tables.file_metadata import ColumnFacts
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import is_text, plain_arrow
from microagg.tables.variable import Variable, variable_of

_OTHER = ("other", "other levels", "all other levels")


def tally(
    recoder: Recoder,
    frame: Frame,
    k: int,
    units: Labels | None = None,
    weights: Floats | None = None,
) -> Tally:
    """Count in a batch what a recoding needs to be fitted.

    ``units`` are keys of whose records these are, the same in all batches.
    """
    variable, how = before_of(frame, recoder), recoder.how
    there = ~variable.missing
    x = variable.values[there] + variable.origin
    w = np.ones(len(x)) if weights is None else weights[there]
    every, lost, whole = Share(), 0.0, bool((x == np.rint(x)).all())
    if not variable.is_category and len(x):
        mean = float(x[0] + np.average(x - x[0], weights=w))
        every = Share(len(x), float(w.sum()), mean, float((w * np.square(x - mean)).sum()))
        if how.bands is None:
            lost = float((w * np.square(x - recoder.values(frame, variable)[there])).sum())
    if how.bands is not None:
        low, high = band_ends(how, x)
        ends, which = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
        keys: list[Any] = [tuple(row) for row in ends.tolist()]
    elif how.rare is not None or how.prefix is not None:
        which, keys = x.astype(np.int64), list(variable.levels)
        x = np.zeros(len(x))
    elif how.top is not None or how.bottom is not None:
        which = np.zeros(len(x), dtype=np.int64)
        which[x > (np.inf if how.top is None else how.top)] = 1
        which[x < (-np.inf if how.bottom is None else how.bottom)] = 2
        keys, x = ["between", "top", "bottom"], np.zeros(len(x))
    else:
        return Tally(every=every, lost=lost)
    which = which.reshape(-1)
    most = how.rare or k
    held = [frozenset[int]()] * len(keys)
    if units is not None:
        held = least_units(which, units[there], len(keys), most)
    count = np.bincount(which, minlength=len(keys))
    mass = np.maximum(np.bincount(which, weights=w, minlength=len(keys)), 1e-300)
    base = np.zeros(len(keys))
    base[which[::-1]] = x[::-1]  # sums are of differences to a member
    off = x - base[which]
    step = np.bincount(which, weights=w * off, minlength=len(keys)) / mass
    squares = np.bincount(which, weights=w * np.square(off - step[which]), minlength=len(keys))
    means = (base + step).tolist()
    shares = map(Share, count.tolist(), mass.tolist(), means, squares.tolist(), held)
    parts = {
        key: share
        for key, share in zip(keys, shares, strict=True)
        if share.count or variable.kind == "ordinal"  # levels that do not occur keep their place
    }
    return Tally(parts, whole, units is not None, most, every, lost)


def unfitted(frame: Frame, plan: Plan, name: Any, missing_words: Sequence[str] = ("",)) -> Recoder:
    """Return the recoding of a column before it is fitted; a type with an order makes it ordinal.

    ``frame`` is the table or a batch of it; ``missing_words`` are texts of categories that mean missing.
    """
    setting, codes = plan.column(name), tuple(plan.missing.codes.get(name, ()))
    merges_rare = setting.coarsen is not None and setting.coarsen.rare is not None
    if setting.kind is None and merges_rare and frame.is_ordered(name):
        setting = setting.of_kind("ordinal")
    return Recoder(name, setting, codes, tuple(missing_words))


def before_of(frame: Frame, recoder: Recoder) -> Variable:
    """Read the column of ``frame``, the original table, that ``recoder`` is about, as it was before."""
    name, how = recoder.name, recoder.how
    kind, number = frame.kind_in_words(name), frame.is_numeric(name)
    if (how.kind is None and not number and not recoder.codes) or (how.kind == "date" and number):
        raise InputError(_misfit(name, how, kind))
    setting = recoder.before.of_kind(recoder.before.kind or how.kind)
    variable = variable_of(frame, name, setting, recoder.codes, recoder.missing_words)
    if variable.kind not in how.kinds:
        raise InputError(_misfit(name, how, kind))
    return variable


def _misfit(name: Any, how: Coarsen, words: str) -> str:
    fits = {"number": "numbers", "nominal": "categories", "date": "dates"}[how.kinds[0]]
    return (
        f"Column {shown(name)} is to be recoded ({how.in_words}), which is for {fits}; it holds {words}. "
        "Leave its coarsen out, or choose another recoding."
    )


@dataclass(frozen=True, eq=False)
class Recoder:
    """A recoding fitted to a column."""

    name: Any
    before: Column  # Settings of the column in the plan
    codes: tuple[Any, ...] = ()  # Values that mean missing, by the plan
    missing_words: tuple[str, ...] = ("",)
    lows: Floats = field(default_factory=lambda: np.zeros(0))  # of the bands, ascending
    labels: tuple[str, ...] = ()  # Names of the bands that occur, in order
    places: Floats = field(default_factory=lambda: np.zeros(0))  # means in bands
    share: float = 1.0  # Share of the inertia that is between bands
    becomes: Mapping[Any, Any] = field(default_factory=dict)  # New level of each level that changes
    parts: Mapping[Any, Share] = field(default_factory=dict)  # of levels before
    other: Any = None  # The level that rare ones become; None: they become several, or none is rare
    every: Share = field(default_factory=Share)  # All values of numbers and dates before
    lost: float = 0.0  # Sum of squared distances of numbers and dates to their new values

    @property
    def how(self) -> Coarsen:
        """The recoding by the plan."""
        assert self.before.coarsen is not None
        return self.before.coarsen

    @property
    def is_ordinal(self) -> bool:
        """Whether neighbouring levels of an order are merged."""
        return self.how.rare is not None and self.before.kind == "ordinal"

    @property
    def counts_levels(self) -> bool:
        """Whether losses are those of categories without an order, not of numbers or places."""
        return self.how.kinds[0] == "nominal" and not self.is_ordinal

    @property
    def after(self) -> Column:
        """Settings of the recoded column."""
        plain = replace(self.before, coarsen=None)
        if self.is_ordinal:
            return replace(plain, levels=self.levels)
        if self.how.bands is not None:
            # A single band is no order; it is one level of a category.
            if len(self.labels) < 2:
                return plain.of_kind("nominal", round="no")
            return plain.of_kind("ordinal", levels=self.labels, round="no")
        if self.how.rare is not None or self.how.prefix is not None:
            levels = None
            if plain.levels is not None:
                kept = dict.fromkeys(self.becomes.get(level, level) for level in plain.levels)
                levels = tuple(kept) if len(kept) > 1 else None
            return plain.of_kind(plain.kind or self.how.kind, levels=levels, round="no")
        return plain.of_kind(plain.kind or self.how.kind)

    def placed(self, variable: Variable) -> Variable:
        """Return the recoded variable with each band at the mean of its values."""
        if self.how.bands is None or len(self.labels) < 2:
            return variable
        return replace(variable, places=self.places, share=self.share)

    @property
    def levels(self) -> tuple[Any, ...]:
        """Levels of a category before, in one order for all batches."""
        return tuple(self.parts) if self.is_ordinal else tuple(sorted(self.parts, key=str))

    def merged(self) -> tuple[list[Any], Floats]:
        """Return the new levels that others became, and the share of each former level in their records."""
        if self.is_ordinal:
            return [], np.zeros((0, len(self.parts)))
        new = [self.becomes.get(level, level) for level in self.levels]
        changed = (level for level in self.levels if level in self.becomes)
        merged = list(dict.fromkeys(self.becomes[level] for level in changed))
        often = np.array([float(self.parts[level].count) for level in self.levels])
        shares = np.array([often * [to == level for to in new] for level in merged])
        shares = shares.reshape(len(merged), len(new))
        return merged, shares / shares.sum(axis=1, keepdims=True)

    def values(self, frame: Frame, before: Variable) -> Floats:
        """Return numbers and dates after their recoding, in the units of the original; NaN: missing."""
        if self.how.to is None:
            return rounded(self.how, before.values)
        after = instants(self._dates(frame), self.codes)
        return before.values + before.origin if after is None else after.values + after.origin

    def originals(self, frame: Frame) -> Floats:
        """Return values of a batch before their recoding: numbers, instants, or numbers of levels."""
        before = before_of(frame, self)
        if not before.is_category:
            return before.values + before.origin
        number = {level_text(level).strip(): at for at, level in enumerate(self.levels)}
        numbers = [float(number[level_text(level).strip()]) for level in before.levels]
        return np.array([*numbers, np.nan])[before.level_numbers]

    def column(self, frame: Frame) -> Any:
        """Return the recoded column of a batch, an Arrow array."""
        if self.how.to is not None:
            return self._dates(frame)
        if self.how.bands is not None:
            return self._bands(frame)
        if self.how.rare is not None or self.how.prefix is not None:
            return self._levels(frame)
        return self._numbers(frame)

    def facts(self, frame: Frame, column: Any) -> ColumnFacts | None:
        """Return the metadata of the recoded column for a statistical package; None: as before."""
        known = _facts_of(frame, self.name)
        if known is None or (self.how.bands is None and self.other is None):
            return None
        if column.type != plain_arrow(frame.arrow_column(self.name)).type:
            return ColumnFacts(label=known.label)
        labels = tuple(pair for pair in known.value_labels if pair[0] not in self.becomes)
        return replace(known, value_labels=(*labels, (self.other, _OTHER[0])))

    def _variable(self, frame: Frame, kind: str) -> Variable:
        return variable_of(frame, self.name, Column(kind), self.codes, self.missing_words)

    def _numbers(self, frame: Frame) -> Any:
        before = self._variable(frame, "number").values
        new = rounded(self.how, before)
        changed = ~np.isnan(before) & (new != before)
        column = plain_arrow(frame.arrow_column(self.name))
        values = np.where(changed, new, 0.0)
        if is_text(column.type):
            array = pa.array([number_text(value) for value in values.tolist()], column.type)
        else:
            if pa.types.is_integer(column.type) and (values != np.rint(values)).any():
                raise InputError(
                    f"Values of column {shown(self.name)} are of a type for whole numbers; recoded "
                    f"({self.how.in_words}) they have fractions. Round to a whole number."
                )
            array = pa.array(values).cast(column.type)
        return pc.if_else(pa.array(changed), array, column)

    def _bands(self, frame: Frame) -> Any:
        variable = self._variable(frame, "number")
        there = ~variable.missing
        texts = np.full(len(there), None, dtype=object)
        low, _ = band_ends(self.how, variable.values[there])
        # Bands that only records have which are left out are not among the fitted ones.
        at = np.minimum(np.searchsorted(self.lows, low), len(self.lows) - 1)
        texts[there] = np.array(self.labels, dtype=object)[at]
        if variable.tags is not None:
            coded = variable.tags >= 0
            texts[coded] = [str(self.codes[tag]) for tag in variable.tags[coded]]
        return pa.chunked_array([pa.array(texts, pa.string())])

    def _levels(self, frame: Frame) -> Any:
        variable = self._variable(frame, "nominal")
        column = plain_arrow(frame.arrow_column(self.name))
        encoded, declared = pa.types.is_dictionary(column.type), None
        if encoded:
            if self.is_ordinal and column.type.ordered and column.num_chunks:
                declared = column.unify_dictionaries().chunk(0).dictionary
            column = column.cast(column.type.value_type)
        new = [self.becomes.get(name, name) for name in variable.levels]
        moved = np.array([name in self.becomes for name in variable.levels] + [False], dtype=bool)
        level = variable.level_numbers
        has_text = any(isinstance(new_level, str) for new_level in self.becomes.values())
        if is_text(column.type) or has_text:  # a text among numbers turns all into texts
            new = [level_text(name) for name in new]
            if not is_text(column.type):
                moved[:-1] = True
                column = column.cast(pa.string())
        array = pa.array([None if at < 0 else new[at] for at in level.tolist()], column.type)
        recoded = pc.if_else(pa.array(moved[level]), array, column)
        if declared is not None:  # an order stays one
            numbered = pc.index_in(recoded, value_set=declared).combine_chunks()
            recoded = pa.DictionaryArray.from_arrays(numbered, declared, ordered=True)
        elif encoded:
            recoded = recoded.combine_chunks().dictionary_encode()
        return recoded if isinstance(recoded, pa.ChunkedArray) else pa.chunked_array([recoded])

    def _dates(self, frame: Frame) -> Any:
        column = frame.arrow_column(self.name)
        period = self.how.to
        assert period is not None  # the recoding is one of dates
        if not is_text(column.type):
            if pa.types.is_time(column.type) or pa.types.is_duration(column.type):
                raise InputError(_misfit(self.name, self.how, "times without a day"))
            return floored(column, period)
        texts = pc.utf8_trim_whitespace(column)
        coded = pc.is_in(texts, value_set=pa.array([str(c) for c in self.codes], texts.type))
        seen = dates_in_text(pc.if_else(coded, pa.scalar(None, texts.type), texts))
        if seen is None:
            return column  # no date at all; others were refused when it was read
        if "%Y" not in seen[1]:
            raise InputError(_misfit(self.name, self.how, "times without a day"))
        new = written_dates(floored(seen[0], period), seen[1])
        return pc.if_else(pc.is_valid(new), new.cast(column.type), column)


def fit(recoder: Recoder, frame: Frame, counted: Tally) -> Recoder:
    """Fit a recoding to what was counted in all batches; ``frame`` is any of them."""
    fitted, how = replace(recoder, every=counted.every, lost=counted.lost), recoder.how
    if how.bands is not None:
        ends = sorted(counted.parts)
        parts = [counted.parts[key] for key in ends]
        every = counted.every
        within = sum(part.squares for part in parts)
        return replace(
            fitted,
            lows=np.array([low for low, _ in ends]),
            labels=tuple(band_label(low, high, counted.whole) for low, high in ends),
            places=np.array([part.mean for part in parts]),
            share=1 - within / every.squares if every.squares > 0 else 1.0,
            lost=within,
        )
    if how.prefix is not None:
        cut = {level: level_text(level)[: how.prefix] for level in counted.parts}
        becomes = {level: new for level, new in cut.items() if new != level}
        return replace(fitted, becomes=becomes, parts=counted.parts)
    if how.rare is not None:
        return _fit_rare(fitted, counted, frame)
    for end, beyond in (("top", "above"), ("bottom", "below")):
        units = counted.number(counted.parts.get(end, Share()))
        if 0 < units < counted.most:
            raise InputError(
                f"{end}, of coarsen, is for at least k = {counted.most} "
                f"{'units' if counted.by_units else 'records'}, since the loss would reveal the values of "
                f"fewer; {units} of column {shown(recoder.name)} {'is' if units == 1 else 'are'} {beyond} "
                "it. Move it, or leave it out."
            )
    return fitted


def _fit_rare(fitted: Recoder, counted: Tally, frame: Frame) -> Recoder:
    if fitted.before.kind == "hierarchy":
        return replace(fitted, becomes=_to_parents(fitted.before, counted), parts=counted.parts)
    if fitted.is_ordinal:
        return _fit_order(fitted, counted)
    rare = [level for level, share in counted.parts.items() if counted.is_rare(share)]
    other: Any = None
    if rare:
        known = _facts_of(frame, fitted.name)
        numbers = not any(isinstance(level, str) for level in counted.parts)
        if known is not None and known.value_labels and numbers:
            labelled = [value for value, _ in known.value_labels if not isinstance(value, str)]
            ends = [high for _, high in known.ranges]
            used = [*counted.parts, *labelled, *known.codes, *ends]
            other = int(max(map(float, used))) + 1
        else:
            named = {level_text(level).strip().lower() for level in [*counted.parts, *fitted.codes]}
            more = f"other than {plural(len(named), 'level')}"
            other = next((word for word in _OTHER if word not in named), more)
    return replace(fitted, becomes=dict.fromkeys(rare, other), parts=counted.parts, other=other)


def _fit_order(fitted: Recoder, counted: Tally) -> Recoder:
    """Merge each rare level of an order with the rarer of its neighbours, the rarest level first."""
    levels = list(counted.parts)  # in the order of their type, if it has one
    if fitted.before.levels is not None:
        shown_as = {level_text(level).strip(): level for level in levels}
        declared = [level_text(level).strip() for level in fitted.before.levels]
        levels = [shown_as.get(text, text) for text in declared]
    elif not any(isinstance(level, str) for level in levels):
        levels.sort()
    parts = {level: counted.parts.get(level, Share()) for level in levels}
    runs, shares = [[at] for at in range(len(levels))], list(parts.values())
    while len(runs) > 1:
        rare = [at for at, share in enumerate(shares) if counted.is_rare(share)]
        if not rare:
            break
        at = min(rare, key=lambda at: shares[at].count)
        sides = [side for side in (at - 1, at + 1) if 0 <= side < len(runs)]
        low = min(at, min(sides, key=lambda side: shares[side].count))
        runs[low : low + 2] = [runs[low] + runs[low + 1]]
        shares[low : low + 2] = [shares[low].merge(shares[low + 1])]
    count = np.array([share.count for share in parts.values()])
    weight = np.array([share.weight for share in parts.values()])
    new = np.arange(len(levels))
    for run in runs:
        new[run] = run[int(np.argmax(count[run]))]
    places = np.arange(len(levels), dtype=np.float64)
    mean = float(np.average(places, weights=weight)) if weight.any() else 0.0
    squares = float((weight * np.square(places - mean)).sum())
    return replace(
        fitted,
        becomes={
            levels[at]: levels[to] for at, to in enumerate(new.tolist()) if count[at] and to != at
        },
        parts=parts,
        every=Share(int(count.sum()), float(weight.sum()), mean, squares),
        lost=float((weight * np.square(places - new)).sum()),
    )


def _to_parents(setting: Column, counted: Tally) -> dict[Any, str]:
    """Replace rare codes by their ancestors until enough records have the node, or it is a root."""
    parents = None
    if setting.parents is not None:
        parents = {str(child): str(parent) for child, parent in setting.parents.items()}

    def above(node: str) -> str:
        if parents is not None:
            return parents.get(node, node)
        lengths = setting.prefixes or range(1, len(node))
        return node[: max((length for length in lengths if length < len(node)), default=len(node))]

    now = {level: level_text(level) for level in counted.parts}
    while True:
        nodes: dict[str, Share] = {}
        for level, node in now.items():
            nodes[node] = nodes.get(node, Share()).merge(counted.parts[level])
        up = {node: above(node) for node, share in nodes.items() if counted.is_rare(share)}
        if all(node == parent for node, parent in up.items()):
            return {level: node for level, node in now.items() if node != level}
        now = {level: up.get(node, node) for level, node in now.items()}


def recoded_plan(plan: Plan, recoders: Iterable[Recoder]) -> Plan:
    """Return the plan of the table recoded by ``recoders``: ``plan`` that recodes nothing more."""
    after = {recoder.name: recoder.after for recoder in recoders}
    protected = {name for block in plan.blocks for name in block.columns or ()}
    columns = {
        name: after.get(name, setting)
        for name, setting in plan.columns.items()
        if name in protected or name not in after
    }
    return replace(plan, columns=columns)


def _facts_of(frame: Frame, name: Any) -> ColumnFacts | None:
    """Return the metadata of a statistical package about a column; None: there is none."""
    if not isinstance(frame.native, pa.Table):
        return None
    field = frame.native.schema.field(frame.names.index(name))
    return ColumnFacts.of(field) if field.metadata else None
