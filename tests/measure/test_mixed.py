"""Measures of tables with kinds, missing values and weights: naive twins, and what must not change them."""

import datetime
import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import microagg
import naive_measures
import naive_mixed as naive
from measure_mixed import KINDS, listed, mixed_pairs, plain_pair, random_pair
from microagg import InputError
from microagg.measure.before_and_after import column, summaries
from microagg.measure.both_tables import Pair, pair
from microagg.measure.disclosure_signs import determines
from microagg.measure.fidelity import _WIDTH, correlations, cramer
from microagg.measure.known_columns import Known, known_risk
from microagg.measure.linkage import link
from microagg.measure.risk import risk_of
from microagg.measure.utility import utility_of
from microagg.plan.column import Column
from microagg.tables.variable import Variable


def weights_of(both):
    return np.ones(len(both)) if both.weights is None else both.weights


def columns_of(both, j):
    """Values of a column where both are there, before and after, and their weights."""
    x, y = listed(both.original[:, j]), listed(both.protected[:, j])
    rows = naive.there(x, y)
    w = weights_of(both)
    return [x[i] for i in rows], [y[i] for i in rows], [w[i] for i in rows]


def test_columns_that_release_one_value_have_no_correlation():
    values = np.array([[58.5, 53.6], [143.6, 104.2], [368.4, 9.8], [257.8, 80.3], [28.2, 48.1]])
    released = np.repeat(values.mean(axis=0)[None], 5, axis=0)
    released[2] *= 1 + 1e-15  # rounding
    assert correlations(released, np.ones(5))[0, 1] == 0


@given(both=mixed_pairs(min_columns=2))
def test_associations_and_changes_equal_their_naive_twins(both):
    w, category = weights_of(both), [v.is_category for v in both.variables]
    for table in (both.original, both.protected):
        matrix = correlations(table, np.asarray(w))
        assert np.abs(matrix - matrix.T).max() < 1e-12
        for i, j in itertools.combinations(range(len(both.names)), 2):
            columns = [listed(table[:, c]) for c in (i, j)]
            rows = naive.there(*columns)
            x, y = ([column[r] for r in rows] for column in columns)
            mass = [w[r] for r in rows]
            if len(rows) < 2 or category[i] != category[j]:
                continue
            if category[i]:
                codes = np.array(x).astype(int) * _WIDTH + np.array(y).astype(int)
                strength = cramer(np.bincount(codes, mass))
                assert strength == pytest.approx(naive.cramer(x, y, mass), abs=1e-6)
            else:
                expected = naive.correlation(x, y, mass)
                assert matrix[i, j] == pytest.approx(expected, abs=1e-6)
    u = utility_of(both)
    for j in np.flatnonzero(category):
        x, y, mass = columns_of(both, j)
        if x:
            differ = [float(a != b) for a, b in zip(x, y, strict=True)]
            assert u.changed[both.names[j]] == pytest.approx(naive.mean(differ, mass))


@given(both=mixed_pairs())
def test_an_untouched_table_loses_nothing(both):
    same = replace(both, protected=both.original.copy(), labels=None)
    u = utility_of(same)
    for value in (u.information_loss, *u.changed.values()):
        assert value == pytest.approx(0, abs=1e-9)


# Risk


def vectors(both):
    """Numbers over their standard deviation, categories as one-hot/√γ, missing at the mean, states."""
    before, after = [], []
    for j, variable in enumerate(both.variables):
        x, y = listed(variable), listed(both.protected[:, j])
        there = [v for v in x if v is not None]
        m = len(there)
        middle = [0.0]
        if variable.is_category and variable.kind != "ordinal":
            hot = naive.one_hot([v for v in x + y if v is not None], there)
            unit = math.sqrt(m / (m - 1) * (1 - sum((there.count(v) / m) ** 2 for v in set(there))))
            hot = iter([[a / unit if unit > 0 else 0.0 for a in row] for row in hot])
            points = [None if v is None else next(hot) for v in x + y]
            middle = naive.centroid([p for p in points[: len(x)] if p is not None], [1.0] * m)
        else:
            s = naive_measures.sd(there)
            points = [None if v is None else [v / s if s > 0 else 0.0] for v in x + y]
            middle = [sum(there) / m / s if s > 0 else 0.0]
        points = [middle if p is None else p for p in points]
        gone = [float(v is None) for v in x + y]
        n = len(x)
        p = sum(gone[:n]) / n
        if 0 < p < 1:  # two states: a z-score of the original, as all coordinates are
            s = math.sqrt(p * (1 - p) * n / (n - 1))
            points = [[*point, g / s] for point, g in zip(points, gone, strict=True)]
        before.append(points[: len(x)])
        after.append(points[len(x) :])
    return [
        [list(itertools.chain(*row)) for row in zip(*table, strict=True)]
        for table in (before, after)
    ]


@given(both=mixed_pairs(kinds=("number", "date", "ordinal", "nominal", "boolean")))
def test_linkage_in_the_encoded_space_equals_its_naive_twin(both):
    if any(np.count_nonzero(~v.missing) < 2 for v in both.variables):
        return
    assert link(both).share == pytest.approx(naive.mixed_linkage(*vectors(both)), abs=1e-9)
    # An attacker compares all columns alike, whatever counts for the grouping.
    first, *others = both.variables
    important = replace(first, setting=replace(first.setting, importance=4.0))
    assert link(replace(both, variables=[important, *others], weights=None)) == link(both)
    n = len(both)
    known = {"same": Known(np.zeros(n, dtype=np.int64)), "id": Known(np.arange(n))}
    assert known_risk(both, {"same": known["same"]}, 2).record_linkage == link(both).share
    assert known_risk(both, known, 2).record_linkage == 1


def test_complete_numbers_are_encoded_as_they_are_scaled():
    both = random_pair(np.random.default_rng(0), ["number", "date", "number"])
    plain = plain_pair(both.names, both.original, both.protected)
    mean, spread = both.original.mean(axis=0), both.original.std(axis=0, ddof=1)
    for found, values in zip(both.encoded, (both.original, both.protected), strict=True):
        np.testing.assert_allclose(found, (values - mean) / spread, rtol=1e-10, atol=1e-12)
    assert utility_of(replace(both, labels=None)).information_loss == pytest.approx(
        utility_of(plain).information_loss, rel=1e-12
    )
    assert risk_of(both).as_dict() == risk_of(plain).as_dict()


def test_codes_of_missing_values_are_told_apart_where_they_are_released():
    values = np.array([np.nan] * 4)
    tags = np.array([0, 0, -1, -1])
    variable = Variable("x", "number", values, tags=tags, codes=(-8,))
    both = Pair([variable], values[:, None])
    assert risk_of(both).smallest_class == 4
    told = replace(both, states=variable.states[:, None])
    assert risk_of(told).smallest_class == 2
    assert link(told).share == pytest.approx(0.5)


def test_a_protected_category_may_follow_from_a_known_column():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, 200).astype(float)
    values[:20] = np.nan
    variable = Variable("job", "nominal", values, levels=("a", "b", "c"))
    both = Pair([variable], values[:, None])
    same = Known(np.where(np.isnan(values), 5, np.nan_to_num(values)).astype(np.int64), "whole")
    (found,) = determines({"code": same}, both)
    # Level numbers of a nominal column have no order: it is a function, not a rank.
    assert (found.function, found.rank_correlation, found.records) == (True, None, 180)
    number = replace(variable, kind="number")
    (found,) = determines({"code": same}, replace(both, variables=[number]))
    assert (found.rank_correlation, found.records) == (pytest.approx(1), 180)


def test_individual_risk_beside_weights():
    frame = pd.DataFrame({"a": [1.0, 1, 2, 2], "w": [10.0, 20, 30, 40], "h": [0, 0, 1, 1]})
    r = microagg.risk(frame, frame, ["a"], weights="w", unit="h")
    p = 2 / 30
    expected = p / (1 - p) ** 2 * (p * math.log(p) + 1 - p)
    assert r.individual.largest == pytest.approx(expected)
    assert r.individual.household.largest == pytest.approx(1 - (1 - expected) ** 2)
    assert r.as_dict()["individual"]["max"] == r.individual.largest
    assert microagg.risk(frame, frame, ["a"]).individual is None
    assert "individual" not in microagg.risk(frame, frame, ["a"]).as_dict()


# Two frames of a user


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    n = 60
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "job": rng.choice(["cook", "clerk", "nurse"], n),
            "size": rng.choice(["S", "M", "L"], n),
            "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 20000, n), "D"),
            "day": [
                str(datetime.date(2024, 1, 1) + datetime.timedelta(int(d)))
                for d in rng.integers(0, 99, n)
            ],
            "w": rng.uniform(1, 9, n),
        }
    )


SIZES = {"size": ["S", "M", "L"]}


def test_named_columns_may_be_of_any_kind(frame):
    other = frame.copy()
    other.loc[:9, "job"] = "judge"
    other.loc[:4, "age"] = np.nan
    other.loc[3, "born"] += pd.Timedelta(days=1)
    names = ["age", "job", "size", "born", "day"]
    both = pair(frame, other, names, kinds=SIZES)
    assert [v.kind for v in both.variables] == ["number", "nominal", "ordinal", "date", "date"]
    assert both.protected[:10, 1].tolist() == [3.0] * 10  # after clerk, cook, nurse
    assert np.isnan(both.protected[:5, 0]).all()
    u = utility_of(both)
    assert u.changed == {"job": pytest.approx(10 / 60), "size": 0}
    assert u.blanked["age"] == 5
    assert u.by_column["day"] == 0 < u.by_column["born"]
    assert u.by_column["job"] > 0
    assert 0 < risk_of(both).record_linkage <= 1


def test_without_names_numbers_are_compared_and_may_be_missing(frame):
    other = frame.copy()
    other.loc[:4, "age"] = np.nan
    u = microagg.utility(frame, other)
    assert set(u.by_column) == {"age", "w"}
    assert u.blanked == {"age": 5, "w": 0}
    weighted = microagg.utility(frame, other, weights="w")
    assert set(weighted.by_column) == {"age"}
    w, x = frame["w"].to_numpy(), frame["age"].to_numpy()
    moved = np.square(x - np.average(x, weights=w))
    expected = 100 * (w[:5] @ moved[:5]) / (w @ moved)
    assert weighted.information_loss == pytest.approx(expected)


def test_a_few_dates_that_could_be_read_in_two_ways_are_read_as_the_original():
    first = pd.DataFrame({"d": ["01/02/2024", "25/02/2024"]})
    second = pd.DataFrame({"d": ["01/02/2024", "02/02/2024"]})
    both = pair(first, second, ["d"])
    assert (both.protected - both.original).T.tolist() == [[0, -23]]
    gone = pair(first, pd.DataFrame({"d": pd.Series([None, None], dtype=object)}), ["d"])
    assert np.isnan(gone.protected).all()


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({"job": 1.0}, {"columns": ["age"], "kinds": {"job": "nominal"}}, "is not one of"),
        ({"age": "old"}, {"columns": ["age"]}, "must hold numbers"),
        ({"born": "yesterday"}, {"columns": ["born"]}, "same way in both tables"),
        ({"day": "yesterday"}, {"columns": ["day"]}, "same way in both tables"),
        ({"age": np.inf}, {"columns": ["age", "job"]}, "infinite value, the first in row 1"),
        ({}, {"columns": ["age"], "weights": "weight"}, "no column 'weight' for the weights"),
        ({}, {"columns": ["size"], "kinds": {"size": 3}}, "kind is one of 'number'"),
        ({}, {"columns": ["age", "w"], "weights": "w"}, "can be only one"),
    ],
)
def test_what_cannot_be_compared(frame, change, settings, words):
    with pytest.raises(InputError, match=words):
        pair(frame, frame.assign(**change), **settings)
    with pytest.raises(InputError, match="above 0"):
        pair(frame.assign(w=0.0), frame, ["age"], weights="w")


def test_hierarchies_of_frames_know_their_nodes():
    first = pd.DataFrame({"nace": ["A1", "A2", "B1", "B2"]})
    second = pd.DataFrame({"nace": ["A", "A", "B1", "B1"]})
    nace = {"nace": Column("hierarchy", prefixes=(1,), release="node")}
    both = pair(first, second, ["nace"], kinds=nace)
    assert both.protected[:, 0].tolist() == [5, 5, 2, 2]  # four codes, the root, A, B
    assert utility_of(both).changed == {"nace": 0.75}


# The user's own analyses


def test_weighted_means_and_their_linearised_errors(frame):
    (found,) = microagg.utility(
        frame, frame, ["age"], weights="w", analyses=["age by job"]
    ).analyses
    for estimate in found.estimates:
        rows = frame["job"] == estimate.name
        x, w = frame.loc[rows, "age"].to_numpy(), frame.loc[rows, "w"].to_numpy()
        middle = np.average(x, weights=w)
        m = len(x)
        error = math.sqrt(m / (m - 1) * np.square(w * (x - middle)).sum()) / w.sum()
        assert estimate.original == pytest.approx(middle)
        low, high = estimate.original_interval
        from scipy.stats import t

        assert (high - low) / 2 == pytest.approx(t.ppf(0.975, m - 1) * error)


def test_weighted_regression_equals_the_normal_equations(frame):
    rng = np.random.default_rng(2)
    frame = frame.assign(income=frame["age"] * 3 + rng.normal(0, 9, 60), rent=rng.normal(9, 2, 60))
    (found,) = microagg.utility(
        frame, frame, ["age"], weights="w", analyses=["income ~ age + rent"]
    ).analyses
    X = np.column_stack([np.ones(60), frame["age"], frame["rent"]])
    y, w = frame["income"].to_numpy(), frame["w"].to_numpy()
    bread = np.linalg.inv(X.T @ (w[:, None] * X))
    beta = bread @ X.T @ (w * y)
    e = y - X @ beta
    meat = X.T @ (np.square(w * e)[:, None] * X)
    errors = np.sqrt(np.diag(bread @ meat @ bread) * 60 / 57)
    from scipy.stats import t

    for estimate, value, error in zip(found.estimates, beta, errors, strict=True):
        assert estimate.original == pytest.approx(value)
        low, high = estimate.original_interval
        assert (high - low) / 2 == pytest.approx(t.ppf(0.975, 57) * error)


def test_analyses_leave_records_with_missing_values_out(frame):
    holes = frame.copy()
    holes.loc[:9, "age"] = np.nan
    holes.loc[10:14, "job"] = None
    whole = frame.drop(index=range(15))
    wanted = ["age by job", "w ~ age"]
    found, expected = (
        microagg.utility(table, table, ["w"], analyses=wanted).analyses for table in (holes, whole)
    )
    by_name = [sorted(a[0].estimates, key=lambda e: e.name) for a in (found, expected)]
    assert by_name[0] == by_name[1]
    assert found[0].left_out == 1  # the records without a job
    later = frame.drop(index=range(10))
    regression = microagg.utility(later, later, ["w"], analyses=wanted).analyses[1]
    assert found[1].estimates == regression.estimates


def test_equal_weights_do_not_change_an_analysis(frame):
    wanted = ["age by job", "age ~ w"]
    plain, weighted = (
        microagg.utility(
            frame.assign(one=2.0), frame, ["age"], analyses=wanted, **settings
        ).analyses
        for settings in ({}, {"weights": "one"})
    )
    assert [a.estimates for a in plain] == [a.estimates for a in weighted]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hole", ["all before", "all after", "all", "one there", "constant"])
def test_odd_columns_are_measured_without_complaint(kind, hole):
    """Warnings are errors here."""
    both = random_pair(np.random.default_rng(4), [kind, "number", "nominal"], 12)
    x, y = both.original.copy(), both.protected.copy()
    if hole in ("all before", "all"):
        x[:, 0] = np.nan
    if hole in ("all after", "all"):
        y[:, 0] = np.nan
    if hole == "one there":
        x[1:, 0] = np.nan
    if hole == "constant":
        x[:, 0] = y[:, 0] = 1
    first = replace(both.variables[0], values=x[:, 0])
    changed = replace(both, protected=y, variables=[first, *both.variables[1:]])
    for one in (changed, replace(changed, labels=None), replace(changed, weights=np.ones(12))):
        lost, risk = utility_of(one).as_dict(), risk_of(one, 2).as_dict()
        name = both.names[0]
        assert math.isfinite(lost["information_loss"])
        assert 0 <= risk["record_linkage"] <= 1
        if hole in ("all before", "all", "one there", "constant"):
            assert lost["by_column"][name] == 0
        if hole == "all after":
            assert lost["by_column"][name] == pytest.approx(100)
        assert len(summaries(one, 3)) == 3
        assert all(
            column(variable, [one.original[:, j], one.protected[:, j]], 3, None)
            for j, variable in enumerate(one.variables)
        )
