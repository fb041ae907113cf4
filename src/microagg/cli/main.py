"""The commands: protect, measure, compare, verify, methods, demo."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from microagg.cli.protect import Evidence, protect_file
from microagg.cli.say import say_verification
from microagg.cli.show import Speaker, names
from microagg.errors import InputError, shown

if TYPE_CHECKING:
    from microagg.tables.files import CsvFormat

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
Confidential = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns whose values must not come out although records look alike: l-diversity and "
        "t-closeness."
    ),
]
Dominance = Annotated[list[str] | None, typer.Option(help="Magnitude columns for the (1, p) rule.")]
DominancePercent = Annotated[float, typer.Option(help="The p of the (1, p) rule.")]
Analyses = Annotated[
    list[str] | None,
    typer.Option(
        "--analysis",
        help="An analysis of your own to run on both tables, such as 'income by region' or 'income ~ "
        "age + rent'; may be given several times.",
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write the evidence as an HTML page, and a JSON file of the same name."
    ),
]
Public = Annotated[
    bool,
    typer.Option("--public", help="In the report, leave out what could reveal a record."),
]
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
    refine: Annotated[
        str | None,
        typer.Option(
            help="Improve what the method found by local search: fast, balanced or best. Loses less, "
            "takes longer."
        ),
    ] = None,
    bound: Annotated[
        bool,
        typer.Option("--bound", help="Prove how much less any method could lose at best."),
    ] = False,
    cost: Annotated[
        str | None,
        typer.Option(
            help="What exact methods for one column minimise: sse, sae, max, round-up, round-down."
        ),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            help="How long auto searches: fast, balanced or best. Ctrl-C ends the search with the best "
            "groups so far."
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="End the search after so many seconds with the best so far."
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            help="A setting of the method, such as gamma=0.2 of v-mdav; see: microagg methods. May be "
            "given several times.",
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
    report: ReportFile = None,
    public: Public = False,
    confidential: Confidential = None,
    dominance: Dominance = None,
    dominance_percent: DominancePercent = 80.0,
    analyses: Analyses = None,
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
        protect_file(
            speaker,
            source,
            target,
            form,
            _split(columns),
            Evidence(
                report,
                public,
                sys.argv[1:],
                confidential=_split(confidential) or [],
                dominance=_split(dominance) or [],
                dominance_percent=dominance_percent,
                analyses=analyses or [],
            ),
            k=k,
            method=method,
            aggregate=aggregate,
            scale=scale,
            per_column=per_column,
            round=round_,
            random_state=seed,
            **({} if refine is None else {"refine": refine}),
            **({"bound": True} if bound else {}),
            options=_options(
                method, options or [], {"cost": cost, "effort": effort, "time_limit": time_limit}
            ),
        )


@app.command()
def measure(
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="File before protection.")],
    protected: Annotated[
        Path,
        typer.Argument(metavar="PROTECTED", help="The same records, protected by any program."),
    ],
    columns: Columns = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", help="Column that tells which records belong together; by position if left out."
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", help="Promised k, to count the records that break it."),
    ] = None,
    confidential: Confidential = None,
    dominance: Dominance = None,
    dominance_percent: DominancePercent = 80.0,
    analyses: Analyses = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Link so many records only, chosen at random, and give an interval."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what a protected file lost and what an attacker gains from it.

    Works on files that any program made. Columns are matched by name, records by position or by
    an id. All numeric columns that both files have are compared unless you name some. Exits with 1 if
    you promise a k that does not hold.

    Example: microagg measure survey.csv safe.csv --columns income,rent,age --id person
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.measure import measure_files

        holds = measure_files(
            speaker,
            original,
            protected,
            _csv_format(delimiter, encoding, decimal),
            _split(columns),
            id_,
            k=k,
            confidential=_split(confidential) or [],
            dominance=_split(dominance) or [],
            dominance_percent=dominance_percent,
            analyses=analyses or [],
            sample=sample,
        )
    if not holds:
        raise typer.Exit(1)


@app.command()
def compare(
    source: In,
    k: Annotated[
        str, typer.Option("--k", "-k", help="Least group sizes to try, separated by commas.")
    ] = "3,5,10",
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods", "-m", help="Methods to try, separated by commas; all that fit if left out."
        ),
    ] = None,
    columns: Columns = None,
    max_loss: Annotated[
        float | None, typer.Option(help="Target: at most this information loss, in percent.")
    ] = None,
    max_linkage: Annotated[
        float | None, typer.Option(help="Target: at most this share of records linked, 0 to 1.")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="How columns are made comparable: zscore, range, robust or none.")
    ] = "zscore",
    seed: Annotated[int, typer.Option(help="Seed of methods that draw random numbers.")] = 0,
    report: ReportFile = None,
    public: Public = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try methods and k on a file: what each loses, what an attacker gains, which to choose.

    Nothing is released. With a target, the answer is one method and k, in words.

    Example: microagg compare survey.csv --k 3,5,10 --columns income,rent,age --max-linkage 0.1
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.measure import compare_file

        evidence = Evidence(report, public, sys.argv[1:])
        evidence.check(source)
        compare_file(
            speaker,
            source,
            _csv_format(delimiter, encoding, decimal),
            _split(columns),
            evidence,
            (max_loss, max_linkage),
            k=_whole_numbers(k),
            methods=_split(methods),
            scale=scale,
            random_state=seed,
        )


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(
            f"--k takes whole numbers separated by commas, such as 3,5,10; got {shown(text)}."
        ) from None


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

        found = verify_file(file, k, _split(columns), csv=_csv_format(delimiter, encoding, decimal))
        speaker.say("columns", names(found.columns))
        say_verification(speaker, file, found)
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
        from microagg.cli.show import print_methods

        print_methods(rows)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the example's files go.")] = Path(
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
        target, report = folder / "diabetes-protected.csv", folder / "report.html"
        words = ["protect", str(original), str(target), "--k", "5", "--columns", ",".join(COLUMNS)]
        words += ["--report", str(report)]
        speaker.say("example", shlex.join(["microagg", *words]))
        protect_file(speaker, original, target, None, COLUMNS, Evidence(report, False, words), k=5)


def _options(method: str, words: list[str], own: Mapping[str, object]) -> dict[str, object]:
    """Settings of the method, from words such as gamma=0.2; refused if it does not have them."""
    from microagg.registry import find
    from microagg.settings import check_options

    found = {name: value for name, value in own.items() if value is not None}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise InputError(
                f"--option takes a name and a value, such as gamma=0.2; got {shown(word)}."
            )
        found[name.strip()] = _number(value.strip())
    check_options(find(method), found)
    return found


def _number(word: str) -> int | float | str:
    """Read a number, whole if it is written so; anything else stays a word."""
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            pass
    return word


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
