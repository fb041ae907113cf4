"""The table of a job in memory: a frame, the text that it was read from, and its codes for missing values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.base.progress import Listener
from microagg.base.typing import Labels
from microagg.drafting.draft import Completed, complete
from microagg.drafting.guess import Guess
from microagg.drafting.infer import guess
from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.release import Release
from microagg.formats.files import Source
from microagg.measure.analyses import check_analyses
from microagg.plan.plan import Plan
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.release_frame import reordered

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Table:
    """A table, or a sample of one."""

    frame: Frame
    text: pa.Table | None = None
    """The same table as written in a CSV file."""
    coded: Mapping[Any, Coded] = field(default_factory=dict)
    """Codes for missing values in the file that the table came from."""

    @classmethod
    def of(cls, source: Source) -> Table:
        """Return the table of a file that was read, with its text if columns are written as it holds them."""
        text = None if source.kept_for(source.kind) is None else source.as_written
        return cls(Frame(source.table), text, source.coded())

    def __len__(self) -> int:
        return len(self.frame)

    def __reduce__(self) -> Any:
        raise TypeError(
            "A table of originals, and what holds one, cannot be pickled, so that these do not leave this "
            "process. Pickle the result of as_dict()."
        )

    @property
    def missing_words(self) -> Sequence[str]:
        """Texts that mean missing."""
        return missing_words(self.text is not None)

    def completed(self, plan: Plan) -> Completed:
        """Give every column that the plan leaves open a role."""
        return complete(self.frame, plan, self.missing_words, self.coded)

    def checked(self, plan: Plan) -> Plan:
        """Return the plan with a role for every column.

        Refused are columns that the table does not have, and analyses that cannot be done with it.
        """
        full = self.completed(plan).plan
        full.roles(self.frame.names)
        gone = {*full.drop, *full.renumber}
        check_analyses(full.analyses, self.frame, gone, whole=True, categories=full.categories)
        return full

    def guessed(self, plan: Plan, names: Collection[Any] | None = None) -> Mapping[Any, Guess]:
        """Guess what columns are, by default all."""
        return guess(
            self.frame,
            k=plan.k,
            missing_words=self.missing_words,
            names=None if names is None else set(names),
        )

    def protected(self, plan: Plan | Completed, watch: Listener | None = None) -> Release:
        """Carry out a plan."""
        return protect_table(self.frame, plan, watch, self.text, self.coded)

    def taken(self, rows: Labels) -> Table:
        """Return some of the records."""
        coded = {name: Coded(codes.codes, codes.tags[rows]) for name, codes in self.coded.items()}
        text = None if self.text is None else self.text.take(rows)
        return Table(Frame(reordered(self.frame.native, rows)), text, coded)

    def units(self, plan: Plan) -> Labels | None:
        """Return the unit of each record; None: k counts records."""
        unit = next(iter(plan.units), None)
        if unit is None:
            return None
        written = self.frame if self.text is None else Frame(self.text)
        return codes_as_written(written, unit, self.text is not None)

    def some(self, plan: Plan, size: int, seed: int = 0) -> Labels:
        """Draw whole units at random with about ``size`` records; return their rows."""
        units, turn = self._turns(plan, seed)
        return np.flatnonzero(turn[units] < round(len(turn) * size / len(self)))

    def shared_out(self, plan: Plan, shares: int, seed: int = 0) -> list[Labels]:
        """Deal the rows out at random into shares of about the same number of whole units."""
        units, turn = self._turns(plan, seed)
        return [np.flatnonzero(turn[units] % shares == share) for share in range(shares)]

    def _turns(self, plan: Plan, seed: int) -> tuple[Labels, Labels]:
        """Return the unit of each record, and the place of each unit in a random order."""
        units = self.units(plan)
        units = np.arange(len(self)) if units is None else units
        return units, np.random.default_rng(seed).permutation(int(units.max()) + 1)
