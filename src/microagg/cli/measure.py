"""What the commands measure and compare do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.cli.say import percent, say_loss, say_report, say_risk
from microagg.cli.show import Speaker, names
from microagg.measure.analyses import columns_of
from microagg.measure.compare import Comparison, check_targets
from microagg.measure.compare import compare as compare_frame
from microagg.measure.linkage import check_sample
from microagg.measure.pairs import align, pair
from microagg.measure.risk import Ask, risk_of
from microagg.measure.utility import utility_of
from microagg.protect import Clock
from microagg.tables.files import CsvFormat, read_file

if TYPE_CHECKING:
    from microagg.cli.protect import Evidence

__all__ = ["compare_file", "measure_files"]


def measure_files(
    speaker: Speaker,
    original: Path,
    protected: Path,
    form: CsvFormat,
    columns: list[str] | None,
    id_: str | None,
    *,
    analyses: list[str],
    confidential: list[str],
    dominance: list[str],
    **settings: Any,
) -> bool:
    """Measure a protected file against its original and say so; return whether k holds."""
    clock = Clock()
    wanted = None
    named = [name for analysis in analyses for name in columns_of(analysis)]
    check_sample(settings["sample"])
    if columns is not None:  # named columns are numbers even if they look like codes
        wanted = [*columns, *confidential, *dominance, *map(str, named)]
    ask = Ask(confidential=tuple(confidential), dominance=tuple(dominance), **settings)
    with clock.time("read"):
        before, after = (read_file(path, wanted, form).table for path in (original, protected))
    for path, table in ((original, before), (protected, after)):
        speaker.say("read", f"{path}: {table.num_rows:,} records, {table.num_columns} columns")
    with clock.time("match"):
        leave_out = list(confidential)
        if id_ is not None:
            after = align(before, after, id_)
            leave_out.append(id_)
        both = pair(before, after, columns, leave_out)
    speaker.say("compared", names(both.names))
    same = np.all(both.original == both.protected, axis=0)
    unchanged = [name for name, equal in zip(both.names, same, strict=True) if equal]
    if unchanged:
        speaker.say(
            "unchanged",
            f"{names(unchanged)}: the same in both files, and taken as known to an attacker; name the "
            "protected columns with --columns to leave them out",
        )
    unmeasured = [name for name, ok in zip(both.names, same | both.varies, strict=True) if not ok]
    if unmeasured:
        speaker.say(
            "unmeasured",
            f"{names(unmeasured)}: constant in the original and changed since; a constant has no unit "
            "to measure that in",
            style="bold yellow",
        )
    with clock.time("loss"):
        utility = utility_of(both, analyses)
        lost = utility.as_dict()
    say_loss(speaker, utility)
    with clock.time("risk"):
        risk = risk_of(both, ask)
        _ = risk.sd_disclosure, risk.sd_disclosure_protected, risk.rank_disclosure
    with clock.time("linkage"), speaker.progress("linking") as bar:
        risk.link(None if bar is None else lambda done: bar(done, ask.sample or len(both)))
    say_risk(speaker, risk)
    if risk.below_k:
        speaker.say(
            "fails",
            f"{100 * risk.below_k:.1f} % of the records are in groups under k = {ask.k}",
            style="bold red",
        )
    more = (
        f"IL1s {utility.il1s:.3g}; correlations off by {utility.correlation_deviation:.3g} on average; "
        f"pMSE {utility.propensity.ratio:.3g} times its expectation; SDID at 5 % "
        f"{100 * risk.sd_disclosure[5.0]:.3g} %"
    )
    speaker.say("more", f"{more}; all measures with --json")
    speaker.give(
        {
            "original": str(original),
            "protected": str(protected),
            "records": len(both),
            "columns": both.names,
            "unchanged": unchanged,
            "unmeasured": unmeasured,
            "information_loss": utility.information_loss,
            "record_linkage": risk.record_linkage,
            "utility": lost,
            "risk": risk.as_dict(),
            "warnings": speaker.warnings,
            "seconds": clock.seconds,
        }
    )
    return not risk.below_k


def compare_file(
    speaker: Speaker,
    source: Path,
    form: CsvFormat,
    columns: list[str] | None,
    evidence: Evidence,
    targets: tuple[float | None, float | None],
    **settings: Any,
) -> None:
    """Try methods and k on a file, and say which to choose."""
    check_targets(*targets)
    table = read_file(source, columns, form).table
    speaker.say("read", f"{source}: {table.num_rows:,} records, {table.num_columns} columns")
    with speaker.progress("comparing") as bar:
        found = compare_frame(table, columns=columns, progress=bar, **settings)
    if not (speaker.quiet or speaker.as_json):
        _print_table(found)
    suggestion = found.suggest(*targets)
    speaker.say("choose", suggestion.words)
    if evidence.report is not None:
        found.report(
            evidence.report,
            max_loss=targets[0],
            max_linkage=targets[1],
            public=evidence.public,
            source=source,
            command=evidence.command,
        )
        say_report(speaker, evidence.report)
    speaker.give(
        {
            "input": str(source),
            **found.as_dict(),
            "suggestion": {
                "words": suggestion.words,
                "cell": suggestion.cell and suggestion.cell.as_dict(),
            },
            "warnings": speaker.warnings,
        }
    )


def _print_table(found: Comparison) -> None:
    """Print the comparison on stdout: it is the data that was asked for."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for title in ("method", "k", "groups", "loss %", "linked %", "seconds", "frontier"):
        table.add_column(title, justify="left" if title in ("method", "frontier") else "right")
    for cell in found.cells:
        if cell.problem is not None or cell.information_loss is None or cell.linkage is None:
            table.add_row(cell.method, str(cell.k), "–", "–", "–", "–", "cannot")
            continue
        table.add_row(
            cell.method,
            str(cell.k),
            f"{cell.groups:,}",
            percent(cell.information_loss),
            f"{100 * cell.linkage.share:.1f}",
            f"{cell.seconds:.2f}",
            "*" if cell.on_frontier else "",
        )
    Console().print(table)
