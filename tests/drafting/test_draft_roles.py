"""Which role the draft gives a column: units, weights, codes for missing values, and what files say."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import microagg
from drafting.test_draft import JUDGED, real_table, release_of
from microagg.drafting.draft import draft
from microagg.drafting.infer import guess
from microagg.formats.files import read_file
from microagg.job.run import protect_file
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.tables.file_metadata import ColumnFacts

RNG = np.random.default_rng(5)
N = 600
AMOUNTS = RNG.lognormal(3, 1, N).round(2)


@pytest.mark.parametrize("name", JUDGED["roles"])
def test_roles_of_real_tables_as_judged_by_hand(name):
    guesses = guess(real_table(name))
    found = {
        column: one.role
        for column, one in guesses.items()
        if one.role in ("drop", "unit", "weight") and column != "rownames"
    }
    assert found == JUDGED["roles"][name]


def test_the_week_of_an_event_is_a_quantity():
    frame = pd.DataFrame(
        {
            "week": np.minimum(RNG.integers(1, 80, N), 52),
            "arrest": RNG.integers(0, 2, N),
            "fin": RNG.integers(0, 2, N),
            "age": RNG.integers(17, 44, N),
            "prio": RNG.poisson(3, N),
        }
    )
    found = {name: one.looks_like for name, one in guess(frame).items()}
    assert found == {
        "week": "quantity",
        "arrest": "code",
        "fin": "code",
        "age": "quantity",
        "prio": "quantity",
    }


def nested():
    households = np.repeat(np.arange(200), 3)
    persons = np.arange(300).repeat(2)  # each in two waves, two or one to a household
    return pd.DataFrame(
        {"hid": households, "pid": persons, "wave": np.arange(N) % 2, "income": AMOUNTS}
    )


def test_of_nested_ids_k_counts_households_and_the_draft_says_why():
    plan = draft(nested())
    assert (plan.unit, plan.unit_section.name) == ("hid", "household")
    assert {"hid", "pid"} <= set(plan.drop)
    named = nested().rename(columns={"hid": "household", "pid": "person"})
    plan = draft(named)
    assert (plan.unit, plan.unit_section.name) == ("household", "household")
    assert "rather than person, since k households are at least k" in plan.notes["household"]
    assert "it identifies people, and k counts household" in plan.notes["person"]


def test_the_weight_of_records_comes_before_that_of_households():
    w = RNG.lognormal(5, 1, N)
    frame = nested().assign(hh_weight=w, weight=w * 2.5)
    plan = draft(frame)
    assert plan.weight.column == "weight"
    assert "hh_weight" in plan.drop
    baby = draft(pd.DataFrame({"weight": RNG.normal(3300, 500, N).round(), "x": AMOUNTS}))
    assert baby.weight is None
    assert "weight" in baby.blocks[0].columns
    sample = draft(pd.DataFrame({"w": RNG.lognormal(5, 1, N), "x": AMOUNTS}))
    assert sample.weight.column == "w"


AGES = RNG.integers(18, 80, N)


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        (np.where(np.arange(N) % 20, AGES, 99), (99.0,)),
        (np.where(np.arange(N) % 20, AGES, 999), (999.0,)),
        (np.where(np.arange(N) % 20, AGES, -9), (-9.0,)),
        (np.where(np.arange(N) % 20, np.where(np.arange(N) % 7, AGES, -8), -9), (-9.0, -8.0)),
        (np.where(np.arange(N) % 20, AGES, -9) - 30, ()),  # other values are below 0 too
        (np.where(np.arange(N) > 0, AGES, 999), ()),  # once
        (np.where(np.arange(N) % 20, np.arange(N) % 99, 99), ()),  # right after the others
    ],
)
def test_codes_for_missing_values_stand_apart_and_repeat(values, codes):
    frame = pd.DataFrame({"age": values, "income": AMOUNTS})
    plan = draft(frame)
    assert plan.missing.codes == ({"age": codes} if codes else {})
    if codes:
        assert "taken as missing (missing.codes)" in plan.notes["age"]
        assert not any(str(int(code)) in plan.notes["age"] for code in codes)
        released = release_of(frame, k=5, effort="fast").data["age"]
        true = released[~released.isin(codes)]
        assert true.between(18, 80).all()  # a code is never part of a mean


def labelled_file(path):
    """A survey as SPSS writes it, with value labels and measure levels."""
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame(
        {
            "sex": RNG.integers(1, 3, N).astype(float),
            "health": RNG.integers(1, 6, N).astype(float),
            "county": RNG.integers(1, 30, N).astype(float),
            "score": RNG.integers(0, 8, N).astype(float),
            "income": AMOUNTS,
        }
    )
    labels = {
        "sex": {1.0: "male", 2.0: "female"},
        "health": {float(i): f"level {i}" for i in range(1, 6)},
        "county": {float(i): f"county {i}" for i in range(1, 30)},
        "score": {float(i): f"{i} points" for i in range(8)},
    }
    measures = {
        "sex": "nominal",
        "health": "ordinal",
        "county": "nominal",
        "score": "scale",
        "income": "scale",
    }
    pyreadstat.write_sav(frame, str(path), variable_value_labels=labels, variable_measure=measures)
    return labels


def test_value_labels_settle_the_kinds_and_released_codes_are_labelled(tmp_path):
    source, target = tmp_path / "in.sav", tmp_path / "out.sav"
    labels = labelled_file(source)
    found = protect_file(source, target, k=5, effort="fast")
    kinds = {name: column.kind for name, column in found.plan.columns.items()}
    assert kinds == {"sex": "nominal", "health": "ordinal", "county": "nominal"}
    assert found.verdict == "green"
    released = read_file(target).table
    for name in kinds:
        assert set(released[name].drop_null().to_pylist()) <= set(labels[name])


def test_named_columns_with_value_labels_are_codes(tmp_path):
    source, target = tmp_path / "in.sav", tmp_path / "out.sav"
    labels = labelled_file(source)
    plan = Plan.of(k=5, columns=["sex", "county", "income"], drop=["health", "score"])
    found = protect_file(source, target, plan=plan, effort="fast")
    assert set(read_file(target).table["county"].drop_null().to_pylist()) <= set(labels["county"])
    assert found.plan.columns["county"].kind == "nominal"
    said = plan.override(kinds={"county": "integer"})
    found = protect_file(source, target, plan=said, effort="fast")
    assert found.plan.columns["county"].kind == "integer"


def test_labels_that_say_missing_make_codes():
    facts = ColumnFacts(value_labels=((8, "don't know"), (9, "refused")))
    values = np.where(np.arange(N) % 9, RNG.integers(20, 70, N), 9)
    field = pa.field("age", pa.int64(), metadata=facts.as_metadata())
    table = pa.table([pa.array(values), pa.array(AMOUNTS)], schema=pa.schema([field, ("x", "f8")]))
    assert draft(table).missing.codes == {"age": (9.0,)}


def test_categories_by_their_type_are_not_averaged():
    frame = pd.DataFrame({"room": pd.Categorical(RNG.integers(1, 40, N)), "x": AMOUNTS})
    ordered = frame.assign(room=frame["room"].cat.as_ordered())
    assert draft(frame).columns["room"].kind == "nominal"
    assert draft(ordered).columns["room"].kind == "ordinal"


def test_methods_that_cannot_weigh_group_without_the_weight():
    frame = pd.DataFrame(
        {"survey_weight": RNG.lognormal(0, 1, N), "x": AMOUNTS, "y": AMOUNTS[::-1]}
    )
    release = microagg.protect(frame, k=5, method="v-mdav")
    assert not find("v-mdav").weighted
    assert (release.plan.weight.grouping, release.evidence.verdict) == ("plain", "green")
    assert release_of(frame, k=5, per_column=True, effort="fast").plan.weight is None


def test_groups_of_one_unit_are_never_green():
    """Seven codes that are seen again every year are too few to be drafted as the unit: a caution counts."""
    rng = np.random.default_rng(1)
    codes, years = 7, 40
    own = np.repeat(rng.normal(size=(2, codes)) * 5, years, axis=1)
    frame = pd.DataFrame(
        {
            "code": np.repeat([f"a{i}" for i in range(codes)], years),
            "year": np.tile(np.arange(1980, 1980 + years), codes),
            "x": own[0] + rng.normal(size=codes * years),
            "y": own[1] + rng.normal(size=codes * years),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evidence = microagg.protect(frame, k=5).evidence
        by_stratum = microagg.protect(
            frame, k=5, strata=["code"], columns=["year", "x", "y"]
        ).evidence
    assert evidence.plan.unit is None
    assert evidence.verdict == "amber"
    ambers = [caution.words for caution in evidence.cautions if caution.severity == "amber"]
    assert ["of the groups all records have the same code" in words for words in ambers] == [True]
    assert by_stratum.verdict == "green"


@pytest.mark.parametrize(("codes", "unit"), [(30, "code"), (7, None)])
def test_what_is_seen_again_once_for_each_sex_is_a_unit_or_told(codes, unit):
    """Deaths of each country, year, sex and age group: the records of a country are its own."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        [
            (f"a{code}", year, sex, age)
            for code in range(codes)
            for year in range(1990, 2005)
            for sex in ("f", "m")
            for age in ("young", "middle", "old")
        ],
        columns=["code", "year", "sex", "group"],
    )
    own = np.repeat(rng.lognormal(3, 2, codes), len(frame) // codes)
    frame["deaths"] = (own * rng.uniform(0.9, 1.1, len(frame))).round(2)
    assert draft(frame).unit == unit
    if unit is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert microagg.protect(frame, k=5, effort="fast").evidence.verdict == "amber"


def test_regions_of_people_who_are_asked_once_are_no_units():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "code": rng.choice([f"a{i}" for i in range(20)], 3000),
            "year": rng.integers(2000, 2010, 3000),
            "sex": rng.choice(["f", "m"], 3000),
            "income": rng.lognormal(9, 1, 3000).round(2),
        }
    )
    assert draft(frame).unit is None
