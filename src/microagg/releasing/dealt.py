"""Dealing: which row of a group gets whose value, and whether a file that was read back agrees with it.

In each group the file must have the list of values that was dealt. And rows that kept their own value, and
pairs of columns that are still together, must be about as many as chance gives: a dealing that is switched
off, or that has one order for all columns, does not pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import shown
from microagg.kernels.labels import combine

SECRET_BYTES = 32
_MOST_DEVIATIONS = 6.0  # by which a dealing may differ from what chance gives


class Dealt(NamedTuple):
    """What was dealt in one partition: its groups, and for each column the values before and after."""

    labels: Labels
    """(n,)"""
    names: Sequence[Any]
    before: Sequence[tuple[Floats, Labels]]
    """For each column (n,) shared values and (n,) states, in the order of the records."""
    after: Sequence[tuple[Floats, Labels]]
    """The same, dealt."""
    donors: Sequence[Labels]
    """For each column (n,) the record whose shared value each row got."""
    bundles: Sequence[Sequence[Any]] = ()

    def with_column(self, name: Any, before: Floats, donors: Labels) -> Dealt:
        """Return the same with one more column, whose values are all there."""
        states = np.zeros(len(before), dtype=np.int64)
        return self._replace(
            names=[*self.names, name],
            before=[*self.before, (before, states)],
            after=[*self.after, (before[donors], states)],
            donors=[*self.donors, donors],
        )

    def released(self, columns: int) -> tuple[Floats, Labels]:
        """Return what the rows release in the first columns: (n, columns) values, and states."""
        values, states = zip(*self.after[:columns], strict=True)
        return np.column_stack(values), np.column_stack(states)

    def fault(self, written: Callable[[Any], Labels]) -> str | None:
        """Say what is wrong with a file that was read back; None: nothing is.

        In each group the file must have the list of values that was dealt. And rows that kept their own
        value, and pairs of columns that are still together, must be about as many as chance gives.

        Parameters
        ----------
        written : returns the codes of a column in the file, (n,), in the order of the records
        """
        twice = np.tile(self.labels, 2)
        classes: dict[Any, tuple[Labels, Labels]] = {}
        for name, before, after in zip(self.names, self.before, self.after, strict=True):
            values, states = (np.concatenate(both) for both in zip(before, after, strict=True))
            codes = np.unique(values, return_inverse=True, equal_nan=True)[1].reshape(-1)
            codes = combine([codes, states]) if states.any() else codes
            released, file = codes[len(codes) // 2 :], written(name)
            code_of = np.full(int(codes.max()) + 1, -1)
            code_of[released] = file
            own, dealt = np.split(combine([twice, codes]), 2)
            classes[name] = own, dealt
            same_lists = np.array_equal(np.bincount(own), np.bincount(dealt))
            if (code_of[released] != file).any() or not same_lists:
                return f"the values of {shown(name)} are not those that were dealt"
            if is_beyond_chance(self.labels, own, own, own, dealt):
                return f"rows that kept their own {shown(name)} are not as many as chance gives"
        bundle_of = {name: at for at, bundle in enumerate(self.bundles) for name in bundle}
        for first, second in pairwise(self.names):
            if first in bundle_of and bundle_of.get(first) == bundle_of.get(second):
                continue
            (one, one_dealt), (other, other_dealt) = classes[first], classes[second]
            if is_beyond_chance(self.labels, one, other, one_dealt, other_dealt):
                return (
                    f"rows in which {shown(first)} and {shown(second)} stayed together are not as many as "
                    "chance gives"
                )
        return None


def dealt_rows(labels: Labels, secret: bytes, what: str) -> Labels:
    """Return for each row the row of the same group whose value it gets.

    Parameters
    ----------
    labels : (n,) group of each row
    secret : :data:`SECRET_BYTES` of the operating system's random numbers, drawn once for a release
    what : which column or bundle of which part of the table is dealt: each has an order of its own

    >>> rows = dealt_rows(np.array([0, 1, 0, 1, 1]), b"of the operating system", "age")
    >>> sorted(rows[[0, 2]].tolist()), sorted(rows[[1, 3, 4]].tolist())
    ([0, 2], [1, 3, 4])
    """
    n = len(labels)
    drawn = np.frombuffer(hashlib.shake_256(secret + what.encode()).digest(8 * n), dtype=np.uint64)
    # By group and then at random, or by row: one number for both sorts ten times as fast as two.
    bits = np.uint64(64 - int(labels.max(initial=0)).bit_length())
    groups = labels.astype(np.uint64) << bits
    source = np.empty(n, dtype=np.int64)
    in_order = np.argsort(groups | np.arange(n, dtype=np.uint64))
    source[in_order] = np.argsort(groups | (drawn >> (np.uint64(64) - bits)))
    return source


def is_beyond_chance(
    labels: Labels, first: Labels, second: Labels, new_first: Labels, new_second: Labels
) -> bool:
    """Tell whether rows keep the pairs of two columns more or less often than a random dealing would.

    In a group of m rows, w(x, y) rows have the pair (x, y). The figure is Σ w over the pairs of the new rows.
    If one column was dealt at random, its mean is Σw/m over all m² pairs of rows, and its variance
    Σ(w − row mean − column mean + mean)²/(m − 1) (Hoeffding 1951, theorem 2). Beyond six standard deviations
    over all groups, it is no accident.

    Parameters
    ----------
    labels : (n,) group of each row
    first, second : (n,) the group and the value of a column before, as one number 0, 1, …
    new_first, new_second : (n,) the same after
    """
    sizes = np.bincount(labels).astype(np.float64)
    n = len(labels)
    x, y = np.concatenate([first, new_first]), np.concatenate([second, new_second])
    often_x, often_y = np.bincount(x[:n]), np.bincount(y[:n])
    pair = combine([x, y])
    w = np.bincount(pair[:n], minlength=int(pair.max()) + 1).astype(np.float64)
    there, at = np.unique(pair[:n], return_index=True)
    x, y, group_of, w_there = x[at], y[at], labels[at], w[there]
    cells = often_x[x] * often_y[y].astype(np.float64)
    total = np.bincount(group_of, w_there * cells)
    squares = np.bincount(group_of, w_there**2 * cells)
    rows = np.bincount(x, w_there * often_y[y]) / sizes[_first_label(x, group_of)]
    columns = np.bincount(y, w_there * often_x[x]) / sizes[_first_label(y, group_of)]
    of_rows = sizes * np.bincount(_first_label(x, group_of), often_x * rows**2)
    of_columns = sizes * np.bincount(_first_label(y, group_of), often_y * columns**2)
    deviations = squares - of_rows - of_columns + (total / sizes) ** 2
    variance = float((np.maximum(deviations, 0.0) / np.maximum(sizes - 1, 1)).sum())
    excess = float(w[pair[n:]].sum() - (total / sizes).sum())
    return bool(abs(excess) > _MOST_DEVIATIONS * np.sqrt(variance) + 1e-6)


def _first_label(codes: Labels, labels: Labels) -> Labels:
    """Return the group of each code, which has one."""
    group_of = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    group_of[codes] = labels
    return group_of
