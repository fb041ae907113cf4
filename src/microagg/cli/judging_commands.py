"""The commands that judge files, of any program: measure, attack, verify, ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from microagg.cli.flags import (
    CSV_FLAGS,
    Columns,
    Confidential,
    command,
    csv_of,
    plan_of,
    with_plan_flags,
)
from microagg.cli.show import Speaker
from microagg.errors import InputError
from microagg.formats.addresses import as_place
from microagg.plan.forms import split_names


@with_plan_flags(
    only=("k", "kind", "weight", "analysis", "max_loss", "max_linkage", "max_tables"),
    more=CSV_FLAGS,
)
@command
def measure(
    speaker: Speaker,
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
    **flags: Any,
) -> bool:
    """Measure what a protected file lost and what an attacker gains from it.

    Works on files that any program made. Columns are matched by name, records by position or by
    an id. The numeric columns that differ are compared unless you name some; columns that are the same in
    both files are taken as known to an attacker. Exits with 1 if a k you promise does not hold or a
    target is missed.

    Example: microagg measure survey.csv safe.csv --columns income,rent,age --id person
    """
    from microagg.cli.measure_command import measure_files

    return measure_files(
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


@with_plan_flags(only=("plan",), more=CSV_FLAGS)
@command
def attack(
    speaker: Speaker,
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
    **flags: Any,
) -> None:
    """Attack a released file: single people out, link their columns, infer their values.

    Each attack is tried on the originals and on controls, similar people who are not in the file. The
    residual risk is what being in the file adds. With --plan, no file is needed: a tenth of the people are
    put aside as controls, the others are protected by the plan and attacked, three times. Ctrl-C ends the
    attacks and shows what is done.

    Example: microagg attack survey.csv safe.csv --control others.csv --secret income
    """
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
@command
def verify(
    speaker: Speaker,
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
    **flags: Any,
) -> bool:
    """Count whether every combination of values in a file is shared by at least k records.

    Works on files of any origin. Values of a CSV file are counted as they are written. All numeric
    columns are counted together unless you name some. Exits with 1 if a combination is too rare. With
    --ledger, the values in files are compared with what it says of them, and all its releases are counted
    and solved together.

    Example: microagg verify safe.csv --k 5 --columns income,rent,age
    """
    from microagg.cli.verify_command import verify_file, verify_releases

    if ledger is not None:
        return verify_releases(speaker, files, ledger, csv_of(flags))
    if len(files) > 1:
        raise InputError(
            "Several files are counted together by the ledger that they were released with. Name it by "
            "--ledger, or give one file."
        )
    return verify_file(
        speaker,
        files[0],
        flags["k"],
        split_names(columns),
        flags["unit"],
        promise,
        csv_of(flags),
    )


@command
def ledger(
    speaker: Speaker,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A ledger; its key lies next to it.")
    ],
) -> None:
    """Say what a ledger holds, without giving anybody away: its releases, and what they say together.

    Example: microagg ledger survey.sqlite
    """
    from microagg.cli.verify_command import tell_ledger

    tell_ledger(speaker, file)
