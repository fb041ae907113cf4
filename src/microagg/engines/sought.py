"""Records of a sample that are looked for in a release that is read in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.engines.aggregates import Shared
from microagg.engines.encoding import Encoding, Words
from microagg.measure.link_batches import count_nearer
from microagg.plan.sections import Roles

__all__ = ["Sought", "views_of"]


def views_of(roles: Roles) -> dict[str, list[Any]]:
    """Return the columns by which an attacker distinguishes records: the known ones, then all if claims fail.

    A view without columns is left out.
    """
    claimed = [*roles.known, *roles.confidential] if roles.confidential else []
    views = {"known": list(roles.known), "claimed": claimed}
    return {view: columns for view, columns in views.items() if columns}


class Sought(NamedTuple):
    """Original records that are looked for among all released ones."""

    before: Floats  # (s, c) coordinates for an attacker
    after: Floats  # of what was released of each
    known: Words | None = None  # (s,) key of the columns that the attacker knows; None: of none

    def rivals(
        self, encoding: Encoding, released: Iterable[tuple[Shared, Labels | None, Words | None]]
    ) -> Labels:
        """Count the released records that are as near as a record's own; −1: some is nearer.

        ``released`` has what is released, the number of records that release it (None: one each), and the
        keys of their known columns. Counts of the parts of a release are put together by
        :func:`~microagg.measure.link_batches.merged_rivals`.
        """
        if self.known is None:
            seen = (
                (encoding.seen_by_attacker(s.values, s.states), sizes) for s, sizes, _ in released
            )
            return count_nearer(self.before, self.after, seen)
        wanted = np.unique(self.known)

        def near() -> Iterator[tuple[Floats, Labels | None]]:
            for shared, sizes, known in released:
                assert known is not None
                at = np.flatnonzero(np.isin(known, wanted))
                if len(at):
                    X = encoding.seen_by_attacker(shared.values[at], shared.states[at])
                    own = None if sizes is None else sizes[at]
                    yield np.column_stack([X, _apart(known[at], wanted)]), own

        place = _apart(self.known, wanted)[:, None]
        return count_nearer(np.hstack([self.before, place]), np.hstack([self.after, place]), near())


def _apart(keys: Words, wanted: Words) -> Floats:
    """Put records of different known values so far apart that none is ever near another."""
    return np.asarray(np.searchsorted(wanted, keys) * 1e6)
