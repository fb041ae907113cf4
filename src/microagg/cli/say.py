"""The sentences of the command about loss, risk and verification."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from microagg.cli.show import Speaker, names

if TYPE_CHECKING:
    from microagg.measure.risk import Risk
    from microagg.measure.utility import Utility
    from microagg.protect import Release
    from microagg.results import Partition
    from microagg.verify import Verification

__all__ = ["say_loss", "say_parts", "say_report", "say_risk", "say_verification"]


def say_parts(speaker: Speaker, release: Release) -> None:
    """Say which groups there are."""
    for columns, part in release.parts:
        which = f"{names(columns)}: " if len(release.parts) > 1 else ""
        how = f"{part.method}, refined" if "refine" in part.options else part.method
        speaker.say(
            "grouped",
            f"{which}by {how}, k = {part.k}: {part.n_groups:,} groups of "
            f"{part.sizes.min():,} to {part.sizes.max():,} records",
        )
        if part.stopped:
            speaker.say("", "stopped early, as asked: these are the best groups found until then")
        if part.gap is not None:
            speaker.say("", _proof(part))


def _proof(part: Partition) -> str:
    if part.gap == 0:
        return f"proved optimal: no groups of {part.k} or more lose less"
    least = percent(part.information_loss * (1 - (part.gap or 0)))
    return (
        f"proved: no groups of {part.k} or more lose less than {least} %, so at most "
        f"{percent(100 * (part.gap or 0))} % of this loss could be saved"
    )


def say_loss(speaker: Speaker, loss: Utility) -> None:
    """Say what was lost."""
    worst = max(loss.by_column, key=lambda name: loss.by_column[name])
    speaker.say(
        "lost",
        f"{percent(loss.information_loss)} % of the information (100·SSE/SST); most in "
        f"{names([worst])}, {percent(loss.by_column[worst])} %",
    )
    for analysis in loss.analyses:
        speaker.say(
            "",
            f"{analysis.formula}: the 95 % intervals before and after overlap by "
            f"{analysis.overlap:.2f} on average, at worst {analysis.worst:.2f} (1: the same, 0: they touch)",
        )


def say_risk(speaker: Speaker, risk: Risk) -> None:
    """Say what an attacker gains."""
    now = (
        f"each record shares its protected values with at least {risk.smallest_class - 1:,} others"
        if risk.smallest_class > 1
        else f"{100 * risk.unique_after:.1f} % of the records share their values with no other"
    )
    speaker.say(
        "gained", f"{now}; before, {100 * risk.unique_before:.1f} % of the records were unique"
    )
    found = risk.linkage
    interval = (
        f" ({100 * found.low:.1f} to {100 * found.high:.1f} %, from a sample of {found.records:,})"
        if found.sampled
        else ""
    )
    speaker.say(
        "",
        f"who knows a person's true values finds the right record for "
        f"{100 * found.share:.1f} % of the people{interval}; a blind guess, "
        f"{_small(100 * risk.blind_guess)} %",
    )
    for name, column in risk.diversity.items():
        speaker.say(
            "",
            f"{names([name])} in groups: at least {column.distinct_l} distinct values, entropy "
            f"l {column.entropy_l:.2f}, t {column.t:.3f}",
        )
    for name, rule in risk.dominance.items():
        speaker.say(
            "",
            f"{names([name])}: the (1, {rule.percent:g} %) rule "
            + ("holds" if rule.holds else f"is broken in {rule.classes_over:,} groups"),
        )


def percent(value: float) -> str:
    """Two decimals, or one digit of what would show as nothing."""
    return f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.1g}"


def _small(value: float) -> str:
    """One decimal, or one digit of what would show as nothing."""
    return f"{value:.1f}" if value >= 0.1 else f"{value:.1g}"


def say_verification(
    speaker: Speaker, path: Path, found: Verification, scope: str = "holds"
) -> None:
    """Say what was counted in a file."""
    counted = (
        f"{path}: {found.records:,} records, {found.combinations:,} combinations, the rarest "
        f"{found.smallest:,} times"
    )
    if found.holds:
        speaker.say("verified", f"{counted}; k = {found.k} {scope}", style="bold green")
    else:
        speaker.say(
            "fails",
            f"{counted}; k = {found.k} does not hold for {found.records_below_k:,} records",
            style="bold red",
        )


def say_report(speaker: Speaker, path: Path) -> None:
    """Say where the evidence is."""
    speaker.say("report", f"{path}, and every number in {path.with_suffix('.json').name}")
