"""What is said about a release together with earlier ones of the same ledger."""

from __future__ import annotations

from collections.abc import Iterator

from microagg.base.formatting import UnitWords, percent, plural
from microagg.errors import shown
from microagg.evidence.measured import History
from microagg.evidence.sentences import Caution

# Counts of units and of groups in a ledger, and what is said of each.
_UNITS = {
    "new": "new",
    "waiting": "waiting, since fewer than k are new in their stratum",
    "withheld_for_leavers": "withheld, since others left their group",
    "withheld_for_moves": "withheld, since their group lies in several strata",
    "withheld_for_k": "withheld, since their stratum has fewer than k",
    "withheld_for_known": "withheld, since known columns would tell them apart over time",
    "weights_of_entry": "with another weight than at entry, which is not used",
}
_GROUPS = {
    "groups_joined": "that became one with others, since some left",
    "groups_joined_for_values": "that became one with others, since a column that fewer than k members have "
    "would lose more if it were blanked",
    "groups_renewed": "with new values",
    "groups_kept": "with old values although something changed, since the change would give somebody "
    "away",
    "columns_blanked": "with a column blanked that fewer than k members have",
    "groups_not_joined": "that could have become one instead",
}
_OTHERWISE = {
    "groups_joined": "if they were withheld",
    "groups_joined_for_values": "if it were blanked",
    "groups_not_joined": "as one",
}


def history_sentences(history: History, who: UnitWords) -> list[str]:
    """Return what is claimed over all files of a ``history``: these sentences, and no others.

    ``who`` is the noun for what k counts.

    >>> history_sentences(History(2, 5, 5, True, {}, "", ""), UnitWords("person", "persons"))[0]
    'Over the 2 files of this ledger, each combination of groups, strata, known columns and presence holds \
at least 5 persons: counted.'
    """
    counted = (
        f"Over the {plural(history.files, 'file')} of this ledger, each combination of groups, strata, "
        f"known columns and presence holds at least {who.counted(history.smallest)}: counted."
    )
    solved = (
        f"No sum over fewer than {history.k} {who} follows by linear algebra from the numbers released "
        "in these files."
    )
    limits = (
        "Only files of this ledger are covered, and not against someone who knows all but one member of a "
        "group, or has the ledger."
    )
    return [counted, solved, limits] if history.sums else [counted, limits]


def history_words(history: History | None, who: UnitWords) -> str:
    """Say what became of ``who``, for the board; without a ``history``, what the promise is about."""
    if history is None:
        return (
            f"the promise is about this file alone; for later files of the same {who} see --ledger"
        )
    counts = history.counts
    said = []
    if history.losses[1:]:
        said.append(f"lost by its files: {', '.join(map(percent, history.losses))}")
    said += [f"{words}: {who.counted(counts[n])}" for n, words in _UNITS.items() if counts.get(n)]
    for name, words in _GROUPS.items():
        if not counts.get(name):
            continue
        said.append(f"{words}: {plural(counts[name], 'group')}")
        if name in history.joining:
            _, lost, otherwise = history.joining[name]
            said[-1] += f", which lose {percent(lost)} of the information"
            said[-1] += f" ({percent(otherwise)} {_OTHERWISE[name]})"
    return f"release {history.files} of the ledger" + "".join(f"; {fact}" for fact in said)


def history_cautions(
    history: History | None, who: UnitWords, swapped_before: str = ""
) -> Iterator[Caution]:
    """Return what is to be weighed about earlier releases of a ``history`` of ``who``.

    ``swapped_before`` is a file with swapped values of the same table, if one is known; without a history no
    ledger covers it.
    """
    if history is None:
        if swapped_before:
            yield Caution(
                "warning",
                (),
                f"{shown(swapped_before)} holds swapped values of the same table, released without a ledger: "
                "if its groups are others, the two files together tell more than each of them.",
                "Publish one of the two, or release both with --ledger.",
            )
        return
    accepted = history.counts.get("accepted_with_leavers", 0)
    if accepted:
        yield Caution(
            "amber",
            (),
            f"{who.counted(accepted)} are released in groups that others left: whoever compares the "
            "files sees which rows are gone.",
            "Withhold these groups: --leavers withhold.",
        )
    if history.smallest < history.k and not accepted:
        yield Caution(
            "amber",
            (),
            f"Over {plural(history.files, 'file')} of the ledger a combination of groups, known columns "
            f"and presence holds {who.counted(history.smallest)}; k is {history.k}.",
            "Protect the known columns, or make them strata.",
        )
