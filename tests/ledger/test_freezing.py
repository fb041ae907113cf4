"""What a ledger costs is said before one begins."""

import json

import numpy as np
import pandas as pd
import pytest

from command import here
from microagg.base.formatting import percent


@pytest.fixture
def source(tmp_path):
    chance = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(200)],
            "x": chance.normal(size=200).round(3),
            "y": chance.gamma(2, size=200).round(3),
        }
    )
    path = tmp_path / "in.csv"
    table.to_csv(path, index=False)
    return path


WORDS = ("--k", 5, "--columns", "x,y", "--drop", "id", "--key", "id")


def test_freezing_and_leavers_are_priced_before_a_ledger_exists(source, tmp_path):
    ledger = tmp_path / "L.sqlite"
    done = here("plan", source, *WORDS, "--ledger", ledger, "--prices", "--json")
    found = json.loads(done.stdout)
    freezing = found["freezing"]
    assert freezing["at_once"] == pytest.approx(found["prices"]["now"]["loss"])
    losses = [freezing["at_once"], *freezing["in_waves"].values()]
    assert len(losses) == 4
    assert losses == sorted(losses)
    assert losses[-1] > 2 * losses[0]
    assert {waves: round(part, 2) for waves, part in freezing["touched"].items()} == {
        "1": 0.23,
        "4": 0.64,
        "12": 0.95,
    }
    assert freezing["with_groups"] is None
    assert [*tmp_path.iterdir()] == [source]  # nothing is written
    words = " ".join(done.stderr.split())
    assert "lost if they enter in 12 waves" in words
    assert "22.6 %, 64.2 %, 95.4 % of the groups of 5 have lost somebody" in words


def test_a_file_is_priced_with_the_groups_that_there_are(source, tmp_path):
    ledger, table = tmp_path / "L.sqlite", pd.read_csv(source)
    table[:150].to_csv(tmp_path / "first.csv", index=False)
    words = ("--ledger", ledger)
    assert (
        here("protect", tmp_path / "first.csv", tmp_path / "out.csv", *WORDS, *words).returncode
        == 0
    )
    before = ledger.read_bytes()
    more = pd.concat([table[1:150], table[150:153]])
    more.to_csv(source, index=False)
    done = here("plan", source, *WORDS, *words, "--prices", "--json")
    freezing = json.loads(done.stdout)["freezing"]
    assert freezing["counts"]["waiting"] == 3
    assert freezing["counts"]["withheld_for_leavers"] >= 4
    assert freezing["with_groups"] > 0
    assert ledger.read_bytes() == before


def test_groups_that_join_for_a_new_column_are_told_before_and_after(tmp_path):
    """Merging costs less than the blanks that it saves: a run says so, and so do its prices."""
    x = [1.0, 1.1, 1.2, 3.0, 3.1, 3.2, 500, 501, 502]
    z = [7.0, 8, None, 9, 10, None, 90, 91, None]
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    table = pd.DataFrame({"id": [f"p{i}" for i in range(9)], "x": x})
    table.to_csv(first, index=False)
    table.assign(z=z).to_csv(second, index=False)
    words = ("--kind", "x=number", "--drop", "id", "--key", "id", "--k", 3)
    words = (*words, "--ledger", tmp_path / "L.sqlite")
    assert here("protect", first, tmp_path / "1.csv", "--columns", "x", *words).returncode == 0
    words = (*words, "--columns", "x,z", "--kind", "z=number")
    priced = here("plan", second, *words, "--prices")
    done = here("protect", second, tmp_path / "2.csv", *words)
    held, one = pd.DataFrame({"x": x, "z": z}), table.index < 6
    held = (held - held.mean()) / held.std()
    two = held[one].groupby([0, 0, 0, 1, 1, 1])["x"]
    lost, blanked = (
        100 * squares / np.square(held).sum().sum()
        for squares in (
            np.square(held[one] - held[one].mean()).sum().sum(),
            np.square(held[one]["x"] - two.transform("mean")).sum()
            + np.square(held[one]["z"]).sum(),
        )
    )
    joined = (
        "a column that fewer than k members have would lose more if it were blanked: 2 groups, which lose "
        f"{percent(lost)} of the information ({percent(blanked)} if it were blanked)"
    )
    for told in (priced, done):
        assert joined in " ".join(told.stderr.split())
    history = here("ledger", tmp_path / "L.sqlite", "--json")
    losses = [release["loss"] for release in json.loads(history.stdout)["releases"]]
    assert losses[1] > losses[0]
    over_waves = f"lost by its files: {percent(losses[0])}, "
    assert f"{over_waves}{percent(losses[1])};" in " ".join(done.stderr.split())
    assert over_waves in " ".join(priced.stderr.split())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--ledger", "L"], "--prices"),
        (["--ledger", "L", "--prices", "--per-column"], "one partition of the records"),
    ],
)
def test_what_cannot_be_priced_is_refused(source, words, error):
    done = here("plan", source, *WORDS, *words)
    assert done.returncode == 2
    assert error in done.stderr


def test_too_few_people_for_so_many_waves(source):
    pd.read_csv(source)[:40].to_csv(source, index=False)
    done = here("plan", source, *WORDS, "--ledger", "L", "--prices", "--json")
    assert json.loads(done.stdout)["freezing"]["in_waves"]["12"] is None
    assert "too few records for 12 waves" in " ".join(done.stderr.split())
