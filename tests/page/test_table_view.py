"""What the page shows of columns, and its small pictures."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from microagg import InputError
from microagg.formats.files import FileFormat, Source
from microagg.measure.linkage import Linkage
from microagg.page.charts import cell_map, scatter, spark, without_styles
from microagg.page.table_view import about_columns, first_rows, two_columns
from microagg.protecting.choices import Cell
from microagg.report.pictures import correlation, distribution
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


def test_pictures_of_the_report_without_styles():
    data = {
        "cuts": [1.0, 2.0, 3.0],
        "ends": [0.0, 4.0],
        "before": [3, 4, 5, 6],
        "after": [4, 4, 4, 6],
    }
    drawn = [distribution("d", data, 18), correlation("c", ["a", "b"], [[1.0, 0.9], [0.9, 1.0]])]
    assert all("style" in svg for svg in drawn)
    for svg in without_styles({"some": drawn, "none": None})["some"]:
        assert "style" not in svg
        assert "font-size=" in svg
        assert 'text-anchor="middle"' in svg
    assert without_styles("no picture") == "no picture"


def cell(k, loss, linked, **more):
    return Cell(
        "mdav", k, information_loss=loss, linkage=Linkage(linked, linked, linked, 9, False), **more
    )


def test_the_map_puts_better_nearer_to_the_corner():
    cells = [cell(3, 5.0, 0.2, on_frontier=True), cell(5, 10.0, 0.1, on_frontier=True)]
    found = cell_map([*cells, Cell("mdav", 7, problem="too large")], ("mdav", 5))
    (x, y), (x2, y2) = (point["at"] for point in found["points"])
    assert x < x2
    assert y < y2  # downwards on the screen: fewer are linked
    assert [point["chosen"] for point in found["points"]] == [False, True]
    assert found["line"] == [(x, y), (x2, y2)]
    assert [point["label"] for point in found["points"]] == ["k=3", "k=5"]
    over = cell_map([*cells, cell(4, 5.0, 0.2)], ("mdav", 5))
    assert over["points"][2]["label"] == ""


@pytest.mark.parametrize("cells", [[], [cell(3, 0.0, 0.0)]])
def test_a_map_of_nearly_nothing(cells):
    found = cell_map(cells, ("auto", 3))
    assert len(found["points"]) == len(cells)
    assert found["x"]


def test_a_scatter_shows_the_middle():
    points = [[float(i), float(i % 7)] for i in range(1000)]
    found = scatter({"before": [*points, [1e9, 0.0]], "after": points})
    assert len(found["before"]) == 1000  # without the one far away
    assert all(0 <= x <= found["width"] and 0 <= y <= found["height"] for x, y in found["before"])
    assert scatter({"before": [], "after": []})["before"] == []
    assert len(scatter({"before": [[1.0, 1.0]], "after": []})["before"]) == 1


def test_sparks():
    assert spark([]) == spark([0, 0]) == []
    assert [bar["height"] for bar in spark([1, 2])] == [13.0, 26.0]
