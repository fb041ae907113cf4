"""What the commands protect and plan say and show."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from microagg.cli.show import Speaker
from microagg.draft import Guess, completed
from microagg.errors import StopSearch
from microagg.evidence import Evidence
from microagg.findings import Caution
from microagg.job import Job, Observer, Outcome, run
from microagg.measure.risk import Risk
from microagg.measure.utility import Utility
from microagg.plan import Plan
from microagg.tables.files import CsvFormat, read_file
from microagg.tables.frames import Frame
from microagg.words import names, plural

__all__ = [
    "STYLES",
    "draft_plan",
    "protect_file",
    "say_analyses",
    "say_caution",
    "say_secrets",
]

STYLES = {"green": "bold green", "amber": "bold yellow", "red": "bold red"}
_REASONS = 12  # columns of which a draft's reason is printed
_SECRETS = 2  # confidential columns that are told of


class _Listener(Observer):
    """Tells a person at a terminal."""

    def __init__(self, speaker: Speaker, job: Job, compiled: Callable[..., None]) -> None:
        self._speaker, self._job = speaker, job
        self._compiled = compiled
        self.bar: Callable[[int, int], None] | None = None
        self.asked: Callable[[], bool] = lambda: False
        self.searching = False

    def stage(self, name: str, words: str = "") -> None:
        self.searching = False
        if words and name == "bounding":
            self._speaker.say("bound", words)
        elif words:
            self._speaker.say("read", f"{self._job.source}: {words}")
        if name == "grouping":  # the first stage that needs what is being compiled
            self._compiled(self.bar)
        self.searching = name in ("grouping", "bounding")

    def progress(self, stage: str, done: int, total: int) -> None:
        if self.bar is not None:
            self.bar(done, total)
        if self.asked():
            raise StopSearch

    def left_out(self, words: str) -> None:
        self._speaker.say("left out", words)

    def written(self, files: Sequence[Path]) -> None:
        self._speaker.written = [str(path) for path in files]


def protect_file(speaker: Speaker, job: Job, strict: bool, compiled: Callable[..., None]) -> bool:
    """Do the job and say so; return whether the result holds.

    ``compiled`` waits until what the job needs is compiled, and tells a bar how much is.
    """
    listener = _Listener(speaker, job, compiled)
    with _watching(speaker, listener):
        try:
            outcome = run(job, listener)
        except StopSearch:  # there are no groups yet
            raise KeyboardInterrupt from None
    evidence = outcome.evidence
    _say(speaker, job, outcome)
    if speaker.as_json:  # some measures are computed for this alone
        speaker.give(_as_dict(job, outcome))
    holds = evidence.verdict == "green" or (evidence.verdict == "amber" and not strict)
    if not holds and strict and evidence.verdict == "amber":
        speaker.say("strict", "amber does not do: exit 1", style="bold red")
    if not holds and speaker.quiet:  # who is told nothing else is told why the exit code is 1
        speaker.warn(evidence.verdict_words)
    return holds


def _as_dict(job: Job, outcome: Outcome) -> dict[str, Any]:
    return {
        "input": str(job.source),
        "output": str(job.target),
        "report": None if job.report is None else str(job.report),
        **outcome.evidence.as_dict(),
        "left_out": outcome.left_out,
        "drafted": None if outcome.guesses is None else _drafted(outcome.guesses),
        "seconds": outcome.seconds,
    }


@contextlib.contextmanager
def _watching(speaker: Speaker, listener: _Listener) -> Iterator[None]:
    stoppable = speaker.stoppable(lambda: listener.searching)
    with speaker.progress("grouping") as bar, stoppable as asked:
        listener.bar, listener.asked = bar, asked
        yield


def _drafted(guesses: Mapping[Any, Guess]) -> dict[str, Any]:
    return {
        str(name): {"role": found.role, "looks_like": found.looks_like, "reason": found.reason}
        for name, found in guesses.items()
    }


def _say(speaker: Speaker, job: Job, outcome: Outcome) -> None:
    evidence = outcome.evidence
    if outcome.guesses is not None:
        _say_draft(speaker, outcome.guesses)
    roles = evidence.roles
    speaker.say("protected", names(roles.protected, 40))
    for label, columns in (
        ("dropped", roles.dropped),
        ("renumbered", roles.renumbered),
        ("confidential", roles.confidential),
    ):
        if columns:
            speaker.say(label, names(columns, 40))
    if evidence.plan.units:
        speaker.say("unit", names(evidence.plan.units))
    if roles.strata:
        which = "" if evidence.plan.shared_strata == roles.strata else " of their blocks"
        speaker.say("strata", f"{names(roles.strata, 40)}; no group{which} holds records of two")
    if roles.weight is not None and evidence.plan.weight is not None:
        how = {
            "mean": "released as the group's mean, so that weighted totals stay",
            "keep": "left as it is, and so known",
            "drop": "left out",
        }[evidence.plan.weight.release]
        speaker.say("weight", f"{names([roles.weight])}, {how}")
    known = names(roles.known, 40)
    left = "as it is" if len(roles.known) == 1 else "as they are"
    speaker.say("known", f"{known}, left {left}" if known else "no column is left as it is")
    for part in evidence.parts:
        speaker.say("grouped", evidence.part_words(part))
        word, sentence = evidence.proof(part)
        if part.partition.gap is not None:
            proof = sentence if word == "no" else f"could do better {word} {sentence}"
            speaker.say("", proof[0].lower() + proof[1:].rstrip("."))
    if evidence.missing_words:
        speaker.say("missing", evidence.missing_words)
    speaker.say("lost", evidence.loss_words)
    say_analyses(speaker, evidence.utility)
    speaker.say("hidden", evidence.hidden_words)
    speaker.say("attacker", evidence.alone_words)
    speaker.say("", evidence.known_words)
    say_secrets(speaker, evidence.alone)
    for threshold in evidence.thresholds:
        result = "pass" if threshold.passed else "fail"
        speaker.say(
            "accepted",
            f"{threshold.what}: {threshold.limit}, found {threshold.found}: {result}",
            style="bold" if threshold.passed else "bold red",
        )
    for one in evidence.counted.required if evidence.counted else ():
        speaker.say(
            "required",
            f"{one.words}: {'pass' if one.passed else 'fail'}, {one.found} in the worst group",
        )
    speaker.say("verified", f"{job.target}: {evidence.counted_words}")
    say_cautions(speaker, evidence)
    if job.report is not None:
        twin = job.report.with_suffix(".json").name
        speaker.say("report", f"{job.report}, and every number in {twin}")
    verdict = evidence.verdict
    speaker.say(verdict, evidence.verdict_words, style=STYLES[verdict])


def say_analyses(speaker: Speaker, utility: Utility) -> None:
    """Say what became of the user's own analyses."""
    for analysis in utility.analyses:
        speaker.say(
            "",
            f"{analysis.formula}: the 95 % intervals before and after overlap by "
            f"{analysis.overlap:.2f} on average, at worst {analysis.worst:.2f} (1: the same, 0: they touch)",
        )


def say_secrets(speaker: Speaker, risk: Risk) -> None:
    """Say how confidential columns and magnitudes are spread in the groups, the weakest first."""
    found = sorted(risk.diversity.items(), key=lambda item: (item[1].distinct_l, -item[1].t))
    for name, column in found[:_SECRETS]:
        values = plural(column.distinct_l, "different value")
        speaker.say(
            "",
            f"{names([name])} in groups: at least {values}, entropy l {column.entropy_l:.2f}, "
            f"t {column.t:.3f}",
        )
    if len(found) > _SECRETS:
        more = plural(len(found) - _SECRETS, "more confidential column")
        speaker.say("", f"{more}, less easily told, with --json")
    for name, rule in risk.dominance.items():
        broken = f"is broken in {plural(rule.classes_over, 'group')}"
        speaker.say(
            "",
            f"{names([name])}: the (1, {rule.percent:g} %) rule {'holds' if rule.holds else broken}",
        )


def say_cautions(speaker: Speaker, evidence: Evidence) -> None:
    """Say what is to be weighed; warnings about disclosure are said in a quiet run too."""
    for caution in evidence.cautions:
        say_caution(speaker, caution)


def say_caution(speaker: Speaker, caution: Caution) -> None:
    """Say one caution."""
    if caution.severity == "note":
        speaker.say("note", caution.sentence)
    elif not caution.disclosure:
        speaker.say("usable?", caution.sentence, style="bold yellow")
    else:
        speaker.warn(caution.sentence)


def _say_draft(speaker: Speaker, guesses: Mapping[Any, Guess]) -> None:
    chosen = [name for name, found in guesses.items() if found.role == "protect"]
    left = [name for name, found in guesses.items() if found.role != "protect"]
    speaker.say("drafted", "nobody named the columns to protect, so what looks like a quantity is:")
    for name in chosen[:_REASONS]:
        speaker.say("", f"{names([name])}: {guesses[name].reason}")
    if len(chosen) > _REASONS:
        speaker.say("", f"and {len(chosen) - _REASONS} more")
    if left:
        speaker.say("left", "as they are, since they do not look like quantities:")
    for name in left[:_REASONS]:
        speaker.say("", f"{names([name])}: {guesses[name].reason}")
    if len(left) > _REASONS:
        speaker.say("", f"and {len(left) - _REASONS} more")
    speaker.say("", "microagg plan IN > plan.toml writes this down for editing")


def draft_plan(
    speaker: Speaker, source: Path, plan: Plan, csv: CsvFormat | None, sheet: str | None = None
) -> None:
    """Print the plan that a table and the flags give, with a reason for each column."""
    whole = completed(Frame(read_file(source, csv=csv, sheet=sheet).table), plan)
    speaker.give({"input": str(source), "plan": whole.as_dict(), "notes": dict(whole.notes)})
    if not speaker.as_json:
        print(whole.to_toml(), end="")
