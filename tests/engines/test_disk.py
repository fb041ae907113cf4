"""From disk: files that keep the promise, whatever happens on the way."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attacks.mixed_cases import draw_for_engines
from attacks.sweep import carry_out
from command import here, said
from microagg import InputError, TableError
from microagg.engines import disk
from microagg.engines import parts as completing
from microagg.formats.batches import open_batches
from microagg.formats.files import write_file
from microagg.formats.layouts import FileFormat
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import run
from microagg.plan.plan import Plan

LEAF = 600
PROTECTED = ["number", "whole", "kind", "spiked"]
# Random tables of every policy for missing values, with and without strata, weight and unit.
SEEDS = (3, 4, 8, 12, 18, 25, 29)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Blocks, and batches, so small that little tables have many."""
    monkeypatch.setattr(disk, "LEAF", LEAF)
    monkeypatch.setattr(disk, "AT_ONCE", 512)


def survey(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    gaps = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "household": np.repeat(np.arange(n // 2), 2),
            "number": rng.normal(10, 3, n).round(3),
            "whole": np.where(gaps, np.nan, rng.integers(0, 40, n)),
            "kind": rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2]),
            "spiked": np.where(rng.random(n) < 0.4, 0.0, rng.exponential(100, n).round(2)),
            "weight": rng.uniform(1, 9, n).round(3),
            "region": rng.choice(["north", "south"], n),
            "note": rng.choice(["0.50", "1e3", "a,b", ""], n),
        }
    )


def plan_for(columns=PROTECTED, k=4, **settings):
    settings.setdefault("kinds", {"spiked": "spiked"} if "spiked" in columns else {})
    return Plan().override(k=k, columns=columns, effort="fast", **settings)


def written(table, folder, name):
    path = folder / name
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        arrow = pa.Table.from_pandas(table, preserve_index=False)
        pq.write_table(arrow, path, row_group_size=700)
    return path


def shared_by(frame, columns, unit=None):
    groups = frame.groupby(columns, dropna=False)
    return (groups.size() if unit is None else groups[unit].nunique()).min()


def test_all_that_is_claimed_of_a_written_file_holds(tmp_path, monkeypatch):
    """Promises, totals, missing and untouched values, aggregates and the verdict are counted again."""
    monkeypatch.setattr(disk, "LEAF", 90)
    monkeypatch.setattr(disk, "AT_ONCE", 128)
    found = [carry_out(tmp_path, draw_for_engines(seed, times=8), "disk") for seed in SEEDS]
    assert sum(one.claims is not None for one in found) > len(SEEDS) / 2


def test_a_sample_in_which_most_categories_differ_is_measured(tmp_path, monkeypatch):
    """More than half of its records may have a category of their own, though fewer do in the table."""
    rng = np.random.default_rng(4)
    towns = [f"town {i}" for i in rng.permutation(4000) % 1900]  # two or three records each
    table = pd.DataFrame({"pay": rng.normal(size=4000), "town": towns})
    table.to_parquet(tmp_path / "in.parquet")
    monkeypatch.setattr("microagg.engines.aggregates._SAMPLED", 200)
    plan = Plan.of(k=3, columns=["pay", "town"], effort="fast")
    found = run(Job(tmp_path / "in.parquet", tmp_path / "out.parquet", plan, engine="disk"))
    assert found.evidence.signs.looked_at < 400


def test_one_column_is_cut_as_in_memory(tmp_path, monkeypatch):
    from microagg.engines import one_column

    stretches, plain = [], one_column.split_column

    def split(encoding, words, stretch):
        found = plain(encoding, words, stretch)
        stretches.append(found.first[-1])
        return found

    monkeypatch.setattr(disk, "STRETCH", 900)
    monkeypatch.setattr(disk, "split_column", split)
    monkeypatch.setattr(one_column, "overlap_for", lambda k: 100)
    source = written(survey(), tmp_path, "in.parquet")
    plan = plan_for(["number"], strata=["region"])
    for engine in ("disk", "memory"):
        run(Job(source, tmp_path / f"{engine}.parquet", plan, engine=engine))
    assert stretches == [6]  # three in each region
    found, expected = (pd.read_parquet(tmp_path / f"{e}.parquet") for e in ("disk", "memory"))
    for region in ("north", "south"):
        ours, theirs = (f[f.region == region].number.sort_values() for f in (found, expected))
        assert np.array_equal(ours, theirs)


def test_order_and_cut_of_the_files_make_no_difference(tmp_path):
    table = survey().assign(id=np.arange(4000))
    plan = plan_for(known=["id"])
    found = []
    for number, order in enumerate(([0, 1, 2], [2, 0, 1])):
        folder = tmp_path / f"in{number}"
        folder.mkdir()
        parts = [table[:700], table[700:3000], table[3000:]]
        for at, part in enumerate(order):
            written(parts[part], folder, f"{at}.parquet")
        run(Job(folder, tmp_path / f"out{number}", plan, engine="disk"))
        names = sorted(path.name for path in (tmp_path / f"out{number}").iterdir())
        assert names == ["0.parquet", "1.parquet", "2.parquet"]
        found.append(
            pd.read_parquet(tmp_path / f"out{number}").sort_values("id", ignore_index=True)
        )
    pd.testing.assert_frame_equal(*found)


def test_an_interrupt_leaves_nothing(tmp_path):
    source = written(survey(), tmp_path, "in.parquet")

    class Impatient(Observer):
        def progress(self, stage, done, total):
            if stage == "grouping":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Job(source, tmp_path / "out.parquet", plan_for(), engine="disk"), Impatient())
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_two_runs_for_one_target_leave_each_other_alone(tmp_path):
    """The second groups and ends while the first groups; the last one to end has the name."""
    source = written(survey(), tmp_path, "in.parquet")
    target = tmp_path / "out.parquet"
    plan = plan_for(keep_order=True)
    run(Job(source, tmp_path / "alone.parquet", plan, engine="disk"))
    ended = []

    class Second(Observer):
        def progress(self, stage, done, total):
            if not ended and stage == "grouping":
                ended.append(run(Job(source, target, plan_for(k=7), engine="disk")))

    run(Job(source, target, plan, engine="disk"), Second())
    assert ended
    assert target.read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    names = ["alone.parquet", "in.parquet", "out.parquet"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


FULL = """
import resource, sys
from microagg.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))
main()
"""


@pytest.mark.linux
def test_a_full_disk_is_named_with_the_way_out(tmp_path):
    """A limit of the system stands for the disk: no file of this run may have more than 16 KiB."""
    source = written(survey(), tmp_path, "in.parquet")
    asked = ["protect", source, tmp_path / "out.parquet", "-k", "4", "-c", "number,spiked"]
    asked += ["--engine", "disk"]
    assert here(*asked).returncode == 0  # compiles what is needed, without a limit
    (tmp_path / "out.parquet").unlink()
    # -B: Python itself would keep bytecode that is cut off.
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL, *asked],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    words = " ".join(done.stderr.split())
    assert "Error: A table that is read in parts needs room" in words
    assert ".out.parquet.scratch" in words
    assert "Make room, or write to another disk." in words
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_too_little_room_is_said_before_any_work(tmp_path, monkeypatch):
    import shutil
    from collections import namedtuple

    source = written(survey(200), tmp_path, "in.parquet")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 10, 0))
    with pytest.raises(TableError, match="GiB"):
        run(Job(source, tmp_path / "out.parquet", plan_for(["number"]), engine="disk"))
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_the_engine_is_chosen_by_the_memory(tmp_path):
    source = written(survey(), tmp_path, "in.parquet")
    asked = ["protect", source, tmp_path / "out.parquet", "-k", 4, "-c", "number,spiked"]
    little, enough = (here(*asked, "--memory", memory) for memory in ("100kB", "1GiB"))
    assert "in parts; --memory gives 0 MiB, and this job takes about 33" in said(little)
    assert "in parts" not in said(enough)
    wrong = here(*asked, "--memory", "much")
    assert "2GiB" in wrong.stderr
    assert wrong.returncode == 2
    wrong = here(*asked, "--engine", "steam")
    assert "memory" in wrong.stderr
    assert wrong.returncode == 2


@pytest.mark.posix
def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path, monkeypatch):
    source = written(survey(), tmp_path, "in.parquet")
    target = tmp_path / "out.parquet"
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(disk, "work_on_chunk", lambda *_: os._exit(9))
        run(Job(source, target, plan_for(), engine="disk"))
        os._exit(0)
    os.waitpid(child, 0)
    (left,) = tmp_path.glob(".out.parquet.scratch-*")
    assert left.stat().st_mode & 0o77 == 0  # for its owner alone
    run(Job(source, target, plan_for(), engine="disk"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]


@pytest.mark.parametrize(
    ("ending", "when", "change"),
    [
        ("csv", "reading", "a record"),
        ("csv", "encoding", "a value"),
        ("csv", "grouping", "a record"),
        ("csv", "writing", "a value"),
        ("parquet", "reading", "a value"),
        ("parquet", "encoding", "a record"),
        ("parquet", "grouping", "a value"),
        ("parquet", "writing", "a record"),
    ],
)
def test_a_source_that_changes_during_a_run_is_noticed(tmp_path, ending, when, change):
    table = survey(1500)
    source = written(table, tmp_path, f"in.{ending}")
    other = table.copy()
    if change == "a value":
        other.loc[1400, "number"] += 1.0
    else:
        other = other[:-1]
    (tmp_path / "new").mkdir()
    other = written(other, tmp_path / "new", source.name)

    class Replacing(Observer):
        def progress(self, stage, done, total):
            if stage == when and other.exists():
                os.replace(other, source)

    target = tmp_path / f"out.{ending}"
    with pytest.raises(TableError, match="changed meanwhile"):
        run(Job(source, target, plan_for(), engine="disk"), Replacing())
    assert not target.exists()
    assert not list(tmp_path.glob(".*"))


def test_a_column_that_is_blanked_as_a_whole_has_no_mean(tmp_path):
    """Seven records of four patterns: all values of x are blanked, and the JSON has no NaN."""
    frame = pd.DataFrame(
        {
            "x": [1.25, 2.25, None, 4.25, 5.25, 6.25, 7.25],
            "y": [None, "b", "a", "b", "a", "b", None],
            "z": [1.5, 2.5, 3.5, 1.5, 2.5, 3.5, 1.5],
        }
    )
    frame.to_parquet(tmp_path / "in.parquet")
    missing = {"policy": "pattern", "most": 1.0}
    plan = Plan.of(k=4, columns=["x", "y", "z"], missing=missing, method="mdav")
    found = run(Job(tmp_path / "in.parquet", tmp_path / "out.parquet", plan, engine="disk"))
    assert pd.read_parquet(tmp_path / "out.parquet")["x"].isna().all()
    json.dumps(found.evidence.as_dict(), allow_nan=False)


def test_a_column_that_is_missing_as_a_whole_is_released_where_units_are_counted(tmp_path):
    frame = pd.DataFrame({"x": [None] * 12, "y": np.arange(12.0), "home": np.arange(12) // 2})
    frame.astype({"x": float}).to_parquet(tmp_path / "in.parquet")
    plan = Plan.of(k=3, columns=["x", "y"], unit="home", drop=["home"])
    run(Job(tmp_path / "in.parquet", tmp_path / "out.parquet", plan, engine="disk"))
    assert shared_by(pd.read_parquet(tmp_path / "out.parquet"), ["x", "y"]) >= 3


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_column_that_is_constant_at_first_only_needs_a_role(tmp_path, monkeypatch, ending):
    """The draft judges columns by the first records; what it says about all is looked up in all."""
    monkeypatch.setattr(completing, "DRAFTED", 50)
    chance = np.random.default_rng(2)
    whole = {"x": chance.normal(size=200), "year": [2019] * 199 + [2020], "wave": ["a"] * 200}
    source = tmp_path / f"in{ending}"
    write_file(pa.table(whole), source, FileFormat())
    with pytest.raises(InputError, match="year has one value there and others later"):
        completing.completed(disk.DiskParts(open_batches(source)), Plan.of(k=3))
    parts = disk.DiskParts(open_batches(source))
    found = completing.completed(parts, Plan.of(k=3, drop=["year"]))
    assert found.plan.known == ("wave",)


def test_a_unit_that_stays_in_the_file_is_known(tmp_path):
    """To whoever knows the household of a record, k households are one: amber on disk as in memory."""
    rng = np.random.default_rng(4)
    home = rng.permutation(np.repeat(np.arange(60), 2))
    ill = rng.choice(["flu", "none"], 120)
    frame = pd.DataFrame({"x": rng.normal(size=120), "home": home, "ill": ill})
    source = written(frame, tmp_path, "in.parquet")
    plan = Plan.of(k=3, columns=["x"], unit="home", known=["home"], confidential=["ill"])
    found = [
        run(Job(source, tmp_path / f"{engine}.parquet", plan, engine=engine)).evidence
        for engine in ("memory", "disk")
    ]
    memory, disk_ = (one.as_dict()["risk"] for one in found)
    for view in ("with_known", "if_confidential_known"):
        assert memory[view]["below_k"] == disk_[view]["below_k"] == 1
    ambers = [{c.columns for c in one.cautions if c.severity == "amber"} for one in found]
    assert ambers[0] == ambers[1]
