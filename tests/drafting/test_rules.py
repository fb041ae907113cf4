"""The table of rules (drafting/rules.toml): each entry has an example, and each example holds."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from drafting.test_draft import JUDGED, real_table, release_of
from microagg.drafting.draft import draft
from microagg.drafting.infer import guess
from microagg.drafting.name_words import LANGUAGES, RULES, plain, words
from microagg.drafting.number_columns import missing_codes, says_missing
from microagg.drafting.profile import of_values
from microagg.drafting.text_columns import order_of

RNG = np.random.default_rng(11)
N = 600
AMOUNTS = RNG.lognormal(3, 1, N).round(2)

WORDS = [
    pytest.param(entry, id=f"{section}-{name}")
    for section in ("names", "households", "units", "containers", "parts_of_dates", "coordinates")
    for name, entry in RULES[section].items()
]


@pytest.mark.parametrize("entry", WORDS)
def test_the_example_of_a_word_is_recognised_and_words_are_plain(entry):
    known = {word for language in LANGUAGES for word in entry.get(language, "").split()}
    assert known & set(words(entry["example"]))
    assert all(word == plain(word).lower() for word in known)


@pytest.mark.parametrize("entry", RULES["orders"], ids=lambda entry: entry["about"])
def test_the_example_of_an_order_is_put_in_order(entry):
    called = entry.get("called", "").split()
    assert order_of(entry["example"][::-1], called) == tuple(entry["example"])
    assert not called or order_of(entry["example"], ["x"]) is None
    for language in set(LANGUAGES) & set(entry):
        places = [place.split("|")[0].strip() for place in entry[language].split(";")]
        assert order_of(sorted(places), called) == tuple(places)


@pytest.mark.parametrize("entry", RULES["ranges"]["examples"], ids=lambda e: e["levels"][0])
def test_the_example_of_ranges_is_put_in_order(entry):
    assert order_of(sorted(entry["levels"])) == tuple(entry["levels"])


def test_the_example_of_no_answer_says_so():
    assert says_missing(RULES["missing"]["example"])
    for language in LANGUAGES:
        assert says_missing(RULES["missing"][language].split("|")[0].replace("\\b", ""))
    assert not says_missing("good")


@pytest.mark.parametrize(
    "texts",
    [
        ["red", "green", "blue"],
        ["low", "middle", "high", "blue"],
        ["25-00503", "25-00703", "25-01300"],  # codes of places
        ["1. White", "2. Black", "3. Asian"],
        ["Model 3", "Model 4", "Model 5"],
        ["1-5", "3-8", "6-9"],  # overlap
        ["2019-20", "2020-21", "2021-22"],
        ["yes", "no"],
        ["1 apple", "2 pears", "3 plums"],
    ],
)
def test_texts_without_an_order_have_none(texts):
    assert order_of(texts) is None


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ({"1": 20, "2": 25, "3": 20, "4": 20, "5": 15}, "A scale without a gap."),
        ({"2": 48, "3": 25, "4": 15, "5": 7, "6": 3, "7": 1, "9": 1}, "Counts: larger ones are rarer."),
    ],
)  # fmt: skip
def test_numbers_with_a_word_for_none_are_a_scale_or_counts_with_their_levels_in_order(
    shares, reason
):
    """As NIST's table writes them: N for not applicable. Sizes of families have a gap at 8."""
    texts = [text for text, share in shares.items() for _ in range(5 * share)] + ["N"] * 100
    plan = draft(pd.DataFrame({"NPF": RNG.permutation(texts), "amount": AMOUNTS}))
    column = plan.columns["NPF"]
    assert (column.kind, column.levels) == ("ordinal", tuple(shares))
    assert plan.missing.codes["NPF"] == ("N",)
    assert reason in plan.notes["NPF"]


@pytest.mark.parametrize(
    ("name", "values", "levels"),
    [
        ("x", ["high", "low", "middle"], ("low", "middle", "high")),
        ("Gesundheit", ["gut", "sehr gut", "schlecht"], ("schlecht", "gut", "sehr gut")),
        ("age", ["18-24", "65+", "25-64"], ("18-24", "25-64", "65+")),
        ("income", ["< 5", "10+", "5 to 9"], ("< 5", "5 to 9", "10+")),
        ("edu", ["HS graduate", "college", "some college"], ("HS graduate", "some college", "college")),
        ("momEd", ["S", "N", "P"], ("N", "P", "S")),
        ("dose", ["B", "A", "C"], ("A", "B", "C")),
        ("Meal", ["10am", "2am", "2pm"], ("2am", "10am", "2pm")),
        ("train", ["12:10 p.m.", "12:05 a.m.", "9 am"], ("12:05 a.m.", "9 am", "12:10 p.m.")),
    ],
)  # fmt: skip
def test_texts_with_an_order_are_ordinal_and_the_plan_shows_the_order(name, values, levels):
    frame = pd.DataFrame({name: RNG.choice(values, N), "amount": AMOUNTS})
    plan = draft(frame)
    assert (plan.columns[name].kind, plan.columns[name].levels) == ("ordinal", levels)
    assert "The order that was taken is in levels" in plan.notes[name]
    assert levels[0] in plan.to_toml()
    assert set(release_of(frame, k=5, effort="fast").data[name]) <= set(levels)


def test_an_answer_that_is_none_is_kept_apart_from_the_order():
    frame = pd.DataFrame(
        {"health": RNG.choice(["poor", "fair", "good", "don't know"], N), "amount": AMOUNTS}
    )
    plan = draft(frame)
    assert plan.columns["health"].levels == ("poor", "fair", "good")
    assert plan.missing.codes == {"health": ("don't know",)}
    assert "don't know" in set(release_of(frame, k=5, effort="fast").data["health"])


def test_the_initial_of_unknown_is_kept_apart_from_the_order():
    frame = pd.DataFrame({"husEd": RNG.choice(["N", "P", "S", "U"], N), "amount": AMOUNTS})
    plan = draft(frame)
    assert plan.columns["husEd"].levels == ("N", "P", "S")
    assert plan.missing.codes == {"husEd": ("U",)}


def test_columns_of_one_range_that_are_mostly_zero_are_counts_and_one_alone_is_codes():
    """Of three columns one could be codes by accident; of a single one nobody can tell."""
    thin = [0] * 90 + [1] * 8 + [2] * 2
    frame = pd.DataFrame({f"ci_{i}": RNG.permutation(thin) for i in range(3)})
    found = guess(frame)
    assert {looks.kind for looks in found.values()} == {"ordinal"}
    assert guess(frame[["ci_0"]])["ci_0"].kind == "nominal"
    frame["ci_status"], frame["num_ci"] = (
        frame["ci_0"],
        frame["ci_1"],
    )  # sorts of something, and counts
    found = guess(frame, names=["ci_status", "num_ci", "ci_0", "ci_1", "ci_2"])
    assert (found["ci_status"].kind, found["num_ci"].kind) == ("nominal", "integer")
    longer = [0] * 90 + [1] * 5 + [2] * 2 + [3, 4, 5]
    frame = pd.DataFrame({f"ci_dept_{i}": RNG.permutation(longer) for i in (1033, 1038, 2548)})
    assert {looks.kind for looks in guess(frame).values()} == {"integer"}  # of one department each


@pytest.mark.parametrize(
    ("counts", "codes"),
    [
        ({0: 60, 1: 80, 2: 150, 3: 90, 4: 40, 5: 10, 98: 7, 99: 4}, (98.0, 99.0)),
        ({0: 60, 1: 80, 2: 150, 3: 90, 4: 40, 99: 1}, ()),  # once, it may be a slip
        ({0: 60, 10: 80, 20: 150, 30: 90, 40: 40, 99: 10}, ()),  # with gaps, 99 may be one more
        ({1: 30, 2: 30, 99: 30}, ()),
    ],
)
def test_codes_far_above_a_few_whole_numbers_stand_for_missing_ones(counts, codes):
    values = [value for value, count in counts.items() for _ in range(count)]
    assert missing_codes(of_values(np.array(values, dtype=float))) == codes


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", RNG.integers(0, 11, N), "ordinal"),  # 0 to 10, whatever the frequencies
        ("x", RNG.binomial(4, 0.5, N) + 1, "ordinal"),  # one top
        ("satisfaction", RNG.choice([1, 2, 3, 4], N, p=[0.4, 0.1, 0.4, 0.1]), "ordinal"),
        ("grade", RNG.integers(9, 13, N), "ordinal"),
        ("x", RNG.choice([1, 2, 3, 4, 5], N, p=[0.1, 0.3, 0.1, 0.4, 0.1]), "nominal"),
        ("race", RNG.binomial(4, 0.5, N) + 1, "nominal"),
        ("x", RNG.choice([1, 2, 4, 5, 7], N), "nominal"),  # with gaps
        ("children", RNG.poisson(1, N), "integer"),
        ("x", RNG.choice([0.59, 0.89, 1.19], N), "ordinal"),
        ("x", RNG.choice([-1, 0, 1], N), "nominal"),  # -1 may mean no answer
        ("x", RNG.choice([6, 12, 24, 48], N), "integer"),  # amounts that were chosen
        ("x", RNG.choice([10, 20, 30, 40], N), "nominal"),
        ("numgt64", RNG.choice([0, 1, 2, 3], N), "integer"),
        ("latitude", RNG.choice([20, 30, 40, 50], N), "integer"),
        ("LatCat", RNG.choice([1, 2, 3, 4], N), "nominal"),
        ("tst", RNG.choice([*range(400, 1300, 100), *range(430, 1300, 100)], N), "ordinal"),
    ],
)  # fmt: skip
def test_whole_numbers_without_a_gap_are_a_scale_unless_they_look_like_codes(name, values, kind):
    assert guess(pd.DataFrame({name: values, "amount": AMOUNTS}))[name].kind == kind


def test_several_columns_of_one_range_are_answers_on_one_scale():
    jagged = [0.2, 0.1, 0.2, 0.1, 0.3, 0.1]
    answers = {name: RNG.choice(range(1, 7), N, p=jagged) for name in ("q1", "q2", "q3")}
    assert {one.kind for one in guess(pd.DataFrame(answers)).values()} == {"ordinal"}
    assert guess(pd.DataFrame({"q1": answers["q1"]}))["q1"].kind == "nominal"


def test_numbers_with_words_among_them_keep_both_and_codes_stay_codes():
    frame = pd.DataFrame(
        {
            "amount": [*map(str, AMOUNTS[:-90]), *["N"] * 90],
            "EDU": [*map(str, RNG.integers(1, 13, N - 50)), *["N"] * 50],
            "INDP": [*map(str, RNG.choice(range(170, 9900, 300), N - 50)), *["N"] * 50],
        }
    )
    plan = draft(frame)
    kinds = {name: column.kind for name, column in plan.columns.items()}
    assert kinds == {"amount": "number", "EDU": "ordinal", "INDP": "nominal"}
    assert plan.columns["EDU"].levels == tuple(map(str, range(1, 13)))
    assert plan.missing.codes == {"amount": ("N",), "EDU": ("N",)}
    released = release_of(frame, k=5, effort="fast").data
    assert all((released[name] == "N").any() for name in frame)


def panel(names, column="name"):
    """Ten years of each name, of which each has a level of its own."""
    rng = np.random.default_rng(3)
    years = np.tile(np.arange(2000, 2010), len(names))
    levels = np.repeat(rng.lognormal(12, 1, len(names)), 10)
    return pd.DataFrame(
        {
            column: np.repeat(names, 10),
            "year": years,
            "revenue": (levels * rng.lognormal(0, 0.1, len(years))).round(),
            "patients": (levels / 100 * rng.lognormal(0, 0.1, len(years))).round(),
        }
    )


@pytest.mark.parametrize("column", ["name", "doctor", "firm", "state"])
def test_ten_names_that_are_seen_again_are_the_unit(column):
    frame = panel([f"Dr {name}" for name in "abcdefghij"], column)
    release = release_of(frame, k=5)
    plan = release.plan
    assert (plan.unit, plan.drop) == (column, (column,))
    assert release.evidence.verdict == "green"
    classes = release.data.assign(who=frame[column]).groupby(list(release.data))["who"].nunique()
    assert classes.min() >= 5


def test_categories_that_are_seen_again_without_a_name_for_units_stay():
    few = guess(panel(list("abcdefghij"), "x"))["x"]
    assert (few.role, few.kind) == ("protect", "nominal")
    assert "name it as unit" in few.reason
    assert guess(panel([f"a{i}" for i in range(30)], "x"))["x"].role == "unit"
    shuffled = panel([f"a{i}" for i in range(30)], "x").assign(year=RNG.integers(2000, 2010, 300))
    assert guess(shuffled)["x"].role == "protect"  # some twice in a year: no series


@pytest.mark.parametrize("table", JUDGED["units"])
def test_units_that_have_names_in_real_tables(table):
    unit, *others = JUDGED["units"][table].split()
    plan = draft(real_table(table))
    assert plan.unit == unit
    assert {unit, *others} <= set(plan.drop)


def test_sizes_of_families_are_counts():
    family = guess(real_table("AER/HealthInsurance"))["family"]
    assert (family.role, family.kind) == ("protect", "integer")


def test_students_with_another_teacher_each_year_are_the_unit():
    """Each pair of student and teacher occurs once, but the numbers of students do not start again."""
    students, years = np.meshgrid(np.arange(1, 401), np.arange(4), indexing="ij")
    teachers = students.ravel() % 20 + 20 * years.ravel() + 1
    frame = pd.DataFrame({"id": students.ravel(), "teacher": teachers, "grade": years.ravel()})
    frame["score"] = RNG.normal(500, 30, len(frame)).round()
    assert guess(frame)["id"].role == "unit"


def test_numbers_of_persons_within_their_family_are_no_unit():
    sizes = RNG.integers(1, 7, 900)
    frame = pd.DataFrame(
        {
            "intnum": np.repeat(np.arange(4, 904), sizes),
            "persnum": np.concatenate([np.arange(1, size + 1) * 3 for size in sizes]),
        }
    )
    frame.loc[::90, "persnum"] = np.arange(20, 20 + len(frame.loc[::90]))  # who moved in
    frame["earnings"] = RNG.lognormal(9, 1, len(frame)).round(2)
    found = guess(frame)
    assert {found["intnum"].role, found["persnum"].role} == {"drop"}


def test_subjects_that_are_taught_are_no_persons():
    taught = RNG.choice([f"{a} {b}" for a in ("Old", "New", "Art") for b in "LMNOPQR"], N)
    codes = RNG.choice([f"S{i}" for i in range(21)], N)
    both = [guess(pd.DataFrame({"subject": s, "amount": AMOUNTS})) for s in (taught, codes)]
    assert [one["subject"].role for one in both] == ["protect", "unit"]
    many = RNG.choice([f"{a}{b} {c}" for a in "ABCDE" for b in "LMNOP" for c in "QRS"], N)
    assert guess(pd.DataFrame({"subject": many, "amount": AMOUNTS}))["subject"].role == "protect"


def test_ids_of_species_with_many_records_each_are_codes():
    ids = RNG.choice([f"{a}{b}" for a in "ABCDE" for b in "NOPQR"], 3000)
    found = guess(pd.DataFrame({"species_id": ids, "weight": RNG.lognormal(3, 1, 3000).round(1)}))
    assert (found["species_id"].role, found["species_id"].kind) == ("protect", "nominal")


def test_an_id_in_front_of_its_noun_and_the_weight_of_the_record():
    w = RNG.lognormal(0, 1, N)
    frame = pd.DataFrame(
        {
            "IDunit": np.sort(RNG.integers(1, 60, N)),
            "weightsEmployers": w * 2,
            "weightsEmployees": w[::-1],
            "weights": w * w[::-1],
            "amount": AMOUNTS,
        }
    )
    plan = draft(frame)
    assert (plan.unit, plan.weight.column) == ("IDunit", "weights")
    assert set(plan.drop) == {"IDunit", "weightsEmployers", "weightsEmployees"}


COMPUTED = {
    "wage": AMOUNTS,
    "logwage": np.log(AMOUNTS).round(4),
    "wage_cents": (100 * AMOUNTS).round(),
    "age": RNG.integers(16, 90, N),
    "height": RNG.normal(1.7, 0.1, N).round(2),
    "weight": RNG.normal(75, 12, N).round(1),
    "day": pd.to_datetime("2019-03-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D"),
    "iso3": RNG.choice(["AUT", "DEU", "FRA", "ESP"], N),
}
COMPUTED["agegr"] = pd.cut(COMPUTED["age"], [0, 30, 50, 65, 99]).astype(str)
COMPUTED["bmi"] = (COMPUTED["weight"] / COMPUTED["height"] ** 2).round(1)
COMPUTED["year"] = COMPUTED["day"].year
COMPUTED["month"] = COMPUTED["day"].month
COMPUTED["dow"] = COMPUTED["day"].day_name()
COMPUTED["iso2"] = [text[:2] for text in COMPUTED["iso3"]]


@pytest.mark.parametrize("library", [pd.DataFrame, lambda columns: pa.table(pd.DataFrame(columns))])
def test_columns_computed_from_others_are_dropped_with_the_reason(library):
    plan = draft(library(COMPUTED))
    followers = {
        "logwage": "wage",
        "wage_cents": "wage",
        "agegr": "age",
        "bmi": "weight",
        "year": "day",
        "month": "day",
        "dow": "day",
        "iso2": "iso3",
    }
    assert set(plan.drop) == set(followers)
    for name, base in followers.items():
        assert f"it follows from {base} (" in plan.notes[name]


def test_what_somebody_decided_about_a_column_is_not_undone_by_one_that_follows_from_it():
    frame = pd.DataFrame({name: COMPUTED[name] for name in ("wage", "logwage", "age")})
    plan = release_of(frame, k=5, effort="fast", drop=["wage"]).plan
    assert "logwage" in plan.blocks[0].columns
    plan = release_of(frame, k=5, effort="fast", kinds={"logwage": "number"}).plan
    assert {"wage", "logwage"} <= set(plan.blocks[0].columns)


def test_columns_that_only_go_together_stay():
    trend = np.arange(N) + RNG.normal(0, 1, N).round(2)
    frame = pd.DataFrame(
        {
            "a": trend,
            "b": np.sqrt(trend + 5) + RNG.normal(0, 0.05, N),
            "rare": (np.arange(N) == 7).astype(int),
            "rate": RNG.choice([0.5, 1.0, 1.5], N),
            "here": np.where(np.arange(N) % 3, AMOUNTS, np.nan),
            "there": np.where(np.arange(N) % 5, AMOUNTS, np.nan),  # where it is not here, too
        }
    )
    assert draft(frame).drop == ()


def test_numbers_that_are_dates():
    days = pd.to_datetime("1996-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D")
    american = days.strftime("%m%d%y").astype(int)
    european = days.strftime("%d%m%Y").astype(int)
    iso = days.strftime("%Y%m%d").astype(int)
    frame = pd.DataFrame({"a": american, "e": european, "i": iso, "amount": AMOUNTS})
    found = guess(frame)
    assert {found[name].looks_like for name in "aei"} == {"date"}
    assert (found["i"].kind, found["a"].role, found["e"].role) == ("ordinal", "drop", "drop")
    assert "Write them as 2024-03-31" in found["a"].reason
    numbers = guess(pd.DataFrame({"x": RNG.integers(10_000, 130_000, N)}))["x"]
    assert numbers.looks_like == "quantity"


def test_a_wage_survey_of_firms_is_drafted_as_its_columns_mean():
    """A made-up table of the shape of the Structure of Earnings Survey: 500 firms, three weights, letters."""
    rng, n = np.random.default_rng(4), 15_691
    firms = rng.choice(np.arange(100, 1000), 500, replace=False)
    frame = pd.DataFrame(
        {
            "location": rng.choice(["AT1", "AT2", "AT3"], n),
            "size": rng.choice(["E10_49", "E50_249", "E250_499", "E500_999", "E1000"], n),
            "payAgreement": rng.choice(["A", "B", "C"], n),
            "IDunit": firms[rng.integers(0, 500, n)],
            "age": rng.choice(["(14,19]", "(19,29]", "(29,39]", "(39,49]"], n),
            "education": rng.choice(["ISCED 0 and 1", "ISCED 2", "ISCED 3 and 4", "ISCED 5A"], n),
            "occupation": rng.choice([str(code) for code in range(11, 94)], n),
            "lengthService": rng.integers(0, 40, n),
            "overtimeHours": np.where(rng.random(n) < 0.8, 0, rng.gamma(2, 5, n).round(1)),
            "earnings": rng.lognormal(10, 0.5, n).round(2),
            "GrossingUpFactor.y": rng.choice(rng.lognormal(1, 0.5, 60), n),
            "GrossingUpFactor.z": rng.choice(rng.lognormal(1, 0.5, 60), n),
            "weights": rng.lognormal(3, 0.6, n).round(4),
        }
    )
    plan = draft(frame)
    assert plan.unit == "IDunit"
    assert plan.weight.column == "weights"
    assert set(plan.drop) == {"IDunit", "GrossingUpFactor.y", "GrossingUpFactor.z"}
    kinds = {name: column.kind for name, column in plan.columns.items()}
    assert {kinds[name] for name in ("size", "age", "education")} == {"ordinal"}
    assert {kinds[name] for name in ("location", "payAgreement", "occupation")} == {"nominal"}
    assert kinds["overtimeHours"] == "spiked"


def test_a_social_survey_is_drafted_as_its_columns_mean():
    """A made-up table of the shape of the Social Diagnosis 2011: satisfaction in words, −8 for no income."""
    rng, n = np.random.default_rng(5), 900
    life = ["TERRIBLE", "UNHAPPY", "MOSTLY DISSATISFIED", "MIXED", "MOSTLY SATISFIED", "PLEASED"]
    marital = ["SINGLE", "MARRIED", "WIDOWED", "DIVORCED"]
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["FEMALE", "MALE"], n),
            "age": rng.integers(16, 97, n),
            "marital": rng.choice(marital, n),
            "income": np.where(rng.random(n) < 0.1, -8, rng.integers(2, 90, n) * 50),
            "ls": rng.choice(life, n),
            "smoke": rng.choice(["NO", "YES"], n),
        }
    )
    plan = draft(frame)
    assert plan.columns["ls"].levels == tuple(life)
    assert plan.columns["marital"].kind == "nominal"
    assert plan.missing.codes["income"] == (-8.0,)
    assert not plan.drop


def test_a_column_called_after_a_classification_follows_from_it():
    """Codes of industries and their sectors: released apart, a row could have both of no record."""
    rng = np.random.default_rng(6)
    codes = rng.choice(np.arange(170, 9900, 50), 3000)
    frame = pd.DataFrame(
        {
            "INDP": codes.astype(str),
            "INDP_CAT": (codes // 1000).astype(str),
            "amount": rng.lognormal(3, 1, 3000).round(2),
        }
    )
    plan = draft(frame)
    assert "INDP_CAT" in plan.drop
    assert "it follows from INDP" in plan.notes["INDP_CAT"]
    assert "INDP" in plan.blocks[0].columns
