"""What is claimed about a release is what was counted: for units, parts, methods and names of any kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import InputError, Plan

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def households() -> pd.DataFrame:
    """Two groups of two households; in a household all are of one sex."""
    return pd.DataFrame(
        {
            "a": [0.0, 0, 0, 0, 10, 10, 10, 10],
            "household": [1, 1, 2, 2, 3, 3, 4, 4],
            "sex": [*"mmffmmff"],
            "region": [*"xxxxyyyy"],
        }
    )


def test_with_a_unit_all_that_is_said_of_known_columns_counts_units():
    release = microagg.protect(
        households(), k=2, columns=["a"], unit="household", renumber=["household"]
    )
    found = release.evidence
    assert found.with_known.smallest_class == 2  # records
    assert (found.with_known.below_k, found.alone.below_k) == (1.0, 0.0)
    assert {harm.name: (harm.alone, harm.without) for harm in found.harms} == {
        "sex": (1.0, 0.0),
        "region": (0.0, 1.0),
    }
    (told,) = [c for c in found.cautions if c.words.startswith("Whoever knows")]
    assert "sex (100 %)" in told.words
    assert "Without sex k would hold." in told.advice
    assert found.verdict == "amber"
    assert "fewer than 2 different values of household" in found.verdict_words
    assert "fewer than 2 different values of household" in found.known_words
    dropped = microagg.protect(
        households(), k=2, columns=["a"], unit="household", drop=["household", "sex"]
    )
    assert dropped.evidence.verdict == "green"


def test_a_unit_that_is_left_is_not_advised_to_be_named_as_unit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "person": rng.permutation(400) // 2})
    told = [
        c.advice
        for unit in (None, "person")
        for c in microagg.protect(frame, k=3, columns=["a"], method="mdav", unit=unit).cautions
        if "an id that repeats" in c.words
    ]
    assert told[0].startswith("Name it as unit")
    assert told[1] == "It is the unit, which k counts: drop or renumber it."


def test_every_block_needs_as_many_units_as_its_k():
    plan = Plan.from_dict(
        {
            "microagg": 1,
            "unit": {"column": "household"},
            "block": [{"columns": ["a"], "k": 2}, {"columns": ["b"], "k": 5}],
        }
    )
    with pytest.raises(InputError, match=r"k=5 needs at least 5 distinct values of the unit"):
        microagg.protect(households().assign(b=np.arange(8.0)), plan=plan)
