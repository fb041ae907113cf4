"""Attack a released table, or the release that a plan would give, before anything is released.

For a plan, a part of the people is put aside at random as controls (whole units, such as households, where
the plan or its draft names one), the others are protected by the plan, and the result is attacked; this is
repeated with other controls, and the rates are averaged. A plan that drafts its roles has them from the
whole table, so that all trials have the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from microagg.base.typing import Labels
from microagg.drafting.draft import complete
from microagg.engines.memory.protect import protect_table
from microagg.errors import InputError, shown
from microagg.measure.attack import ATTACKS, Attacks, OnProgress, attack_released, mean_of_trials
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame, narwhals_frame

TRIALS = 3
CONTROL_SHARE = 0.1


def attack(
    original: Any,
    released: Any = None,
    control: Any = None,
    known: Iterable[Any] | None = None,
    secret: Any = None,
    *,
    plan: Plan | None = None,
    attacks: int = ATTACKS,
    control_share: float = CONTROL_SHARE,
    trials: int = TRIALS,
    seed: int = 0,
    missing_words: Sequence[str] = ("",),
    progress: OnProgress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Attacks:
    """Attack a released table: single people out, link their columns, infer their values.

    Tables may come from any program and have any number of rows in any order; columns are matched by name.
    Each attack is tried on originals and, if given, on controls, people of the same population who are not in
    the released table; the residual risk is what being in it adds.

    Parameters
    ----------
    original : data frame of pandas, polars or pyarrow with the records before protection
    released : data frame as released; None if a plan is given
    control : data frame with records that were not protected, or None: then there is no residual risk
    known : columns that the attacker knows about people; by default all but the one to be guessed
    secret : the only column to guess; by default each in turn
    plan : instead of ``released``: a plan by which a random part of ``original`` is protected and attacked
        with the rest as controls
    attacks : attempts for each question
    control_share : of a plan: the share of people who are put aside as controls
    trials : of a plan: how often this is repeated, with other controls
    seed : of all random choices
    missing_words : texts that mean missing in a category
    progress : called with the steps done and their total
    should_stop : asked now and then whether to end early and keep what was measured

    Returns
    -------
    Attacks
        ``print`` shows a line for each attack; ``questions`` and ``inference`` have rates, intervals and
        residual risks; ``as_dict()`` gives plain data.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 31, 42, 53, 64], "wage": [9, 12, 15, 11, 14]})
    >>> result = attack(people, people)
    >>> result.linkability.attack.share, result.controls is None
    (1.0, True)
    """
    settings: dict[str, Any] = {
        "known": known,
        "secret": secret,
        "attacks": attacks,
        "missing_words": missing_words,
        "should_stop": should_stop,
    }
    if plan is None:
        if released is None:
            raise InputError("An attack needs a released table, or a plan that makes one.")
        return attack_released(
            original, released, control, seed=seed, progress=progress, **settings
        )
    if released is not None or control is not None:
        raise InputError(
            "A plan makes the released table and its controls from the original; give the plan or the tables."
        )
    if not 0 < control_share < 1:
        raise InputError(f"The share of controls lies between 0 and 1; got {shown(control_share)}.")
    if trials < 1:
        raise InputError(f"At least one trial is needed; got {shown(trials)}.")
    table = Frame(original)
    completed = complete(table, plan, missing_words)
    units = _units(table, completed.plan)
    results: list[Attacks] = []
    for trial in range(trials):
        if results and should_stop():
            break
        aside = _put_aside(units, control_share, seed + trial)
        people = Frame(_rows(table, ~aside))
        release = protect_table(people, completed)
        results.append(
            attack_released(
                people.native,
                release.data,
                _rows(table, aside),
                seed=seed + trial,
                progress=_part_of(progress, trial, trials),
                **settings,
            )
        )
    return mean_of_trials(results)


def _rows(table: Frame, chosen: Any) -> Any:
    return narwhals_frame(table.native)[np.flatnonzero(chosen).tolist()].to_native()


def _units(table: Frame, plan: Plan) -> Labels:
    """Return the unit of each record, by the first unit that the plan counts; else its own number."""
    column = next(iter(plan.units), None)
    if column is None:
        return np.arange(len(table))
    return table.levels(column)[0]


def _put_aside(units: Labels, share: float, seed: int) -> Any:
    """Choose whole units at random until they have the share of records; return which records they have."""
    sizes = np.bincount(units)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(sizes))
    upto = int(np.searchsorted(np.cumsum(sizes[order]), share * len(units)))
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[: max(1, upto)]] = True
    if chosen[units].all():
        raise InputError(
            "Controls are whole units, and at least one unit must remain to be protected; the table has "
            "only one."
        )
    return chosen[units]


def _part_of(progress: OnProgress | None, trial: int, trials: int) -> OnProgress | None:
    if progress is None:
        return None
    return lambda done, total: progress(trial * total + done, trials * total)
