"""What is claimed about a release is what was counted: for units, parts, methods and names of any kind."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import Plan
from microagg.base.formatting import percent
from microagg.evidence.measured import CountedFile
from microagg.evidence.sentences import promise_words
from microagg.plan.block import Block

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def households() -> pd.DataFrame:
    """Two groups of two households; in a household all are of one sex."""
    return pd.DataFrame(
        {
            "a": [0.0, 0, 0, 0, 10, 10, 10, 10],
            "household": [1, 1, 2, 2, 3, 3, 4, 4],
            "sex": [*"mmffmmff"],
            "region": [*"xxxxyyyy"],
        }
    )


def test_with_a_unit_all_that_is_said_of_known_columns_counts_units():
    release = microagg.protect(
        households(), k=2, columns=["a"], unit="household", renumber=["household"]
    )
    found = release.evidence
    assert found.with_known.smallest_class == 2  # records
    assert (found.with_known.below_k, found.alone.below_k) == (1.0, 0.0)
    assert {harm.name: harm.alone for harm in found.harms} == {"sex": 1.0, "region": 0.0}
    (told,) = [
        c for c in found.cautions if "by someone who knows the unprotected columns" in c.words
    ]
    assert told.columns == ("sex",)
    assert "This makes k hold: --drop sex." in told.advice
    assert found.verdict == "amber"
    assert "Every record can be narrowed down to fewer than 2 units (household)" in told.words
    dropped = microagg.protect(
        households(), k=2, columns=["a"], unit="household", drop=["household", "sex"]
    )
    assert dropped.evidence.verdict == "green"


def test_a_unit_that_is_left_is_not_advised_to_be_named_as_unit():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "person": rng.permutation(400) // 2})
    told = [
        c.advice
        for unit in (None, "person")
        for c in microagg.protect(frame, k=3, columns=["a"], method="mdav", unit=unit).cautions
        if "an id that repeats" in c.words
    ]
    assert told[0].endswith("make it the unit (--unit person).")
    assert told[1] == "Drop it. It is the unit, and k counts units whether or not it is released."


def test_the_part_told_of_is_one_that_does_not_hold():
    rare = microagg.verify(pd.DataFrame({"a": [1, 1, 1]}), 3, ["a"])
    broken = microagg.verify(pd.DataFrame({"b": [1] * 8}), 10, ["b"])
    counted = CountedFile("out.csv", (rare, broken), "")
    assert not counted.holds
    assert counted.least == broken


def test_an_exact_method_proves_nothing_once_groups_are_merged_for_units(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "person": np.arange(60) // 3})
    frame["a"] += 10 * frame["person"]  # so that records of a person make up a group
    of_records = microagg.protect(frame, k=3, columns=["a"], drop=["person"])
    of_units = microagg.protect(frame, k=3, columns=["a"], unit="person", drop=["person"])
    assert of_records.evidence.proof(of_records.parts[0])[0] == "no"
    assert of_units.partition.sse > of_records.partition.sse
    assert of_units.evidence.proof(of_units.parts[0])[0] == "not known"
    bounded = of_units.with_bound()
    assert bounded.partition.lower_bound is not None
    assert bounded.evidence.proof(bounded.parts[0])[0].startswith("by at most")


def test_swapped_values_stand_for_units_of_their_stratum_where_there_is_one():
    def promise(**settings):
        plan = Plan.of(k=3, columns=["a"], release="swap", **settings)
        return promise_words(plan)

    assert "stands for at least 3 records of the table." in promise()
    assert "stands for at least 3 records of its stratum (region)." in promise(strata=["region"])


def test_a_bound_says_that_swapped_groups_were_merged_for_more_than_k():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.permutation(np.arange(18.0)) for name in "ab"})
    release = microagg.protect(
        frame, k=3, columns=["a", "b"], release="swap", standing=0.2, bound="fast"
    )
    groups = release.parts[0]
    words = release.evidence.proof(groups)[1]
    assert "whatever else they satisfy" in words
    least = percent(100 * groups.partition.lower_bound / groups.partition.sst)
    assert f"lose at least {least}" in words


@pytest.mark.filterwarnings("ignore:The DataFrame has column names of mixed type")
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        [0, 1, 2, 3],
        ["a", "b", 2, "d"],
        [(0, "x"), (0, "y"), (1, "x"), (1, "y")],
        pd.date_range("2020", periods=4),
        ["a", "b\n", "c", "d"],
    ],
    ids=["numbers", "one number", "pairs", "dates", "odd text"],
)
def test_reports_of_frames_whose_names_are_no_plain_text(tmp_path, names, several):
    values = np.random.default_rng(0).integers(0, 9, size=(12, 4))
    frame = pd.DataFrame(values, columns=pd.Index(names, tupleize_cols=False))
    a, b, c, _ = frame.columns
    blocks = [Block((a,), 3, method="mdav"), Block((b,), 3, method="mdav")]
    whole = [Block((a, b), 3, method="mdav")]
    plan = Plan(blocks=tuple(blocks if several else whole), renumber=(c,))
    release = microagg.protect(frame, plan=plan)
    release.write(tmp_path / "out.parquet")
    evidence = replace(release.evidence, source={"path": "in.csv", "sha256": ""})
    for public in (True, False):
        model = release.report_model(evidence, public)
        assert len(json.loads(json.dumps(model))["columns"]["protected"]) == 2
    assert model["repeat"]["language"] == "Python"
    assert model["repeat"]["command"].startswith(("microagg.protect(frame", "Plan("))


def test_sentences_give_the_figures_of_the_cards_and_no_more_digits():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=[*"abc"])
    release = microagg.protect(frame, k=4, columns=[*"abc"], method="mdav", max_loss=90)
    model = release.report_model()
    loss = release.utility.information_loss
    assert loss > 10
    assert loss != model["information_loss"]
    card = percent(model["information_loss"])
    assert model["words"]["loss"].startswith(f"{card} of the information")
    assert model["thresholds"][0]["found"] == card


def test_every_threshold_that_is_missed_is_named():
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)), columns=[*"ab"])
    for limits, words in (
        ({"max_loss": 0.1}, "The information loss is above"),
        (
            {"max_loss": 0.1, "max_linkage": 0.0},
            "The information loss and the record linkage with what an attacker knows are above",
        ),
    ):
        found = microagg.protect(frame, k=4, columns=["a", "b"], method="mdav", **limits).evidence
        assert found.verdict == "red"
        assert found.verdict_words == f"{words} what the plan accepts."


def test_a_proof_says_that_it_leaves_blanked_values_aside():
    """Their loss is in that of the groups, so that the two figures differ."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(50, 10, (60, 2)), columns=[*"ab"])
    frame.loc[0, "a"] = np.nan
    settings = {"missing": {"policy": "pattern", "most": 0.2}, "method": "mdav", "digits": -1}
    bounded = microagg.protect(frame, k=3, columns=[*"ab"], **settings).with_bound()
    assert bounded.evidence.signs.missing_counts["a"].blanked > 0
    assert bounded.partition.information_loss < bounded.utility.group_loss
    _, sentence = bounded.evidence.proof(bounded.parts[0])
    assert "these groups alone, blanked values aside, lose" in sentence


def test_a_proof_says_that_it_is_about_the_groups_where_the_released_values_lose_more():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(50, 10, (60, 2)), columns=[*"ab"])
    for digits, apart in ((-1, True), (6, False)):
        release = microagg.protect(frame, k=3, columns=[*"ab"], digits=digits, method="mdav")
        bounded = release.with_bound()
        word, sentence = bounded.evidence.proof(bounded.parts[0])
        assert word.startswith("by at most")
        own = percent(float(f"{bounded.partition.information_loss:.3g}"))
        assert (f"these groups alone lose {own}." in sentence) == apart
        assert (
            "; the groups alone, with exact means, lose" in release.evidence.loss_words
        ) == apart
        released, of_groups = release.utility.information_loss, release.utility.group_loss
        assert (released > 1.05 * of_groups) == apart


def test_groups_that_lose_as_little_as_is_proved_are_the_best():
    frame = pd.DataFrame(
        {"a": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0], "b": [1.0, 2.0, 1.0, 9.0, 8.0, 9.0]}
    )
    release = microagg.protect(frame, k=3, columns=["a", "b"], method="mdav")
    (part,) = release.parts
    for bound, word, sentence in (
        (part.partition.sse, "no", "Proved: no groups of 3 or more lose less."),
        (0.75 * part.partition.sse, "by at most 25.0 %", "groups of 3 or more lose at least"),
        (None, "not known", "Not computed: the method is a heuristic."),
    ):
        own = part._replace(partition=replace(part.partition, lower_bound=bound))
        found = release.evidence.proof(own)
        assert found[0] == word
        assert sentence in found[1]


def test_repr_sums_up_in_ten_lines(caplog, tmp_path):
    import logging

    frame = pd.DataFrame({"a": range(40), "b": [i % 7 for i in range(40)], "n": range(40)})
    frame.to_csv(tmp_path / "in.csv", index=False)
    with caplog.at_level(logging.INFO, logger="microagg"):
        evidence = microagg.protect_file(
            tmp_path / "in.csv", tmp_path / "out.csv", k=5, columns=["a", "b"], drop=["n"]
        )
    lines = repr(evidence).splitlines()
    assert lines[0].startswith("Evidence: green. k = 5 holds")
    assert len(lines) <= 10
    stages = [
        record.message.split(":")[0] for record in caplog.records if record.name == "microagg"
    ]
    assert stages == ["reading", "grouping", "writing", "measuring", "written"]
