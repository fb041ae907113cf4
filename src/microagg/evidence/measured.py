"""All that an engine counts and measures about a release; its evidence is made from this alone.

No sentence and no judgement is made here; see :mod:`microagg.evidence.evidence`. Memory, disk and Spark
fill the same :class:`Measured`, so that none can be green where another is amber.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.typing import Labels
from microagg.evidence.sentences import Caution
from microagg.ledger.carry import Carrying
from microagg.ledger.joining import Joining
from microagg.ledger.ledger_file import Ledger
from microagg.measure.attack import Attacks
from microagg.measure.before_and_after import Summary
from microagg.measure.classes import ClassSizes
from microagg.measure.disclosure_signs import Determined, Identifier, SortedColumn, UnitsInGroups
from microagg.measure.fidelity import Fidelity
from microagg.measure.known_columns import Harm, KnownRisk
from microagg.measure.linkage import Linkage
from microagg.measure.linked_rows import LinkedRows
from microagg.measure.pairing import Pairing, SwapFigures
from microagg.measure.risk import Agreement, Risk
from microagg.measure.utility import Losses, Utility
from microagg.measure.verify import Verification
from microagg.plan.sections import Roles
from microagg.releasing.release_values import MissingCounts


class Part(NamedTuple):
    """Columns that share one partition, and the rows that it is of."""

    rows: Labels
    columns: list[Any]
    partition: Partition
    coordinates: int
    """Of the space in which records are grouped; one for each column, if all are numbers."""
    base: Labels | None = None
    """(n,) groups before whole ones were merged for requirements on untouched columns; None: none was."""


class Cure(NamedTuple):
    """What keeps groups from disclosing confidential values, and its price: :func:`.measuring.cure_of`."""

    # Requirements to add; none, and no column to drop: nothing was found that helps.
    require: Mapping[str, Mapping[Any, float]]
    drop: tuple[Any, ...]  # known columns to drop
    loss: float | None  # information loss with it, at most, in percent; None: it was not tried
    loss_now: float


class Counts(NamedTuple):
    """Classes of all records of a release."""

    alone: ClassSizes
    """By the protected columns."""
    known: ClassSizes
    """By these, strata, released weight and the known columns."""
    unique_before: int
    claimed: ClassSizes | None = None
    """With the confidential columns too; None: there is none."""
    stakes: Mapping[Any, float] = {}
    """Share of records below k if a confidential column were known, the largest first."""
    agreeing: Mapping[Any, Agreement] = {}
    """Groups that agree in each confidential column, as far as exact values disclose."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AllRecords:
    """What was counted in all records of a table in parts, of which a sample of whole groups is measured."""

    records: int
    dropped: int
    """Records that were left out for missing values."""
    counts: Counts
    linked: Mapping[str | None, Linkage]
    """By the protected columns alone (None), and by each view of :func:`.views_of`."""
    losses: Losses
    """Of the protected columns, then of the other recoded ones."""
    totals: Mapping[Any, Mapping[str, Any]]
    """By protected column: what of its :class:`.Summary` was counted."""
    together: Sequence[Any] = ()
    """Dropped units whose rows lie together in a file whose order is kept."""


@dataclass(frozen=True)
class Required:
    """A requirement other than k, and the figure of the worst group in the released table."""

    words: str
    found: str
    passed: bool
    is_k: bool = False
    """Whether it is k itself, counted in units, and so said with the promise already."""


@dataclass(frozen=True)
class CountedFile:
    """A file that was read back, what was counted in it, and its hash."""

    path: str
    parts: tuple[Verification, ...]
    sha256: str
    required: tuple[Required, ...] = ()
    """Requirements other than k, counted over the combinations in the file."""

    @property
    def holds(self) -> bool:
        """Whether every part keeps its promise."""
        return all(part.holds for part in self.parts) and all(r.passed for r in self.required)

    @property
    def least(self) -> Verification:
        """The part with the rarest combination, of those that do not hold if there are any."""
        return min(self.parts, key=lambda part: (part.holds, part.smallest))

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        rarest = self.least.as_dict()
        return {**rarest, "holds": self.holds, "sha256": self.sha256}


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What calls for a caution, as it was counted; shares are from 0 to 1."""

    records: int
    """All records."""
    looked_at: int
    """Records in which single columns were looked at: all, or those of a sample."""
    below_k: float = 0.0
    """Share of records among fewer than k that agree in the protected and the known columns."""
    harms: Sequence[Harm] = ()
    """Known columns, the most harmful first; none where k holds with them."""
    enough: Sequence[Any] | None = None
    """Known columns without which k would hold; None: it would not."""
    identifiers: Mapping[Any, Identifier] = field(default_factory=dict)
    """Unprotected columns that point to single records."""
    determined: Sequence[Determined] = ()
    """Protected columns that follow from unprotected ones."""
    linked_rows: Sequence[LinkedRows] = ()
    """Sets of rows that released columns show to belong together; see :mod:`microagg.measure.linked_rows`."""
    uncounted_rows: Sequence[Any] = ()
    """Columns that show which rows belong together, where such sets were not counted."""
    lying_together: Sequence[LinkedRows] = ()
    """Sets of rows that kept order shows to belong together, since rows of a dropped unit lie together."""
    sorted_by: Sequence[SortedColumn] = ()
    """Columns by which the rows of a file are sorted, or nearly so, if their order is kept."""
    fine_digits: Sequence[Any] = ()
    """Columns whose means have finer digits by the plan than by default."""
    frame_in_order: bool = False
    """Whether this is about a frame that has the order and index of the original."""
    unmixed: Mapping[Any, tuple[UnitsInGroups, int]] = field(default_factory=dict)
    """Columns that look like a unit, if groups hold fewer than k of its values; and that k."""
    agreements: Mapping[Any, Agreement] = field(default_factory=dict)
    """What groups disclose of each confidential column."""
    cure: Cure | None = None
    """What helps if groups disclose too much; None also where a table is read in parts."""
    steered: Sequence[Any] = ()
    """Untouched columns by which groups of swapped values were chosen."""
    pairing: Pairing | None = None
    """The attack through columns left as they are; None: there are none that an attacker does not know."""
    missing_counts: Mapping[Any, MissingCounts] = field(default_factory=dict)
    """Missing, blanked and filled values of each protected column."""
    recoded: int = 0
    """Records that are released in another stratum, since small ones were merged."""
    row_labels: int = 0
    """Different row labels of a pandas frame, which are released with it."""
    unreadable: Sequence[Caution] = ()
    """What the draft found that could not be read."""


@dataclass(frozen=True)
class Suppressed:
    """Records that were left out since that lowers the loss."""

    records: int
    share: float  # of all records
    loss_without: float  # percent that all records would lose if none were left out


class History(NamedTuple):
    """What was counted over this and all earlier releases of a ledger."""

    files: int
    k: int  # the least k of them
    smallest: int  # units in the rarest combination of groups, strata, known columns and presence
    sums: bool  # whether the numbers that groups released were tested together
    counts: Mapping[str, int]  # what became of whom and of which groups, by name
    chain: str  # hash of the facts of all releases
    first: str  # the same of the first release, which all files of a ledger have in common
    losses: Sequence[float] = ()  # percent of the information that each file loses
    # What groups that became one lose, and those that could have, by the names of their counts.
    joining: Mapping[str, Joining] = MappingProxyType({})

    @classmethod
    def of(cls, ledger: Ledger, carrying: Carrying, swapped: bool) -> History:
        """Return what a ``ledger`` says with its last release, whose groups are ``carrying``'s."""
        return cls(
            len(ledger.releases),
            ledger.about["k"],
            carrying.smallest,
            not swapped,
            carrying.counts,
            ledger.chain[-1],
            ledger.chain[0],
            [facts["loss"] for facts in ledger.releases],
            carrying.joining,
        )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All figures of a release."""

    roles: Roles
    parts: Sequence[Part]
    signs: Signs
    utility: Utility
    fidelity: Fidelity
    alone: Risk
    """Risk by the protected columns alone."""
    with_known: KnownRisk
    """Risk for an attacker who knows every untouched column that is not confidential."""
    if_confidential_known: KnownRisk
    """Risk if the confidential columns were known after all, in addition to the known ones."""
    harms: Sequence[Harm]
    """Known columns, the most harmful first."""
    stakes: Mapping[Any, float]
    """Share of records below k if a confidential column were known after all, the largest first."""
    summaries: Sequence[Summary]
    """Totals, means, medians and standard deviations of each protected column."""
    weighted: bool = False
    """Whether the loss counts records by their weights."""
    dropped: int = 0
    """Records that were left out for missing values."""
    suppressed: Suppressed | None = None
    """Records that were left out since that lowers the loss; None: none was to be."""
    swap: SwapFigures | None = None
    """What swapped values give away; None: no value is swapped."""
    attacks: Attacks | None = None
    """Attacks with people put aside as controls, see :mod:`microagg.engines.memory.control_group`; None: not
    asked for, or not possible."""
    not_attacked: str = ""
    """Why the attacks could not be made though they were asked for."""
    formulas: Mapping[str, int] = field(default_factory=dict)
    """Texts in a CSV file that a spreadsheet program would take for formulas, by column."""
    pictures: Mapping[str, Any] | None = None
    """What a report draws, as plain data; None: no report was asked for."""
    prices: Mapping[str, Any] | None = None
    """What other decisions about columns would cost, see :func:`microagg.prices`; None: not asked for."""
    counted: CountedFile | None = None
    """What was found in the written file; None while there is none."""
    source: Mapping[str, str] | None = None
    """Name and hash of the file that the table came from."""
    history: History | None = None
    """What was counted over all releases of a ledger; None: there is no ledger."""
    swapped_before: str = ""
    """Another swapped file of the same table that no ledger covers; empty: none is known."""

    @property
    def records(self) -> int:
        """Number of records."""
        return self.signs.records

    @property
    def has_frozen_groups(self) -> bool:
        """Whether a ledger has groups of earlier files."""
        return self.history is not None and self.history.files > 1

    def without_records(self) -> Measured:
        """Return the same figures without any record, so that they may leave the process."""
        none = np.zeros(0, np.int64)
        parts = [
            part._replace(rows=none, partition=replace(part.partition, labels=none))
            for part in self.parts
        ]
        agreements = {
            name: replace(one, disclosed=None) for name, one in self.signs.agreements.items()
        }
        return replace(
            self,
            parts=parts,
            alone=self.alone.linked(),
            signs=replace(self.signs, agreements=agreements),
        )
