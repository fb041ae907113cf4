"""The command ledger, and verify for the files of a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from microagg.base.formatting import names, percent, plural, unit_words
from microagg.cli.show import Speaker
from microagg.errors import InputError, TableError, shown
from microagg.evidence.measured import History
from microagg.evidence.over_time import history_sentences
from microagg.formats.addresses import Place, is_plain
from microagg.formats.atomic import sha256
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.ledger.ledger_file import Ledger, finish_killed_run, opened_key, read_ledger
from microagg.ledger.recount import Recount, faults_of_file, recount
from microagg.tables.frame import Frame

_FACTS = (
    "number",
    "date",
    "path",
    "sha256",
    "k",
    "kind",
    "columns",
    "records",
    "loss",
    "smallest",
    "counts",
)


def tell_ledger(speaker: Speaker, path: Path) -> None:
    """Say what a ledger holds, without giving anybody away."""
    ledger, _ = _read(path)
    counts = recount(ledger)
    about = ledger.about
    speaker.say(
        "ledger",
        f"{path}: {plural(len(ledger.releases), 'release')}; "
        f"{plural(counts.units, 'unit')} by {names([about['key']])} in "
        f"{plural(counts.groups, 'base group')}; k = {counts.k:,}",
    )
    for facts, chain in zip(ledger.releases, ledger.chain, strict=True):
        speaker.say(
            f"release {facts['number']}",
            f"{facts['date']}, {Path(facts['path']).name}: {plural(facts['records'], 'record')}, "
            f"{percent(facts['loss'])} lost, k = {facts['k']:,}, {facts['kind']} of "
            f"{names(facts['columns'], 6)}; chain {chain[:12]}",
        )
    _say_sentences(speaker, ledger, counts)
    speaker.give(
        {
            "ledger": str(path),
            "key": about["key"],
            "strata": about["strata"],
            "weight": about["weight"],
            "releases": [
                {**{name: facts[name] for name in _FACTS}, "chain": chain}
                for facts, chain in zip(ledger.releases, ledger.chain, strict=True)
            ],
            **counts._asdict(),
            "holds": counts.holds,
        }
    )


def verify_releases(speaker: Speaker, files: Sequence[Place], path: Path, csv: CsvFormat) -> bool:
    """Check that the values in files are what a ledger says of its releases, and count over all of them."""
    ledger, key = _read(path)
    number_of = {facts["sha256"]: facts["number"] for facts in ledger.releases}
    numbers, faults = [], 0
    for file in files:
        if not isinstance(file, Path) or not is_plain(file):
            raise InputError(
                f"A release of a ledger is a local file; {shown(str(file), 300)} is none."
            )
        try:
            number = number_of.get(sha256(file))
        except OSError as error:
            raise TableError(f"Cannot read {shown(str(file), 300)}: {error.strerror}.") from None
        if number is None:
            raise InputError(
                f"A release of a ledger is in it with its hash; {shown(str(file), 300)} is not: it was "
                "changed, or released without this ledger. Take the file as it was written."
            )
        numbers.append(number)
        source = read_file(file, csv=csv)
        wrong = faults_of_file(
            ledger, key, number, Frame(source.as_written), Frame(source.table), source.is_text
        )
        faults += len(wrong)
        if wrong:
            speaker.say("fails", f"{file}: release {number}; {'; '.join(wrong)}", style="bold red")
        else:
            speaker.say("file", f"{file}: release {number}, with the values that the ledger states")
    counts = recount(ledger)
    _say_sentences(speaker, ledger, counts)
    holds = counts.holds and not faults
    speaker.give({"ledger": str(path), "numbers": numbers, **counts._asdict(), "holds": holds})
    return holds


def _read(path: Path) -> tuple[Ledger, bytes]:
    if not path.exists():
        raise TableError(f"There is no ledger {shown(str(path), 300)}. Check the name.")
    with opened_key(path, make=False) as key:
        ledger = read_ledger(path, key)
        finish_killed_run(ledger)
    return ledger, key


def _say_sentences(speaker: Speaker, ledger: Ledger, counts: Recount) -> None:
    who = unit_words(ledger.about["key"])
    sums = counts.sums and not counts.solved
    history = History(len(ledger.releases), counts.k, counts.smallest, sums, {}, "", "")
    style = "bold green" if counts.holds else "bold red"
    first, *others = history_sentences(history, who)
    speaker.say("counted", first, style=style)
    for sentence in others:
        speaker.say("", sentence)
    if counts.solved:
        speaker.say(
            "fails",
            f"Sums over fewer than {counts.k} {who} follow in {plural(counts.solved, 'group')}.",
            style=style,
        )
