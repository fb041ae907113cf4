"""The propensity score: how well a model tells protected records from original ones.

Both tables are stacked (N = 2n records, half of them protected) and a logistic regression
predicts which record is a protected one. pMSE = Σ(p̂−½)²/N (Woo, Reiter, Oganian & Karr 2009)
is 0 if it cannot tell and ¼ if it always can. With m parameters besides the intercept, a table
drawn at random from the very distribution that the original shows has the expectation m/(16n)
(Snoke, Raab, Nowok, Dibben & Slavkovic 2018: m·(1−c)²·c/N with c = ½); two independent samples
of one population have twice that.

Here: a column enters as its mid-rank among both tables, mapped to [−1, 1], so that skewed columns
cannot upset the fit. Group means keep every column's mean, which a model with main effects alone
could not tell from the original: squares and products go in too, as far as there are ten records for
each. Terms that others determine are left out, so that m is the number of those that are free.
Protected rows repeat; a row counts as often as it occurs.

Where a value is missing before or after, it has the middle rank 0 in both tables. With weights a record
counts by its weight, ranks are by weight, and n of the null expectation is Kish's effective number
(Σw)²/Σw².
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from microagg.base.typing import Floats
from microagg.measure.both_tables import Pair

_RECORDS_FOR_A_TERM = 10
_MOST_TERMS = 200
_ROWS_AT_ONCE = 1 << 13  # few enough for the cache
_STEPS = 25
_SINGULAR = 1e-10  # directions with a smaller share of the largest eigenvalue are rounding
_RIDGE = 1e-9  # keeps the fit finite where the model is certain
_CLOSE = 1e-12


@dataclass(frozen=True)
class Propensity:
    """How well a logistic regression tells the two tables apart."""

    pmse: float
    """Mean of (p̂−½)²: 0 to ¼, lower is better."""
    expected: float
    """What a table drawn from the original's own distribution would give: m/(16n)."""
    ratio: float
    """pmse/expected; up to 1 as good as redrawn, 2 as two samples of one population."""
    terms: int
    """Parameters m besides the intercept."""


def propensity(both: Pair) -> Propensity:
    """Fit the model and measure how far its predictions are from a guess."""
    from threadpoolctl import threadpool_limits

    if not both.names:
        return Propensity(0.0, 0.0, 0.0, 0)
    n = float(len(both))
    rows, weights, is_protected = _ranks(both)
    if both.weights is not None:
        n = float(both.weights.sum() ** 2 / np.square(both.weights).sum())
    with threadpool_limits(1):  # threads that wait for each other over small products take longer
        design = _Design(rows, weights)
        if not design.terms:
            return Propensity(0.0, 0.0, 0.0, 0)
        chance = _predict(design, is_protected, weights)
    pmse = float(np.sum(weights * np.square(chance - 0.5)) / weights.sum())
    expected = design.terms / (16 * n)
    return Propensity(pmse, expected, pmse / expected, design.terms)


def _ranks(both: Pair) -> tuple[Floats, Floats, Floats]:
    """Original and protected rows as mid-ranks from −1 to 1, the weight of each, and which are protected."""
    n, d = both.original.shape
    w = both.row_weights
    ranks = np.zeros((2 * n, d))
    for j in range(d):
        there = both.both_there[:, j]
        if not there.any():
            continue
        values = np.concatenate([table[there, j] for table in both.scaled])
        found, place = np.unique(values, return_inverse=True)
        mass = np.bincount(place, weights=np.tile(w[there], 2), minlength=len(found))
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        ranks[np.tile(there, 2), j] = 2 * middle[place] - 1
    if not both.is_complete:
        return ranks, np.tile(w, 2), np.repeat([0.0, 1.0], n)
    first = np.unique(both.classes, return_index=True)[1]
    rows = np.concatenate([ranks[:n], ranks[n + first]])
    weights = np.concatenate([w, np.bincount(both.classes, weights=w)])
    return rows, weights, np.repeat([0.0, 1.0], [n, len(first)])


class _Design:
    """A one, ranks, their squares and products; ``turn`` picks the directions that are free."""

    def __init__(self, rows: Floats, weights: Floats) -> None:
        d = rows.shape[1]
        most = min(weights.sum() / 2 // _RECORDS_FOR_A_TERM, _MOST_TERMS)
        self._squares = 2 * d <= most
        self._products = d * (d + 3) // 2 <= most
        if d > len(rows):
            # More columns than rows: coordinates within the space of the rows give the same model.
            left, lengths, _ = np.linalg.svd(rows, full_matrices=False)
            rows = left * lengths
        self._rows = rows
        gram = sum(_gram(F, weights[part]) for part, F in self) / weights.sum()
        centre = gram[0, 1:]
        values, vectors = np.linalg.eigh(gram[1:, 1:] - np.outer(centre, centre))
        free = values > _SINGULAR * max(values[-1], _SINGULAR)
        turn = vectors[:, free] / np.sqrt(values[free])
        self.terms = int(free.sum())
        # Columns: the intercept, then combinations with mean 0, variance 1 and no correlation.
        self.turn = np.block(
            [[np.ones((1, 1)), -(centre @ turn)[None, :]], [np.zeros((len(centre), 1)), turn]]
        )

    def __iter__(self) -> Iterator[tuple[slice, Floats]]:
        """Yield some rows at a time: where they are, and their terms."""
        for start in range(0, len(self._rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            u = self._rows[part]
            blocks = [np.ones((len(u), 1)), u]
            if self._products:
                blocks += [u[:, [j]] * u[:, j:] for j in range(u.shape[1])]
            elif self._squares:
                blocks.append(u * u)
            yield part, np.concatenate(blocks, axis=1)


def _gram(F: Floats, weights: Floats) -> Floats:
    """FᵀWF."""
    G = F * np.sqrt(weights)[:, None]
    return np.asarray(G.T @ G)


def _predict(design: _Design, is_protected: Floats, weights: Floats) -> Floats:
    """Fit by Newton's method with halved steps where a whole one overshoots; return p̂."""
    total = weights.sum()
    beta = np.zeros(design.terms + 1)
    now = _score(design, is_protected, weights, beta)
    for _ in range(_STEPS):
        likelihood, gradient, curvature, chance = now
        step = np.linalg.solve(curvature + _RIDGE * total * np.eye(len(beta)), gradient)
        if gradient @ step <= _CLOSE * total:
            break
        for _ in range(_STEPS):
            now = _score(design, is_protected, weights, beta + step)
            if now[0] >= likelihood:
                break
            step = step / 2
        else:
            return chance
        beta = beta + step
    return now[3]


def _score(
    design: _Design, is_protected: Floats, weights: Floats, beta: Floats
) -> tuple[float, Floats, Floats, Floats]:
    """Penalised log-likelihood, its gradient and curvature, and the predictions."""
    ridge = _RIDGE * weights.sum()
    chance = np.empty(len(weights))
    likelihood = -ridge * float(beta @ beta) / 2
    gradient = np.zeros(len(design.turn))
    curvature = np.zeros((len(design.turn), len(design.turn)))
    turned = design.turn @ beta
    for part, F in design:
        w, y = weights[part], is_protected[part]
        score = F @ turned
        half = np.abs(score) / 2
        # log(1 + eˢ) = s/2 + |s|/2 + log(1 + e^−|s|)
        likelihood += float(w @ ((y - 0.5) * score - half - np.log1p(np.exp(-2 * half))))
        p = 0.5 + 0.5 * np.tanh(score / 2)
        chance[part] = p
        gradient += F.T @ (w * (y - p))
        curvature += _gram(F, w * p * (1 - p))
    back = design.turn.T
    return likelihood, back @ gradient - ridge * beta, back @ curvature @ design.turn, chance
