"""Fidelity: how far the tables, spreads and associations of a released file are from the original's.

Rows need not correspond, nor need there be equally many.

For a table of one, two or three columns, ½·Σ|p' − p| over its cells is the share of the records that stand in
another cell. Its mean over all tables, or over 150 random ones, is told beside the same figure for other
samples of the same size: bootstraps of the original. A release whose tables move no more than that costs a
user no more than having drawn another sample.

With weights every record counts by its weight: that of the original on one side, the released one on the
other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.threads import thread_count
from microagg.errors import InputError, MicroaggError, listed
from microagg.measure.both_tables import Pair
from microagg.measure.read_protected import protected_values, weights_of
from microagg.measure.table_moves import (
    ComparedColumn,
    Masses,
    cells_of,
    correlation_change,
    mean_of,
    move_of,
    other_samples,
    rare_share,
    scaled,
    sets_of,
    shares_of,
    spread_of,
)
from microagg.plan.column import Column, columns_with
from microagg.tables.frame import Frame, choose_columns
from microagg.tables.matrix import as_matrix, is_frame
from microagg.tables.variable import variable_of

_MOST_RECORDS = 1_000_000  # of larger tables a sample of this size is looked at


class Tables(NamedTuple):
    """Share of the records in another cell, mean over tables of one, two and three columns.

    None where there are too few columns.
    """

    one: float | None
    two: float | None
    three: float | None


class WorstPair(NamedTuple):
    """The table of two columns that moved most, of those that were looked at."""

    columns: tuple[Any, Any]
    share: float
    """Of the records that stand in another cell."""
    sampling: float
    """The same for another sample of this size."""


@dataclass(frozen=True)
class Fidelity:
    """How far a released table is from its original, beside what another sample would be."""

    tables: Tables
    sampling: Tables
    """The same for other samples of the same size: bootstraps of the original."""
    worst_pair: WorstPair | None
    spreads: Mapping[Any, float]
    """σ after/σ before of each number."""
    correlations: float | None
    """Mean of |r' − r| over all pairs of numbers."""
    associations: float | None
    """Mean of |V' − V|, V Cramér's V of the tables of two columns."""
    associations_sampling: float | None
    """The same for other samples of the same size."""
    rare: float | None
    """Records in categories that under 5 % of the original's records have: share after/share before."""
    records: int
    """Of the original, as far as looked at."""
    sampled: bool = False
    """Whether there are more records than these."""
    columns: int = 1
    """Columns that vary."""

    @property
    def spread(self) -> float | None:
        """Mean of σ after/σ before over all numbers; None where there are none."""
        return float(np.mean(list(self.spreads.values()))) if self.spreads else None

    @property
    def order(self) -> int:
        """The most columns that a table was made of: 1, 2 or 3."""
        return min(self.columns, 3)

    def multiple(self, order: int) -> float:
        """Return how many times as far tables of 1, 2 or 3 columns moved as in another sample.

        0 where nothing moved; infinite where another sample moves nothing.
        """
        moved, sampling = self.tables[order - 1] or 0.0, self.sampling[order - 1] or 0.0
        if not moved:
            return 0.0
        return moved / sampling if sampling else float("inf")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        worst = self.worst_pair
        return {
            "tables": self.tables._asdict(),
            "sampling": self.sampling._asdict(),
            "spread": self.spread,
            "spreads": {str(name): value for name, value in self.spreads.items()},
            "correlations": self.correlations,
            "associations": self.associations,
            "associations_sampling": self.associations_sampling,
            "rare": self.rare,
            "worst_pair": worst
            and {
                "columns": [str(name) for name in worst.columns],
                "share": worst.share,
                "sampling": worst.sampling,
            },
            "records": self.records,
            "sampled": self.sampled,
        }


def fidelity(
    original: Any,
    released: Any,
    columns: Iterable[Any] | None = None,
    *,
    kinds: Mapping[Any, Any] | None = None,
    weight: Any = None,
) -> Fidelity:
    """Measure how far tables, spreads and associations moved, beside what another sample would give.

    Parameters
    ----------
    original, released : frames of any library, or array-likes
        Columns are matched by name (in arrays by position); rows need not correspond.
    columns : names to compare, of any kind; by default all that both tables have
    kinds : of some columns, where their type does not say it, as for :func:`microagg.utility`
    weight : name of the column of weights in both tables; if the released one lacks it, its records count
        alike

    Returns
    -------
    Fidelity
        ``tables`` and ``sampling`` with ``one``, ``two`` and ``three``: the share of the records in another
        cell of a table of so many columns, in the released table and in another sample of the original;
        ``spread``, ``correlations``, ``associations``, ``rare``, ``worst_pair``.

    >>> import pyarrow as pa
    >>> fidelity(pa.table({"a": ["x", "x", "y", "y"]}), pa.table({"a": ["x", "y", "y", "y"]})).tables.one
    0.25
    """
    if is_frame(original) != is_frame(released):
        raise InputError("Compare two frames or two arrays; one of each was given.")
    if not is_frame(original):
        first, second = as_matrix(original), as_matrix(released)
        if first.shape[1] != second.shape[1]:
            raise InputError(
                f"Both arrays need the same columns; they have {first.shape[1]} and {second.shape[1]}."
            )
        return fidelity_of(
            [ComparedColumn(j, first[:, j], second[:, j], False) for j in range(first.shape[1])]
        )
    before, after = Frame(original), Frame(released)
    if columns is None:
        names = [name for name in before.names if after.has(name) and name != weight]
        if not names:
            raise InputError(
                f"The tables share no column: {listed(before.names)} against {listed(after.names)}."
            )
    else:
        names = choose_columns(after, choose_columns(before, columns))
    weights: list[Floats | None] = [None, None]
    if weight is not None:
        weights[0] = weights_of(before, weight)[0]
        weights[1] = weights_of(after, weight)[0] if after.has(weight) else None
    return fidelity_of(compared_columns(before, after, names, kinds or {}), *weights)


def compared_columns(
    before: Frame, after: Frame, names: Iterable[Any], kinds: Mapping[Any, Any]
) -> list[ComparedColumn]:
    """Read columns of two tables in one numbering.

    Parameters
    ----------
    before, after : the tables; their rows need not correspond
    names : columns that both have
    kinds : of some of them, as for :func:`microagg.utility`
    """
    settings = columns_with({}, "kinds", kinds)
    return [_compared(before, after, name, settings.get(name, Column())) for name in names]


def _compared(before: Frame, after: Frame, name: Any, setting: Column) -> ComparedColumn:
    try:
        variable = variable_of(before, name, setting)
        values = protected_values(variable, before, after)
    except (
        MicroaggError
    ):  # of no kind, or written in another way: its values are told apart as texts
        cells = [frame.arrow_column(name).to_pylist() for frame in (before, after)]
        texts = [[None if value is None else str(value) for value in column] for column in cells]
        distinct = sorted({text for column in texts for text in column if text is not None})
        numbers: dict[str | None, float] = {text: i for i, text in enumerate(distinct)}
        first, second = (np.array([numbers.get(t, np.nan) for t in column]) for column in texts)
        return ComparedColumn(name, first, second, True)
    return ComparedColumn(name, variable.values, values, variable.is_category)


def columns_of(both: Pair) -> list[ComparedColumn]:
    """Return the columns of a pair of matrices."""
    return [
        ComparedColumn(name, both.original[:, j], both.protected[:, j], both.is_category[j])
        for j, name in enumerate(both.names)
    ]


def fidelity_of(
    columns: Sequence[ComparedColumn],
    weights: Floats | None = None,
    released_weights: Floats | None = None,
    *,
    sampled: bool = False,
) -> Fidelity:
    """Measure the fidelity of columns that were read.

    Parameters
    ----------
    columns : at least one
    weights, released_weights : (n,) and (n',) of the original's and of the released records, in any unit;
        None: all count alike
    sampled : whether these records are a sample already

    O((n + n')·t) for t ≤ d + 300 tables of d columns.
    """
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    sizes = len(columns[0].before), len(columns[0].after)
    if not all(sizes):
        raise InputError("Fidelity needs records; a table has none.")
    if max(sizes) > _MOST_RECORDS:
        sampled = True
        rows = [rng.choice(n, min(n, _MOST_RECORDS), replace=False) for n in sizes]
        if sizes[0] == sizes[1]:
            rows[1] = rows[0]  # where rows correspond, no noise is added
        columns = [
            ComparedColumn(c.name, c.before[rows[0]], c.after[rows[1]], c.is_category)
            for c in columns
        ]
        weights = None if weights is None else weights[rows[0]]
        released_weights = None if released_weights is None else released_weights[rows[1]]
    n = len(columns[0].before)
    shares, after = (
        np.full(size, 1 / size) if w is None else shares_of(w)
        for w, size in ((weights, n), (released_weights, len(columns[0].after)))
    )
    # Threads of the library for products would wait for each other longer than they work.
    with threadpool_limits(1), ThreadPoolExecutor(thread_count()) as pool:
        columns = list(pool.map(scaled, columns))
        cells = list(pool.map(cells_of, columns))
        # A column of one value makes no table of its own.
        varied = [j for j, column in enumerate(cells) if not column.is_constant] or [0]
        columns, cells = [columns[j] for j in varied], [cells[j] for j in varied]
        sets = [sets_of(len(cells), order, rng) for order in (1, 2, 3)]
        masses = Masses(shares, after, other_samples(cells, shares, rng))
        moves = list(
            pool.map(lambda chosen: move_of(cells, chosen, masses), itertools.chain(*sets))
        )
        spreads = dict(pool.map(lambda column: spread_of(column, masses), columns))
        correlations = correlation_change(columns, masses)
    ends = np.cumsum([len(each) for each in sets])
    of_order = [moves[end - len(each) : end] for each, end in zip(sets, ends, strict=True)]
    means = [tuple(map(mean_of, zip(*each, strict=True))) or (None,) * 4 for each in of_order]
    two = of_order[1]
    worst = max(range(len(two)), key=lambda i: two[i].share, default=None)
    return Fidelity(
        tables=Tables(*(mean[0] for mean in means)),
        sampling=Tables(*(mean[1] for mean in means)),
        worst_pair=None
        if worst is None
        else WorstPair(
            (columns[sets[1][worst][0]].name, columns[sets[1][worst][1]].name),
            two[worst].share,
            two[worst].sampling,
        ),
        spreads={name: value for name, value in spreads.items() if value is not None},
        correlations=correlations,
        associations=means[1][2],
        associations_sampling=means[1][3],
        rare=rare_share(columns, masses),
        records=n,
        sampled=sampled,
        columns=len(columns),
    )
