"""A choice of method, k and kind of release: what it gives, and which of several choices is best."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from microagg.base.formatting import TRADE_OFF, plural, share
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept

if TYPE_CHECKING:
    from microagg.engines.memory.release import Release
    from microagg.measure.attack_rates import Residual
    from microagg.measure.linkage import Linkage

FAST = ("auto", "mdav", "mst", "kmeans-merge", "v-mdav")
"""Tried unless methods are named: of the literature's methods those that were worth choosing on the reference
sets and whose time grows nearly linearly with the records, at least in few columns."""

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

    @property
    def label(self) -> str:
        """The method, and whether values are swapped."""
        return f"{self.method}{' (swapped)' * (self.release == 'swap')}"

    @property
    def loss(self) -> float:
        """The information loss; the largest number if there is no result."""
        return sys.float_info.max if self.information_loss is None else self.information_loss

    @property
    def linked(self) -> float:
        """Share of the records linked; all if there is no result."""
        return 1.0 if self.linkage is None else self.linkage.share

    @classmethod
    def of(cls, release: Release, tables: bool = False) -> Choice:
        """Return loss and risk of a release; with ``tables``, also how far tables of three columns moved."""
        partitions, utility = [part.partition for part in release.parts], release.utility
        fidelity = release.fidelity if tables else None
        return cls(
            method=release.plan.blocks[0].method,
            k=release.k,
            groups=sum(partition.n_groups for partition in partitions),
            smallest=min(partition.smallest for partition in partitions),
            largest=max(partition.largest for partition in partitions),
            information_loss=utility.information_loss,
            group_loss=utility.group_loss,
            linkage=release.with_known.linkage,
            below_k=release.with_known.below_k,
            release=release.plan.blocks[0].release,
            seconds=release.seconds["partition"],
            cut_short=any(partition.stopped for partition in partitions),
            tables=None if fidelity is None else fidelity.tables[fidelity.order - 1],
            tables_multiple=None if fidelity is None else fidelity.multiple(fidelity.order),
        )

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON: one row of the table."""
        row = asdict(self)
        linkage = row.pop("linkage")
        row["record_linkage"] = linkage and linkage["share"]
        row["record_linkage_interval"] = linkage and [linkage["low"], linkage["high"]]
        row["inference"] = self.inference and self.inference._asdict()
        return row


def mark_frontier(choices: Sequence[Choice]) -> list[Choice]:
    """Mark those of ``choices`` that are worth choosing.

    They are the fewest such that every other choice is better than one of them by a hundredth of the spread
    at most, in cost and in risk alike. Cost is the loss, or how far tables moved where that was measured;
    risk is the linkage, or what is guessed beyond controls. The spread is that of the choices that no
    other beats in one respect and equals in the other. Of equal choices the one with the largest k counts.
    """
    done = []
    for i, choice in enumerate(choices):
        if choice.problem is None:
            cost = choice.loss if choice.tables is None else 100 * choice.tables
            gain = choice.inference
            risk = choice.linked if gain is None else max(gain.share, 0.0)
            done.append((cost, risk, -choice.k, i))
    front: list[int] = []  # beaten by none: each loses more than the one before and links fewer
    losses, links = list[float](), list[float]()
    for cost, risk, _, i in sorted(done):
        if not front or risk < links[-1]:
            front, losses, links = [*front, i], [*losses, cost], [*links, risk]
    worth, at = set[int](), 0
    while at < len(front):
        # Of those that lose hardly more than this one, the last links the fewest, and stands for all.
        limit = losses[at] + TOLERANCE * (losses[-1] - losses[0])
        best = max(j for j in range(at, len(front)) if losses[j] <= limit)
        worth.add(front[best])
        limit = links[best] - TOLERANCE * (links[0] - links[-1])
        at = next((j for j in range(best + 1, len(front)) if links[j] < limit), len(front))
    return [replace(choice, on_frontier=i in worth) for i, choice in enumerate(choices)]


def about_methods(plan: Plan) -> str | None:
    """Say that the method matters little, if the same search follows every method; else None.

    ``plan`` has a role for every column.
    """
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


def next_k_for(choices: Sequence[Choice], accept: Accept, n: int) -> int | None:
    """Name the k to try next with a method in search of its best choice that meets the targets.

    ``choices`` are those tried with the method, ``accept`` the targets, and ``n`` the number of records. With
    a target for the linkage the best is the smallest k that meets it, since it loses least; else the largest
    that meets the loss, since it links least. None when the search is over: also when a choice has no result,
    and when meeting the linkage would lose too much.
    """
    if not choices or any(choice.problem is not None for choice in choices):
        return None
    loss_and_linkage = {choice.k: _meets(choice, accept) for choice in choices}
    if accept.linkage is None:
        return next_k({k: meets[0] for k, meets in loss_and_linkage.items()}, n, largest=True)
    k = next_k({k: meets[1] for k, meets in loss_and_linkage.items()}, n, largest=False)
    # Loss rises with k, but for neighbours.
    lose_too_much = [tried for tried, meets in loss_and_linkage.items() if not meets[0]]
    return None if k is not None and any(tried < k - 1 for tried in lose_too_much) else k


def _meets(choice: Choice, accept: Accept) -> tuple[bool, bool]:
    """Return whether a choice keeps to loss and linkage; an estimated share counts at its upper end."""
    linked = 1.0 if choice.linkage is None else choice.linkage.high
    return (
        accept.loss is None or choice.loss <= accept.loss,
        accept.linkage is None or linked <= accept.linkage,
    )


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
    """Say which of the choices tried is the best that meets the targets ``accept``.

    Without targets the ``choices`` worth choosing, which are marked, are summed up.
    """
    asked = accept.targets
    done = [choice for choice in choices if choice.problem is None]
    if not done:
        words = "No method could group this table; see the problems in the table."
        if not all(choice.tried for choice in choices):
            words = (
                "No choice was finished in time. Allow more time (budget), or try fewer methods."
            )
        return Suggestion(words, None, False if asked else None)
    if not asked:
        worth = sorted((c for c in done if c.on_frontier), key=lambda choice: choice.loss)
        are, ends = "is", f": {_in_words(worth[0])}"
        if len(worth) > 1:
            are, ends = "are", f", from {_in_words(worth[0])} to {_in_words(worth[-1])}"
        words = (
            f"No target was given. {len(worth)} of {plural(len(done), 'choice')} {are} worth choosing"
            f"{ends}. Give a target, a largest loss or linkage, to get one answer. {TRADE_OFF}"
        )
        return Suggestion(words, None, None)

    def excess(choice: Choice) -> float:
        """Return how far a choice is above the targets, in shares of each."""
        lost = 0.0 if accept.loss is None else choice.loss / max(accept.loss, 1e-9) - 1
        linked = 0.0 if accept.linkage is None else choice.linked / max(accept.linkage, 1e-9) - 1
        return max(lost, 0.0) + max(linked, 0.0)

    good = [choice for choice in done if all(_meets(choice, accept))]
    if not good:
        words = (
            f"None of the {plural(len(done), 'choice')} has {' and '.join(asked)}. The nearest is "
            f"{_in_words(min(done, key=excess))}. Try other methods, or relax a target. {TRADE_OFF}"
        )
        return Suggestion(words, None, False)
    least = "links least"
    best = min(good, key=lambda c: (c.linked, c.loss, -c.k, c.method))
    if accept.linkage is not None:
        least = "loses least"
        best = min(good, key=lambda c: (c.loss, c.linked, -c.k, c.method))
    lost = "" if accept.loss is None else f" (at most {accept.loss:g} % asked for)"
    linked = "" if accept.linkage is None else f" (at most {100 * accept.linkage:g} % asked for)"
    words = (
        f"{best.label} with k = {best.k} meets the {'targets' if asked[1:] else 'target'}: it loses "
        f"{best.loss:.2f} %{lost} and {_linked_words(best)} of the records are linked{linked}. {len(good)} "
        f"of {plural(len(done), 'choice')} {'does' if len(good) == 1 else 'do'}; this one {least}."
    )
    if best.below_k:
        below = share(best.below_k)
        words += f" But the known columns narrow {below} of the records down to fewer than k."
    return Suggestion(f"{words} {TRADE_OFF}", best, True)


def _in_words(choice: Choice) -> str:
    linked = _linked_words(choice)
    return f"{choice.label} with k = {choice.k} ({choice.loss:.2f} % lost, {linked} linked)"


def _linked_words(choice: Choice) -> str:
    """Format the share linked and, since targets count it, the upper end of its interval."""
    high = ""
    if choice.linkage and choice.linkage.sampled:
        high = f" (up to {100 * choice.linkage.high:.1f} %)"
    return f"{100 * choice.linked:.1f} %{high}"
