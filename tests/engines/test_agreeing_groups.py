"""Groups that agree and the price of claims mean the same on every engine: counted by code of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from microagg.engines.disk_counts import CountsOnDisk
from microagg.engines.release_counts import CountedColumns, count_release
from microagg.formats.batches import open_batches
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

ENGINES = ["memory", "disk"]


def test_spark_counts_the_same(spark, tmp_path):
    frame = table(1500).assign(row=np.arange(1500))
    frame.to_parquet(tmp_path / "in.parquet", index=False)
    plan = Plan.of(
        k=4,
        columns=["a", "b"],
        unit={"column": "home", "name": "household"},
        confidential={"ill": "medical file", "party": "", "pay": ""},
        drop=["home", "row"],
        effort="fast",
    )
    found = run(Job(tmp_path / "in.parquet", tmp_path / "out", plan, engine="spark")).evidence
    after = pd.read_parquet(tmp_path / "out")
    assert naive(after, "ill")[0] > 0
    assert found.verdict == "amber"
    (told,) = [c for c in found.cautions if "disclose confidential values" in c.words]
    assert f"ill ({naive(after, 'ill')[0]} records)" in told.words
    assert ("party" in told.words) == (naive(after, "party")[0] > 0)
    view = found.as_dict()["risk"]["if_confidential_known"]
    assert view["claims"][0]["name"] == "pay"
    assert {c["name"]: c["reason"] for c in view["claims"]}["ill"] == "medical file"


def table(n: int = 4000) -> pd.DataFrame:
    """Two confidential columns: one with a common value, one without."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "b": rng.normal(size=n),
            "home": np.repeat(np.arange(n // 2), 2),
            "ill": np.where(np.abs(a) > 2.2, "yes", rng.choice(["no", "no", "no", None], n)),
            "party": np.where(a > 0, rng.choice([*"xyz"], n), rng.choice([*"xyzuvw"], n)),
            "pay": np.exp(rng.normal(size=n)).round(3),
        }
    )


def naive(after, column, least=0.5):
    """Records of classes that agree in a value that a smaller share has, and in a common one."""
    values = after[column].fillna("?")
    agree = values.groupby([after["a"], after["b"]]).transform("nunique") == 1
    common = values.map(values.value_counts()) >= least * len(after)
    return int((agree & ~common).sum()), int((agree & common).sum())


def below(after, columns, k):
    codes = [after[c].fillna(-1 if c == "pay" else "?") for c in columns]
    homes = after["home"].groupby(codes).transform("nunique")
    return float((homes < k).mean())


@pytest.fixture
def protected(request, tmp_path):
    def work(engine, frame, **settings):
        source, target = tmp_path / "in.parquet", tmp_path / f"{engine}.parquet"
        frame.to_parquet(source, index=False)
        plan = Plan.of(
            k=4,
            columns=["a", "b"],
            unit={"column": "home", "name": "household"},
            confidential={"ill": "medical file", "party": "", "pay": ""},
            drop=["home"],
            effort="fast",
            **settings,
        )
        found = run(Job(source, target, plan, engine=engine)).evidence
        return found, pd.read_parquet(target)

    return work


@pytest.mark.parametrize("engine", ENGINES)
def test_groups_that_agree_are_counted_in_all_records(protected, engine):
    frame = table()
    found, after = protected(engine, frame)
    for column in ("ill", "party"):
        agreement = found.alone.diversity[column].agreement
        assert (agreement.exact, agreement.harmless) == naive(after, column)
        assert agreement.of == len(frame)
    assert naive(after, "ill")[0] > 0
    assert naive(after, "ill")[1] > 0
    assert found.verdict == "amber"
    (told,) = [c for c in found.cautions if "disclose confidential values" in c.words]
    assert f"ill ({naive(after, 'ill')[0]} records)" in told.words
    hidden = "--require hidden:ill=5 --require hidden:party=5 --require hidden:pay=5."
    assert (hidden if engine == "memory" else "--require distinct:ill=2") in told.advice


@pytest.mark.parametrize("engine", ENGINES)
def test_the_price_of_a_claim_is_that_of_all_records(protected, engine):
    frame = table()
    found, after = protected(engine, frame, keep_order=True)
    after = after.assign(home=frame["home"])
    view = found.if_confidential_known
    assert view.below_k == pytest.approx(below(after, ["a", "b", "ill", "party", "pay"], 4))
    sizes = after.fillna("?").groupby(["a", "b", "ill", "party", "pay"]).size()
    assert view.smallest_class == sizes.min()
    assert view.unique == pytest.approx((sizes == 1).sum() / len(after))
    assert view.record_linkage > found.with_known.record_linkage
    stakes = {stake.name: stake.below_k for stake in found.stakes}
    assert stakes == pytest.approx(
        {c: below(after, ["a", "b", c], 4) for c in ("ill", "party", "pay")}
    )
    assert found.stakes[0].name == "pay"
    assert "fewer than 4 households" in found.claim_words


@pytest.mark.parametrize("engine", ENGINES)
def test_the_requirement_cures_it(protected, engine):
    require = {"distinct": {"ill": 2, "party": 2}}
    found, after = protected(engine, table(), require=require)
    assert naive(after, "ill") == naive(after, "party") == (0, 0)
    assert not [c for c in found.cautions if "confidential value" in c.words]


@pytest.mark.parametrize("text", [False, True])
def test_counted_in_small_parts_and_little_memory(tmp_path, text):
    frame = table(3000)
    frame[["a", "b"]] = frame[["a", "b"]].round() + 0.0  # −0 is another text
    # Half of the records each: no news, neither the one nor the other.
    # A number that more than a tenth have is no news if it is an amount: of codes it is.
    frame["code"] = frame["a"]
    frame["wage"] = np.where(frame["a"] == 0, 0.0, 10 * frame["a"] + frame["b"])
    frame["half"] = np.where(frame["a"].rank(method="first") <= 1500, "f", "m")
    path = tmp_path / ("in.csv" if text else "in.parquet")
    if text:
        frame.fillna("?").to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False, row_group_size=97)
        assert pq.ParquetFile(path).num_row_groups > 20
    columns = ["ill", "party", "home", "half", "wage", "code"]
    rows = CountsOnDisk(open_batches(path), tmp_path, 1 << 16)
    at = CountedColumns(
        ["a", "b"], ["a", "b"], [], dict(zip(columns, columns, strict=True)), ["wage", "code"], None
    )
    found = count_release(rows, at, 2)[1].agreeing
    for column in columns:
        values = frame.assign(home=frame["home"].astype(str))
        common = 0.1 + 1e-9 if column == "wage" else 0.5
        assert (found[column].exact, found[column].harmless) == naive(values, column, common)
    assert found["wage"].exact
    assert found["wage"].harmless
    assert not found["code"].harmless
