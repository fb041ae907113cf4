"""Each measure of risk against a hand-computed example, its naive twin and published figures."""

import numpy as np
import pandas as pd
import pytest

import microagg
import naive_measures as naive
from microagg import DisclosureRiskWarning, InputError
from naive_requirements import closeness


def protected(X, k):
    return microagg.Microaggregator(k=k).fit_transform(X)


@pytest.mark.parametrize("sample", [None, 10**9])
def test_exact_linkage_has_no_interval(sample):
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = microagg.risk(X, protected(X, 3), sample=sample).linkage
    assert (found.low, found.high, found.records) == (found.share, found.share, 40)
    assert not found.sampled


def test_sampled_linkage_has_an_interval_that_holds_the_truth():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    Y = protected(X, 3)
    truth = microagg.risk(X, Y).record_linkage
    held = 0
    for seed in range(40):
        found = microagg.risk(X, Y, sample=200, random_state=seed).linkage
        assert found.sampled
        assert found.records == 200
        held += found.low <= truth <= found.high
    assert held >= 36


def test_linkage_reports_progress():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    seen = []
    microagg.risk(X, np.round(X, 1)).linked(seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 20_000


@pytest.fixture
def patients():
    rng = np.random.default_rng(4)
    n = 90
    return pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "bmi": rng.normal(25, 4, n).round(1),
            "illness": rng.choice(["flu", "cold", "none", None], n),
            "cost": rng.integers(0, 6, n) * 100.0,
            "turnover": rng.lognormal(5, 2, n).round(-2),
        }
    )


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("k", [1, 2, 5, 45])
def test_diversity_and_closeness_equal_their_naive_twins(patients, k):
    columns = ["age", "bmi"]
    safe = microagg.protect(patients, k=k, columns=columns).data
    r = microagg.risk(patients, safe, columns, confidential=["illness", "cost"])
    rows = safe[columns].to_numpy().tolist()
    for name, ordered in (("illness", False), ("cost", True)):
        secret = [None if pd.isna(value) else value for value in patients[name]]
        distinct, entropy = naive.diversity(rows, secret)
        found = r.diversity[name]
        assert (found.distinct_l, found.entropy_l) == (min(distinct), pytest.approx(min(entropy)))
        farthest = max(closeness(secret, 0, ordered, own) for own in naive.members(rows))
        assert found.t == pytest.approx(farthest)


def test_closeness_by_hand():
    # Li et al. 2007, example of section 5: salaries 3k..11k, the class {3k, 4k, 5k} is at 0.375.
    salary = [3, 4, 5, 6, 11, 8, 7, 9, 10]
    frame = pd.DataFrame({"zip": [1.0] * 3 + [2.0] * 3 + [3.0] * 3, "salary": salary})
    r = microagg.risk(frame, frame, ["zip"], confidential=["salary"])
    assert r.diversity["salary"].t == pytest.approx(0.375, rel=1e-6)
    assert r.diversity["salary"].distinct_l == 3
    assert r.diversity["salary"].entropy_l == pytest.approx(3)


def released(frame, columns):
    """The columns protected with k = 5, and no word about the others: they are measured here."""
    rest = [name for name in frame.columns if name not in columns]
    return microagg.protect(frame, k=5, columns=columns, confidential=rest).data


def test_a_group_that_agrees_is_told_without_its_value():
    frame = pd.DataFrame(
        {"a": [1.0, 1.0, 1.0, 2.0, 2.0], "secret": ["x", "y", "y", "SECRET", "SECRET"]}
    )
    with pytest.warns(
        DisclosureRiskWarning, match=r"disclose confidential values: secret \(2 records\)"
    ) as seen:
        r = microagg.risk(frame, frame, confidential=["secret"])
    assert "SECRET" not in str(seen[0].message)
    assert r.diversity["secret"].distinct_l == 1
    assert r.diversity["secret"].agreement.records == 2


def test_a_confidential_number_is_not_compared(patients):
    safe = released(patients, ["age", "bmi"])
    both = [frame.drop(columns="turnover") for frame in (patients, safe)]
    r = microagg.risk(*both, confidential="cost", k=5)
    assert r.smallest_class == 5
    assert r.below_k == 0
    with pytest.raises(InputError, match="'cost' is named as one to compare and as"):
        microagg.risk(patients, safe, ["cost", "age"], confidential=["cost"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample": 0}, "at least one record"),
        ({"confidential": ["b"]}, "which arrays do not have"),
        ({"k": 0}, "at least 1"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        _ = microagg.risk([1.0, 2.0], [1.0, 2.0], **settings).record_linkage


def test_unknown_confidential_column(patients):
    with pytest.raises(InputError, match="no column 'x'"):
        microagg.risk(patients, patients, ["age"], confidential=["x"])
