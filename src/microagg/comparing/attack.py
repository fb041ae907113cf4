"""Attack a released table, or the release that a plan would give, before anything is released.

A plan is attacked with a control group (:mod:`microagg.engines.memory.control_group`) several times, and the
rates are averaged. A plan that drafts its roles has them from the whole table, so that all trials have the
same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from microagg.drafting.draft import complete
from microagg.engines.memory.control_group import CONTROL_SHARE, TRIALS, attack_rest, part_of
from microagg.engines.memory.table import Table
from microagg.errors import InputError, shown
from microagg.measure.attack import ATTACKS, Attacks, OnProgress, attack_released, mean_of_trials
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame


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
    table = Table(Frame(original))
    completed = complete(table.frame, plan, missing_words)
    units = table.units(completed.plan)
    results: list[Attacks] = []
    for trial in range(trials):
        if results and should_stop():
            break
        results.append(
            attack_rest(
                table.frame,
                units,
                lambda rows: table.taken(rows).protected(completed).data,
                np.arange(len(table)),
                seed=seed + trial,
                control_share=control_share,
                without=completed.plan.renumber,
                progress=part_of(progress, trial, trials),
                **settings,
            )
        )
    return mean_of_trials(results)
