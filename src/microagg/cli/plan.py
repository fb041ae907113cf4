"""microagg plan: write a plan down, and tell what other decisions would cost."""

from __future__ import annotations

from typing import Any

from microagg.cli.show import Speaker
from microagg.cli.warmup import compiling
from microagg.comparing.pricing import price_table
from microagg.job import completed_source, records_of
from microagg.plan import Plan
from microagg.tables.addresses import Place
from microagg.tables.files import CsvFormat, read_file
from microagg.tables.places import at_hand
from microagg.warm_parts import needed

__all__ = ["draft_plan"]


def draft_plan(
    speaker: Speaker,
    source: Place,
    plan: Plan,
    csv: CsvFormat | None,
    sheet: str | None = None,
    priced: bool = False,
) -> None:
    """Print the plan that a table and the flags give, with a reason for each column; prices if asked for."""
    with at_hand(source) as (file,):
        read = read_file(file, csv=csv, sheet=sheet)
    whole = completed_source(read, plan)
    found: dict[str, Any] = {
        "input": str(source),
        "plan": whole.as_dict(),
        "notes": dict(whole.notes),
    }
    lines: list[tuple[str, str]] = []
    if priced:
        parts = needed(whole, read.as_written.num_rows, bound=False)
        with compiling(speaker, parts) as wait, speaker.progress("pricing") as bar:
            wait(bar)
            prices = price_table(records_of(read), whole, progress=bar)
        found["prices"], lines = prices.as_dict(), prices.lines()
    speaker.give(found)
    if not speaker.as_json:
        print(whole.to_toml(), end="", flush=True)
    for label, words in lines:
        speaker.say(label, words)
