"""Single figures of a table against its release, in memory, from which evidence is made.

What is costly is computed when it is first asked for. Where the records are a sample of whole groups of a
larger table, what was counted in all its records is given (:class:`microagg.evidence.measured.AllRecords`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.evidence.measured import AllRecords, Counts, Part, Suppressed
from microagg.evidence.sentences import Caution
from microagg.grouping.read_table import Intake
from microagg.kernels.labels import combine, group_means
from microagg.measure.analyses import analyse
from microagg.measure.before_and_after import Summary, summaries
from microagg.measure.both_tables import Pair, against_original
from microagg.measure.classes import ClassSizes, classes, share_below
from microagg.measure.fidelity import Fidelity, columns_of, fidelity_of
from microagg.measure.known_columns import (
    Harm,
    Known,
    KnownRisk,
    as_in_file,
    known_columns,
    largest_first,
    rank,
)
from microagg.measure.linkage import link, sample_for
from microagg.measure.linked_rows import LinkedRows, linked_rows, linking_columns, row_sets
from microagg.measure.pairing import (
    Chance,
    Pairing,
    SwapFigures,
    chance_at_most,
    chance_of,
    pairing_attack,
    standing,
    untouched_coordinates,
)
from microagg.measure.read_protected import compared_columns
from microagg.measure.risk import Agreement, Risk, agreement_of, diversity, individual_of
from microagg.measure.utility import Utility, WithinGroups, utility_of, within_groups
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.releasing.release_values import MissingCounts
from microagg.tables.frame import Frame


@dataclass(frozen=True, eq=False)
class TableFigures:
    """A table before and after, rows in the order given, and what is measured of it."""

    plan: Plan
    intake: Intake  # the table as it came
    parts: Sequence[Part]
    after: Frame  # the table with released values
    values: Floats  # (n, protected columns) released values
    states: Labels  # the same: 0 a value, 1 missing, 2 and more with a code
    groups: Labels  # the same: the group by which a column was aggregated
    missing_counts: Mapping[Any, MissingCounts]  # missing, blanked and filled, by column
    recoded: int = 0  # records whose stratum changed
    unreadable: Sequence[Caution] = ()  # what the draft found that could not be read
    # Protects the same table by another plan; None where it is not at hand.
    again: Callable[[Plan], TableFigures] | None = field(default=None, repr=False)
    suppressed: Suppressed | None = None  # records that were left out; None: none was to be
    is_frame: bool = False  # whether the release is handed over as a frame, and not as a file
    # What was counted in all records, if the table is read in parts; None: all are here.
    counted: AllRecords | None = None

    @property
    def roles(self) -> Roles:
        """Role of each column."""
        return self.intake.roles

    @property
    def records(self) -> int:
        """Number of all records."""
        return len(self.both) if self.counted is None else self.counted.records

    @property
    def is_sample(self) -> bool:
        """Whether there are more records than these."""
        return self.records > len(self.both)

    @property
    def recoded_columns(self) -> tuple[Any, ...]:
        """Unprotected columns that are released with other values: recoded columns and merged strata."""
        return (*self.intake.recoded, *(self.plan.strata.columns if self.recoded else ()))

    @cached_property
    def both(self) -> Pair:
        """The protected columns before and after."""
        weights, mean = self.intake.weights, 1.0
        if weights is not None:  # whose sum may be too large for a number
            mean = float(group_means(weights, np.zeros(len(weights), dtype=np.int64))[0])
        # Strata and mean weight as they are released, a number for each combination.
        shared = _codes(known_columns(self.after, self.plan.also_shared()))
        swapped: list[Labels] = []  # groups of swapped parts, and the values that other parts share
        for part in self.parts if self.plan.is_swapped else ():
            if self.plan.block_of(part.columns).is_swapped:
                swapped.append(part.partition.labels)
            else:
                at = [self.roles.protected.index(name) for name in part.columns]
                swapped += [classes(self.values[:, at]), *self.states[:, at].T]
        return Pair(
            list(self.intake.variables.values()),
            self.values,
            self.intake.frame,
            self.after,
            weights=self.intake.relative_weights,
            mean_weight=mean,
            labels=self.groups,
            states=self.states,
            shared=combine(shared) if shared else None,
            swapped=combine(swapped) if swapped else None,
        )

    @cached_property
    def both_as_given(self) -> Pair:
        """The same against the table as it was before columns were recoded: what losses are about.

        It also has the known columns and strata that were recoded.
        """
        intake = self.intake
        if not intake.recoded:
            return self.both
        return against_original(self.both, intake.recoded, intake.original)

    @cached_property
    def known(self) -> Mapping[Any, Known]:
        """Columns that an attacker is taken to know."""
        return self.as_in_file(self.roles.known)

    @cached_property
    def confidential(self) -> Mapping[Any, Known]:
        """Confidential columns."""
        return self.as_in_file(self.roles.confidential)

    def as_in_file(self, names: Iterable[Any]) -> dict[Any, Known]:
        """Give the values of unprotected columns numbers; different texts in the file get different ones."""
        columns = known_columns(self.intake.frame, names)
        recoded = [name for name in columns if name in self.recoded_columns]
        if self.intake.text is not None:
            text = known_columns(Frame(self.intake.text), columns)
            columns = {name: as_in_file(column, text[name]) for name, column in columns.items()}
        # Where small strata were merged, the file tells the stratum of the group.
        return {**columns, **known_columns(self.after, recoded)}

    @cached_property
    def utility(self) -> Utility:
        """What was lost, and what became of the plan's analyses.

        Swapped values lose what their groups lose, since rows are then nobody's.
        """
        shares = None if self.counted is None else self.counted.losses
        measures = utility_of(self.both_as_given, shares=shares)
        if self.plan.is_swapped:
            measures = replace(
                measures,
                information_loss=measures.group_loss,
                by_column=measures.group_loss_by_column,
            )
        return self.with_analyses(measures, self.plan.analyses)

    def with_analyses(self, utility: Utility, analyses: Iterable[Any]) -> Utility:
        """Add analyses to what was lost."""
        weight, released = self.plan.weight, None
        if weight is not None and weight.release == "mean":
            released = self.after.doubles(weight.column)
        both, k, categories = self.both_as_given, self.plan.k, self.plan.categories
        results = [analyse(both, each, released, k=k, categories=categories) for each in analyses]
        return replace(utility, analyses=[*utility.analyses, *results]) if results else utility

    @cached_property
    def fidelity(self) -> Fidelity:
        """How far tables, spreads and associations of all released columns moved."""
        columns = columns_of(self.both_as_given)
        measured = {self.roles.weight, *(column.name for column in columns)}
        others = [name for name in self.roles.released if name not in measured]
        kinds = {name: setting for name, setting in self.plan.columns.items() if name in others}
        before = self.intake.original or self.intake.frame
        columns += compared_columns(before, self.after, others, kinds)
        weight, released = self.plan.weight, None
        if weight is not None and weight.release != "drop":
            released = self.after.doubles(weight.column)
        return fidelity_of(columns, self.intake.weights, released, sampled=self.is_sample)

    @cached_property
    def within_groups(self) -> list[WithinGroups]:
        """The covariances that averaging takes, of each part, as far as they may be told to the public."""
        both, covariances = self.both, []
        for part in self.parts:
            block = self.plan.block_of(part.columns)
            if block.is_swapped or block.released != "mean" or self.is_sample:
                continue
            places = [
                j
                for j, variable in enumerate(both.variables)
                if variable.name in part.columns and variable.name not in self.intake.recoded
                if variable.kind in ("number", "integer") and both.both_there[:, j].all()
            ]
            told = places and within_groups(
                [both.names[j] for j in places],
                both.original[:, places],
                both.protected[:, places],
                self.groups[:, places[0]],
                self.intake.weights,
                self.intake.units,
            )
            covariances += [told] if told else []
        return covariances

    @cached_property
    def risk(self) -> Risk:
        """What an attacker gains from the protected columns alone."""
        linkage: Any = partial(link, self.both, sample=sample_for(len(self.both)))
        if self.counted is not None:
            linkage = self.counted.linked[None]
        # What classes disclose of confidential columns, and the lists of groups of swapped ones.
        released = self.both.released_classes
        disclosed = {
            name: replace(diversity(self.after, name, released), agreement=agreement)
            for name, agreement in self.agreements.items()
        }
        for part in self.parts:
            if self.plan.block_of(part.columns).is_swapped:
                for name in part.columns:
                    disclosed[name] = diversity(self.after, name, part.partition.labels)
        return Risk.of(
            self.counts.alone,
            self.counts.unique_before,
            self.plan.k,
            diversity=disclosed,
            individual=individual_of(self.both, self.intake.units),
            _link=linkage,
        )

    @cached_property
    def counts(self) -> Counts:
        """Classes of all records."""
        if self.counted is not None:
            return self.counted.counts
        both, units, k = self.both, self.intake.units, self.plan.k
        original = both
        if self.intake.recoded:
            original = self.both_as_given.of_columns(range(len(both.names)))
        known = combine([both.released_classes, *_codes(self.known)])
        counts = Counts(
            ClassSizes.of_labels(both.classes, units),
            ClassSizes.of_labels(known, units),
            ClassSizes.of_labels(original.classes_before).unique,
        )
        if not self.confidential:
            return counts
        stakes = {
            name: share_below(combine([known, column.codes]), k, units)
            for name, column in self.confidential.items()
        }
        claimed = ClassSizes.of_labels(combine([known, *_codes(self.confidential)]), units)
        return counts._replace(claimed=claimed, stakes=largest_first(stakes))

    @cached_property
    def with_known(self) -> KnownRisk:
        """What an attacker gains who also knows every untouched column that is not confidential."""
        return self._known_risk(self.counts.known, "known", self.known)

    @cached_property
    def if_confidential_known(self) -> KnownRisk:
        """What an attacker gains if the confidential columns were known after all."""
        if self.counts.claimed is None:
            return self.with_known
        return self._known_risk(self.counts.claimed, "claimed", {**self.known, **self.confidential})

    def _known_risk(self, classes: ClassSizes, view: str, known: Mapping[Any, Known]) -> KnownRisk:
        if self.counted is not None:
            linkage = self.counted.linked.get(view, self.counted.linked[None])
        else:
            blocks = combine(_codes(known)) if known else None
            linkage = link(self.both, blocks=blocks, sample=sample_for(len(self.both)))
        return KnownRisk.of(classes, self.plan.k, linkage)

    @cached_property
    def harms(self) -> list[Harm]:
        """Known columns, the most harmful first."""
        return rank(self.both, self.known, self.plan.k, self.intake.units)

    @cached_property
    def below_k_with_known(self) -> float:
        """Share of records among fewer than k records, or units, that agree in all that is known."""
        if any(part.base is not None for part in self.parts):
            return share_below(self._joint_classes, self.plan.k, self.intake.units)
        return self.counts.known.records_below(self.plan.k) / self.records

    @cached_property
    def agreements(self) -> Mapping[Any, Agreement]:
        """What groups disclose of each confidential column."""
        seen, known = self.both.released_classes, _codes(self.known)
        # Where k fails with the known columns, records are found by these, whatever their group discloses.
        if known and not self.below_k_with_known:
            seen = combine([seen, *known])
        here = {name: agreement_of(self.after, name, seen) for name in self.plan.confidential}
        if self.counted is None:
            return here
        return {name: self.counts.agreeing[name].with_close_of(here[name]) for name in here}

    @cached_property
    def _joint_classes(self) -> Labels:
        """Class of each record by all that groups share and all that an attacker knows.

        Merging whole groups may tell something about single ones, so that these are told apart.
        """
        merged = (part.base for part in self.parts if part.base is not None)
        return combine([self.both.released_classes, *merged, *_codes(self.known)])

    @cached_property
    def untouched(self) -> list[Any]:
        """Columns left as they are that differ between records, strata aside."""
        strata = self.plan.shared_strata
        columns = {**self.known, **self.confidential}
        return [n for n, c in columns.items() if n not in strata and len(np.unique(c.codes)) > 1]

    @cached_property
    def pairing(self) -> Pairing | None:
        """The attack that pairs people and rows through columns that it does not know of people."""
        frame, coordinates = self.intake.frame, []
        for name in self.untouched:
            if name in self.confidential:
                values = frame.doubles(name) if frame.is_numeric(name) else None
                coordinates.append(untouched_coordinates(self.confidential[name].codes, values))
        if not coordinates:
            return None
        groups = combine([part.partition.labels for part in self.parts])
        before, after = self.both.encoded
        return pairing_attack(self._joint_classes, groups, before, after, np.hstack(coordinates))

    @cached_property
    def swap(self) -> SwapFigures | None:
        """What swapped values give away; None: no value is swapped."""
        if not self.plan.is_swapped:
            return None
        stands, alone = standing(self.both)
        alone = self.counts.unique_before if self.is_sample else alone
        return SwapFigures(self._chance, stands, alone)

    @property
    def _chance(self) -> Chance | None:
        """Chance to pick a person's row; None: the file has nothing that could tell whose row it is."""
        if self.plan.keep_order:
            return Chance(1.0, 1.0)
        if not (self.untouched or self._links):
            return None
        if self.is_sample:
            return chance_at_most(self.counts.known)
        hidden = {name: link for name, link in self._links.items() if name not in self.known}
        sets = row_sets(self._joint_classes, hidden).values()
        linked = (each.kinds[each.ids] for each in sets)
        return chance_of(combine([self._joint_classes, *linked]), self.intake.units)

    @cached_property
    def summaries(self) -> list[Summary]:
        """Totals, means, medians and standard deviations of each protected column."""
        both, totals = self.both_as_given, {} if self.counted is None else self.counted.totals
        return [
            replace(row, **totals.get(name, {}))
            for name, row in zip(both.names, summaries(both, max(self.plan.k, 3)), strict=True)
        ]

    def linked_rows(self, links: Mapping[Any, Known] | None = None) -> list[LinkedRows]:
        """Return sets of rows by columns that show which belong together; strata are shared by k anyway."""
        if self.is_sample:  # members of a household may be outside it
            return []
        links = self._links if links is None else links
        return linked_rows(
            self.both.released_classes, self.known, links, self.plan.k, self.intake.units
        )

    @cached_property
    def _links(self) -> dict[Any, Known]:
        """Columns of the file that show which rows belong together."""
        roles, strata = self.roles, self.plan.shared_strata
        columns = self.as_in_file(
            name for name in [*roles.renumbered, *roles.released] if name not in strata
        )
        return linking_columns(columns, [*roles.renumbered, *self.plan.units])


def _codes(columns: Mapping[Any, Known]) -> list[Labels]:
    return [column.codes for column in columns.values()]
