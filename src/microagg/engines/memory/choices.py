"""The choice of a method and k: what was tried, what is worth choosing, and what meets a target."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from microagg.base.formatting import TRADE_OFF, plural, share
from microagg.errors import MicroaggError
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept

if TYPE_CHECKING:
    from microagg.measure.attack_rates import Residual
    from microagg.measure.linkage import Linkage

# Tried unless methods are named: of the literature's methods those that were worth choosing on the
# reference sets and whose time grows nearly linearly with the records, at least in few columns.
FAST = ("auto", "mdav", "mst", "kmeans-merge", "v-mdav")

# Share of the spread of loss and linkage along the frontier: a smaller difference is no reason to choose.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Choice:
    """One method with one k and one kind of release."""

    method: str
    k: int
    groups: int = 0
    smallest: int = 0
    largest: int = 0
    information_loss: float | None = None
    """100·SSE/SST of the released values; None if there is no result."""
    linkage: Linkage | None = None
    """Distance-based record linkage with the known columns; sampled for large tables."""
    seconds: float = 0.0
    """Time for the grouping, while others ran at the same time."""
    on_frontier: bool = False
    """Whether it is worth choosing, see :func:`mark_frontier`."""
    cut_short: bool = False
    """Whether its search was ended before it was done; with more time it may lose less."""
    tried: bool = True
    """Whether it was tried to its end; False if time was over or somebody asked to stop."""
    problem: str | None = None
    """Why there is no result."""
    group_loss: float | None = None
    """100·SSE/SST if each group released its exact centroid."""
    release: str = "mean"
    """What groups release: means, or swapped values."""
    tables: float | None = None
    """Share of the records in another cell of tables of three columns; None: not measured."""
    tables_multiple: float | None = None
    """The same as a multiple of what another sample of the same size gives."""
    below_k: float | None = None
    """Share of the records that known columns narrow down to fewer than k records, or units."""
    inference: Residual | None = None
    """Share of values guessed beyond those of people who are not in the file; None: not attacked."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON: one row of the table."""
        row = asdict(self)
        linkage = row.pop("linkage")
        row["record_linkage"] = linkage and linkage["share"]
        row["record_linkage_interval"] = linkage and [linkage["low"], linkage["high"]]
        row["inference"] = None if self.inference is None else self.inference._asdict()
        return row


def _loss(choice: Choice) -> float:
    return sys.float_info.max if choice.information_loss is None else choice.information_loss


def _worth(choice: Choice) -> float:
    """Return what a choice costs the users of the file: how far tables moved, if measured, or the loss."""
    return _loss(choice) if choice.tables is None else 100 * choice.tables


def _linked(choice: Choice) -> float:
    return 1.0 if choice.linkage is None else choice.linkage.share


def _risk(choice: Choice) -> float:
    """Return what an attacker gains: by inference, if that was attacked, or by linkage."""
    return _linked(choice) if choice.inference is None else max(choice.inference.share, 0.0)


def mark_frontier(choices: Sequence[Choice]) -> list[Choice]:
    """Mark the choices that are worth choosing.

    They are the fewest such that every other choice is better than one of them by a hundredth of the spread
    at most, in cost and in risk alike. Cost is the loss, or how far tables moved where that was measured;
    risk is the linkage, or what is guessed beyond controls. The spread is that of the choices that no
    other beats in one respect and equals in the other. Of equal choices the one with the largest k counts.
    """
    order = sorted(
        (i for i, choice in enumerate(choices) if choice.problem is None),
        key=lambda i: (_worth(choices[i]), _risk(choices[i]), -choices[i].k),
    )
    front: list[int] = []  # beaten by none: each loses more than the one before and links fewer
    for i in order:
        if not front or _risk(choices[i]) < _risk(choices[front[-1]]):
            front.append(i)
    losses, links = [_worth(choices[i]) for i in front], [_risk(choices[i]) for i in front]
    worth: set[int] = set()
    at = 0
    while at < len(front):
        # Of those that lose hardly more than this one, the last links the fewest, and stands for all.
        limit = losses[at] + TOLERANCE * (losses[-1] - losses[0])
        best = max(j for j in range(at, len(front)) if losses[j] <= limit)
        worth.add(front[best])
        limit = links[best] - TOLERANCE * (links[0] - links[-1])
        at = next((j for j in range(best + 1, len(front)) if links[j] < limit), len(front))
    return [replace(choice, on_frontier=i in worth) for i, choice in enumerate(choices)]


def with_other_k(
    plan: Plan, chosen: Choice, n: int, tried: Callable[[Plan], Choice]
) -> Mapping[str, object] | None:
    """Return the same plan with other k, and with its values swapped, for the risk–utility map.

    Parameters
    ----------
    plan : as it was carried out
    chosen : its figures
    n : number of records
    tried : carries a plan out on the same records

    Returns
    -------
    mapping or None
        None if there is no other k to try.
    """
    k = chosen.k
    sizes = sorted({size for size in (2, k // 2, 2 * k, 4 * k) if 2 <= size <= n} - {k})
    if not sizes:
        return None
    others = [(_with_k(plan, size), size, chosen.release) for size in sizes]
    if not plan.is_swapped:
        with suppress(MicroaggError):  # a setting of the plan does not go with swapping
            swapped = plan.override(release="swap")
            others += [(_with_k(swapped, size), size, "swap") for size in (k, 2 * k, 4 * k)]
    choices = [chosen]
    for other, size, release in others:
        try:
            choices.append(tried(other))
        except MicroaggError as error:  # this k cannot be met, by a stratum for example
            choices.append(Choice(chosen.method, size, release=release, problem=str(error)))
    marked = mark_frontier(sorted(choices, key=lambda choice: (choice.release, choice.k)))
    return {
        "blind_guess": 1 / n,
        "release": chosen.release,
        "cells": [choice.as_dict() for choice in marked],
    }


def _with_k(plan: Plan, k: int) -> Plan:
    """Return the plan with another k; a map need not take as long for every k as the release did."""
    blocks = []
    for block in plan.blocks:
        options = {name: value for name, value in block.options.items() if name != "time_limit"}
        if options.get("effort") == "best":
            options["effort"] = "balanced"
        refine = "balanced" if block.refine == "best" else block.refine
        blocks.append(replace(block, k=k, bound=False, refine=refine, options=options))
    return replace(plan, blocks=tuple(blocks))


def _meets_loss(choice: Choice, accept: Accept) -> bool:
    return accept.loss is None or _loss(choice) <= accept.loss


def _meets_linkage(choice: Choice, accept: Accept) -> bool:
    """Return whether a choice keeps to the linkage; an estimated share counts at the end of its interval."""
    limit, linkage = accept.linkage, choice.linkage
    return limit is None or (linkage is not None and linkage.high <= limit)


def next_k_for(choices: Sequence[Choice], accept: Accept, n: int) -> int | None:
    """Name the k to try next with a method in search of its best choice that meets the targets.

    With a target for the linkage that is the smallest k that meets it, since it loses least; else the
    largest that meets the loss, since it links least. None when the search is over: also when a
    choice has no result, and when meeting the linkage would lose too much.
    """
    if not choices or any(choice.problem is not None for choice in choices):
        return None
    if accept.linkage is None:
        return next_k(
            {choice.k: _meets_loss(choice, accept) for choice in choices}, n, largest=True
        )
    k = next_k({choice.k: _meets_linkage(choice, accept) for choice in choices}, n, largest=False)
    lose_too_much = [choice.k for choice in choices if not _meets_loss(choice, accept)]
    # Loss rises with k, but for neighbours.
    hopeless = k is not None and any(other < k - 1 for other in lose_too_much)
    return None if hopeless else k


def next_k(meets: Mapping[int, bool], n: int, *, largest: bool) -> int | None:
    """Name the k to try next in search of the largest (or smallest) k that meets a target.

    ``meets`` has at least one k that was tried. If the ``largest`` is sought, small k meet the target and
    large ones do not; else the reverse. The first and the last k of a range enclose the edge, which bisection
    narrows down. Since measures are not quite monotone in k, the k beyond the neighbour that fails is tried
    too, and the search goes on from there if that meets the target. k = 1 protects nothing and is never
    named.

    >>> next_k({3: True, 10: False}, 100, largest=True)
    5
    """
    good = [k for k, holds in meets.items() if holds]
    if largest:
        best = max(good, default=1)
        fails = min((k for k in meets if k > best), default=None)
        step = 1
    else:
        best = min(good, default=n + 1)
        fails = max((k for k in meets if k < best), default=1)
        step = -1
    if fails is None or best > n:  # no end of the range is known yet
        most = max(best if fails is None else fails, 1)
        return min(2 * most, n) if most < n else None
    if fails != best + step:
        low, high = sorted((best, fails))
        return min(max(math.isqrt(low * high), low + 1), high - 1)
    beyond = best + 2 * step
    return beyond if 2 <= beyond <= n and beyond not in meets else None


@dataclass(frozen=True)
class Suggestion:
    """An answer in words, and the choice it is about."""

    words: str
    cell: Choice | None
    """What to choose; None if nothing meets the targets, or none was given."""
    meets: bool | None
    """Whether a choice that was tried meets the targets; None if none was given."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "words": self.words,
            "cell": self.cell and self.cell.as_dict(),
            "meets": self.meets,
        }


def suggestion(choices: Sequence[Choice], accept: Accept) -> Suggestion:
    """Say which of the choices tried is the best that meets the targets."""
    asked = accept.targets
    failed = False if asked else None
    done = [choice for choice in choices if choice.problem is None]
    if not done:
        if all(choice.tried for choice in choices):
            words = "No method could group this table; see the problems in the table."
        else:
            words = (
                "No choice was finished in time. Allow more time (budget), or try fewer methods."
            )
        return Suggestion(words, None, failed)
    if not asked:
        return Suggestion(_without_target(done), None, None)
    good = [
        choice for choice in done if _meets_loss(choice, accept) and _meets_linkage(choice, accept)
    ]
    if not good:
        return Suggestion(_nearest(done, accept), None, failed)
    # With a limit on the loss alone, the linkage decides.
    key = (_linked, _loss) if accept.linkage is None else (_loss, _linked)
    best = min(good, key=lambda choice: (key[0](choice), key[1](choice), -choice.k, choice.method))
    return Suggestion(_meets(best, len(good), len(done), accept), best, True)


def _without_target(done: list[Choice]) -> str:
    worth = sorted((choice for choice in done if choice.on_frontier), key=_loss)
    which = (
        f"1 of {plural(len(done), 'choice')} is worth choosing: {_in_words(worth[0])}"
        if len(worth) == 1
        else f"{len(worth)} of {len(done)} choices are worth choosing, from {_in_words(worth[0])} to "
        f"{_in_words(worth[-1])}"
    )
    return (
        f"No target was given. {which}. Give a target, a largest loss or linkage, to get one answer. "
        f"{TRADE_OFF}"
    )


def _nearest(done: list[Choice], accept: Accept) -> str:
    words = f"None of the {plural(len(done), 'choice')} has {' and '.join(accept.targets)}."
    if len(accept.targets) == 1:
        nearest = min(done, key=_loss if accept.linkage is None else _linked)
        words += f" The nearest is {_in_words(nearest)}."
    else:
        within = [choice for choice in done if _meets_loss(choice, accept)]
        words += (
            f" Within the loss, the fewest records are linked by {_in_words(min(within, key=_linked))}."
            if within
            else f" The least is lost by {_in_words(min(done, key=_loss))}."
        )
        within = [choice for choice in done if _meets_linkage(choice, accept)]
        words += (
            f" Within the linkage, the least is lost by {_in_words(min(within, key=_loss))}."
            if within
            else f" The fewest records are linked by {_in_words(min(done, key=_linked))}."
        )
    return f"{words} Try other methods, or relax a target. {TRADE_OFF}"


def _meets(best: Choice, good: int, done: int, accept: Accept) -> str:
    max_loss, max_linkage = accept.loss, accept.linkage
    loss = "" if max_loss is None else f" (at most {max_loss:g} % asked for)"
    linked = "" if max_linkage is None else f" (at most {100 * max_linkage:g} % asked for)"
    target = "target" if len(accept.targets) == 1 else "targets"
    least = "links least" if max_linkage is None else "loses least"
    return (
        f"{best.method} with k = {best.k} meets the {target}: it loses {_loss(best):.2f} %{loss} and "
        f"{_linked_words(best)} of the records are linked{linked}. {good} of "
        f"{plural(done, 'choice')} {'does' if good == 1 else 'do'}; this one {least}."
        f"{_below_words(best)} {TRADE_OFF}"
    )


def _below_words(choice: Choice) -> str:
    """Say which share of the records the known columns narrow down to fewer than k."""
    if not choice.below_k:
        return ""
    return f" But the known columns narrow {share(choice.below_k)} of the records down to fewer than k."


def _in_words(choice: Choice) -> str:
    return f"{choice.method} with k = {choice.k} ({_loss(choice):.2f} % lost, {_linked_words(choice)} linked)"


def _linked_words(choice: Choice) -> str:
    """Format the share linked and, since targets count it, the upper end of its interval."""
    high = (
        f" (up to {100 * choice.linkage.high:.1f} %)"
        if choice.linkage and choice.linkage.sampled
        else ""
    )
    return f"{100 * _linked(choice):.1f} %{high}"


def about_methods(plan: Plan) -> str | None:
    """Say that the method matters little, if the same search follows every method."""
    counted = [u.column for u in map(plan.unit_of, plan.blocks) if u.column and u.mode == "count"]
    required = any(block.require for block in plan.blocks)
    if not counted and not required:
        return None
    what = [f"k counts {plan.words_of_unit(counted[0]).many}"] if counted else []
    what += ["the plan requires more than k"] if required else []
    close = " but those for closeness" if any(b.require.closeness for b in plan.blocks) else ""
    return (
        f"Since {' and '.join(what)}, the same search follows every method{close}, and methods differ "
        "little. Compare k."
    )
