"""Which of several choices meets targets best, in words, and which k to try next in search of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microagg.base.formatting import TRADE_OFF, plural, share
from microagg.comparing.choices import Choice
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept

FAST = ("auto", "mdav", "mst", "kmeans-merge", "v-mdav")
"""Tried unless methods are named: of the literature's methods those that were worth choosing on the reference
sets and whose time grows nearly linearly with the records, at least in few columns."""


def about_methods(plan: Plan) -> str | None:
    """Say that the method matters little, if the same search follows every method; else None.

    Parameters
    ----------
    plan : with a role for every column
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

    With a target for the linkage that is the smallest k that meets it, since it loses least; else the
    largest that meets the loss, since it links least. None when the search is over: also when a
    choice has no result, and when meeting the linkage would lose too much.

    Parameters
    ----------
    choices : those tried with the method
    accept : the targets
    n : number of records
    """
    if not choices or any(choice.problem is not None for choice in choices):
        return None
    if accept.linkage is None:
        return next_k({c.k: _meets_loss(c, accept) for c in choices}, n, largest=True)
    k = next_k({c.k: _meets_linkage(c, accept) for c in choices}, n, largest=False)
    lose_too_much = [choice.k for choice in choices if not _meets_loss(choice, accept)]
    # Loss rises with k, but for neighbours.
    hopeless = k is not None and any(other < k - 1 for other in lose_too_much)
    return None if hopeless else k


def _meets_loss(choice: Choice, accept: Accept) -> bool:
    return accept.loss is None or choice.loss <= accept.loss


def _meets_linkage(choice: Choice, accept: Accept) -> bool:
    """Return whether a choice keeps to the linkage; an estimated share counts at the end of its interval."""
    limit, linkage = accept.linkage, choice.linkage
    return limit is None or (linkage is not None and linkage.high <= limit)


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
    """Say which of the choices tried is the best that meets the targets.

    Parameters
    ----------
    choices : what was tried, those worth choosing marked
    accept : the targets; without any, the choices worth choosing are summed up
    """
    asked = accept.targets
    failed = False if asked else None
    done = [choice for choice in choices if choice.problem is None]
    if not done:
        words = "No method could group this table; see the problems in the table."
        if not all(choice.tried for choice in choices):
            words = (
                "No choice was finished in time. Allow more time (budget), or try fewer methods."
            )
        return Suggestion(words, None, failed)
    if not asked:
        worth = sorted((c for c in done if c.on_frontier), key=lambda choice: choice.loss)
        are = "is" if len(worth) == 1 else "are"
        ends = f": {_in_words(worth[0])}"
        if len(worth) > 1:
            ends = f", from {_in_words(worth[0])} to {_in_words(worth[-1])}"
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

    good = [c for c in done if _meets_loss(c, accept) and _meets_linkage(c, accept)]
    if not good:
        words = (
            f"None of the {plural(len(done), 'choice')} has {' and '.join(asked)}. The nearest is "
            f"{_in_words(min(done, key=excess))}. Try other methods, or relax a target. {TRADE_OFF}"
        )
        return Suggestion(words, None, False)
    least = "links least" if accept.linkage is None else "loses least"
    best = min(
        good,
        key=lambda c: (
            *((c.linked, c.loss) if accept.linkage is None else (c.loss, c.linked)),
            -c.k,
            c.method,
        ),
    )
    lost = "" if accept.loss is None else f" (at most {accept.loss:g} % asked for)"
    linked = "" if accept.linkage is None else f" (at most {100 * accept.linkage:g} % asked for)"
    words = (
        f"{best.method} with k = {best.k} meets the {'targets' if asked[1:] else 'target'}: it loses "
        f"{best.loss:.2f} %{lost} and {_linked_words(best)} of the records are linked{linked}. {len(good)} "
        f"of {plural(len(done), 'choice')} {'does' if len(good) == 1 else 'do'}; this one {least}."
    )
    if best.below_k:
        below = share(best.below_k)
        words += f" But the known columns narrow {below} of the records down to fewer than k."
    return Suggestion(f"{words} {TRADE_OFF}", best, True)


def _in_words(choice: Choice) -> str:
    linked = _linked_words(choice)
    return f"{choice.method} with k = {choice.k} ({choice.loss:.2f} % lost, {linked} linked)"


def _linked_words(choice: Choice) -> str:
    """Format the share linked and, since targets count it, the upper end of its interval."""
    high = ""
    if choice.linkage and choice.linkage.sampled:
        high = f" (up to {100 * choice.linkage.high:.1f} %)"
    return f"{100 * choice.linked:.1f} %{high}"
