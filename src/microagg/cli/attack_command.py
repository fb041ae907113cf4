"""The command attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microagg.base.formatting import names, plural, share, table_size
from microagg.cli.show import Speaker
from microagg.comparing.attack import attack
from microagg.engines.memory.control_group import CONTROL_SHARE, TRIALS
from microagg.errors import InputError
from microagg.formats.addresses import Place
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.job.job import numbers_of
from microagg.measure.attack import ANSWERS, Attacks, seconds_needed
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target, write_report
from microagg.report.model import now, versions
from microagg.tables.numbers_in_text import MISSING_WORDS


def attack_files(
    speaker: Speaker,
    original: Place,
    released: Place | None,
    control: Place | None,
    plan: Plan | None,
    csv: CsvFormat,
    report: Path | None,
    *,
    known: list[str] | None,
    secret: str | None,
    attacks: int,
) -> None:
    """Attack a released file, or what a plan would release, and say what was found.

    Parameters
    ----------
    original, released, control : files; ``released`` and ``control`` are None with a plan
    plan : by which a part of ``original`` is protected; None: ``released`` is attacked
    csv : how CSV files are written
    report : where to write the card, or None
    known, secret : columns that the attacker knows, and the one to guess; None: all, each in turn
    attacks : attempts for each question
    """
    if (plan is None) == (released is None):
        raise InputError(
            "An attack needs either a released file or --plan, by which one is made; "
            + ("both were given." if plan else "neither was given.")
        )
    if plan is not None and control is not None:
        raise InputError("With --plan, controls come from the file itself; leave --control out.")
    places = [place for place in (original, released, control) if place is not None]
    if report is not None:
        check_report_target(report, *(place for place in places if isinstance(place, Path)))
    with local_copies(*places) as files:
        tables = [read_file(path, numbers_of(plan or Plan()), csv).table for path in files]
    for place, table in zip(places, tables, strict=True):
        speaker.say("read", f"{place}: {table_size(table.num_rows, table.num_columns)}")
    tables_named = [
        word for word, place in (("released", released), ("control", control)) if place is not None
    ]
    others = dict(zip(tables_named, tables[1:], strict=True))
    speaker.say("attacking", _ahead(tables[0], others, plan, attacks))
    if known:
        speaker.say("known", names(known, 40))
    with speaker.stoppable() as stopped, speaker.progress("attacking") as bar:
        result = attack(
            tables[0],
            **others,
            known=known,
            secret=secret,
            plan=plan,
            attacks=attacks,
            missing_words=MISSING_WORDS,
            progress=bar,
            should_stop=stopped,
        )
    for label, text in result.lines:
        speaker.say(label, text)
    if report is not None:
        write_report(
            _card(result, str(original), str(released or "what the plan would release")), report
        )
        speaker.say("card", str(report))
    speaker.give(result.as_dict())


def _ahead(original: Any, others: dict[str, Any], plan: Plan | None, attacks: int) -> str:
    """Say how long it will take."""
    n, d = original.num_rows, original.num_columns
    released = others["released"].num_rows if "released" in others else n
    controls = others["control"].num_rows if "control" in others else 0
    if plan is not None:
        controls = round(CONTROL_SHARE * n)
    seconds = round(seconds_needed(n, released, controls, d, attacks))
    time = f"about {plural(max(1, seconds), 'second')}"
    if plan is not None:
        trials = plural(TRIALS, "trial")
        time = f"{trials} with {share(CONTROL_SHARE)} of the people as controls, each {time} after protecting"
    return f"{time}; Ctrl-C keeps what is done"


def _card(result: Attacks, original: str, released: str) -> dict[str, Any]:
    """Return what the card for the data-protection officer shows, and its JSON holds."""
    return {
        "kind": "attack",
        "when": now(),
        "original": original,
        "released": released,
        "attacks": [
            {"name": name, "answers": ANSWERS[name], **figure.as_dict()}
            for name, figure in result.questions.items()
        ],
        "notes": result.notes,
        "columns": [
            {"name": str(name), "residual": risk._asdict()}
            for name, risk in result.at_greatest_risk
        ],
        "assumed": result.assumed,
        "not_tried": result.not_tried,
        "figures": result.as_dict(),
        "versions": versions(),
    }
