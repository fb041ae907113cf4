"""The commands verify, of one file or of the files of a ledger, and ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from microagg.base.formatting import UnitWords, names, percent, plural, unit_words
from microagg.cli.show import Speaker
from microagg.engines.memory_needed import fits, memory_for
from microagg.engines.release_counts import CountsOnDisk
from microagg.errors import InputError, TableError, shown
from microagg.evidence.measured import History
from microagg.evidence.over_time import history_sentences
from microagg.formats.addresses import Place, is_plain
from microagg.formats.atomic import sha256
from microagg.formats.batches import open_batches
from microagg.formats.files import FORMATS, kind_of, read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.ledger.ledger_file import Ledger, finish_killed_run, opened_key, read_ledger
from microagg.ledger.recount import Recount, faults_of_file, recount
from microagg.measure.verify import Verification, count_promises, verify_all
from microagg.plan.forms import split_names
from microagg.plan.plan import Plan, Promise
from microagg.tables.frame import Frame

# What is told of a release of a ledger.
_FACTS = (
    *("number", "date", "path", "sha256", "k", "kind", "columns", "records", "loss", "smallest"),
    "counts",
)


def verify_files(
    speaker: Speaker,
    files: Sequence[Place],
    csv: CsvFormat,
    k: int | None,
    unit: str | None,
    columns: list[str] | None,
    ledger: Path | None,
    promise: Path | None,
) -> bool:
    """Count whether a promise holds in a file, or in the files of a ledger, and say so."""
    if ledger is not None:
        return _verify_releases(speaker, files, ledger, csv)
    if len(files) > 1:
        raise InputError(
            "Several files are counted together by the ledger that they were released with. Name it by "
            "--ledger, or give one file."
        )
    if promise is not None:
        if k is not None or columns is not None or unit is not None:
            raise InputError(
                "Give the promise by --promise, or by --k, --columns and --unit; not both."
            )
        plan, promises = _read_promise(promise)
        for dropped in (name for name in plan.units if name in plan.drop):
            speaker.warn(
                f"The promise is about {plan.words_of_unit(dropped)}, which the plan drops from the "
                "file: only records can be counted in it."
            )
    elif k is not None:
        plan, promises = Plan(), [Promise(k, split_names(columns), unit)]
    else:
        raise InputError(
            "Which k? Give --k and, if you like, --columns; or --promise with the report's JSON or the plan."
        )
    with local_copies(files[0]) as (file,):
        counts = _counted(file, promises, csv)
    least = min(counts, key=lambda count: (count.holds, count.smallest))
    for count in [least] if plan.is_swapped else counts:
        _say_count(speaker, files[0], count, plan.words_of_unit(count.unit))
    if plan.is_swapped:
        speaker.say(
            "note",
            f"Values were swapped within groups: in each of {plural(len(counts), 'column')} it was counted "
            "how many records have each value. Groups, and whose value is whose, cannot be seen in a file.",
        )
    holds = all(count.holds for count in counts)
    parts = [count.as_dict() for count in counts]
    speaker.give({"file": str(files[0]), **least.as_dict(), "holds": holds, "parts": parts})
    return holds


def _read_promise(path: Path) -> tuple[Plan, list[Promise]]:
    """Read a plan from a TOML file, or the JSON of a report; return it with what is counted in a file."""
    if path.suffix.lower() == ".json":
        name = shown(str(path), 300)
        try:
            given = json.loads(path.read_text(encoding="utf-8"))["plan"]
        except OSError as error:
            raise TableError(f"Cannot read {name}: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"A promise is the JSON of a report of microagg, or a plan; {name} is neither."
            ) from None
        plan = Plan.from_dict(given)
    else:
        plan = Plan.from_toml(path)
    plan.check_complete()
    if any(block.columns is None for block in plan.blocks):
        raise InputError(
            "The plan does not name the columns to protect; take that of the report, which does."
        )
    # A swapped value stands for the units that had it, which the file does not tell.
    gone = {None, *plan.drop, *(plan.units if plan.is_swapped else ())}
    return plan, [
        promise._replace(
            columns=[str(name) for name in promise.columns or ()],
            unit=None if promise.unit in gone else str(promise.unit),
        )
        for promise in plan.promises()
    ]


def _counted(file: Path, promises: list[Promise], csv: CsvFormat) -> list[Verification]:
    """Count in a local file, in parts where it does not fit into memory."""
    if FORMATS[kind_of(file)].in_batches:
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


def tell_ledger(speaker: Speaker, file: Path) -> None:
    """Say what a ledger holds, without giving anybody away."""
    ledger, _ = _read(file)
    counts, about = recount(ledger), ledger.about
    speaker.say(
        "ledger",
        f"{file}: {plural(len(ledger.releases), 'release')}; "
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
            "ledger": str(file),
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


def _verify_releases(speaker: Speaker, files: Sequence[Place], path: Path, csv: CsvFormat) -> bool:
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
