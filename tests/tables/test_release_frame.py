"""What leaves the house: identifiers renumbered, whatever their type, in every library."""

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import microagg

N = 12
IDS = {
    "text": [f"p{i % 4}" for i in range(N)],
    "dates": [datetime.date(2020, 1, 1 + i % 4) for i in range(N)],
    "floats": [0.5 * (i % 4) for i in range(N)],
    "numbers that no double tells apart": [2**60 + i % 4 for i in range(N)],
    "truth values": [i % 2 == 0 for i in range(N)],
    "categories": [f"p{i % 4}" for i in range(N)],
}


def of_arrow(table: pa.Table, library: str):
    if library == "pandas":
        return table.to_pandas(integer_object_nulls=True)
    return table if library == "pyarrow" else pl.from_arrow(table)


def renumbered(column: pa.Array, library: str) -> list[int | None]:
    frame = of_arrow(pa.table({"a": [float(i) for i in range(N)], "id": column}), library)
    data = microagg.protect(frame, k=3, columns=["a"], method="mdav", renumber=["id"]).data
    column = data["id"]
    values = column.to_pylist() if isinstance(data, pa.Table) else column.to_list()
    return [None if value is None or value is pd.NA else value for value in values]


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("what", IDS)
def test_ids_of_any_type_become_numbers(what, missing, library):
    values = [None if missing and i == 5 else value for i, value in enumerate(IDS[what])]
    column = pa.array(values)
    if what == "categories":
        column = column.cast(pa.dictionary(pa.uint32(), pa.string()))  # as polars has them
    found = renumbered(column, library)
    known = [value for value in values if value is not None]
    assert sorted({number for number in found if number is not None}) == list(
        range(1, len(set(known)) + 1)
    )
    assert [number is None for number in found] == [value is None for value in values]
    assert len(set(zip(values, found, strict=True))) == len(set(values))


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_a_value_that_stands_twice_in_a_dictionary_is_one_id():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 4), pa.array(["p", "q", "p"]))
    found = renumbered(twice, "pyarrow")
    assert found[0] == found[2] != found[1]
