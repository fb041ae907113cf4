"""All claims about a release, as data: the verdict, the cautions, the sentences and the JSON.

They are written here only; command, report, page and notebook render them. The evidence has statistics of
all original records, and counts of bins that hold at least k, with as few digits as a board needs. It never
has an original record. :mod:`microagg.report.public` decides what may be published with the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from microagg.base.formatting import (
    UnitWords,
    few_digits,
    names,
    narrowed_down,
    plural,
    share,
    spread,
)
from microagg.evidence.cautions import cautions_of
from microagg.evidence.measured import Measured, Part
from microagg.evidence.over_time import history_cautions, history_sentences
from microagg.evidence.proof import guarantee, proof
from microagg.evidence.sentences import (
    Caution,
    Threshold,
    attacker_words,
    cases_words,
    fidelity_words,
    loss_words,
    odds_words,
    pairing_words,
    percent_words,
    promise_words,
    thresholds_of,
)
from microagg.evidence.usable import little_use_words, moved_figures, not_to_do
from microagg.measure.before_and_after import DIGITS
from microagg.measure.estimates import LEAST, safe_together
from microagg.plan.plan import Plan
from microagg.plan.registry import find

Verdict = Literal["green", "amber", "red"]

# Digits alone do not do for what is small: a column that lost 0.00123 % is known to five. Losses: percents.
_DECIMALS_BY_COLUMN = {"by_column": 2, "group_loss_by_column": 2, "changed": 3}
_STAKES = 3  # confidential columns whose stake a sentence gives


@dataclass(frozen=True, kw_only=True)
class Evidence(Measured):
    """The figures of a release, and all that follows from them and from the plan."""

    plan: Plan
    rejected: str = ""
    """Why the file was not released although it was counted; see :mod:`microagg.job.delivery`."""

    @classmethod
    def of(cls, plan: Plan, measured: Measured) -> Evidence:
        """Judge what was measured by the plan."""
        return cls(plan=plan, **vars(measured))

    def __repr__(self) -> str:
        """Sum up the release in at most ten lines."""
        cautions = [caution for caution in self.cautions if caution.severity != "note"]
        lines = [
            f"Evidence: {self.verdict}. {self.verdict_words}",
            f"  promised: {self.promise}",
            f"  lost: {self.loss_words}",
            f"  usable: {self.fidelity_words}",
            *(f"  {caution.severity}: {caution.words}" for caution in cautions[:4]),
            *([f"  {len(cautions) - 4} more cautions"] if len(cautions) > 4 else []),
            "  as_dict() has every number",
        ]
        return "\n".join(lines)

    @cached_property
    def cautions(self) -> Sequence[Caution]:
        """What to know before the file leaves the house."""
        losses = self.utility.by_column
        cautions = cautions_of(
            self.plan, self.roles, self.signs, losses, self.summaries, self.formulas
        )
        return [*history_cautions(self.history, self.who, self.swapped_before), *cautions]

    @property
    def k(self) -> int:
        """Least number of records, or units, that share their values."""
        return self.plan.k

    @property
    def verdict(self) -> Verdict:
        """Green only if k holds for the protected columns alone and with all that is known."""
        broken = self.counted is not None and not self.counted.holds
        if broken or not all(t.passed for t in self.thresholds):
            return "red"
        is_open = any(caution.severity == "amber" for caution in self.cautions)
        return "amber" if is_open or self.alone.below_k or self.with_known.below_k else "green"

    @cached_property
    def thresholds(self) -> list[Threshold]:
        """What the plan accepts, and whether the release keeps to it."""
        return thresholds_of(
            self.plan.accept,
            self.utility.information_loss,
            self.with_known.linkage,
            self.utility.analyses,
            self.fidelity,
            self.attacks,
            self.not_attacked,
        )

    # The sentences.

    @property
    def promise(self) -> str:
        """What is promised, and to whom."""
        return promise_words(self.plan)

    @property
    def who(self) -> UnitWords:
        """The noun for what k counts in the whole table."""
        return self.plan.words_of_unit(self.roles.unit)

    @property
    def verdict_words(self) -> str:
        """The verdict in one sentence."""
        k, swapped = self.k, self.swap is not None
        if self.verdict == "red":
            if self.counted is not None and not self.counted.holds:
                return f"k = {k:,} does not hold in the written file."
            missed = [threshold.what for threshold in self.thresholds if not threshold.passed]
            are = "is" if len(missed) == 1 else "are"
            return f"The {' and the '.join(missed)} {are} above what the plan accepts."
        where = "in the written file" if self.counted else "in the table (not yet written)"
        if self.verdict == "amber" and self.alone.below_k:
            each = "each column" if len(self.plan.blocks) == 1 else "each block"
            below = narrowed_down(self.alone.below_k, k, self.who)
            holds = f"k = {k:,} holds {where} for {each} by itself"
            return f"{holds}, but {below} by someone who knows all of them."
        holds = f"k = {k:,} holds{' for groups and for every value' if swapped else ''} {where}"
        if self.verdict == "green":
            if self.roles.known:
                holds += ", also against someone who knows every unprotected column"
            return f"{holds}.{little_use_words(self.fidelity, swapped, k, self.has_frozen_groups)}"
        if self.with_known.below_k:
            against = "not against someone who also knows the unprotected ones"
            return f"{holds} for the protected columns alone, but {against}."
        open_points = sum(caution.severity == "amber" for caution in self.cautions)
        return f"{holds}, but {plural(open_points, 'point')} must be decided before release."

    @property
    def loss_words(self) -> str:
        """What was lost."""
        within = " about which value goes with which, within groups"
        return loss_words(self.utility, "" if self.swap is None else within)

    @property
    def fidelity_words(self) -> str:
        """How far tables of the file are from the original's, beside those of another sample."""
        return fidelity_words(self.fidelity)

    @property
    def not_to_do(self) -> list[str]:
        """What a user may not compute from this file, each with the figure that speaks against it."""
        return not_to_do(self.fidelity, self.swap is not None)

    @property
    def hidden_words(self) -> str:
        """How many records share a record's protected values."""
        risk = self.alone
        before = f"before, {share(risk.unique_before)} of the records were unique"
        if self.swap is not None:
            return f"each record is in a group of at least {self.who.counted(self.k)}; {before}"
        if risk.smallest_class > 1:
            others = plural(risk.smallest_class - 1, "other")
            return f"each record shares its protected values with at least {others}; {before}"
        return f"{share(risk.unique_after)} of the records are unique in their protected values; {before}"

    @property
    def recoded_words(self) -> str:
        """Which columns were recoded before groups were formed, and how; empty where none was."""
        said = [f"{names([name])} ({how.in_words})" for name, how in self.plan.coarsened.items()]
        return "; ".join(said)

    @property
    def suppressed_words(self) -> str:
        """How many records were left out, and what that won; empty where none was to be."""
        suppressed = self.suppressed
        if suppressed is None:
            return ""
        if not suppressed.records:
            return "no record was left out: that would not lower the loss"
        return (
            f"{plural(suppressed.records, 'record was', 'records were')} left out "
            f"({share(suppressed.share)}): the others lose {percent_words(self.utility.information_loss)} of "
            f"their information; all records together would lose {percent_words(suppressed.loss_without)}"
        )

    @property
    def missing_words(self) -> str:
        """What became of missing values; empty where there were none."""
        counts, said = self.signs.missing_counts, []
        missing, blanked, filled, lost = (
            sum(getattr(column, what) for column in counts.values())
            for what in ("missing", "blanked", "filled", "codes_lost")
        )
        if self.dropped:
            said.append(f"{plural(self.dropped, 'record')} with missing values left out")
        if missing:
            columns = [name for name, column in counts.items() if column.missing]
            kept = missing - filled
            which = "all" if kept == missing else f"{kept:,}" if kept else "none"
            stay = f"{which} stay missing, shared by whole groups" if kept else "none stays missing"
            said.append(f"{plural(missing, 'value')} missing in {names(columns, 6)}, {stay}")
        if blanked:
            said.append(f"{blanked:,} more blanked")
        if lost:
            said.append(f"{plural(lost, 'code')} for missing released as plainly missing")
        return "; ".join(said)

    @property
    def alone_words(self) -> str:
        """What an attacker gains from the protected columns."""
        if self.swap is None:
            return attacker_words(self.alone, self.k)
        if self.swap.chance is None:  # no column is left as it is
            how_many = share(self.swap.standing) if self.swap.standing else "none"
            return (
                "No row belongs to one person. A row can still equal somebody's true values: so for "
                f"{how_many} of the people who are alone with theirs."
            )
        known = [name for name in self.roles.known if name not in self.roles.strata]
        linking = [s.column for s in self.signs.linked_rows if s.column not in self.roles.known]
        also = [names(known, 6)] if known else []
        also += [f"which rows have the same {names(linking, 6)}"] if linking else []
        also += ["the order of the rows"] if self.plan.keep_order else []
        *first, last = ["all protected values", "the groups", *also]
        unknown = names(self.roles.confidential, 6)
        but = f", but nothing that ties {unknown} to people," if unknown else ""
        return (
            f"Someone who knows {', '.join(first)} and {last}{but} picks a person's row with a chance of at "
            f"most {share(self.swap.chance.largest)}, counted."
        )

    @property
    def known_words(self) -> str:
        """What an attacker gains who also knows the unprotected columns; empty where that is nothing."""
        risk, alone, pairing = self.with_known, self.alone, self.signs.pairing
        if self.swap is not None:
            return "" if pairing is None else pairing_words(pairing, self.roles.confidential)
        before = alone.linkage.share, alone.unique_after
        if not self.roles.known or (risk.linkage.share, risk.unique) == before:
            return ""
        unique = f"; {self.unique_words}" if risk.unique else ""
        return (
            "an attacker who also knows the unprotected columns finds the right record in "
            f"{cases_words(risk.linkage)}{unique}"
        )

    @property
    def guessed_words(self) -> str:
        """What attacks guess about people in the file and about others; empty where it was not tried."""
        if self.swap is None or self.attacks is None:
            return ""
        figure = self.attacks.questions.get("inference, nearest records")
        if figure is None or figure.control is None:
            return ""
        attacked = self.attacks.records + (self.attacks.controls or 0)
        is_sample = attacked < self.records
        sample = f" (in a sample of {plural(attacked, 'record')})" if is_sample else ""
        return (
            "Not promised: that a value cannot be guessed. Our attacks guess "
            f"{share(figure.attack.share)} of the values{sample}; for people who are not in the file "
            f"{share(figure.control.share)}."
        )

    @property
    def guess_words(self) -> str:
        """What k means by the linkage, what a blind guess finds, and from which sample linkage is known."""
        linkage = self.alone.linkage
        sample = f"found in {cases_words(linkage)}; " if linkage.sampled else ""
        odds = odds_words(linkage.share, self.k).strip(", ()")
        means = f"{odds}; " if odds and self.swap is None else ""
        return f"{sample}{means}a blind guess finds {share(self.alone.blind_guess)}"

    @property
    def unique_words(self) -> str:
        """How many records are unique with the unprotected columns."""
        unique = self.with_known.unique
        all_or_none = {0.0: "no record is then unique", 1.0: "every record is then unique"}
        return all_or_none.get(unique, f"{share(unique)} of the records are then unique")

    @property
    def claim_words(self) -> str:
        """What rests on the claim that columns are confidential; empty where no column is."""
        if len(self.stakes) < 2:
            return self.all_claims_words
        largest = list(self.stakes.items())[:_STAKES]
        said = ", ".join(f"{names([name])} {share(below_k)}" for name, below_k in largest)
        more = f" and {len(self.stakes) - _STAKES} more" if len(self.stakes) > _STAKES else ""
        return f"{self.all_claims_words}; one of them alone: {said}{more}"

    @property
    def all_claims_words(self) -> str:
        """The same without what single columns stake."""
        if not self.stakes:
            return ""
        risk = self.if_confidential_known
        columns = "column is" if len(self.stakes) == 1 else "columns are"
        return (
            f"if the confidential {columns} known after all, "
            f"{narrowed_down(risk.below_k, self.k, self.who)}, and the right record is found in "
            f"{cases_words(risk.linkage)}"
        )

    def proof(self, part: Part) -> tuple[str, str]:
        """Say whether any method could do better: a word, and the sentence."""
        return proof(self.plan, self, part)

    def part_words(self, part: Part) -> str:
        """Say how a part was grouped."""
        partition = part.partition
        which = f"{names(part.columns, 6)}: " if len(self.parts) > 1 else ""
        how = f"{partition.method}{', refined' * ('refine' in partition.options)}"
        sizes = spread(partition.smallest, partition.largest)
        words = (
            f"{which}{plural(partition.n_groups, 'group')} of {sizes} by {how}, k = {partition.k:,}"
        )
        return words + ", stopped early as asked" * partition.stopped

    @property
    def counted_words(self) -> str:
        """What was found in the written file."""
        if self.counted is None:
            return "no file was written yet, so none was counted"
        rarest = self.counted.least
        who = self.plan.words_of_unit(rarest.unit)
        which = f" of {names(rarest.columns, 6)}" * (len(self.parts) > 1)
        records, broken = plural(rarest.records, "record"), f"and k = {rarest.k:,} does not hold"
        if self.swap is not None:
            words = (
                f"{records}; the rarest value, in {names(rarest.columns, 6)}, stands for "
                f"{who.counted(rarest.smallest)}; every group has the values that were dealt"
            )
        else:
            combinations = plural(rarest.combinations, "combination")
            words = f"{records} with {combinations}{which}; the rarest is shared by "
            words += who.counted(rarest.smallest)
            broken += f" for {plural(rarest.records_below_k, 'record')}"
        return words if self.counted.holds else f"{words}, {broken}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every number that is claimed, with as few digits as a board needs."""
        counted, history, plan, swap = self.counted, self.history, self.plan, self.swap
        pairing = self.signs.pairing
        rates = pairing and {"rate": pairing.rate, "base": pairing.base}
        figures: dict[str, Any] = {
            "verdict": self.verdict,
            "verdict_words": self.verdict_words,
            "rejected": self.rejected or None,
            "promise": self.promise,
            "records": self.records,
            "k": self.k,
            "columns": {
                role: [str(name) for name in members]
                for role, members in asdict(self.roles).items()
                if isinstance(members, list)
            },
            "unit": None if self.roles.unit is None else str(self.roles.unit),
            "weight": None if self.roles.weight is None else str(self.roles.weight),
            "weight_release": plan.weight and plan.weight.release,
            "recoded": {str(name): how.in_words for name, how in plan.coarsened.items()},
            "missing": {
                "policy": plan.missing.policy,
                "words": self.missing_words,
                "dropped_records": self.dropped,
                "columns": {
                    str(name): counts._asdict()
                    for name, counts in self.signs.missing_counts.items()
                    if counts.missing or counts.blanked
                },
            },
            "suppressed": self.suppressed
            and {**asdict(self.suppressed), "words": self.suppressed_words},
            "records_in_another_stratum": self.signs.recoded,
            "ledger": history
            and {
                **history._asdict(),
                "counts": dict(history.counts),
                "joining": {name: each._asdict() for name, each in history.joining.items()},
                "sentences": history_sentences(history, self.who),
            },
            "order": "kept" if plan.keep_order else "random",
            "cautions": [caution.as_dict() for caution in self.cautions],
            "thresholds": [asdict(threshold) for threshold in self.thresholds],
            "information_loss": self.utility.information_loss,
            "group_loss": self.utility.group_loss,
            "fidelity": {
                **self.fidelity.as_dict(),
                "words": self.fidelity_words,
                "not_to_do": self.not_to_do,
            },
            "risk": self._risk(rates),
            "swap": swap
            and {
                **swap._asdict(),
                "chance": swap.chance and swap.chance._asdict(),
                "pairing": rates,
            },
            "attacks": self._attacks(),
            "requirements": [asdict(rule) for rule in counted.required] if counted else [],
            "verified": counted and counted.as_dict(),
            "utility": self._utility(),
            "summaries": [
                {**asdict(row), "moved_figures": moved_figures(row)} for row in self.summaries
            ],
            "prices": self.prices,
            "files": {
                "input": None if self.source is None else dict(self.source),
                "output": counted and {"path": counted.path, "sha256": counted.sha256},
            },
        }
        parts = [self._part(part) for part in self.parts]
        return {**few_digits(figures, DIGITS), "plan": _json_plan(plan), "parts": parts}

    def _part(self, part: Part) -> dict[str, Any]:
        used, block = find(part.partition.method), self.plan.block_of(part.columns)
        word, sentence = self.proof(part)
        return {
            "columns": [str(name) for name in part.columns],
            **few_digits(part.partition.as_dict(), DIGITS),
            # Words and numbers: what is data stays out.
            "options": {
                name: value
                for name, value in part.partition.options.items()
                if isinstance(value, str | int | float | bool | None)
            },
            "paper": used.paper,
            "summary": used.summary,
            "guarantee": guarantee(self.plan, self, part),
            "aggregate": block.released,
            "swapped": block.is_swapped,
            "could_do_better": word,
            "proof": sentence,
        }

    def _risk(self, pairing: dict[str, float] | None) -> dict[str, Any]:
        reasons = self.plan.reasons
        claims = [
            {"name": str(name), "reason": reasons.get(name, ""), "below_k": below_k}
            for name, below_k in self.stakes.items()
        ]
        return {
            "alone": {**self.alone.as_dict(), "unique": self.alone.unique_after},
            "with_known": self.with_known.as_dict(),
            "if_confidential_known": {**self.if_confidential_known.as_dict(), "claims": claims},
            "known_columns": [{**asdict(harm), "name": str(harm.name)} for harm in self.harms],
            "pairing": pairing,
            "linked_rows": [
                {**asdict(sets), "column": str(sets.column)} for sets in self.signs.linked_rows
            ],
        }

    def _attacks(self) -> dict[str, Any] | None:
        """Return inference and singling out with controls; None: not tried."""
        if self.attacks is None:
            return {"refused": self.not_attacked} if self.not_attacked else None
        figures = self.attacks.as_dict()
        wanted = ("records", "controls", "trials", "singling_out", "inference", "stopped")
        return {"words": self.guessed_words, **{name: figures[name] for name in wanted}}

    def _utility(self) -> dict[str, Any]:
        """All measures of loss.

        The user's analyses are without groups that are too small, and without those from which these would
        follow.
        """
        figures: dict[str, Any] = dict(self.utility.as_dict())
        for name, decimals in _DECIMALS_BY_COLUMN.items():
            figures[name] = {key: round(v, decimals) for key, v in figures[name].items()}
        return figures | {"analyses": safe_together(self.utility.analyses, max(self.k, LEAST))}


def _json_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON has it, with names as text."""

    def text(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): text(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [text(entry) for entry in value]
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    plain: dict[str, Any] = text(plan.as_dict())
    return plain
