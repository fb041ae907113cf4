"""Delivery: the files of a job take their names together, if the table may take its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from microagg.errors import shown
from microagg.evidence import Evidence
from microagg.formats.addresses import Place
from microagg.formats.atomic import TemporaryFiles, replacing_all
from microagg.job.job import Job
from microagg.job.observer import Observer


@dataclass
class Delivery:
    """The temporary files of a job: those of the reports, of what belongs to the table, and the table's."""

    job: Job
    parts: TemporaryFiles
    targets: Sequence[Path]
    table: Path
    """Where the table is written until it takes its name."""
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
        destination = self.job.destination
        if destination is not None and not destination.is_local:
            return [destination.place, *chosen]
        return [chosen[-1], *chosen[:-1]]

    def write_report(self, number: int, texts: Sequence[str]) -> None:
        """Write the page and the JSON of one of the reports."""
        for part, text in zip(self.parts[2 * number :], texts, strict=False):
            part.write_text(text, encoding="utf-8", errors="backslashreplace")

    def judge(self, evidence: Evidence) -> Evidence:
        """Decide on a table that was written and counted: red, or not green where that is asked, is rejected.

        A rejected table, and what only its readers need, take no name; the evidence has the reason.
        """
        job, counted = self.job, evidence.counted
        assert counted is not None
        if job.destination is not None:
            digest = job.destination.pack(self.table, self.parts[-1] if self.parts else self.table)
            counted = replace(counted, path=str(job.destination.place), sha256=digest)
            evidence = replace(evidence, counted=counted)
        if evidence.verdict == "green" or (evidence.verdict == "amber" and not job.strict):
            return evidence
        reason = "--strict: the verdict must be green and is amber"
        if evidence.verdict == "red":
            reason = evidence.verdict_words.rstrip(".")
        kept = "--keep-rejected PATH would keep it elsewhere"
        if job.keep_rejected is not None:
            kept = f"it is kept in {shown(str(job.keep_rejected), 300)}"
            with replacing_all([job.keep_rejected], folder=self.table.is_dir()) as (copy,):
                if self.table.is_dir():
                    shutil.copytree(self.table, copy, dirs_exist_ok=True)
                else:
                    shutil.copyfile(self.table, copy)
        self.rejected = True
        reports = range(2 * len(job.reports))
        shown_to_readers = {at for at in reports if job.reports[at // 2][1]}
        self.parts.withheld |= shown_to_readers | {*range(len(reports), len(self.parts))}
        words = f"{reason}. {shown(counted.path, 300)} was not released; {kept}."
        return replace(evidence, rejected=words)


@contextmanager
def delivering(job: Job, observer: Observer) -> Iterator[Delivery]:
    """Yield temporary files for a job; they take their names when the block succeeds, all or none.

    A ledger takes its name first, if the table does: it tells the next run what is left to do after a kill.
    """
    target, destination = job.writes, job.destination
    targets = [file for path, _ in job.reports for file in (path, path.with_suffix(".json"))]
    if job.ledger is not None:
        targets.append(job.ledger)
    if destination is None:
        targets.append(target)  # the largest last: what others replaced may be put back
    elif isinstance(destination.place, Path) and destination.is_local:
        targets.append(destination.place)
    parts = TemporaryFiles()
    try:
        with replacing_all(targets, job.to_folder and destination is None, job.overwrite) as parts:
            if job.ledger is not None:
                parts.private = {len(targets) - 2}
            if destination is not None and job.to_folder:
                target.mkdir()
            delivery = Delivery(job, parts, targets, parts[-1] if destination is None else target)
            if job.ledger is not None:
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
