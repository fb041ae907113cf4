"""Spark sessions in which nobody else reads along.

Spark keeps records on disk while it moves them: by default in the temporary folder of the system, in files
that every user of the machine can read. It also serves a web page and listens on all addresses, without a
password. A session that is started here on this machine alone (``local[…]``) keeps its files, encrypted, in a
folder of its owner, and only its own processes can connect to it.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.errors import MicroaggError, shown
from microagg.formats.atomic import HAS_LOCKS, lock, remove_orphan_folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_PRIVATE = {
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
    "spark.network.crypto.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
}
# What protects records on their way through any session, and against whom.
_NEEDED = {
    "spark.authenticate": "anyone who reaches its ports can join in",
    "spark.io.encryption.enabled": "records lie readable on the disks of its machines",
}
# What Java does for few records is sooner done than its better compiler has compiled it, which takes
# processors away from the workers on the same machine.
_QUICK = " -XX:TieredStopAtLevel=1"
_FEW = 2_000_000  # records
_PARTITIONS = "spark.sql.shuffle.partitions"  # 200, if nobody says otherwise: many for one machine
_START = "microagg-spark-"
_FOLDER: list[Path] = []  # of this process, once there is one; Java keeps to it as long as it runs


def check_spark() -> None:
    """Refuse to go on if Spark is not installed, and say how to install it."""
    if find_spec("pyspark") is None:
        raise MicroaggError(
            "Spark DataFrames need Apache Spark for Python, which is not installed. Install it with: "
            'pip install "microagg[spark]"'
        )


def is_local(master: str | None) -> bool:
    """Tell whether a master stands for this machine alone; None: it is not known."""
    return master is not None and re.fullmatch(r"local(\[.*\])?", master) is not None


@contextmanager
def session_on(master: str | None = None, records: int | None = None) -> Iterator[SparkSession]:
    """Yield the session there is, or one on a master that ends with the block; workers use this very Python.

    A session on this machine alone is for its owner; see the head of this file.

    Parameters
    ----------
    master : address as Spark writes it; None: the session there is, else this machine
    records : of the table, where known
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    folder = _private_folder()
    quick = is_local(master) and records is not None and records < _FEW
    # For whatever Java puts down besides records.
    options = f"-Djava.io.tmpdir={folder}{_QUICK if quick else ''}"
    settings = {"spark.ui.showConsoleProgress": "false", "spark.driver.defaultJavaOptions": options}
    with _files_in(folder):
        runs_on = master
        if runs_on is None:  # as submitted, or as configured for this user, which Java tells
            conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            started: Any = SparkContext
            started._ensure_initialized(conf=conf)
            runs_on = SparkConf().get("spark.master", "local[*]")
        local = is_local(runs_on)
        if local:
            settings |= {**_PRIVATE, "spark.local.dir": str(folder)}
        builder: Any = SparkSession.builder.appName("microagg").config(map={**settings})
        if master is not None:
            builder = builder.master(master)
        session = builder.getOrCreate()
    logging.getLogger().addFilter(_not_of_py4j)
    try:
        # What goes wrong is said in our own words.
        context: Any = session.sparkContext
        context.setLogLevel("ERROR")
        if local:
            _refuse_other_folders(context)
        if local and not context.getConf().contains(_PARTITIONS):
            session.conf.set(_PARTITIONS, 8 * context.defaultParallelism)
        context._accumulatorServer.handle_error = lambda *_: None
        yield session
    finally:
        # Java may be gone already, if it was killed.
        with suppress(Exception):
            session.stop()
        logging.getLogger().removeFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Tell whether a message is not one of the bridge to Java, which tells by pages that Java is gone."""
    return "py4j" not in record.pathname


def exposure_words(session: SparkSession) -> str:
    """Say what a session lets others read or do; empty: nothing that is known of."""
    conf = session.sparkContext.getConf()
    off = {name: why for name, why in _NEEDED.items() if conf.get(name, "false") != "true"}
    if not off:
        return ""
    return (
        "A Spark session that moves original records has authentication and encryption; this one has not: "
        f"{'; '.join(f'without {name} {why}' for name, why in off.items())}. Set "
        f"{' and '.join(f'{name}=true' for name in off)} when the session is started; see the page on Spark."
    )


def _private_folder() -> Path:
    """Make a folder for the files of this process, readable by its owner alone; remove those of killed runs.

    It is removed when this process ends. Java, which empties it even if this process is killed, does not end
    with a session and keeps to one folder.
    """
    if _FOLDER and _FOLDER[0].is_dir():
        return _FOLDER[0]
    base = Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
    remove_orphan_folders(base, _START)
    folder = Path(tempfile.mkdtemp(prefix=_START, dir=base))  # made with the mode 0700
    if HAS_LOCKS:
        lock(os.open(folder, os.O_RDONLY | os.O_CLOEXEC))  # held as long as this process lives
    maker = os.getpid()

    def remove() -> None:
        if os.getpid() != maker:  # at the end of one of its children
            return
        from pyspark.sql import SparkSession

        with suppress(Exception):
            running = SparkSession.getActiveSession()
            if running is not None:
                running.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    _FOLDER[:] = [folder]
    return folder


@contextmanager
def _files_in(folder: Path) -> Iterator[None]:
    """Let Spark and Python keep their files in a folder.

    Spark would prefer SPARK_LOCAL_DIRS to the folder that is set. While Java starts, pyspark keeps its key in
    a temporary file, which a killed run leaves behind.
    """
    elsewhere = os.environ.pop("SPARK_LOCAL_DIRS", None)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        if elsewhere is not None:
            os.environ["SPARK_LOCAL_DIRS"] = elsewhere


def _refuse_other_folders(context: Any) -> None:
    """Refuse to work where Spark keeps its files elsewhere, as a Java that runs already may."""
    utils = context._jvm.org.apache.spark.util.Utils
    for folder in utils.getConfiguredLocalDirs(context._jsc.sc().conf()):
        if Path(str(folder)) != _FOLDER[0]:
            raise MicroaggError(
                "Spark on this machine keeps its files in a folder of its owner; it uses "
                f"{shown(str(folder), 300)}. Leave SPARK_LOCAL_DIRS out, or start a session of your own."
            )
