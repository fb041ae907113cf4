"""Attacks on a released file as anybody has it: singling out, linkability, inference.

Each attack is tried on people whose records were protected (originals) and, if given, on controls: people
of the same population whose records were not. What the attack gains on originals beyond controls is the
residual risk (measure/attack_rates.py): what being in the file adds. Nothing is assumed about which program
made the file or about its row order. Figures are seeded; no value of a record is part of any result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from microagg.base.formatting import names, share
from microagg.compile.threads import thread_count
from microagg.errors import InputError, listed, shown
from microagg.measure.attack_rates import (
    AttackFigure,
    Rate,
    Residual,
    mean_over_columns,
    mean_over_trials,
)
from microagg.measure.attack_tables import AttackTables, attack_tables
from microagg.measure.inference import infer, infer_by_model, link
from microagg.measure.singling_out import single_out

ATTACKS = 2_000
_NAMED = 5  # columns at greatest risk that a line names
_SECONDS = 1.5e-9  # of one comparison of two values in one thread

OnProgress = Callable[[int, int], object]

QUESTIONS = ("singling out", "linkability", "inference", "trained model")
"""What can be tried; see :func:`attack_released`."""


@dataclass(frozen=True)
class Attacks:
    """What the attacks found; ``lines`` says it, ``as_dict()`` gives the figures."""

    records: int
    released: int
    controls: int | None
    columns: list[Any]
    singling_out: dict[str, AttackFigure | None]
    """By predicates of ``one_column`` and of ``several_columns``; None: the file gives none, or not tried."""
    linkability: AttackFigure | None
    inference: dict[Any, AttackFigure]
    """Each column, guessed from the nearest released records."""
    by_model: dict[Any, AttackFigure] | None
    """Each column, guessed by a trained model; None: scikit-learn is not installed."""
    constant: list[Any] = field(default_factory=list)
    """Columns with one value throughout, about which there is nothing to guess."""
    skipped: list[Any] = field(default_factory=list)
    """Columns that hold neither numbers nor dates nor categories."""
    known: list[Any] | None = None
    """Columns that the attacker knows; None: all but the one to be guessed."""
    stopped: bool = False
    seconds: float = 0.0
    trials: int | None = None
    """Trials of a plan that were averaged, each with other controls; None: a given file was attacked."""

    @property
    def questions(self) -> dict[str, AttackFigure]:
        """All attacks that were tried, under the name of what they answer."""
        nearest, model = (
            mean_over_columns([*figures.values()]) if figures else None
            for figures in (self.inference, self.by_model)
        )
        tried = {
            "singling out, one column": self.singling_out.get("one_column"),
            "singling out, several columns": self.singling_out.get("several_columns"),
            "linkability": self.linkability,
            "inference, nearest records": nearest,
            "inference, trained model": model,
        }
        return {name: figure for name, figure in tried.items() if figure is not None}

    @property
    def at_greatest_risk(self) -> list[tuple[Any, Residual]]:
        """Columns whose inference gains most from being in the file, by the stronger of both attacks.

        Only columns whose interval lies above 0.
        """
        largest: dict[Any, Residual] = {}
        for figures in (self.inference, self.by_model or {}):
            for name, figure in figures.items():
                residual = figure.residual
                if residual and residual.low > 0:
                    largest[name] = max(largest.get(name, residual), residual)
        return sorted(largest.items(), key=lambda item: -item[1].share)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """A label and a sentence for each attack, then what to know about all of them."""
        said = [(_LABELS[name], _sentence(name, figure)) for name, figure in self.questions.items()]
        if self.at_greatest_risk:
            riskiest = ", ".join(
                f"{names([name])} {_interval(risk)}"
                for name, risk in self.at_greatest_risk[:_NAMED]
            )
            said.append(("most at risk", f"inference beyond controls: {riskiest}"))
        return said + self._notes

    @property
    def notes(self) -> list[str]:
        """What to know about all figures, in sentences."""
        return [f"{label.capitalize()}: {words.removesuffix('.')}." for label, words in self._notes]

    @property
    def _notes(self) -> list[tuple[str, str]]:
        said = []
        if self.singling_out and "singling out, several columns" not in self.questions:
            said.append(("singling out", "the file gives no predicate of several columns"))
        if self.controls is None:
            text = (
                "these rates include what anybody could guess about a stranger. With a control file, "
                "similar people who are not in the released one, the residual risk is told apart."
            )
            said.append(("no controls", text))
        if self.by_model is None:
            said.append(("not tried", "a trained model: pip install 'microagg[sklearn]'"))
        if self.skipped:
            said.append(("left out", f"{names(self.skipped, 8)}: no numbers, dates or categories"))
        if self.stopped:
            said.append(("stopped", "figures are of the attacks made until then"))
        return said

    @property
    def assumed(self) -> list[str]:
        """What the attacks assume about the attacker, in sentences."""
        knows, party = "every column of a person but the one to be guessed", "half"
        if self.known is not None:
            knows, party = f"these columns of a person: {names(self.known, 40)}", "the known ones"
        return [
            f"The attacker has the released file and knows {knows}.",
            "The attacker knows these values exactly, as they were before protection.",
            "For singling out, the attacker has the released file and nothing else.",
            f"For linkability, one party knows {party} of a person's columns and another party the rest.",
            "Controls come from the same population as the people in the file."
            if self.controls is not None
            else "There were no controls, so that no rate shows what being in the file adds.",
        ]

    @property
    def not_tried(self) -> list[str]:
        """What no attack here tried, in sentences."""
        return [
            "Attackers with several releases of the same people.",
            "Attackers who know how the file was made, or some people's rows in it.",
            "Whether a person is in the file at all (membership).",
            *["A trained model, since scikit-learn is not installed."] * (self.by_model is None),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{label:<13} {words}" for label, words in self.lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        inference: dict[str, Any] = {
            key: figure.as_dict()
            for key, name in (
                ("nearest", "inference, nearest records"),
                ("model", "inference, trained model"),
            )
            if (figure := self.questions.get(name))
        }
        models = self.by_model or {}
        inference["columns"] = {
            str(name): {
                "nearest": figure.as_dict(),
                "model": models[name].as_dict() if name in models else None,
            }
            for name, figure in self.inference.items()
        }
        return {
            "records": self.records,
            "released": self.released,
            "controls": self.controls,
            "columns": [*map(str, self.columns)],
            "known": None if self.known is None else [*map(str, self.known)],
            "singling_out": {
                name: figure and figure.as_dict() for name, figure in self.singling_out.items()
            },
            "linkability": self.linkability and self.linkability.as_dict(),
            "inference": inference,
            "at_greatest_risk": [str(name) for name, _ in self.at_greatest_risk],
            "constant": [*map(str, self.constant)],
            "skipped": [*map(str, self.skipped)],
            "trained_model": self.by_model is not None,
            "trials": self.trials,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 2),
        }


def mean_of_trials(trials: Sequence[Attacks]) -> Attacks:
    """Average one or more trials of one plan: the same columns and people, each time with other controls.

    An attack is averaged over the trials in which it was possible.
    """
    originals, controls = trials[0].records, trials[0].controls or 0

    def mean(figures: list[AttackFigure | None], predicates: bool = False) -> AttackFigure | None:
        done = [figure for figure in figures if figure is not None]
        if not done:
            return None
        # Predicates are tried on everybody, other attacks on some people.
        most = originals if predicates else done[0].attack.attacks
        tried = min(originals, most), max(1, min(controls, most))
        return mean_over_trials(done, originals + controls, tried)

    def by_column(every: list[dict[Any, AttackFigure]]) -> dict[Any, AttackFigure]:
        columns = dict.fromkeys(name for figures in every for name in figures)
        means = {name: mean([figures.get(name) for figures in every]) for name in columns}
        return {name: figure for name, figure in means.items() if figure is not None}

    models = [trial.by_model for trial in trials if trial.by_model is not None]
    return replace(
        trials[0],
        singling_out={
            kind: mean([trial.singling_out.get(kind) for trial in trials], predicates=True)
            for kind in trials[0].singling_out
        },
        linkability=mean([trial.linkability for trial in trials]),
        inference=by_column([trial.inference for trial in trials]),
        by_model=by_column(models) if models else None,
        stopped=any(trial.stopped for trial in trials),
        seconds=sum(trial.seconds for trial in trials),
        trials=len(trials),
    )


_LABELS = {
    "singling out, one column": "singling out",
    "singling out, several columns": "",
    "linkability": "linkability",
    "inference, nearest records": "inference",
    "inference, trained model": "",
}
_SUBJECTS = {
    "singling out, one column": "of the predicates of one column hold for exactly one person",
    "singling out, several columns": "of the predicates of several columns hold for exactly one person",
    "linkability": "of the people have both parts of their columns joined by a released record",
    "inference, nearest records": "of the values are guessed by the nearest released record",
    "inference, trained model": "of the values are guessed by a model trained on the file",
}


# The question of a data-protection officer to which each attack is a part of the answer.
ANSWERS = {
    "singling out, one column": "Can a person be singled out by one value that the file shows?",
    "singling out, several columns": "Can a person be singled out by a combination of values?",
    "linkability": "Can two sources about the same person be joined through the file?",
    "inference, nearest records": "Can a value be inferred from records that resemble the person's?",
    "inference, trained model": "Can a value be inferred from what the file as a whole teaches?",
}


def _sentence(name: str, figure: AttackFigure) -> str:
    sentence = f"{_interval(figure.attack)} {_SUBJECTS[name]}"
    if figure.control is not None:
        residual = "every control is hit as well, so there is nothing to compare"
        if figure.residual is not None:
            residual = f"residual risk {_interval(figure.residual)}"
        sentence += f"; of controls {share(figure.control.share)}; {residual}"
    if figure.is_weak:
        naive = share(figure.baseline.share)
        sentence += f". Too weak an attack to judge by: a naive guess gives {naive}"
    return sentence


def _interval(rate: Rate | Residual) -> str:
    """Write a rate with its interval; a residual risk below 0 is 0."""
    low, middle, high = (share(max(value, 0.0)) for value in (rate.low, rate.share, rate.high))
    return f"{middle} ({low.removesuffix(' %')} to {high})"


def seconds_needed(
    records: int,
    released: int,
    controls: int,
    columns: int,
    attacks: int = ATTACKS,
    questions: Collection[str] = QUESTIONS,
) -> float:
    """Estimate how many seconds attacks take.

    Parameters
    ----------
    records, released, controls, columns : how many there are in the tables
    attacks, questions : as for :func:`attack_released`
    """
    people = min(records, attacks) + min(controls, attacks)
    searches = 4 * people * released * columns * _SECONDS / thread_count()
    model = "trained model" in questions and find_spec("sklearn") is not None
    return 1.0 + searches + 0.4 * columns * model


def attack_released(
    original: Any,
    released: Any,
    control: Any = None,
    *,
    known: Iterable[Any] | None = None,
    secret: Any = None,
    attacks: int = ATTACKS,
    seed: int = 0,
    missing_words: Sequence[str] = ("",),
    questions: Collection[str] = QUESTIONS,
    progress: OnProgress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Attacks:
    """Attack a released table.

    Parameters
    ----------
    original : frame with the records that were protected
    released : frame as released, by any program, with any number of rows in any order
    control : frame with records of the same population that were not protected, or None
    known : columns that the attacker knows about people; by default all but the one to be guessed
    secret : the only column to guess; by default each in turn, or each that is not known
    attacks : attempts for each question
    seed : of all random choices
    missing_words : texts that mean missing in a category
    questions : some of :data:`QUESTIONS`; a trained model is tried only if scikit-learn is installed
    progress : called with the steps done and their total
    should_stop : asked now and then whether to end early
    """
    began = time.monotonic()
    if isinstance(attacks, bool) or attacks < 1:
        raise InputError(f"At least one attack is needed for each question; got {shown(attacks)}.")
    tables = attack_tables(original, released, control, missing_words=missing_words, seed=seed)
    known_at, secrets = _columns_of(tables, known, secret)
    constant = [j for j in secrets if not tables.varies(j)]
    secrets = [j for j in secrets if j not in constant]
    people = sum(min(len(t), attacks) for t in (tables.original, tables.control) if t is not None)
    model = "trained model" in questions and find_spec("sklearn") is not None
    total, before, stopped = 2 * people + people // 4 + 1, 0, False

    def stop(done: int) -> bool:
        nonlocal stopped
        if progress is not None:
            progress(min(before + done, total), total)
        stopped = stopped or should_stop()
        return stopped

    singled = single_out(tables, attacks, seed) if "singling out" in questions else {}
    before, linked = people // 4, None
    if not stop(0) and "linkability" in questions:
        linked = link(tables, known_at, attacks, seed, stop)
    before += people
    every, nearest = list(range(len(tables.names))) if known_at is None else known_at, {}
    if not stop(0) and secrets and "inference" in questions:
        nearest = infer(tables, every, secrets, attacks, stop)
    before += people - len(secrets)
    trained = None
    if model:
        trained = {} if stop(0) else infer_by_model(tables, every, secrets, attacks, stop)
    name = tables.names.__getitem__
    return Attacks(
        len(tables.original),
        len(tables.released),
        None if tables.control is None else len(tables.control),
        tables.names,
        singled,
        linked,
        {name(j): figure for j, figure in nearest.items()},
        None if trained is None else {name(j): figure for j, figure in trained.items()},
        [name(j) for j in constant],
        tables.skipped,
        None if known_at is None else [name(j) for j in known_at],
        stopped,
        time.monotonic() - began,
    )


def _columns_of(
    tables: AttackTables, known: Iterable[Any] | None, secret: Any
) -> tuple[list[int] | None, list[int]]:
    """Return the numbers of the known columns, None if none was named, and of the secret ones."""
    wanted = None if known is None else list(known)
    for name in [*(wanted or []), *([] if secret is None else [secret])]:
        if name not in tables.names:
            raise InputError(
                f"Columns of an attack are in all tables; {shown(name)} is not. They share "
                f"{listed(tables.names, limit=40)}."
            )
    known_at = None if wanted is None else sorted({tables.names.index(name) for name in wanted})
    if secret is not None:
        return known_at, [tables.names.index(secret)]
    every = range(len(tables.names))
    return known_at, [j for j in every if known_at is None or j not in known_at] or [*every]
