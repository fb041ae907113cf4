"""The embedded example: a real table that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from sklearn.datasets import load_diabetes

from microagg.errors import TableError, shown
from microagg.tables.atomic import replacing
from microagg.tables.files import write_file

__all__ = ["COLUMNS", "write_example"]

# What a neighbour or an employer could know of a patient; the blood values stay as they are.
COLUMNS = ["age", "sex", "bmi", "bp"]


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
