"""What protect and measure say on stderr; by default protect says it in at most twenty lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from microagg.base.formatting import names, plural
from microagg.cli.show import Speaker
from microagg.evidence import Evidence
from microagg.evidence.over_time import history_words
from microagg.evidence.sentences import Caution
from microagg.measure.risk import Risk

MOST_LINES = 20
_NAMED = 8  # columns that a line names
_DECISIONS = 3  # cautions that are said in full
_CONFIDENTIAL = 2  # confidential columns whose diversity is said


class MessageLine(NamedTuple):
    """A line on stderr."""

    label: str
    words: str
    style: str = "bold"
    optional: bool = False  # whether it may be left to --verbose where there is more to say


def release_lines(evidence: Evidence, drafted: bool) -> list[MessageLine]:
    """Return what was done with the columns, how records were grouped, what it cost and what was asked."""
    roles, recoded = evidence.roles, evidence.recoded_words
    drafting = "no columns were named; microagg plan IN shows why each has its role"
    history = history_words(evidence.history, evidence.who)
    lines = [
        MessageLine("drafted", drafting if drafted else ""),
        MessageLine("protected", _listed(roles.protected)),
        MessageLine("dropped", _listed(roles.dropped)),
        MessageLine("renumbered", _listed(roles.renumbered), optional=True),
    ]
    for label, columns, who in (
        ("confidential", roles.confidential, "no attacker"),
        ("unprotected", roles.known, "an attacker"),
    ):
        if columns:
            them = "it" if len(columns) == 1 else "them"
            text = f"{_listed(columns)}; we assume that {who} knows {them}"
            lines.append(MessageLine(label, text))
    lines += [
        *_group_lines(evidence),
        MessageLine("ledger", history, optional=evidence.history is None),
        MessageLine("recoded", recoded and f"{recoded}; counted as loss", optional=True),
        MessageLine("missing", evidence.missing_words, optional=True),
        MessageLine("left out", evidence.suppressed_words),
        MessageLine("lost", evidence.loss_words),
        MessageLine("usable", evidence.fidelity_words),
        *(MessageLine("", analysis.words) for analysis in evidence.utility.analyses),
        MessageLine("attacker", evidence.alone_words),
        MessageLine("", evidence.known_words),
        MessageLine("", evidence.guessed_words),
        MessageLine("", evidence.claim_words),
        *_limit_lines(evidence),
    ]
    return [line for line in lines if line.words]


def _group_lines(evidence: Evidence) -> list[MessageLine]:
    """Say how records were grouped, by which unit, strata and weight."""
    plan, roles, parts = evidence.plan, evidence.roles, evidence.parts
    facts = [evidence.part_words(parts[0])]
    if len(parts) > 1:
        facts = [f"{facts[0]}, and {plural(len(parts) - 1, 'more partition')}"]
    if plan.units:
        column, noun = names(plan.units), str(evidence.who)
        is_named = column == evidence.who.one or column in noun
        facts.append(f"k counts {noun}" + ("" if is_named else f" ({column})"))
    if roles.strata:
        facts.append(f"no group crosses {names(roles.strata, _NAMED)}")
    if roles.weight is not None and plan.weight is not None:
        how = {
            "mean": "is swapped like a column"
            if plan.is_swapped
            else "is released as the group's mean",
            "keep": "is unprotected",
            "drop": "is left out",
        }
        facts.append(f"the weight {names([roles.weight])} {how[plan.weight.release]}")
    lines = [MessageLine("grouped", "; ".join(facts))]
    if len(parts) == 1 and parts[0].partition.gap is not None:
        word, sentence = evidence.proof(parts[0])
        proof = sentence if word == "no" else f"could do better {word} {sentence}"
        lines.append(MessageLine("", proof[0].lower() + proof[1:].rstrip("."), optional=True))
    return lines


def _limit_lines(evidence: Evidence) -> list[MessageLine]:
    """Say whether the limits of the plan and its requirements other than k hold."""
    lines = []
    result = {True: "pass", False: "fail"}
    if evidence.thresholds:
        text = "; ".join(
            f"{limit.what} {limit.found} ({limit.limit}): {result[limit.passed]}"
            for limit in evidence.thresholds
        )
        passed = all(limit.passed for limit in evidence.thresholds)
        lines.append(MessageLine("accepted", text, "bold" if passed else "bold red"))
    required = evidence.counted.required if evidence.counted else ()
    extra = [requirement for requirement in required if not requirement.is_k]
    if extra:
        passed = all(requirement.passed for requirement in extra)
        text = "; ".join(
            f"{row.words}: {result[row.passed]}, {row.found} in the worst group" for row in extra
        )
        if len(extra) > 2 and passed:
            text = f"all {len(extra)} requirements besides k pass"
        lines.append(MessageLine("required", text, optional=passed))
    return lines


def say_lines(speaker: Speaker, lines: Iterable[MessageLine], room: int | None = None) -> None:
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


def say_diversity(speaker: Speaker, risk: Risk) -> None:
    """Say how many values of confidential columns groups have, the weakest column first."""
    weakest_first = sorted(
        risk.diversity.items(), key=lambda item: (item[1].distinct_l, -item[1].t)
    )
    for name, column in weakest_first[:_CONFIDENTIAL]:
        least = f"at least {column.distinct_l:,} different values in each group"
        if column.distinct_l == 1:
            least = "in some groups all records have the same value"
        text = f"{names([name])}: {least}, entropy l {column.entropy_l:.2f}, t {column.t:.3f}"
        speaker.say("", text)
    if len(weakest_first) > _CONFIDENTIAL:
        more = plural(len(weakest_first) - _CONFIDENTIAL, "more column")
        speaker.say("", f"{more} at lower risk; see --json")


def _listed(columns: Sequence[Any]) -> str:
    """Name columns, and say how many they are where not all are named."""
    if len(columns) <= _NAMED:
        return names(columns)
    return f"{plural(len(columns), 'column')}: {names(columns, _NAMED)}"
