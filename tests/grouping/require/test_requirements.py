"""Each requirement: its violation against a naive twin, closure under union, the whole table, its words."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_requirements as naive
from microagg import InputError
from microagg.evidence.sentences import required_words
from microagg.grouping.require.amount_rules import (
    LargestShare,
    Population,
    PPercent,
    RiskLimit,
    individual_risk,
)
from microagg.grouping.require.requirement import check_feasible, demands_of, violations_of
from microagg.grouping.require.value_rules import (
    Closeness,
    Distinct,
    Entropy,
    HiddenValues,
    Units,
)
from microagg.plan.block import Require

AMOUNTS = st.one_of(st.integers(0, 20).map(float), st.floats(0.001, 1e6))


@st.composite
def columns(draw):
    """Codes, amounts, weights and contributors of up to 14 records."""
    n = draw(st.integers(2, 14))

    def several(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    codes, units = several(st.integers(-2, 5)), several(st.integers(0, 6))
    amounts, weights = several(AMOUNTS).astype(float), several(st.floats(0.5, 300)).astype(float)
    return codes, units, amounts, weights


@st.composite
def requirements(draw):
    """Any requirement on some columns."""
    codes, units, amounts, weights = draw(columns())
    contributors = draw(st.sampled_from([None, units]))
    return draw(
        st.sampled_from(
            [
                Units(units, draw(st.integers(1, 4))),
                Distinct(codes, draw(st.integers(1, 4))),
                Entropy(codes, draw(st.floats(1, 4))),
                Closeness(codes, draw(st.floats(0, 0.6)), ordered=draw(st.booleans())),
                HiddenValues(codes + 2, 5),
                HiddenValues(ranked(amounts), draw(st.floats(0.5, 80)), amounts),
                PPercent(amounts, draw(st.floats(0.5, 80)), contributors),
                LargestShare(
                    amounts, draw(st.integers(1, 4)), draw(st.floats(20, 99)), contributors
                ),
                Population(weights, draw(st.floats(1, 900))),
                RiskLimit(weights, draw(st.floats(0.005, 0.9))),
            ]
        )
    )


def ranked(values):
    return np.unique(values, return_inverse=True)[1]


def subset(draw, n):
    return sorted(draw(st.sets(st.integers(0, n - 1), min_size=1)))


def check_unions(requirement, labels):
    """The union of any two groups that satisfy the requirement does; how many there were."""
    groups = [np.flatnonzero(labels == g) for g in np.unique(labels)]
    good = [group for group in groups if requirement.violation(group) == 0]
    pairs = list(itertools.combinations(good, 2))
    for one, other in pairs:
        # Sums of a union are rounded otherwise than those of its parts; 1e-9 is far above that.
        assert requirement.violation(np.concatenate([one, other])) < 1e-9
    return len(pairs)


@pytest.mark.parametrize(
    "make",
    [
        lambda codes, amounts: Distinct(codes, 3),
        lambda codes, amounts: Entropy(codes, 2.5),
        lambda codes, amounts: Closeness(codes, 0.3),
        lambda codes, amounts: Closeness(codes, 0.5, ordered=False),
        lambda codes, amounts: HiddenValues(codes, 5),
        lambda codes, amounts: HiddenValues(ranked(amounts), 5, amounts),
        lambda codes, amounts: PPercent(amounts, 25, codes),
        lambda codes, amounts: LargestShare(amounts, 2, 80, codes),
        lambda codes, amounts: Population(amounts, 5.0),
        lambda codes, amounts: RiskLimit(1 + amounts, 0.2),
    ],
)
def test_many_unions(make):
    rng, pairs = np.random.default_rng(0), 0
    for _ in range(40):
        codes, amounts = rng.integers(0, 5, 30), rng.lognormal(size=30)
        pairs += check_unions(make(codes, amounts), rng.integers(0, 6, 30))
    assert pairs > 40  # else little was seen


@given(columns(), st.data())
def test_counts_equal_their_twins(table, data):
    codes, units, _, _ = table
    rows, least = subset(data.draw, len(codes)), data.draw(st.integers(1, 5))
    assert Distinct(codes, least).violation(rows) == naive.distinct(codes, least, rows)
    assert Units(units, least).violation(rows) == naive.distinct(units, least, rows)
    found = Entropy(codes, least).violation(rows)
    assert found == pytest.approx(naive.entropy(codes, least, rows), abs=1e-11)


WHOLE = st.integers(-30, 30).map(float)
HIDDEN = st.lists(st.one_of(st.none(), st.just(0.0), WHOLE, WHOLE), min_size=13, max_size=40)


@given(HIDDEN, st.sampled_from([1, 5, 10, 50]), st.data())
def test_hidden_numbers_equal_their_twin(values, percent, data):
    rows = subset(data.draw, len(values))
    numbers = np.array([np.nan if x is None else x for x in values])
    many = len(set(values)) >= 13
    codes = ranked(np.where(np.isnan(numbers), np.inf, numbers))
    found = HiddenValues(codes, percent, numbers if many else None).violation(rows)
    assert found == pytest.approx(naive.hidden(values, percent, True, rows), abs=1e-11)


@given(st.lists(st.sampled_from([*"abcdn"]), min_size=2, max_size=20), st.data())
def test_hidden_categories_equal_their_twin(values, data):
    rows = subset(data.draw, len(values))
    found = HiddenValues(ranked(np.array(values)), 5).violation(rows)
    assert found == naive.hidden(values, 5, False, rows)


def test_hidden_values_far_beyond_the_others_and_infinite_ones():
    values = np.array([1e308, 1e308, -np.inf, np.inf, np.inf, *np.arange(1.0, 31.0)])
    rule = HiddenValues(ranked(values), 5, values)
    assert rule.violation([0, 1]) == rule.violation([3, 4]) == 1
    assert rule.violation([0, 9]) == rule.violation([0, 3]) == rule.violation([2, 3]) == 0


def test_values_equally_frequent_are_just_enough():
    for least in range(1, 30):
        assert Entropy(np.arange(least), float(least)).violation(np.arange(least)) == 0
        assert Entropy(np.arange(least), least + 1e-6).violation(np.arange(least)) > 0


@given(columns(), st.booleans(), st.data())
def test_closeness_equals_carrying_earth(table, ordered, data):
    codes = table[0]
    rows, most = subset(data.draw, len(codes)), data.draw(st.sampled_from([0.0, 0.1, 0.3]))
    found = Closeness(codes, most, ordered).violation(rows)
    assert found == pytest.approx(naive.closeness(codes, most, ordered, rows), abs=1e-11)


def test_closeness_of_many_values():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 400, 700)
    for size in (1, 2, 7, 40, 500):
        rows = rng.choice(700, size, replace=False)
        found = Closeness(codes, 0.0).violation(rows)
        assert found == pytest.approx(naive.closeness(codes, 0.0, True, rows), abs=1e-11)


@given(columns(), st.booleans(), st.data())
def test_dominance_equals_its_twin(table, named, data):
    _, units, amounts, _ = table
    contributors = units if named else None
    rows = subset(data.draw, len(units))
    p, count = data.draw(st.sampled_from([1.0, 10.0, 50.0])), data.draw(st.integers(1, 4))
    found = PPercent(amounts, p, contributors).violation(rows)
    wanted = naive.p_percent_margin(amounts, p, contributors, rows)
    assert found == pytest.approx(max(wanted, 0.0), abs=1e-9 * max(1.0, 100 / p))
    found = LargestShare(amounts, count, 75.0, contributors).violation(rows)
    wanted = naive.largest_share_margin(amounts, count, 75.0, contributors, rows)
    assert found == pytest.approx(max(wanted, 0.0), abs=1e-9)


def test_dominance_as_the_handbook_has_it():
    firms = np.array([52_000.0, 50_000.0, 5_000.0, 3_000.0])
    assert PPercent(firms, 10).feasible()
    assert PPercent(firms, 15.3).feasible()
    assert not PPercent(firms, 15.5).feasible()
    assert not LargestShare(firms, 2, 90.9).feasible()
    close = np.array([50_000.0, 49_000.0, 1_000.0])
    assert LargestShare(close, 1, 90).feasible()
    assert not PPercent(close, 10).feasible()  # the second tells the first within 2 %
    # Records of one firm are one contribution.
    parts = np.array([26_000.0, 26_000.0, 50_000.0, 5_000.0, 3_000.0])
    assert not PPercent(parts, 15.5, np.array([0, 0, 1, 2, 3])).feasible()


def test_huge_amounts_do_not_overflow():
    assert PPercent(np.full(5, 1e308), 10).feasible()
    assert LargestShare(np.full(5, 1e308), 2, 50).feasible()


@given(st.integers(1, 12), st.floats(1.0, 1e4))
def test_individual_risk_is_exact_or_on_the_safe_side(size, times):
    found = float(individual_risk(np.array([size]), np.array([size * times]))[0])
    exact = naive.exact_risk(size, size * times)
    if size < 3:
        assert found == pytest.approx(exact, rel=1e-6)
    else:
        assert exact * (1 - 1e-9) <= found <= exact * 1.1 + 1e-12


@given(st.integers(1, 6), st.integers(1, 6), st.floats(1, 1e3), st.floats(1, 1e3))
def test_individual_risk_rises_with_p_and_falls_with_f(small, more, times, extra):
    def risk(size, p):
        return float(individual_risk(np.array([size]), np.array([size / p]))[0])

    p = 1 / times
    assert risk(small + more, p) <= risk(small, p) * (1 + 1e-9)
    assert risk(small, p / extra) <= risk(small, p) * (1 + 1e-9)


@given(columns(), st.data())
def test_population_is_a_sum(table, data):
    weights = table[3]
    rows = subset(data.draw, len(weights))
    found = Population(weights, 100.0).violation(rows)
    assert found == pytest.approx(max(0.0, 1 - weights[rows].sum() / 100), abs=1e-12)


@given(requirements())
def test_what_the_whole_table_breaks_is_refused_with_its_reason(requirement):
    everybody = np.arange(len(requirement.demand().codes))
    assert requirement.feasible() == (requirement.violation(everybody) == 0)
    if requirement.feasible():
        check_feasible([requirement])
    else:
        with pytest.raises(InputError) as refusal:
            check_feasible([requirement])
        assert str(refusal.value).endswith(".")


def test_words_name_the_column_and_keep_thresholds_of_dominance_secret():
    amounts, codes = np.ones(9), np.arange(9)
    cases = [
        Units(codes, 3, "firm"),
        Distinct(codes, 3, "firm"),
        Entropy(codes, 2.5, "firm"),
        Closeness(codes, 0.25, column="firm"),
        PPercent(amounts, 17.0, column="firm"),
        LargestShare(amounts, 2, 83.0, column="firm"),
        Population(amounts, 7.0, "firm"),
        RiskLimit(amounts, 0.2, "firm"),
    ]
    for case in cases:
        assert "firm" in case.describe()
        assert "each group" in case.describe()
    secret = required_words(Require(p_percent={"firm": 17.0}, n_k={"firm": (2, 83.0)}))
    for words in [*secret, *map(repr, cases[4:6])]:
        assert not any(digit in words for digit in "123456789")
        assert "firm" in words
    assert "17" in cases[4].describe()


def test_demands_on_several_columns_add_up():
    codes, labels = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    several = [Distinct(codes, 2), Closeness(codes, 0.1, ordered=False)]
    assert violations_of(labels, 3, several).sum() == pytest.approx(2 * (1 / 3 + 1 / 2 + 0.4))
    with pytest.raises(InputError, match="one entry for each record; the table has 4 records, the"):
        demands_of([*several, Distinct(np.arange(3), 2)])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PPercent(np.array([1.0, -1.0]), 5, column="turnover"), "turnover .* in row 2"),
        (lambda: LargestShare(np.array([np.nan]), 1, 50), "in row 1"),
        (lambda: Population(np.array([-2.0]), 1, "w"), "w has another one in row 1 .the first"),
    ],
)
def test_amounts_that_make_no_sense_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_negative_amount_is_refused_without_showing_it():
    with pytest.raises(InputError) as refusal:
        PPercent(np.array([1.0, -98765.0]), 5, column="turnover")
    assert "98765" not in str(refusal.value)
