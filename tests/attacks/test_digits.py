"""Attacks by the digits of weighted means: somebody with half of a register looks for members of groups."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import microagg
from conftest import reference_file
from microagg.errors import DisclosureRiskWarning


class Register(NamedTuple):
    """A table, the steps of the columns to protect, and the weight."""

    table: pd.DataFrame
    steps: dict[str, float]
    weight: str
    step_of_weight: float
    """0: weights are some of few that are known, as those of a design are."""


def register(name: str) -> Register:
    table = pd.read_csv(reference_file(name))
    if name == "census":
        return Register(table, dict.fromkeys(["AGI", "FICA", "INTVAL", "PTOTVAL"], 1), "AFNLWGT", 1)
    cents = dict.fromkeys(["hy040n", "hy050n", "hy090n"], 0.01)
    return Register(table.head(1_200), {"age": 1, "hsize": 1, **cents}, "rb050", 0)


class Guesses(NamedTuple):
    """Groups of three of which the register lacks one member, and how many of them were seen through."""

    groups: int
    certain: int
    """Only the right two of the register leave a last one that can be."""
    nearest: int
    """Of all twos that leave one that can be, the right ones lie nearest to the mean."""
    nearest_at_all: int
    """The same where the last one may have any values within the range of the columns."""


def guesses(before: Register, after: pd.DataFrame, known: np.ndarray, off: np.ndarray) -> Guesses:
    """Compute the last member of each group from every two people of the register.

    ``known`` says who is in the register, ``off`` by how much a mean can be off: only a last member whose
    values are whole steps, within that error, can be right.
    """
    columns, steps = list(before.steps), np.array(list(before.steps.values()))
    x, w = before.table[columns].to_numpy(float), before.table[before.weight].to_numpy(float)
    twos = np.array(list(combinations(np.flatnonzero(known), 2)))
    weight_of_two, sums = w[twos].sum(axis=1), (w[twos][:, :, None] * x[twos]).sum(axis=1)
    low, high, spread, weights = x.min(axis=0), x.max(axis=0), x.std(axis=0), np.unique(w)
    off_weight = 1.5 * 1e-6 * w.std()
    found = np.zeros(4, dtype=int)
    for shown, rows in after.groupby([*columns, before.weight], sort=False).groups.items():
        members = np.array(rows)
        two = np.sort(members[known[members]])
        if len(members) != 3 or len(two) != 2:
            continue
        mean = np.array(shown[:-1])
        last_w = 3 * shown[-1] - weight_of_two
        if before.step_of_weight:
            nearest = np.rint(last_w / before.step_of_weight) * before.step_of_weight
        else:
            at = np.clip(np.searchsorted(weights, last_w), 1, len(weights) - 1)
            low_is_nearer = last_w - weights[at - 1] < weights[at] - last_w
            nearest = np.where(low_is_nearer, weights[at - 1], weights[at])
        fits = np.abs(nearest - last_w) <= off_weight + 1e-9 * shown[-1]
        fits = np.flatnonzero(fits & (nearest >= weights[0]) & (nearest <= weights[-1]))
        last_w, total = nearest[fits, None], nearest[fits, None] + weight_of_two[fits, None]
        last = (mean * total - sums[fits]) / last_w
        range_of_last = (off + 1e-9 * np.abs(mean)) * total / last_w
        least = np.ceil(np.maximum(last - range_of_last, low) / steps - 1e-9)
        most = np.floor(np.minimum(last + range_of_last, high) / steps + 1e-9)
        in_range = ((last + range_of_last >= low) & (last - range_of_last <= high)).all(axis=1)
        can_be = in_range & (least <= most).all(axis=1)
        apart = (((x[twos[fits]] - mean) / spread) ** 2).sum(axis=(1, 2))
        apart += (((last - mean) / spread) ** 2).sum(axis=1)
        is_right = (twos[fits] == two).all(axis=1)
        assert (is_right & can_be).any()  # the attack never leaves the truth out
        certain = can_be.sum() == 1
        picked = [is_right[np.argmin(np.where(able, apart, np.inf))] for able in (can_be, in_range)]
        found += [1, certain, *picked]
    return Guesses(*found.tolist())


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("name", ["census", "eusilc"])
def test_half_a_register_does_not_find_the_members_of_groups_by_digits(name):
    before = register(name)
    known = np.random.default_rng(0).random(len(before.table)) < 0.5
    columns = list(before.steps)
    table = before.table[[*columns, before.weight]]

    def attacked(digits: int | str | None, off: np.ndarray) -> tuple[Guesses, str]:
        found = microagg.protect(
            table, k=3, columns=columns, weight=before.weight, digits=digits, method="mdav"
        )
        return guesses(before, found.data, known, off), found.evidence.verdict

    for digits, off in (("exact", 0.0), (6, 0.5e-6)):
        found, verdict = attacked(digits, np.full(len(columns), off))
        assert found.certain > found.groups / 3, found  # the attack works
        assert found.nearest > found.nearest_at_all, found
        assert verdict == "amber"
    found, verdict = attacked(None, np.array(list(before.steps.values())))
    assert found.certain <= max(1, found.groups // 20), found
    assert found.nearest <= found.nearest_at_all, found  # steps are no help beyond nearness
    assert verdict == "green"


def test_digits_finer_than_a_millionth_of_the_deviation_are_amber():
    before = pd.DataFrame({"income": np.random.default_rng(3).lognormal(10, 0.6, 60).round(2)})
    for digits, verdict in ((None, "green"), (2, "green"), (6, "amber"), ("exact", "amber")):
        asked = {"k": 3, "columns": ["income"], "digits": digits}
        if verdict == "green":
            found = microagg.protect(before, **asked)
        else:
            with pytest.warns(DisclosureRiskWarning, match="finer digits than by default"):
                found = microagg.protect(before, **asked)
        assert found.evidence.verdict == verdict


RELATIONS = ["gross = net + tax", "half = 0.5 * net", "low <= net", "low + tax <= gross"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("whole", [False, True])
def test_relations_hold_among_rounded_means(tmp_path, engine, weight, whole):
    rng = np.random.default_rng(1)
    n = 300
    net, tax = rng.lognormal(5, 1, n), rng.lognormal(2, 1, n)
    if whole:
        net, tax = 2 * net.round(), tax.round()
    low = net * rng.choice([1, 0.5], n, p=[0.7, 0.3])  # equal in many groups
    columns = {"net": net, "tax": tax, "gross": net + tax, "half": 0.5 * net, "low": low}
    table = pd.DataFrame({**columns, "w": rng.uniform(1, 9, n)})
    table.to_csv(tmp_path / "in.csv", index=False)
    microagg.protect_file(
        tmp_path / "in.csv", tmp_path / "out.csv", k=3, columns=list(columns), weight=weight,
        drop=[] if weight else ["w"], relations=RELATIONS, engine=engine,
    )  # fmt: skip
    text = pd.read_csv(tmp_path / "out.csv", dtype=str)
    decimals = {name: text[name].str.partition(".")[2].str.len().max() for name in columns}
    assert max(decimals.values()) <= 6, decimals
    if whole and weight:  # no digit finer than those of the columns
        assert (text[list(columns)].astype(float) % 1 == 0).all(axis=None)
    after = text.astype(float)
    assert np.allclose(after["gross"], after["net"] + after["tax"], rtol=0, atol=1e-9)
    assert np.allclose(after["half"], 0.5 * after["net"], rtol=0, atol=1e-9)
    assert (after["low"] <= after["net"]).all()
    assert (after["low"] + after["tax"] <= after["gross"] + 1e-9).all()
