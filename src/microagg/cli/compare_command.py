"""The command compare."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from microagg.base.formatting import percent, share, table_size
from microagg.cli.flags import whole_numbers
from microagg.cli.show import Speaker
from microagg.comparing.choices import Choice
from microagg.comparing.comparison import Comparison, Tried, prepare, try_prepared
from microagg.engines.memory.table import Table
from microagg.errors import StopSearch
from microagg.formats.addresses import Place, as_place, is_plain
from microagg.formats.files import read_file
from microagg.formats.layouts import CsvFormat
from microagg.formats.remote import local_copies
from microagg.job.job import numbers_of
from microagg.plan.forms import split_names
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target


def compare_file(
    speaker: Speaker,
    source: Place,
    plan: Plan,
    csv: CsvFormat,
    sheet: str | None,
    report: Path | None,
    k: str,
    methods: list[str] | None,
    release: str | None,
    attack_each: bool,
    budget: float,
) -> bool:
    """Carry out a plan with several methods and k, say which to choose, return whether it meets targets."""
    sizes, named = whole_numbers(k), split_names(methods)
    if report is not None:
        check_report_target(report, *([source] if isinstance(source, Path) else []))
    with local_copies(source) as (file,):
        records = Table.of(read_file(file, numbers_of(plan), csv, sheet=sheet))
    speaker.say("read", f"{source}: {table_size(len(records), len(records.frame.names))}")
    trials = prepare(
        records,
        plan,
        sizes,
        "all" if named == ["all"] else named,
        release=None if release is None else split_names([release]),
        attack=attack_each,
        budget=budget,
    )
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
        command = ["microagg"]
        for word in sys.argv[1:]:
            place = as_place(word)  # which shows an address without its credentials
            command.append(word if isinstance(place, Path) else str(place))
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
    columns: dict[str, Callable[[Choice], str]] = {
        "method": lambda choice: choice.method,
        "k": lambda choice: str(choice.k),
        "groups": lambda choice: f"{choice.groups:,}",
        "release": lambda choice: choice.release,
        "tables %": lambda choice: _percent(choice.tables),
        "× sample": lambda choice: f"{choice.tables_multiple or 0.0:.1f}",
        "loss %": lambda choice: percent(choice.information_loss or 0.0).removesuffix(" %"),
        "linked %": lambda choice: _percent(getattr(choice.linkage, "share", None)),
        "guessed %": lambda choice: _percent(getattr(choice.inference, "share", None)),
        "below k %": lambda choice: _percent(choice.below_k),
        "seconds": lambda choice: f"{choice.seconds:.2f}",
        "worth choosing": lambda choice: " ".join(
            ["*"] * choice.on_frontier + ["cut short"] * choice.cut_short
        ),
    }
    # Groups and seconds give way, so that a terminal has room for all columns.
    gone = {"groups", "seconds"} if attacked else {"guessed %"}
    gone |= set() if with_tables else {"release", "tables %", "× sample"}
    columns = {title: cell for title, cell in columns.items() if title not in gone}
    for title in columns:
        right = title not in ("method", "release", "worth choosing")
        table.add_column(title, justify="right" if right else "left")
    for choice in comparison.cells:
        has_figures = choice.information_loss is not None and choice.linkage is not None
        cells = {
            title: cell(choice) if has_figures or title in ("method", "k", "release") else "–"
            for title, cell in columns.items()
        }
        if not has_figures:
            cells["worth choosing"] = "cannot" if choice.tried else str(choice.problem)
        table.add_row(*map(Text, cells.values()))
    Console().print(table)


def _percent(value: float | None) -> str:
    return "–" if value is None else share(max(value, 0.0)).removesuffix(" %")
