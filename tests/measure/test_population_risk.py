"""Individual risk by published figures, its limits and a slow twin."""

import math

import numpy as np
import pytest

import naive_requirements as naive
from microagg.grouping.require.amount_rules import individual_risk
from microagg.kernels.labels import combine
from microagg.measure.risk import household_risk, sample_risk

CLASSES = combine(np.array([[2, 3, 2, 2, 3, 3, 1, 2], [3] * 6 + [4, 3], [1, 3, 1, 2, 1, 1, 1, 1]]))
WEIGHTS = np.array([18, 45.5, 39, 17, 92, 8, 123.5, 51])


# Frequencies in a sample and in its population, and the risks published for them.
PUBLISHED = [
    (
        [3, 1, 3, 1, 2, 2, 1, 3],
        [108, 45.5, 108, 17, 100, 100, 123.5, 108],
        [
            *(0.01369863, 0.08579129, 0.01369863, 0.17707583),
            *(0.01877883, 0.01877883, 0.03931625, 0.01369863),
        ],
    ),
    (
        [2, 2, 2, 1, 1, 1, 1, 2],
        [110, 84.5, 84.5, 17, 541, 8, 5, 110],
        [
            *(0.01714426, 0.02204233, 0.02204233, 0.17707583),
            *(0.01165448, 0.29706308, 0.40235948, 0.01714426),
        ],
    ),
]


@pytest.mark.parametrize(("sample", "population", "risks"), PUBLISHED)
def test_published_risks(sample, population, risks):
    found = individual_risk(np.array(sample), np.array(population))
    assert found == pytest.approx(risks, abs=5e-9)
    assert naive.exact_risk(3, 108) == pytest.approx(0.01355297, abs=5e-9)


def test_published_risks_of_a_table():
    risks = PUBLISHED[0][2]
    found = sample_risk(CLASSES, WEIGHTS)
    assert (found.largest, found.expected) == pytest.approx((max(risks), sum(risks)), abs=5e-8)
    assert found.mean == pytest.approx(sum(risks) / 8, abs=5e-9)


def test_published_household_risk():
    risks = household_risk(np.array([0.02, 0.03, 0.5, 0.03]), np.array([1, 1, 0, 1]))
    assert risks.round(3).tolist() == [0.078, 0.078, 0.5, 0.078]
    alone = household_risk(np.array([0.1, 0.2]), np.array([-1, -1]))
    assert alone == pytest.approx([0.1, 0.2])  # without a household each is one


@pytest.mark.parametrize("f", [1, 2, 3, 9])
def test_who_is_the_whole_population_is_found_among_f(f):
    near = np.array([f, f * (1 + 1e-9), f * (1 + 9e-5), f * (1 + 1.1e-4), f / 2])
    risks = individual_risk(np.full(5, f), near)
    assert risks == pytest.approx(1 / f, rel=2e-4)
    assert (np.diff(risks[:4]) <= 1e-12).all()  # no jump where the series begins


def test_plain_data_have_no_record():
    found = sample_risk(CLASSES, WEIGHTS, np.array([0, 0, 1, 1, 2, 2, 3, 3])).as_dict()
    assert found.keys() == {"max", "mean", "expected", "household"}
    assert found["household"]["expected"] >= found["expected"]
    assert all(math.isfinite(v) for v in found["household"].values())
