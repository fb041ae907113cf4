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
from microagg.plan.forms import split_names
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target, write_report
from microagg.report.model import now, versions
from microagg.tables.numbers_in_text import MISSING_WORDS


def attack_files(
    speaker: Speaker,
    original: Place,
    released: Place | None,
    control: Place | None,
    plan: Path | None,
    csv: CsvFormat,
    report: Path | None,
    known: list[str] | None,
    secret: str | None,
    attacks: int,
) -> None:
    """Attack a released file, or what a plan would release, and say what was found."""
    if (plan is None) == (released is None):
        raise InputError(
            "An attack needs either a released file or --plan, by which one is made; "
            + ("both were given." if plan else "neither was given.")
        )
    if plan is not None and control is not None:
        raise InputError("With --plan, controls come from the file itself; leave --control out.")
    decided = None if plan is None else Plan.from_toml(plan)
    files = {"original": original, "released": released, "control": control}
    places = {name: place for name, place in files.items() if place is not None}
    if report is not None:
        check_report_target(report, *(p for p in places.values() if isinstance(p, Path)))
    with local_copies(*places.values()) as copies:
        numbers = numbers_of(decided or Plan())
        tables = {
            name: read_file(path, numbers, csv).table
            for name, path in zip(places, copies, strict=True)
        }
    for name, place in places.items():
        size = table_size(tables[name].num_rows, tables[name].num_columns)
        speaker.say("read", f"{place}: {size}")
    n, d = tables["original"].num_rows, tables["original"].num_columns
    records = {name: table.num_rows for name, table in tables.items()}
    controls = records.get("control", 0) if decided is None else round(CONTROL_SHARE * n)
    seconds = round(seconds_needed(n, records.get("released", n), controls, d, attacks))
    time = f"about {plural(max(1, seconds), 'second')}"
    if decided is not None:
        trials = plural(TRIALS, "trial")
        time = f"{trials} with {share(CONTROL_SHARE)} of the people as controls, each {time} after protecting"
    speaker.say("attacking", f"{time}; Ctrl-C keeps what is done")
    named = split_names(known)
    if named:
        speaker.say("known", names(named, 40))
    with speaker.stoppable() as stopped, speaker.progress("attacking") as bar:
        result = attack(
            **tables,
            known=named,
            secret=secret,
            plan=decided,
            attacks=attacks,
            missing_words=MISSING_WORDS,
            progress=bar,
            should_stop=stopped,
        )
    for label, text in result.lines:
        speaker.say(label, text)
    if report is not None:
        attacked = "what the plan would release" if released is None else str(released)
        write_report(_card(result, str(original), attacked), report)
        speaker.say("card", str(report))
    speaker.give(result.as_dict())


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
