"""Attack releases of random tables by random plans, and count what does not hold.

Every try goes from file to file by the command; what it claims is counted again by pandas and plain Python
(``tests/attacks``). ``python -m benchmarks attacks --area=disk --tries=300`` runs one area; without an
area all of them run, with ``--processes=16`` in as many processes (by default one for each processor, for
Spark one for two). Results are kept in ``benchmarks/attacks.json``, and the table of docs/disclosure.md is
written from there while it runs. A long run can be made in pieces: ``--from=1000`` leaves out the first
thousand tries and adds what it finds to what is kept of them. ``--area=known`` repeats the attacks that broke
green files once (``known_attacks.py``).
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.known_attacks import known_attacks, table_of_known

HERE = Path(__file__).parent
KEPT = HERE / "attacks.json"
KNOWN = HERE / "known_attacks.json"
PAGE = HERE.parent / "docs" / "disclosure.md"
BEGIN, END = "<!-- attacks -->", "<!-- end of attacks -->"
BEGIN_KNOWN, END_KNOWN = "<!-- known attacks -->", "<!-- end of known attacks -->"
_FIRST_SEED = 1_000_000
_AT_ONCE = 25  # tries that a process does before it tells how they ended
_AT_ONCE_ON_SPARK = 4

# What is tried, how often, and how the table names it.
AREAS = {
    "memory": (2_000, "mixed plans in memory"),
    "disk": (300, "mixed plans on disk, compared with memory"),
    "spark": (60, "mixed plans on Spark, compared with memory"),
    "linked": (1_000, "files that show which rows are one household"),
}


def main() -> None:
    """Run the areas that the command line names, and write the table."""
    asked = dict(
        word[2:].split("=") for word in sys.argv[1:] if word.startswith("--") and "=" in word
    )
    if asked.get("area", "known") == "known":
        rows = list(known_attacks())
        KNOWN.write_text(json.dumps(rows, indent=1) + "\n")
        _put(table_of_known(rows), BEGIN_KNOWN, END_KNOWN)
        if "area" in asked:
            return
    results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for area in [asked["area"]] if "area" in asked else AREAS:
        tries = int(asked.get("tries", AREAS[area][0]))
        processes = int(asked.get("processes", max(1, (os.cpu_count() or 1) // _cores(area))))
        first = int(asked.get("from", 0))
        before = results[area] if first else {"tries": 0, "ends": {}, "failures": []}
        if before["tries"] != first:
            sys.exit(
                f"{before['tries']:,} tries are kept of {area}; go on with --from={before['tries']}."
            )
        for found in run_area(
            area, tries, processes, first
        ):  # a run that is ended early has its count
            ends = Counter(before["ends"]) + Counter(found["ends"])
            results[area] = {
                "tries": first + found["tries"],
                "ends": dict(sorted(ends.items())),
                "failures": before["failures"] + found["failures"],
            }
            KEPT.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
            write_table(results)


def _cores(area: str) -> int:
    """Processors that one process keeps busy: on Spark Java and Python workers, too."""
    return 2 if area == "spark" else 1


def run_area(area: str, tries: int, processes: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Carry out random plans in some processes; give how they ended so far, until there are as many tries.

    The tries before the ``first`` are left out; it is a multiple of those that a process does at once.

    Which plans are tried does not depend on the number of processes.
    """
    at_once = _AT_ONCE_ON_SPARK if area == "spark" else _AT_ONCE
    parts = [min(at_once, tries - at) for at in range(first, tries, at_once)]
    begin = first // at_once
    seeds = [_FIRST_SEED + _AT_ONCE * 100 * (begin + at) for at in range(len(parts))]
    ends: Counter[str] = Counter()
    failures: list[str] = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for own, failed in pool.map(run_part, [area] * len(parts), parts, seeds):
            ends += own
            failures += failed
            done = sum(ends.values())
            print(f"{area}: {done:,} tries, {len(failures)} failed", file=sys.stderr)
            yield {"tries": done, "ends": dict(ends), "failures": list(failures)}


def run_part(area: str, tries: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Carry out some random plans; return how they end, and those that fail."""
    sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "support")]
    from attacks.mixed_cases import draw_for_engines, draw_linked, draw_mixed
    from attacks.sweep import carry_out, differences
    from microagg.errors import InputError

    ends: Counter[str] = Counter()
    failures: list[str] = []
    with TemporaryDirectory() as name, _session(area):
        while sum(ends.values()) < tries:
            seed += 1
            try:
                if area == "linked":
                    case = draw_linked(seed)
                elif area == "memory":
                    case = draw_mixed(seed)
                else:
                    case = draw_for_engines(seed)
            except InputError:  # settings that exclude each other
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ended = carry_out(Path(name), case, public=seed % 20 == 0)
                    end = "refused" if ended.claims is None else ended.claims.verdict
                    if area in ("disk", "spark"):
                        end = differences(ended, carry_out(Path(name), case, area))
            except Exception as error:  # whatever it is, it is a failure of this try
                end = f"failed: {type(error).__name__}"
                print(f"{area} {seed}: {error!r}", file=sys.stderr)
            if end.startswith(("failed", "differs")):
                failures.append(f"{seed} {end}")
            ends[end] += 1
    return ends, failures


def _session(area: str) -> Any:
    """One session of Spark for many tries, as the command starts it; nothing for other engines."""
    from microagg.engines.spark.spark_session import session_on

    return session_on("local[2]") if area == "spark" else nullcontext()


def table_of(results: dict[str, Any]) -> str:
    """The table of the page, from what was counted."""
    lines = ["| area | tries | released | refused | failures |", "|---|---|---|---|---|"]
    for area, (_, words) in AREAS.items():
        if area in results:
            found = results[area]
            refused, failed = found["ends"].get("refused", 0), len(found["failures"])
            released = found["tries"] - refused - failed
            lines.append(
                f"| {words} | {found['tries']:,} | {released:,} | {refused:,} | {failed:,} |"
            )
    return "\n".join(lines)


def write_table(results: dict[str, Any]) -> None:
    """Put the table of random plans into the page."""
    _put(table_of(results), BEGIN, END)


def _put(table: str, begin: str, end: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}", encoding="utf-8")
