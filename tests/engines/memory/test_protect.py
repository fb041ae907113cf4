"""protect(): aggregates, rounding, digits, each column by itself, and which columns nobody named."""

import warnings

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import DisclosureRiskWarning, InputError, Plan

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])


def told(frame, **settings):
    """The release, and every warning of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = microagg.protect(frame, effort="fast", **settings)
    assert all(w.category is DisclosureRiskWarning for w in caught)
    assert all(w.filename == __file__ for w in caught)
    return release, [str(w.message) for w in caught]


def by_group(release, function):
    return FRAME["a"].groupby(release.partition.labels).transform(function).to_numpy()


@pytest.mark.parametrize(
    ("aggregate", "function"),
    [
        ("mean", "mean"),
        ("median", "median"),
        ("midrange", lambda v: (v.min() + v.max()) / 2),
        ("maximum", "max"),
        ("minimum", "min"),
    ],
)
def test_aggregates(aggregate, function):
    release = microagg.protect(FRAME, k=4, aggregate=aggregate, effort="fast")
    # Means are rounded to a millionth of a standard deviation, values of records are not.
    away = np.abs(release.data["a"].to_numpy() - by_group(release, function)).max()
    assert away <= (1e-6 * FRAME["a"].std() if aggregate in ("mean", "midrange") else 0)
    assert release.plan.blocks[0].released == aggregate
    assert release.risk.smallest_class >= 4


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_means_keep_a_millionth_of_a_standard_deviation_and_no_more(scale):
    frame = FRAME * scale
    release = microagg.protect(frame, k=4, columns=["a"], effort="fast", drop="b")
    exact = frame["a"].groupby(release.partition.labels).transform("mean")
    away = np.abs(release.data["a"] - exact).max() / frame["a"].std()
    assert 0 < away <= 1e-6
    released = release.data["a"].to_numpy()
    finest = 1.0 if scale > 1 else 1e-7 * scale  # whole numbers are never rounded
    steps = released / finest
    assert np.abs(steps - np.rint(steps)).max() < 1e-6


@pytest.mark.parametrize("digits", [0, 2, -1])
def test_digits_are_decimals_of_what_is_released(digits):
    frame = FRAME * 100
    release = microagg.protect(frame, k=4, digits=digits, effort="fast")
    values = release.data.to_numpy()
    assert np.array_equal(values, np.round(values, digits))
    exact = frame["a"].groupby(release.partition.labels).transform("mean")
    assert np.abs(release.data["a"] - exact).max() <= 0.5 * 10.0**-digits
    assert release.risk.smallest_class >= 4


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")  # of fine digits
def test_large_values_have_no_decimals_to_round():
    frame = pd.DataFrame({"a": np.arange(9.0) * 1e300})
    release = microagg.protect(frame, k=3, columns=["a"], digits=15)
    assert np.isfinite(release.data["a"]).all()
    assert release.risk.smallest_class == 3


def test_types_and_kinds_say_which_columns_are_whole():
    frame = pd.DataFrame({"n": np.random.default_rng(0).poisson(200, 60), "m": np.arange(60) % 17})
    chosen = {"columns": ["n", "m"], "round": True, "effort": "fast"}
    release = microagg.protect(frame, k=4, kinds={"n": "number"}, **chosen)
    assert (release.data.dtypes == frame.dtypes).all()
    decimals = frame.astype(float)
    release = microagg.protect(decimals, k=4, kinds={"n": "integer"}, **chosen)
    assert np.array_equal(release.data["n"], np.rint(release.data["n"]))
    assert not np.array_equal(release.data["m"], np.rint(release.data["m"]))


def test_each_column_by_itself_is_warned_of_and_loses_less(tmp_path):
    with pytest.warns(
        DisclosureRiskWarning,
        match=r"a, b are protected one by one.*combinations of values may be unique",
    ):
        release = microagg.protect(FRAME, k=4, per_column=True)
    for name in "ab":
        assert release.data[name].value_counts().min() >= 4
    assert release.risk.smallest_class < 4
    assert release.utility.information_loss < microagg.protect(FRAME, k=4).utility.information_loss
    assert [part.columns for part in release.parts] == [["a"], ["b"]]
    with pytest.raises(AttributeError, match="protected in several parts"):
        _ = release.partition
    assert release.write(tmp_path / "safe.csv").holds
    assert release.evidence.verdict == "amber"
    assert "for each column by itself, but" in release.evidence.verdict_words


@pytest.mark.parametrize(
    ("cost", "aggregate"),
    [
        ("sse", "mean"),
        ("sae", "median"),
        ("max", "midrange"),
        ("round-up", "maximum"),
        ("round-down", "minimum"),
    ],
)
def test_the_aggregate_follows_the_cost(cost, aggregate):
    release = microagg.protect(FRAME[["a"]], k=4, method="staggered", cost=cost)
    assert release.plan.blocks[0].released == aggregate
    assert release.data["a"].value_counts().min() >= 4


def test_a_plan_and_keywords_that_override_it():
    plan = Plan.of(k=3, columns=["a"], drop=["b"], method="mdav")
    by_plan = microagg.protect(FRAME, plan=plan)
    by_words = microagg.protect(FRAME, k=3, columns=["a"], drop=["b"], method="mdav")
    pd.testing.assert_frame_equal(by_plan.data, by_words.data)
    assert by_plan.plan == by_words.plan == plan
    assert list(by_plan.data.columns) == ["a"]
    more = microagg.protect(FRAME, k=6, plan=plan)
    assert more.plan == plan.override(k=6)
    assert more.risk.smallest_class >= 6


# Columns that nobody named

N = 40
RNG = np.random.default_rng(3)
SURVEY = pd.DataFrame(
    {
        "person": np.arange(1, N + 1),
        "region": RNG.integers(1, 4, N),
        "sex": RNG.choice(["f", "m"], N),
        "weight": np.where(RNG.random(N) < 0.5, 1.25, 3.5),
        "income": RNG.lognormal(8, 1, N).round(2),
        "rent": RNG.lognormal(6, 1, N).round(2),
    }
)


def test_everything_is_protected_by_its_kind_and_ids_are_dropped():
    release, warned = told(SURVEY, k=3)
    assert release.columns == ["region", "sex", "weight", "income", "rent"]
    assert (release.roles.known, release.roles.dropped) == ([], ["person"])
    assert not warned
    assert release.evidence.verdict == "green"
    for name in ("region", "sex", "weight"):  # codes and categories are never averaged
        assert set(release.data[name]) <= set(SURVEY[name])
    assert set(release.plan.notes) == set(SURVEY.columns)
    assert {name: found.role for name, found in release.drafted.items()} == {
        name: "drop" if name == "person" else "protect" for name in SURVEY
    }


def test_what_the_user_says_wins_over_the_draft():
    frame = SURVEY.assign(hid=np.arange(N) // 2, wgt=RNG.lognormal(0, 1, N))
    plan = microagg.draft(frame)
    assert (plan.unit, plan.weight.column, plan.drop) == ("hid", "wgt", ("person", "hid"))

    def completed(**given):
        return microagg.protect(frame, k=3, effort="fast", **given).plan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisclosureRiskWarning)
        # A unit is dropped unless renumbered.
        assert completed(unit="person").drop == ("hid", "person")
        renumbered = completed(unit="hid", renumber=["hid"])
        assert (renumbered.drop, renumbered.renumber) == (("person",), ("hid",))
        assert completed(weight="weight").drop == ("person", "hid", "wgt")
        kept = completed(confidential=["income"], strata=["sex"], kinds={"person": "integer"})
        assert kept.blocks[0].columns == ("person", "region", "weight", "rent")
        assert kept.columns["person"].kind == "integer"
        assert completed(kinds={"region": "integer"}).columns["region"].kind == "integer"
        assert completed(columns=["income"], drop=["person"]).blocks[0].columns == ("income",)


def test_codes_are_not_averaged_unless_somebody_says_so():
    coded = SURVEY.assign(sex=1 + np.arange(N) % 3 // 2)
    chosen = {"columns": ["sex", "income"], "drop": ["person"]}
    release, _ = told(coded, k=3, **chosen)
    assert set(release.data["sex"]) <= {1, 2}
    assert release.plan.columns["sex"].kind == "nominal"
    assert 'say kind = "integer"' in release.plan.notes["sex"]
    said, _ = told(coded, k=20, kinds={"sex": "integer"}, **chosen)
    assert set(said.data["sex"]) - {1, 2}
    assert microagg.partition(coded[["sex", "income"]], k=3).n_groups > 1


def test_the_choice_equals_the_draft():
    release, _ = told(SURVEY, k=5)
    again, _ = told(SURVEY, plan=microagg.draft(SURVEY, k=5))
    assert release.plan == again.plan
    pd.testing.assert_frame_equal(release.data, again.data)


def test_without_anything_to_protect_the_reasons_are_given():
    with pytest.raises(
        InputError,
        match=r"this table has nothing else.*'person': .*Dropped.*columns=\[\.\.\.\]",
    ):
        microagg.protect(SURVEY[["person"]], k=3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([*map(str, range(N - 1)), "NA"], None),
        ([*map(str, range(N - 4)), *["none"] * 4], None),
        ([*map(str, range(N - 1)), "none"], "one odd cell in row 40"),
        ([f"{i},5" for i in range(N)], "decimal commas, the first in row 1"),
        (["00123", "04711", "99999", "12345"] * (N // 4), None),
        (["a", "b", "3", "c"] * (N // 4), None),
    ],
)
def test_numbers_as_text_are_protected_if_they_can_be_read(values, words):
    frame = pd.DataFrame({"a": SURVEY["income"], "t": values})
    release, warned = told(frame, k=3)
    assert release.columns == (["a", "t"] if words is None else ["a"])
    left = [text for text in warned if "cannot be read" in text]
    assert [f"t ({words})" in text for text in left] == [True] * (words is not None)
    commas = "decimal commas" in str(words)
    assert any("--decimal , for a CSV file" in text for text in left) == commas
    coded = {"t": ("none",)} if "none" in values[-2:-1] else {}
    assert release.plan.missing.codes == coded


class Name(str):
    """A column name that counts how often it is compared with another one."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def comparisons(columns):
    """How often names are compared while a table of so many columns is protected and judged."""
    values = np.random.default_rng(0).normal(size=(20, columns))
    frame = pd.DataFrame(values)
    frame.columns = pd.Index([Name(f"c{j}") for j in range(columns)], dtype=object)
    Name.compared = 0
    release, _ = told(frame, k=5)
    assert len(release.evidence.cautions) > 0
    return Name.compared


def test_no_list_of_names_is_searched_once_for_each_column():
    # Such a search makes wide tables quadratic: twice the columns, four times the comparisons.
    assert comparisons(120) < 3 * max(comparisons(60), 60)
