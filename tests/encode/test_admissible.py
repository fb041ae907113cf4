"""A released category is held by at least k units of the table: no group shows one person's category."""

import json
from collections import defaultdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from microagg import Plan
from microagg.encode.space import names_of_levels, released_values, with_admissible
from microagg.engines.fit import encoding_of
from microagg.engines.table_summary import summarise
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.column import Column
from microagg.tables.variable import Variable

N = 120


def survey(seed=0):
    """Persons of households: a few common jobs, and many that one person has, some in several records."""
    rng = np.random.default_rng(seed)
    home = rng.permutation(N) // 2
    job = [
        f"job of {i}" if rng.random() < 0.35 else str(rng.choice(["clerk", "nurse"]))
        for i in range(N)
    ]
    wave = ["rare" if h < 2 else "usual" for h in home]  # four records of two households
    age = rng.integers(18, 90, N)
    return pd.DataFrame({"home": home, "job": job, "wave": wave, "age": age})


def holders(frame, name, unit):
    """Distinct units, or records, of each category."""
    found = defaultdict(set)
    for row, value in enumerate(frame[name]):
        found[value].add(row if unit is None else frame[unit][row])
    return {value: len(units) for value, units in found.items()}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("unit", [None, "home"])
def test_no_category_of_fewer_than_k_units_is_released(tmp_path, engine, unit):
    frame = survey()
    drop = [] if unit is None else ["home"]
    frame = frame if unit is not None else frame.drop(columns="home")
    frame.to_parquet(tmp_path / "in.parquet")
    plan = Plan.of(
        k=4,
        columns=["job", "wave", "age"],
        kinds={"job": "nominal", "wave": "nominal"},
        unit=unit,
        drop=drop,
        method="mdav",
    )
    job = Job(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        plan,
        report=tmp_path / "r.html",
        public=engine == "memory",
        engine=engine,
    )
    result = run(job)
    after = pd.read_parquet(tmp_path / "out.parquet")
    for name in ("job", "wave"):
        held = holders(frame, name, unit)
        released = set(after[name].dropna())
        assert released if name == "wave" else released == {"clerk", "nurse"}
        assert min(held[value] for value in released) >= 4
    if unit is not None:
        assert "rare" not in set(after["wave"])  # four records, but of two households
    told = (tmp_path / "r.html").read_text() + (tmp_path / "r.json").read_text()
    assert "job of" not in told
    blanked = int(after["job"].isna().sum())
    assert result.evidence.signs.missing_counts["job"].blanked == blanked
    said = json.dumps([caution.as_dict() for caution in result.evidence.cautions])
    assert ("no category is released that fewer than k hold" in said) == (blanked > 0)
    assert blanked or unit is None


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_holders_are_counted_in_parts_as_in_one(parts):
    table = pa.Table.from_pandas(survey(1))
    plan = Plan.of(k=4, columns=["job", "wave"], unit="home")
    whole = encoding_of(plan, summarise(table, plan))
    size = -(-len(table) // parts)
    summaries = [summarise(table.slice(at, size), plan) for at in range(0, len(table), size)]
    merged = summaries[0]
    for one in summaries[1:]:
        merged = one.merge(merged)
    for coder, other in zip(whole.coders, encoding_of(plan, merged).coders, strict=True):
        assert coder.variable.admissible.tolist() == other.variable.admissible.tolist()
        values = survey(1)[coder.variable.name]
        held = holders(survey(1), coder.variable.name, "home")
        assert coder.variable.admissible.tolist() == [
            held[level] >= 4 for level in coder.variable.levels
        ]
        variable = Variable(
            coder.variable.name,
            "nominal",
            np.array([coder.variable.levels.index(v) for v in values], dtype=float),
            levels=coder.variable.levels,
        )
        units = survey(1)["home"].to_numpy()
        assert (
            with_admissible(variable, 4, units).admissible.tolist()
            == coder.variable.admissible.tolist()
        )


def ordinal(values, release=None):
    setting = Column("ordinal", levels=("a", "b", "c", "d"), release=release)
    rows = np.array([values.index(level) if level in values else -1 for level in range(4)])
    return Variable("o", "ordinal", np.array(values, dtype=float), setting, tuple("abcd"), rows)


@pytest.mark.parametrize("release", [None, "median"])
def test_the_nearest_level_that_k_hold_takes_the_place_of_a_rare_one(release):
    # Level b is in the middle of the last group, and one record has it.
    variable = ordinal([0, 0, 3, 3, 0, 1, 3], release)
    labels = np.array([0, 0, 1, 1, 2, 2, 2])
    assert released_values(variable, labels, 3).tolist() == [0, 3, 1]
    assert released_values(with_admissible(variable, 3), labels, 3).tolist() == [0, 3, 0]
    assert np.isnan(released_values(with_admissible(variable, 4), labels, 3)).all()


def hierarchy(codes, release=None):
    levels = tuple(sorted(set(codes)))
    setting = Column("hierarchy", prefixes=(1, 2), release=release)
    values = np.array([levels.index(code) for code in codes], dtype=float)
    rows = np.array([codes.index(level) for level in levels])
    return Variable("h", "hierarchy", values, setting, levels, rows)


def test_a_code_beside_a_rare_one_is_released_in_its_place():
    # A12 is held by three, A11 by one: the group of A11 and two codes of B releases by nearness.
    codes = ["A12", "A12", "A12", "A11", "A13", "B21", "B22", "C31", "C32"]
    variable = hierarchy(codes)
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    able = with_admissible(variable, 3)
    found = released_values(able, labels, 3)
    assert variable.levels[int(found[0])] == "A12"
    assert variable.levels[int(found[1])] == "A12"  # nobody of the group has it, but two share A1
    assert np.isnan(found[2])  # nothing that three hold is below B or C


def test_a_node_that_too_few_hold_gives_way_to_one_above():
    codes = ["A11", "A11", "A12", "B21", "B21", "B21"]
    variable = hierarchy(codes, "node")
    alone = released_values(with_admissible(variable, 3), np.array([0, 0, 1, 2, 2, 2]), 3)
    names = names_of_levels(variable)
    assert [names[int(v)] for v in alone] == ["A1", "A1", "B21"]


def test_where_all_levels_are_held_nothing_changes():
    rng = np.random.default_rng(5)
    codes = rng.choice(["A11", "A12", "A21", "B11"], 200).tolist()
    labels = rng.integers(0, 50, 200)
    labels[:50] = np.arange(50)
    for release in (None, "node"):
        variable = hierarchy(codes, release)
        plain = released_values(variable, labels, 50)
        assert np.array_equal(plain, released_values(with_admissible(variable, 2), labels, 50))


def test_the_best_code_by_all_distances(monkeypatch):
    """The nearest admissible code, found among few candidates, is the nearest of all."""
    from microagg.encode import hierarchy as module

    rng = np.random.default_rng(2)
    for seed in range(30):
        every = [f"{a}{b}{c}" for a in "AB" for b in "12" for c in "123"]
        codes = rng.choice(every, 40, p=rng.dirichlet(np.full(12, 0.4))).tolist()
        variable = with_admissible(hierarchy(codes), int(rng.integers(2, 6)))
        labels = np.concatenate([np.arange(8), rng.integers(0, 8, 32)])
        few = module.release(variable, labels, 8)

        def all_pairs(variable, groups, leaves, overall):
            fit = np.flatnonzero(variable.admissible)
            own = np.unique(groups)
            return np.repeat(own, len(fit)), np.tile(fit, len(own))

        with monkeypatch.context() as patch:
            patch.setattr(module, "_candidates", all_pairs)
            every_one = module.release(variable, labels, 8)
        there = ~np.isnan(few)
        assert np.array_equal(few[there], every_one[there]), seed
