"""Classes and linkage with known columns against naive twins, and how values are numbered."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive_measures as naive
from microagg.kernels.labels import combine
from microagg.measure import linkage
from microagg.measure.both_tables import pair
from microagg.measure.known_columns import Known, known_columns, known_risk
from microagg.tables.frame import Frame
from strategies import tables


def pair_of(X, k):
    return pair(X, microagg.Microaggregator(k=k).fit_transform(X))


@st.composite
def known_tables(draw):
    """A protected table with up to three known columns, of few levels or many, some values missing."""
    X, k = draw(tables())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.lists(st.sampled_from([1, 2, 5, len(X)]), max_size=3))
    missing = draw(st.sampled_from([0, 1]))
    known = {f"known {j}": Known(rng.integers(-missing, m, len(X))) for j, m in enumerate(levels)}
    return pair_of(X, k), known, k


def rows_of(known, n):
    return list(zip(*(column.codes.tolist() for column in known.values()), strict=True)) or [()] * n


@pytest.mark.parametrize("few_records", [0, 3, 10**9])
@given(table=known_tables())
def test_risk_equals_the_naive_twin_whether_rows_are_scanned_or_in_trees(few_records, table):
    both, known, k = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkage, "FEW_RECORDS", few_records)
        found = known_risk(both, known, k)
    n, together = len(both), rows_of(known, len(both))
    rows, safe = both.original.tolist(), both.protected.tolist()
    assert found.record_linkage == pytest.approx(naive.known_linkage(rows, safe, together))
    sizes = naive.class_sizes(safe, together)
    assert found.smallest_class == min(sizes)
    assert found.below_k == sum(size < k for size in sizes) / n
    assert found.unique == sum(size == 1 for size in sizes) / n


@given(st.lists(st.tuples(*[st.integers(-1, 3)] * 4), min_size=1, max_size=30), st.booleans())
def test_combinations_are_exact_also_where_they_overflow(rows, wide):
    columns = np.array(rows).T
    if wide:  # numbers as large as those of many distinct values, whose product is beyond 64 bits
        columns = np.where(columns < 0, -1, columns * 2**40)
    first = {}
    expected = [first.setdefault(row, len(first)) for row in rows]
    assert combine(list(columns)).tolist() == expected


VALUES = pa.table(
    {
        "whole": [3, 1, None, 3],
        "float": [0.5, -0.0, 0.0, float("nan")],
        "whole as float": [2.0, None, 1.0, 2.0],
        "beyond doubles": pa.array([2**63 - 1, 2**63 - 2, 5, 2**63 - 1]),
        "truth": [True, False, None, True],
        "date": [dt.date(2020, 1, 1), dt.date(2019, 1, 1), None, dt.date(2020, 1, 1)],
        "text": ["b", "a", None, "b"],
        "category": pa.array(["b", "a", None, "b"]).dictionary_encode(),
        "list": [[1], [2], None, [1]],
        "nothing": pa.nulls(4),
        "decimal": pa.array([7, 9, None, 7]).cast(pa.decimal128(30, 2)),
    }
)
EXPECTED = {
    "whole": ([1, 0, -1, 1], "whole"),
    "float": ([1, 0, 0, -1], "real"),
    "whole as float": ([1, -1, 0, 1], "whole"),
    "beyond doubles": ([2, 1, 0, 2], "whole"),
    "truth": ([0, 1, -1, 0], "other"),
    "date": ([1, 0, -1, 1], "time"),
    "text": ([0, 1, -1, 0], "other"),
    "category": ([0, 1, -1, 0], "other"),
    "list": ([0, 1, -1, 0], "other"),
    "nothing": ([-1, -1, -1, -1], "other"),
    "decimal": ([0, 1, -1, 0], "real"),
}


@pytest.mark.parametrize("library", [lambda t: t, pl.from_arrow, pa.Table.to_pandas])
def test_values_of_any_type_are_numbered(library):
    known = known_columns(Frame(library(VALUES)), VALUES.column_names)
    assert {n: (c.codes.tolist(), c.kind) for n, c in known.items()} == EXPECTED


def test_chunks_run_ends_and_repeated_dictionary_values_are_looked_through():
    table = pa.table(
        {
            "chunks": pa.chunked_array([["x", "y"], ["y", "z"]]),
            "runs": pc.run_end_encode(pa.array([8, 8, 5, 5])),
            "twice": pa.DictionaryArray.from_arrays([0, 1, 2, 0], ["u", "u", "v"]),
        }
    )
    known = known_columns(Frame(table), table.column_names)
    assert known["chunks"].codes.tolist() == [0, 1, 1, 2]
    assert known["runs"].codes.tolist() == [1, 1, 0, 0]
    assert known["twice"].codes.tolist() == [0, 0, 1, 0]


def test_a_nan_beside_missing_values_is_a_value():
    table = pa.table({"x": [1.5, None, float("nan"), None]})
    assert known_columns(Frame(table), ["x"])["x"].codes.tolist() == [0, -1, 1, -1]


def test_python_objects_and_names_that_are_no_text():
    frame = pd.DataFrame(
        {1: [1, "1", None, 1], None: [{1}, {2}, {1}, None], "sparse": pd.arrays.SparseArray([0, 4, 0, 0])},
        index=list("abcd"),
    )  # fmt: skip
    known = known_columns(Frame(frame), [1, None, "sparse"])
    assert known[1].codes.tolist() == [0, 1, -1, 0]
    assert known[None].codes.tolist() == [0, 1, 0, -1]
    assert known["sparse"].codes.tolist() == [0, 1, 0, 0]


def test_categories_left_alone_link_most_of_eusilc(reference_table):
    table = reference_table("eusilc")
    columns = ["age", "eqIncome", "hy040n", "hy050n"]
    both = pair(table, microagg.protect(table.select(columns), k=5, columns=columns).data, columns)
    known = known_columns(Frame(table), ["db040", "rb090", "pl030", "pb220a"])
    assert known_risk(both, {}, 5).record_linkage == pytest.approx(0.184, abs=0.003)
    assert known_risk(both, known, 5).record_linkage == pytest.approx(0.88, abs=0.02)


def test_amounts_that_people_round_are_no_ids():
    """Rounded incomes meet; ids repeat whatever their last digit is."""
    rng = np.random.default_rng(1)
    incomes = rng.lognormal(10, 0.6, 800).astype(int)
    rounded = np.where(rng.random(800) < 0.6, incomes // 100 * 100, incomes)
    ids = rng.integers(0, 600, 800) * 10  # all of them end in 0
    frame = Frame(pa.table({"income": rounded, "id": ids, "seven": ids // 10 + 7000}))
    kinds = {name: column.kind for name, column in known_columns(frame, frame.names).items()}
    assert kinds == {"income": "real", "id": "whole", "seven": "whole"}
