"""The command plan: a plan for a file, and the price of other decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microagg.base.formatting import names as listed_names
from microagg.cli.flags import whole_numbers
from microagg.cli.show import Speaker
from microagg.cli.warmup_command import Compiling
from microagg.comparing.offers import (
    FreezingPrices,
    freezing_prices,
    largest_k,
    price_answers,
    swapping_words,
)
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
from microagg.plan.forms import split_names
from microagg.plan.plan import Plan


def draft_plan(
    speaker: Speaker,
    source: Place,
    plan: Plan,
    csv: CsvFormat,
    sheet: str | None,
    prices: bool,
    answers: list[str] | None,
    tables: float | None,
    keep: list[str] | None,
    may_drop: list[str] | None,
    search_k: str,
    ledger: Path | None,
    key: str | None,
) -> bool:
    """Print the plan that a table and the flags give, with a reason for each column; prices if asked for.

    Where the plan has a target or analyses, one that meets them is searched; return whether it does. The
    draft alone ends with a line about swapping.
    """
    searched = bool(plan.accept.targets or plan.analyses)
    limits: dict[str, Any] = {
        "keep": split_names(keep) or [],
        "may_drop": split_names(may_drop),
        "k": whole_numbers(search_k, "--search-k") if search_k else [],
    }
    if (keep or may_drop is not None or search_k) and not searched:
        raise InputError(
            "--keep, --may-drop and --search-k tell a search what it may decide; there is no target to "
            "search for. Give --max-loss, --max-linkage or --analysis."
        )
    if searched and tables is not None:
        raise InputError("--tables searches k by itself. Leave the other targets out, or --tables.")
    if ledger is not None and not prices:
        raise InputError("Here --ledger is about what a ledger costs. Say --prices too.")
    with local_copies(source) as (file,):
        read = read_file(file, csv=csv, sheet=sheet)
    records = Table.of(read)
    whole = records.completed(plan).plan
    lines: list[tuple[str, str]] = []
    meets, more = True, dict[str, Any]()
    with Compiling(speaker) as compiling:
        compiling.ask(needed(whole, read.as_written.num_rows, bound=False))
        if searched:
            with compiling.progress("searching") as bar:
                best = search(records, plan, **limits, progress=bar)
            whole, meets, lines = best, best.meets, best.lines()
            more["search"] = best.as_json()
        elif tables is not None:
            with compiling.progress("searching") as bar:
                largest = largest_k(records, plan, tables, bar)
            whole, meets, lines = largest.plan, largest.meets, largest.lines()
            more["tables"] = {"meets": meets, "k": whole.k, "tried": largest.tried}
        if claimed := split_names(answers):
            with compiling.progress("pricing") as bar:
                claims = price_answers(records, whole, claimed, progress=bar)
            more["answers"] = []
            for columns, price in claims:
                lines.append(("answer", f"{listed_names(columns)}, if confidential: {price.words}"))
                facts = price.as_dict()
                shown = {name: facts[name] for name in ("loss", "change", "at_stake", "problem")}
                more["answers"].append({"columns": list(columns), **shown})
            flag = f"--confidential {','.join(claimed)}"
            lines.append(("answers", f"{flag} makes this claim; nothing is claimed yet"))
        if prices:
            with compiling.progress("pricing") as bar:
                priced = price_table(records, whole, progress=bar)
            more["prices"] = priced.as_dict()
            lines += priced.lines()
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
    facts = {"input": str(source), "plan": whole.as_dict(), "notes": dict(whole.notes)}
    speaker.give(facts | more)
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
