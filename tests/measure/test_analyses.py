"""The statistics of the user's analyses, against naive twins and against resampling."""

import itertools

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg.measure.estimates import _density, gini, poverty, quantile

N = 400


@pytest.fixture
def survey():
    rng = np.random.default_rng(5)
    income = rng.lognormal(10, 0.6, N).round(2)
    return pd.DataFrame(
        {
            "income": income,
            "age": rng.integers(18, 90, N).astype(float),
            "sex": rng.choice(["f", "m"], N),
            "status": rng.choice([1, 2, 3], N, p=[0.5, 0.3, 0.2]),
            "w": rng.uniform(1, 3, N),
        }
    )


def estimates(survey, formula, released=None, **settings):
    released = survey if released is None else released
    (found,) = microagg.utility(
        survey, released, ["income"], analyses=[formula], **settings
    ).analyses
    return {one.name: one for one in found.estimates}


def naive_quantile(x, w, p):
    """The mean of the ten values around a quantile; eleven if they are an odd number."""
    pairs = sorted(zip(x, w, strict=True))
    upto, at = 0.0, 0
    while upto + pairs[at][1] < p * sum(w) * (1 - 1e-12):
        upto += pairs[at][1]
        at += 1
    count = 10 + len(x) % 2
    start = min(max(at - (count - 1) // 2, 0), len(x) - count)
    some = pairs[start : start + count]
    return sum(v * u for v, u in some) / sum(u for _, u in some)


def naive_gini(x, w):
    """Half the mean difference of two draws, over the mean."""
    pairs = itertools.product(zip(x, w, strict=True), repeat=2)
    differences = sum(a * b * abs(u - v) for (u, a), (v, b) in pairs)
    return differences / (2 * np.sum(w) ** 2 * np.average(x, weights=w))


@pytest.mark.parametrize("weights", [None, "w"])
def test_statistics_against_naive_twins(survey, weights):
    x = survey["income"].to_numpy()
    w = np.ones(N) if weights is None else survey["w"].to_numpy()
    (found,) = estimates(survey, "gini(income)", weights=weights).values()
    assert found.original == pytest.approx(naive_gini(x, w))
    for p in (0.01, 0.1, 0.5, 0.97):
        (found,) = estimates(survey, f"quantile(income, {p})", weights=weights).values()
        assert found.original == pytest.approx(naive_quantile(x, w, p))
        assert found.original_interval[0] <= found.original <= found.original_interval[1]
    line = 0.6 * naive_quantile(x, w, 0.5)
    (found,) = estimates(survey, "poverty(income)", weights=weights).values()
    assert found.name == "poverty(income)"
    assert found.original == pytest.approx(w[x < line].sum() / w.sum())
    # The line is that of the whole table, whatever the group.
    for sex, one in estimates(survey, "poverty(income) by sex", weights=weights).items():
        own = (survey["sex"] == sex).to_numpy()
        assert one.original == pytest.approx(w[own & (x < line)].sum() / w[own].sum())
        assert one.records == own.sum()
    for status, one in estimates(survey, "share(status)", weights=weights).items():
        assert one.original == pytest.approx(w[survey["status"] == int(status)].sum() / w.sum())
    for name, one in estimates(survey, "share(status) by sex", weights=weights).items():
        status, sex = name.split(", ")
        own = (survey["sex"] == sex).to_numpy()
        has = own & (survey["status"] == int(status)).to_numpy()
        assert one.original == pytest.approx(w[has].sum() / w[own].sum())
        assert one.records == has.sum()


@pytest.mark.parametrize(
    "statistic",
    [
        gini,
        lambda x, w: quantile(x, w, 0.3),
        lambda x, w: poverty(x, w, 0.6 * quantile(x, w, 0.5).value, 0.6, np.arange(len(x))),
    ],
    ids=["gini", "quantile", "poverty"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_hold_what_resampling_says(statistic, weighted):
    """Over many samples of a population, estimates vary as wide as one sample's interval says."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        x = rng.lognormal(0, 0.6, 600)
        found.append(statistic(x, rng.uniform(1, 3, 600) if weighted else np.ones(600)))
    spread = np.std([one.value for one in found], ddof=1)
    half = np.median([np.ptp(one.interval) / 2 for one in found]) / 1.964
    assert half == pytest.approx(spread, rel=0.15)


def test_the_density_of_normal_values_is_that_of_the_normal_curve():
    """The error of a poverty rate rests on it."""
    x = np.random.default_rng(0).normal(size=20_000)
    for at in (0.0, 1.0):
        curve = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
        assert _density(x, np.ones(len(x)), at) == pytest.approx(curve, rel=0.08)


def test_a_category_explains_by_its_values_but_the_most_frequent(survey):
    found = estimates(survey, "income ~ age + sex")
    usual = survey["sex"].mode()[0]
    other = "m" if usual == "f" else "f"
    assert list(found) == ["(intercept)", "age", f"sex = {other}"]
    X = np.column_stack([np.ones(N), survey["age"], survey["sex"] == other]).astype(float)
    beta = np.linalg.lstsq(X, survey["income"], rcond=None)[0]
    assert [one.original for one in found.values()] == pytest.approx(list(beta))


def test_codes_are_categories_where_the_kind_says_so(survey):
    assert list(estimates(survey, "income ~ status")) == ["(intercept)", "status"]
    settings = {"kinds": {"status": "nominal"}}
    both = microagg.utility(
        survey, survey, ["income", "status"], analyses=["income ~ status"], **settings
    )
    names = [one.name for one in both.analyses[0].estimates]
    assert names == ["(intercept)", "status = 2", "status = 3"]
    release = microagg.protect(
        survey, k=5, kinds={"status": "nominal"}, method="mdav", analyses="income ~ status"
    )
    names = [one.name for one in release.utility.analyses[0].estimates]
    assert names == ["(intercept)", "status = 2", "status = 3"]


@pytest.mark.parametrize(
    ("sizes", "named"),
    [([200, 150, 42, 8], "b"), ([200, 150, 40, 10], "bcd"), ([200, 150, 40, 5, 5], "bc")],
)
def test_a_category_that_few_have_has_no_coefficient(survey, sizes, named):
    """Nor does another where they would be alone: with the mean of all records it would tell of the few."""
    survey["status"] = np.repeat([*"abcde"][: len(sizes)], sizes)
    (found,) = microagg.utility(survey, survey, ["income"], analyses=["income ~ status"]).analyses
    names = [one.name for one in found.estimates]
    assert names == ["(intercept)", *(f"status = {level}" for level in named)]
    assert found.left_out == len(sizes) - len(names)
    a = survey.loc[survey["status"] == "a", "income"]
    assert found.estimates[0].original == pytest.approx(a.mean())


def test_fifty_values_are_categories_and_more_are_not(survey):
    assert estimates(survey.assign(status=np.arange(N) % 50), "share(status)")
    with pytest.raises(microagg.InputError, match=r"51 different values; .* at most 50"):
        estimates(survey.assign(status=np.arange(N) % 51), "share(status)")


def test_a_category_that_vanished_is_left_out(survey):
    survey["status"] = np.repeat(["a", "b", "c"], [200, 150, 50])
    released = survey.assign(status=survey["status"].replace("c", "b"))
    (found,) = microagg.utility(survey, released, ["income"], analyses=["income ~ status"]).analyses
    assert [one.name for one in found.estimates] == ["(intercept)", "status = b"]
    assert found.left_out == 1


def test_analyses_are_part_of_the_plan(survey):
    plan = microagg.Plan.of(
        k=5, analyses=["poverty(income)", "income ~ age + sex"], max_moved=1e-9, weight="w"
    )
    again = microagg.Plan.from_toml_text(plan.to_toml())
    assert again == plan
    release = microagg.protect(survey, plan=again, method="mdav")
    told = release.evidence.as_dict()["utility"]["analyses"]
    assert [one["formula"] for one in told] == ["poverty(income)", "income ~ age + sex"]
    assert release.evidence.verdict == "red"  # something always moves
    assert [one.what for one in release.evidence.thresholds] == list(plan.analyses)
    x, w = (np.array(release.data[name]) for name in ("income", "w"))
    poor = w[x < 0.6 * naive_quantile(x, w, 0.5)].sum() / w.sum()
    (only,) = release.utility.analyses[0].estimates
    assert only.protected == pytest.approx(poor)  # by the weights that readers have
    assert release.utility.analyses[0].words.startswith(
        f"poverty(income): {100 * only.original:.1f} % → {100 * poor:.1f} %; the 95 % intervals"
    )


def told(table, *analyses):
    """What the evidence of a release tells of analyses."""
    columns = [name for name in table if name not in ("sex", "status", "w")]
    chosen = {"columns": columns, "drop": ["sex", "status", "w"], "method": "mdav"}
    release = microagg.protect(table, k=3, analyses=list(analyses), **chosen)
    return [one["estimates"] for one in release.evidence.as_dict()["utility"]["analyses"]]


def test_values_around_quantiles_are_told_once(survey):
    """The means of two windows that differ by one record would tell of two records."""
    wanted = ["median(income)", "quantile(income, 0.5025)", "quantile(income, 0.9)"]
    found = told(survey, *wanted)
    assert [len(estimates) for estimates in found] == [1, 0, 1]
    assert found[0][0]["original"] not in np.sort(survey["income"])


def test_a_share_of_few_is_not_told(survey):
    survey["rare"] = np.repeat(["a", "b", "c"], [380, 15, 5])
    (found,) = told(survey, "share(rare)")
    assert [one["name"] for one in found] == ["a"]


def test_two_records_make_a_group_and_one_does_not():
    frame = pd.DataFrame({"x": [1.0, 3.0, 5.0, 9.0, 7.0], "g": ["a", "a", "b", "b", "c"]})
    found = microagg.utility(frame, frame, ["x"], analyses=["x by g"]).analyses[0]
    assert [(one.name, one.records) for one in found.estimates] == [("a", 2), ("b", 2)]
    assert found.left_out == 1
    with pytest.raises(microagg.InputError, match="at least two records in both tables"):
        microagg.utility(frame.iloc[[0, 2, 4]], frame.iloc[[0, 2, 4]], ["x"], analyses=["x by g"])


def test_a_regression_needs_a_record_more_than_its_coefficients_and_the_constant():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(4, 3)), columns=["y", "x", "z"])
    (analysis,) = microagg.utility(frame, frame, ["y"], analyses=["y ~ x + z"]).analyses
    assert [estimate.records for estimate in analysis.estimates] == [4, 4, 4]
    few = frame.head(3)
    with pytest.raises(microagg.InputError, match="needs at least 4 records; the table has 3"):
        microagg.utility(few, few, ["y"], analyses=["y ~ x + z"])
