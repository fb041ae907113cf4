"""Spark as tests use it: this machine alone, small, quiet, and started once for all tests."""

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import costly, without

# Short jobs: a better compiler would cost more than it gives, as would several threads that collect garbage.
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS = {
    "spark.driver.extraJavaOptions": _LIGHT,
    "spark.executor.extraJavaOptions": _LIGHT,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # tests that kill workers would fill the screen
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    # So few rows are sooner gone through than code for them is compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
    "spark.python.daemon.module": "spark_daemon",
}
_SUPPORT = Path(__file__).parents[1] / "support"


def _required() -> None:
    """Spark needs Java; on Windows its workers would need more than we set up."""
    if sys.platform == "win32":
        pytest.skip("Spark is tried on Linux and macOS")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        without(
            "TOOLS", "no Java on this machine; Debian's package is called openjdk-17-jre-headless"
        )


def _session(master: str, folder: Path, **settings: str) -> Iterator[Any]:
    _required()
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # not the python3 that comes first
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_HOME", str(_home(folder)))
        patch.setenv("PYTHONPATH", str(_SUPPORT), prepend=os.pathsep)  # for spark_daemon
        builder = SparkSession.builder.master(master).appName("microagg tests")
        beside = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        for name, value in {**_SETTINGS, **beside, **settings}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.createDataFrame = _through_a_file(session)
        yield session
        session.stop()


def _through_a_file(session: Any) -> Any:
    """Hand tables of tests to Java by a file: Spark never closes the socket that encryption asks for."""
    create, context = session.createDataFrame, session.sparkContext

    def created(*given: Any, **named: Any) -> Any:
        context._encryption_enabled = False
        try:
            return create(*given, **named)
        finally:
            context._encryption_enabled = True

    return created


def _home(folder: Path) -> Path:
    """The installed Spark seen from a folder of its own, since a cluster writes into its home."""
    import pyspark

    home = folder / "home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


_SESSIONS = pytest.StashKey["_Sessions"]()


class _Sessions:
    """The session that runs; there can be one in a process. It goes on until a test wants another kind."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._master = ""
        self._running: Iterator[Any] = iter(())

    def on(self, master: str, **settings: str) -> Any:
        if master != self._master:
            self.stop()
            self._running = _session(master, self._folders.mktemp("spark"), **settings)
            self._session = next(self._running)
            self._master = master
        return self._session

    def stop(self) -> None:
        next(self._running, None)
        self._master = ""


@pytest.fixture(scope="session")
def sessions(request, tmp_path_factory):
    found = request.config.stash[_SESSIONS] = _Sessions(tmp_path_factory)
    yield found
    found.stop()


def pytest_runtest_teardown(item, nextitem):
    """End the session with the last test that uses it: others are run where there is none."""
    if _SESSIONS in item.config.stash and costly(nextitem) not in ("spark", "cluster"):
        item.config.stash[_SESSIONS].stop()


@pytest.fixture(scope="module")
def spark(sessions):
    """Two tasks at a time in one process; a task that fails is tried again."""
    return sessions.on("local[2,4]")


@pytest.fixture(scope="module")
def cluster(sessions):
    """Two executors that are processes of their own."""
    return sessions.on(
        "local-cluster[2,1,1024]",
        **{"spark.executor.memory": "1g", "spark.authenticate.secret": secrets.token_hex(16)},
    )


@pytest.fixture(params=["memory", "disk", "spark"])
def engine(request):
    """The name of each engine in turn."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


@pytest.fixture
def _small_parts(monkeypatch):
    """Chunks and batches so small that a table of some hundred records has several."""
    for module in ("disk", "spark.on_spark"):
        monkeypatch.setattr(f"microagg.engines.{module}.LEAF", 90)
    monkeypatch.setattr("microagg.engines.disk.AT_ONCE", 128)
