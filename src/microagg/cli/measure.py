"""What the command measure does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from microagg.cli.say import say_loss, say_risk
from microagg.cli.show import Speaker, names
from microagg.measure.analyses import columns_of
from microagg.measure.linkage import check_sample
from microagg.measure.pairs import align, pair
from microagg.measure.risk import Ask, risk_of
from microagg.measure.utility import utility_of
from microagg.protect import Clock
from microagg.tables.files import CsvFormat, read_file

__all__ = ["measure_files"]


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
        before, after = (read_file(path, wanted, form)[0] for path in (original, protected))
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
