"""Sets of rows that a released column shows to belong together: counts by hand, and by other means."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import microagg
from attacks.counted import cells, rare, sets_of_rows
from conftest import reference_table
from microagg.measure.known_columns import Known
from microagg.measure.linked_rows import count_row_sets, linking_columns, row_sets

TOGETHER = {"k": 3, "columns": ["age", "income"], "renumber": ["home"]}
TOGETHER["unit"] = {"column": "home", "mode": "together"}


def protected(frame, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
        return microagg.protect(frame, **settings)


def households(seed, n=60, sizes=(1, 2, 3)):
    """Persons with two values each, in households of which each size has several."""
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(n), rng.choice(sizes, n))
    return pd.DataFrame(
        {
            "home": home,
            "age": rng.integers(18, 90, len(home)),
            "income": rng.lognormal(7, 1, len(home)).round(2),
        }
    ).sample(frac=1, random_state=seed, ignore_index=True)


def test_a_set_is_its_rows_each_as_often():
    rows = np.array([0, 0, 1, 0, 1, 1, 1, 0, 0])
    homes = Known(np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]))
    found = row_sets(rows, {"home": homes})["home"]
    assert found.kinds.tolist() == [0, 1, 0]  # two 0 and a 1, a 0 and two 1, two 0 and a 1
    counted = count_row_sets("home", found, k=2)
    assert (counted.sets, counted.alone, counted.below_k, counted.below_k_by_size) == (3, 1, 1, 0)


def test_a_row_without_an_id_is_a_set_of_its_own():
    found = row_sets(np.zeros(5, int), {"home": Known(np.array([0, 0, -1, -1, 1]))})["home"]
    assert sorted(np.bincount(found.ids).tolist()) == [1, 1, 1, 2]
    assert count_row_sets("home", found, k=3).below_k == 1


def test_equal_sets_count_no_more_than_the_units_they_are_of():
    found = row_sets(np.zeros(6, int), {"spell": Known(np.arange(6) // 2)})["spell"]
    assert count_row_sets("spell", found, k=3).below_k == 0
    assert count_row_sets("spell", found, k=3, units=np.array([7, 7, 7, 7, 8, 8])).below_k == 3


def test_two_linking_columns_tell_more_than_one():
    # Two homes of two equal rows each; in one of them both rows are one person.
    rows, homes = np.zeros(4, int), Known(np.array([0, 0, 1, 1]))
    persons = Known(np.array([0, 0, 1, 2]))
    assert count_row_sets("home", row_sets(rows, {"home": homes})["home"], 2).below_k == 0
    both = row_sets(rows, {"home": homes, "person": persons})
    assert count_row_sets("home", both["home"], 2).alone == 2


def test_ids_that_never_repeat_link_nothing():
    columns = {"row": Known(np.arange(6)), "home": Known(np.array([0, 0, 1, 2, 3, 4]))}
    assert list(linking_columns(columns, ["row", "home"])) == ["home"]


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_plain_python(seed):
    frame = households(seed)
    release = protected(
        frame, k=3, columns=["age", "income"], unit="home", renumber=["home"], method="mdav"
    )
    (found,) = release.evidence.signs.linked_rows
    kinds = sets_of_rows(cells(release.data), "home", ["age", "income"])
    assert (found.alone, found.below_k) == rare(kinds, 3)
    assert found.below_k_by_size == rare({own: len(rows) for own, rows in kinds.items()}, 3)[1]
    assert release.evidence.verdict == "amber"


def test_a_household_of_a_rare_size_is_told_by_its_number_of_rows_though_it_moves_as_a_whole():
    frame = households(1)
    large = frame.iloc[:7].assign(home=1000)
    frame = pd.concat([frame, large], ignore_index=True)
    release = protected(frame, **TOGETHER)
    (found,) = release.evidence.signs.linked_rows
    assert found.below_k_by_size == 1
    (caution,) = (c for c in release.evidence.cautions if c.severity == "amber")
    assert "1 set has a number of rows that fewer than 3 sets have." in caution.words
    assert caution.advice == "Drop home."


def test_known_columns_are_part_of_a_row():
    frame = households(2, sizes=(2,))
    frame["sex"] = np.random.default_rng(0).choice(["f", "m"], len(frame))
    release = protected(frame, **TOGETHER)
    (found,) = release.evidence.signs.linked_rows
    kinds = sets_of_rows(cells(release.data), "home", ["age", "income", "sex"])
    assert found.below_k == rare(kinds, 3)[1] > 0
    secret = protected(frame, **TOGETHER, confidential=["sex"])
    assert secret.evidence.signs.linked_rows[0].below_k == 0


def test_the_households_of_a_survey_are_given_away_by_a_renumbered_id():
    columns = ["age", "eqIncome", "rb090", "hsize"]
    frame = reference_table("eusilc").select([*columns, "db030"]).to_pandas()
    release = protected(frame, k=5, columns=columns, unit="db030", renumber=["db030"])
    kinds = sets_of_rows(cells(release.data), "db030", columns)
    alone, below = rare(kinds, 5)
    assert alone > 3_000
    assert below > 4_000
    (found,) = release.evidence.signs.linked_rows
    assert (found.sets, found.alone, found.below_k) == (6_000, alone, below)
    (caution,) = [one for one in release.evidence.cautions if one.severity != "note"]
    assert caution.severity == release.evidence.verdict == "amber"
    assert f"{below:,} are shared by fewer than 5" in caution.words
    assert caution.advice.startswith("Drop db030.")
    assert release.evidence.as_dict()["risk"]["linked_rows"][0]["alone"] == alone
    page = Path(__file__).parents[2] / "docs" / "disclosure.md"
    assert f"{alone:,} households are still alone" in page.read_text()
