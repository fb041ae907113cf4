"""Compiling in advance: nothing is left to compile then, and a plan asks for what it needs."""

from __future__ import annotations

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
from microagg.errors import MicroaggError
from microagg.job.job import Job
from microagg.plan.plan import Plan
from microagg.plan.registry import METHODS
from microagg.plan.settings import EASILY_BOUND, EXACT_K, FEW_RECORDS
from microagg.warming import parts, warm
from microagg.warming.needed import PARTS, WEIGHTED, needed

# Runs each job in a process of its own, forked off when all is imported. Parts are compiled there when a job
# asks for them, by loading what is on disk; then every kernel that the job loads or compiles was missed.
RUN = """\
import json, os, sys
from microagg.base.own_process import start_quickly
start_quickly()
from numba.core import event
from microagg.cli.main import app
from microagg.cli.warmup_command import Compiling
from microagg.compile.disk_cache import KernelCache
from microagg.warming.parts import compile_part

missed, compiled, asking = [], [], [0]

class Compiled(event.Listener):
    def on_start(self, one):
        compiled.append(one.data["dispatcher"].py_func.__qualname__)
    def on_end(self, one):
        pass

def ask(self, parts):
    asking[0] += 1
    for part in parts:
        compile_part(part)
    asking[0] -= 1

load = KernelCache.load_overload
def noted(self, sig, target_context):
    if not asking[0]:
        missed.append(self._py_func.__qualname__)
    return load(self, sig, target_context)

Compiling.ask, KernelCache.load_overload = ask, noted
for job, words in json.load(sys.stdin).items():
    if os.fork() == 0:
        with event.install_listener("numba:compile", Compiled()):
            app(["protect", *words, "--quiet"], standalone_mode=False)
        slow = sorted({"pandas", "scipy.linalg", "numba.np.arraymath"} & set(sys.modules))
        print(json.dumps([job, sorted(set(missed)), sorted(set(compiled)), slow]), flush=True)
        if job == "tsp":  # pandas is found when somebody asks for it
            import pandas as pd, pyarrow as pa
            frame = pd.DataFrame({"a": pd.Categorical(["x", "y"])})
            assert pa.Table.from_pandas(frame)["a"].to_pylist() == ["x", "y"]
        os._exit(0)
    assert os.wait()[1] == 0, job
"""

COLUMNS = ["--columns", "c0,c1,c2", "--drop", "home,w,ill"]
JOBS = {
    "auto": ["--k", "3", *COLUMNS],
    "mdav": ["--k", "3", "--method", "mdav", *COLUMNS],
    "pca": ["--k", "3", "--method", "pca", *COLUMNS],
    "tsp": ["--k", "3", "--method", "tsp", *COLUMNS],
    "large k": ["--k", "40", *COLUMNS],
    "weights": ["--k", "3", "--columns", "c0,c1,c2", "--weight", "w", "--drop", "home,ill"],
    "units": ["--k", "3", "--columns", "c0,c1,c2", "--unit", "home", "--drop", "w,ill"],
    "kinds": ["--k", "3", "--columns", "c0,ill", "--kind", "ill=nominal", "--drop", "home,w"],
    "report": ["--k", "3", *COLUMNS, "--report", "report.html"],
    "report, larger k": ["--k", "6", *COLUMNS, "--report", "report.html"],
    "closeness": [
        *("--k", "3", "--method", "k-first", "--columns", "c0,c1,c2", "--drop", "home,w"),
        *("--confidential", "ill", "--require", "closeness:ill=0.3"),
    ],
}


REQUIRED = {"weighted search", "required start", "required merging"}
MDAV = {"mdav of few", "mdav", "left", "mdav in threads"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path, n, rng = tmp_path_factory.mktemp("warm") / "table.csv", 300, np.random.default_rng(0)
    columns = {f"c{j}": rng.normal(size=n) for j in range(3)}
    columns |= {"home": np.arange(n) // 2, "w": rng.uniform(1, 9, n), "ill": rng.integers(0, 5, n)}
    csv.write_csv(pa.table(columns), path)
    return path


@pytest.mark.posix
def test_a_job_asks_for_all_that_it_needs_and_loads_little(table, tmp_path):
    jobs = {job: [str(table), str(tmp_path / "out.csv"), *words] for job, words in JOBS.items()}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(jobs),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [job for job, *_ in found] == list(JOBS)
    assert {job: missed for job, missed, *_ in found if missed} == {}
    assert {job: compiled for job, _, compiled, _ in found if compiled} == {}
    slow = {job: modules for job, *_, modules in found}
    # pandas takes a second, and numba's compiler with scipy.linalg half of one.
    assert slow["tsp"] == []
    assert "pandas" not in slow["closeness"]


@pytest.mark.parametrize(
    ("settings", "parts", "parts_of_many"),
    [
        ({"k": 3}, {"last search", "start"}, set()),  # the table tells the rest
        ({"k": 3, "columns": ["a", "b"]}, {"search", "start"}, {"large start", *MDAV}),
        (
            {"k": 40, "columns": ["a", "b"]},
            {"pairs", "large search", "start", "mdav of few"},
            {"large start", *MDAV},
        ),
        (
            {"k": 3, "columns": ["a", "b"], "kinds": {"a": "nominal"}},
            {"search", "last search", "start"},
            {"large start", *MDAV},
        ),
        (
            {"k": 3, "columns": ["a", "b"], "kinds": {"a": "nominal"}, "weight": "w"},
            {"weighted search", "last search", "start"},
            {"large start", *(f"weighted {m}" for m in MDAV)},
        ),
        ({"k": 3, "columns": ["a", "b"], "method": "mdav"}, {"mdav of few"}, MDAV),
        ({"k": 3, "columns": ["a", "b"], "method": "tsp"}, {"tsp"}, set()),
        ({"k": 3, "columns": ["a", "b"], "method": "igd"}, {"igd", "mdav of few"}, MDAV),
        (
            {"k": 3, "columns": ["a", "b"], "method": "cbfs-mhm"},
            {"cbfs-mhm", "centroid"},
            {"centroid in threads"},
        ),
        (
            {
                "k": 3,
                "columns": ["a", "b"],
                "method": "k-first",
                "require": {"closeness": {"ill": 0.3}},
            },
            {"closeness", "mdav of few", "left", *REQUIRED},
            {"mdav"},
        ),
        ({"k": 3, "columns": ["a"]}, {"search", "start", "one column"}, {"large start", *MDAV}),
        (
            {"k": 3, "columns": ["a", "b"], "unit": "u"},
            {"search", "start", "mdav of few", "left", *REQUIRED},
            {"large start", *MDAV},
        ),
    ],
)
def test_a_plan_tells_its_parts(settings, parts, parts_of_many, tmp_path):
    few, many = (records_of(tmp_path, n) for n in (FEW_RECORDS, FEW_RECORDS + 1))
    assert (few, many) == (FEW_RECORDS, FEW_RECORDS + 1)
    plan = Plan.of(**settings)
    always = {"evaluation", "linkage"}
    assert set(needed(plan, few, bound=False)) == parts | always
    provable = EASILY_BOUND // max(plan.k, 10)
    proof = {"bound", "mdav of few"} if plan.k <= EXACT_K else {"bound of larger k"}
    if plan.weight is not None:  # no bound is for weights
        proof = set()
    assert set(needed(plan, provable, bound=True)) == parts | always | proof
    assert set(needed(plan, provable + 1, bound=True)) == parts | always
    large = parts | parts_of_many | always | {"linkage in a tree"}
    assert set(needed(plan, many, bound=False)) == large
    assert set(needed(plan, None, bound=False)) == large  # a folder, which may be large
    in_threads = {name for name in large if name.endswith("in threads")}
    on_spark = set(needed(plan, None, bound=False, engine="spark"))
    assert on_spark == large - in_threads | {"tables in parts"}


def records_of(folder, n):
    """The number of records that a job on a file of n is taken to have before it is read."""
    (folder / "in.csv").write_text("a\n" + "1\n" * n, encoding="utf-8")
    return Job(folder / "in.csv", folder / "out.csv", Plan()).about_records


def test_what_is_compiled_is_noted_and_said_once(tmp_path, monkeypatch, table):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("microagg.cli.protect_command.needed", lambda *_, **__: ["linkage"])
    assert warm.lacking(["linkage", "start"]) == ["linkage", "start"]
    words = ["protect", table, tmp_path / "out.csv", *JOBS["pca"]]
    assert here(*words).stderr.startswith(
        "compiling    for the first job of this kind on this machine"
    )
    assert warm.lacking(["linkage", "start"]) == ["start"]
    assert "compiling" not in here(*words).stderr


@pytest.mark.parametrize("flag", ["--columns", "--drop", "--unit", "--dominance"])
def test_a_wrong_name_is_refused_before_anything_is_compiled(tmp_path, monkeypatch, table, flag):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("microagg.warming.warm._worker", None)
    done = here("protect", table, tmp_path / "out.csv", "--k", 3, flag, "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: There is no column 'nowhere'; the table has 'c0'")


@pytest.mark.posix
def test_ctrl_c_ends_the_compiling_too(tmp_path, table):
    words = ["protect", table, tmp_path / "out.csv", *JOBS["auto"]]
    with subprocess.Popen(
        [sys.executable, "-m", "microagg", *map(str, words)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stderr is not None
        assert command.stderr.readline().startswith("compiling")
        assert command.stderr.readline().startswith("read")
        command.send_signal(signal.SIGINT)
        assert command.stderr.read().endswith("Interrupted: nothing was written.\n")
    assert command.returncode == 130


def test_warmup_says_what_it_did(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("microagg.cli.warmup_command.PARTS", ["linkage"])
    first, second = (json.loads(here("warmup", "--json", "--quiet").stdout) for _ in range(2))
    assert first == {"parts": ["linkage"], "compiled_now": ["linkage"]}
    assert second == {"parts": ["linkage"], "compiled_now": []}


def test_every_part_can_be_compiled():
    plain = {name.removeprefix(WEIGHTED) for name in PARTS}
    assert plain - set(METHODS) == set(parts._PARTS) - {"mdav"}


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
        warming.wait(without=["no such part"])
        assert warm.lacking(["linkage"]) == []
        with pytest.raises(MicroaggError, match="no such part"):
            warming.wait()


def test_a_draft_has_compiled_what_the_table_tells(monkeypatch, tmp_path):
    rows = [f"{i // 2},{i % 7},{i % 11}.5" for i in range(60)]
    (tmp_path / "in.csv").write_text("\n".join(["home,c0,c1", *rows]), encoding="utf-8")
    seen = []
    monkeypatch.setattr(
        "microagg.warming.warm.lacking", lambda parts: seen.append(set(parts)) or []
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
