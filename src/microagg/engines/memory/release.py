"""Release: a protected table, how it came about, and what is claimed about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import plural
from microagg.base.progress import Listener
from microagg.drafting.guess import Guess
from microagg.engines.memory.control_group import Attacked, attacks_for_evidence
from microagg.engines.write_and_count import ReleasedTable
from microagg.evidence.cautions import cautions_of
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile, Measured, Part
from microagg.evidence.measuring import Measuring
from microagg.evidence.sentences import Caution
from microagg.formats.layouts import FileFormat
from microagg.grouping.group_table import bound_over_cells, seconds_of_bound
from microagg.measure.attack import OnProgress
from microagg.measure.fidelity import Fidelity
from microagg.measure.known_columns import KnownRisk
from microagg.measure.risk import Risk
from microagg.measure.utility import Utility
from microagg.measure.verify import Verification
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.sections import Roles
from microagg.report.html import check_report_target, notebook_view, write_report
from microagg.report.model import file_facts, release_model
from microagg.report.public import bands_of, public_model
from microagg.tables.frame import Frame


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A protected table and how it came about.

    ``data`` has the frame type, index, column order and, unless ``keep_order`` is False, the row order of the
    table given; :meth:`write` writes the rows in random order, unless ``keep_order`` is True. Measures and
    evidence are computed when first asked for.
    """

    data: Any
    plan: Plan
    roles: Roles
    parts: Sequence[Part]
    seconds: Mapping[str, float]
    _measuring: Measuring
    _again: Callable[..., Release]
    """Carries out another plan on the same table, or on some of its rows."""
    released_table: ReleasedTable
    """The table on its way to a file."""
    drafted: Mapping[Any, Guess] | None = None
    """What the draft made of each column; None where the columns to protect were named."""
    _written: list[CountedFile] = field(default_factory=list)
    _attacked: list[Attacked] = field(default_factory=list)
    """What :meth:`attacked` found, once it was asked for."""
    left_out: list[str] = field(default_factory=list)
    """Metadata of the table given that the release does not have, in words."""

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

    @property
    def utility(self) -> Utility:
        """What was lost, see :func:`microagg.utility`."""
        return self._measuring.utility

    @property
    def fidelity(self) -> Fidelity:
        """How far tables and spreads moved, beside another sample; see :func:`microagg.fidelity`."""
        return self._measuring.fidelity

    @property
    def risk(self) -> Risk:
        """What an attacker gains from the protected columns alone, see :func:`microagg.risk`."""
        return self._measuring.risk

    @property
    def with_known(self) -> KnownRisk:
        """What an attacker gains who also knows every untouched column that is not confidential."""
        return self._measuring.with_known

    @property
    def if_confidential_known(self) -> KnownRisk:
        """What an attacker gains if the confidential columns were known after all."""
        return self._measuring.if_confidential_known

    @property
    def stakes(self) -> Mapping[Any, float]:
        """Confidential columns by the share of records below k if each alone were known."""
        return self._measuring.counts.stakes

    @cached_property
    def cautions(self) -> list[Caution]:
        """What is to be weighed before the file leaves the house."""
        measuring = self._measuring
        return cautions_of(
            self.plan, self.roles, measuring.signs, measuring.utility.by_column, measuring.summaries
        )

    @property
    def evidence(self) -> Evidence:
        """All that is claimed about this release; with what was counted, once it is written."""
        return Evidence.of(self.plan, self.measured())

    def measure(self, **measures: Any) -> tuple[Utility, Risk]:
        """Return loss and risk, with more measured.

        Parameters
        ----------
        **measures
            ``analyses`` as for :func:`microagg.utility`; confidential columns are named in the plan.
        """
        return self._measuring.measure(**measures)

    def measured(self, **measures: Any) -> Measured:
        """Return all figures, with more measured as for :meth:`measure`; nothing is judged yet."""
        if self.plan.accept.inference is not None:
            self.attacked()
        attacks, refused = self._attacked[0] if self._attacked else Attacked(None)
        return replace(
            self._measuring.measured(**measures),
            parts=self.parts,
            counted=self._written[-1] if self._written else None,
            attacks=attacks,
            not_attacked=refused,
        )

    def attacked(
        self, progress: OnProgress | None = None, should_stop: Callable[[], bool] = lambda: False
    ) -> Attacked:
        """Attack what the plan releases with people put aside as controls; from then on in the evidence.

        The others are protected once more; see :mod:`microagg.engines.memory.control_group`, also for
        ``progress`` and ``should_stop``. The evidence has this without being asked if the plan sets
        ``accept.inference``, and a board's report of swapped values has it.
        """
        if not self._attacked:
            intake = self._measuring.intake
            kept = np.arange(intake.given) if intake.rows is None else intake.rows
            attacked = attacks_for_evidence(
                intake,
                self.plan,
                self.parts[0].partition.labels,
                lambda plan, rows: self._again(plan, kept[rows]).data,
                progress,
                should_stop,
            )
            self._attacked.append(attacked)
        return self._attacked[0]

    def seconds_of_bound(self) -> float | None:
        """Estimate how long a proof of :meth:`with_bound` takes; None where there is none."""
        part = self.parts[0]
        partition = part.partition
        if len(self.parts) > 1 or not self.plan.is_easily_bound(len(part.rows)):
            return None
        if partition.lower_bound is not None or partition.stopped:
            return None
        guarantee = find(partition.method).guarantee_for(part.coordinates, partition.weighted)
        if guarantee == "exact" and self.released_table.intake.units is None:
            return None
        return seconds_of_bound(self.released_table.inputs[0].cells, partition.k)

    def with_bound(self, progress: Listener | None = None) -> Release:
        """Return the release with a proved bound on the loss, where that takes seconds."""
        if self.seconds_of_bound() is None:
            return self
        (part,), (encoded,) = self.parts, self.released_table.inputs
        partition = part.partition
        least = bound_over_cells(encoded.space, encoded.cells, partition.k, progress)
        proved = replace(partition, lower_bound=min(least, partition.sse))
        return replace(self, parts=[part._replace(partition=proved)])

    def write(
        self, path: str | Path, form: FileFormat | None = None, *, escape_formulas: bool = False
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
        counted = self.released_table.deliver(Path(path), form, escape_formulas)
        self._written.append(counted)
        return counted.least

    def report(
        self,
        path: str | Path,
        *,
        public: bool = False,
        source: str | Path | None = None,
        prices: Any = None,
        **measures: Any,
    ) -> None:
        """Write the evidence as one HTML file, and every number of it as JSON next to it.

        Parameters
        ----------
        path : file to write, such as report.html; its twin is report.json
        public : a report for readers of the release: from the released table and the plan alone
        source : the file that the table came from; the report gives its hash, unless the release was
            written over it
        prices : what :func:`microagg.prices` found, to be shown in a report for the board
        **measures
            As for :meth:`measure`: ``analyses``.
        """
        check_report_target(Path(path))
        measured = self if public else self.with_bound()  # no bound is shown in public
        if self.plan.is_swapped and not public:
            self.attacked()
        evidence = Evidence.of(self.plan, measured.measured(**measures))
        if prices is not None:
            evidence = replace(evidence, prices=prices.for_report())
        written = {str(Path(file.path).resolve()) for file in self._written}
        if source is not None and str(Path(source).resolve()) not in written:
            evidence = replace(evidence, source=file_facts(source))
        write_report(self.report_model(evidence, public), Path(path))

    def report_model(
        self, evidence: Evidence | None = None, public: bool = False
    ) -> dict[str, Any]:
        """Gather what a report shows, as plain data."""
        evidence = self.evidence if evidence is None else evidence
        if public:
            counted = evidence.counted
            file = None if counted is None else (counted.path, counted.sha256)
            bands = bands_of(evidence)
            text = self.released_table.as_written
            history = evidence.history
            # Covariances of several files would be equations that nobody solves together: once a ledger.
            is_first = history is None or history.files == 1
            within = self._measuring.within_groups if is_first else ()
            return public_model(
                Frame(self.data), self.plan, self.roles, bands, file, text, within, history
            )
        return release_model(replace(evidence, pictures=self._measuring.pictures()))

    def __repr__(self) -> str:
        """Say what was protected, without measuring anything."""
        columns = plural(len(self.columns), "column")
        return f"Release: {columns} protected with k = {self.k}. .data is the table, .evidence the verdict."

    def _repr_html_(self) -> str:
        """Show the verdict, the loss and the risk in a notebook."""
        return notebook_view(self.evidence)

    def __reduce__(self) -> Any:
        raise TypeError(
            "A Release cannot be pickled, so that original values do not leave this process. Pickle its "
            ".data and .partition."
        )
