"""Checks that only matter if something else goes wrong, or by a hair: each test fails without its check."""

from dataclasses import replace
from functools import partial, partialmethod

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import microagg
from microagg.comparing.choices import Choice, next_k_for
from microagg.encode.steps import Steps, usual_steps
from microagg.engines import disk_release, write_and_count
from microagg.engines.memory import suppress
from microagg.engines.release_counts import CountsOnDisk
from microagg.errors import VerificationError
from microagg.evidence.cautions import cautions_of
from microagg.evidence.measured import Signs
from microagg.evidence.measuring import cure_of
from microagg.evidence.sentences import required_words, thresholds_of
from microagg.formats.batches import open_batches
from microagg.job.run import protect_file
from microagg.measure.attack_tables import attack_tables
from microagg.measure.disclosure_signs import Determined, UnitsInGroups
from microagg.measure.estimates import _density, quantile
from microagg.measure.inference import link
from microagg.measure.known_columns import Known
from microagg.measure.linkage import Linkage
from microagg.measure.linked_rows import LinkedRows, count_row_sets, row_sets
from microagg.measure.pairing import SwapFigures
from microagg.measure.risk import Agreement
from microagg.measure.verify import Question
from microagg.plan.block import Require
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept, Roles
from microagg.releasing.release_values import release_column
from microagg.releasing.rounding import Rounding, round_related
from microagg.releasing.swap import Holders, ReleaseTerms, _share_states, share_numbers
from microagg.tables.variable import Variable

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def cautions(plan=None, dropped=(), **signs):
    roles = Roles([], list(dropped), [], [], [])
    return cautions_of(plan or Plan.of(k=5), roles, Signs(records=9, looked_at=9, **signs))


def test_relations_are_checked_in_the_file_that_was_read_back(tmp_path, monkeypatch):
    net = np.repeat(np.arange(10.0), 4)
    frame = pd.DataFrame({"gross": net + 3, "net": net, "tax": np.full(40, 3.0)})
    release = microagg.protect(
        frame, k=4, columns=["gross", "net", "tax"], relations=["gross = net + tax"]
    )
    assert release.write(tmp_path / "right.csv").holds
    write_file = write_and_count.write_file

    def written_wrong(table, *rest):
        """Write another net in all records, so that k holds all the same."""
        at = table.column_names.index("net")
        return write_file(table.set_column(at, "net", pc.add(table["net"], 1.0)), *rest)

    monkeypatch.setattr(write_and_count, "write_file", written_wrong)
    with pytest.raises(VerificationError, match="was read back and does not keep the relation"):
        release.write(tmp_path / "wrong.csv")
    assert not (tmp_path / "wrong.csv").exists()


def test_units_that_were_dropped_are_those_of_the_rows_in_every_batch(tmp_path, monkeypatch):
    """The first batch has one unit, all later rows have one of their own."""
    pq.write_table(pa.table({"a": np.zeros(400)}), tmp_path / "a.parquet")
    source = open_batches(tmp_path / "a.parquet")
    monkeypatch.setattr(type(source), "batches", partialmethod(type(source).batches, at_once=100))
    assert [batch.first for batch in source.batches(["a"])] == [0, 100, 200, 300]
    units = pa.array(np.maximum(np.arange(400) - 99, 0))
    rows = CountsOnDisk(source, tmp_path, 1 << 20, {"home": units})
    (sizes,) = rows.count([Question(["a"], "home")])
    assert sizes.units.tolist() == [301]


@pytest.mark.parametrize(("loss", "passed"), [(9.99, True), (10.0, True), (10.01, False)])
def test_a_loss_above_what_is_accepted_fails_by_however_little(loss, passed):
    linkage = Linkage(0.2, 0.2, 0.2, 9, sampled=False)
    table = pd.DataFrame({"a": np.repeat([1.0, 2.0], 5)})
    fidelity = microagg.protect(table, k=5, columns=["a"]).evidence.fidelity
    found = thresholds_of(Accept(loss=10.0, linkage=0.2), loss, linkage, (), fidelity)
    assert [one.passed for one in found] == [passed, True]
    assert not thresholds_of(Accept(linkage=0.1999), 0.0, linkage, (), fidelity)[0].passed


def test_more_disclosed_records_than_accepted_are_amber_by_however_few():
    agreements = {"ill": Agreement(exact=3, close=0, harmless=0, of=1000)}
    severities = {
        accepted: cautions(Plan.of(k=5, max_agreeing=accepted), agreements=agreements)[0].severity
        for accepted in (0.003, 0.002)
    }
    assert severities == {0.003: "note", 0.002: "amber"}


def test_a_cure_leaves_no_more_than_is_accepted():
    frame = pd.DataFrame({"a": np.repeat(np.arange(9.0), 5), "ill": [*"xxxxxyzyzyzyzyz"] * 3})
    settings = {"k": 5, "columns": ["a"], "confidential": ["ill"], "effort": "fast"}
    release = microagg.protect(frame, **settings)
    now = release._measuring
    assert now.agreements["ill"].records == 15
    found = cure_of(release.plan, now, lambda plan: microagg.protect(frame, plan=plan)._measuring)
    assert found is not None
    assert found.require == {"hidden": {"ill": 5.0}}
    # If what is tried does not help, it is not advised.
    assert cure_of(release.plan, now, lambda plan: now).require == {}
    third = release.plan.override(max_agreeing=15 / 45)
    assert cure_of(third, now, lambda plan: now) is None
    less = third.override(max_agreeing=0.333)
    assert cure_of(less, now, lambda plan: now).require == {}


def test_a_single_set_of_rows_below_k_is_a_caution():
    """Six households of two equal rows, and one of three."""
    home = Known(np.array([*np.repeat(np.arange(6), 2), 6, 6, 6]))
    sets = row_sets(np.zeros(15, np.int64), {"home": home})["home"]
    counted = count_row_sets("home", sets, 6)
    assert (counted.sets, counted.below_k, counted.alone) == (7, 1, 1)
    (caution,) = cautions(linked_rows=[counted])
    assert caution.severity == "amber"
    assert not cautions(linked_rows=[LinkedRows("home", 3, 9, 0, 0, 0)])


@pytest.mark.parametrize("alike", [True, False])
def test_known_columns_tell_records_of_a_group_apart_only_where_k_holds_with_them(alike):
    """In a group everybody has another city, or five have the same one, and with it the same illness."""
    frame = pd.DataFrame(
        {
            "a": np.repeat(np.arange(8.0), 10),
            "city": [*"mmmmmfffff"] * 8 if alike else [*"abcdefghij"] * 8,
            "ill": [*"vvvvvwwwww", *"xxxxxyyyyy"] * 4,
        }
    )
    found = microagg.protect(
        frame, k=5, columns=["a"], known=["city"], confidential=["ill"]
    ).evidence
    assert found.with_known.below_k == (0 if alike else 1)
    assert found.signs.agreements["ill"].records == (80 if alike else 0)


def test_rows_that_belong_together_are_a_caution_if_their_sets_were_not_counted(
    tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    home = np.repeat(np.arange(1000), 3)
    frame = pd.DataFrame({"a": rng.normal(size=3000).round(2), "home": home})
    frame.to_parquet(tmp_path / "in.parquet", row_group_size=500)
    monkeypatch.setattr("microagg.engines.aggregates._SAMPLED", 500)
    found = protect_file(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        k=5,
        columns=["a"],
        unit="home",
        known=["home"],
        engine="disk",
    )
    assert found.signs.looked_at < found.records
    assert list(found.signs.uncounted_rows) == ["home"]
    assert not found.signs.linked_rows
    told = [
        c for c in found.cautions if "sets of rows are counted only for tables in memory" in c.words
    ]
    assert [(c.severity, c.columns) for c in told] == [("amber", ("home",))]


def test_a_group_that_misses_a_value_releases_none_and_a_code_only_if_all_have_it():
    """The groups have two of three values, one of three, one code, and two codes."""
    values = np.array([1.0, 2.0, np.nan, 7.0, *[np.nan] * 8])
    states = np.array([0, 0, 1, 0, 1, 1, 2, 2, 2, 2, 3, 1])
    variable = Variable("a", "number", values, codes=(-8, -9))
    plan = Plan.of(k=3, columns=["a"], missing={"policy": "majority"})
    terms = ReleaseTerms(plan.blocks[0], plan)
    released, after = release_column(
        variable, states, np.repeat(np.arange(4), 3), Rounding(), terms
    )
    assert after.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [1] * 3
    assert released[:3].tolist() == [1.5] * 3
    assert np.isnan(released[3:]).all()


@pytest.mark.parametrize("steps", [usual_steps(1.0), Steps.of_decimals(2)])
def test_a_mean_just_below_zero_is_released_as_zero(steps):
    found = steps.nearest(np.array([-1e-9, 0.25]))
    assert found.tolist() == [0.0, 0.25]
    assert not np.signbit(found).any()


def test_disk_refuses_a_file_whose_values_break_a_relation(tmp_path, monkeypatch):
    net = np.repeat(np.arange(10.0), 4)
    pq.write_table(pa.table({"gross": net + 3, "net": net}), tmp_path / "in.parquet")
    settings = {"k": 4, "columns": ["gross", "net"], "relations": ["gross >= net"]}
    job = partial(
        protect_file, tmp_path / "in.parquet", tmp_path / "out.parquet", engine="disk", **settings
    )
    monkeypatch.setattr(disk_release, "broken_relation", lambda plan, frame: plan.relations[0])
    with pytest.raises(VerificationError, match="do not keep the relation"):
        job()
    assert not (tmp_path / "out.parquet").exists()
    monkeypatch.undo()
    assert job().counted.holds


def test_rounding_keeps_an_inequality_as_one_and_an_equation_as_one():
    plan = Plan.of(k=3, columns=["a", "b"], relations=["a <= b"])
    values = np.array([[1.26, 5.04], [2.04, 2.04]])
    steps = [Steps.of_decimals(1), Steps.of_decimals(0)]
    rounded = round_related(values, ["a", "b"], steps, plan, weighted=False)
    assert rounded.tolist() == [[1.3, 5.0], [2.0, 2.0]]
    equation = Plan.of(k=3, columns=["a", "b"], relations=["b = a + 1"])
    assert round_related(values, ["a", "b"], steps, equation, False)[0].tolist() == [1.3, 2.3]
    # Where means are weighted, b keeps to whole numbers, and a is computed from it.
    assert round_related(values, ["a", "b"], steps, equation, True)[0].tolist() == [4.0, 5.0]


def _ids(one_value):
    return {"id": (UnitsInGroups(9, one_value, 0.5, 0.0, 0.0, True), 5)}


@pytest.mark.parametrize(
    ("signs", "dropped", "expected"),
    [
        ({"uncounted_rows": ["home"]}, ["home"], "is dropped, but its rows lie together"),
        ({"uncounted_rows": ["home"]}, [], "shows which rows belong together"),
        (
            {"determined": [Determined("a", "b", 9, None, True)]},
            [],
            "a is unprotected and gives b away.",
        ),
        (
            {"determined": [Determined(x, y, 9, None, True) for x, y in ("ab", "cd")]},
            [],
            "a is unprotected and gives b away; c is unprotected and gives d away",
        ),
        ({"unmixed": _ids(0.01)}, [], "In 1.0 % of the groups all"),
        ({"unmixed": _ids(0.009)}, [], "50.0 % of the groups have"),
    ],
)
def test_a_caution_states_the_fact_that_it_was_given(signs, dropped, expected):
    (caution,) = cautions(dropped=dropped, **signs)
    assert expected in caution.words


def test_sentences_about_a_plan_leave_nothing_out():
    risk = Require(individual_risk=0.1)
    assert required_words(risk) == ["an individual risk of at most 10.0 %"]
    linkage = Linkage(0.2, 0.2, 0.2, 9, sampled=False)
    table = pd.DataFrame({"a": np.repeat([1.0, 2.0, 3.0], 5), "b": np.tile([1.0, 2.0, 3.0], 5)})
    evidence = microagg.protect(table, k=5, columns=["a", "b"]).evidence
    for standing, words in (
        (0.0, "so for none of the people"),
        (0.25, "so for 25.0 % of the people"),
    ):
        swapped = replace(evidence, swap=SwapFigures(None, standing, 0))
        assert words in swapped.alone_words
    fidelity = evidence.fidelity
    multiple = fidelity.multiple(fidelity.order)
    assert multiple > 0
    passed = [
        thresholds_of(Accept(tables=limit), 0.0, linkage, (), fidelity)[0].passed
        for limit in (multiple * 1.01, multiple * 0.99)
    ]
    assert passed == [True, False]


class _AtLeast:
    """A rule of at least so many records for groups with the record ``of``."""

    def __init__(self, of: int, records: int) -> None:
        self.of, self.records = of, records

    def violation(self, rows):
        return float(self.of in rows and len(rows) < self.records)


@pytest.mark.parametrize(
    ("of", "expected"),
    [(0, [4.5] * 6 + [10.0] * 3), (3, [0.0] * 3 + [9.5] * 6), (6, [0.0] * 3 + [9.5] * 6)],
)
def test_shared_values_that_break_a_rule_join_the_nearest_neighbour(of, expected):
    values = np.repeat([0.0, 9.0, 10.0], 3)
    holders = Holders(np.zeros(9, dtype=int), None, 3)
    shared = share_numbers(values, holders, rules=[_AtLeast(of, 4)])
    assert shared.tolist() == expected
    whole = share_numbers(values, holders, np.floor, [_AtLeast(of, 4)])
    assert whole.tolist() == np.floor(expected).tolist()


def test_a_rule_about_one_column_does_not_join_shared_values_of_another():
    amounts = np.array([1000.0, 1, 1, *np.linspace(90, 110, 57)])
    frame = pd.DataFrame({"turnover": amounts, "wages": amounts})
    settings = {"columns": ["turnover", "wages"], "release": "swap", "k": 3}
    plain = microagg.protect(frame, **settings).data
    ruled = microagg.protect(frame, **settings, require={"p_percent": {"turnover": 15}}).data
    assert ruled["turnover"].nunique() < plain["turnover"].nunique()
    assert sorted(ruled["wages"]) == sorted(plain["wages"])


def test_values_that_fewer_than_k_units_have_become_plainly_missing_where_values_are_swapped():
    states = np.array([0, 0, *[1] * 8])
    shared, filled = _share_states(states, Holders(np.zeros(10, dtype=int), None, 5))
    assert shared.tolist() == [1] * 10
    assert not filled.any()


def test_codes_for_missing_tell_original_records_apart():
    """Two people whose answers differ only in why they are missing are two kinds before, one after."""
    frame = pd.DataFrame({"pay": [-8.0, -9.0, *[5.0] * 4], "age": [1.0] * 6})
    codes = {"pay": [-8, -9]}
    release = microagg.protect(
        frame, k=3, columns=["pay", "age"], missing={"policy": "majority", "codes": codes}
    )
    assert release.risk.unique_before == pytest.approx(2 / 6)
    plain = frame.assign(pay=[7.0, 7.0, *[5.0] * 4])
    release = microagg.protect(plain, k=3, columns=["pay", "age"])
    assert release.risk.unique_before == 0


def test_the_density_is_that_of_the_sample_and_the_interval_of_a_quantile_covers_it():
    rng = np.random.default_rng(0)
    x = rng.normal(10, 2, 4_000)
    w = np.ones(len(x))
    for at in (10.0, 12.0):
        true = np.exp(-((at - 10) ** 2) / 8) / (2 * np.sqrt(2 * np.pi))
        assert _density(x, w, at) == pytest.approx(true, rel=0.1)
    covered = 0
    for _ in range(200):  # of the intervals of so many samples 95 %
        low, high = quantile(rng.normal(10, 2, 200), np.ones(200), 0.5).interval
        covered += low <= 10 <= high
    assert 180 <= covered <= 198


def test_swapping_leaves_a_value_that_k_hold_as_it_is_and_rounds_means():
    third = 1 / 3
    x = np.array([third] * 4 + [10 / 7, 11 / 7, 12 / 7, 13 / 7])
    found = microagg.protect(pd.DataFrame({"x": x}), k=4, columns=["x"], release="swap").data["x"]
    assert (found == third).sum() == 4
    rest = found[found != third]
    assert (rest == rest.round(7)).all()


def test_rare_levels_of_an_order_become_the_one_in_their_middle():
    """Also where it is that of the first record."""
    grades = pd.Categorical([*"bacddd"], categories=[*"abcd"], ordered=True)
    frame = pd.DataFrame({"grade": grades})
    found = microagg.protect(frame, k=3, columns=["grade"], release="swap").data["grade"]
    assert sorted(found) == [*"bbbddd"]


def test_no_secret_is_pooled_where_there_is_but_one():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.integers(0, 3, 60), "c": [*"ab"] * 30})
    found = microagg.attack(frame, frame, known=["a"], secret="c")
    assert all(rate.attack.weight == 60 for rate in found.inference.values())


def test_two_random_rows_are_linked_as_often_as_rows_are_equal():
    """Of four rows two are equal: the chance is (2² + 1 + 1)/4²; they agree in a column more often."""
    frame = pd.DataFrame({"a": [1.0, 1.0, 1.0, 2.0], "b": [5.0, 5.0, 6.0, 6.0]})
    tables = attack_tables(frame, frame, None, seed=0)
    figure = link(tables, [0], 10, 0, lambda _: False)
    assert figure.baseline.share == pytest.approx(6 / 16)


def test_a_target_for_the_linkage_asks_for_the_smallest_k():
    def choice(k: int, linked: float) -> Choice:
        return Choice("mdav", k, linkage=Linkage(linked, linked, linked, 100, False))

    choices = [choice(3, 0.3), choice(20, 0.01)]
    found = next_k_for(choices, Accept(linkage=0.1), 1_000)
    assert 3 < found < 20
    assert next_k_for([choice(3, 0.01)], Accept(linkage=0.1), 1_000) == 2


def test_as_many_records_are_left_out_as_may_be_and_none_that_costs_nothing(monkeypatch):
    frame = pd.DataFrame({"x": np.arange(6.0), "unit": [0, 1, 2, 3, 4, 4]})
    whole = microagg.protect(frame, k=2, columns=["x"], unit="unit", drop=["unit"])
    monkeypatch.setattr(suppress, "_costs", lambda _: np.array([0.0, 0, 0, 5, 9, 9]))
    left_out = [
        np.flatnonzero(~suppress._without_farthest(whole, most)).tolist() for most in range(5)
    ]
    assert left_out == [[], [3], [4, 5], [3, 4, 5], [3, 4, 5]]


@pytest.mark.parametrize(("target", "mark"), [("out.csv", ","), ("out.txt", ";")])
def test_the_marks_of_a_text_file_are_kept_for_the_same_ending_alone(tmp_path, target, mark):
    (tmp_path / "in.txt").write_text("a;b\n" + "1;2\n2;3\n" * 4)
    protect_file(tmp_path / "in.txt", tmp_path / target, k=3, columns=["a", "b"])
    assert mark in (tmp_path / target).read_text().splitlines()[0]
