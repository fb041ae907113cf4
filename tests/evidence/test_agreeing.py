"""Claims have a price, and groups that agree disclose: verdict, cure, third view, reports, command."""

import json

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here
from microagg import Plan
from microagg.plan.forms import split_pair

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def screening(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """One or two tests a patient; on some days all of them are positive, else few are."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, 100, n))
    positive = np.where(day % 25 == 7, 1.0, 0.05) > rng.random(n)
    return pd.DataFrame(
        {
            "patient": np.sort(rng.choice(n, n)),
            "age": rng.integers(0, 90, n),
            "day": day,
            "result": np.where(positive, "positive", "negative"),
        }
    )


def by_patient(frame, **settings):
    return microagg.protect(
        frame,
        **{
            "k": 5,
            "columns": ["day"],
            "unit": {"column": "patient", "name": "patient"},
            "drop": ["patient", "age"],
            "confidential": {"result": "medical file; in no register"},
            "max_pairing": 0.5,
            **settings,
        },
    )


def test_groups_that_agree_are_amber_and_their_own_advice_cures_it():
    frame = screening()
    release = by_patient(frame)
    agreed = release.data.assign(one=release.data.groupby("day").result.transform("nunique") == 1)
    rare = agreed.one & (agreed.result == "positive")
    assert rare.sum() > 5
    found = release.evidence
    assert found.verdict == "amber"
    (told,) = [c for c in found.cautions if c.severity == "amber"]
    assert told.columns == ("result",)
    assert f"result ({rare.sum()} records)" in told.words
    assert "positive" not in json.dumps(found.as_dict())  # which value it is
    advice = told.advice.split("--require ")[1].split(". ")[0]
    assert advice == "hidden:result=5"
    rule, _, rest = advice.partition(":")
    name, value = split_pair("--require", rest, "")
    cured = by_patient(frame, require={rule: {name: int(value)}}, effort="fast")
    assert cured.evidence.verdict == "green"
    price = float(told.advice.split("at most ")[1].split(" %")[0])
    assert price == pytest.approx(cured.evidence.utility.information_loss, abs=0.005)


def told_of(release):
    """What is said of groups that disclose."""
    (told,) = [c for c in release.evidence.cautions if c.words.startswith("Groups disclose")]
    return told


def test_advice_covers_what_other_groups_might_disclose_and_repeats_nothing():
    frame = screening().assign(ward=lambda t: np.where(t.day % 25 == 12, "a", "b"))
    release = by_patient(frame, confidential=["result", "ward"], require={"hidden": {"result": 5}})
    advice = told_of(release).advice
    assert "--require hidden:ward=5. " in advice
    assert "result" not in advice
    assert told_of(release).cures == (("ward", "require hidden:5"),)
    cured = by_patient(
        frame, confidential=["result", "ward"], require={"hidden": {"result": 5, "ward": 5}}
    )
    assert cured.evidence.verdict == "green"


def test_what_cannot_be_cured_says_so():
    frame = screening()
    frame["region"] = np.where(
        frame.result == "positive", "north", "south"
    )  # all of a stratum agree
    release = by_patient(frame, strata=["region"])
    told = told_of(release)
    assert told.advice == (
        "No requirement that was tried prevents it. Drop the column, or protect result too."
    )
    assert told.cures == (("result", "drop"), ("result", "protect"))


def test_a_known_column_that_tells_records_apart_is_dropped():
    frame = pd.DataFrame(
        {
            "a": np.repeat(np.arange(12.0), 10),
            "sex": [*"mmmmmfffff"] * 12,
            "ill": [*"vvvvvwwwww", *"xxxxxyyyyy", *"zzzzzqqqqq"] * 4,
        }
    )
    plan = {"k": 5, "columns": ["a"], "known": ["sex"], "confidential": ["ill"]}
    require = {"hidden": {"ill": 5}}
    told = told_of(microagg.protect(frame, **plan, require=require))
    assert told.advice.startswith("This prevents it: --drop sex. ")
    assert told.cures == (("sex", "drop"),)
    cured = microagg.protect(frame, **{**plan, "known": [], "drop": ["sex"]}, require=require)
    assert cured.evidence.verdict == "green"


def test_a_large_table_is_advised_without_a_trial(monkeypatch):
    monkeypatch.setattr("microagg.evidence.measuring._EASILY_TRIED", 599)
    advice = told_of(by_patient(screening())).advice
    assert advice == (
        "This prevents it: --require hidden:result=5. It was not tried, because the table is large."
    )
    monkeypatch.setattr("microagg.evidence.measuring._EASILY_TRIED", 600)
    assert "The loss would be at most" in told_of(by_patient(screening())).advice


def test_an_income_that_a_tenth_have_is_no_news():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": np.repeat(np.arange(40.0), 5), "pay": rng.lognormal(8, 2, 200)})
    plan = {"k": 5, "columns": ["a"], "confidential": ["pay"]}
    frame.loc[:20, "pay"] = 0.0  # 21 of 200
    found = microagg.protect(frame, **plan)
    assert found.evidence.verdict == "green"
    assert found.evidence.signs.agreements["pay"].harmless == 20
    frame.loc[20, "pay"] = 1.0  # 20 of 200
    assert "pay (20 records)" in told_of(microagg.protect(frame, **plan)).words


def test_all_cautions_are_one_list_and_those_about_disclosure_warn():
    frame = screening().assign(noise=lambda t: np.random.default_rng(9).permutation(len(t)))
    plan = {"columns": ["day", "noise"], "kinds": {"noise": {"importance": 1e-9}}}
    with pytest.warns(microagg.DisclosureRiskWarning) as seen:
        release = by_patient(frame, **plan)
    cautions = release.cautions
    assert cautions == list(release.evidence.cautions)
    assert {c.disclosure for c in cautions if c.severity != "note"} == {True, False}
    assert [str(one.message) for one in seen] == [
        c.sentence for c in cautions if c.severity != "note" and c.disclosure
    ]
    assert {one.filename for one in seen} == {__file__}


def test_so_many_may_be_accepted():
    frame = screening()
    assert by_patient(frame, max_agreeing=0.5).evidence.verdict == "green"
    assert by_patient(frame, max_agreeing=0.001).evidence.verdict == "amber"
    note = by_patient(frame, max_agreeing=0.5).cautions[-1]
    assert note.severity == "note"
    assert "the plan accepts 50.0 %" in note.words


def test_what_most_have_is_a_note_at_most():
    frame = screening().assign(result="negative")
    frame.loc[frame.index % 100 == 0, "result"] = "positive"
    release = by_patient(frame)
    assert release.evidence.verdict == "green"
    note = release.cautions[-1]
    assert note.severity == "note"
    assert "agree in a common confidential value: result" in note.words


def test_an_attacker_tells_the_records_of_a_group_apart_by_what_is_known():
    """In each group all women have one value and all men the other."""
    frame = pd.DataFrame(
        {
            "a": np.repeat(np.arange(10.0), 10),
            "sex": [*"mmmmmfffff"] * 10,
            "ill": [*"yyyyynnnnn"] * 10,
        }
    )
    frame.loc[frame.a < 3, "ill"] = "z"  # so that neither is what half of all have
    frame.loc[(frame.a < 3) & (frame.index % 2 == 0), "ill"] = "x"
    found = microagg.protect(
        frame, k=5, columns=["a"], known=["sex"], confidential=["ill"]
    ).evidence
    assert found.with_known.below_k == 0
    assert found.verdict == "amber"
    assert "ill (70 records)" in "".join(caution.words for caution in found.cautions)


def test_numbers_that_groups_give_to_within_five_percent():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": np.repeat(np.arange(40.0), 5)})
    step = rng.permutation(40)[frame.a.astype(int)]
    frame["income"] = 1000 * 1.3**step * rng.uniform(0.99, 1.01, 200)
    found = microagg.protect(frame, k=5, columns=["a"], confidential=["income"]).evidence
    assert found.verdict == "amber"
    told = "".join(caution.words for caution in found.cautions)
    assert "to within 5 %: income (200 records)" in told
    spread = frame.assign(income=rng.lognormal(8, 2, 200))
    found = microagg.protect(spread, k=5, columns=["a"], confidential=["income"]).evidence
    assert found.verdict == "green"


def counted_below(frame, columns, k):
    sizes = frame.groupby(columns, dropna=False)[columns[0]].transform("size")
    return float((sizes < k).mean())


def test_the_price_of_a_claim_is_counted():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(300, 2)).round(2), columns=["a", "b"])
    frame["income"] = rng.normal(size=300)
    frame["sex"] = rng.integers(1, 3, 300)
    release = microagg.protect(
        frame,
        k=5,
        columns=["a", "b"],
        confidential={"sex": "in no register", "income": "tax file"},
        max_agreeing=1,
    )
    found = release.evidence
    data, k = release.data, 5
    every = found.if_confidential_known
    assert every.below_k == counted_below(data, ["a", "b", "sex", "income"], k) == 1
    assert (every.unique, every.smallest_class) == (1.0, 1)
    assert every.record_linkage > found.with_known.record_linkage
    assert list(found.stakes) == ["income", "sex"]
    assert found.stakes["sex"] == counted_below(data, ["a", "b", "sex"], k) < 1
    told = found.as_dict()["risk"]["if_confidential_known"]
    assert set(told) == {*found.as_dict()["risk"]["with_known"], "claims"}
    assert [c["reason"] for c in told["claims"]] == ["tax file", "in no register"]
    assert found.claim_words.startswith(
        "if the confidential columns are known after all, every record can be narrowed down to fewer than 5,"
    )
    assert "; one of them alone: income 100 %, sex " in found.claim_words


def test_without_a_claim_there_is_nothing_to_say():
    release = by_patient(screening(), confidential=[], drop=["patient", "age", "result"])
    found = release.evidence
    assert found.claim_words == ""
    assert found.if_confidential_known == found.with_known
    assert "known after all" not in json.dumps(release.report_model())


def test_the_board_reads_each_reason_and_nobody_else_does(tmp_path):
    plan = Plan.of(confidential={"result": "<b>in</b> no register"})
    release = by_patient(screening(), plan=plan, confidential=plan.confidential)
    assert release.plan.reasons == {"result": "<b>in</b> no register"}
    release.report(tmp_path / "board.html")
    page = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;in&lt;/b&gt; no register" in page
    assert "What this rests on" in page
    assert release.report_model(public=True)["verdict"] == "amber"  # no greener than the board's
    release.report(tmp_path / "public.html", public=True)
    for name in ("public.html", "public.json"):
        assert "no register" not in (tmp_path / name).read_text(encoding="utf-8")


def test_the_command_says_it_in_one_line(tmp_path):
    screening().to_csv(tmp_path / "in.csv", index=False)
    done = here(
        *("protect", tmp_path / "in.csv", tmp_path / "out.csv", "--k", "5", "--columns", "day"),
        *("--unit", "patient", "--unit-name", "patient", "--drop", "patient,age", "--json"),
        *("--confidential", "result=medical file; in no register"),
    )
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "known after all" in line]
    assert "fewer than 5 patients" in line
    told = json.loads(done.stdout)
    assert told["verdict"] == "amber"
    assert (
        told["risk"]["if_confidential_known"]["claims"][0]["reason"]
        == "medical file; in no register"
    )
    assert told["plan"]["confidential"] == {"result": "medical file; in no register"}
