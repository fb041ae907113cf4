"""Attack what a plan releases, with a control group: people of the same table who are not in the release.

A tenth of the people is put aside at random (whole units, such as households, where the plan counts them),
the others are protected by the plan, and the result is attacked; see :mod:`microagg.measure.attack`.

For the evidence of a release the same is done once, in tables of up to 2,000 records three times with other
controls. Of more than 10,000 records a sample is taken, in whole groups: those of the release lie as close
together in it as in the table, where single records would lie farther apart and be harder to guess. Controls
have fewer neighbours in a sample, so that the residual risk is rather too high than too low. Inference is by
nearest records alone, so that the evidence is the same whether scikit-learn is installed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Labels
from microagg.errors import InputError, MicroaggError
from microagg.grouping.read_table import Intake
from microagg.measure.attack import (
    Attacks,
    OnProgress,
    attack_released,
    mean_of_trials,
    seconds_needed,
)
from microagg.plan.plan import Plan
from microagg.plan.sections import Suppress
from microagg.tables.frame import Frame, narwhals_frame
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.release_frame import reordered

CONTROL_SHARE = 0.1
MOST_RECORDS = 10_000
_FEW_RECORDS = 2_000  # up to which controls are so few that several trials are needed
TRIALS = 3
_QUESTIONS = ("singling out", "inference")


class Attacked(NamedTuple):
    """What attacks with a control group found, or why they could not be made."""

    attacks: Attacks | None
    refused: str = ""


def attack_rest(
    table: Frame,
    units: Labels | None,
    protect: Callable[[Labels], Any],
    rows: Labels,
    *,
    seed: int,
    control_share: float = CONTROL_SHARE,
    without: Sequence[Any] = (),
    **settings: Any,
) -> Attacks:
    """Put people aside, protect the others, and attack them with those put aside as controls.

    Parameters
    ----------
    table : the originals
    units : (n,) unit of each record of the table; None: every record is one
    protect : takes numbers of rows, and returns the native frame that a plan releases of these
    rows : numbers of the records that take part
    seed : chooses who is put aside, and of the attacks
    control_share : share of the records that are put aside
    without : columns that are not attacked, such as those with new numbers for ids
    **settings
        As for :func:`microagg.measure.attack.attack_released`.
    """
    of_rows = rows if units is None else units[rows]
    if (of_rows == of_rows[0]).all():
        raise InputError(
            "Controls are whole units, and at least one unit must remain to be protected; the table has "
            "only one."
        )
    aside = _some_whole(of_rows, control_share * len(rows), seed)
    inside, controls = rows[~aside], rows[aside]
    attacked = narwhals_frame(table.native).drop(*without).to_native() if without else table.native
    return attack_released(
        reordered(attacked, inside),
        protect(inside),
        reordered(attacked, controls),
        seed=seed,
        **settings,
    )


def attacks_for_evidence(
    intake: Intake,
    plan: Plan,
    labels: Labels,
    protect: Callable[[Plan, Labels], Any],
    progress: OnProgress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Attacked:
    """Attack the release of a plan by singling out and by inference, for its evidence.

    Parameters
    ----------
    intake : the n original records, all or a sample of whole groups
    plan : the plan of the release
    labels : (n,) group of each record in the release
    protect : takes a plan and numbers of records, and returns the native frame that it releases of these
    progress : called with the steps done and their total
    should_stop : asked now and then whether to end early and keep what was measured

    Returns
    -------
    Attacked
        Without figures where the plan cannot be carried out without the controls: a stratum may have just
        k units, for example.
    """
    plan = replace(plan, suppress=Suppress(), analyses=(), keep_order=None)
    rows = np.arange(len(labels))
    if len(rows) > MOST_RECORDS:
        rows = rows[_some_whole(labels, MOST_RECORDS, plan.seed or 0)]
    trials = TRIALS if len(rows) <= _FEW_RECORDS else 1
    results: list[Attacks] = []
    for trial in range(trials):
        if results and should_stop():
            break
        try:
            attacks = attack_rest(
                intake.original or intake.frame,
                intake.units,
                partial(protect, plan),
                rows,
                seed=(plan.seed or 0) + trial,
                without=plan.renumber,
                missing_words=missing_words(intake.text is not None),
                questions=_QUESTIONS,
                progress=part_of(progress, trial, trials),
                should_stop=should_stop,
            )
        except MicroaggError as error:
            return Attacked(None, str(error))
        results.append(attacks)
    return Attacked(mean_of_trials(results))


def seconds_for_evidence(records: int, columns: int, grouping: float) -> float:
    """Estimate how long :func:`attacks_for_evidence` takes if all records took so long to group.

    Parameters
    ----------
    records : all of the table
    columns : those that are attacked
    grouping : seconds that groups of all records took
    """
    some = min(records, MOST_RECORDS)
    controls = round(CONTROL_SHARE * some)
    rest = some - controls
    seconds = seconds_needed(rest, rest, controls, columns, questions=_QUESTIONS)
    seconds += grouping * some / max(records, 1)
    return seconds * (TRIALS if some <= _FEW_RECORDS else 1)


def part_of(progress: OnProgress | None, trial: int, trials: int) -> OnProgress | None:
    """Return a listener for one of several trials that reports to the listener of all.

    Parameters
    ----------
    progress : listener of all trials; None: nobody listens
    trial : number of this one, from 0
    trials : how many there are
    """
    if progress is None:
        return None
    return lambda done, total: progress(trial * total + done, trials * total)


def _some_whole(numbers: Labels, records: float, seed: int) -> Any:
    """Choose whole units or groups at random with about a number of records, one at least and not all.

    Returns
    -------
    (n,) whether a record is of one that was chosen
    """
    _, own = np.unique(numbers, return_inverse=True)
    sizes = np.bincount(own)
    order = np.random.default_rng(seed).permutation(len(sizes))
    upto = int(np.searchsorted(np.cumsum(sizes[order]), records, "right"))
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[: max(1, min(upto, len(sizes) - 1))]] = True
    return chosen[own]
