"""What differs between Linux, macOS and Windows and can be tried on any of them."""

import ast
import io
import os
import re
import signal
import sys
from pathlib import Path, PureWindowsPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import microagg
from microagg.cli import main as command
from microagg.compile import threads
from microagg.compile.warm import PARTS, note
from microagg.engines import scratch
from microagg.errors import InputError
from microagg.formats import atomic
from microagg.formats.addresses import as_place, kind_by_ending
from microagg.page import serve, session
from microagg.plan.plan import Plan
from microagg.tables import dates
from microagg.tables.dates import instants, to_arrow

TESTS = Path(__file__).parent
# What Windows does not let stand in the name of a file.
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]|[. ]$')


def test_processors_are_counted_where_there_is_no_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert threads.thread_count() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.thread_count() == 1


@pytest.mark.parametrize("missing", [(), ("SIGHUP",)], ids=["all", "no hang-up"])
def test_the_command_ends_by_the_signals_that_there_are(monkeypatch, missing):
    handled = {}
    for name in missing:
        monkeypatch.delattr(signal, name, raising=False)
    monkeypatch.setattr(signal, "signal", lambda number, handler: handled.update({number: handler}))
    monkeypatch.setattr(command, "app", lambda prog_name: None)
    monkeypatch.setattr(command, "start_quickly", lambda: None)
    command.main()
    wanted = {"SIGTERM", "SIGHUP"} - set(missing)
    assert {number.name for number in handled} == {name for name in wanted if hasattr(signal, name)}
    with pytest.raises(SystemExit) as ended:
        handled[signal.SIGTERM](15, None)
    assert ended.value.code == 143


def test_a_terminal_that_cannot_be_set_or_lacks_letters(monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # as where there is no console
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(command, "start_quickly", lambda: None)
    monkeypatch.setattr(command, "app", lambda prog_name: print("Größe"))
    command.main()
    narrow.flush()
    assert narrow.buffer.getvalue() == b"Gr\\xf6\\xdfe" + os.linesep.encode()


def test_names_of_files_are_allowed_everywhere(tmp_path):
    with atomic.replacing(tmp_path / "out.csv") as part:
        names = [part.name, *map(note, PARTS)]
    with scratch.scratch_folder(tmp_path / "out.parquet") as folder:
        scratch.Shelf(folder / "rows").put(0, np.zeros((2, 1), np.uint64), np.zeros(2, np.int64))
        names += [path.name for path in tmp_path.rglob("*")]
    assert len(names) > len(PARTS) + 3
    assert [name for name in names if _FORBIDDEN.search(name)] == []


@pytest.mark.parametrize("path", [r"C:\data\in.csv", "C:/data/in.csv", r"\\server\share\in.csv"])
def test_a_drive_or_a_share_of_windows_is_no_store(path):
    assert as_place(path) == Path(path)
    assert kind_by_ending(PureWindowsPath(path)) == "csv"


def test_dates_in_text_where_there_are_no_time_zones(monkeypatch):
    """As in small containers: Arrow's strftime looks up even UTC."""

    def refused(*_, **__):
        raise pa.ArrowInvalid("Cannot locate or parse timezone 'UTC'")

    monkeypatch.setattr(pc, "strftime", refused)
    days = pa.chunked_array([["2024-03-01", None, "2024-05-31"]])
    found = instants(days)
    assert found.format == "%Y-%m-%d"
    again = to_arrow(found.values, pa.string(), found.origin, found.format)
    assert again.to_pylist() == days.to_pylist()
    plan = Plan.of(k=1, columns=["day"], kinds={"day": "date"}, coarsen={"day": {"to": "month"}})
    with pytest.warns(microagg.DisclosureRiskWarning, match="k = 1"):
        released = microagg.protect(pa.table({"day": days}), plan=plan).data
    assert released["day"].to_pylist() == ["2024-03-01", None, "2024-05-01"]


@pytest.mark.parametrize("form", dates._FORMATS)
def test_dates_are_written_as_by_arrow(form):
    seconds = np.random.default_rng(0).integers(-62_000_000_000, 250_000_000_000, 500)
    stamps = pa.chunked_array([pa.array(seconds).cast(pa.timestamp("s")), [None]])
    assert dates.written_dates(stamps, form).equals(pc.strftime(stamps, format=form))


def test_the_page_starts_its_worker_as_windows_does(monkeypatch):
    asked = []

    def context(way):
        asked.append(way)
        raise InterruptedError

    monkeypatch.setattr(session.multiprocessing, "get_context", context)
    with pytest.raises(InterruptedError):
        session.Worker(lambda *_: None, lambda *_: None)
    assert asked == ["spawn"]


@pytest.mark.parametrize("system", ["linux", "win32"])
def test_a_port_that_is_taken_is_refused_on_every_system(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)
    (first, *others) = serve._listening(0)
    try:
        with pytest.raises(InputError, match="needs a free port"):
            serve._listening(first.getsockname()[1])
    finally:
        for one in (first, *others):
            one.close()


# What a test that uses it has to be marked with; Linux has what POSIX asks for.
_NEEDS = {
    "linux": re.compile(
        r"/proc[\"']|/proc/self/fd|/proc/\{|os\.sched_[gs]etaffinity|import (os, )?resource\b"
    ),
    "posix": re.compile(
        r"os\.(fork|kill|exec\w+|mkfifo|umask)\b|chmod\(|SIGKILL|send_signal|signal\.alarm|\bpty\.|[\"']/dev/|\bst_mode|AF_UNIX"
    ),
}
_NOT_ON_WINDOWS = re.compile(
    r"^(import|from) (pty|tty|termios|resource|fcntl|pwd)\b|\bsignal\.SIG(KILL|HUP|ALRM|STOP)\b"
)


def unmarked(source: str, need: str) -> list[str]:
    """Return the tests of a file that use what some systems lack, also by a helper, and do not say so."""
    lines, texts, marks = source.splitlines(), {}, {}
    for node in ast.parse(source).body:
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef):
            texts[node.name] = text
            marks[node.name] = " ".join(ast.unparse(one) for one in node.decorator_list)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts[node.targets[0].id] = text
    enough = ("mark.linux",) if need == "linux" else ("mark.linux", "mark.posix")
    if any(mark in texts.get("pytestmark", "") for mark in enough):
        return []
    using = {name for name, text in texts.items() if _NEEDS[need].search(text)}
    while more := {
        name
        for name, text in texts.items()
        if name not in using and using & set(re.findall(r"\w+", text))
    }:
        using |= more
    return [
        name
        for name in sorted(using)
        if name.startswith("test_") and not any(mark in marks[name] for mark in enough)
    ]


@pytest.mark.parametrize("need", _NEEDS)
def test_tests_that_some_systems_cannot_run_say_so(need):
    files = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    found = {path.name: unmarked(path.read_text(encoding="utf-8"), need) for path in files}
    assert {name: tests for name, tests in found.items() if tests} == {}


def test_every_file_of_tests_is_read_on_windows():
    """What Windows lacks is named within functions that are skipped there, never where a file is read."""
    found = []
    for path in TESTS.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            read = node.decorator_list if isinstance(node, ast.FunctionDef) else [node]
            if not isinstance(node, ast.ClassDef):
                texts = map(ast.unparse, read)
                found += [path.name for text in texts if _NOT_ON_WINDOWS.search(text)]
    assert found == []


def test_an_unmarked_test_would_be_noticed():
    helper = "import os\ndef child():\n    os.fork()\n"
    assert unmarked(helper + "def test_a():\n    child()\n", "posix") == ["test_a"]
    marked = helper + "@pytest.mark.posix\ndef test_a():\n    child()\n"
    assert unmarked(marked, "posix") == []
    assert unmarked("def test_a():\n    open('/proc/self/fd')\n", "linux") == ["test_a"]
