"""Evidence: when a release is green, amber or red, what is cautioned of, and what the JSON holds."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import microagg
from conftest import reference_table
from microagg import InputError
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile
from microagg.evidence.sentences import Caution
from microagg.measure.verify import verify_all
from microagg.plan.plan import Promise
from microagg.plan.sections import Accept

N = 90
RNG = np.random.default_rng(1)
BASE = pd.DataFrame({"income": RNG.lognormal(8, 1, N).round(2), "rent": RNG.normal(500, 90, N)})
NOISE = RNG.random(N)  # drawn here, so that the order of the tests has no say


def protected(frame, **settings):
    """A release, and no warning: cautions are what is looked at here."""
    chosen = {"k": 3, "columns": ["income", "rent"], "method": "mdav", **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
        return microagg.protect(frame, **chosen)


def with_column(values, name="other", **settings):
    """The release of a table that has one more column, left as it is on purpose if it has no other role."""
    others = (settings.get(role) or () for role in ("drop", "renumber", "confidential", "strata"))
    if not any(name in role for role in others):
        settings = {"known": [name], **settings}
    return protected(BASE.assign(**{name: values}), **settings)


def labels():
    return protected(BASE).partition.labels


def found(release, words):
    return [c for c in release.evidence.cautions if words in c.words]


# Verdicts


def test_green_if_k_holds_alone_and_nothing_is_known():
    evidence = protected(BASE).evidence
    assert evidence.verdict == "green"
    (note,) = evidence.cautions  # said once, of every frame that keeps its order
    assert (note.severity, "order and index of the original" in note.words) == ("note", True)
    assert evidence.verdict_words.startswith("k = 3 holds in the table (not yet written).")
    assert evidence.known_words == ""


def test_green_if_k_holds_with_what_is_known():
    release = with_column(labels() % 2)  # tells groups apart, not records
    assert release.with_known.smallest_class >= 3
    evidence = release.evidence
    assert evidence.verdict == "green"
    assert [c.severity for c in evidence.cautions] == ["note", "note"]
    assert "also against someone who knows every unprotected column" in evidence.verdict_words


def test_amber_if_k_holds_alone_only():
    release = with_column(np.arange(N) % 2)
    assert release.risk.smallest_class >= 3 > release.with_known.smallest_class
    evidence = release.evidence
    assert evidence.verdict == "amber"
    assert "but not against someone who also knows the unprotected ones" in evidence.verdict_words
    assert evidence.as_dict()["risk"]["with_known"]["below_k"] > 0


def test_confidential_and_dropped_columns_are_not_known():
    for role in ("confidential", "drop"):
        release = with_column(np.arange(N) % 2, **{role: ["other"]})
        assert release.evidence.verdict == "green", role


def test_amber_by_a_caution_though_k_holds():
    release = protected(BASE.set_index(pd.Index([f"r{i}" for i in range(N)])))
    assert min(release.risk.smallest_class, release.with_known.smallest_class) >= 3
    assert release.evidence.verdict == "amber"
    assert "but 1 point must be decided before release" in release.evidence.verdict_words


@pytest.mark.parametrize("severity", ["note", "warning", "amber"])
def test_the_severest_caution_decides(severity, monkeypatch):
    evidence = protected(BASE).evidence
    monkeypatch.setattr(Evidence, "cautions", [Caution(severity, ("income",), "A fact.")])
    assert evidence.verdict == ("amber" if severity == "amber" else "green")


def test_red_if_the_written_file_does_not_hold():
    evidence = protected(BASE).evidence
    broken = verify_all(BASE, [Promise(3, ["income", "rent"])])
    counted = replace(evidence, counted=CountedFile("safe.csv", tuple(broken), "00"))
    assert counted.verdict == "red"
    assert counted.verdict_words == "k = 3 does not hold in the written file."
    assert "does not hold for 90 records" in counted.counted_words


@pytest.mark.parametrize(
    ("settings", "passed"),
    [
        ({"max_loss": 100}, [True]),
        ({"max_loss": 0.001}, [False]),
        ({"max_linkage": 1}, [True]),
        ({"max_linkage": 0.01}, [False]),
        ({"max_loss": 100, "max_linkage": 0.01}, [True, False]),
        ({}, []),
    ],
)
def test_a_threshold_that_is_missed_is_red(settings, passed):
    evidence = protected(BASE, **settings).evidence
    assert [t.passed for t in evidence.thresholds] == passed
    assert evidence.verdict == ("green" if all(passed) else "red")
    assert all(passed) or "above what the plan accepts" in evidence.verdict_words


def test_linkage_is_accepted_with_what_is_known():
    release = with_column([f"p{i}" for i in range(N)])
    alone, known = release.risk.record_linkage, release.with_known.record_linkage
    assert alone < 0.9 < known
    accepted = replace(release.evidence, plan=replace(release.plan, accept=Accept(linkage=0.9)))
    assert [t.passed for t in accepted.thresholds] == [False]


def test_a_sampled_linkage_must_pass_with_its_upper_end():
    evidence = protected(BASE).evidence
    linkage = evidence.with_known.linkage
    sampled = replace(linkage, share=0.1, low=0.05, high=0.15, sampled=True)
    for limit, passed in ((0.12, False), (0.16, True)):
        known = replace(evidence.with_known, linkage=sampled)
        plan = replace(evidence.plan, accept=Accept(linkage=limit))
        more = replace(evidence, with_known=known, plan=plan)
        (threshold,) = more.thresholds
        assert threshold.passed is passed
        assert threshold.found == "10.0 % (up to 15.0 %)"


# Cautions: each rule fires, and does not fire

IDS = [f"p{i}" for i in range(N)]
HOUSEHOLDS = [f"h{i // 3}" for i in range(N)]


def test_k_of_one():
    assert [c.severity for c in found(protected(BASE, k=1), "protects nothing")] == ["amber"]
    assert not found(protected(BASE, k=2), "protects nothing")


def test_nothing_confidential_is_a_note_where_something_is_left():
    release = with_column(labels() % 2)
    assert [c.severity for c in found(release, "No column is named as confidential")] == ["note"]
    assert not found(protected(BASE), "No column is named as confidential")
    named = with_column(labels() % 2, confidential=["other"])
    assert not found(named, "No column is named as confidential")


def test_known_columns_are_ranked_with_a_way_out():
    frame = BASE.assign(parity=np.arange(N) % 2, person=IDS, harmless=1)
    release = protected(frame, known=["person"])
    (caution,) = found(release, "by someone who knows the unprotected columns")
    assert caution.severity == "amber"
    assert caution.columns[0] == "person"  # the most harmful first
    assert "harmless" not in caution.columns
    assert "Every record can be narrowed down to fewer than 3" in caution.words
    assert "This makes k hold: --drop parity,person." in caution.advice
    assert release.evidence.harms[0].name == "person"
    assert not found(with_column(labels() % 2), "by someone who knows the unprotected columns")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (IDS, "different in every record, so it identifies records"),
        ([*IDS[:-1], IDS[0]], "different in nearly every record"),
        ([*IDS[:30], *[None] * 60], "every record that has a value (33.3 % of them)"),
        (HOUSEHOLDS, "looks like an id that repeats: 30 different values in 90 records"),
    ],
)
def test_identifiers(values, words):
    (caution,) = found(with_column(values), words)
    assert (caution.severity, caution.columns) == ("amber", ("other",))
    assert "rop it" in caution.advice
    assert "renumber" not in caution.advice
    for role in ("drop", "renumber"):
        assert not found(with_column(values, **{role: ["other"]}), words)


def test_measurements_that_all_differ_need_no_role():
    frame = BASE.assign(wage=RNG.lognormal(8, 1, N), sold=RNG.permutation(10**6)[:N])
    release = protected(frame)
    assert release.plan.known == ("wage", "sold")
    assert 'known = ["wage", "sold"]' in release.plan.to_toml()
    assert protected(frame, confidential=["wage"]).plan.known == ("sold",)


@pytest.mark.parametrize("values", [["a", "b", "c"] * 30, [None] * N, NOISE.round(1)])
def test_what_is_no_identifier(values):
    release = with_column(values)
    assert not found(release, "identifies records")
    assert not found(release, "looks like an id")


@pytest.mark.parametrize("role", ["known", "confidential"])
@pytest.mark.parametrize("function", [np.log, np.negative, np.rint])
def test_a_column_from_which_a_protected_one_follows(role, function):
    settings = {"confidential": ["other"]} if role == "confidential" else {}
    release = with_column(function(BASE["income"]), **settings)
    (caution,) = found(release, "other is unprotected and gives income away")
    assert (caution.severity, caution.columns) == ("amber", ("other", "income"))
    assert "Protect other too, or drop it." in caution.advice
    assert release.evidence.verdict == "amber"
    assert not found(with_column(BASE["income"] * NOISE), "gives income away")
    assert not found(with_column(function(BASE["income"]), drop=["other"]), "gives income away")


def test_groups_of_one_unit():
    names = [f"firm {g}" for g in labels()]  # every group is one firm
    (caution,) = found(with_column(names), "all records have the same other")
    assert (caution.severity, caution.columns) == ("amber", ("other",))
    assert "100 % of the groups" in caution.words
    assert "Make other the unit" in caution.advice
    dropped = found(with_column(names, drop=["other"]), "all records have the same other")
    assert [c.severity for c in dropped] == ["warning"]  # it is not in the file to be read off
    renumbered = found(with_column(names, renumber=["other"]), "all records have the same other")
    assert [c.severity for c in renumbered] == ["amber"]
    assert not found(
        with_column(names, unit="other", renumber=["other"]), "all records have the same"
    )
    mixed = [f"firm {i}" for i in np.argsort(NOISE) % 30]
    assert not found(with_column(mixed), "different other")


def test_a_caution_shows_names_but_never_as_markup():
    caution = Caution("amber", ("a\x1b[31m",), "A fact.", "Do this.")
    assert caution.sentence == "A fact. Do this."
    assert Caution("note", (), "A fact.").sentence == "A fact."
    assert caution.as_dict() == {
        "severity": "amber",
        "columns": ["a\x1b[31m"],
        "words": "A fact. Do this.",
    }
    release = with_column(IDS, name="x\x1b[31m")
    assert all("\x1b" not in c.sentence for c in release.evidence.cautions)


# The JSON


def test_numbers_have_three_digits():
    def gather(value):
        if isinstance(value, dict):
            return [x for inner in value.values() for x in gather(inner)]
        if isinstance(value, list):
            return [x for inner in value for x in gather(inner)]
        return [value] if isinstance(value, float) else []

    release = with_column(np.arange(N) % 2)
    evidence = Evidence.of(release.plan, release.measured(analyses=["income ~ rent"]))
    numbers = gather(evidence.as_dict())
    assert len(numbers) > 50
    assert [x for x in numbers if x != float(f"{x:.3g}")] == []


# What must show on real tables

EIA = [
    *("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES"),
    *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
]
EUSILC = ["age", "eqIncome", "hy040n", "hy050n"]


def test_eia_by_its_amounts_is_amber_and_names_the_utility():
    release = protected(reference_table("eia"), columns=EIA, k=3, method="auto", effort="fast")
    assert release.evidence.verdict == "amber"
    assert release.risk.smallest_class >= 3
    (unit,) = (c for c in found(release, "all records have the same") if c.columns == ("UTILNAME",))
    assert unit.severity == "amber"
    share = float(unit.words.split(" %")[0].removeprefix("In "))
    assert 75 < share < 92  # with k = 3, groups are months of one utility
    assert "Make UTILNAME the unit" in unit.advice
    (known,) = found(release, "by someone who knows the unprotected columns")
    assert "UTILNAME" in known.columns


def test_eusilc_is_amber_and_names_the_household_and_the_most_harmful_columns():
    table = reference_table("eusilc")
    with pytest.raises(InputError, match="must have a role; rb030 has none"):
        protected(table, columns=EUSILC, k=5)
    chosen = {"columns": EUSILC, "k": 5, "method": "auto", "effort": "fast"}
    release = protected(table, **chosen, known=["rb030"])
    evidence = release.evidence
    assert evidence.verdict == "amber"
    assert evidence.alone.record_linkage == pytest.approx(0.184, abs=0.012)
    assert evidence.with_known.record_linkage > 0.85
    households = [c for c in found(release, "different values of db030") if c.columns == ("db030",)]
    assert [c.severity for c in households] == ["amber"]
    share = float(households[0].words.split(" %")[0].removeprefix("In "))
    assert 35 < share < 50
    (known,) = found(release, "by someone who knows the unprotected columns")
    assert len(known.columns) >= 3
    assert evidence.harms[0].name in known.columns


def test_eusilc_is_green_once_ids_are_dropped_and_the_rest_is_declared():
    table = reference_table("eusilc")
    rest = [name for name in table.column_names if name not in [*EUSILC, "db030", "rb030"]]
    release = protected(
        table,
        columns=EUSILC,
        k=5,
        method="auto",
        effort="fast",
        drop=["db030", "rb030"],
        confidential=rest,
        unit="db030",
    )
    # Groups agree in what was declared, which is a matter of its own.
    assert [c.words[:15] for c in release.cautions if c.severity == "amber"] == ["Groups disclose"]
    accepted = replace(release.evidence, plan=release.plan.override(max_agreeing=1.0))
    assert accepted.verdict == "green"
    assert release.roles.known == []
    assert "5 units (db030)" in release.evidence.promise
