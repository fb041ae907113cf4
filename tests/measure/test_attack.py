"""Attacks with controls: by naive twins, on files whose risk is known, and on hostile tables."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import microagg
from microagg.errors import InputError
from microagg.measure import attack as attack_module
from microagg.measure.attack import attack_released
from microagg.measure.attack_rates import (
    AttackFigure,
    Rate,
    mean_over_columns,
    mean_over_trials,
    pooled_weight,
)
from microagg.measure.attack_tables import attack_tables
from microagg.measure.inference import infer, is_right, link
from microagg.measure.singling_out import _control_rate, _matches, _Predicates


def never(_):
    return False


@pytest.fixture
def no_model(monkeypatch):
    """Leave the trained model out, which most of these tests do not look at."""
    monkeypatch.setattr(attack_module, "find_spec", lambda name: None)


def people(n, seed, missing=True):
    """Persons with correlated numbers, categories and some missing values."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "wage": np.exp(2.5 + 0.4 * skill + 0.2 * rng.normal(size=n)).round(2),
            "hours": (38 + 5 * rng.normal(size=n)).round(1),
            "job": np.array(["clerk", "nurse", "smith", "cook"])[
                np.digitize(skill + 0.5 * rng.normal(size=n), [-0.7, 0, 0.7])
            ],
            "member": rng.random(n) < 0.3,
        }
    )
    if missing:
        frame.loc[rng.random(n) < 0.1, "hours"] = np.nan
        frame.loc[rng.random(n) < 0.05, "job"] = None
    return frame


# --- by naive twins ----------------------------------------------------------------------------------


def gower(a, b, columns, spans):
    total = 0.0
    for name in columns:
        x, y = a[name], b[name]
        if pd.isna(x) or pd.isna(y):
            total += float(pd.isna(x) != pd.isna(y))
        elif name in spans:
            total += abs(x - y) / spans[name]
        else:
            total += float(x != y)
    return total


def spans_of(*frames):
    both = pd.concat(frames)
    return {name: both[name].max() - both[name].min() for name in ("age", "wage", "hours")}


def rows_of(table, tables):
    """Return the records of a table as dictionaries, in the order that the attack gave them."""
    return [dict(zip(tables.names, values, strict=True)) for values in table.values]


def test_inference_takes_one_of_the_nearest_records_by_gower():
    original, released = people(25, 1), people(30, 2)
    tables = attack_tables(original, released, None, seed=3)
    spans = spans_of(original, released)
    truth = rows_of(tables.original, tables)
    among = rows_of(tables.released, tables)
    columns = list(range(5))
    figures = infer(tables, columns, columns, 25, never)
    for j, secret in enumerate(tables.names):
        others = [name for name in tables.names if name != secret]
        least, most = 0, 0
        for person in truth:
            distances = [gower(person, row, others, spans) for row in among]
            tied = np.flatnonzero(np.array(distances) < min(distances) + 1e-9)
            guessed = np.array([among[row][secret] for row in tied])
            right = is_right(guessed, np.full(len(tied), person[secret]), tables.kinds[j])
            least, most = least + all(right), most + any(right)
        assert least <= round(figures[j].attack.share * 25) <= most


@pytest.mark.parametrize("known", [[0], [1, 3], [0, 2, 4]])
def test_people_are_linked_by_records_nearest_in_both_parts(known):
    original, released = people(40, 4), people(60, 5)
    tables = attack_tables(original, released, None, seed=0)
    spans = spans_of(original, released)
    first = [tables.names[j] for j in known]
    second = [name for name in tables.names if name not in first]
    linked = 0
    for person in rows_of(tables.original, tables):
        nearest = []
        for part in (first, second):
            distances = [
                gower(person, row, part, spans) for row in rows_of(tables.released, tables)
            ]
            nearest.append({i for i, x in enumerate(distances) if x < min(distances) + 1e-9})
        linked += bool(nearest[0] & nearest[1])
    figure = link(tables, known, 40, 0, never)
    assert figure.attack.share == pytest.approx(linked / 40)


def test_predicates_hold_for_the_records_that_satisfy_them():
    frame = people(50, 6)
    tables = attack_tables(frame, frame, None, seed=0)
    rows = tables.original.coordinates
    rng = np.random.default_rng(0)
    columns = np.array([[0, 3], [2, 3], [2, -1], [1, 0]])
    operators = np.array([[1, 0], [2, 0], [0, 0], [2, 1]])
    values = rows[rng.integers(50, size=4)[:, None], np.maximum(columns, 0)]
    values[2, 0] = -10.0  # hours are missing
    found, count = _matches(rows, _Predicates(columns, operators, values), 50)
    for q in range(4):
        holds = []
        for r in range(50):
            checks = []
            for j, operator, value in zip(columns[q], operators[q], values[q], strict=True):
                x = rows[r, j]
                if j >= 0:
                    checks.append((x == value, -10 < x <= value, x >= value)[operator])
            holds.append(all(checks))
        assert found[q, : count[q]].tolist() == np.flatnonzero(holds).tolist()


def test_controls_of_another_number_are_scaled_to_the_number_of_originals():
    """Predicates that hold for a share w of the population, w as a gamma distribution."""
    rng = np.random.default_rng(1)
    n, weights = 1_000, rng.gamma(1.0, 1 / 1_000, 200_000)
    truth = float(np.mean(n * weights * (1 - weights) ** (n - 1)))
    for controls in (100, 500, 1_000, 5_000):
        counts = rng.binomial(controls, np.minimum(weights, 1))
        assert _control_rate(counts, controls, n) == pytest.approx(truth, abs=0.01)
    assert _control_rate(np.zeros(5, np.int64), 10, 20) == 0


# --- rates -------------------------------------------------------------------------------------------


def test_rates_have_wilson_intervals_and_residuals_by_the_formula():
    figure = AttackFigure(Rate.of(0.6, 100), Rate.of(0.1, 100), Rate.of(0.2, 100))
    assert (figure.attack.low, figure.attack.high) == pytest.approx((0.5020, 0.6906), abs=1e-4)
    assert figure.residual.share == pytest.approx(0.5)
    # By hand: limits of the attack over .8; those of the control times .4/.64.
    down = np.hypot((0.6 - 0.5020) / 0.8, (0.2888 - 0.2) * 0.4 / 0.64)
    assert figure.residual.low == pytest.approx(0.5 - down, abs=1e-3)
    assert not figure.is_weak
    assert AttackFigure(Rate.of(0.6, 100), Rate.of(0.55, 100)).is_weak
    assert AttackFigure(Rate.of(1.0, 9), Rate.of(1.0, 9), Rate.of(1.0, 9)).residual is None
    assert AttackFigure(Rate.of(0.6, 100), Rate.of(0.5, 100)).residual is None


def test_columns_of_the_same_people_are_no_further_people():
    figures = [AttackFigure(Rate.of(share, 50), Rate.of(0.1, 50)) for share in (0.2, 0.4)]
    columns = mean_over_columns(figures).attack
    assert columns.share == pytest.approx(0.3)
    assert (columns.low, columns.high) == pytest.approx(Rate.of(0.3, 50)[1:3])


def test_people_who_were_attacked_in_another_trial_are_no_further_people():
    figures = [AttackFigure(Rate.of(s, 50), Rate.of(0.1, 50), Rate.of(s, 50)) for s in (0.2, 0.4)]
    everybody = mean_over_trials(figures, 100, (100, 50))
    assert (everybody.attack.low, everybody.attack.high) == pytest.approx(Rate.of(0.3, 50)[1:3])
    # Of 100 people 50 are tried at random, twice: 75 at least once, expectedly.
    assert everybody.control.weight == pytest.approx(75)
    many = mean_over_trials(figures, 1_000_000, (50, 50)).attack
    assert (many.low, many.high) == pytest.approx(Rate.of(0.3, 100)[1:3], abs=1e-4)


def test_columns_that_say_different_things_about_people_narrow_the_interval():
    """If hits of two columns are independent, their mean varies as much as one of twice as many people."""
    rng = np.random.default_rng(0)
    hits = rng.random((4_000, 2)) < 0.3
    assert pooled_weight(hits) == pytest.approx(8_000, rel=0.1)
    assert pooled_weight(hits[:, [0, 0]]) == pytest.approx(4_000)
    assert pooled_weight(np.ones((5, 3), dtype=bool)) == 15
    rates = [Rate.of(0.3, 4_000, pooled=8_000.0), Rate.of(0.3, 4_000, pooled=8_000.0)]
    mean = mean_over_columns([AttackFigure(rate, rate) for rate in rates])
    assert mean.attack.weight == 8_000


# --- files whose risk is known -----------------------------------------------------------------------


def test_originals_released_as_they_are_have_a_residual_risk_near_1(no_model):
    original, control = people(400, 7), people(400, 8)
    result = attack_released(original, original, control)
    assert len(result.questions) == 4
    for figure in result.questions.values():
        assert figure.residual.share > 0.95
        assert figure.residual.low > 0.9
        assert not figure.is_weak


@pytest.mark.parametrize("controls", [150, 40])
def test_another_sample_has_no_residual_risk_in_95_of_100_seeds(no_model, controls):
    covers = {}
    for seed in range(100):
        original, released, control = (
            people(n, 3 * seed + part) for part, n in enumerate((150, 150, controls))
        )
        result = attack_released(original, released, control, attacks=300, seed=seed)
        for name, figure in result.questions.items():
            low, high = figure.residual.low, figure.residual.high
            covers.setdefault(name, []).append(low <= 0 <= high)
    assert len(covers) == 4
    for name, covered in covers.items():
        assert sum(covered) >= 90, name  # of 95 expected, two standard deviations below


def test_means_give_less_away_the_larger_k_is(no_model):
    original, control = people(600, 1, missing=False), people(600, 2, missing=False)
    risks = []
    for k in (2, 6, 30):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
            released = microagg.protect(original, k=k, columns=list(original.columns)).data
        result = attack_released(original, released, control)
        risks.append(result.questions["inference, nearest records"].residual.share)
    assert risks[0] > risks[1] > risks[2]
    assert risks[2] < 0.15


def test_a_trained_model_learns_what_the_file_teaches():
    """Wage follows from hours alone; nearest records are misled by a column of noise."""
    rng = np.random.default_rng(0)

    def table(n):
        hours = rng.integers(10, 60, n)
        codes = rng.integers(0, 1_000_000, n).astype(str)
        return pd.DataFrame({"hours": hours, "wage": hours * 20, "noise": codes})

    result = attack_released(table(500), table(500), table(500), secret="wage")
    assert list(result.by_model) == ["wage"]
    assert result.by_model["wage"].attack.share > 0.9
    assert result.by_model["wage"].residual.low <= 0.05


def test_row_order_and_library_play_no_part(no_model):
    original, released, control = people(80, 1), people(90, 2), people(70, 3)

    def figures(*frames):
        found = attack_released(*frames).as_dict()
        return {key: value for key, value in found.items() if key != "seconds"}

    expected = figures(original, released, control)
    mixed = [frame.sample(frac=1, random_state=5) for frame in (original, released, control)]
    assert figures(*mixed) == expected
    assert figures(*(pl.from_pandas(frame) for frame in mixed)) == expected
    columns = list(reversed(original.columns))
    assert figures(original, released[columns], control) == expected


def test_known_columns_are_all_that_the_attacker_uses(no_model):
    original, released = people(100, 1), people(100, 2)
    result = attack_released(original, released, known=["age", "wage"])
    assert set(result.inference) == {"hours", "job", "member"}
    other = released.assign(member=False)
    again = attack_released(original, other, known=["age", "wage"], secret="job")
    assert again.inference["job"].attack.share == result.inference["job"].attack.share
    with pytest.raises(InputError, match="'size' is not"):
        attack_released(original, released, known=["size"])


def test_a_stop_keeps_what_was_measured(no_model):
    original, released = people(400, 1), people(400, 2)
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 3

    result = attack_released(original, released, should_stop=stop)
    assert result.stopped
    assert result.linkability.attack.attacks > 0
    assert result.inference == {}
    assert "stopped" in dict(result.lines)


def test_without_scikit_learn_the_model_is_said_to_be_missing(no_model):
    result = attack_released(people(30, 1), people(30, 2))
    assert result.by_model is None
    assert "microagg[sklearn]" in str(result)
    assert not result.as_dict()["trained_model"]


def test_an_attack_below_the_naive_guess_is_called_weak(no_model):
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"x": rng.normal(size=200), "y": (rng.random(200) < 0.1).astype(str)})
        for _ in range(3)
    ]
    result = attack_released(*frames, secret="y")
    assert result.inference["y"].is_weak
    assert "Too weak an attack" in str(result)
    assert "safe" not in str(result)


# --- hostile tables ----------------------------------------------------------------------------------


def test_one_row_has_wide_intervals(no_model):
    one = pd.DataFrame({"a": [1.0], "b": ["x"]})
    result = attack_released(one, one, one)
    assert result.linkability.attack.share == 1
    assert result.linkability.attack.low < 0.3
    assert result.inference == {}
    assert result.constant == ["a", "b"]


def test_columns_of_one_value_and_of_none_disclose_nothing(no_model):
    frame = people(60, 1).assign(same=7, none=None)
    result = attack_released(frame, frame, frame.assign(none=np.nan))
    assert result.constant == ["same", "none"]
    empty = pd.DataFrame({"a": [None] * 5, "b": [np.nan] * 5})
    result = attack_released(empty, empty, empty)
    assert result.constant == ["a", "b"]
    assert result.linkability.residual is None  # everybody is hit, controls too


def test_other_types_on_the_two_sides_are_matched_by_their_values(no_model):
    original = pd.DataFrame(
        {
            "age": [20, 30, 40, 50],
            "code": [1, 2, 3, 4],
            "yes": [True, False, True, False],
            "day": pd.to_datetime(["2024-01-01", "2024-02-01", "2024-03-01", None]),
            "mixed": ["a", "b", "c", "d"],
        }
    )
    released = pa.table(
        {
            "age": ["20", "30", "40", "50"],
            "code": [1.0, 2.0, 3.0, 4.0],
            "yes": ["true", "false", "True", "False"],
            "day": ["2024-01-01", "2024-02-01", "2024-03-01", None],
            "mixed": [1, 2, 3, 4],
        }
    )
    tables = attack_tables(original, released, None, seed=0)
    assert tables.kinds == ["number", "number", "category", "date", "category"]
    same = [0, 1, 2, 3]
    ours = {tuple(row) for row in tables.original.coordinates[:, same].tolist()}
    theirs = {tuple(row) for row in tables.released.coordinates[:, same].tolist()}
    assert ours == theirs


def test_bands_stand_at_their_middle(no_model):
    original = pd.DataFrame({"age": [22, 37, 85]})
    released = pd.DataFrame({"age": ["20–24", "35–39", "80 or more"]})
    tables = attack_tables(original, released, None, seed=0)
    assert sorted(tables.released.values[:, 0]) == [22.5, 37.5, 80.0]


def test_five_thousand_levels(no_model):
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"id": rng.permutation(5_000).astype(str), "x": rng.normal(size=5_000)})
        for _ in range(2)
    ]
    result = attack_released(frames[0], frames[0], frames[1], attacks=200)
    assert result.linkability.residual.low > 0.9


def test_what_cannot_be_attacked_is_refused():
    frame = people(10, 1)
    with pytest.raises(InputError, match="none in common"):
        attack_released(frame, pd.DataFrame({"other": [1]}))
    with pytest.raises(InputError, match="released table has none"):
        attack_released(frame, frame[:0])
    with pytest.raises(InputError, match="At least one attack"):
        attack_released(frame, frame, attacks=0)
    lists = pd.DataFrame({"a": [[1], [2]]})
    with pytest.raises(InputError, match="none of the common columns is one"):
        attack_released(lists, lists)


def test_columns_of_lists_and_infinite_numbers_are_left_out_and_named(no_model):
    frame = people(20, 1).assign(a=[[1]] * 20, b=[np.inf] * 20)
    result = attack_released(frame, frame)
    assert result.skipped == ["a", "b"]
    assert "left out" in dict(result.lines)


def test_no_value_of_a_record_is_in_any_output():
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"salary": rng.integers(10**8, 10**9, 60)}) for _ in range(3)]
    for frame in frames:
        frame["town"] = [f"secret-town-{value}" for value in rng.integers(0, 40, 60)]
    result = attack_released(*frames)
    text = json.dumps(result.as_dict(), allow_nan=False) + str(result) + repr(result)
    assert "secret-town" not in text
    for frame in frames:
        assert not any(str(value) in text for value in frame["salary"])


# --- plans -------------------------------------------------------------------------------------------


def test_a_plan_is_attacked_with_whole_units_as_controls(no_model, monkeypatch):
    frame = people(300, 3, missing=False).assign(home=np.repeat(np.arange(100), 3))
    plan = microagg.Plan.from_toml_text(
        'microagg = 1\nunit = {column = "home"}\ndrop = ["home"]\n'
        '[[block]]\ncolumns = ["age", "wage", "hours", "job", "member"]\nk = 3\n'
    )
    calls = []
    from microagg.engines.memory import control_group

    def watched(original, released, control, **settings):
        calls.append((set(original["home"]), set(control["home"]), len(control)))
        return attack_released(original, released, control, **settings)

    monkeypatch.setattr(control_group, "attack_released", watched)
    result = microagg.attack(frame, plan=plan)
    assert result.trials == len(calls) == 3
    assert len({tuple(sorted(controls)) for _, controls, _ in calls}) == 3
    for inside, controls, size in calls:
        assert not inside & controls
        assert size == 3 * len(controls)
        assert 24 <= size <= 30
    assert "home" not in result.columns
    assert result.linkability.attack.attacks == sum(300 - size for *_, size in calls)


def test_a_plan_excludes_released_tables():
    frame = people(30, 1)
    with pytest.raises(InputError, match="give the plan or the tables"):
        microagg.attack(frame, frame, plan=microagg.Plan())
    with pytest.raises(InputError, match="needs a released table"):
        microagg.attack(frame)
    with pytest.raises(InputError, match="between 0 and 1"):
        microagg.attack(frame, plan=microagg.Plan(), control_share=1.0)
