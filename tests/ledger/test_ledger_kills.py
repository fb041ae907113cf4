"""Runs with a ledger that are killed at any moment: release, ledger and key always belong together.

Each run is a process forked from one that has loaded everything, and kills itself at one of its calls: half
of them at any, half of them while the files are written and take their names.
``python tests/ledger/test_ledger_kills.py FOLDER 0 200`` kills as many runs as it is asked for.
"""

import json
import os
import random
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ending import attack, end_at
from microagg import MicroaggError, protect_file
from microagg.formats.atomic import sha256
from microagg.job import memory_engine
from microagg.ledger.ledger_file import finish_killed_run, key_file, opened_key, read_ledger
from microagg.ledger.recount import recount

QUICK, LONG = 15, 200


def table(wave: int) -> pd.DataFrame:
    chance = np.random.default_rng(0)
    n = 60 + 5 * wave
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(n)], "x": chance.normal(size=n).round(3)})
    return frame.assign(x=frame["x"] * (1 + wave))


def release(folder: Path, wave: int) -> None:
    source = folder / f"in{wave}.csv"
    table(wave).to_csv(source, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        protect_file(
            source,
            folder / f"out{wave}.csv",
            3,
            columns=["x"],
            kinds={"x": "number"},
            drop=["id"],
            key="id",
            ledger=folder / "L.sqlite",
            report=folder / f"report{wave}.html",
        )


def killed(folder: Path, wave: int, call: int) -> tuple[bool, list[int]]:
    """Release in a process that kills itself at a call; say whether it did, and which calls there were."""
    said = folder / "calls.json"
    said.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        calls = end_at(call, signal.SIGKILL)
        moments = []
        write = memory_engine.write_ledger

        def write_and_note(*arguments: object) -> None:
            moments.append(calls())
            write(*arguments)  # type: ignore[arg-type]

        memory_engine.write_ledger = write_and_note  # type: ignore[assignment]
        release(folder, wave)
        sys.setprofile(None)
        said.write_text(json.dumps([*moments, calls()]))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code == -signal.SIGKILL, json.loads(said.read_text()) if said.exists() else []


def fault(folder: Path, wave: int) -> str | None:
    """Say what does not belong together after a run of a wave that was killed; None: all does."""
    path = folder / "L.sqlite"
    if not path.exists():
        if any((folder / name).exists() for name in (f"out{wave}.csv", f"report{wave}.json")):
            return "a release or a report without a ledger"
        return None
    try:
        with opened_key(path, make=False) as key:
            ledger = read_ledger(path, key)
            finish_killed_run(ledger)
    except MicroaggError as error:
        return str(error)
    if key_file(path).stat().st_mode & 0o077 or path.stat().st_mode & 0o077:
        return "somebody else may read the ledger"
    if len(ledger.releases) not in (wave, wave + 1):
        return f"{len(ledger.releases)} releases in wave {wave}"
    for number, facts in enumerate(ledger.releases):
        file = folder / f"out{number}.csv"
        if not file.exists() or sha256(file) != facts["sha256"]:
            return f"release {number} is not in its file"
        report = folder / f"report{number}.json"
        if json.loads(report.read_text())["ledger"]["chain"] != ledger.chain[number]:
            return f"the report of release {number} is another"
    is_released = len(ledger.releases) > wave
    for name in (f"out{wave}.csv", f"report{wave}.json"):
        if (folder / name).exists() != is_released:
            return f"{name} and the ledger do not belong together"
    return None if recount(ledger).holds else "the files together do not hold"


def main(folder: Path, low: int, high: int) -> None:
    """Kill runs, print the faults by seed and how many runs were killed."""
    (folder / "whole").mkdir()
    for wave in range(3):  # here, so that each process finds all of it loaded
        release(folder / "whole", wave)
    (folder / "counted").mkdir()
    bounds = [killed(folder / "counted", wave, 0)[1] for wave in range(2)]
    faults, ended = {}, 0
    for seed in range(low, high):
        chance = random.Random(seed)
        place = folder / str(seed)
        place.mkdir()
        wave = seed % 2  # the first release makes the ledger and its key
        for before in range(wave):
            release(place, before)
        writes, last = bounds[wave]
        call = chance.randint(*((1, last) if chance.random() < 0.5 else (writes, last)))
        ended += killed(place, wave, call)[0]
        wrong = fault(place, wave)
        if wrong is None:  # the next run goes on as if nothing had been
            release(place, wave + 1)
            wrong = fault(place, 1 + wave) if len(numbers(place)) == wave + 2 else None
        if wrong is not None:
            faults[seed] = f"call {call} of {last}: {wrong}"
    print(json.dumps({"faults": faults, "ended": ended}), flush=True)
    os._exit(0)  # libraries with threads may abort at the end of a process that forked


def numbers(folder: Path) -> list[int]:
    path = folder / "L.sqlite"
    with opened_key(path, make=False) as key:
        return [facts["number"] for facts in read_ledger(path, key).releases]


@pytest.mark.posix
def test_release_ledger_and_key_belong_together_after_a_kill(tmp_path):
    found = attack(__file__, tmp_path, 0, QUICK)
    assert found["faults"] == {}
    assert found["ended"]  # else no kill came in time


@pytest.mark.long
@pytest.mark.posix
def test_release_ledger_and_key_belong_together_after_many_kills(tmp_path):
    found = attack(__file__, tmp_path, 0, LONG)
    assert found["faults"] == {}
    assert found["ended"] > LONG / 2


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
