"""The commands: protect, verify, methods, demo."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microagg.cli.show import Speaker, names

if TYPE_CHECKING:
    from microagg.protect import Release
    from microagg.tables.files import CsvFormat
    from microagg.verify import Verification

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

# The search for nearest records takes too long to do unasked beyond this many records.
_RECORDS_FOR_LINKAGE = 20_000

In = Annotated[Path, typer.Argument(metavar="IN", help="CSV, Parquet or Arrow file.")]
Out = Annotated[
    Path, typer.Argument(metavar="OUT", help="File to write; its ending tells the format.")
]
K = Annotated[
    int, typer.Option("--k", "-k", help="Least number of records that share their values.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        help="Columns to work on, separated by commas (names with commas in double quotes); all "
        "numeric ones if left out.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="CSV: field separator; found out from the header line if left out."),
]
Encoding = Annotated[
    str | None, typer.Option(help="CSV: text encoding, such as latin-1; utf-8 if left out.")
]
Decimal = Annotated[str, typer.Option(help="CSV: decimal sign, . or ,")]
Json = Annotated[bool, typer.Option("--json", help="Give everything as one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    """Handle what goes before a command."""
    if version:
        import microagg

        print(f"microagg {microagg.__version__}")
        raise typer.Exit


@app.command()
def protect(
    source: In,
    target: Out,
    k: K,
    columns: Columns = None,
    method: Annotated[str, typer.Option("--method", "-m", help="See: microagg methods.")] = "auto",
    cost: Annotated[
        str | None,
        typer.Option(
            help="What exact methods for one column minimise: sse, sae, max, round-up, round-down."
        ),
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(
            help="What a group releases: mean, median, midrange, maximum or minimum; the mean, or "
            "what fits the cost, if left out."
        ),
    ] = None,
    per_column: Annotated[
        bool,
        typer.Option(
            "--per-column",
            help="Each column by itself: loses less, but is no k-anonymity of records.",
        ),
    ] = False,
    scale: Annotated[
        str, typer.Option(help="How columns are made comparable: zscore, range, robust or none.")
    ] = "zscore",
    round_: Annotated[
        bool,
        typer.Option("--round", help="Round the means of integer columns, which so stay integers."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of methods that draw random numbers.")] = 0,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Protect a file: write it with the values of groups of at least k similar records.

    All numeric columns are protected unless you name some; the others are written as they are.
    OUT is read back and counted before it gets its name. IN is never changed; OUT may be IN.

    Example: microagg protect survey.csv safe.csv --k 5 --columns income,rent,age
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        form = _csv_format(delimiter, encoding, decimal)
        _protect_file(
            speaker,
            source,
            target,
            form,
            _split(columns),
            k=k,
            method=method,
            aggregate=aggregate,
            scale=scale,
            per_column=per_column,
            round=round_,
            random_state=seed,
            **({} if cost is None else {"cost": cost}),
        )


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow file.")],
    k: K,
    columns: Columns = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count whether every combination of values in a file is shared by at least k records.

    Works on files of any origin. Exits with 1 if a combination occurs fewer than k times.

    Example: microagg verify safe.csv --k 5 --columns income,rent,age
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.verify import verify as verify_file

        found = verify_file(file, k, _split(columns), _csv_format(delimiter, encoding, decimal))
        speaker.say("columns", names(found.columns))
        _say_verification(speaker, file, found)
        speaker.give({"file": str(file), **found.as_dict()})
    if not found.holds:
        raise typer.Exit(1)


@app.command()
def methods(as_json: Json = False, quiet: Quiet = False) -> None:
    """List the methods: what each does, whether it is exact, what it costs, its paper."""
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.registry import methods as registered

        rows = registered()
        speaker.give({"methods": [method.as_dict() for method in rows]})
        if as_json:
            return
        from rich.console import Console
        from rich.table import Table

        table = Table("method", "family", "guarantee", "cost", "what it does", "paper", box=None)
        for row in rows:
            table.add_row(row.name, row.family, row.guarantee, row.cost, row.summary, row.paper)
            for option in row.options:
                words = f"{option.name}={option.default!r}: {option.help}"
                table.add_row("", "", "", "", words, "")
        Console().print(table)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the example's two files go.")] = Path(
        "microagg-demo"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the main job on a real table: 442 diabetes patients, from scikit-learn."""
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.example import COLUMNS, write_example

        original = write_example(folder)
        target = folder / "diabetes-protected.csv"
        speaker.say(
            "example", f"microagg protect {original} {target} --k 5 --columns {','.join(COLUMNS)}"
        )
        _protect_file(speaker, original, target, None, COLUMNS, k=5)


def _protect_file(
    speaker: Speaker,
    source: Path,
    target: Path,
    form: CsvFormat | None,
    columns: list[str] | None,
    **settings: Any,
) -> None:
    """Read, protect, write and verify a file, and say so."""
    from microagg.protect import Clock, check_settings
    from microagg.protect import protect as protect_frame
    from microagg.tables.atomic import check_target
    from microagg.tables.files import kind_of, read_file

    # A mistake costs no waiting.
    kind_of(target)
    check_target(target.absolute())
    check_settings(**settings)
    clock = Clock()
    with clock.time("read"):
        table, found_form = read_file(source, columns, form)
    speaker.say("read", f"{source}: {table.num_rows:,} records, {table.num_columns} columns")
    with speaker.progress("grouping") as bar:
        report = None if bar is None else lambda done: bar(done, table.num_rows)
        release = protect_frame(table, columns=columns, progress=report, **settings)
    speaker.say("protected", names(release.columns))
    speaker.say("untouched", names(release.untouched) or "no column")
    with clock.time("measure"):
        linkage = table.num_rows <= _RECORDS_FOR_LINKAGE
        risk = release.risk.as_dict(linkage)
        utility = release.utility
    _say_result(speaker, release, risk)
    same_format = source.suffix.lower() == target.suffix.lower()
    with clock.time("write"):
        verification = release.write(target, found_form if same_format else form)
    scope = "holds" if len(release.parts) == 1 else "holds for each column by itself"
    _say_verification(speaker, target, verification, scope)
    speaker.give(
        {
            "input": str(source),
            "output": str(target),
            "records": table.num_rows,
            "k": release.k,
            "aggregate": release.aggregate,
            "columns": {
                "protected": release.columns,
                "untouched": release.untouched,
                "identifying": release.identifying,
            },
            "parts": [{"columns": names, **part.as_dict()} for names, part in release.parts],
            "information_loss": utility.information_loss,
            "utility": utility.as_dict(),
            "risk": risk,
            "verified": verification.as_dict(),
            "warnings": speaker.warnings,
            "seconds": {**clock.seconds, **release.seconds},
        }
    )


def _say_result(speaker: Speaker, release: Release, risk: dict[str, Any]) -> None:
    for columns, part in release.parts:
        which = f"{names(columns)}: " if len(release.parts) > 1 else ""
        speaker.say(
            "grouped",
            f"{which}by {part.method}, k = {part.k}: {part.n_groups:,} groups of "
            f"{part.sizes.min():,} to {part.sizes.max():,} records",
        )
    loss = release.utility
    worst = max(loss.by_column, key=lambda name: loss.by_column[name])
    speaker.say(
        "lost",
        f"{_percent(loss.information_loss)} % of the information (100·SSE/SST); most in "
        f"{names([worst])}, {_percent(loss.by_column[worst])} %",
    )
    speaker.say(
        "gained",
        f"each record shares its protected values with at least {risk['smallest_class'] - 1:,} others; "
        f"before, {100 * risk['unique_before']:.1f} % of the records were unique",
    )
    if risk["record_linkage"] is not None:
        speaker.say(
            "",
            f"who knows a person's true values finds the right record for "
            f"{100 * risk['record_linkage']:.1f} % of the people; a blind guess, "
            f"{100 * risk['blind_guess']:.1f} %",
        )


def _percent(value: float) -> str:
    """Two decimals, or one digit of what would show as nothing."""
    return f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.1g}"


def _say_verification(
    speaker: Speaker, path: Path, found: Verification, scope: str = "holds"
) -> None:
    counted = (
        f"{path}: {found.records:,} records, {found.combinations:,} combinations, the rarest "
        f"{found.smallest:,} times"
    )
    if found.holds:
        speaker.say("verified", f"{counted}; k = {found.k} {scope}", style="bold green")
    else:
        speaker.say(
            "fails",
            f"{counted}; k = {found.k} does not hold for {found.records_below_k:,} records",
            style="bold red",
        )


def _csv_format(delimiter: str | None, encoding: str | None, decimal: str) -> CsvFormat:
    from microagg.tables.files import CsvFormat

    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    return CsvFormat(delimiter, encoding, decimal)


def _split(columns: list[str] | None) -> list[str] | None:
    """Split --columns at commas; a name with a comma or outer blanks goes in double quotes."""
    import csv

    if columns is None:
        return None
    return [name for line in csv.reader(columns) for name in line]


def main() -> None:
    """Run the command; being told to end, it ends as cleanly as with Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            number = getattr(signal, name)
            signal.signal(number, lambda received, _: sys.exit(128 + received))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without, say, umlauts
    app(prog_name="microagg")
