"""Random mixed tables by random plans, from file to file: what is claimed is counted again by pandas."""

from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

from attacks.checked import Checked
from attacks.claims import check_admissible, check_aggregates, check_verdict
from attacks.mixed_cases import draw_linked, draw_mixed
from attacks.sweep import carry_out, sweep


@pytest.mark.parametrize(
    "seeds",
    [
        range(60),
        *(
            pytest.param(range(s, s + 500), marks=pytest.mark.long)
            for s in range(10_000, 14_000, 500)
        ),
    ],
)
def test_random_mixed_tables_keep_every_promise_or_are_refused(tmp_path, seeds):
    ends = sweep(tmp_path, seeds)
    assert ends["amber"] + ends["green"] >= len(seeds) / 2
    assert ends["green"] >= 2
    assert ends["values compared"] > 500
    assert set(ends) <= {"green", "amber", "refused", "no plan", "values compared"}


def test_a_value_far_from_all_others_does_not_keep_the_search_going(tmp_path):
    assert carry_out(tmp_path, draw_mixed(1_062_508)).claims.verdict == "amber"


def test_no_file_is_green_whose_households_can_be_told_apart(tmp_path):
    ends: Counter[str] = Counter()
    for seed in range(40):
        found = carry_out(tmp_path, draw_linked(seed))
        ends["refused" if found.claims is None else found.claims.verdict] += 1
    assert ends["green"] >= 2  # whole households that move together
    assert ends["amber"] >= 20


def test_a_green_verdict_over_households_that_can_be_told_apart_is_noticed(tmp_path):
    case = next(
        case for case in map(draw_linked, range(40)) if case.plan.unit_section.mode == "count"
    )
    claims = carry_out(tmp_path, case).claims
    assert claims is not None
    talked_green = replace(claims, said={**claims.said, "verdict": "green", "cautions": []})
    checked = Checked(case, talked_green, tmp_path / f"out{case.ending}")
    with pytest.raises(AssertionError, match="sets of rows"):
        check_verdict(checked, talked_green)


@pytest.mark.parametrize(
    ("name", "check", "words"),
    [
        ("number", check_aggregates, "is not the mean"),
        ("nominal", check_aggregates, "is not the most frequent"),
        ("nominal", check_admissible, "is held by 0"),
    ],
)
def test_a_value_that_is_no_aggregate_is_noticed(tmp_path, name, check, words):
    cases = (case for case in map(draw_linked, range(60)) if name in case.frame)
    counting = (case for case in cases if case.plan.unit_section.mode == "count")
    case = next(case for case in counting if case.ending == ".parquet")
    claims = carry_out(tmp_path, case).claims
    assert claims is not None
    table = pd.read_parquet(tmp_path / "out.parquet")
    shared = table[name].eq(table[name].iloc[0])
    other = table[name].iloc[0] * 1.5 if name == "number" else "purplecanary"
    table.loc[shared, name] = other
    table.to_parquet(tmp_path / "out.parquet", index=False)
    checked = Checked(case, claims, tmp_path / "out.parquet")
    with pytest.raises(AssertionError, match=words):
        check(checked)
