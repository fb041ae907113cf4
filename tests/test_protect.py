"""protect(): aggregates, rounding, and each column by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import DisclosureRiskWarning, InputError

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])


def by_group(release, function):
    return FRAME["a"].groupby(release.partition.labels).transform(function).to_numpy()


@pytest.mark.parametrize(
    ("aggregate", "function"),
    [
        ("mean", "mean"),
        ("median", "median"),
        ("midrange", lambda v: (v.min() + v.max()) / 2),
        ("maximum", "max"),
        ("minimum", "min"),
    ],
)
def test_aggregates(aggregate, function):
    release = microagg.protect(FRAME, k=4, aggregate=aggregate)
    assert release.data["a"].to_numpy() == pytest.approx(by_group(release, function))
    assert release.aggregate == aggregate
    assert release.risk.smallest_class >= 4


def test_the_mean_is_the_default():
    release = microagg.protect(FRAME, k=4)
    assert release.aggregate == "mean"
    assert release.data.mean().to_numpy() == pytest.approx(FRAME.mean().to_numpy())


def test_each_column_by_itself_is_warned_of_and_loses_less(tmp_path):
    with pytest.warns(
        DisclosureRiskWarning, match="'a', 'b' is protected by itself.*not k-anonymity"
    ):
        release = microagg.protect(FRAME, k=4, per_column=True)
    for name in "ab":
        assert release.data[name].value_counts().min() >= 4
    assert release.risk.smallest_class < 4
    assert release.utility.information_loss < microagg.protect(FRAME, k=4).utility.information_loss
    assert [columns for columns, _ in release.parts] == [["a"], ["b"]]
    with pytest.raises(AttributeError, match="each column was protected by itself"):
        _ = release.partition
    assert release.write(tmp_path / "safe.csv").holds


def test_one_column_by_itself_is_k_anonymous_and_needs_no_warning():
    release = microagg.protect(FRAME[["a"]], k=4, per_column=True)
    assert release.partition.sizes.min() >= 4


def test_individual_ranking_is_optimal_in_each_column():
    with pytest.warns(DisclosureRiskWarning, match="not k-anonymity"):
        release = microagg.protect(FRAME, k=4, method="simple-plus", per_column=True)
    for name, part in zip("ab", release.parts, strict=True):
        assert part[1].sse == microagg.partition(FRAME[name], 4, method="hansen-mukherjee").sse


@pytest.mark.parametrize(
    ("cost", "aggregate"),
    [
        ("sse", "mean"),
        ("sae", "median"),
        ("max", "midrange"),
        ("round-up", "maximum"),
        ("round-down", "minimum"),
    ],
)
def test_the_aggregate_follows_the_cost(cost, aggregate):
    release = microagg.protect(FRAME[["a"]], k=4, method="staggered", cost=cost)
    assert release.aggregate == aggregate
    assert release.data["a"].value_counts().min() >= 4


def test_univariate_methods_refuse_several_columns():
    with pytest.raises(
        InputError, match=r"'simple' is for one column; the data have 2.*per_column"
    ):
        microagg.protect(FRAME, k=4, method="simple")
    with pytest.raises(InputError, match="cost='sae' is for one column"):
        microagg.protect(FRAME, k=4, cost="sae")


def test_unknown_cost():
    with pytest.raises(InputError, match="cost='huber' is not known"):
        microagg.partition(FRAME["a"], 4, cost="huber")


def test_unknown_aggregate():
    with pytest.raises(InputError, match="aggregate='mode' is not known"):
        microagg.protect(FRAME, k=4, aggregate="mode")


def test_representation_shows_no_record():
    frame = FRAME.assign(a=123456.789)
    assert "123456" not in repr(microagg.protect(frame, k=4))
