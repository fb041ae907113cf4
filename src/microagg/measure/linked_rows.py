"""Sets of rows: if a column shows which rows belong together, single rows that look alike hide nobody.

A renumbered household id names nobody, but it shows which rows are one household. An attacker who
knows the members' values then looks for the whole *set* of rows, and a set is rarer than any of its rows.
So k must count sets: how many ids have the same set of released rows (each as often), and how many have
the same number of rows, which needs no value at all.

Counting is O(n log n): each class of equal rows gets a random number of 128 bits, and a set is known by the
sum over its rows. Two different sets of m have the same sum with a chance of about m²/2¹²⁹.

If several such columns are released, one shows more about the sets of the other: which rows of a household
are one person. Rows are then distinguished by their sets, until nothing changes any more.

Linkage by sets: the attacker has the true values of all rows of an id and the columns left as they are, and
takes the set of released rows that is nearest: the least sum of squared distances over all ways to match
the rows, among sets of as many rows with the same known values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.grouping.require.value_rules import distinct_units
from microagg.kernels.labels import canonical_labels, combine, group_sizes
from microagg.measure.both_tables import Pair
from microagg.measure.disclosure_signs import identifier
from microagg.measure.known_columns import Known
from microagg.measure.linkage import EQUAL, Linkage, estimated

_SEED = 27
# Sets that are linked, and the distances that may be computed for it: seconds.
_LINKED = 1_000
_DISTANCES = 100_000_000
# Known values that differ cannot be matched; coordinates are never that far apart.
_FAR = 1e12


@dataclass(frozen=True)
class LinkedRows:
    """How many of the sets of rows of a column are equal to fewer than k."""

    column: Any
    k: int
    sets: int
    """Sets of rows: distinct values of the column; a row without a value is a set of its own."""
    alone: int
    """Sets that no other set is equal to."""
    below_k: int
    """Sets that fewer than k are equal to, themselves included."""
    below_k_by_size: int
    """Sets that fewer than k have as many rows as, themselves included."""
    linkage: Linkage | None = None
    """Share of sets found by an attacker who knows the true values of all rows; None: not measured."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        linked = None if self.linkage is None else self.linkage.share
        return {**asdict(self), "column": str(self.column), "record_linkage": linked}


class RowSets(NamedTuple):
    """The sets of rows that a column shows to belong together."""

    ids: Labels  # (n,) number of the set of each row
    kinds: Labels  # (sets,) equal for sets of equal rows
    sizes: Labels  # (sets,) rows


def linked_rows(
    both: Pair,
    known: Mapping[Any, Known],
    links: Mapping[Any, Known],
    k: int,
    units: Labels | None = None,
) -> list[LinkedRows]:
    """Count the sets of rows of each linking column, and link those of columns in which k does not hold.

    Parameters
    ----------
    both : the protected columns before and after
    known : columns left as they are
    links : columns of the file that show which rows belong together; known ones among them, whose values
        an attacker has, and others, whose values say nothing
    k : least number of sets that must be equal
    units : (n,) the unit of each row, if k counts units
    """
    counts = []
    for name, sets in sets_by_column(both.released_classes, known, links).items():
        counted = count_row_sets(name, sets, k, units)
        if counted.below_k:
            others = [column for other, column in known.items() if other != name]
            counted = replace(counted, linkage=link_sets(both, others, sets))
        counts.append(counted)
    return counts


def linking_columns(columns: Mapping[Any, Known], named: Collection[Any]) -> dict[Any, Known]:
    """Choose the columns that show which rows belong together.

    These are the ones ``named``, which are units or renumbered ids, if any value repeats, and those that look
    like an id that repeats (:func:`microagg.measure.disclosure_signs.identifier`).
    """
    return {
        name: column
        for name, column in columns.items()
        if (
            column.sizes.max(initial=0) > 1
            if name in named
            else identifier(column).how == "repeats"
        )
    }


def lying_together(columns: Mapping[Any, Known]) -> dict[Any, Known]:
    """Give numbers to runs of rows with the same value, for columns in which some run has several rows.

    In kept order a run shows which rows belong together as a released column would, though the column is
    dropped.

    >>> lying_together({"home": Known(np.array([4, 4, 2, 4, -1, -1]))})["home"].codes.tolist()
    [0, 0, 1, 2, 3, 4]
    """
    together = {}
    for name, column in columns.items():
        codes = column.codes
        begins = np.append(True, (codes[1:] != codes[:-1]) | (codes[1:] < 0))
        if not begins.all():
            together[name] = Known(np.cumsum(begins) - 1)
    return together


def sets_by_column(
    released: Labels, known: Mapping[Any, Known], links: Mapping[Any, Known]
) -> dict[Any, RowSets]:
    """Find the sets of rows of each linking column, by released classes and known columns."""
    hidden = {name: column for name, column in links.items() if name not in known}
    sets = {}
    for name, column in links.items():
        others = (other_column.codes for other, other_column in known.items() if other != name)
        sets[name] = row_sets(combine([released, *others]), {**hidden, name: column})[name]
    return sets


def row_sets(rows: Labels, links: Mapping[Any, Known]) -> dict[Any, RowSets]:
    """Find the sets of rows of each linking column, and which of them are equal.

    Parameters
    ----------
    rows : (n,) class of each row by all that the file shows of it, the linking columns aside
    links : the linking columns

    >>> found = row_sets(np.array([0, 1, 1, 0, 0]), {"home": Known(np.array([0, 0, 1, 1, 2]))})
    >>> found["home"].kinds.tolist(), found["home"].sizes.tolist()
    ([0, 0, 1], [2, 2, 1])
    """
    ids = {name: _each_missing_alone(column.codes) for name, column in links.items()}
    kinds = {name: _kinds(rows, ids_of) for name, ids_of in ids.items()}
    while len(ids) > 1:
        finer = combine([rows, *(kinds[name][ids_of] for name, ids_of in ids.items())])
        if finer.max() == rows.max():
            break
        rows = finer
        kinds = {name: _kinds(rows, ids_of) for name, ids_of in ids.items()}
    return {name: RowSets(ids_of, kinds[name], group_sizes(ids_of)) for name, ids_of in ids.items()}


def count_row_sets(name: Any, found: RowSets, k: int, units: Labels | None = None) -> LinkedRows:
    """Count sets of rows that too few are equal to.

    Sets that are equal count as many as there are, but no more than the units that their rows are of.

    >>> homes = row_sets(np.array([0, 1, 1, 0, 0]), {"home": Known(np.array([0, 0, 1, 1, 2]))})
    >>> counted = count_row_sets("home", homes["home"], k=2)
    >>> counted.sets, counted.alone, counted.below_k, counted.below_k_by_size
    (3, 1, 1, 1)
    """
    shared_by = group_sizes(found.kinds)
    if units is not None:
        shared_by = np.minimum(shared_by, distinct_units(found.kinds[found.ids], units))
    by_size = np.bincount(found.sizes)[found.sizes]
    each = shared_by[found.kinds]
    return LinkedRows(
        column=name,
        k=k,
        sets=len(found.kinds),
        alone=int(np.count_nonzero(each == 1)),
        below_k=int(np.count_nonzero(each < k)),
        below_k_by_size=int(np.count_nonzero(by_size < k)),
    )


def link_sets(both: Pair, known: Iterable[Known], found: RowSets) -> Linkage:
    """Link sets of original rows to the nearest sets of released rows; a sample of at most 1,000."""
    columns = [column.codes for column in known]
    blocks = combine(columns) if columns else np.zeros(len(both), dtype=np.int64)
    rows_of = np.split(np.argsort(found.ids, kind="stable"), np.cumsum(found.sizes)[:-1])
    # Only sets of as many rows with the same known values are compared, and one set of each kind.
    block_of = _kinds(blocks, found.ids)
    first = np.unique(found.kinds, return_index=True)[1]
    rivals_at = _grouped(block_of[first])
    alike = combine([both.classes, blocks])
    one_of = np.unique(alike, return_index=True)[1][alike]  # a row of each class of equal rows
    times = group_sizes(found.kinds)
    compared = _Compared(*both.encoded, blocks)
    released: dict[int, Labels] = {}
    credit: list[float] = []
    left = _DISTANCES
    for chosen in np.random.default_rng(_SEED).permutation(len(found.kinds))[:_LINKED]:
        rivals = rivals_at[block_of[chosen]]
        left -= len(rivals) * int(found.sizes[chosen]) ** 2
        if left < 0 and credit:
            break
        if block_of[chosen] not in released:
            released[block_of[chosen]] = np.array([one_of[rows_of[first[kind]]] for kind in rivals])
        own_index = int(np.searchsorted(rivals, found.kinds[chosen]))
        credit.append(
            compared.credit(rows_of[chosen], released[block_of[chosen]], own_index, times[rivals])
        )
    return estimated(np.array(credit), len(found.kinds))


class _Compared(NamedTuple):
    """What an attacker compares: coordinates of original and released rows, and their known values."""

    before: Floats
    after: Floats
    blocks: Labels

    def credit(self, rows: Labels, released: Labels, own: int, times: Labels) -> float:
        """Chance to pick the right set for one set of original rows.

        ``released`` are the rows of m sets, (m, size), the right one at ``own``; ``times`` are the sets
        that each of them stands for.
        """
        classes, at = np.unique(released, return_inverse=True)
        apart = np.square(self.before[rows][:, None, :] - self.after[classes][None, :, :]).sum(
            axis=2
        )
        other = self.blocks[rows][:, None] != self.blocks[classes][None, :]
        of_sets = (np.minimum(apart, _FAR) + _FAR * other)[:, at.reshape(released.shape)]
        wanted = _least(of_sets[:, own, :])
        # No matching costs less than the nearest row of each row, from either side.
        at_least = np.maximum(of_sets.min(axis=2).sum(axis=0), of_sets.min(axis=0).sum(axis=1))
        near, slack = 0, EQUAL * (wanted + 1)
        for rival in np.flatnonzero(at_least <= wanted + slack):
            cost = _least(of_sets[:, rival, :])
            if cost < wanted - slack:
                return 0.0
            near += int(times[rival]) if cost <= wanted + slack else 0
        return 1 / near


def _least(costs: Floats) -> float:
    """Cost of the best way to match rows to rows."""
    from scipy.optimize import linear_sum_assignment

    return float(costs[linear_sum_assignment(costs)].sum())


def _kinds(rows: Labels, ids: Labels) -> Labels:
    """Give equal sets of rows the same number: those with the same rows, each as often."""
    order = np.argsort(ids, kind="stable")
    sizes = group_sizes(ids)
    starts = np.cumsum(sizes) - sizes
    chance = np.random.default_rng(_SEED)
    numbers = chance.integers(2**64, size=(int(rows.max()) + 1, 2), dtype=np.uint64)
    sums = [np.add.reduceat(column[rows[order]], starts) for column in numbers.T]  # modulo 2⁶⁴
    dense = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in (*sums, sizes)]
    return combine(dense)


def _each_missing_alone(codes: Labels) -> Labels:
    """Give the sets the numbers 0, 1, … by first appearance; a row without a value is a set of its own."""
    missing = np.flatnonzero(codes < 0)
    labels = codes.copy()
    labels[missing] = int(codes.max(initial=-1)) + 1 + np.arange(len(missing))
    return canonical_labels(labels)


def _grouped(labels: Labels) -> Sequence[Labels]:
    """Members of each group, ascending."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])
