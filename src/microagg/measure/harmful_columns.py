"""The unprotected columns that do most harm, and those to drop for k to hold.

The figure is always the share of records in classes of fewer than k records, or units, that agree in the
protected columns and in the known ones. A column's harm shows at two ends: what it adds to the protected
columns alone, and what it adds when all others are known too. Often the second is nothing for any
single column, since the others tell records apart as well; then the first decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from microagg.base.typing import Labels
from microagg.kernels.labels import combine
from microagg.measure.both_tables import Pair
from microagg.measure.classes import share_below
from microagg.measure.known_columns import Known
from microagg.plan.settings import check_k

# Beyond this many known columns, only those that do most harm alone are tried in full.
_IN_FULL = 50


@dataclass(frozen=True)
class Harm:
    """What one known column does; shares are of records in classes of fewer than k."""

    name: Any
    distinct: int
    """Distinct values, missing ones aside."""
    alone: float
    """Share if it were the only known column."""
    without: float | None
    """Share if all known columns but this one are known; None if not computed, see :func:`rank`."""


@dataclass(frozen=True)
class Stake:
    """What the claim that a column is confidential would cost if it were wrong."""

    name: Any
    below_k: float
    """Share of records in classes of fewer than k, if this column were known too."""


def stakes(
    both: Pair,
    known: Mapping[Any, Known],
    confidential: Mapping[Any, Known],
    k: int,
    units: Labels | None = None,
) -> list[Stake]:
    """Rank the confidential columns by what each would stake, the largest stake first.

    Parameters
    ----------
    both : both tables
    known : codes of each column that an attacker is taken to know
    confidential : codes of each column that an attacker is taken not to know
    k : records, or units, that must share their values
    units : (n,) unit of each record; None: k counts records
    """
    labels = combine([both.released_classes, *(column.codes for column in known.values())])
    return ranked_stakes(
        {
            name: share_below(combine([labels, column.codes]), k, units)
            for name, column in confidential.items()
        }
    )


def ranked_stakes(below_k: Mapping[Any, float]) -> list[Stake]:
    """Sort confidential columns by the share of records below k if each were known, the largest first."""
    stakes = [Stake(name, share) for name, share in below_k.items()]
    return sorted(stakes, key=lambda stake: -stake.below_k)


def rank(
    both: Pair,
    known: Mapping[Any, Known],
    k: int,
    units: Labels | None = None,
    *,
    in_full: int = _IN_FULL,
) -> list[Harm]:
    """Rank the known columns, the most harmful one first.

    Parameters
    ----------
    both, known, k, units : as for :func:`stakes`
    in_full : number of columns for which all figures are computed

    The order is by what a column adds at both ends, to the protected columns alone and to all the others:
    (``alone`` − share with none known) + (share with all known − ``without``). Equal ones are in
    order of their distinct values, most of them first, then as given.

    With more than ``in_full`` columns, ``without`` is computed only for those with the largest ``alone``;
    the rest follows, by ``alone``.

    O(n log m) for each of m columns.
    """
    check_k(k, max(len(both), k))
    alone = {
        name: share_below(combine([both.released_classes, column.codes]), k, units)
        for name, column in known.items()
    }
    harms = {
        name: Harm(name, column.distinct, alone[name], without=None)
        for name, column in known.items()
    }
    by_alone = sorted(known, key=lambda name: (-alone[name], -harms[name].distinct))
    others = combine([both.released_classes, *(known[name].codes for name in by_alone[in_full:])])
    for name, labels in _leaving_out(others, {name: known[name] for name in by_alone[:in_full]}):
        harms[name] = replace(harms[name], without=share_below(labels, k, units))
    return sorted(harms.values(), key=_place)


def enough(
    both: Pair, known: Mapping[Any, Known], k: int, units: Labels | None = None
) -> list[Any] | None:
    """Find known columns to drop so that k holds for the protected columns with all others known.

    No smaller set within the one found is enough: none of its columns can stay. Another set may be
    smaller; columns that split the fewest classes are kept first. None if not even
    dropping all of them is enough, since k does not hold for the protected columns alone. Parameters are
    those of :func:`stakes`.
    """
    check_k(k, max(len(both), k))
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


def _place(harm: Harm) -> tuple[bool, float, int]:
    """Sort key: what is not known in full comes last."""
    without = 0.0 if harm.without is None else harm.without
    return harm.without is None, without - harm.alone, -harm.distinct


def _leaving_out(labels: Labels, known: Mapping[Any, Known]) -> Iterator[tuple[Any, Labels]]:
    """Give the classes by labels and all known columns but one, for each of these.

    Each half takes in the columns of the other half together, and is halved in turn.
    """
    names = list(known)
    if len(names) == 1:
        yield names[0], labels
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    for half, other in (halves, halves[::-1]):
        if half and other:
            with_other = combine([labels, *(known[name].codes for name in other)])
            yield from _leaving_out(with_other, {name: known[name] for name in half})
