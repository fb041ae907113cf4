"""The embedded example: a real table that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from sklearn.datasets import load_diabetes

from microagg.errors import TableError, shown
from microagg.plan import Plan
from microagg.tables.atomic import replacing
from microagg.tables.files import write_file

__all__ = ["PLAN", "write_example"]

# What a neighbour or an employer could know of a patient is protected; the blood values and how the
# illness went are what nobody outside knows, and stay as they are.
PLAN = Plan.of(
    k=5,
    columns=["age", "sex", "bmi", "bp"],
    confidential=["s1", "s2", "s3", "s4", "s5", "s6", "progression"],
)


def write_example(folder: Path) -> Path:
    """Write the diabetes data (Efron et al. 2004) in their original units as a CSV file."""
    data = load_diabetes(scaled=False)
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    table = pa.table({**columns, "progression": data.target})
    path = folder / "diabetes.csv"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(
            f"Cannot make the folder {shown(str(folder))}: {error.strerror}."
        ) from None
    with replacing(path) as part:
        write_file(table, part)
    return path
