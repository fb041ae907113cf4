"""A small survey, and the page over its folder."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from visitor import Visitor, served


def survey(n=60):
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "person": np.arange(n) + 10_000,
            "household": np.arange(n) // 2,
            "region": rng.choice(["north", "south"], n),
            "income": rng.lognormal(8, 1, n).round(2),
            "rent": rng.lognormal(6, 1, n).round(2),
            "age": rng.integers(18, 90, n),
            "diagnosis": rng.choice(list("abcde"), n),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("data")
    survey().to_csv(found / "survey.csv", index=False)
    return found


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    """One server for the tests of a module, over the folder."""
    with served(folder, temporary=tmp_path_factory.mktemp("private")) as found:
        yield found


@pytest.fixture
def visitor(server, folder):
    """A visitor with the survey open and its plan as drafted, with the fastest method."""
    found = Visitor(server)
    found.open(folder / "survey.csv")
    found.plan(k=3)
    return found
