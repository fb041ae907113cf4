"""What the page shows of columns."""

import numpy as np
import pyarrow as pa
import pytest

from microagg import InputError
from microagg.formats.files import Source
from microagg.formats.layouts import FileFormat
from microagg.page.worker import about_columns, first_rows, two_columns
from microagg.tables.frame import Frame


def table(**columns):
    return Frame(pa.table(columns))


def test_counts_of_a_column():
    (found,) = about_columns(table(x=[1.5, None, 2.5, 2.5]))
    assert (found["missing"], found["distinct"], found["type"]) == (1, 2, "number")
    assert found["bars"] == [1, 2]
    assert found["role"] in ("protect", "known")
    assert found["reason"]


@pytest.mark.parametrize(
    "values",
    [
        np.arange(500.0),
        np.r_[np.zeros(400), np.arange(100.0)],
        np.r_[1e300, -1e300, np.arange(98.0)],
    ],
)
def test_bars_hold_all_records(values):
    (found,) = about_columns(table(x=values))
    assert sum(found["bars"]) == len(values)
    assert len(found["bars"]) <= 16


def test_bars_of_categories_dates_and_nothing():
    found = about_columns(
        table(
            a=["x", "y", "y", None],
            d=pa.array([1, 2, 2, 2], pa.date32()),
            n=pa.nulls(4),
            v=[[1], [2], None, []],
        )
    )
    assert [column["bars"] for column in found] == [[2, 1], [3, 1], [], []]


def test_words_for_missing_values_are_no_values():
    (found,) = about_columns(table(a=["x", "", "NA", "y", "y"]), ("", "NA"))
    assert (found["missing"], found["distinct"], found["bars"]) == (2, 2, [2, 1])
    assert "2 missing" in found["reason"]


def test_the_first_rows_are_as_they_stand_in_the_file():
    source = Source(
        pa.table({"zip": ["00123"] * 20, "long": ["x" * 500] * 20}), FileFormat(), "csv"
    )
    found = first_rows(source)
    assert len(found["rows"]) == 12
    assert found["rows"][0] == ["00123", "x" * 79 + "…"]


def test_two_columns_without_what_is_missing():
    before = table(x=[1.0, None, 3.0], y=[4.0, 5.0, float("inf")], t=["a", "b", "c"])
    found = two_columns(before, before, "x", "y")
    assert found["before"] == found["after"] == [[1.0, 4.0]]
    for other in ("t", "gone"):
        with pytest.raises(InputError):
            two_columns(before, before, "x", other)
