"""The public verdict is never greener than the board's, and comes from the file and the plan alone."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import microagg
from conftest import reference_table
from microagg.plan.sections import Accept

N = 120
RNG = np.random.default_rng(7)
BASE = pd.DataFrame({"income": RNG.lognormal(8, 1, N).round(2), "rent": RNG.normal(500, 90, N)})


def both(frame, tmp_path, **settings):
    """The board's verdict, and the model of the public report."""
    chosen = {"k": 3, "columns": ["income", "rent"], "method": "mdav", **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
        release = microagg.protect(frame, **chosen)
        release.report(tmp_path / "public.html", public=True)
    return release.evidence, json.loads((tmp_path / "public.json").read_text())


def test_green_where_the_file_tells_all(tmp_path):
    evidence, public = both(BASE, tmp_path)
    assert evidence.verdict == public["verdict"] == "green"
    assert public["cautions"] == []
    assert "of all protected values is shared by 3 records or more" in public["counted"]
    strata = BASE.assign(region=np.arange(N) % 4)
    assert both(strata, tmp_path, strata=["region"])[1]["verdict"] == "green"
    constant = BASE.assign(year=2020)
    assert both(constant, tmp_path)[1]["verdict"] == "green"


def test_grey_where_originals_could_tell_more(tmp_path):
    coarse = pd.qcut(BASE["income"], 2, labels=False)
    secret = BASE.assign(diagnosis=coarse)
    evidence, public = both(secret, tmp_path, confidential=["diagnosis"])
    assert (evidence.verdict, public["verdict"]) == ("green", "grey")
    assert "The file alone does not show" in public["judged"]
    assert "The file alone does not show" in (tmp_path / "public.html").read_text()
    plan = microagg.Plan.of(k=3, columns=["income", "rent"], method="mdav")
    limited = replace(plan, accept=Accept(loss=100.0))
    release = microagg.protect(BASE, plan=limited)
    assert release.report_model(public=True)["verdict"] == "grey"


def test_a_column_that_gives_a_protected_one_away_is_not_green_in_public(tmp_path):
    whole = pd.DataFrame({"size": np.repeat(np.arange(1, 5), 30), "rent": BASE["rent"]})
    whole["double"] = whole["size"] * 2
    settings = {"columns": ["size", "rent"], "confidential": ["double"]}
    evidence, public = both(whole, tmp_path, **settings)
    assert evidence.verdict == "amber"
    assert public["verdict"] in ("grey", "amber")


@pytest.mark.parametrize(
    ("column", "settings", "words"),
    [
        (np.repeat(np.arange(N // 2), 2), {"renumber": ["other"]}, "shows which rows belong"),
        (np.arange(N), {"known": ["other"]}, "so it identifies records"),
        (
            [f"home {i // 2}" for i in range(N)],
            {"confidential": ["other"]},
            "shows which rows belong",
        ),
    ],
)
def test_what_the_file_shows_is_amber_in_public_too(tmp_path, column, settings, words):
    evidence, public = both(BASE.assign(other=column), tmp_path, **settings)
    assert evidence.verdict == public["verdict"] == "amber"
    (caution,) = (c for c in public["cautions"] if words in c["words"])
    assert caution["columns"] == ["other"]
    assert words in (tmp_path / "public.html").read_text()


def test_groups_that_agree_in_an_answer_are_amber_in_public_too(tmp_path):
    groups = microagg.partition(BASE, k=3, method="mdav").labels
    frame = BASE.assign(illness=[f"illness {group % 8}" for group in groups])
    evidence, public = both(frame, tmp_path, confidential=["illness"])
    assert evidence.verdict == public["verdict"] == "amber"
    assert ["illness"] in [caution["columns"] for caution in public["cautions"]]


def test_blocks_and_row_labels_are_amber_in_public_too(tmp_path):
    evidence, public = both(BASE, tmp_path, per_column=True)
    assert evidence.verdict == public["verdict"] == "amber"
    labelled = BASE.set_axis([f"person {i}" for i in range(N)])
    evidence, public = both(labelled, tmp_path)
    assert evidence.verdict == public["verdict"] == "amber"


def test_firms_that_fill_their_groups_are_amber_in_public_too(tmp_path):
    table = reference_table("eia").to_pandas()
    often = table["UTILITYID"].map(table["UTILITYID"].value_counts()) >= 3
    amounts = [
        c for c in table.select_dtypes("number").columns if c not in ("UTILITYID", "YEAR", "MONTH")
    ]
    frame = table.loc[often, ["UTILITYID", *amounts[:10]]].reset_index(drop=True)
    evidence, public = both(
        frame, tmp_path, columns=amounts[:10], strata=["UTILITYID"], k=3, method="mdav"
    )
    assert evidence.verdict == public["verdict"] == "amber"
    assert any("UTILITYID" in c["columns"] for c in public["cautions"])
