"""What the command protect says and shows on Spark."""

from __future__ import annotations

import warnings
from pathlib import Path

from microagg.cli.protect import STYLES, say_caution
from microagg.cli.show import Speaker
from microagg.errors import InputError
from microagg.findings import group_loss_words, linked_words, percent_words
from microagg.job import Observer
from microagg.plan import Plan
from microagg.scale_out.spark_job import protect_files
from microagg.scale_out.spark_release import SparkEvidence
from microagg.spark import check_spark
from microagg.words import among_fewer, names, share

__all__ = ["protect_on_spark"]


class _Listener(Observer):
    def __init__(self, speaker: Speaker, source: Path) -> None:
        self._speaker, self._source = speaker, source

    def stage(self, name: str, words: str = "") -> None:
        self._speaker.say(
            "" if not words else "read", f"{self._source}: {words}" if words else name
        )


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
    _say(speaker, plan, target, found, report)
    speaker.give(
        {"input": str(source), "output": str(target), "plan": plan.as_dict(), **found.as_dict()}
    )
    return found.verdict == "green" or (found.verdict == "amber" and not strict)


def _say(
    speaker: Speaker, plan: Plan, target: Path, found: SparkEvidence, report: Path | None
) -> None:
    who = plan.words_of_unit(plan.unit_of(plan.blocks[0]).column)
    k = found.verification[0].k
    speaker.say("protected", names(plan.blocks[0].columns or (), 40))
    speaker.say("grouped", f"{found.groups:,} groups")
    loss, of_groups = found.information_loss, found.group_loss
    speaker.say(
        "lost",
        f"{percent_words(loss)} of the information (100·SSE/SST){group_loss_words(loss, of_groups)}",
    )
    speaker.say(
        "attacker",
        "who knows a person's true values in the protected columns finds the right record for "
        f"{linked_words(found.alone.linkage)} of the people",
    )
    speaker.say(
        "",
        f"who also knows the columns left as they are, for {linked_words(found.with_known.linkage)}; "
        f"{share(found.with_known.below_k)} of the records are {among_fewer(k, who)}",
    )
    for rule in found.required:
        speaker.say(
            "required",
            f"{rule.words}: {'pass' if rule.passed else 'fail'}, {rule.found} in the worst group",
        )
    for one in found.thresholds:
        speaker.say(
            "accepted",
            f"{one.what}: {one.limit}, found {one.found}: {'pass' if one.passed else 'fail'}",
        )
    for counted in found.verification:
        rarest = plan.words_of_unit(counted.unit).counted(counted.smallest)
        speaker.say(
            "verified",
            f"{target}: {counted.records:,} records, {counted.combinations:,} combinations, the rarest "
            f"shared by {rarest}; k = {counted.k:,} holds",
        )
    for caution in found.cautions:
        say_caution(speaker, caution)
    if report is not None:
        twin = report.with_suffix(".json").name
        speaker.say("report", f"{report}, and every number in {twin}")
    words = {
        "green": f"k = {k:,} holds in the written files, also for who knows every column left as it is.",
        "amber": f"k = {k:,} holds in the written files for the protected columns alone, with cautions.",
        "red": "The result does not keep to what the plan accepts.",
    }
    speaker.say(found.verdict, words[found.verdict], style=STYLES[found.verdict])
