"""What the command protect says and shows on Spark."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from microagg.cli.lines import (
    MOST_LINES,
    STYLES,
    Line,
    accepted_line,
    done_lines,
    report_lines,
    required_line,
    say_caution,
    say_decisions,
    say_lines,
    strict_line,
    verified_line,
)
from microagg.cli.show import Speaker
from microagg.errors import InputError
from microagg.findings import (
    amber_words,
    green_words,
    group_loss_words,
    linked_words,
    percent_words,
    red_words,
)
from microagg.job import Observer
from microagg.plan import Plan
from microagg.scale_out.spark_job import protect_files
from microagg.scale_out.spark_release import SparkEvidence
from microagg.spark import check_spark
from microagg.verify import Verification
from microagg.words import plural

__all__ = ["protect_on_spark"]


class _Listener(Observer):
    def __init__(self, speaker: Speaker, source: Path) -> None:
        self._speaker, self._source = speaker, source

    def stage(self, name: str, words: str = "") -> None:
        if words:
            self._speaker.say("read", f"{self._source}: {words}")


def protect_on_spark(
    speaker: Speaker,
    source: Path,
    target: Path,
    plan: Plan,
    master: str | None,
    strict: bool,
    report: Path | None,
    more: bool,
) -> bool:
    """Protect Parquet files on Spark and say so; return whether the result holds."""
    check_spark()
    if more:
        raise InputError(
            "On Spark there are no analyses and no report for readers, which need all records side by side. "
            "Leave --public, --analysis and --dominance out, or say --engine disk."
        )
    if plan.blocks[0].columns is None:
        raise InputError(
            "On Spark the columns to protect are named; microagg plan IN > plan.toml drafts them from a file."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of Spark about versions of pandas
        hears = _Listener(speaker, source)
        found = protect_files(source, target, plan, master, hears, report=report)
    end = [*report_lines(report), *(strict_line(found.verdict) if strict else [])]
    _say(speaker, target, plan, found, end)
    speaker.give(
        {"input": str(source), "output": str(target), "plan": plan.as_dict(), **found.as_dict()}
    )
    return found.verdict == "green" or (found.verdict == "amber" and not strict)


def _say(
    speaker: Speaker, target: Path, plan: Plan, found: SparkEvidence, end: Sequence[Line]
) -> None:
    roles, k = found.roles, found.verification[0].k
    loss, of_groups = found.information_loss, found.group_loss
    unit = plan.unit_of(plan.blocks[0]).column
    counts = "" if unit is None else f"; k counts {plan.words_of_unit(unit)}"
    lines = [
        *done_lines(plan, roles, drafted=False),
        Line("grouped", f"{plural(found.groups, 'group')}, k = {k:,}{counts}"),
        Line(
            "lost", f"{percent_words(loss)} of the information{group_loss_words(loss, of_groups)}"
        ),
        Line(
            "attacker",
            "an attacker who knows the true values of the protected columns finds the right record in "
            f"{linked_words(found.alone.linkage)} of the cases",
        ),
        *accepted_line(found.thresholds),
        *required_line(found.required),
    ]
    if roles.known:
        also = (
            "an attacker who also knows the unprotected columns finds the right record in "
            f"{linked_words(found.with_known.linkage)} of the cases"
        )
        lines.append(Line("", also))
    end = [
        *(verified_line(target, _counted(plan, one)) for one in found.verification),
        *end,
        Line(found.verdict, _verdict_words(found, k, bool(roles.known)), STYLES[found.verdict]),
    ]
    say_lines(speaker, lines, MOST_LINES - speaker.lines - len(end) - 2)
    if speaker.verbose:
        for caution in found.cautions:
            say_caution(speaker, caution)
    else:
        say_decisions(speaker, found.cautions, MOST_LINES - speaker.lines - len(end))
    say_lines(speaker, end)


def _counted(plan: Plan, found: Verification) -> str:
    rarest = plan.words_of_unit(found.unit).counted(found.smallest)
    return (
        f"{plural(found.records, 'record')} with {plural(found.combinations, 'combination')}; the rarest is "
        f"shared by {rarest}"
    )


def _verdict_words(found: SparkEvidence, k: int, known: bool) -> str:
    where = "in the written files"
    if found.verdict == "red":
        return red_words(k, found.holds, found.thresholds)
    if found.verdict == "green":
        return green_words(k, where, known)
    open_points = sum(caution.severity == "amber" for caution in found.cautions)
    return amber_words(k, where, found.with_known.below_k, open_points)
