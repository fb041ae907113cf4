"""Spark on one machine: what other users can read while it works, and what is left when it is ended.

A run is a process of its own that waits at a stage, by when records have moved through files of Spark.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.engines.spark import spark_session
from microagg.formats.atomic import remove_orphan_folders

pytest.importorskip("pyspark")
pytestmark = pytest.mark.linux  # looks into /proc
RUN = Path(__file__).with_name("spark_run.py")
N = 300


@pytest.fixture(autouse=True)
def _java() -> None:
    from engines.conftest import _required

    _required()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    chance = np.random.default_rng(7)
    table = pa.table(
        {"x": chance.normal(size=N), "y": chance.normal(size=N), "z": np.arange(N) % 5}
    )
    (tmp_path / "files").mkdir()
    pq.write_table(table, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


class Run:
    """A run that has come to a stage."""

    def __init__(self, process: subprocess.Popen[str], source: Path) -> None:
        self.process = process
        self.files, self.target = source.with_name("files"), source.with_name("out")
        line = process.stdout.readline() if process.stdout else ""
        assert line, process.communicate()[1]
        self.java = int(json.loads(line)["java"])

    def ended(self) -> tuple[int, str]:
        """Let it go on, and return its exit code and what it said."""
        _, words = self.process.communicate("\n", timeout=500)
        return self.process.returncode, words

    def wait_for_java(self) -> None:
        """Wait until Java and its Python workers are gone."""
        for _ in range(6_000):
            if not self.processes():
                return
            time.sleep(0.1)
        raise AssertionError(f"still there: {self.processes()}")

    def processes(self) -> list[str]:
        """Processes that work in the folder of this run."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if f"TMPDIR={self.files}\0".encode() in path.read_bytes():
                    found.append(path.parent.name)
        return [number for number in found if int(number) != self.process.pid]

    @property
    def folders(self) -> list[Path]:
        return list(self.files.iterdir())


def at_work(process: int) -> bool:
    """Whether a process has not ended; one that nobody asked for its exit code is still listed."""
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@contextmanager
def run_until(stage: str, source: Path) -> Iterator[Run]:
    """Start a run that waits at a stage; its temporary files have a folder of their own."""
    files = source.with_name("files")
    environment = {**os.environ, "TMPDIR": str(files)}
    environment.pop("SPARK_LOCAL_DIRS", None)
    with subprocess.Popen(
        [sys.executable, str(RUN), stage, str(source), str(source.with_name("out"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=source.parent,
        text=True,
    ) as process:
        try:
            yield Run(process, source)
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def listening(process: int) -> list[str]:
    """Addresses on which a process listens, as the system writes them."""
    own = set()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(handle))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                raw = bytes.fromhex(words[1].split(":")[0])
                parts = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
                family = socket.AF_INET if table == "tcp" else socket.AF_INET6
                found.append(socket.inet_ntop(family, b"".join(parts)))
    return found


def readable_by_others(folder: Path) -> list[Path]:
    """Files and folders that somebody else can come to and read, by the modes on the way."""
    found: list[Path] = []
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        if mode & 0o077:
            found.append(path)
            if path.is_dir():
                found += readable_by_others(path)
    return found


def check_nobody_reads_along(run: Run, source: Path) -> None:
    """Check modes, content and addresses of a run whose records have been moved."""
    (folder,) = run.folders
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not readable_by_others(run.files)
    files = [path for path in folder.rglob("*") if path.is_file()]
    moved = [path for path in files if path.name.startswith("shuffle_") and path.suffix == ".data"]
    assert sum(path.stat().st_size for path in moved) > 8 * N  # else nothing could be found
    x = np.asarray(pq.read_table(source)["x"])
    content = b"".join(path.read_bytes() for path in files)
    known = [value.tobytes() for value in x] + [value.byteswap().tobytes() for value in x]
    assert not [value for value in known if value in content]
    addresses = listening(run.java) + listening(run.process.pid)
    assert addresses
    assert {address.removeprefix("::ffff:") for address in addresses} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("who", "sent", "code"),
    [
        ("python", "SIGKILL", -9),
        pytest.param("python", "SIGTERM", 143, marks=pytest.mark.long),
        pytest.param("python", "SIGINT", 130, marks=pytest.mark.long),
        pytest.param("java", "SIGKILL", 2, marks=pytest.mark.long),
        pytest.param("java", "SIGTERM", 2, marks=pytest.mark.long),
    ],
)
def test_nobody_reads_along_and_a_run_that_is_ended_leaves_no_file_and_no_process(
    source, who, sent, code
):
    """A killed one may leave a folder, which holds nothing that others can read, to the next run."""
    with run_until("measuring", source) as run:
        check_nobody_reads_along(run, source)
        os.kill(run.process.pid if who == "python" else run.java, signal.Signals[sent])
        while who == "java" and at_work(run.java):
            time.sleep(0.01)
        found, words = run.ended()
        assert found == code, words
        run.wait_for_java()
        assert "Traceback" not in words
        if who == "java":
            assert "A process of Spark ended before its work was done" in " ".join(words.split())
        assert not readable_by_others(run.files)
        if sent == "SIGKILL":
            remove_orphan_folders(run.files, spark_session._START)  # as the next run does first
        assert run.folders == []
        left = sorted(path.name for path in source.parent.iterdir() if path.name != "files")
        parts = [name for name in left if ".part" in name]
        assert not run.target.exists()
        assert not parts or (who, sent) == ("python", "SIGKILL")


def test_a_session_without_protection_is_told_of():
    class Conf(dict[str, str]):
        pass

    class Session:
        def __init__(self, **settings: str) -> None:
            conf = Conf({name.replace("_", "."): value for name, value in settings.items()})
            self.sparkContext = type("Context", (), {"getConf": lambda self: conf})()

    words = spark_session.exposure_words(Session())  # type: ignore[arg-type]
    assert "spark.authenticate=true and spark.io.encryption.enabled=true" in words
    words = spark_session.exposure_words(Session(spark_authenticate="true"))  # type: ignore[arg-type]
    assert "spark.authenticate" not in words
    assert "spark.io.encryption.enabled=true" in words
    both = Session(spark_authenticate="true", spark_io_encryption_enabled="true")
    assert spark_session.exposure_words(both) == ""  # type: ignore[arg-type]
