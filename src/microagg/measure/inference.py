"""Linkability and inference: what the nearest released records, or a model, tell about a person.

Linkability  Two parties hold different columns of the same people. Each looks for the released records
             nearest to a person in its own columns; the person is linked if some record is nearest to
             both. Records at the same distance as the nearest count as nearest: an attacker need not
             choose among them. Without named columns, each person's columns are split into random halves.
Inference    One column of a person is guessed from the others: the value of the nearest released record (any
             one of several at the same distance), or the prediction of gradient-boosted trees that were
             trained on the released file. A category must be right, a number within 5 %, a date within
             5 % of the standard deviation of released dates; missing counts as a value.
Distance     Gower's, see kernels/attack_loops.py.
Baselines    Linkability: two random released records are the same. Inference: the same guess for everybody,
             the one that is right for most released records.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import thread_count
from microagg.measure.attack_rates import AttackFigure, Rate, pooled_weight
from microagg.measure.attack_tables import AttackTable, AttackTables

_TOLERANCE = 0.05
_AT_ONCE = 16  # people searched for in one piece, between looks at whether to stop
_TRAINED_ON = 10_000  # released records; more would take longer than they help
_CLASSES = 30  # categories that a model tells apart; others are never its guess

Stop = Callable[[int], bool]  # takes the number of people done, returns whether to stop


def link(
    tables: AttackTables, known: Sequence[int] | None, attacks: int, seed: int, stop: Stop
) -> AttackFigure | None:
    """Link the columns of two parties through the released records, for at most ``attacks`` people.

    ``known`` are the columns of the first party, the second has all others; None: random halves for each
    person, drawn by ``seed``. Returns None where there are not two columns, or ``stop`` came before anybody.
    """
    d = len(tables.names)
    if d < 2 or (known is not None and not 0 < len(known) < d):
        return None
    rows = tables.released.coordinates

    def rate(table: AttackTable | None) -> Rate | None:
        from microagg.kernels.attack_loops import link_parts

        if table is None:
            return None
        people = table.coordinates[:attacks]
        first = np.zeros((len(people), d))
        if known is None:
            first[:] = np.argsort(np.random.default_rng(seed).random(first.shape), axis=1) % 2
        else:
            first[:, known] = 1.0
        second = 1.0 - first
        linked = np.zeros(len(people), np.int64)

        def search(begin: int, end: int) -> None:
            some, scratch = slice(begin, end), np.empty((2, len(rows)))
            link_parts(people[some], rows, first[some], second[some], scratch, linked[some])

        done = _in_threads(search, len(people), stop)
        return Rate.of(linked[done].mean(), len(done)) if len(done) else None

    attack = rate(tables.original)
    if attack is None:
        return None
    # Random records of the two parties are equal if they are in the same class of equal rows.
    shares = tables.released.distinct()[1] / len(rows)
    baseline = Rate.of((shares**2).sum(), attack.attacks)
    return AttackFigure(attack, baseline, rate(tables.control))


def infer(
    tables: AttackTables,
    known: Sequence[int],
    secrets: Sequence[int],
    attacks: int,
    stop: Stop,
) -> dict[int, AttackFigure]:
    """Guess each secret column of people from the released records nearest in the known columns.

    A secret is left out of the known columns when it is guessed. Returns a figure for each secret, by column
    number; nothing if nobody was tried.
    """
    rows = tables.released
    knows = np.zeros(len(tables.names))
    knows[list(known)] = 1.0
    asked = np.array(secrets, np.int64)

    def guesses(table: AttackTable) -> tuple[Labels, Floats]:
        from microagg.kernels.attack_loops import nearest_but_one

        people = table.coordinates[:attacks]
        nearest = np.zeros((len(people), len(asked)), np.int64)

        def search(begin: int, end: int) -> None:
            scratch = np.empty(len(knows)), np.empty(len(asked))
            nearest_but_one(
                people[begin:end], rows.coordinates, knows, asked, *scratch, nearest[begin:end]
            )

        done = _in_threads(search, len(people), stop)
        return done, rows.values[nearest[done], asked]

    return _judged(tables, list(secrets), guesses)


def infer_by_model(
    tables: AttackTables,
    known: Sequence[int],
    secrets: Sequence[int],
    attacks: int,
    stop: Stop,
) -> dict[int, AttackFigure]:
    """Guess each secret column by gradient-boosted trees that were trained on the released file.

    Parameters and result are those of :func:`infer`; scikit-learn must be installed.
    """
    from threadpoolctl import threadpool_limits

    results: dict[int, AttackFigure] = {}
    for done, j in enumerate(secrets):
        if stop(done):
            break
        features = [c for c in known if c != j]
        # Trees this small take longer in threads that wait for each other. Warnings are about rare
        # categories, of which every table has some.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict = _trained(tables, features, j) if features else None
        if predict is None:
            continue

        def guesses(
            table: AttackTable, predict: Callable[[Floats], Floats] = predict
        ) -> tuple[Labels, Floats]:
            people = table.values[:attacks]
            return np.arange(len(people)), predict(people)[:, None]

        results |= _judged(tables, [j], guesses)
    return results


def _trained(
    tables: AttackTables, features: list[int], j: int
) -> Callable[[Floats], Floats] | None:
    """Train a model of column j; return its predictions as a function, None where nothing can be learned."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    # Categories with more levels than the model takes are ordered by their number.
    most = np.fmax.reduce([np.fmax.reduce(t.values, initial=0.0) for t in tables.every])
    categories = [tables.kinds[c] == "category" and most[c] < 250 for c in features]
    settings = {
        "max_iter": 40,
        "max_leaf_nodes": 15,
        "categorical_features": categories,
        "random_state": 0,
        "early_stopping": False,
    }
    train = tables.released.values[:_TRAINED_ON]  # rows are in random order
    X, y = train[:, features], train[:, j]
    there = ~np.isnan(y)
    X, y = X[there], y[there]
    if len(y) < 10 or len(np.unique(y)) < 2:
        return None
    if tables.kinds[j] == "category":
        levels, often = np.unique(y, return_counts=True)
        common = levels[np.argsort(-often, kind="stable")[:_CLASSES]]
        among = np.isin(y, common)
        settings["max_iter"] = max(10, 40 // max(1, len(common) - 1))
        classifier = HistGradientBoostingClassifier(**settings).fit(X[among], y[among])
        return lambda people: np.asarray(classifier.predict(people[:, features]), np.float64)
    relative = bool(y.min() > 0)  # errors of positive numbers count in per cent
    regression = HistGradientBoostingRegressor(**settings).fit(X, np.log(y) if relative else y)

    def predict(people: Floats) -> Floats:
        predicted = np.asarray(regression.predict(people[:, features]), np.float64)
        return np.exp(predicted) if relative else predicted

    return predict


def _judged(
    tables: AttackTables,
    secrets: list[int],
    guesses: Callable[[AttackTable], tuple[Labels, Floats]],
) -> dict[int, AttackFigure]:
    """Compare guesses with the truth, for originals and for controls.

    ``guesses`` returns the people of a table who were tried, and what was guessed of them, secret by secret.
    """
    kinds, margins = tables.kinds, dict.fromkeys(secrets, 0.0)
    for j in secrets:
        released = tables.released.values[:, j]
        released = released[~np.isnan(released)]
        if kinds[j] == "date" and len(released):
            margins[j] = _TOLERANCE * float(released.std())

    def rates(table: AttackTable | None) -> dict[int, Rate]:
        if table is None:
            return {}
        people, guessed = guesses(table)
        if not len(people):
            return {}
        hits = np.column_stack(
            [
                is_right(column, table.values[people, j], kinds[j], margins[j])
                for j, column in zip(secrets, guessed.T, strict=True)
            ]
        )
        pooled = pooled_weight(hits) if len(secrets) > 1 else None
        shares = zip(secrets, hits.mean(axis=0), strict=True)
        return {j: Rate.of(share, len(people), pooled=pooled) for j, share in shares}

    attacks, controls = rates(tables.original), rates(tables.control)
    figures = {}
    for j, attack in attacks.items():
        truth = tables.original.values[:, j]
        naive = _best_constant(tables.released.values[:, j], kinds[j], margins[j])
        by_chance = is_right(np.full(len(truth), naive), truth, kinds[j], margins[j])
        baseline = Rate.of(by_chance.mean(), attack.attacks)
        figures[j] = AttackFigure(attack, baseline, controls.get(j))
    return figures


def is_right(guess: Floats, truth: Floats, kind: str, margin: float = 0.0) -> NDArray[np.bool_]:
    """Return which guesses count as right.

    ``kind`` is that of the column; ``margin`` is the error allowed for dates, in seconds.

    >>> is_right(np.array([104.0, 106.0, np.nan]), np.array([100.0, 100.0, np.nan]), "number").tolist()
    [True, False, True]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if kind == "number":
            close = np.abs(guess - truth) <= _TOLERANCE * np.abs(truth) * (1 + 1e-9)
        else:
            close = np.abs(guess - truth) <= margin
    right: NDArray[np.bool_] = close | (np.isnan(guess) & np.isnan(truth))
    return right


def _best_constant(values: Floats, kind: str, margin: float) -> float:
    """Return the one guess that is right for most released values."""
    there = np.sort(values[~np.isnan(values)])
    missing = len(values) - len(there)
    if not len(there):
        return float("nan")
    if kind == "number":
        # v is right for x if |v − x| ≤ .05·|x|: for x between v/1.05 and v/.95, in the order of their signs.
        ends = np.sort([there / (1 + _TOLERANCE), there / (1 - _TOLERANCE)], axis=0)
    else:
        ends = np.array([there - margin, there + margin])
    often = np.searchsorted(there, ends[1], "right") - np.searchsorted(there, ends[0], "left")
    return float("nan") if missing > often.max() else float(there[np.argmax(often)])


def _in_threads(search: Callable[[int, int], None], people: int, stop: Stop) -> Labels:
    """Search for people in threads, piece by piece; return those done when all are, or at a stop."""
    done = np.zeros(people, dtype=bool)
    stopped = False

    def work(begin: int) -> int:
        end = min(begin + _AT_ONCE, people)
        if not stopped:
            search(begin, end)
            done[begin:end] = True
        return end

    with ThreadPoolExecutor(thread_count()) as pool:
        for end in pool.map(work, range(0, people, _AT_ONCE)):
            stopped = stopped or stop(end)
    return np.flatnonzero(done)
