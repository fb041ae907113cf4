"""The command plan: a plan for a file, and the price of other decisions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from microagg.base.formatting import names as listed_names
from microagg.cli.show import Speaker
from microagg.cli.warmup_command import Compiling
from microagg.comparing.freezing import FreezingPrices, freezing_prices
from microagg.comparing.offers import largest_k, price_answers, swapping_words
from microagg.comparing.prices import price_table
from microagg.comparing.search import search
from microagg.compile.warm import needed
from microagg.engines.memory.table import Table
from microagg.errors import InputError
from microagg.formats.addresses import Place
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.ledger.checks import with_plain_means
from microagg.ledger.ledger_file import Ledger, opened_key, read_ledger
from microagg.plan.plan import Plan


def draft_plan(
    speaker: Speaker,
    source: Place,
    plan: Plan,
    csv: CsvFormat | None,
    sheet: str | None = None,
    *,
    priced: bool = False,
    answers: Sequence[str] = (),
    tables: float | None = None,
    keep: Sequence[str] = (),
    may_drop: Sequence[str] | None = None,
    search_k: Sequence[int] = (),
    ledger: Path | None = None,
    key: str | None = None,
) -> bool:
    """Print the plan that a table and the flags give, with a reason for each column; prices if asked for.

    Where the plan has a target or analyses, one that meets them is searched; return whether it does. The
    draft alone ends with a line about swapping.
    """
    searched = bool(plan.accept.targets or plan.analyses)
    if (keep or may_drop is not None or search_k) and not searched:
        raise InputError(
            "--keep, --may-drop and --search-k tell a search what it may decide; there is no target to "
            "search for. Give --max-loss, --max-linkage or --analysis."
        )
    if searched and tables is not None:
        raise InputError("--tables searches k by itself. Leave the other targets out, or --tables.")
    if ledger is not None and not priced:
        raise InputError("Here --ledger is about what a ledger costs. Say --prices too.")
    with local_copies(source) as (file,):
        read = read_file(file, csv=csv, sheet=sheet)
    records = Table.of(read)
    whole = records.completed(plan).plan
    parts = needed(whole, read.as_written.num_rows, bound=False)
    lines: list[tuple[str, str]] = []
    meets, more = True, dict[str, object]()
    with Compiling(speaker) as compiling:
        compiling.ask(parts)
        if searched:
            with compiling.progress("searching") as bar:
                best = search(records, plan, keep=keep, may_drop=may_drop, k=search_k, progress=bar)
            whole, meets, lines = best, best.meets, best.lines()
            more["search"] = best.as_json()
        elif tables is not None:
            with compiling.progress("searching") as bar:
                largest = largest_k(records, plan, tables, bar)
            whole, meets, lines = largest.plan, largest.meets, largest.lines()
            more["tables"] = {"meets": meets, "k": whole.k, "tried": largest.tried}
        if answers:
            with compiling.progress("pricing") as bar:
                claims = price_answers(records, whole, answers, progress=bar)
            for columns, price in claims:
                lines.append(("answer", f"{listed_names(columns)}, if confidential: {price.words}"))
            flag = ",".join(answers)
            lines.append(
                ("answers", f"--confidential {flag} makes this claim; nothing is claimed yet")
            )
            shown = ("loss", "change", "at_stake", "problem")
            more["answers"] = [
                {
                    "columns": list(columns),
                    **{name: price.as_dict()[name] for name in shown},
                }
                for columns, price in claims
            ]
        if priced:
            with compiling.progress("pricing") as bar:
                prices = price_table(records, whole, progress=bar)
            more["prices"] = prices.as_dict()
            lines += prices.lines()
            if ledger is not None:
                frozen = _price_ledger(records, whole, plan, ledger, key)
                more["freezing"] = frozen.as_dict()
                lines += frozen.lines()
        if not searched and tables is None and not speaker.quiet:
            with compiling.progress("trying swapping") as bar:
                swapping = swapping_words(records, whole)
            if swapping is not None:
                lines.append(("swapping", swapping))
                more["swapping"] = swapping
    notes = dict(whole.notes)
    speaker.give({"input": str(source), "plan": whole.as_dict(), "notes": notes} | more)
    if not speaker.as_json:
        print(whole.to_toml(), end="", flush=True)
    for label, words in lines:
        speaker.say(label, words)
    return meets


def _price_ledger(
    records: Table, plan: Plan, decided: Plan, path: Path, column: str | None
) -> FreezingPrices:
    """Price a ledger, which need not exist yet; nothing is written to it."""
    plan = with_plain_means(plan, decided)
    if not path.exists():
        return freezing_prices(records, plan, Ledger(), b"", column)
    with opened_key(path, make=False) as key:
        return freezing_prices(records, plan, read_ledger(path, key), key, column)
