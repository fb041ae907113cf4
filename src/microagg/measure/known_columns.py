"""Unprotected columns: classes and linkage if an attacker knows them.

Someone who looks for a person in a released table knows more than the protected columns: sex, region,
a date, and so on. Unprotected columns are the same in the release, so that they distinguish records exactly;
protected columns distinguish them as well as their released values allow. The harm of a column is the share
of records in classes of fewer than k records, or units, which agree in the protected columns and in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from microagg.base.typing import Labels
from microagg.errors import TableError
from microagg.kernels.labels import combine
from microagg.measure.both_tables import Pair
from microagg.measure.classes import ClassSizes, countable, share_below
from microagg.measure.linkage import Linkage, link
from microagg.plan.sections import Roles
from microagg.tables.frame import Frame

# Amounts that people round: this many values repeat at least, and of these a larger share ends in 0, by
# this much. Ids differ by chance alone, by 0.03 at most on real tables; incomes by 0.38.
_FEWEST_REPEATED = 30
_ROUNDED_MORE_OFTEN = 0.2


@dataclass(frozen=True)
class Known:
    """A column that an attacker is taken to know exactly."""

    codes: Labels
    """A number for each distinct value, 0, 1, …: ascending, where the values have an order; −1: missing."""
    kind: str = "other"
    """"whole" (numbers), "real" (numbers with decimals, or amounts that people rounded), "time" (dates and
    times) or "other", which has no order."""

    @property
    def ordered(self) -> bool:
        """Whether the codes ascend with the values."""
        return self.kind != "other"

    @property
    def sizes(self) -> Labels:
        """Records of each distinct value, missing ones aside."""
        return np.bincount(self.codes[self.codes >= 0])

    @property
    def distinct(self) -> int:
        """Number of distinct values, missing ones aside."""
        return int(np.count_nonzero(self.sizes))


@dataclass(frozen=True)
class KnownRisk:
    """Risk if an attacker knows columns left as they are; shares of records are from 0 to 1.

    A class is a set of records with equal protected values, released weight and known values.
    """

    smallest_class: int
    """Records in the smallest class."""
    below_k: float
    """Share of records in classes of fewer than k records, or units."""
    unique: float
    """Share of records that are alone in their class."""
    linkage: Linkage
    """Share of records linked by an attacker who compares with the records of equal known values only."""

    @classmethod
    def of(cls, classes: ClassSizes, k: int, linkage: Linkage) -> KnownRisk:
        """Return the risk by the sizes of all classes; k is the promised class size."""
        n = classes.n_records
        return cls(
            smallest_class=classes.smallest,
            below_k=classes.records_below(k) / n,
            unique=classes.unique / n,
            linkage=linkage,
        )

    @property
    def record_linkage(self) -> float:
        """Share of records linked."""
        return self.linkage.share

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {**asdict(self), "record_linkage": self.record_linkage}


def known_columns(frame: Frame, names: Iterable[Any]) -> dict[Any, Known]:
    """Give numbers to the distinct values of the columns ``names`` of ``frame``, of any type.

    Missing is −1. A NaN is missing; in a column that has missing values besides, it is a value, since the
    file tells them apart. −0 and 0 are one value.

    >>> import pyarrow as pa
    >>> column = known_columns(Frame(pa.table({"a": [30, None, 10, 30]})), ["a"])["a"]
    >>> column.codes.tolist(), column.kind
    ([1, -1, 0, 1], 'whole')
    """
    columns = {}
    for name in names:
        codes, values, complete = _encoded(frame, name)
        kind = _kind(values, codes)
        if kind != "other":
            codes = _ascending(codes, values, nan_is_missing=complete)
        columns[name] = Known(codes, kind)
    return columns


def as_in_file(column: Known, text: Known) -> Known:
    """Give the values of ``column`` numbers by the ``text`` that stands in a file, in their own order.

    1.5 and 1.50 are one number and two texts, and so are two ids of twenty digits that are one double.

    >>> as_in_file(Known(np.array([1, 0, 1]), "real"), Known(np.array([0, 1, 2]))).codes.tolist()
    [1, 0, 2]
    """
    key = (column.codes + 1) * (int(text.codes.max(initial=0)) + 2) + text.codes + 1
    distinct, codes = np.unique(key, return_inverse=True)
    if len(distinct) == len(np.unique(column.codes)):
        return column
    missing = column.codes < 0
    if missing.any() and len(np.unique(key[missing])) == 1:
        codes = np.where(missing, -1, codes - 1)  # they have the lowest code
    return Known(codes.reshape(-1).astype(np.int64), column.kind)


def views_of(roles: Roles) -> dict[str, list[Any]]:
    """Return the columns by which an attacker distinguishes records: the known ones, then all if claims fail.

    ``roles`` are those of a plan; a view without columns is left out.
    """
    views = {"known": list(roles.known)} if roles.known else {}
    if roles.confidential:
        views["claimed"] = [*roles.known, *roles.confidential]
    return views


def known_risk(
    both: Pair,
    known: Mapping[Any, Known],
    k: int,
    *,
    units: Labels | None = None,
    sample: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> KnownRisk:
    """Measure what an attacker gains who knows some columns exactly and the protected ones too.

    Parameters
    ----------
    both : both tables
    known : each known column; without any, the figures are those of the protected ones alone
    k : records, or units, that must share their values
    units : (n,) unit of each record; None: k counts records
    sample, progress : as for :func:`microagg.measure.linkage.link`
    """
    columns = [column.codes for column in known.values()]
    blocks = combine(columns) if columns else None
    linkage = link(both, blocks=blocks, sample=sample, progress=progress)
    labels = combine([both.released_classes, *columns])
    return KnownRisk.of(ClassSizes.of_labels(labels, units), k, linkage)


@dataclass(frozen=True)
class Harm:
    """What one known column does."""

    name: Any
    distinct: int
    """Distinct values, missing ones aside."""
    alone: float
    """Share of records in classes of fewer than k if it were the only known column."""


def largest_first(shares: Mapping[Any, float]) -> dict[Any, float]:
    """Sort columns by their ``shares``, the largest first."""
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def rank(both: Pair, known: Mapping[Any, Known], k: int, units: Labels | None = None) -> list[Harm]:
    """Rank the ``known`` columns by what each does alone, the most harmful one first.

    Columns that do the same are in order of their distinct values, most of them first, then as given.
    ``both``, ``k`` and ``units`` are as for :func:`known_risk`.
    """
    harms = []
    for name, column in known.items():
        labels = combine([both.released_classes, column.codes])
        harms.append(Harm(name, column.distinct, share_below(labels, k, units)))
    return sorted(harms, key=lambda harm: (-harm.alone, -harm.distinct))


def enough(
    both: Pair, known: Mapping[Any, Known], k: int, units: Labels | None = None
) -> list[Any] | None:
    """Find ``known`` columns to drop so that k holds for the protected columns with all others known.

    None of them can stay, but another set may be smaller: columns that split the fewest classes are kept
    first. None if k does not hold for the protected columns alone. ``both``, ``k`` and ``units`` are as for
    :func:`known_risk`.
    """
    if share_below(both.released_classes, k, units) > 0:
        return None
    splits = {}
    for name, column in known.items():
        labels = combine([both.released_classes, column.codes])
        if share_below(labels, k, units) == 0:
            splits[name] = int(labels.max())
    kept, held = set(), both.released_classes
    for name in sorted(splits, key=splits.__getitem__):
        labels = combine([held, known[name].codes])
        if share_below(labels, k, units) == 0:
            kept.add(name)
            held = labels
    return [name for name in known if name not in kept]


def ascending_codes(frame: Frame, name: Any) -> Labels:
    """Give numbers to the distinct values of column ``name`` of ``frame``, ascending; texts by letters."""
    codes, values, complete = _encoded(frame, name)
    return _ascending(codes, values, nan_is_missing=complete)


def _encoded(frame: Frame, name: Any) -> tuple[Labels, Any, bool]:
    """Return numbers by first appearance, −1 if missing, the distinct values, and whether none is missing."""
    import narwhals as nw
    import pyarrow as pa

    alone = nw.from_native(frame.native)[:, [frame.names.index(name)]]
    try:
        column = countable(Frame(alone).to_arrow(unnamed_index=False).column(0))
        encoded = column.dictionary_encode()
    except (TableError, pa.ArrowNotImplementedError):  # objects of several types, nested values
        series = alone[:, 0]
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        column = pa.chunked_array([[None if null else repr(value) for value, null in pairs]])
        encoded = column.dictionary_encode()
    values = encoded.chunk(0).dictionary
    parts = [chunk.indices.fill_null(-1).to_numpy() for chunk in encoded.chunks]
    return np.concatenate(parts).astype(np.int64), values, column.null_count == 0


def _kind(values: Any, codes: Labels) -> str:
    """Tell the kind of a column from its distinct values, and the number of that of each record."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_a = pa.types
    if is_a.is_temporal(values.type) and not is_a.is_interval(values.type):
        return "time"
    if is_a.is_floating(values.type):
        # Whole numbers with missing ones among them come as floats from many a library.
        finite = values.filter(pc.is_finite(values))
        if not pc.all(pc.equal(finite, pc.floor(finite))).as_py():
            return "real"
    elif not is_a.is_integer(values.type):
        return "real" if is_a.is_decimal(values.type) else "other"
    # People round incomes, and rounded ones meet; ids repeat whatever their last digit is.
    repeats = np.bincount(codes[codes >= 0], minlength=len(values)) > 1
    if repeats.sum() < _FEWEST_REPEATED or repeats.all():
        return "whole"
    ends_in_0 = np.array([value is not None and value % 10 == 0 for value in values.to_pylist()])
    excess = ends_in_0[repeats].mean() - ends_in_0[~repeats].mean()
    return "real" if excess >= _ROUNDED_MORE_OFTEN else "whole"


def _ascending(codes: Labels, values: Any, nan_is_missing: bool) -> Labels:
    """Give the distinct values numbers in their own order instead of by first appearance."""
    import pyarrow as pa
    import pyarrow.compute as pc

    number = np.full(len(values) + 1, -1)  # the last place is that of missing, −1
    number[pc.array_sort_indices(values).to_numpy()] = np.arange(len(values))
    if nan_is_missing and pa.types.is_floating(values.type):
        number[:-1][pc.is_nan(values).to_numpy(zero_copy_only=False)] = -1  # NaN is sorted last
    return number[codes]
