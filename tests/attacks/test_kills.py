"""Runs that are killed or interrupted at any moment: a whole file or none, and no false word.

Each run is a process forked from one that has loaded everything. It sends itself the signal at one of its
calls, so that the moment is the same every time. A run on Spark starts from nothing, with a Java of its own,
and is killed after a while. ``make test-all`` sends many more signals, and
``python tests/attacks/test_kills.py FOLDER parquet kill spark 0 50`` as many as it is asked for.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ending import attack, end_at, working_in
from microagg.cli.main import main as command
from microagg.engines import disk
from microagg.formats.files import write_file
from microagg.measure.verify import verify

QUICK, LONG = range(12), range(12, 112)  # runs for each signal and format
K = 3
COLUMNS = ["age", "pay"]
SIGNALS = {"kill": "SIGKILL", "interrupt": "SIGINT", "terminate": "SIGTERM"}


def table() -> pa.Table:
    chance = np.random.default_rng(0)
    n = 300
    city = chance.choice(["Aachen", "Bonn", "Celle"], n)
    return pa.table({"age": chance.integers(18, 90, n), "pay": chance.normal(size=n), "city": city})


def start(
    source: Path,
    target: Path,
    said: Path,
    engine: str,
    call: int = 0,
    sent: signal.Signals = signal.SIGTERM,
) -> int:
    """Run the command in a forked process that gets a signal at one of its calls; return its number."""
    child = os.fork()
    if child:
        return child
    try:
        handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        if engine == "spark":  # Java does not live in a forked process
            environment = {**os.environ, "TMPDIR": str(source.with_name("tmp"))}
            words = [sys.executable, "-m", *asked(source, target, engine)]
            os.execve(sys.executable, words, environment)
        calls = end_at(call, sent)
        try:
            run(source, target, engine)
        finally:
            sys.setprofile(None)
            said.with_name("calls.txt").write_text(str(calls()))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:  # before or after the command listens to it
        code = 130
    os._exit(code)


def asked(source: Path, target: Path, engine: str) -> list[str]:
    words = ["microagg", "protect", str(source), str(target)]
    words += ["--k", str(K), "-c", ",".join(COLUMNS)]
    words += ["--method", "mdav", "--engine", engine]
    return [*words, *(["--master", "local[2]"] if engine == "spark" else ["--keep-order"])]


def run(source: Path, target: Path, engine: str) -> None:
    sys.argv = asked(source, target, engine)
    command()


def content(target: Path) -> bytes | None:
    """What a target holds; of a folder the rows, which Spark writes in any order."""
    if not target.is_dir():
        return target.read_bytes() if target.exists() else None
    names = [path.name for path in target.iterdir()]
    if names == ["old.parquet"]:
        return (target / names[0]).read_bytes()
    if any(not name.endswith(".parquet") for name in names):
        return f"other files: {names}".encode()
    rows = pq.read_table(target)
    return repr(rows.sort_by([(name, "ascending") for name in rows.column_names])).encode()


def put_old(target: Path, engine: str) -> None:
    """Put something there that a run replaces."""
    if engine == "spark":
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        target /= "old.parquet"
    target.write_bytes(b"old")


def put_nothing(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)


def still_running(folder: Path) -> list[str]:
    """Processes of runs on Spark, after some time to end in."""
    for _ in range(6_000):
        found = working_in(folder / "tmp")
        if not found:
            break
        time.sleep(0.1)
    return found


def parts_in(folder: Path) -> list[str]:
    """Files and folders that only a run at work, or one that was killed, has."""
    return [
        path.name for path in folder.iterdir() if ".part" in path.name or ".scratch" in path.name
    ]


def fault_of(
    source: Path, target: Path, sent: signal.Signals, moment: float, engine: str
) -> str | None:
    """Start a run that gets a signal at a call, on Spark after seconds; return what is wrong then."""
    original = source.read_bytes()
    before = content(target)
    said = source.with_name("said.txt")
    child = start(source, target, said, engine, int(moment), sent)
    if engine == "spark":
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, sent)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    words = said.read_text() if said.exists() else ""
    after = content(target)
    # Python tells so of an interrupt that came where a library cannot pass it on; it is lost.
    if "Traceback" in words and "Exception ignored in" not in words:
        return words
    if code not in (0, 130, 143, -sent):
        return f"exit code {code}: {words}"
    if source.read_bytes() != original:
        return "the source was changed"
    if sent != signal.SIGKILL and parts_in(target.parent):
        return f"{parts_in(target.parent)} was left"
    if after == before:
        return "exit code 0 without a file" if code == 0 and before is None else None
    if "nothing was" in words:
        return f"a file is there, but: {words}"
    found = verify(target, K, COLUMNS)
    if not found.holds or found.records != table().num_rows:
        return f"the file does not hold: {found}"
    return None


def main(folder: Path, ending: str, word: str, engine: str, low: int, high: int) -> None:
    """Send one signal to many runs, print the faults by seed and how many runs it ended."""
    source, target = folder / f"in.{ending}", folder / f"out.{ending}"
    (folder / "tmp").mkdir()
    disk.LEAF, disk.AT_ONCE = 90, 64  # many chunks and batches
    write_file(table(), source)
    sent = signal.Signals[SIGNALS[word]]
    if engine == "spark":
        os.waitpid(start(source, target, folder / "said.txt", engine), 0)
    else:
        with contextlib.suppress(SystemExit):
            run(source, target, engine)  # here, so that each process finds all of it loaded
    expected = content(target)
    began = time.perf_counter()
    os.waitpid(start(source, target, folder / "said.txt", engine), 0)
    whole = time.perf_counter() - began
    if engine != "spark":
        whole = int((folder / "calls.txt").read_text())
    faults, ended = {}, 0
    for seed in range(low, high):
        chance = random.Random(seed)
        put_nothing(target)
        if chance.random() < 0.5:
            put_old(target, engine)
        fault = fault_of(source, target, sent, chance.uniform(0, 1.1 * whole), engine)
        left = content(target)
        ended += left in (None, b"old")
        if fault is None and left not in (None, b"old", expected):
            fault = "the file is not that of a run that nobody ended"
        if fault is not None:
            faults[seed] = fault
    os.waitpid(start(source, target, folder / "said.txt", engine), 0)
    if parts_in(folder):
        faults[high] = f"{parts_in(folder)} is there after a whole run"
    if content(target) != expected:
        faults[high] = "the last run made no such file"
    if engine == "spark" and still_running(folder):
        faults[high] = f"still running: {still_running(folder)}"
    if any((folder / "tmp").iterdir()):
        faults[high] = f"left: {sorted(path.name for path in (folder / 'tmp').iterdir())}"
    print(json.dumps({"faults": faults, "ended": ended}), flush=True)
    # A process that forked while libraries had threads may abort when these are torn down at its end.
    os._exit(0)


FEW = [
    ("parquet", "interrupt", "memory"),
    ("arrow", "terminate", "memory"),
    ("csv", "kill", "memory"),
    ("csv", "kill", "disk"),
]
IN_MEMORY = product(("csv", "parquet", "arrow"), SIGNALS, ["memory"])
MANY = [*IN_MEMORY, *product(("csv", "parquet"), SIGNALS, ["disk"])]


@pytest.mark.parametrize(
    ("ending", "word", "engine", "runs"),
    [
        *((*kind, QUICK) for kind in FEW),
        *(pytest.param(*kind, LONG, marks=pytest.mark.long) for kind in MANY),
    ],
)
@pytest.mark.posix
def test_a_run_that_is_ended_at_any_moment_leaves_a_whole_file_or_none(
    tmp_path, ending, word, engine, runs
):
    found = attack(__file__, tmp_path, ending, word, engine, runs.start, runs.stop)
    assert found["faults"] == {}
    assert found["ended"]  # else no signal came in time


@pytest.mark.long
@pytest.mark.linux
def test_many_runs_on_spark_that_are_killed_leave_whole_folders_or_none(tmp_path):
    from engines.conftest import _required

    pytest.importorskip("pyspark")
    _required()
    found = attack(__file__, tmp_path, "parquet", "kill", "spark", 0, 50)
    assert found["faults"] == {}
    assert found["ended"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5]), int(sys.argv[6]))
