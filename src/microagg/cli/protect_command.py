"""The command protect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from microagg.base.formatting import names
from microagg.cli.lines import (
    MOST_LINES,
    MessageLine,
    release_lines,
    say_caution,
    say_decisions,
    say_diversity,
    say_lines,
)
from microagg.cli.show import Speaker
from microagg.cli.warmup_command import Compiling
from microagg.compile.warm import AFTER_GROUPING, needed
from microagg.engines.spark.spark_session import is_local
from microagg.errors import InputError, StopSearch
from microagg.formats.addresses import STANDARD, Place
from microagg.formats.layouts import CsvFormat
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import JobResult, run
from microagg.plan.plan import Plan

_STYLES = {"green": "bold green", "amber": "bold yellow", "red": "bold red"}


class _Listener(Observer):
    """Shows a job at a terminal."""

    def __init__(self, speaker: Speaker, job: Job, compiling: Compiling) -> None:
        self._speaker, self._job = speaker, job
        self._compiling = compiling
        self.bar: Callable[[int, int], None] | None = None
        self.asked: Callable[[], bool] = lambda: False
        self.searching = False

    def stage(self, name: str, words: str = "") -> None:
        self.searching, self._speaker.doing = False, name
        if words and name in ("bounding", "attacking"):
            self._speaker.say({"bounding": "bound"}.get(name, name), words)
        elif words:
            self._speaker.say("read", f"{self._job.source}: {words}")
        if name in ("bounding", "measuring"):
            self._compiling.wait(self.bar)
        # A search on Spark does not ask whether to go on: an interrupt ends it.
        self.searching = (
            name in ("grouping", "bounding", "attacking") and self._job.engine != "spark"
        )

    def planned(self, plan: Plan, records: int) -> None:
        self._compiling.ask(parts_of(self._job, plan, records))
        # There is no search to stop yet: an interrupt ends the command, and does not wait for the compiling.
        searching, self.searching = self.searching, False
        self._compiling.wait(self.bar, without=AFTER_GROUPING)
        self.searching = searching

    def progress(self, stage: str, done: int, total: int) -> None:
        if self.bar is not None:
            self.bar(done, total)
        if self.asked():
            raise StopSearch

    def left_out(self, words: str) -> None:
        self._speaker.say("left out", words)

    def exposed(self, words: str) -> None:
        self._speaker.warn(words)

    def written(self, files: Sequence[Place]) -> None:
        self._speaker.written = [str(path) for path in files]


def parts_of(job: Job, plan: Plan, records: int | None) -> list[str]:
    """Return the parts that a job needs compiled here; Spark compiles where it runs."""
    if job.engine == "spark":
        return needed(plan, None, bound=False, engine="spark") if is_local(job.master) else []
    return needed(plan, records, bound=job.report is not None and not job.public, engine=job.engine)


def protect(
    speaker: Speaker,
    source: Place,
    target: Place,
    verbose: bool,
    plan: Plan,
    csv: CsvFormat,
    **settings: Any,
) -> bool:
    """Protect a file, with settings of the job that are None where no flag gives them."""
    speaker.verbose = verbose
    if speaker.as_json and target == STANDARD:
        raise InputError(
            "The table goes to standard output, where --json has no place. Write one of them to a file."
        )
    flags = {name: value for name, value in settings.items() if value is not None}
    return protect_file(speaker, Job(source, target, plan, csv=csv, **flags))


def protect_file(speaker: Speaker, job: Job) -> bool:
    """Do the job and report on it; return whether the result holds."""
    job.check()  # a mistake is reported before anything is compiled
    with Compiling(speaker) as compiling:
        compiling.ask(parts_of(job, job.plan, job.about_records))  # while the table is read
        listener = _Listener(speaker, job, compiling)
        stoppable = speaker.stoppable(lambda: listener.searching)
        with speaker.progress("grouping", of_job=True) as bar, stoppable as asked:
            listener.bar, listener.asked = bar, asked
            try:
                outcome = run(job, listener)
            except StopSearch:  # there are no groups yet
                raise KeyboardInterrupt from None
    evidence = outcome.evidence
    _say(speaker, job, outcome)
    if speaker.as_json:  # some measures are computed for this alone
        drafted = ("role", "looks_like", "kind", "reason")
        speaker.give(
            {
                "input": str(job.source),
                "output": None if evidence.rejected else str(job.target),
                "report": None if job.report is None else str(job.report),
                **evidence.as_dict(),
                "left_out": outcome.left_out,
                "drafted": None
                if outcome.guesses is None
                else {
                    str(name): {key: getattr(guess, key) for key in drafted}
                    for name, guess in outcome.guesses.items()
                },
                "seconds": outcome.seconds,
            }
        )
    if evidence.rejected and speaker.quiet:  # else nothing would say why the exit code is 1
        speaker.warn(evidence.rejected)
    return not evidence.rejected


def _say(speaker: Speaker, job: Job, outcome: JobResult) -> None:
    """Say what was done, what it cost, what is to be decided and the verdict, in twenty lines."""
    evidence, report = outcome.evidence, job.report
    if speaker.verbose:
        for name, guess in (outcome.guesses or {}).items():
            speaker.say(guess.role, f"{names([name])}: {guess.reason}")
    lines = release_lines(evidence, outcome.guesses is not None)
    counted = "the rejected file" if evidence.rejected else str(job.target)
    end = [MessageLine("verified", f"{counted}, read back: {evidence.counted_words}")]
    if report is not None and report in outcome.files:
        every = report.with_suffix(".json").name
        end.append(MessageLine("report", f"{report}, and every number in {every}"))
    if evidence.rejected:
        end.append(MessageLine("rejected", evidence.rejected, "bold red"))
    end.append(MessageLine(evidence.verdict, evidence.verdict_words, _STYLES[evidence.verdict]))
    if speaker.verbose:
        say_lines(speaker, lines)
        for part in evidence.parts[1:]:
            speaker.say("grouped", evidence.part_words(part))
        speaker.say("hidden", evidence.hidden_words)
        say_diversity(speaker, evidence.alone)
        for caution in evidence.cautions:
            say_caution(speaker, caution)
    else:
        room = MOST_LINES - speaker.lines - len(end)
        cautions = sum(caution.severity != "note" for caution in evidence.cautions)
        say_lines(speaker, lines, room - min(cautions, 2))
        say_decisions(speaker, evidence.cautions, MOST_LINES - speaker.lines - len(end))
    say_lines(speaker, end)
