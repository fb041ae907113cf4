"""Release: a protected table, how it came about, and what is claimed about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.cautions import (
    about_agreement,
    about_changes,
    about_determined,
    about_dominance,
    about_groups,
    about_identifiers,
    about_known,
    about_linked_rows,
    about_plan,
    about_row_labels,
)
from microagg.compare import compare
from microagg.deprecated import OldReleaseNames
from microagg.drafting.guesses import Guess
from microagg.errors import MicroaggError, VerificationError, listed, shown
from microagg.evidence import Evidence
from microagg.findings import Caution, Counted, Cure, Part, Required, group_loss_words
from microagg.grouping import bound_over_cells, seconds_of_bound
from microagg.groups import Floats, Labels
from microagg.intake import Intake, PartInput, broken_relation
from microagg.measure.agreement import Agreement, disclosed_share
from microagg.measure.analyses import check_analyses
from microagg.measure.classes import combine, share_below
from microagg.measure.diversity import agreement_of
from microagg.measure.harm import Harm, Stake, rank, stakes
from microagg.measure.known import Known, KnownRisk, known_columns, known_risk, told_apart
from microagg.measure.linkage import sample_for
from microagg.measure.linked_rows import LinkedRows, linked_rows, linking_columns
from microagg.measure.pairs import Pair
from microagg.measure.risk import Ask, Risk, risk_of
from microagg.measure.summaries import summaries
from microagg.measure.utility import Utility, utility_of
from microagg.plan import Plan, Promise, Roles
from microagg.progress import Listener
from microagg.registry import find
from microagg.released import Cells
from microagg.report.html import check_report_target, notebook_view, write_report
from microagg.report.model import release_model
from microagg.report.provenance import file_facts
from microagg.report.public import Bands, public_model
from microagg.require.figures import holds, worst
from microagg.require.search import is_compiled
from microagg.require.units import Units
from microagg.results import Partition
from microagg.tables.atomic import replacing, sha256
from microagg.tables.exact import codes_as_written
from microagg.tables.files import FileFormat, Source, kind_of, read_file, write_file
from microagg.tables.formulas import no_formulas, with_escaped_formulas
from microagg.tables.frames import Frame
from microagg.tables.metadata import left_out_words, released_table
from microagg.tables.misfits import cannot_hold
from microagg.tables.readback import difference
from microagg.usable import about_use
from microagg.verify import Verification, verify_all

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Part", "Release"]

# Other k are tried beside the one chosen, and a bound is proved, while that takes seconds.
_RECORDS_FOR_ALTERNATIVES = 5_000
_EASILY_BOUND = 15_000  # records times k (at least 10)
# Up to this many records the price of a requirement is found within two seconds, by a fast search.
_EASILY_CURED = 20_000


@dataclass(frozen=True, eq=False)
class Release(OldReleaseNames):
    """A protected table and how it came about.

    ``data`` has the frame type, index, column order and (unless shuffled) the row order of the table
    given. Measures and evidence are computed when first asked for.
    """

    data: Any = field(repr=False)
    plan: Plan
    roles: Roles
    parts: list[Part] = field(repr=False)
    seconds: Mapping[str, float] = field(repr=False)
    _intake: Intake = field(repr=False)  # the table as it came
    _inputs: list[PartInput] = field(repr=False)  # the columns of each part, encoded
    _after: Frame = field(repr=False)  # the table with released values, rows in the order given
    _protected: Floats = field(
        repr=False
    )  # (n, protected columns) released, rows in the order given
    _states: Labels = field(repr=False)  # the same: 0 a value, 1 missing, 2 and more with a code
    _groups: Labels = field(repr=False)  # the same: the group by which a column was aggregated
    _cells: Mapping[Any, Cells] = field(repr=False)  # missing, blanked and filled, by column
    _recoded: int = 0  # records whose stratum changed
    _order: Labels | None = field(default=None, repr=False)  # of the released rows, if shuffled
    _odd: tuple[Caution, ...] = field(default=(), repr=False)  # what reading and drafting found
    _again: Callable[[Plan], Release] | None = field(default=None, repr=False)
    """Protects the same table by another plan; None where it is not at hand."""
    drafted: Mapping[Any, Guess] | None = field(default=None, repr=False)
    """What the draft made of each column; None where the columns to protect were named."""
    _written: list[Counted] = field(default_factory=list, repr=False)
    left_out: list[str] = field(default_factory=list, repr=False)
    """Metadata of the table given that the release does not have, in words."""

    @property
    def _given(self) -> Frame:
        return self._intake.frame

    @property
    def _text(self) -> pa.Table | None:
        return self._intake.text

    @property
    def _units(self) -> Labels | None:
        return self._intake.units

    @cached_property
    def _original(self) -> Floats:
        return np.column_stack([v.values for v in self._intake.variables.values()])

    @property
    def partition(self) -> Partition:
        """The partition of the records, if there is one part; labels are in the order given."""
        if len(self.parts) > 1:
            raise AttributeError("The columns were protected in several parts; see .parts.")
        return self.parts[0].partition

    @property
    def k(self) -> int:
        """Least number of records in a group."""
        return self.plan.k

    @property
    def columns(self) -> list[Any]:
        """The protected columns."""
        return self.roles.protected

    @cached_property
    def utility(self) -> Utility:
        """What was lost, see :func:`microagg.utility`."""
        return utility_of(self._pair)

    @cached_property
    def risk(self) -> Risk:
        """What an attacker gains from the protected columns alone, see :func:`microagg.risk`."""
        return self._risk((), 80.0)

    @cached_property
    def with_known(self) -> KnownRisk:
        """What an attacker gains who also knows every untouched column that is not confidential."""
        sample = sample_for(len(self._original))
        return known_risk(self._pair, self._known, self.k, units=self._units, sample=sample)

    @cached_property
    def if_confidential_known(self) -> KnownRisk:
        """What an attacker gains if the confidential columns were known after all."""
        if not self.roles.confidential:
            return self.with_known
        every = {**self._known, **self._confidential}
        sample = sample_for(len(self._original))
        return known_risk(self._pair, every, self.k, units=self._units, sample=sample)

    @cached_property
    def stakes(self) -> list[Stake]:
        """Confidential columns by the share of records below k if each alone were known."""
        return stakes(self._pair, self._known, self._confidential, self.k, self._units)

    @cached_property
    def _confidential(self) -> dict[Any, Known]:
        return self._told_apart(self.roles.confidential)

    @cached_property
    def _cure(self) -> Cure | None:
        """The requirement that cures groups which disclose, and its price, where that takes two seconds."""
        disclosed = [name for name, one in self._agreements.items() if one.records]
        accepted = self.plan.accept.agreeing
        if disclosed_share(self._agreements.values()) <= accepted or self._again is None:
            return None
        if len(self._original) > _EASILY_CURED or not is_compiled():
            return None
        require = {"distinct": dict.fromkeys(disclosed, 2)}
        try:
            cured = self._again(self.plan.override(require=require, method="auto", effort="fast"))
        except MicroaggError:  # it cannot be met
            return None
        if disclosed_share(cured._agreements.values()) > accepted:
            return None
        return Cure(require, cured.utility.information_loss, self.utility.information_loss)

    @cached_property
    def cautions(self) -> list[Caution]:
        """What is to be weighed before the file leaves the house."""
        given, roles, both, known = self._given, self.roles, self._pair, self._known
        found = [*self._odd, *about_plan(self.plan, roles)]
        found += about_changes(self._cells, self._recoded, len(both), roles.strata)
        row_labels = given.distinct_row_labels()
        if row_labels > 1:
            found.append(about_row_labels(row_labels))
        below_k = self._below_k_with_known
        if below_k:
            found += about_known(
                self.k,
                both,
                known,
                below_k,
                self._harms,
                self.plan.words_of_unit(roles.unit),
                self._units,
            )
        # Strata are part of what k records share, and so is all that follows from them.
        strata = self.plan.shared_strata
        beside = {name: column for name, column in known.items() if name not in strata}
        found += about_identifiers(beside, len(both), self.plan.units)
        found += about_determined(both, {**beside, **self._confidential})
        found += about_linked_rows(self._linked_rows, roles.renumbered, self.plan.moved_together)
        hidden = self._told_apart([*roles.dropped, *roles.renumbered])
        found += about_groups(self._classes_of_records, {**known, **hidden}, roles.dropped)
        accepted = self.plan.accept.agreeing
        return [*found, *about_agreement(self._agreements, accepted, self._cure)]

    def cautions_with(self, utility: Utility, risk: Risk) -> list[Caution]:
        """Return the cautions together with those that need figures of all records."""
        rows = summaries(self._pair, max(self.k, 3))
        use = about_use(utility.by_column, rows)
        return [*self.cautions, *about_dominance(risk), *use]

    @property
    def evidence(self) -> Evidence:
        """All that is claimed about this release; with what was counted, once it is written."""
        return self._evidence(self.utility, self.risk)

    def measure(
        self,
        *,
        analyses: Iterable[Any] = (),
        dominance: Iterable[Any] = (),
        dominance_percent: float = 80.0,
    ) -> tuple[Utility, Risk]:
        """Loss and risk with more to measure.

        The parameters are those of :func:`microagg.utility` and :func:`microagg.risk`; confidential
        columns are named in the plan.
        """
        analyses = [analyses] if isinstance(analyses, str) else list(analyses)
        gone = {
            *self.roles.dropped,
            *self.roles.renumbered,
        }  # whose values would stand in the report
        check_analyses(analyses, self._given, gone, whole=False)
        utility = replace(self.utility, analyses=utility_of(self._pair, analyses).analyses)
        dominance = tuple(dominance)
        risk = self._risk(dominance, dominance_percent) if dominance else self.risk
        return utility, risk

    def evidence_with(self, **measures: Any) -> Evidence:
        """Return the evidence with more measured, as for :meth:`measure`."""
        return self._evidence(*self.measure(**measures))

    def seconds_of_bound(self) -> float | None:
        """How long a proof of :meth:`with_bound` takes, about; None where there is none."""
        n = len(self._original)
        if len(self.parts) > 1 or n * max(self.k, 10) > _EASILY_BOUND:
            return None
        part = self.parts[0]
        found, (block,) = part.partition, self.plan.blocks
        if block.bound is False or found.lower_bound is not None or found.stopped:
            return None
        exact = find(found.method).guarantee_for(part.coordinates, found.weighted) == "exact"
        if (exact and self._units is None) or block.released != "mean":
            return None
        if self._intake.relative_weights is not None:  # bounds are for records that count alike
            return None
        return seconds_of_bound(self._inputs[0].cells, found.k)

    def with_bound(self, progress: Listener | None = None) -> Release:
        """Return the release with a proved bound on the loss, where that takes seconds."""
        if self.seconds_of_bound() is None:
            return self
        part, (given,) = self.parts[0], self._inputs
        found = part.partition
        least = bound_over_cells(given.space, given.cells, found.k, progress)
        proved = replace(found, lower_bound=min(least, found.sse))
        return replace(self, parts=[part._replace(partition=proved)])

    @cached_property
    def alternatives(self) -> Mapping[str, Any] | None:
        """The same method with other k, for the risk–utility map; None where that takes long.

        None also for several parts, for other columns than complete numbers, and where k counts units, there
        are strata, or values are rounded so far that it shows in the loss: a comparison knows none of these.
        """
        n, k = len(self._original), self.k
        if n > _RECORDS_FOR_ALTERNATIVES or len(self.parts) > 1 or self._units is not None:
            return None
        if not self._intake.plain or self.plan.strata.columns:
            return None
        if group_loss_words(self.utility.information_loss, self.utility.group_loss):
            return None
        sizes = sorted({size for size in (2, k // 2, k, 2 * k, 4 * k) if 2 <= size <= n})
        if len(sizes) < 2:
            return None
        part = self.partition
        known = {option.name for option in find(part.method).options} - {"random_state"}
        chosen = {name: value for name, value in part.options.items() if name in known}
        if "refine" in part.options:
            chosen["refine"] = part.options["refine"]
        # A map need not take as long for every k as the release did.
        chosen.pop("time_limit", None)
        chosen |= {name: "balanced" for name in ("effort", "refine") if chosen.get(name) == "best"}
        return compare(
            self._original,
            sizes,
            part.method,
            scale=part.scale,
            random_state=self.plan.seed,
            options={part.method: chosen},
        ).as_dict()

    def write(
        self,
        path: str | Path,
        form: FileFormat | None = None,
        *,
        escape_formulas: bool = False,
    ) -> Verification:
        """Write the protected table; it gets its name only after it was read back and counted.

        The ending of the name tells the format: .csv, .parquet, .arrow and some more. With
        ``escape_formulas`` an apostrophe is put in front of texts in a CSV file that a spreadsheet
        program would take for formulas.

        Raises
        ------
        VerificationError
            If a combination of protected values is shared by fewer than k records or units, or
            records are missing. The file is removed.
        """
        target = Path(path)
        kind = kind_of(target, writing=True)  # an unknown ending is refused before any work
        if kind not in ("csv", "parquet", "arrow"):
            cannot_hold(Frame(self.data).to_arrow(unnamed_index=False), kind)
        if escape_formulas and kind != "csv":
            raise no_formulas(target)
        with replacing(target) as part:
            counted = self.write_part(part, target, form, escape=escape_formulas)
        self._written.append(counted)
        return counted.least

    def table_to_write(self, kind: str, kept: pa.Table | None = None) -> pa.Table:
        """Return the table as it is written to a file of some kind.

        ``kept`` has the columns that stay what they are as the file that was read holds them.
        """
        table = Frame(self.data).to_arrow(unnamed_index=kind in ("parquet", "arrow"))
        return released_table(table if kept is None else self._with_text(table, kept))

    def write_part(
        self,
        part: Path,
        target: Path,
        form: FileFormat | None,
        kept: pa.Table | None = None,
        escape: bool = False,
    ) -> Counted:
        """Write the table to a temporary file beside its target, and count in what was written.

        ``kept`` is as for :meth:`table_to_write`, ``escape`` as for :meth:`write`.
        """
        frame = Frame(self.data)
        table = self.table_to_write(kind_of(part), kept)
        written = dict(zip(frame.names, table.column_names, strict=False))  # an index comes last
        if kept is not None:
            self.left_out[:] = left_out_words(self._given.native.schema, table.schema)
        if escape:
            table = with_escaped_formulas(table)
        write_file(table, part, form)
        back = read_file(part, csv=None if form is None else form.csv, like=form)
        promises = self.plan.promises()
        promised = [
            one._replace(
                columns=[written[name] for name in one.columns or ()],
                unit=written.get(one.unit, one.unit),
            )
            for one in promises
        ]
        gone = {
            written.get(name, name): self._units_as_released(name)
            for name in self.plan.units
            if name in self.roles.dropped
        }
        found = verify_all(back, promised, units=gone)
        broken = broken_relation(self.plan, Frame(back.table))
        if broken is not None:
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and does not keep the relation {broken}. "
                "The file was removed."
            )
        counted = Counted(str(target), tuple(found), sha256(part), self._required(back, promised))
        failed = next((one for one in counted.required if not one.passed), None)
        if failed is not None:
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and does not have {failed.words}: in the worst "
                f"group it is {failed.found}. The file was removed."
            )
        least = counted.least
        if not counted.holds or least.records != len(self._original):
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and does not hold: {least.records} of "
                f"{len(self._original)} records are there and {least.records_below_k} share their "
                f"values in {listed(least.columns)} with too few others for k = {least.k}. "
                "The file was removed."
            )
        same = [written[name] for name in self.roles.released if name in written]
        differs = difference(table, back, same)
        if differs is not None:
            raise VerificationError(
                f"{shown(str(target), 300)} was read back and is not what was written: {differs}. The file "
                "was removed. Write another format."
            )
        return counted

    def _required(self, back: Source, promised: Sequence[Promise]) -> tuple[Required, ...]:
        """Count requirements over the combinations of values in a file that was read back.

        Each is counted over the records of equal values, which are unions of groups; what the file no longer
        tells, such as a dropped unit, is known of each record.
        """
        written, is_text = Frame(back.as_written), back.is_text
        found = []
        for given, one in zip(self._inputs, promised, strict=True):
            if not given.requirements:
                continue
            labels = combine(
                [codes_as_written(written, name, is_text) for name in one.columns or ()]
            )
            if self._order is not None:  # requirements know the records in the order given
                original = np.empty_like(labels)
                original[self._order] = labels
                labels = original
            found += [
                Required(
                    rule.describe(),
                    rule.public(),
                    worst(rule, labels),
                    holds(rule, labels),
                    isinstance(rule, Units),
                )
                for rule in given.requirements
            ]
        return tuple(found)

    def note_written(self, counted: Counted) -> None:
        """Note that a file was written and counted."""
        self._written.append(counted)

    def report(
        self,
        path: str | Path,
        *,
        public: bool = False,
        source: str | Path | None = None,
        **measures: Any,
    ) -> None:
        """Write the evidence as one HTML file, and every number of it as JSON beside it.

        Parameters
        ----------
        path : file to write, such as report.html; its twin is report.json
        public : a report for readers of the release: from the released table and the plan alone
        source : the file that the table came from, of which the report gives the hash, unless the
            release was written over it
        **measures
            As for :meth:`measure`: ``analyses``, ``dominance``.
        """
        check_report_target(Path(path))
        measured = self if public else self.with_bound()  # no bound is shown in public
        evidence = measured.evidence_with(**measures)
        written = {str(Path(file.path).resolve()) for file in self._written}
        if source is not None and str(Path(source).resolve()) not in written:
            evidence = replace(evidence, source=file_facts(source))
        write_report(self.report_model(evidence, public), Path(path))

    def report_model(
        self, evidence: Evidence | None = None, public: bool = False
    ) -> dict[str, Any]:
        """Gather what a report shows, as plain data."""
        evidence = self.evidence if evidence is None else evidence
        counted = evidence.counted or (self._written[-1] if self._written else None)
        if public:
            file = None if counted is None else (counted.path, counted.sha256)
            bands = Bands.of(evidence)
            return public_model(
                Frame(self.data), self.plan, self.roles, bands, file, self._as_written
            )
        whole = replace(evidence, counted=counted, alternatives=self.alternatives)
        return release_model(whole)

    def _repr_html_(self) -> str:
        """Show the verdict, the loss and the risk in a notebook."""
        return notebook_view(self.evidence)

    def __reduce__(self) -> Any:
        raise TypeError(
            "A Release holds the original values and is not pickled, lest they travel. Pickle "
            "its .data and .partition."
        )

    @cached_property
    def _pair(self) -> Pair:
        """The protected columns before and after, records in the order given."""
        return Pair(
            self.columns,
            self._original,
            self._protected,
            self._given,
            self._after,
            beside=self._beside,
            **self._beyond_numbers,
        )

    @property
    def _as_written(self) -> Frame | None:
        """Columns left as they are, as they stand in a CSV file, in the order of the released rows."""
        if self._text is None:
            return None
        names = [name for name in self.roles.released if name not in self._recoded_columns]
        left = self._text.select(names)
        return Frame(left if self._order is None else left.take(self._order))

    @property
    def _beside(self) -> Labels | None:
        """Strata and mean weight as they are released, a number for each combination."""
        shared = known_columns(self._after, self.plan.shared_beside())
        return combine([column.codes for column in shared.values()]) if shared else None

    @property
    def _beyond_numbers(self) -> dict[str, Any]:
        """What measures need to know beside the values.

        The groups; and kinds, weights and states, unless all columns are complete numbers that count alike.
        """
        if self._intake.plain:
            return {"labels": self._groups}
        return {
            "variables": list(self._intake.variables.values()),
            "weights": self._intake.relative_weights,
            "mean_weight": 1.0 if self._intake.weights is None else self._intake.weights.mean(),
            "labels": self._groups,
            "states": self._states,
        }

    @cached_property
    def _known(self) -> Mapping[Any, Known]:
        return self._told_apart(self.roles.known)

    def _told_apart(self, names: Iterable[Any]) -> dict[Any, Known]:
        """Values of columns left as they are, told apart as exactly as the file does."""
        found = known_columns(self._given, names)
        recoded = [name for name in found if name in self._recoded_columns]
        if self._text is not None:
            text = known_columns(Frame(self._text), found)
            found = {name: told_apart(column, text[name]) for name, column in found.items()}
        # Where small strata were merged, the file tells the stratum of the group.
        return {**found, **known_columns(self._after, recoded)}

    @property
    def _classes_of_records(self) -> list[tuple[Labels, int]]:
        """Classes by the released values of each part whose k counts records, and this k."""
        found = []
        for part in self.parts:
            block = self.plan.block_of(part.columns)
            if self.plan.unit_of(block).column is None:
                own = self._pair.of_columns(self._pair.names.index(name) for name in part.columns)
                beside = known_columns(self._after, self.plan.shared_beside(block))
                codes = (column.codes for column in beside.values())
                found.append((combine([own.classes, *codes]), part.partition.k))
        return found

    @cached_property
    def _linked_rows(self) -> list[LinkedRows]:
        """Sets of rows of the columns that show which rows belong together; strata are shared by k anyway."""
        roles, strata = self.roles, self.plan.shared_strata
        columns = self._told_apart(
            name for name in [*roles.renumbered, *roles.released] if name not in strata
        )
        links = linking_columns(columns, [*roles.renumbered, *self.plan.units])
        return linked_rows(self._pair, self._known, links, self.k, self._units)

    @cached_property
    def _harms(self) -> list[Harm]:
        return rank(self._pair, self._known, self.k, self._units)

    @cached_property
    def _below_k_with_known(self) -> float:
        """Share of records among fewer than k records, or units, that agree in all that is known."""
        both = self._pair
        known = (column.codes for column in self._known.values())
        labels = combine([both.released_classes, *known])
        return share_below(labels, self.k, self._units)

    def _units_as_released(self, name: Any) -> Any:
        """Units in the order of the released rows, for a file that no longer holds them."""
        import pyarrow as pa

        units = self._intake.units_by[name]
        units = units if self._order is None else units[self._order]
        return pa.array(units, mask=units < 0)

    def _risk(self, dominance: tuple[Any, ...], dominance_percent: float) -> Risk:
        ask = Ask(
            k=self.k,
            confidential=self.plan.confidential,
            dominance=dominance,
            dominance_percent=dominance_percent,
            sample=sample_for(len(self._original)),
            units=self._units,
        )
        found = risk_of(self._pair, ask)
        return replace(
            found,
            below_k=share_below(self._pair.classes, self.k, self._units),
            diversity={
                name: replace(one, agreement=self._agreements[name])
                for name, one in found.diversity.items()
            },
        )

    @cached_property
    def _agreements(self) -> Mapping[Any, Agreement]:
        """What groups disclose of each confidential column.

        An attacker tells the records of a group apart by known columns. Where k does not hold with these,
        records are found by them, whatever their group discloses.
        """
        seen = self._pair.released_classes
        if self._known and not self._below_k_with_known:
            seen = combine([seen, *(column.codes for column in self._known.values())])
        return {name: agreement_of(self._after, name, seen) for name in self.plan.confidential}

    def _evidence(self, utility: Utility, risk: Risk) -> Evidence:
        return Evidence(
            plan=self.plan,
            roles=self.roles,
            parts=self.parts,
            utility=utility,
            alone=risk,
            with_known=self.with_known,
            if_confidential_known=self.if_confidential_known,
            harms=self._harms,
            stakes=self.stakes,
            linked_rows=self._linked_rows,
            cautions=self.cautions_with(utility, risk),
            cells=self._cells,
            dropped=self._intake.dropped,
            recoded=self._recoded,
            counted=self._written[-1] if self._written else None,
            _pair=self._pair,
        )

    @property
    def _recoded_columns(self) -> tuple[Any, ...]:
        """Strata that are released otherwise than they came, since small ones were merged."""
        return self.plan.strata.columns if self._recoded else ()

    def _with_text(self, table: pa.Table, as_written: pa.Table) -> pa.Table:
        """Put the untouched columns in as they stand in the file."""
        there = frozenset(as_written.column_names)
        if self._intake.rows is not None:
            as_written = as_written.take(self._intake.rows)
        for name in self.roles.released:
            if name not in there or name in self._recoded_columns:
                continue
            column = as_written[name]
            if self._order is not None:
                column = column.take(self._order)
            at = table.column_names.index(name)
            table = table.set_column(at, as_written.schema.field(name), column)
        return table
