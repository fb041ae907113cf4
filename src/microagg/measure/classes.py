"""Equivalence classes: records that agree in all of some columns, value by exact value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.strata import count_units
from microagg.kernels.labels import canonical_labels, group_sizes
from microagg.tables.frame_libraries import decoded


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """Sizes of classes: what an engine counts, of a whole table or of a part of its classes.

    The attributes are arrays with a place for each class, or for several of the same size.
    """

    records: Labels
    """Records of one class."""
    units: Labels
    """Distinct units, or distinct values of a confidential column, in one class."""
    common: Labels
    """1 for classes whose only value is common in the whole table, 0 for others."""
    classes: Labels
    """Number of classes."""

    @classmethod
    def of(
        cls,
        records: Labels,
        units: Labels | None = None,
        common: Labels | None = None,
        classes: Labels | None = None,
    ) -> ClassSizes:
        """Fill in what was not counted: by default each record is a unit, and each place is for one class.

        >>> classes = ClassSizes.of(np.array([5, 5, 6]))
        >>> classes.n_records, classes.n_classes, classes.records_below(6)
        (16, 3, 10)
        """
        return cls(
            records,
            records if units is None else units,
            np.zeros_like(records) if common is None else common,
            np.ones_like(records) if classes is None else classes,
        )

    @classmethod
    def of_labels(cls, labels: Labels, units: Labels | None = None) -> ClassSizes:
        """Count the records, and the units if given, of classes numbered 0, 1, …."""
        return cls.of(group_sizes(labels), None if units is None else count_units(labels, units))

    def merge(self, more: ClassSizes) -> ClassSizes:
        """Add other classes of the same table, and put those of the same size together."""
        import pyarrow as pa

        sizes = ["records", "units", "common"]
        both = (vars(side) for side in (self, more))
        counts = (
            pa.concat_tables(map(pa.table, both)).group_by(sizes).aggregate([("classes", "sum")])
        )
        return ClassSizes(*[counts[name].to_numpy() for name in (*sizes, "classes_sum")])

    @property
    def n_records(self) -> int:
        """Number of records."""
        return int(self.records @ self.classes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.classes.sum())

    @property
    def smallest(self) -> int:
        """Records of the smallest class; 0 if there is none."""
        return int(self.records.min(initial=self.n_records))

    @property
    def fewest_units(self) -> int:
        """Units of the class that has fewest; 0 if there is none."""
        return int(self.units.min(initial=self.n_records))

    @property
    def unique(self) -> int:
        """Records that are alone in their class."""
        return int(self.classes[self.records == 1].sum())

    def records_below(self, k: int) -> int:
        """Count the records of classes of fewer than k units."""
        return int((self.records * self.classes)[self.units < k].sum())


def count_combinations(columns: Sequence[Any], unit: Any = None) -> tuple[Labels, Labels]:
    """Count the records and the units of each combination of values that occurs.

    Columns are Arrow arrays of one length, in which missing is a value, −0 is 0 and every NaN is the same.
    The distinct values of ``unit`` are the units, all missing ones together one; None: every record is one.

    >>> import pyarrow as pa
    >>> age, household = pa.chunked_array([[30, 30, 30, 64]]), pa.chunked_array([[1, 1, 2, 3]])
    >>> records, units = count_combinations([age], household)
    >>> sorted(records.tolist()), sorted(units.tolist())
    ([1, 3], [1, 2])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = [str(j) for j in range(len(columns))]
    values = list(map(countable, columns))
    if len(values) == 1:  # of single numbers of eight bytes, group_by hashes many to one place
        encoded = pa.chunked_array([values[0].combine_chunks()]).dictionary_encode("encode")
        values = [pa.chunked_array([chunk.indices for chunk in encoded.chunks])]
    table = pa.table(dict(zip(keys, values, strict=True)))
    wanted: list[Any] = [([], "count_all")]
    if unit is not None:
        table = table.append_column("unit", countable(unit))
        wanted.append(("unit", "count_distinct", pc.CountOptions(mode="all")))
    counted = table.group_by(keys).aggregate(wanted)
    records = counted["count_all"].to_numpy().astype(np.int64)
    if unit is None:
        return records, records
    return records, counted["unit_count_distinct"].to_numpy().astype(np.int64)


def classes(X: Floats) -> Labels:
    """Label the rows of ``X`` (n, d) so that two have the same label exactly if they are equal.

    NaN is a value, and −0 is 0; labels are numbered by first appearance.

    >>> classes(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    import pyarrow as pa

    if X.shape[1] == 1:
        return canonical_labels(np.unique(X[:, 0], return_inverse=True)[1].reshape(-1))
    keys = [str(j) for j in range(X.shape[1])]
    columns = [countable(pa.chunked_array([column])) for column in X.T]
    table = pa.table([*columns, pa.array(np.arange(len(X)))], names=[*keys, "row"])
    rows = table.group_by(keys).aggregate([("row", "list")])["row_list"].combine_chunks()
    sizes = np.diff(rows.offsets.to_numpy())
    labels = np.empty(len(X), dtype=np.int64)
    labels[rows.flatten().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    return canonical_labels(labels)


def missing_alone(codes: Labels) -> Labels:
    """Return the ``codes`` of records, where each record without one (below 0) has a number of its own."""
    rows = np.arange(len(codes))
    return np.where(codes < 0, codes.max(initial=0) + 1 + rows, codes)


def share_below(labels: Labels, k: int, units: Labels | None = None) -> float:
    """Return the share of records in classes of fewer than ``k`` records, or units.

    ``labels`` (n,) number the classes 0, 1, …; ``units`` (n,) the unit of each record, None: each is one.

    >>> share_below(np.array([0, 0, 1]), 2), share_below(np.array([0, 0, 1]), 2, np.array([7, 7, 8]))
    (0.3333333333333333, 1.0)
    """
    return ClassSizes.of_labels(labels, units).records_below(k) / len(labels)


def simple_values(column: Any) -> Any:
    """Undo the encodings of an Arrow array, so that equal values have one form, except floats."""
    import pyarrow as pa

    column = decoded(column)
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        return simple_values(pa.chunked_array(chunks, type=kind.storage_type))
    if pa.types.is_nested(kind):  # lists and records, which arrow does not tell apart
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    return column


def countable(column: Any) -> Any:
    """Bring equal values of an Arrow array into one form, in which arrow counts them as one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = simple_values(column)
    if pa.types.is_floating(column.type):
        doubles = pc.add(column.cast(pa.float64()), 0.0)  # −0 becomes 0
        return pc.if_else(pc.is_nan(doubles), float("nan"), doubles)  # of all NaN, one
    return column
