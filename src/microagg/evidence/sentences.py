"""The sentences that report figures about a release; each is written once, here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from microagg.base.formatting import few_digits, lost_words, names, number, percent, plural, share
from microagg.measure.attack import Attacks
from microagg.measure.before_and_after import DIGITS
from microagg.measure.estimates import Analysis
from microagg.measure.fidelity import Fidelity
from microagg.measure.linkage import Linkage
from microagg.measure.pairing import Pairing
from microagg.measure.risk import Risk
from microagg.measure.utility import Utility
from microagg.plan.block import Block, Require
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept

Severity = Literal["note", "warning", "amber"]

_COSTLY = 3  # columns that are named with what they lost


@dataclass(frozen=True)
class Caution:
    """Something to know before the file leaves the house."""

    severity: Severity
    """"note": good to know. "warning": may give something away, to be weighed. "amber": the promise does
    not hold against what an attacker may have."""
    columns: tuple[Any, ...]
    words: str
    """The fact, with figures."""
    advice: str = ""
    """What to do about it."""
    disclosure: bool = True
    """Whether it is about what the file gives away, and not about what the file is worth."""
    cures: tuple[tuple[Any, str], ...] = ()
    """Decisions that the page can carry out: a column and, in the words of
    :func:`microagg.plan.change_role.decided`, what is done with it."""

    @property
    def sentence(self) -> str:
        """The fact and what to do."""
        return f"{self.words} {self.advice}".strip()

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "severity": self.severity,
            "columns": [str(name) for name in self.columns],
            "words": self.sentence,
        }


@dataclass(frozen=True)
class Threshold:
    """A figure that the plan sets, and what was found."""

    what: str
    limit: str
    found: str
    passed: bool


def thresholds_of(
    accept: Accept,
    loss: float,
    linkage: Linkage,
    analyses: Iterable[Analysis],
    fidelity: Fidelity,
    attacks: Attacks | None = None,
    not_attacked: str = "",
) -> list[Threshold]:
    """List what a plan accepts, and whether a release keeps to it; linkage is with the known columns.

    ``not_attacked`` says why there are no ``attacks``: a limit that could not be checked is missed.
    """
    thresholds = []
    if accept.loss is not None:
        limit, passed = f"at most {accept.loss:g} %", loss <= accept.loss
        thresholds.append(Threshold("information loss", limit, percent_words(loss), passed))
    if accept.linkage is not None:
        measured = share(linkage.share)
        measured += f" (up to {share(linkage.high)})" if linkage.sampled else ""
        limit, passed = f"at most {share(accept.linkage)}", linkage.high <= accept.linkage
        what = "record linkage with what an attacker knows"
        thresholds.append(Threshold(what, limit, measured, passed))
    if accept.tables is not None:
        multiple = few_digits(fidelity.multiple(fidelity.order), DIGITS)
        what = f"distance of {tables_words(fidelity.order)}"
        limit = f"at most {times_words(accept.tables)} that of another sample"
        measured, passed = f"{times_words(multiple)} that", multiple <= accept.tables
        thresholds.append(Threshold(what, limit, measured, passed))
    if accept.inference is not None:  # judged by the upper end of the interval
        figure = None if attacks is None else attacks.questions.get("inference, nearest records")
        if figure is None:
            why = not_attacked or "no column varies"
            measured, passed = f"not measured: {why}".rstrip("."), False
        elif figure.residual is None:
            measured, passed = "none: every value of other people is guessed, too", True
        else:
            low, high = (max(value, 0.0) for value in (figure.residual.share, figure.residual.high))
            measured, passed = f"{share(low)} (up to {share(high)})", high <= accept.inference
        what = "share of values guessed beyond those of people who are not in the file"
        thresholds.append(Threshold(what, f"at most {share(accept.inference)}", measured, passed))
    for analysis in () if accept.moved is None else analyses:
        limit = f"moved by at most {accept.moved:g} of its 95 % interval"
        moved = few_digits(analysis.moved, DIGITS)
        thresholds.append(Threshold(analysis.formula, limit, f"{moved:.2g}", moved <= accept.moved))
    return thresholds


def percent_words(value: float) -> str:
    """Write a percentage with the digits that all figures about originals have."""
    return percent(few_digits(value, DIGITS))


def promise_words(plan: Plan) -> str:
    """Say what a ``plan`` promises, and to whom."""
    most, weight = 12 if len(plan.blocks) == 1 else 6, plan.weight
    swapped, shared = list[str](), list[tuple[str, str]]()
    for block in plan.blocks:
        strata, who = plan.strata_of(block).columns, plan.words_of_unit(plan.unit_of(block).column)
        if block.is_swapped:
            where = f"its stratum ({names(strata, 6)})" if strata else "the table"
            bundles = plan.bundles_of(block)
            bound = "".join(f" {names(bundle)} are dealt together." for bundle in bundles)
            swapped.append(
                f"In groups of at least {block.k:,} {who}, each column's values were dealt to the rows at "
                f"random, column by column.{bound} The dealing itself tells nothing about whose value is "
                f"whose. Every released value stands for at least {block.k:,} {who} of {where}. It may be "
                "close to each one's own; who knows a group sees the list of its values."
            )
            continue
        columns, several = names(block.columns or (), most), len(block.columns or ()) != 1
        what = f"each {'combination' if several else 'value'} of {columns}"
        if block.per_column and several:
            what = f"each value of {columns}, every column by itself,"
        also = [f"the strata {names(strata, 6)}"] if strata else []
        if weight is not None and weight.column in plan.also_shared(block):
            also.append(f"the released weight {names([weight.column])}")
        what += f" together with {' and '.join(also)}" if also else ""
        shared.append((what, f"by at least {block.k:,} {who}"))
    if len(shared) == 1:
        swapped.insert(0, f"In the released file, {shared[0][0]} is shared {shared[0][1]}.")
    elif shared:
        several_words = "; ".join(map(" ".join, shared))
        swapped.insert(0, f"In the released file, these are shared: {several_words}.")
    return " ".join(swapped)


def release_words(block: Block, categories: bool) -> str:
    """Say what the groups of a ``block`` release; ``categories`` tells whether it may have some.

    >>> release_words(Block(columns=("age",)), categories=False)
    'Each group releases its mean.'
    """
    if block.is_swapped:
        return "The values of each group are dealt to its rows at random, column by column."
    how = "that of a random member" if block.draws else "the one nearest to all of its members"
    of_categories = f", of categories {how}" if categories else ""
    one_by_one = ", every column by itself" if block.per_column else ""
    return f"Each group releases its {block.released}{of_categories}{one_by_one}."


def pairing_words(pairing: Pairing, unknown: Sequence[Any]) -> str:
    """Say what the pairing attack found, and what chance gives."""
    go = "goes" if len(unknown) == 1 else "go"
    return (
        f"Using how {names(unknown, 6)} {go} with the protected columns, our attack picked the right row in "
        f"{share(pairing.rate)}; chance alone gives {share(pairing.base)}."
    )


def required_words(require: Require) -> list[str]:
    """List what ``require`` asks for readers of the released file, without thresholds of dominance rules.

    >>> required_words(Require(distinct={"diagnosis": 3}, p_percent={"turnover": 10}))
    ['at least 3 different values of diagnosis', 'a p % rule for turnover']
    """
    rules = [f"at least {n} different values of {names([c])}" for c, n in require.distinct.items()]
    rules += [f"entropy l-diversity of {names([c])}, l = {v:g}" for c, v in require.entropy.items()]
    rules += [f"t-closeness of {names([c])}, t = {t:g}" for c, t in require.closeness.items()]
    rules += [f"{names([c])} is given away by no group" for c in require.hidden]
    rules += [f"a p % rule for {names([c])}" for c in require.p_percent]
    rules += [f"an (n, k) dominance rule for {names([c])}" for c in require.n_k]
    if require.population is not None:
        rules.append(f"{number(int(require.population))} or more of the population")
    if require.individual_risk is not None:
        rules.append(f"an individual risk of at most {share(require.individual_risk)}")
    return rules


def loss_words(utility: Utility, where: str = "") -> str:
    """Say what the released values lost, in which columns most, and what the groups lose if that differs.

    ``utility`` has the losses; ``where`` says where it was lost.
    """
    said = f"{percent(utility.information_loss)} of the information{where}"
    return "; ".join(filter(None, [said, most_lost_words(utility)]))


def tables_words(order: int) -> str:
    """Name tables of 1, 2 or 3 columns: of this ``order``."""
    return f"tables of {('one column', 'two columns', 'three columns')[order - 1]}"


def times_words(multiple: float) -> str:
    """Write a ``multiple``.

    >>> times_words(1.5), times_words(float("inf"))
    ('1.5 times', 'any number of times')
    """
    return "any number of times" if multiple == float("inf") else f"{multiple:.3g} times"


def fidelity_words(fidelity: Fidelity) -> str:
    """Say how far tables moved by a ``fidelity``, beside what another sample of the same size gives."""
    order = fidelity.order
    moved, sampling = fidelity.tables[order - 1], fidelity.sampling[order - 1]
    sample = f" (in a sample of {plural(fidelity.records, 'record')})" if fidelity.sampled else ""
    return (
        f"{tables_words(order)}: {whole_share(moved)} of the records in another cell; another sample of "
        f"this size: {whole_share(sampling)}{sample}"
    )


def whole_share(value: float | None) -> str:
    """Write ``value``, a share, as a percentage of two digits.

    >>> whole_share(0.0912), whole_share(0.5), whole_share(0.0021)
    ('9.1 %', '50 %', '0.2 %')
    """
    if value is not None and 0.095 <= value < 0.995:
        return f"{100 * value:.0f} %"
    return share(value)


def worst_first(losses: Mapping[Any, float]) -> list[Any]:
    """Order columns by their ``losses``; those that lost the same, as far as it is said, stay in their order.

    The last digits of a double are of the way it was added up, which differs between engines.

    >>> worst_first({"age": 99.99999999999996, "job": 3.0, "town": 100.0})
    ['age', 'town', 'job']
    """
    return sorted(losses, key=lambda name: -few_digits(losses[name], DIGITS))


def most_lost_words(utility: Utility) -> str:
    """Say which columns of ``utility`` lost most, and what the groups lose where that differs; or nothing."""
    by = utility.by_column
    worst = worst_first(by)[:_COSTLY]
    said = []
    if len(by) > 1:
        said.append("most in " + ", ".join(f"{names([n])} ({lost_words(by[n])})" for n in worst))
    # Of two files only the values are known.
    if utility.groups_known and percent(utility.information_loss) != percent(utility.group_loss):
        said.append(f"the groups alone, with exact means, lose {percent(utility.group_loss)}")
    return "; ".join(said)


def attacker_words(alone: Risk, k: int | None = None) -> str:
    """Say what an attacker gains from the protected columns ``alone``, and what that is beside ``k``."""
    odds = "" if k is None else odds_words(alone.linkage.share, k)
    return (
        "an attacker who knows the true values of the protected columns finds the right record in "
        f"{cases_words(alone.linkage)}{odds}; a blind guess is right in {share(alone.blind_guess)}"
    )


_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
           "eleven")  # fmt: skip


def odds_words(found: float, k: int) -> str:
    """Compare the share of records that are found with one in k; empty where more are found.

    >>> odds_words(0.178, 5), odds_words(0.2, 5)
    (', one in five or six, as k = 5 means', ', one in five, as k = 5 means')
    >>> odds_words(0.15, 5), odds_words(0.9, 5)
    (' (k = 5: at most one in five)', '')
    """
    least = _COUNTS[k] if k < len(_COUNTS) - 1 else f"{k:,}"
    if found <= 0 or found > 1.005 / k:
        return ""
    if found < 1 / (k + 1):
        return f" (k = {k:,}: at most one in {least})"
    more = _COUNTS[k + 1] if k < len(_COUNTS) - 1 else f"{k + 1:,}"
    which = least if found > 0.98 / k else f"{least} or {more}"
    return f", one in {which}, as k = {k:,} means"


def cases_words(linkage: Linkage) -> str:
    """Say in how many cases a ``linkage`` finds the right record; with an interval, if it was sampled.

    >>> cases_words(Linkage(0.178, 0.178, 0.178, 397, sampled=False))
    '17.8 % of the cases'
    >>> cases_words(Linkage(1.0, 0.996, 1.0, 1_000, sampled=True))
    'all cases (at least 99.6 %, from a sample of 1,000)'
    """
    cases = {0.0: "no case", 1.0: "all cases"}.get(
        linkage.share, f"{share(linkage.share)} of the cases"
    )
    if not linkage.sampled:
        return cases
    ends = {0.0: f"at most {share(linkage.high)}", 1.0: f"at least {share(linkage.low)}"}
    interval = ends.get(linkage.share, f"{share(linkage.low)} to {share(linkage.high)}")
    return f"{cases} ({interval}, from a sample of {number(linkage.records)})"
