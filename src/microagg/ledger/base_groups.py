"""The units of a ledger: which base group each is in, and what is known of it in each file.

Base groups are made once, when units first enter; later units have groups of their own. Groups only ever
become one, as a whole and for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.ledger.columns import ColumnHistory, group_lots
from microagg.ledger.ledger_file import Ledger


class BaseGroups:
    """Units and base groups up to this release; the ledger that is given stays as it is."""

    def __init__(self, ledger: Ledger, key: bytes) -> None:
        arrays, files = ledger.arrays, len(ledger.releases)
        nobody = np.zeros(0, np.int64)
        self.key = key
        self._held = arrays
        self.release_of: dict[str, str] = dict(ledger.about.get("release", {}))
        """Of each column that was released: as means, or swapped."""
        self.units: Labels = arrays.get("units", nobody)  # (units,) keyed hashes
        self.entry: Labels = arrays.get("entry", nobody)  # (units,) group in which each entered
        merged = arrays.get("merged", np.zeros((0, 1), np.int64))
        self.merged: Labels = np.column_stack([merged, merged[:, -1]]) if files else merged
        """(groups, releases) the group that each was a part of, with this release."""
        self.seen: Labels = arrays.get("seen", np.zeros((0, files), np.int64))
        """(units, files) what is known of each in each file; 0: it is not in it."""
        self.rows: Labels = arrays.get("rows", nobody)
        """(units,) rows that each had when it entered."""
        self.weights: Floats | None = arrays.get("weights")  # (units,) of entry
        self._histories: dict[str, ColumnHistory] = {}

    def __len__(self) -> int:
        return len(self.merged)

    @property
    def of_units(self) -> Labels:
        """(units,) base group of each, as of this release."""
        return np.asarray(self.merged[self.entry, -1])

    def find(self, keys: Labels) -> Labels:
        """Return the places of units, by their keyed hashes; −1: they are new."""
        if not len(self.units):
            return np.full(len(keys), -1)
        order = np.argsort(self.units)
        place = np.minimum(np.searchsorted(self.units[order], keys), len(order) - 1)
        return np.where(self.units[order[place]] == keys, order[place], -1)

    def history(self, name: Any) -> ColumnHistory:
        """Return what the ledger knows of a column, which may be nothing yet; until more units enter."""
        name = str(name)
        if name not in self._histories:
            start = f"{name}/"
            arrays = {
                full.removeprefix(start): array
                for full, array in self._held.items()
                if full.startswith(start)
            }
            self._histories[name] = ColumnHistory(arrays, len(self.units), len(self))
        return self._histories[name]

    def join(self, into: Mapping[int, int], draws: bool) -> None:
        """Let groups be a part of others for ever, which ``into`` names; they release one value from now on.

        ``draws`` tells whether groups release the category of a random member.
        """
        if not into:
            return
        parts = np.fromiter(into, np.int64, len(into))
        wholes = np.fromiter(into.values(), np.int64, len(into))
        for name in self.release_of:
            lots = group_lots(self.key, name, parts) if draws else None
            self.history(name).join(parts, wholes, self.of_units, lots)
        renamed = np.arange(len(self))
        renamed[parts] = wholes
        self.merged[:, -1] = renamed[self.merged[:, -1]]

    def enter(self, keys: Labels, groups: Labels, rows: Labels) -> Labels:
        """Add units; return their places. Groups that do not exist yet are numbered on."""
        places = len(self.units) + np.arange(len(keys))
        self.units = np.concatenate([self.units, keys])
        self.entry = np.concatenate([self.entry, groups])
        self.rows = np.concatenate([self.rows, rows])
        self.seen = np.pad(self.seen, ((0, len(keys)), (0, 0)))
        added = np.arange(len(self), max(int(groups.max(initial=-1)) + 1, len(self)))[:, None]
        self.merged = np.vstack([self.merged, np.repeat(added, self.merged.shape[1], axis=1)])
        self._histories = {
            name: ColumnHistory(history.arrays(), len(self.units), len(self))
            for name, history in self._histories.items()
        }
        return places

    def arrays(self) -> dict[str, Any]:
        """Return what the ledger is to hold, also of columns that are not in this release."""
        names = ("units", "entry", "merged", "seen", "rows", "weights")
        arrays = {**self._held, **{name: getattr(self, name) for name in names}}
        for name, history in self._histories.items():
            arrays |= {f"{name}/{part}": array for part, array in history.arrays().items()}
        return {name: array for name, array in arrays.items() if array is not None}
