"""What an engine does not use is refused, in one sentence, before any work."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import here, said

pytest.importorskip("pyspark")


@pytest.fixture
def source(tmp_path):
    chance = np.random.default_rng(0)
    table = pa.table({"x": chance.normal(size=60), "y": chance.normal(size=60)})
    pq.write_table(table, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


@pytest.mark.parametrize(
    ("engine", "flags", "way"),
    [
        ("spark", ["--memory", "2GiB"], "disk"),
        ("spark", ["--encoding", "latin-1"], "memory"),
        ("spark", ["--delimiter", ";"], "memory"),
        ("spark", ["--decimal", ","], "memory"),
        ("spark", ["--sheet", "first"], "memory"),
        ("spark", ["--public", "--report", "r.html"], "memory"),
        ("spark", ["--bound"], "memory"),
        ("spark", ["--time-limit", "5"], "memory"),
        ("disk", ["--master", "local[2]"], "spark"),
        ("disk", ["--sheet", "first"], "memory"),
        ("disk", ["--public", "--report", "r.html"], "memory"),
        ("disk", ["--time-limit", "5"], "memory"),
        ("memory", ["--memory", "2GiB"], "disk"),
        ("memory", ["--master", "local[2]"], "spark"),
        (None, ["--master", "local[2]"], "spark"),
    ],
)
def test_a_flag_that_the_engine_does_not_use_is_refused(source, engine, flags, way):
    asked = ["protect", source, source.with_name("out.parquet"), "-k", 3, "-c", "x,y"]
    done = here(*asked, *([] if engine is None else ["--engine", engine]), *flags)
    words = said(done)
    assert done.returncode == 2
    flag = "--bound" if "bound" in flags[0] else flags[0]
    where = "this job names no engine" if engine is None else f"this job runs on {engine}"
    assert f"Error: {flag} " in words  # what it is for, and who uses it
    assert f" it; {where}. Leave {flag} out, or say --engine {way}." in words
    assert words.count(". ") == 1
    assert sorted(path.name for path in source.parent.iterdir()) == ["in.parquet"]


def test_disk_that_nobody_asked_for_refuses_what_it_does_not_use(source):
    """The engine is chosen by the size of the table; what it would ignore is said then."""
    asked = ["protect", source, source.with_name("out.parquet"), "-k", 3, "-c", "x,y"]
    done = here(*asked, "--memory", "1kB", "--time-limit", 5)
    assert done.returncode == 2
    assert "this job runs on disk. Leave --time-limit out" in said(done)


NO_MASTER = "Error: master is where Spark runs: local, local[2]"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-c", "x,nix"], "nix"),
        (["-c", "x,y", "--keep-order"], "keep_order is true"),
        (["-c", "x,y", "--analysis", "x by nix"], "nix"),
        *(
            (["--master", m], NO_MASTER)
            for m in ("nosuch", "local[x]", "spark:/host", "", "local[2")
        ),
    ],
)
def test_what_cannot_work_on_spark_is_said_before_it_starts(source, flags, words, monkeypatch):
    def started(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr("microagg.job.engine_in_parts.session_on", started)
    done = here(*("protect", source, source.with_name("out"), "-k", 3, "--engine", "spark", *flags))
    assert done.returncode == 2
    assert words in said(done)
