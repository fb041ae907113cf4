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
_MORE_ROWS = 4


class Dealt(NamedTuple):
    """What was dealt in one partition: its groups, and for each column the values before and after."""

    labels: Labels  # (n,)
    names: Sequence[Any]
    before: Sequence[tuple[Floats, Labels]]  # for each column shared values and states, (n,) each
    after: Sequence[tuple[Floats, Labels]]  # The same, dealt
    donors: Sequence[Labels]  # For each column (n,) the record whose shared value each row got
    bundles: Sequence[Sequence[Any]] = ()

    def with_column(
        self, name: Any, before: Floats, donors: Labels, states: Labels | None = None
    ) -> Dealt:
        """Return the same with one more column; without ``states`` its values are all there."""
        states = np.zeros(len(before), dtype=np.int64) if states is None else states
        return self._replace(
            names=[*self.names, name],
            before=[*self.before, (before, states)],
            after=[*self.after, (before[donors], states[donors])],
            donors=[*self.donors, donors],
        )

    def released(self, columns: int) -> tuple[Floats, Labels]:
        """Return what the rows release in the first columns: (n, columns) values, and states."""
        values, states = zip(*self.after[:columns], strict=True)
        return np.column_stack(values), np.column_stack(states)

    def fault(self, written: Callable[[Any], Labels] | None = None) -> str | None:
        """Say what is wrong with what was dealt, or with a file that was read back; None: nothing is.

        Parameters
        ----------
        written : returns the codes of a column in the file, (n,), in the order of the records
        """
        for at, name in enumerate(self.names):
            is_written = written is None or _is_written(*self.after[at], written(name))
            if not (self._is_dealt(at) and is_written):
                return f"the values of {shown(name)} are not those that were dealt"
            if is_beyond_chance(self.labels, self.donors[at], np.arange(len(self.labels))):
                return f"rows that kept their own {shown(name)} are not as many as chance gives"
        bundle_of = {name: at for at, bundle in enumerate(self.bundles) for name in bundle}
        for (first, donors), (second, others) in pairwise(
            zip(self.names, self.donors, strict=True)
        ):
            if first in bundle_of and bundle_of.get(first) == bundle_of.get(second):
                continue
            if is_beyond_chance(self.labels, donors, others):
                return (
                    f"rows in which {shown(first)} and {shown(second)} stayed together are not as many as "
                    "chance gives"
                )
        return None

    def _is_dealt(self, at: int) -> bool:
        """Return whether the rows of each group have the values of its members, each one once."""
        donors, (values, states) = self.donors[at], self.before[at]
        dealt_values, dealt_states = self.after[at]
        return bool(
            (np.bincount(donors, minlength=len(donors)) == 1).all()
            and (self.labels[donors] == self.labels).all()
            and np.array_equal(values[donors], dealt_values, equal_nan=True)
            and np.array_equal(states[donors], dealt_states)
        )


def _is_written(values: Floats, states: Labels, file: Labels) -> bool:
    """Return whether a file has one code for each value and state that was dealt, in the same rows."""
    codes = np.unique(values, return_inverse=True, equal_nan=True)[1].reshape(-1)
    codes = combine([codes, states]) if states.any() else codes
    code_of = np.full(int(codes.max(initial=0)) + 1, -1)
    code_of[codes] = file
    return np.array_equal(code_of[codes], file)


def dealt_rows(labels: Labels, secret: bytes, what: str) -> Labels:
    """Return for each row the row of the same group whose value it gets.

    ``secret`` are :data:`SECRET_BYTES` of the operating system's random numbers, drawn once for a release;
    ``what`` says which column or bundle of which part of the table is dealt: each has an order of its own.

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


def is_beyond_chance(labels: Labels, donors: Labels, others: Labels) -> bool:
    """Tell whether two dealings give rows values of the same member more or less often than chance does.

    If one of them is random, a group of two rows or more has one such row on average, with a variance of 1,
    whatever its size is (fixed points of a random permutation); a group of one row has always one. Over few
    groups the number varies like a Poisson count, whose tail is longer than a normal one: four rows more are
    allowed for that. ``donors`` and ``others`` have the member of its group whose value each row got.

    >>> labels = np.arange(100) // 2
    >>> is_beyond_chance(labels, np.arange(100), np.arange(100)), is_beyond_chance(
    ...     labels, np.arange(100), np.where(labels % 2, np.arange(100), np.arange(100) ^ 1)
    ... )
    (True, False)
    """
    sizes = np.bincount(labels)
    groups = int((sizes > 1).sum())
    together = int(((donors == others) & (sizes[labels] > 1)).sum())
    return bool(abs(together - groups) > _MOST_DEVIATIONS * np.sqrt(groups) + _MORE_ROWS)
