"""Requirements beside k, from the plan to the file that was read back, counted here by pandas alone."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import microagg
import naive_requirements as naive
from microagg import InputError
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

protect_table = import_module(
    "microagg.engines.memory.protect"
).protect_table  # microagg.protect is the function
N = 240
RNG = np.random.default_rng(7)
SURVEY = pd.DataFrame(
    {
        "household": np.repeat(np.arange(N // 3), 3),
        "region": np.repeat(["north", "south"], N // 2),
        "age": RNG.integers(18, 90, N).astype(float),
        "income": np.round(RNG.lognormal(10, 0.6, N)),
        "turnover": np.round(RNG.lognormal(3, 1.0, N), 2),
        "diagnosis": RNG.choice(["flu", "cold", "cancer", "none"], N, p=[0.3, 0.3, 0.1, 0.3]),
        "score": RNG.normal(size=N).round(3),
        "w": RNG.uniform(50, 150, N).round(1),
    }
)
COLUMNS = ["age", "income"]


def protected(frame=SURVEY, **settings):
    # Rows of the file are compared with those of the survey.
    chosen = {"k": 3, "columns": COLUMNS, "effort": "fast", "keep_order": True, **settings}
    with pytest.warns(microagg.DisclosureRiskWarning):
        return microagg.protect(frame, **chosen)


def written(release, tmp_path):
    target = tmp_path / "safe.parquet"
    release.write(target)
    return pd.read_parquet(target)


def each_group(frame, columns=COLUMNS):
    return [group for _, group in frame.groupby(columns, dropna=False)]


def test_dominance_by_unit_and_thresholds_that_stay_inside(tmp_path):
    rules = {"p_percent": {"turnover": 57.2513}, "n_k": {"turnover": {"n": 1, "k": 41.5217}}}
    homes = SURVEY.groupby("household")
    alike = {name: homes[name].transform("first") for name in COLUMNS}  # so that members meet
    settings = {"require": rules, "unit": "household", "renumber": ["household"]}
    release = protected(SURVEY.assign(**alike), **settings)
    frame = written(release, tmp_path)
    for group in each_group(frame):
        given = SURVEY.loc[group.index].groupby("household").turnover.sum()
        largest = given.sort_values(ascending=False).to_numpy()
        assert largest.sum() - largest[:2].sum() >= 0.572513 * largest[0] - 1e-9
        assert largest[0] <= 0.415217 * largest.sum() + 1e-9
        assert group.household.nunique() >= 3
    release.report(tmp_path / "public.html", public=True)
    for ending in ("html", "json"):
        text = (tmp_path / f"public.{ending}").read_text()
        assert "57.2513" not in text
        assert "41.5217" not in text
    release.report(tmp_path / "board.html")
    assert "57.2513" in (tmp_path / "board.html").read_text()


def test_population_and_individual_risk(tmp_path):
    release = protected(
        require={"population": 500, "individual_risk": 0.004}, weight="w", drop=["household"]
    )
    for group in each_group(written(release, tmp_path), [*COLUMNS, "w"]):
        f, weights = len(group), SURVEY.w[group.index].sum()
        assert weights >= 500
        p = f / weights
        assert p / (f - (1 - p)) <= 0.004 + 1e-9
    with pytest.raises(InputError, match="counted in survey weights"):
        microagg.protect(SURVEY, k=3, columns=COLUMNS, require={"population": 500})


def test_what_no_groups_can_satisfy_is_refused_with_the_reason():
    with pytest.raises(InputError, match="the whole table has 4"):
        microagg.protect(SURVEY, k=3, columns=COLUMNS, require={"distinct": {"diagnosis": 5}})
    frame = SURVEY.assign(diagnosis=np.where(SURVEY.region == "south", "flu", SURVEY.diagnosis))
    with pytest.raises(InputError, match="120 records that share both cannot have at least 2"):
        microagg.protect(
            frame, k=3, columns=COLUMNS, strata="region", require={"distinct": {"diagnosis": 2}}
        )
    with pytest.raises(InputError, match="proves its groups for k alone"):
        microagg.protect(SURVEY, k=3, columns=COLUMNS, method="optimal", unit="household")


TOGETHER = {"column": "household", "mode": "together"}


@pytest.mark.parametrize("rule", ["distinct", "entropy", "closeness", "p_percent"])
def test_what_is_required_holds_for_members_of_whole_households(tmp_path, rule):
    # Some households have one member more, so that there are sizes with few households.
    frame = pd.concat([SURVEY, SURVEY.iloc[:9:3]], ignore_index=True)
    frame["turnover"] = np.random.default_rng(2).gamma(2, 10, len(frame))
    frame["rent"] = frame.groupby("household").income.transform("mean")
    columns = [*COLUMNS, "rent"]
    asked = {
        "distinct": {"diagnosis": 3},
        "entropy": {"diagnosis": 2},
        "closeness": {"diagnosis": 0.3},
        "p_percent": {"turnover": 30},
    }[rule]
    release = protected(frame, columns=columns, unit=TOGETHER, require={rule: asked})
    found = written(release, tmp_path)
    codes = pd.factorize(frame.diagnosis)[0]
    units, amounts = frame.household.to_numpy(), frame.turnover.to_numpy()
    labels = pd.Series(release.partition.labels)
    # A value of the household stays one.
    assert (found.groupby("household").rent.nunique() == 1).all()
    for rows in found.groupby(columns).indices.values():
        assert frame.household[rows].nunique() >= 3
        if rule == "distinct":
            assert len(set(codes[rows])) >= 3
        elif rule == "entropy":
            assert naive.entropy(codes, 2, rows) < 1e-9
        elif rule == "closeness":
            assert naive.closeness(codes, 0.3, False, rows) < 1e-9
        else:
            assert naive.p_percent_margin(amounts, 30, units, rows) < 1e-9
    # Members of a household are at the same places of the same households.
    mates = labels.groupby(labels).apply(lambda group: frozenset(found.household[group.index]))
    assert (labels.map(mates).groupby(found.household).nunique() == 1).all()


def test_pooled_sizes_satisfy_with_all_their_members(tmp_path):
    """Youngest members alone have one diagnosis; with those beyond the smallest size there are two."""
    sizes = np.array([2] * 2 + [3] * 2)  # pooled: each size has fewer than k households
    household = np.repeat(np.arange(4), sizes)
    age = np.concatenate([60.0 - 10 * np.arange(size) for size in sizes]) + household
    place = np.concatenate([np.arange(size) for size in sizes])
    diagnosis = np.where(place == 1, "flu", np.where(household % 2 == 0, "cold", "none"))
    frame = pd.DataFrame({"household": household, "age": age, "diagnosis": diagnosis})
    asked = {"distinct": {"diagnosis": 2}}
    release = protected(frame, k=4, columns=["age"], unit=TOGETHER, require=asked)
    found = written(release, tmp_path)
    assert frame.diagnosis.groupby(found.age).nunique().min() >= 2
    assert frame.household.groupby(found.age).nunique().min() >= 4


def test_small_strata_of_whole_households_are_merged(tmp_path):
    region = np.where(SURVEY.household < 2, "islands", SURVEY.region)
    frame = SURVEY.assign(region=region)
    frame["region"] = frame.groupby("household").region.transform("first")
    strata = {"columns": ["region"], "small": "merge"}
    release = protected(frame, k=4, unit=TOGETHER, strata=strata)
    assert any("Small strata were merged" in caution.words for caution in release.cautions)
    found = written(release, tmp_path)
    assert "islands" not in set(found.region)
    assert (found.groupby("household").region.nunique() == 1).all()
    assert frame.household.groupby([found[c] for c in [*COLUMNS, "region"]]).nunique().min() >= 4


def test_what_members_at_one_place_do_not_have_is_refused():
    older = SURVEY.age == SURVEY.groupby("household").age.transform("max")
    frame = SURVEY.assign(diagnosis=np.where(older, "flu", "none"))
    with pytest.raises(InputError, match="members at each place must satisfy the requirements"):
        microagg.protect(
            frame, k=3, columns=COLUMNS, unit=TOGETHER, require={"distinct": {"diagnosis": 2}}
        )


def test_a_household_in_two_strata_is_refused():
    frame = SURVEY.assign(region=np.where(np.arange(N) == 1, "south", SURVEY.region))
    with pytest.raises(InputError, match=r"of row 2 .* has records in two strata"):
        microagg.protect(frame, k=3, columns=COLUMNS, strata="region", unit=TOGETHER)


SMALL = SURVEY.sample(40, random_state=1).reset_index(drop=True)
RULES = {
    "distinct": {"distinct": {"diagnosis": 3}},
    "entropy": {"entropy": {"diagnosis": 1.8}},
    "closeness": {"closeness": {"score": 0.25}},
    "equal closeness": {"closeness": {"diagnosis": 0.4}},
    "p_percent": {"p_percent": {"turnover": 5}},
    "n_k": {"n_k": {"turnover": {"n": 1, "k": 80}}},
    "population": {"population": 400},
    "individual_risk": {"individual_risk": 0.005},
    "units": {},
}


METHODS = [method.name for method in microagg.methods()]
# By default each method with one rule and three methods with each; all with all in the long run.
FEW = [(m, list(RULES)[i % len(RULES)]) for i, m in enumerate(METHODS)]
FEW += [(m, rule) for m in ("auto", "mdav", "t-first") for rule in RULES if (m, rule) not in FEW]
OTHERS = [(m, rule) for m in METHODS for rule in RULES if (m, rule) not in FEW]


@pytest.mark.parametrize(
    ("method", "rule"), [*FEW, *(pytest.param(*both, marks=pytest.mark.long) for both in OTHERS)]
)
def test_every_method_keeps_every_requirement_or_refuses(method, rule, tmp_path):
    columns = ["age"] if microagg.plan.registry.find(method).one_column else COLUMNS
    keep = {"unit": "household"} if rule == "units" else {"require": RULES[rule]}
    weight = {"weight": {"column": "w", "release": "drop", "grouping": "plain"}}
    settings = {"k": 3, "columns": columns, "method": method, **keep, **weight}
    row = microagg.plan.registry.find(method)
    if row.proves or row.categories or (row.closeness and "closeness" not in rule):
        with pytest.raises(InputError, match=method):
            protect_table(Frame(SMALL), Plan.of(**settings))
        return
    release = protect_table(Frame(SMALL), Plan.of(**settings))
    release.write(tmp_path / "safe.parquet")  # which counts it, and keeps no file that breaks it
    labels = release.partition.labels
    assert np.bincount(labels).min() >= 3
    (found,) = release.evidence.counted.required
    assert found.passed
    for given in release.released_table.inputs[0].requirements:
        for group in range(labels.max() + 1):
            assert given.violation(np.flatnonzero(labels == group)) == 0
