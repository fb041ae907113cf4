"""What the command protect says by default, in at most twenty lines: done, cost, to decide, verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from microagg.base.formatting import names, plural
from microagg.cli.show import Speaker
from microagg.evidence import Evidence
from microagg.evidence.measured import Required
from microagg.evidence.sentences import Caution, Threshold
from microagg.measure.risk import Risk
from microagg.measure.utility import Utility
from microagg.plan.plan import Plan, Roles

__all__ = [
    "MOST_LINES",
    "STYLES",
    "Line",
    "accepted_line",
    "analysis_lines",
    "cost_lines",
    "dominance_lines",
    "done_lines",
    "grouped_lines",
    "rejected_line",
    "report_lines",
    "required_line",
    "say_caution",
    "say_decisions",
    "say_lines",
    "verified_line",
]

MOST_LINES = 20
STYLES = {"green": "bold green", "amber": "bold yellow", "red": "bold red"}
_NAMED = 8  # columns that a line names
_DECISIONS = 3  # cautions that are said in full
_ANALYSES = 2


class Line(NamedTuple):
    """A line on stderr."""

    label: str
    words: str
    style: str = "bold"
    optional: bool = False
    """Whether it may be left to --verbose where there is more to say."""


def done_lines(plan: Plan, roles: Roles, drafted: bool) -> list[Line]:
    """Say what became of the columns."""
    found = []
    if drafted:
        found.append(
            Line("drafted", "no columns were named; microagg plan IN shows why each has its role")
        )
    found.append(Line("protected", _listed(roles.protected)))
    for label, columns in (("dropped", roles.dropped), ("renumbered", roles.renumbered)):
        if columns:
            found.append(Line(label, _listed(columns), optional=label == "renumbered"))
    if roles.confidential:
        them = _it_or_them(roles.confidential)
        words = f"{_listed(roles.confidential)}; we assume that no attacker knows {them}"
        found.append(Line("confidential", words))
    if roles.known:
        them = _it_or_them(roles.known)
        words = f"{_listed(roles.known)}; we assume that an attacker knows {them}"
        found.append(Line("unprotected", words))
    return found


def grouped_lines(evidence: Evidence) -> list[Line]:
    """Say how records were grouped, by which unit, strata and weight."""
    plan, roles, parts = evidence.plan, evidence.roles, evidence.parts
    words = [evidence.part_words(parts[0])]
    if len(parts) > 1:
        words = [f"{words[0]}, and {plural(len(parts) - 1, 'more partition')}"]
    if plan.units:
        column = names(plan.units)
        noun = str(evidence.who)
        words.append(
            f"k counts {noun}"
            + ("" if column == evidence.who.one or column in noun else f" ({column})")
        )
    if roles.strata:
        words.append(f"no group crosses {names(roles.strata, _NAMED)}")
    if roles.weight is not None and plan.weight is not None:
        how = {
            "mean": "is released as the group's mean",
            "keep": "is unprotected",
            "drop": "is left out",
        }
        words.append(f"the weight {names([roles.weight])} {how[plan.weight.release]}")
    found = [Line("grouped", "; ".join(words))]
    if len(parts) == 1 and parts[0].partition.gap is not None:
        word, sentence = evidence.proof(parts[0])
        proof = sentence if word == "no" else f"could do better {word} {sentence}"
        found.append(Line("", proof[0].lower() + proof[1:].rstrip("."), optional=True))
    return found


def cost_lines(evidence: Evidence) -> list[Line]:
    """Say what protection cost, and what an attacker still gains."""
    found = []
    if evidence.recoded_words:
        found.append(Line("recoded", f"{evidence.recoded_words}; counted as loss", optional=True))
    if evidence.missing_words:
        found.append(Line("missing", evidence.missing_words, optional=True))
    if evidence.suppressed_words:
        found.append(Line("left out", evidence.suppressed_words))
    found.append(Line("lost", evidence.loss_words))
    found += analysis_lines(evidence.utility)[:_ANALYSES]
    found.append(Line("attacker", evidence.alone_words))
    if evidence.known_words:
        found.append(Line("", evidence.known_words))
    if evidence.claim_words:
        found.append(Line("", evidence.claim_words))
    return [*found, *dominance_lines(evidence.alone)]


def dominance_lines(risk: Risk) -> list[Line]:
    """Say whether the dominance rules that were asked for hold."""
    return [
        Line("", f"{names([name])}: the (1, {rule.percent:g} %) rule holds", optional=True)
        if rule.holds
        else Line(
            "",
            f"{names([name])}: the (1, {rule.percent:g} %) rule is broken in "
            f"{plural(rule.classes_over, 'group')}",
        )
        for name, rule in risk.dominance.items()
    ]


def analysis_lines(utility: Utility) -> list[Line]:
    """Say what became of the user's own analyses."""
    return [Line("", analysis.words) for analysis in utility.analyses]


def accepted_line(thresholds: Sequence[Threshold]) -> list[Line]:
    """Say whether the release keeps to what the plan accepts."""
    if not thresholds:
        return []
    words = "; ".join(
        f"{one.what} {one.found} ({one.limit}): {'pass' if one.passed else 'fail'}"
        for one in thresholds
    )
    passed = all(one.passed for one in thresholds)
    return [Line("accepted", words, "bold" if passed else "bold red")]


def required_line(required: Sequence[Required]) -> list[Line]:
    """Say whether groups satisfy what is required beside k."""
    extra = [one for one in required if not one.is_k]
    if not extra:
        return []
    if len(extra) > 2 and all(one.passed for one in extra):
        return [Line("required", f"all {len(extra)} requirements besides k pass", optional=True)]
    words = "; ".join(
        f"{one.words}: {'pass' if one.passed else 'fail'}, {one.found} in the worst group"
        for one in extra
    )
    return [Line("required", words, optional=all(one.passed for one in extra))]


def verified_line(target: str, counted: str) -> Line:
    """Say what was counted in the written file."""
    return Line("verified", f"{target}, read back: {counted}")


def report_lines(report: Path | None) -> list[Line]:
    """Say where the report is."""
    if report is None:
        return []
    return [Line("report", f"{report}, and every number in {report.with_suffix('.json').name}")]


def rejected_line(rejected: str) -> list[Line]:
    """Say why the file was not released and the exit code is 1."""
    return [Line("rejected", rejected, "bold red")] if rejected else []


def say_lines(speaker: Speaker, lines: Iterable[Line], room: int | None = None) -> None:
    """Say lines; where there are more than there is room for, the optional ones are left out."""
    said = list(lines)
    while room is not None and len(said) > room and any(line.optional for line in said):
        said.remove([line for line in said if line.optional][-1])
    for line in said:
        speaker.say(line.label, line.words, line.style)


def say_decisions(speaker: Speaker, cautions: Sequence[Caution], room: int) -> None:
    """Say what is to be decided, the worst first; in a quiet run every warning about disclosure."""
    weighty = sorted(
        (caution for caution in cautions if caution.severity != "note"),
        key=lambda caution: caution.severity != "amber",
    )
    most = len(weighty) if speaker.quiet else max(1, min(_DECISIONS, room))
    if len(weighty) > most and most == room:
        most = max(1, most - 1)  # one line says that there are more
    for caution in weighty[:most]:
        say_caution(speaker, caution)
    rest = weighty[most:]
    if rest:
        columns = list(dict.fromkeys(name for caution in rest for name in caution.columns))
        about = f", about {names(columns, _NAMED)}" if columns else ""
        speaker.say(
            "more", f"{plural(len(rest), 'more warning')}{about}: see --verbose", "bold yellow"
        )


def say_caution(speaker: Speaker, caution: Caution) -> None:
    """Say one caution; warnings about disclosure are said in a quiet run too."""
    if caution.severity == "note":
        speaker.say("note", caution.sentence)
    elif caution.disclosure:
        speaker.warn(caution.sentence)
    else:
        speaker.say("usable?", caution.sentence, "bold yellow")


def _it_or_them(columns: Sequence[Any]) -> str:
    return "it" if len(columns) == 1 else "them"


def _listed(columns: Sequence[Any]) -> str:
    """Name columns, and say how many they are where not all are named."""
    if len(columns) <= _NAMED:
        return names(columns)
    return f"{len(columns)} columns: {names(columns, _NAMED)}"
