"""prices(): what each decision about a column would cost, found by grouping a sample anew.

For each column every other role that fits it is tried, one at a time: protect it, make it a stratum, drop it,
call it confidential. A try groups a sample of at most 5,000 records, whole units, with little effort.
Records of a sample are farther apart than those of the table, so a sample loses more: by the losses of its
quarters and of the whole sample we see how the loss falls with the number of records, n^(−a), and follow that
to the whole table. The quarters also tell how far off a sample may be.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from microagg.comparing.tries import Figures, Records, for_a_sample, try_plan, try_plans
from microagg.draft import complete, guess
from microagg.drafting.guesses import Guess
from microagg.encode.strata import strata_of
from microagg.errors import InputError, MicroaggError, shown
from microagg.measure.classes import share_below
from microagg.plan import Column, Plan
from microagg.plan_roles import ROLE_WORDS, role_of, with_role
from microagg.tables.frames import MISSING_WORDS, Frame
from microagg.words import names as listed_names
from microagg.words import percent, plural, share

__all__ = [
    "ColumnPrices",
    "Price",
    "Prices",
    "Trend",
    "check_stratum",
    "fast",
    "may_be_stratum",
    "price_table",
    "prices",
    "recodings",
    "sampled",
]

SAMPLE = 5_000
BUDGET = 20.0
_LEAST_SAMPLE = 1_000
_PARTS = 4  # of the sample, to see how the loss falls with the number of records
_MARGIN = 3.18 / 2  # half of Student's 95 % quantile for three degrees of freedom: four parts
_MOST_STRATA = 30
_BANDS = 10  # of a recoding that is priced
_LARGEST_FALL = 0.5  # of the exponent a: outliers keep losing however many records there are


@dataclass(frozen=True)
class Price:
    """What one decision about one column gives for the table; shares of records are from 0 to 1."""

    decision: str
    """protect, stratum, drop, confidential, or a recoding such as "coarsen bands:5"."""
    loss: float | None
    """Percent of the information of the protected columns that is lost, estimated for the whole table."""
    change: float | None
    """Points by which that differs from the loss of the plan as it stands."""
    group_loss: float | None
    """The same of the groups alone, as if each released its exact centroid."""
    linkage: float | None
    """Share of the records that an attacker finds, in the sample."""
    below_k: float | None
    """Share of the records that known columns narrow down to fewer than k, in the sample."""
    at_stake: float | None = None
    """Of confidential: share of the records below k if the column is known after all."""
    problem: str | None = None
    """Why it cannot be done, or was not tried."""
    plan: Plan | None = field(default=None, repr=False, compare=False)
    """The plan with this decision."""


@dataclass(frozen=True)
class ColumnPrices:
    """The decisions about one column."""

    column: Any
    role: str
    """As it stands: protect, stratum, known, confidential, drop, renumber or weight."""
    loss: float | None
    """Percent of its information that is lost, if it is protected."""
    decisions: Sequence[Price]

    @property
    def most_won(self) -> float:
        """Most points of loss that a decision wins which stakes nobody; 0: none does."""
        safe = [
            p for p in self.decisions if p.change is not None and not p.at_stake and not p.below_k
        ]
        return max((-price.change for price in safe if price.change is not None), default=0.0)


@dataclass(frozen=True)
class Prices:
    """What each decision about each column costs; the columns at which most is won come first."""

    plan: Plan
    """As it stands, with a role for every column."""
    now: Price
    """What the plan gives as it stands."""
    columns: Sequence[ColumnPrices]
    records: int
    sampled: int
    """Records that were grouped; all, or a sample."""
    margin: float | None
    """Points by which the loss may be off since it is of a sample (95 %); None: all records were tried."""
    seconds: float
    budget: float

    @property
    def about(self) -> str:
        """Say what the figures are estimates of."""
        rule = "A dropped column is lost as a whole; the loss is that of the columns that stay protected. "
        untried = sum(p.problem == _LATE for c in self.columns for p in c.decisions)
        late = (
            f" {plural(untried, 'decision')} did not fit into {self.budget:g} s." if untried else ""
        )
        if self.margin is None:
            return f"{rule}Every decision was tried on all records, with effort fast.{late}"
        return (
            f"{rule}Tried on {self.sampled:,} of {self.records:,} records, with effort fast. Losses are "
            f"estimates for the whole table, right to about {percent(self.margin)}; their "
            f"differences are more exact. Linkage and records below k are of the sample.{late}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "about": self.about,
            "records": self.records,
            "sampled": self.sampled,
            "margin": self.margin,
            "seconds": self.seconds,
            "now": _plain(self.now),
            "columns": [
                {
                    "column": str(one.column),
                    "role": one.role,
                    "loss": one.loss,
                    "decisions": [_plain(price) for price in one.decisions],
                }
                for one in self.columns
            ],
        }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a decision; ``pandas.DataFrame(prices.rows)`` makes it a frame."""
        return [
            {"column": one.column, "role": one.role, "column_loss": one.loss, **_plain(price)}
            for one in self.columns
            for price in one.decisions
        ]

    def __str__(self) -> str:
        return "\n".join(f"{label:<14} {words}" for label, words in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """Return the table as labels and words."""
        now = self.now
        assert now.below_k is not None  # the plan was carried out
        found = [
            (
                "as it stands",
                f"{percent(now.loss)} lost, {share(now.linkage)} linked, {_records(now.below_k)} below k",
            )
        ]
        for one in self.columns:
            lost = "" if one.loss is None else f", {percent(one.loss)} of it lost"
            found.append((listed_names([one.column]), f"{one.role}{lost}"))
            found += [(f"  {price.decision}", _in_words(price)) for price in one.decisions]
        return [*found, ("prices", self.about)]


_LATE = "not tried in time"


def _plain(price: Price) -> dict[str, Any]:
    return {one.name: getattr(price, one.name) for one in fields(price) if one.name != "plan"}


def _in_words(price: Price) -> str:
    if price.loss is None or price.change is None:
        return str(price.problem)
    if price.at_stake is not None:
        staked = f"if an attacker knows it after all, {_records(price.at_stake)} below k"
        return f"{percent(price.loss)} lost ({_points(price.change)}); {staked}"
    below = f", {_records(price.below_k)} below k" if price.below_k else ""
    return (
        f"{percent(price.loss)} lost ({_points(price.change)}), "
        f"{share(price.linkage)} linked{below}"
    )


def _records(part: float) -> str:
    """Say which part of the records are something.

    >>> _records(1.0), _records(0.0), _records(0.25)
    ('all records are', 'no record is', '25.0 % of the records are')
    """
    if part in (0.0, 1.0):
        return "all records are" if part else "no record is"
    return f"{share(part)} of the records are"


def _points(change: float) -> str:
    """Put a change of a percentage.

    >>> _points(-4.817), _points(0.004)
    ('−4.8 points', 'no change')
    """
    if abs(change) < 0.01:
        return "no change"
    digits = 1 if abs(change) >= 1 else 2
    return f"{'+' if change > 0 else '−'}{abs(change):.{digits}f} points"


def prices(
    frame: Any,
    plan: Plan | None = None,
    *,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
) -> Prices:
    """Estimate what each decision about a column costs: loss, linkage, records below k.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    plan : by default the draft of the table
    sample : most records to group for a decision
    budget : seconds for the tries; a wide table is tried on fewer records to keep to it, and what does not
        fit is told
    progress : called with the number of decisions tried and of all; it may raise
        :class:`microagg.StopSearch`

    >>> import pyarrow as pa
    >>> t = pa.table({"age": [30, 31, 34, 61, 65, 66], "sex": ["f", "m", "f", "m", "f", "m"]})
    >>> found = prices(t, Plan.of(k=3, columns=["age", "sex"]), budget=600)
    >>> sex = next(one for one in found.columns if one.column == "sex")
    >>> [(price.decision, round(price.loss, 1)) for price in sex.decisions]
    [('stratum', 91.2), ('drop', 1.4), ('confidential', 1.4)]
    """
    records = Records(Frame(frame))
    return price_table(records, plan or Plan(), sample=sample, budget=budget, progress=progress)


def price_table(
    records: Records,
    plan: Plan,
    *,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
) -> Prices:
    """Price the decisions about a table that was read; see :func:`prices`."""
    if not (isinstance(sample, int) and sample >= 10):
        raise InputError(f"sample is a number of records, 10 or more; got {shown(sample)}.")
    if not budget > 0:
        raise InputError(f"budget is a number of seconds above 0; got {shown(budget)}.")
    words = ("",) if records.text is None else MISSING_WORDS
    whole = complete(records.frame, plan, words, records.coded).plan
    guesses = guess(records.frame, k=whole.k, missing_words=words)
    wanted = _decisions(records, whole, guesses)
    quick = {key: for_a_sample(fast(one)) for key, one in wanted.items() if isinstance(one, Plan)}
    # Whether a column is dropped or confidential, the others are grouped alike: one try tells both.
    twice = {key for key in quick if key[1] == "drop" and (key[0], "confidential") in quick}
    quick = {key: one for key, one in quick.items() if key not in twice}
    base, tries = fast(whole), len(quick)
    # Loading and compiling kernels is no part of the time.
    try_plan(records.taken(np.arange(min(len(records), 50))), for_a_sample(base))
    started = time.monotonic()
    part, now, seconds = sampled(records, base, min(sample, len(records)))
    remaining = started + budget - time.monotonic()
    if seconds * tries > remaining and len(part) > _LEAST_SAMPLE:
        # Fewer records for each decision, so that all decisions fit into the time.
        smaller = max(_LEAST_SAMPLE, int(len(part) * max(remaining, 0.0) / (seconds * tries)))
        part, now, _ = sampled(records, base, smaller)
    if now.problem is not None:
        raise InputError(f"The plan cannot be carried out on a sample of the table: {now.problem}")
    trend = Trend.of(part, now, base, len(records))
    found = try_plans(part, quick, ends=started + budget, on_progress=progress)
    found |= {(name, "drop"): found[name, "confidential"] for name, _ in twice}
    standing = _price("as it stands", now, now, trend, None)
    columns = []
    for name in records.frame.names:
        role = role_of(whole, name)
        decided = [
            _price(decision, found[column, decision], now, trend, one)
            if isinstance(one, Plan)
            else Price(decision, None, None, None, None, None, problem=one)
            for (column, decision), one in wanted.items()
            if column == name
        ]
        if decided:
            loss = now.by_column.get(name)
            own = None if loss is None else loss * trend.factor
            columns.append(ColumnPrices(name, ROLE_WORDS.get(role, "protect"), own, decided))
    columns.sort(key=lambda one: -one.most_won)
    margin = None if len(part) == len(records) else trend.margin
    return Prices(
        whole,
        standing,
        columns,
        len(records),
        len(part),
        margin,
        time.monotonic() - started,
        budget,
    )


def fast(plan: Plan) -> Plan:
    """Return the plan with little effort where its method has such a setting."""
    blocks = [
        replace(block, options={**block.options, "effort": "fast"})
        if block.method == "auto"
        else block
        for block in plan.blocks
    ]
    return replace(plan, blocks=tuple(blocks))


def sampled(records: Records, plan: Plan, size: int) -> tuple[Records, Figures, float]:
    """Draw whole units until there are enough records, and carry out the plan on them."""
    part = records
    if size < len(records):
        part, plan = records.taken(records.some(plan, size)), for_a_sample(plan)
    before = time.monotonic()
    found = try_plan(part, plan)
    return part, found, time.monotonic() - before


@dataclass(frozen=True)
class Trend:
    """How the loss falls with the number of records."""

    factor: float
    """Loss of the whole table over that of the sample."""
    margin: float
    """Points by which the loss of the table may be off."""

    @classmethod
    def of(cls, part: Records, now: Figures, plan: Plan, n: int) -> Trend:
        """Compare the sample with its quarters."""
        if len(part) == n or not now.loss > 0:
            return cls(1.0, 0.0)
        plan = for_a_sample(plan)
        quarters = [try_plan(part.taken(rows), plan) for rows in part.shared_out(plan, _PARTS, 1)]
        losses = np.array([one.loss for one in quarters if one.problem is None])
        if len(losses) < _PARTS:
            return cls(1.0, now.loss)
        fall = math.log(max(losses.mean() / now.loss, 1.0)) / math.log(_PARTS)
        factor = (n / len(part)) ** -min(fall, _LARGEST_FALL)
        drawn = _MARGIN * float(losses.std(ddof=1)) / float(losses.mean()) * now.loss * factor
        followed = now.loss * (1 - factor) / 2  # the fall that was followed may be half as large
        return cls(factor, math.hypot(drawn, followed))


def _price(decision: str, found: Figures, now: Figures, trend: Trend, plan: Plan | None) -> Price:
    if found.problem is not None:
        return Price(decision, None, None, None, None, None, problem=found.problem, plan=plan)
    return Price(
        decision,
        found.loss * trend.factor,
        (found.loss - now.loss) * trend.factor,
        found.group_loss * trend.factor,
        found.linkage,
        found.below_k,
        found.at_stake if decision == "confidential" else None,
        plan=plan,
    )


def _decisions(
    records: Records, plan: Plan, guesses: Mapping[Any, Guess]
) -> dict[tuple[Any, str], Plan | str]:
    """List the other roles that fit each column: the plan that has it, or why it cannot be."""
    found: dict[tuple[Any, str], Plan | str] = {}
    for name in records.frame.names:
        role, guessed = role_of(plan, name), guesses[name]
        if name in plan.units or role in ("weight", "renumber"):
            continue
        points = guessed.role in ("drop", "unit")  # to single records
        if points:
            continue
        for label, setting in recodings(records, plan, name, guessed):
            found[name, f"coarsen {label}"] = plan.override(coarsen={name: setting})
        for decision, other in (
            ("protect", "block-0"),
            ("stratum", "strata"),
            ("drop", "drop"),
            ("confidential", "confidential"),
        ):
            same = role.startswith("block-") if decision == "protect" else role == other
            if same or (decision == "stratum" and not may_be_stratum(records, name)):
                continue
            try:
                changed = with_role(plan, name, other, guessed.kind)
                if decision == "stratum":
                    check_stratum(records, changed)
                found[name, decision] = changed
            except MicroaggError as error:
                found[name, decision] = str(error)
    return found


def recodings(
    records: Records, plan: Plan, name: Any, guessed: Guess
) -> list[tuple[str, dict[str, Any]]]:
    """List recodings that fit a column: ten bands, rare levels together, or dates by month.

    A column that is dropped or confidential is not recoded, and one that is recoded already stays as it is.
    """
    setting = plan.columns.get(name, Column())
    if setting.coarsen is not None or name in plan.drop or name in plan.confidential:
        return []
    kind = setting.kind or guessed.kind or "number"
    if kind in ("number", "integer") and records.frame.is_numeric(name):
        values = records.frame.doubles(name)
        low, high = np.nanquantile(values, [0.05, 0.95]) if len(values) else (0.0, 0.0)
        width = _round_number((high - low) / _BANDS)
        whole = bool((values[~np.isnan(values)] % 1 == 0).all())
        if width <= 0 or (whole and width < 2):
            return []
        width = int(width) if width >= 1 else width
        return [(f"bands:{width:g}", {"bands": width})]
    if kind == "nominal":
        codes, levels = records.frame.categories(name)
        rare = 2 * plan.k
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        some = bool(((counts > 0) & (counts < rare)).any()) and bool((counts >= rare).any())
        return [(f"rare:{rare}", {"rare": rare})] if some else []
    return [("to:month", {"to": "month"})] if kind == "date" else []


def _round_number(value: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, 50 … (or .5, .2 …) up to a value; 0 for none.

    >>> _round_number(7.3), _round_number(1234.0), _round_number(0.0)
    (5.0, 1000.0, 0.0)
    """
    if not 0 < value < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(max(step * power for step in (1, 2, 5) if step * power <= value))


def may_be_stratum(records: Records, name: Any) -> bool:
    """Whether a column has a few different values, and none is missing."""
    codes, levels = records.frame.categories(name)
    return bool((codes >= 0).all()) and 1 < len(levels) <= _MOST_STRATA


def check_stratum(records: Records, plan: Plan) -> None:
    """Refuse strata with fewer than k units, which only the whole table can tell."""
    written = None if records.text is None else Frame(records.text)
    strata, _ = strata_of(records.frame, plan.strata.columns, written)
    if share_below(strata, plan.k, records.units(plan)):
        who = plan.words_of_unit(next(iter(plan.units), None))
        raise InputError(f"some strata have fewer than {who.counted(plan.k)}")
