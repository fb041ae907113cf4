"""The commands verify, of one file or of the files of a ledger, and ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from microagg.base.formatting import UnitWords, names, percent, plural, unit_words
from microagg.cli.show import Speaker
from microagg.errors import InputError, TableError, shown
from microagg.evidence.measured import History
from microagg.evidence.over_time import history_sentences
from microagg.formats import FORMATS
from microagg.formats.addresses import Place, is_plain
from microagg.formats.atomic import sha256
from microagg.formats.files import kind_of, read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.ledger.ledger_file import Ledger, finish_killed_run, opened_key, read_ledger
from microagg.ledger.recount import Recount, faults_of_file, recount
from microagg.measure.verify import Verification, count_promises, verify_all
from microagg.plan.plan import Plan, Promise
from microagg.tables.frame import Frame

_FACTS = [
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
]
"""What is told of a release of a ledger."""


def verify_file(
    speaker: Speaker,
    file: Place,
    k: int | None,
    columns: list[str] | None,
    unit: str | None,
    promise: Path | None,
    csv: CsvFormat,
) -> bool:
    """Count in a file whether a promise holds, and say so."""
    if promise is None:
        if k is None:
            raise InputError(
                "Which k? Give --k and, if you like, --columns; or --promise with the report's JSON or the "
                "plan."
            )
        plan, counts = Plan(), _counted(file, [Promise(k, columns, unit)], csv)
    else:
        if k is not None or columns is not None or unit is not None:
            raise InputError(
                "Give the promise by --promise, or by --k, --columns and --unit; not both."
            )
        plan = _read_promise(promise)
        for unit in plan.units:
            if unit in plan.drop:
                who = plan.words_of_unit(unit)
                speaker.warn(
                    f"The promise is about {who}, which the plan drops from the file: only records can be "
                    "counted in it."
                )
        counts = _promised(file, plan, csv)
    least = min(counts, key=lambda count: (count.holds, count.smallest))
    for count in [least] if plan.is_swapped else counts:
        _say_count(speaker, file, count, plan.words_of_unit(count.unit))
    if plan.is_swapped:
        speaker.say(
            "note",
            f"Values were swapped within groups: in each of {plural(len(counts), 'column')} it was counted "
            "how many records have each value. Groups, and whose value is whose, cannot be seen in a file.",
        )
    speaker.give(
        {
            "file": str(file),
            **least.as_dict(),
            "holds": all(count.holds for count in counts),
            "parts": [count.as_dict() for count in counts],
        }
    )
    return all(count.holds for count in counts)


def _read_promise(path: Path) -> Plan:
    """Read the plan from a TOML file, or from the JSON of a report."""
    if path.suffix.lower() != ".json":
        return Plan.from_toml(path)
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        plan = report["plan"]
    except OSError as error:
        raise TableError(f"Cannot read {shown(str(path), 300)}: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"A promise is the JSON of a report of microagg, or a plan; {shown(str(path), 300)} is neither."
        ) from None
    return Plan.from_dict(plan)


def _promised(file: Place, plan: Plan, csv: CsvFormat) -> list[Verification]:
    plan.check_complete()
    if any(block.columns is None for block in plan.blocks):
        raise InputError(
            "The plan does not name the columns to protect; take that of the report, which does."
        )
    promises = [
        promise._replace(
            columns=[str(name) for name in promise.columns or ()],
            # A swapped value stands for the units that had it, which the file does not tell.
            unit=None
            if promise.unit is None or promise.unit in plan.drop or plan.is_swapped
            else str(promise.unit),
        )
        for promise in plan.promises()
    ]
    return _counted(file, promises, csv)


def _counted(address: Place, promises: list[Promise], csv: CsvFormat) -> list[Verification]:
    """Count in a file, in parts where it does not fit into memory."""
    with local_copies(address) as (file,):
        return _counted_locally(file, promises, csv)


def _counted_locally(file: Path, promises: list[Promise], csv: CsvFormat) -> list[Verification]:
    if FORMATS[kind_of(file)].in_batches:
        from tempfile import TemporaryDirectory

        from microagg.engines.memory_needed import fits, memory_for
        from microagg.engines.release_counts import CountsOnDisk
        from microagg.formats.batches import open_batches

        source = open_batches(file, csv)
        if not fits(source, None):
            with TemporaryDirectory(prefix="microagg-") as folder:
                rows = CountsOnDisk(source, Path(folder), memory_for(None))
                return count_promises(rows, promises)[0]
    return verify_all(file, promises, csv)


def _say_count(speaker: Speaker, file: Place, count: Verification, who: UnitWords) -> None:
    speaker.say("columns", names(count.columns, 40))
    if count.left_out:
        why = "; ".join(f"{names([name])}: {reason}" for name, reason in count.left_out.items())
        speaker.say("left out", f"{why} (name columns to count them)", style="bold yellow")
    counted = (
        f"{file}: {plural(count.records, 'record')} with {plural(count.combinations, 'combination')}; the "
        f"rarest is shared by {who.counted(count.smallest)}"
    )
    if count.holds:
        speaker.say("verified", f"{counted}; k = {count.k:,} holds", style="bold green")
    else:
        below = plural(count.records_below_k, "record")
        speaker.say(
            "fails", f"{counted}; k = {count.k:,} does not hold for {below}", style="bold red"
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
    speaker.say("counted" if counts.smallest >= counts.k else "fails", first, style=style)
    for sentence in others:
        speaker.say("", sentence)
    if counts.solved:
        speaker.say(
            "fails",
            f"Sums over fewer than {counts.k} {who} follow in {plural(counts.solved, 'group')}.",
            style=style,
        )
