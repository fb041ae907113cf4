"""Compiling in advance: nothing is left to compile then, and a plan asks for what it needs."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from command import here
from microagg.compile import warm
from microagg.compile.warm import PARTS, WEIGHTED
from microagg.engines import first_calls
from microagg.errors import MicroaggError
from microagg.plan.registry import METHODS

REQUIRED = {"weighted search", "required start", "required merging"}
COLUMNS = ["--columns", "c0,c1,c2", "--drop", "home,w,ill"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path, n, rng = tmp_path_factory.mktemp("warm") / "table.csv", 300, np.random.default_rng(0)
    columns = {f"c{j}": rng.normal(size=n) for j in range(3)}
    columns |= {"home": np.arange(n) // 2, "w": rng.uniform(1, 9, n), "ill": rng.integers(0, 5, n)}
    csv.write_csv(pa.table(columns), path)
    return path


def test_a_next_job_loads_neither_pandas_nor_the_compiler(table, tmp_path):
    """pandas takes a second, and numba's compiler with scipy.linalg half of one."""
    words = ["protect", str(table), str(tmp_path / "out.csv"), "--k", "3", *COLUMNS, "--quiet"]
    script = (
        "import json, sys\n"
        "from microagg.base.own_process import start_quickly\n"
        "start_quickly()\n"
        "from microagg.cli.main import app\n"
        "app(json.loads(sys.argv[1]), standalone_mode=False)\n"
        "print(sorted({'pandas', 'scipy.linalg', 'numba.np.arraymath'} & set(sys.modules)))\n"
    )
    run = [sys.executable, "-c", script, json.dumps(words)]
    subprocess.run(run, check=True, capture_output=True)  # compiles what is missing
    (tmp_path / "out.csv").unlink()
    assert subprocess.check_output(run, text=True, stderr=subprocess.DEVNULL).strip() == "[]"


def test_what_is_compiled_is_noted_and_said_once(tmp_path, monkeypatch, table):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("microagg.cli.protect_command.needed", lambda *_, **__: ["linkage"])
    assert warm.lacking(["linkage", "start"]) == ["linkage", "start"]
    words = ["protect", table, tmp_path / "out.csv", "--k", "3", *COLUMNS]
    assert here(*words).stderr.startswith(
        "compiling    for the first job of this kind on this machine"
    )
    assert warm.lacking(["linkage", "start"]) == ["start"]
    assert "compiling" not in here(*words).stderr


@pytest.mark.parametrize("flag", ["--columns", "--drop", "--unit"])
def test_a_wrong_name_is_refused_before_anything_is_compiled(tmp_path, monkeypatch, table, flag):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("microagg.compile.warm._worker", None)
    done = here("protect", table, tmp_path / "out.csv", "--k", 3, flag, "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: There is no column 'nowhere'; the table has 'c0'")


@pytest.mark.posix
def test_ctrl_c_ends_the_compiling_too(tmp_path, table):
    words = ["protect", str(table), str(tmp_path / "out.csv"), "--k", "3", *COLUMNS]
    script = (
        "import atexit, json, os, signal, sys\n"
        "from microagg.cli.main import main\n"
        "from microagg.compile.warm import Warming\n"
        "wait = Warming.wait\n"
        "def interrupted(self, *args, **settings):\n"
        "    workers = list(self._workers)\n"
        "    atexit.register(lambda: print(len(workers), {worker.returncode for worker in workers}))\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    wait(self, *args, **settings)\n"
        "Warming.wait = interrupted\n"
        "sys.argv[1:] = json.loads(sys.argv[1])\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(words)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr.startswith("compiling")
    assert done.stderr.endswith("Interrupted: nothing was written.\n")
    workers, ended_by = done.stdout.split(maxsplit=1)
    assert int(workers) >= 1
    assert ended_by.strip() == str({-signal.SIGKILL.value})


def test_warmup_says_what_it_did(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("microagg.cli.warmup_command.PARTS", ["linkage"])
    first, second = (json.loads(here("warmup", "--json", "--quiet").stdout) for _ in range(2))
    assert first == {"parts": ["linkage"], "compiled_now": ["linkage"]}
    assert second == {"parts": ["linkage"], "compiled_now": []}


def test_every_part_can_be_compiled():
    plain = {name.removeprefix(WEIGHTED) for name in PARTS}
    assert plain - set(METHODS) == set(first_calls._PARTS) - {"mdav"}


def test_a_part_that_fails_is_reported():
    with warm.Warming() as warming:
        assert warming.ask(["no such part"]) == ["no such part"]
        with pytest.raises(MicroaggError, match="KeyError: 'no such part'"):
            warming.wait()


def test_a_process_that_ends_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with warm.Warming() as warming:
        warming.ask(["search"])
        warming._workers[0].kill()
        with pytest.raises(MicroaggError, match="the process that compiled ended"):
            warming.wait()


def test_parts_asked_for_later_are_compiled_once_too(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with warm.Warming() as warming:
        warming.ask(["linkage"])
        assert warming.ask(["linkage", "no such part"]) == ["no such part"]
        # So that what is not waited for has failed before.
        assert warming._parts["no such part"].exception(600) is not None
        warming.wait(without=["no such part"])
        assert warm.lacking(["linkage"]) == []
        with pytest.raises(MicroaggError, match="no such part"):
            warming.wait()


def test_a_draft_has_compiled_what_the_table_tells(monkeypatch, tmp_path):
    rows = [f"{i // 2},{i % 7},{i % 11}.5" for i in range(60)]
    (tmp_path / "in.csv").write_text("\n".join(["home,c0,c1", *rows]), encoding="utf-8")
    seen = []
    monkeypatch.setattr(
        "microagg.compile.warm.lacking", lambda parts: seen.append(set(parts)) or []
    )
    words = ["protect", tmp_path / "in.csv", tmp_path / "out.csv", "--k", 3, "--unit", "home"]
    assert here(*words).returncode == 0
    first, settled = seen
    assert not first & REQUIRED
    assert settled >= REQUIRED


def test_where_nothing_can_be_kept_nothing_is_compiled_ahead(monkeypatch, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.fspath(nowhere / "folder"))
    assert warm.lacking(["search"]) == []


def test_a_call_of_the_library_starts_no_process(tmp_path):
    script = (
        "import subprocess, sys\n"
        "def refuse(*_, **__): raise AssertionError\n"
        "subprocess.Popen = refuse\n"
        "import microagg, numpy as np\n"
        "print(microagg.partition(np.arange(9.0)[:, None], 3).n_groups)\n"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "3"
