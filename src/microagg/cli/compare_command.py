"""The command compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microagg.base.formatting import percent, share, table_size
from microagg.cli.show import Speaker
from microagg.comparing.comparison import Comparison, Tried, prepare, try_prepared
from microagg.engines.memory.table import Table
from microagg.errors import StopSearch
from microagg.formats.addresses import Place, is_plain
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.job.job import numbers_of
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target


def compare_file(
    speaker: Speaker,
    source: Place,
    plan: Plan,
    form: CsvFormat,
    sheet: str | None,
    report: Path | None,
    command: list[str],
    **settings: Any,
) -> bool:
    """Carry out a plan with several methods and k, say which to choose, return whether it meets targets."""
    if report is not None:
        check_report_target(report, *([source] if isinstance(source, Path) else []))
    with local_copies(source) as (file,):
        read = read_file(file, numbers_of(plan), form, sheet=sheet)
    records = Table.of(read)
    speaker.say("read", f"{source}: {table_size(len(records), len(records.frame.names))}")
    trials = prepare(records, plan, **settings)
    speaker.say("trying", f"{trials.announcement}; Ctrl-C ends it and keeps what is done")
    with speaker.progress("comparing") as bar, speaker.stoppable() as asked:

        def hear(done: Tried, total: int) -> None:
            if bar is not None:
                bar(done, total)
            if asked():
                raise StopSearch

        try:
            comparison = try_prepared(trials, hear)
        except StopSearch:  # nothing is done yet
            raise KeyboardInterrupt from None
    if not (speaker.quiet or speaker.as_json):
        _print_table(comparison)
    if comparison.partial is not None:
        speaker.say("partial", comparison.partial, style="bold yellow")
    if comparison.about_methods is not None:
        speaker.say("methods", comparison.about_methods)
    suggestion = comparison.suggest()
    speaker.say("choose", suggestion.words)
    if report is not None:
        of = str(source) if is_plain(source) else None  # the hash of a temporary copy helps nobody
        comparison.report(report, source=of, command=command)
        speaker.written = [str(report)]
        speaker.say("report", f"{report}, and every number in {report.with_suffix('.json').name}")
    speaker.give(
        {
            "input": str(source),
            **comparison.as_dict(),
            "meets": suggestion.meets,
            "suggestion": suggestion.as_dict(),
        }
    )
    return suggestion.meets is not False


def _print_table(comparison: Comparison) -> None:
    """Print the comparison on stdout: it is the data that was asked for."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    with_tables, attacked = len(comparison.settings["release"]) > 1, comparison.settings["attack"]
    # Groups and seconds give way, so that a terminal has room for all columns.
    titles = (
        "method",
        "k",
        *(() if attacked else ("groups",)),
        *(("release", "tables %", "× sample") if with_tables else ()),
        "loss %",
        "linked %",
        *(("guessed %",) if attacked else ()),
        "below k %",
        *(() if attacked else ("seconds",)),
        "worth choosing",
    )
    for title in titles:
        right = title not in ("method", "release", "worth choosing")
        table.add_column(title, justify="right" if right else "left")
    for choice in comparison.cells:
        if choice.information_loss is None or choice.linkage is None:
            why = "cannot" if choice.tried else choice.problem
            blanks = [choice.release if title == "release" else "–" for title in titles[2:-1]]
            table.add_row(choice.method, str(choice.k), *blanks, Text(str(why)))
            continue
        notes = ["*"] * choice.on_frontier + ["cut short"] * choice.cut_short
        guessed = None if choice.inference is None else max(choice.inference.share, 0.0)
        cells = {
            "method": choice.method,
            "k": str(choice.k),
            "groups": f"{choice.groups:,}",
            "release": choice.release,
            "tables %": _percent(choice.tables),
            "× sample": f"{choice.tables_multiple or 0.0:.1f}",
            "loss %": percent(choice.information_loss).removesuffix(" %"),
            "linked %": _percent(choice.linkage.share),
            "guessed %": _percent(guessed),
            "below k %": _percent(choice.below_k),
            "seconds": f"{choice.seconds:.2f}",
            "worth choosing": " ".join(notes),
        }
        table.add_row(*(cells[title] for title in titles))
    Console().print(table)


def _percent(value: float | None) -> str:
    return "–" if value is None else share(value).removesuffix(" %")
