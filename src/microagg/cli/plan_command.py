"""The command plan: a plan for a file, and the price of other decisions."""

from __future__ import annotations

from collections.abc import Sequence

from microagg.cli.show import Speaker
from microagg.cli.warmup_command import Compiling
from microagg.comparing.prices import price_table
from microagg.comparing.search import search
from microagg.compile.warm import needed
from microagg.engines.memory.table import Table
from microagg.errors import InputError
from microagg.formats.addresses import Place
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.plan.plan import Plan


def draft_plan(
    speaker: Speaker,
    source: Place,
    plan: Plan,
    csv: CsvFormat | None,
    sheet: str | None = None,
    priced: bool = False,
    keep: Sequence[str] = (),
    may_drop: Sequence[str] | None = None,
    search_k: Sequence[int] = (),
) -> bool:
    """Print the plan that a table and the flags give, with a reason for each column; prices if asked for.

    Where the plan has a target, one that meets it is searched; return whether it does.
    """
    targets = plan.accept.targets
    if (keep or may_drop is not None or search_k) and not targets:
        raise InputError(
            "--keep, --may-drop and --search-k tell a search what it may decide; there is no target to "
            "search for. Give --max-loss or --max-linkage."
        )
    with local_copies(source) as (file,):
        read = read_file(file, csv=csv, sheet=sheet)
    whole = Table.of(read).completed(plan).plan
    parts = needed(whole, read.as_written.num_rows, bound=False) if priced or targets else []
    lines: list[tuple[str, str]] = []
    meets, more = True, {}
    with Compiling(speaker) as compiling:
        compiling.ask(parts)
        if targets:
            with speaker.progress("searching") as bar:
                compiling.wait(bar)
                best = search(
                    Table.of(read),
                    plan,
                    keep=keep,
                    may_drop=may_drop,
                    k=search_k,
                    progress=bar,
                )
            whole, meets, lines = best, best.meets, best.lines()
            more["search"] = best.as_json()
        if priced:
            with speaker.progress("pricing") as bar:
                compiling.wait(bar)
                prices = price_table(Table.of(read), whole, progress=bar)
            more["prices"] = prices.as_dict()
            lines += prices.lines()
    notes = dict(whole.notes)
    speaker.give({"input": str(source), "plan": whole.as_dict(), "notes": notes} | more)
    if not speaker.as_json:
        print(whole.to_toml(), end="", flush=True)
    for label, words in lines:
        speaker.say(label, words)
    return meets
