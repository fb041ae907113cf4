"""Swapping: what is counted here shares no code with the package."""

from collections import Counter
from html import unescape
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said
from microagg import protect_file
from microagg.encode.steps import Steps
from microagg.errors import InputError, VerificationError
from microagg.job.job import Job
from microagg.job.run import run
from microagg.measure.pairing import chance_of
from microagg.releasing import rounding, swap
from microagg.releasing.dealt import dealt_rows, is_beyond_chance
from microagg.releasing.swap import Holders, share_numbers
from microagg.tables.variable import Variable


def a_survey(n: int = 240, seed: int = 1) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    household = np.sort(chance.integers(0, n // 2, n))
    income = np.where(chance.random(n) < 0.3, 0.0, np.exp(chance.normal(8, 1, n)).round(2))
    job = chance.choice(["clerk", "farmer", "mayor", None], n, p=[0.5, 0.4, 0.02, 0.08])
    return pd.DataFrame(
        {
            "household": household,
            "region": chance.choice(["north", "south"], n),
            "age": chance.integers(18, 80, n),
            "income": income,
            "rent": np.where(chance.random(n) < 0.1, np.nan, chance.normal(500, 80, n)),
            "job": job,
            "moved": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(chance.integers(0, 900, n), unit="D"),
            "w": chance.uniform(1, 3, n),
        }
    )


PROTECTED = ["age", "income", "rent", "job", "moved"]


def test_values_that_k_hold_stay_and_others_are_means_of_neighbours():
    x = np.array([0.0] * 4 + [1.0, 2.0, 3.0, 50.0, 60.0, 70.0, 71.0])
    shared = share_numbers(x, Holders(np.zeros(len(x), dtype=int), None, 3))
    assert shared.tolist() == [0.0] * 4 + [2.0] * 3 + [62.75] * 4


def test_what_is_left_over_takes_the_nearest_shared_value():
    x = np.array([0.0] * 4 + [9.0] * 4 + [5.0, 8.0])
    shared = share_numbers(x, Holders(np.zeros(len(x), dtype=int), None, 3))
    assert shared[-2:].tolist() == [9.0, 9.0]


def test_neighbours_are_joined_until_they_are_k_units():
    x = np.arange(8.0)
    units = np.array([0, 0, 0, 1, 1, 2, 3, 3])
    shared = share_numbers(x, Holders(np.zeros(8, dtype=int), units, 3))
    for value in np.unique(shared):
        assert len(np.unique(units[shared == value])) >= 3


def test_the_order_of_a_group_is_any_order_with_the_same_chance():
    labels, seen = np.array([0, 0, 0, 1, 1, 1]), Counter()
    for number in range(6_000):
        secret = number.to_bytes(32, "big")
        age, job = (dealt_rows(labels, secret, what)[:3] for what in ("age", "job"))
        seen[tuple(age), tuple(job)] += 1
    assert len(seen) == 36
    expected = 6_000 / 36
    distance = sum((count - expected) ** 2 / expected for count in seen.values())
    assert distance < 75  # of χ² with 35 degrees of freedom: one in 10,000


def orders_of(labels):
    """All ways to deal within groups, as the row whose value each row gets."""
    members = [np.flatnonzero(labels == group) for group in np.unique(labels)]
    for orders in product(*(permutations(rows) for rows in members)):
        order = np.empty(len(labels), dtype=int)
        for rows, chosen in zip(members, orders, strict=True):
            order[rows] = chosen
        yield order


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("bound", [False, True])
def test_the_posterior_over_rows_is_the_chance_told(blocks, bound, monkeypatch):
    """Six people, all dealings, all ways in which people own the rows of their class, by enumeration.

    Someone knows everybody's shared values, the groups and what is known, and sees a file. Whatever file it
    is, and for all combinations of strata, known columns, units and missing values, each row of a person's
    class is hers with the same chance, and a unit with several rows has as many of these chances.
    """
    first, second = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 1, 1])
    partitions = [first, second][:blocks]
    chance = np.random.default_rng(1)
    for by_stratum, is_known, by_unit, missing in product([False, True], repeat=4):
        known = [np.array([0, 1, 0, 1, 0, 0])] if is_known else []
        strata = [first] if by_stratum else []  # groups never cross them
        units = np.array([0, 0, 1, 2, 3, 3]) if by_unit else np.arange(6)
        classes = np.unique(np.array([*partitions, *strata, *known]), axis=1, return_inverse=True)
        classes = classes[1].reshape(-1)
        people = [swap.Shared(chance.integers(0, 3, (6, 3)) * 1.0, np.zeros((6, 3), dtype=int))]
        people += [swap.Shared(chance.integers(0, 3, (6, 1)) * 1.0, np.zeros((6, 1), dtype=int))]
        if missing:
            people[0].states[[0, 3], 1] = 1
            people[0].values[[0, 3], 1] = np.nan
        bundles = [[0, 1]] if bound else []

        def files(owner, people=people, bundles=bundles):
            """Return for each block and column all files, if row r is that of person owner[r]."""
            for labels, shared in zip(partitions, people, strict=False):
                sitting = swap.Shared(shared.values[owner], shared.states[owner])
                names = list("abc")[: sitting.values.shape[1]]
                dealt = []
                for order in orders_of(labels):
                    monkeypatch.setattr(swap, "dealt_rows", lambda *_, order=order: order)
                    bound = bundles if len(names) > 1 else []
                    part = swap.deal(sitting, names, labels, swap.Swapping(b"", labels), bound)
                    dealt.append([str((*after[0], *after[1])) for after in part.after])
                # Columns of a bundle share one order; the others have one each.
                together = bundles[0] if bundles and len(names) > 1 else []
                sets = [together, *([j] for j in range(len(names)) if j not in together)]
                yield from ([tuple(row[j] for j in at) for row in dealt] for at in sets if at)

        owners = list(orders_of(classes))
        seen = [chance.choice(len(column)) for column in files(np.arange(6))]
        file = [column[at] for column, at in zip(files(np.arange(6)), seen, strict=True)]
        likelihood = np.array(
            [
                np.prod([c.count(f) for c, f in zip(files(owner), file, strict=True)])
                for owner in owners
            ]
        )
        posterior = np.zeros((6, 6))
        for owner, weight in zip(owners, likelihood / likelihood.sum(), strict=True):
            posterior[owner, np.arange(6)] += weight
        sizes = np.bincount(classes)
        alike = classes[:, None] == classes[None, :]
        assert np.allclose(posterior, alike / sizes[classes])
        of_units = np.array(
            [posterior[:, units == unit].sum(axis=1) for unit in range(units.max() + 1)]
        )
        told = chance_of(classes, units if by_unit else None)
        assert of_units.max() == pytest.approx(told.largest)


def test_a_file_with_another_value_is_rejected(tmp_path, monkeypatch):
    table = a_survey()[["age", "income"]]
    release = microagg.protect(table, k=5, columns=list(table), release="swap")
    (part,) = release.released_table.dealt
    values, states = part.after[0]
    swapped = values.copy()
    labels = release.partition.labels
    other = int(np.flatnonzero(labels != labels[0])[0])
    swapped[[0, other]] = swapped[[other, 0]] if values[0] != values[other] else values[0] + 1
    wrong = part._replace(after=[(swapped, states), part.after[1]])
    monkeypatch.setitem(vars(release.released_table), "dealt", [wrong])
    with pytest.raises(VerificationError, match="not those that were dealt"):
        release.write(tmp_path / "safe.csv")


def test_values_that_were_not_dealt_as_said_are_rejected(tmp_path, monkeypatch):
    """Rows that keep their own values, and members whose value two rows get, although the rest is random."""
    table = a_survey()[["age", "income"]]
    release = microagg.protect(table, k=5, columns=list(table), release="swap")
    (part,) = release.released_table.dealt
    codes = {
        name: np.unique(values, return_inverse=True, equal_nan=True)[1]
        for name, (values, _) in zip(part.names, part.after, strict=True)
    }
    assert part.fault(codes.__getitem__) is None
    undealt = part._replace(after=part.before)
    twice = part.donors[0].copy()
    first, second = np.flatnonzero(part.labels == 0)[:2]
    twice[first] = twice[second]
    values, states = part.before[0]
    of_one = part._replace(
        donors=[twice, part.donors[1]], after=[(values[twice], states[twice]), part.after[1]]
    )
    for wrong in (undealt, of_one):
        assert "'age' are not those that were dealt" in wrong.fault(codes.__getitem__)


@pytest.mark.parametrize("size", [2, 5, 300])
def test_chance_agrees_with_a_random_dealing_and_not_with_none(size):
    labels = np.repeat(np.arange(300 // size), size)
    own = np.arange(300)
    dealt = [
        [dealt_rows(labels, number.to_bytes(32, "big"), name) for name in ("age", "income")]
        for number in range(200)
    ]
    assert not any(is_beyond_chance(labels, first, own) for first, _ in dealt)
    assert not any(is_beyond_chance(labels, first, second) for first, second in dealt)
    assert is_beyond_chance(labels, own, own)
    # One row of each group keeps its own value on average, whatever the sizes are; so does the variance.
    kept = [(first == own).sum() for first, _ in dealt]
    assert np.mean(kept) == pytest.approx(300 // size, abs=4 * np.sqrt(300 / size / 200))


def test_rules_of_dominance_hold_for_the_records_that_share_a_value():
    chance = np.random.default_rng(9)
    turnover = np.exp(chance.normal(3, 2, 80)).round(1)
    table = pd.DataFrame({"staff": chance.integers(1, 9, 80), "turnover": turnover})
    release = microagg.protect(
        table, k=3, columns=list(table), release="swap", require={"p_percent": {"turnover": 20}}
    )
    (part,) = release.released_table.dealt
    shared = part.before[1][0]
    for value in np.unique(shared):
        largest = np.sort(turnover[shared == value])[::-1]
        assert largest.sum() - largest[0] - largest[1] >= 0.2 * largest[0] - 1e-9


def test_rules_of_dominance_hold_for_records_whose_tuples_are_averaged():
    chance = np.random.default_rng(2)
    wages, rest = (np.exp(chance.normal(3, 2.5, 60)).round(1) for _ in range(2))
    table = pd.DataFrame({"wages": wages, "rest": rest, "turnover": wages + rest})
    table["staff"] = chance.integers(1, 9, 60)
    release = microagg.protect(
        table,
        k=3,
        columns=list(table),
        relations=["turnover = wages + rest"],
        release="swap",
        require={"p_percent": {"turnover": 80}},
    )
    (part,) = release.released_table.dealt
    shared = part.before[list(part.names).index("turnover")][0]
    for value in np.unique(shared):
        largest = np.sort(table["turnover"][shared == value])[::-1]
        assert largest.sum() - largest[:2].sum() >= 0.8 * largest[0] - 1e-9


@pytest.mark.filterwarnings("ignore::microagg.errors.DisclosureRiskWarning")
def test_untouched_columns_that_go_with_protected_ones_are_amber_of_either_kind(tmp_path):
    chance = np.random.default_rng(3)
    age = chance.integers(18, 80, 400)
    table = pd.DataFrame({"age": age, "size": chance.normal(0, 1, 400), "pension": age * 10.0})
    for kind in ("mean", "swap"):
        release = microagg.protect(
            table, k=5, columns=["age", "size"], confidential=["pension"], release=kind
        )
        found = release.evidence
        assert found.signs.pairing.rate > 0.4 > found.signs.pairing.base
        assert found.verdict == "amber"
        assert any("our attack picked the right row" in one.words for one in found.cautions)
    chance_of_row = release.evidence.as_dict()["swap"]["chance"]
    assert 0 < chance_of_row["largest"] <= 0.2
    release.report(tmp_path / "report.html")
    page = unescape((tmp_path / "report.html").read_text()).replace("\xa0", " ")
    for sentence in (release.evidence.alone_words, release.evidence.known_words):
        assert sentence in page


def test_where_nothing_is_untouched_there_is_no_chance_but_rows_that_stand():
    table = a_survey()[["age", "income"]]
    release = microagg.protect(table, k=5, columns=list(table), release="swap")
    found = release.evidence.as_dict()["swap"]
    assert found["chance"] is None
    assert found["pairing"] is None
    rows = Counter(map(tuple, table.to_numpy().tolist()))
    alone = {row for row, often in rows.items() if often == 1}
    there = set(map(tuple, release.data.to_numpy().tolist()))
    assert found["standing"] == pytest.approx(len(alone & there) / len(alone), abs=5e-4)
    assert "No row belongs to one person" in release.evidence.alone_words


@pytest.mark.filterwarnings("ignore::microagg.errors.DisclosureRiskWarning")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_in_kept_order_each_row_is_somebodys(engine, tmp_path):
    a_survey()[["age", "income"]].to_csv(tmp_path / "in.csv", index=False)
    plan = microagg.Plan.of(k=5, columns=["age", "income"], release="swap", keep_order=True)
    job = Job(tmp_path / "in.csv", tmp_path / "out.csv", plan, engine=engine)
    evidence = run(job).evidence
    assert evidence.as_dict()["swap"]["chance"] == {"largest": 1.0, "mean": 1.0}
    assert evidence.verdict == "amber"
    assert any("the order of the original" in one.words for one in evidence.cautions)
    assert "the groups and the order of the rows picks a person's row" in evidence.alone_words


@pytest.mark.filterwarnings("ignore::microagg.errors.DisclosureRiskWarning")
def test_rows_of_a_renumbered_household_tell_each_other():
    """Someone looks for a household: for all its groups, each as often, in the sets of rows of one id."""
    table = a_survey()[["household", "age", "income"]]
    release = microagg.protect(
        table,
        k=5,
        columns=["age", "income"],
        unit="household",
        renumber=["household"],
        release="swap",
    )
    homes, groups = table["household"].to_numpy(), release.partition.labels
    sets = {home: tuple(sorted(groups[homes == home])) for home in np.unique(homes)}
    classes = Counter((sets[home], group) for home, group in zip(homes, groups, strict=True))
    chances = [
        sets[home].count(group) / classes[sets[home], group]
        for home, group in zip(homes, groups, strict=True)
    ]
    found = release.evidence.as_dict()["swap"]["chance"]
    assert found == pytest.approx({"largest": max(chances), "mean": np.mean(chances)}, rel=1e-2)
    assert found["largest"] == 1
    assert "which rows have the same household picks" in release.evidence.alone_words


def test_what_the_lists_of_groups_disclose_is_counted():
    table = a_survey()[["age", "job"]].fillna("none")
    release = microagg.protect(table, k=5, columns=["age", "job"], release="swap", effort="fast")
    lists = release.data.groupby(release.partition.labels)["job"]
    agree = lists.transform("nunique") == 1
    common = release.data["job"].map(release.data["job"].value_counts(normalize=True)) >= 0.5
    found = release.evidence.as_dict()["risk"]["alone"]["diversity"]
    assert found["job"]["distinct_l"] == lists.nunique().min()
    assert found["job"]["records_with_rare_value"] == (agree & ~common).sum()
    assert set(found) == {"age", "job"}


@pytest.mark.parametrize("strata", [[], ["region"]])
def test_requirements_on_untouched_columns_merge_whole_groups(strata):
    """Members of a group before merging may exchange the untouched values: the groups stay the same."""
    chance = np.random.default_rng(3)
    table = a_survey()[["age", "income", "region"]]
    table["ill"] = np.where(table["age"] < 50, "no", chance.choice(["no", "yes"], len(table)))

    def protected(frame):
        return microagg.protect(
            frame,
            k=4,
            columns=["age", "income"],
            confidential=["ill"],
            strata=strata,
            drop=[] if strata else ["region"],
            require={"distinct": {"ill": 2}},
            release="swap",
            effort="fast",
        )

    release = protected(table)
    (part,) = release.parts
    groups, base = part.partition.labels, part.base
    assert groups.max() < base.max()
    assert all(table["ill"][groups == group].nunique() == 2 for group in range(groups.max() + 1))
    assert not any("Groups were chosen" in one.words for one in release.evidence.cautions)
    # Who knows that groups were merged may know these: the chance is counted in them.
    largest = max(1 / np.bincount(base)[base])
    assert release.evidence.swap.chance.largest == pytest.approx(largest)
    for _ in range(3):
        other = table.copy()
        for group in range(base.max() + 1):
            rows = np.flatnonzero(base == group)
            other.loc[rows, "ill"] = table["ill"].to_numpy()[chance.permutation(rows)]
        assert (protected(other).parts[0].partition.labels == groups).all()


def test_whole_numbers_written_as_text_stay_whole():
    chance = np.random.default_rng(2)
    table = pd.DataFrame({"age": chance.integers(0, 99, 60), "rent": chance.integers(0, 900, 60)})
    release = microagg.protect(
        table.assign(rent=table["rent"].astype(str)),
        k=4,
        columns=list(table),
        kinds={"rent": "number"},
        release="swap",
    )
    assert all(float(text).is_integer() for text in release.data["rent"])


def test_drawn_categories_keep_the_share_of_rare_ones_and_k_equal_rows(tmp_path):
    chance = np.random.default_rng(8)
    job = chance.choice(["clerk", "farmer", "baker"], 3_000, p=[0.8, 0.16, 0.04])
    table = pd.DataFrame({"age": chance.normal(40, 9, 3_000), "job": job})
    shares = {}
    for how in ("mode", "draw"):
        release = microagg.protect(
            table,
            k=5,
            columns=list(table),
            kinds={"job": {"importance": 1e-9}},
            categories=how,
            effort="fast",
        )
        assert release.data.groupby(["age", "job"]).size().min() >= 5
        shares[how] = (release.data["job"] == "baker").mean() / (job == "baker").mean()
        for public in (False, True):
            release.report(tmp_path / "report.html", public=public)
            says = {"mode": "nearest to all of its members", "draw": "that of a random member"}
            assert says[how] in (tmp_path / "report.html").read_text()
    assert shares["mode"] < 0.5
    # 120 of 3,000 in about 500 groups: six standard deviations of what chance draws.
    assert abs(shares["draw"] - 1) < 1.5


def test_few_rows_equal_a_record_where_groups_that_agree_are_merged():
    chance = np.random.default_rng(5)
    n = 600
    table = pd.DataFrame(
        {f"q{j}": chance.choice(["no", "yes"], n, p=[0.8, 0.2]) for j in range(15)}
    )
    table["age"] = chance.permutation(np.repeat(np.arange(50), n // 50))
    table["born"] = 2026 - table["age"]
    alone = {*table[~table.duplicated(keep=False)].itertuples(index=False, name=None)}
    standing = {}
    for most in (None, 0.05):
        release = microagg.protect(
            table,
            k=5,
            columns=list(table),
            release="swap",
            together=[["age", "born"]],
            standing=most,
            effort="fast",
        )
        rows = {*release.data.itertuples(index=False, name=None)}
        standing[most] = len(rows & alone) / len(alone)
    assert standing[0.05] < standing[None] / 2


def test_blocks_whose_groups_intersect_are_refused():
    table = a_survey()
    plan = microagg.Plan.from_toml_text(
        """
        microagg = 1

        [[block]]
        columns = ["age"]
        k = 3
        release = "swap"

        [[block]]
        columns = ["income"]
        k = 3
        release = "swap"
        """
    )
    with pytest.raises(InputError, match="Swap all columns in one block"):
        microagg.protect(table[["age", "income"]], plan=plan)


def test_the_secret_is_in_no_file_and_in_no_words(tmp_path, monkeypatch, capfd):
    secrets = []

    def token(size):
        secrets.append(np.random.default_rng(len(secrets)).bytes(size))
        return secrets[-1]

    monkeypatch.setattr(
        "microagg.engines.memory.protect.secrets", SimpleNamespace(token_bytes=token)
    )
    table = a_survey()[["age", "income"]].assign(person=[f"p{i}" for i in range(240)])
    table.to_csv(tmp_path / "in.csv", index=False)
    evidence = protect_file(
        tmp_path / "in.csv",
        tmp_path / "out.csv",
        5,
        columns=["age", "income"],
        drop=["person"],
        key="person",
        release="swap",
        ledger=tmp_path / "ledger.sqlite",
        report=tmp_path / "report.html",
        public_report=tmp_path / "public.html",
    )
    assert secrets
    said = "".join([*capfd.readouterr(), repr(evidence), str(evidence.as_dict())]).encode()
    content = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(content) >= 7
    for secret in secrets:
        for form in (secret, secret.hex().encode(), str(list(secret)).encode()):
            assert not any(form in text for text in [*content, said])


def test_a_file_alone_shows_that_values_are_shared(tmp_path):
    table = a_survey()[["age", "income"]]
    release = microagg.protect(table, k=5, columns=list(table), release="swap")
    release.write(tmp_path / "safe.csv")
    release.report(tmp_path / "report.html")
    report = tmp_path / "report.json"
    done = here("verify", tmp_path / "safe.csv", "--promise", report)
    assert done.returncode == 0
    assert "cannot be seen in a file" in said(done)
    lines = (tmp_path / "safe.csv").read_text().splitlines()
    (tmp_path / "odd.csv").write_text("\n".join([*lines[:-1], "199,1"]) + "\n")
    assert here("verify", tmp_path / "odd.csv", "--promise", report).returncode == 1


def test_a_plan_with_swapping_is_read_as_it_was_written():
    plan = microagg.Plan.of(
        k=20, columns=["age", "year", "sex"], release="swap", together=[["age", "year"]]
    )
    assert microagg.Plan.from_toml_text(plan.to_toml()) == plan
    age, whole = Variable("age", "number", np.array([30.0])), Steps.of_decimals(0)
    assert rounding.rounding_of(age, plan, plan.blocks[0], whole, 7.0, weighted=True).whole
