"""What the command protect does: read, protect, measure, write, verify, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.cli.say import say_loss, say_parts, say_report, say_risk, say_verification
from microagg.cli.show import Speaker, names
from microagg.errors import InputError, StopSearch

if TYPE_CHECKING:
    from microagg.tables.files import CsvFormat

__all__ = ["Evidence", "protect_file"]


class Evidence:
    """What to measure and where to write it."""

    def __init__(
        self, report: Path | None, public: bool, words: list[str], **measures: Any
    ) -> None:
        if public and report is None:
            raise InputError("--public is about the report; say where to write it with --report.")
        self.report, self.public = report, public
        self.command = ["microagg", *words]
        self.measures = measures

    def check(self, *others: Path) -> None:
        """Refuse a report that cannot be written, or that would replace another file."""
        if self.report is None:
            return
        from microagg.report.html import check_report_target

        check_report_target(self.report, *others)


def protect_file(
    speaker: Speaker,
    source: Path,
    target: Path,
    form: CsvFormat | None,
    columns: list[str] | None,
    evidence: Evidence,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Read, protect, write and verify a file, and say so."""
    from microagg.protect import Clock, check_settings
    from microagg.protect import protect as protect_frame
    from microagg.tables.atomic import check_target
    from microagg.tables.files import kind_of, read_file

    options = options or {}
    # A mistake costs no waiting.
    kind_of(target)
    check_target(target.absolute())
    check_settings(**settings)
    evidence.check(source, target)
    clock = Clock()
    with clock.time("read"):
        read = read_file(source, columns, form)
        table = read.to_the_letter(
            read.table, read.table.column_names if columns is None else columns
        )
    speaker.say("read", f"{source}: {table.num_rows:,} records, {table.num_columns} columns")
    with speaker.progress("grouping") as bar, speaker.stoppable() as asked:

        def report(done: int) -> None:
            if bar is not None:
                bar(done, table.num_rows)
            if asked():
                raise StopSearch

        try:
            release = protect_frame(table, columns=columns, progress=report, **settings, **options)
        except StopSearch:  # there are no groups yet
            raise KeyboardInterrupt from None
        if asked() and not any(part.stopped for _, part in release.parts):
            raise KeyboardInterrupt
    speaker.say("protected", names(release.columns))
    speaker.say("untouched", names(release.untouched) or "no column")
    with clock.time("measure"):
        utility, risk = release.measure(**evidence.measures)
        _ = risk.linkage
    say_parts(speaker, release)
    say_loss(speaker, utility)
    say_risk(speaker, risk)
    same_ending = source.suffix.lower() == target.suffix.lower()
    with clock.time("write"):
        verification = release.write(
            target, read.format if same_ending else read.format.for_another(form)
        )
    scope = "holds" if len(release.parts) == 1 else "holds for each column by itself"
    say_verification(speaker, target, verification, scope)
    if evidence.report is not None:
        with clock.time("report"):
            release.report(
                evidence.report,
                public=evidence.public,
                source=source,
                command=evidence.command,
                measured=(utility, risk),
            )
        say_report(speaker, evidence.report)
    if speaker.as_json:
        with clock.time("measure"):
            measures = {"utility": utility.as_dict(), "risk": risk.as_dict()}
        speaker.give(
            {
                "input": str(source),
                "output": str(target),
                "report": evidence.report and str(evidence.report),
                "records": table.num_rows,
                "k": release.k,
                "aggregate": release.aggregate,
                "columns": {
                    "protected": release.columns,
                    "untouched": release.untouched,
                    "identifying": release.identifying,
                },
                "parts": [{"columns": names, **part.as_dict()} for names, part in release.parts],
                "information_loss": utility.information_loss,
                **measures,
                "verified": verification.as_dict(),
                "warnings": speaker.warnings,
                "seconds": {**clock.seconds, **release.seconds},
            }
        )
