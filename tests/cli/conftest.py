"""A small survey as a CSV file."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "id": [f"{i:05d}" for i in range(60)],
            "income": rng.lognormal(8, 1, 60).round(2),
            "age": rng.integers(18, 90, 60),
            "region": rng.choice(["north", "south"], 60),
        }
    )
    path = tmp_path / "survey.csv"
    pacsv.write_csv(table, path)
    return path
