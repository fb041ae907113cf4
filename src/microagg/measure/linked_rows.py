"""Sets of rows: if a column shows which rows belong together, single rows that look alike hide nobody.

A renumbered household id names nobody, but it shows which rows are one household. An attacker who
knows the members' values then looks for the whole *set* of rows, and a set is rarer than any of its rows.
So k must count sets: how many ids have the same set of released rows (each as often), and how many have
the same number of rows, which needs no value at all.

Counting is O(n log n): each class of equal rows gets a random number of 128 bits, and a set is known by the
sum over its rows. Two different sets of m have the same sum with a chance of about m²/2¹²⁹.

If several such columns are released, one shows more about the sets of the other: which rows of a household
are one person. Rows are then distinguished by their sets, until nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Labels
from microagg.encode.strata import count_units
from microagg.kernels.labels import canonical_labels, combine, group_sizes
from microagg.measure.classes import missing_alone
from microagg.measure.disclosure_signs import identifier
from microagg.measure.known_columns import Known

_SEED = 27


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


class RowSets(NamedTuple):
    """The sets of rows that a column shows to belong together."""

    ids: Labels  # (n,) number of the set of each row
    kinds: Labels  # (sets,) equal for sets of equal rows


def linked_rows(
    released: Labels,
    known: Mapping[Any, Known],
    links: Mapping[Any, Known],
    k: int,
    units: Labels | None = None,
) -> list[LinkedRows]:
    """Count the sets of rows of each linking column.

    Parameters
    ----------
    released : (n,) class of each row by all that groups share
    known : columns left as they are
    links : columns of the file that show which rows belong together; known ones among them, whose values
        an attacker has, and others, whose values say nothing
    k : least number of sets that must be equal
    units : (n,) the unit of each row, if k counts units
    """
    hidden = {name: column for name, column in links.items() if name not in known}
    counts = []
    for name, column in links.items():
        others = (column.codes for known_name, column in known.items() if known_name != name)
        sets = row_sets(combine([released, *others]), {**hidden, name: column})
        counts.append(count_row_sets(name, sets[name], k, units))
    return counts


def linking_columns(columns: Mapping[Any, Known], named: Collection[Any]) -> dict[Any, Known]:
    """Choose the ``columns`` that show which rows belong together.

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
    """Give numbers to runs of rows with the same value, of ``columns`` in which some run has several rows.

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


def row_sets(rows: Labels, links: Mapping[Any, Known]) -> dict[Any, RowSets]:
    """Find the sets of rows of each linking column, and which of them are equal.

    Parameters
    ----------
    rows : (n,) class of each row by all that the file shows of it, the linking columns aside
    links : the linking columns

    >>> found = row_sets(np.array([0, 1, 1, 0, 0]), {"home": Known(np.array([0, 0, 1, 1, 2]))})
    >>> found["home"].kinds.tolist()
    [0, 0, 1]
    """
    ids = {name: canonical_labels(missing_alone(column.codes)) for name, column in links.items()}
    while True:
        kinds = {name: _kinds(rows, ids_of) for name, ids_of in ids.items()}
        if len(ids) == 1:  # no other column tells rows apart
            break
        finer = combine([rows, *(kinds[name][ids_of] for name, ids_of in ids.items())])
        if finer.max() == rows.max():
            break
        rows = finer
    return {name: RowSets(ids_of, kinds[name]) for name, ids_of in ids.items()}


def count_row_sets(name: Any, sets: RowSets, k: int, units: Labels | None = None) -> LinkedRows:
    """Count sets of rows that too few are equal to.

    Sets that are equal count as many as there are, but no more than the units that their rows are of.

    >>> homes = row_sets(np.array([0, 1, 1, 0, 0]), {"home": Known(np.array([0, 0, 1, 1, 2]))})
    >>> counted = count_row_sets("home", homes["home"], k=2)
    >>> counted.sets, counted.alone, counted.below_k, counted.below_k_by_size
    (3, 1, 1, 1)
    """
    shared_by = group_sizes(sets.kinds)
    if units is not None:
        shared_by = np.minimum(shared_by, count_units(sets.kinds[sets.ids], units))
    sizes = group_sizes(sets.ids)
    by_size = np.bincount(sizes)[sizes]
    each = shared_by[sets.kinds]
    return LinkedRows(
        column=name,
        k=k,
        sets=len(sets.kinds),
        alone=int(np.count_nonzero(each == 1)),
        below_k=int(np.count_nonzero(each < k)),
        below_k_by_size=int(np.count_nonzero(by_size < k)),
    )


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
