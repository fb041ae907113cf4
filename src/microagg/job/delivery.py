"""Delivery: the files of a job take their names together, if a gate lets the table take its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from microagg.errors import InputError, shown
from microagg.evidence import Evidence
from microagg.formats.addresses import Place
from microagg.formats.atomic import TemporaryFiles, check_target, replacing_all
from microagg.formats.remote import Destination
from microagg.job.observer import Observer


@dataclass(frozen=True)
class Gate:
    """What a release must satisfy to take its name; the same for every engine."""

    strict: bool = False
    """Whether the verdict must be green; it must never be red, which is a limit of the plan missed."""
    keep_rejected: Path | None = None
    """Where a rejected table is kept."""
    overwrite: bool = True
    """Whether a file or folder that has the name already is replaced."""

    def check(self, target: Path, folder: bool, *others: Path) -> None:
        """Refuse places that cannot be written to; ``others`` are files of the same job."""
        check_target(target.absolute(), folder, self.overwrite)
        if self.keep_rejected is None:
            return
        check_target(self.keep_rejected.absolute(), folder)
        if any(self.keep_rejected.resolve() == other.resolve() for other in (target, *others)):
            raise InputError(
                "--keep-rejected keeps a table apart from the files of the job; "
                f"{shown(str(self.keep_rejected), 300)} is one of them. Choose another name."
            )

    def judged(self, evidence: Evidence) -> Evidence:
        """Return the evidence of a table that was written and counted, with the reason if it is rejected."""
        if evidence.verdict == "green" or (evidence.verdict == "amber" and not self.strict):
            return evidence
        counted = evidence.counted
        assert counted is not None
        reason = "--strict: the verdict must be green and is amber"
        if evidence.verdict == "red":
            reason = evidence.verdict_words.rstrip(".")
        kept = "--keep-rejected PATH would keep it elsewhere"
        if self.keep_rejected is not None:
            kept = f"it is kept in {shown(str(self.keep_rejected), 300)}"
        words = f"{reason}. {shown(counted.path, 300)} was not released; {kept}."
        return replace(evidence, rejected=words)


@dataclass
class Delivery:
    """The temporary files of a job: those of the reports, of what belongs to the table, and the table's."""

    gate: Gate
    parts: TemporaryFiles
    targets: Sequence[Path]
    public: Sequence[bool]
    """For each report, whether it is for readers of the table."""
    table: Path
    """Where the table is written until it takes its name."""
    destination: Destination | None = None
    """The place that the table is sent to, unless it is a plain local file."""
    rejected: bool = False
    ledger: Path | None = None
    """Where the ledger is written until it takes its name; None: the job has none."""

    @property
    def files(self) -> list[Place]:
        """The files that take their names, the table first."""
        chosen: list[Place] = [
            target for j, target in enumerate(self.targets) if j not in self.parts.withheld
        ]
        if self.rejected:
            return chosen
        if self.destination is not None and not self.destination.is_local:
            return [self.destination.place, *chosen]
        return [chosen[-1], *chosen[:-1]]

    def write_report(self, number: int, texts: Sequence[str]) -> None:
        """Write the page and the JSON of one of the reports."""
        for part, text in zip(self.parts[2 * number :], texts, strict=False):
            part.write_text(text, encoding="utf-8", errors="backslashreplace")

    def judge(self, evidence: Evidence) -> Evidence:
        """Let the gate decide; a rejected table, and what only its readers need, take no name."""
        if self.destination is not None and evidence.counted is not None:
            digest = self.destination.pack(self.table, self.parts[-1] if self.parts else self.table)
            packed = replace(evidence.counted, path=str(self.destination.place), sha256=digest)
            evidence = replace(evidence, counted=packed)
        judged = self.gate.judged(evidence)
        if judged.rejected:
            self.rejected = True
            reports = 2 * len(self.public)
            shown_to_readers = {j for j in range(reports) if self.public[j // 2]}
            self.parts.withheld |= shown_to_readers | {*range(reports, len(self.parts))}
            if self.gate.keep_rejected is not None:
                self._keep(self.gate.keep_rejected)
        return judged

    def _keep(self, path: Path) -> None:
        with replacing_all([path], folder=self.table.is_dir()) as (part,):
            if self.table.is_dir():
                shutil.copytree(self.table, part, dirs_exist_ok=True)
            else:
                shutil.copyfile(self.table, part)


@contextmanager
def delivering(
    gate: Gate,
    target: Path,
    reports: Sequence[tuple[Path, bool]],
    observer: Observer,
    folder: bool = False,
    destination: Destination | None = None,
    ledger: Path | None = None,
) -> Iterator[Delivery]:
    """Yield temporary files for a job; they take their names when the block succeeds, all or none.

    ``gate`` decides whether the table, once judged, takes its name; ``reports`` come with whether they
    are for readers of the table, which may be a ``folder`` of files. ``destination`` is the place that the
    table is sent to from ``target``, a file in a private folder. A ``ledger`` takes its name first,
    if the table does: it tells the next run what is left to do after a kill.
    """
    targets = [file for path, _ in reports for file in (path, path.with_suffix(".json"))]
    if ledger is not None:
        targets.append(ledger)
    if destination is None:
        targets.append(target)  # the largest last: what others replaced may be put back
    elif isinstance(destination.place, Path) and destination.is_local:
        targets.append(destination.place)
    parts = TemporaryFiles()
    try:
        with replacing_all(targets, folder and destination is None, gate.overwrite) as parts:
            if ledger is not None:
                parts.private = {len(targets) - 2}
            table = parts[-1] if destination is None else target
            if destination is not None and folder:
                target.mkdir()
            public = [is_public for _, is_public in reports]
            delivery = Delivery(gate, parts, targets, public, table, destination)
            if ledger is not None:
                delivery.ledger = parts[-2]
            yield delivery
            if destination is not None and not delivery.rejected:
                destination.send()
                destination.take_name()
    finally:
        if destination is not None:
            destination.remove()
        if parts.named:  # also if an interrupt comes right after
            observer.written(delivery.files)
