"""The parts of a plan: each setting has its rule, and a wrong one its sentence."""

import dataclasses
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.errors import InputError
from microagg.plan.block import Block, Dominance, Require
from microagg.plan.column import KINDS, Column
from microagg.plan.plan import Plan
from microagg.plan.sections import Missing, Strata, Unit, Weight
from plans import columns, settings_in

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))
PARTS = {part.__name__: part for part in (Column, Strata, Weight, Unit, Missing, Require)}

# Of each setting of a column, a value and the kinds that it fits; written down by hand.
SETTINGS = [
    ({"levels": ["a", "b"]}, {"ordinal", "nominal"}),
    ({"transform": "log"}, {None, "number", "integer", "date", "spiked"}),
    ({"transform": "rank"}, {None, "number", "integer", "date", "spiked"}),
    ({"round": "no"}, {None, *KINDS}),
    ({"round": "nearest"}, {None, "number", "integer", "date", "spiked"}),
    ({"round": "totals"}, {None, "number", "integer", "date", "spiked"}),
    ({"release": "median"}, {"ordinal"}),
    ({"release": "node"}, {"hierarchy"}),
    ({"release": "spike"}, {"spiked"}),
    ({"spike": 0}, {"spiked"}),
    ({"prefixes": [1, 2]}, {"hierarchy"}),
    ({"parents": {"A1": "A"}}, {"hierarchy"}),
    ({"importance": 3}, {None, *KINDS}),
    ({"coarsen": {"bands": 5}}, {None, "number", "integer", "spiked"}),
    ({"coarsen": {"rare": 5}}, {None, "nominal", "hierarchy", "ordinal"}),
    ({"coarsen": {"prefix": 2}}, {None, "nominal"}),
    ({"coarsen": {"to": "week"}}, {None, "date"}),
]


@pytest.mark.parametrize(("setting", "kinds"), SETTINGS)
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_setting_fits_some_kinds(setting, kinds, kind):
    (name,) = setting
    if kind in kinds:
        assert getattr(Column(kind, **setting), name) is not None
    else:
        with pytest.raises(InputError, match=f"{name} is a setting of columns whose kind is"):
            Column(kind, **setting)


@given(columns(), st.sampled_from([None, *KINDS]))
def test_another_kind_keeps_what_fits_it(column, kind):
    found = column.of_kind(kind)
    assert found.kind == kind
    for f in dataclasses.fields(Column):
        before, after = getattr(column, f.name), getattr(found, f.name)
        if f.name == "kind" or before == after:
            continue
        assert after is None  # a setting falls away, it does not become another
        with pytest.raises(InputError):  # and it had to
            dataclasses.replace(found, **{f.name: before})
    assert column.of_kind(column.kind) == column


@given(columns(), st.sampled_from(["no", "nearest", "totals"]))
def test_the_rounding_of_the_plan_is_filled_in_where_it_fits(column, rounding):
    found = Plan(columns={"x": column}, round=rounding).column("x")
    if column.round is not None:
        assert found == column
    else:
        fits = column.kind in (None, "number", "integer", "date", "spiked")
        assert found == dataclasses.replace(column, round=rounding if fits else "no")
    assert Plan(round=rounding).column("y") == Column(round=rounding)
    assert Plan().column("y").importance == 1


WRONG = [(PARTS[name], found) for name, several in REFUSED["parts"].items() for found in several]
WRONG += [
    (
        Column,
        {
            "kind": "ordinal",
            "levels": ["a", None],
            "says": "texts, numbers or truth values; got None",
        },
    ),
    (Block, {"k": 10**30, "says": "k, .*, is at most 9,223,372,036,854,775,807; got 1000000"}),
    (Weight, {"column": None, "says": "weight names a column"}),
]


@pytest.mark.parametrize(("part", "found"), WRONG)
def test_each_wrong_setting_has_its_sentence(part, found):
    with pytest.raises(InputError, match=found["says"]):
        part(**settings_in(found))


def test_a_cycle_of_codes_is_named_by_a_child_on_it_or_before_it():
    tree = {"a": "root", "b": "a", "c": "b", "d": "a"}
    assert Column("hierarchy", parents=tree).parents == tree
    with pytest.raises(InputError, match=r"'c' leads to 'c' again"):
        Column("hierarchy", parents={"x": "root", "c": "b", "b": "a", "a": "c"})
    with pytest.raises(InputError, match=r"'(b|c)' leads to '\1' again"):
        Column("hierarchy", parents={"z": "c", "c": "b", "b": "c"})


@given(st.dictionaries(st.integers(0, 6), st.integers(0, 6), min_size=1))
def test_a_hierarchy_is_refused_exactly_if_it_has_a_cycle(parents):
    def returns(code):
        """Naive: after more steps than there are codes, a way that still goes on is a cycle."""
        for _ in range(10):
            if code not in parents:
                return False
            code = parents[code]
        return True

    table = {str(child): str(parent) for child, parent in parents.items()}
    if any(returns(code) for code in parents):
        with pytest.raises(InputError, match="again and again"):
            Column("hierarchy", parents=table)
    else:
        assert Column("hierarchy", parents=table).parents == table


def test_numbers_of_numpy_become_those_of_python():
    column = Column("ordinal", levels=np.array([1, 2, 3]), importance=np.float64(2))
    missing = Missing(most=np.float32(0.5), codes={"a": [np.int64(-8)]})
    plan = Plan.of(
        columns=["a"], kinds={"a": {"kind": "ordinal", "levels": np.array([1, 2, 3])}}, missing={}
    )
    assert [type(level) for level in column.levels] == [int] * 3
    assert (type(column.importance), type(missing.most)) == (float, float)
    assert type(missing.codes["a"][0]) is int
    assert Plan.from_toml_text(plan.to_toml()) == plan
    assert Plan.from_toml_text(Plan.of(max_loss=np.float64(3)).to_toml()).accept.loss == 3


def test_kinds_in_all_their_forms():
    plan = Plan.of(
        kinds={
            "education": ["low", "middle", "high"],
            "sector": "nominal",
            "income": {"kind": "spiked", "transform": "log", "spike": 0},
            "age": None,
        }
    )
    assert plan.columns == {
        "education": Column("ordinal", levels=("low", "middle", "high")),
        "sector": Column("nominal"),
        "income": Column("spiked", transform="log", spike=0),
        "age": Column(),
    }
    assert Plan.from_toml_text(plan.to_toml()) == plan  # also the empty [columns.age]
    with pytest.raises(InputError, match=r"of column 'x', called 'knd'; did you mean kind\?"):
        Plan.of(kinds={"x": {"knd": "number"}})
    with pytest.raises(InputError, match="Column 'x': kind is one of"):
        Plan.of(kinds={"x": "text"})


def test_what_is_named_changes_and_the_rest_stays():
    plan = Plan.of(
        columns=["income", "education"],
        kinds={
            "income": {"kind": "spiked", "spike": 0, "importance": 2},
            "education": ["low", "high"],
        },
        strata={"columns": ["region"], "small": "merge"},
        weight={"column": "w", "release": "keep"},
        unit={"column": "hid", "mode": "together"},
        missing={"policy": "drop", "codes": {"income": -8}},
        require={"distinct": {"diagnosis": 3}, "population": 50},
    )
    assert plan.override(strata="sector").strata == Strata(("sector",), "merge")
    assert plan.override(strata={"small": "error"}).strata == Strata(("region",))
    assert plan.override(weight="v").weight == Weight("v", "keep")
    assert plan.override(weight={"grouping": "plain"}).weight == Weight("w", "keep", "plain")
    assert plan.override(unit={"mode": "count"}).unit == "hid"
    assert plan.override(unit="person").unit_section.mode == "together"
    assert plan.override(missing="error").missing == Missing("error", codes={"income": (-8,)})
    codes = plan.override(missing={"codes": {"education": "?"}}).missing.codes
    assert codes == {"income": (-8,), "education": ("?",)}
    required = plan.override(require={"distinct": {"drug": 2}}).blocks[0].require
    assert required == Require(distinct={"diagnosis": 3, "drug": 2}, population=50)
    assert plan.override(kinds={"income": "number"}).columns["income"] == Column(
        "number", importance=2
    )
    assert plan.override(kinds={"income": {"importance": 3}}).columns["income"] == Column(
        "spiked", importance=3, spike=0
    )


def test_none_takes_a_part_away():
    plan = Plan.of(
        strata={"columns": ["region"], "small": "merge"},
        weight="w",
        unit={"column": "hid", "mode": "together"},
        missing={"policy": "drop"},
        require={"population": 50},
        relations=["a <= b"],
    )
    names = ("strata", "weight", "unit", "missing", "require", "relations")
    assert plan.override(**dict.fromkeys(names)) == Plan()
    assert plan.override(strata=[]).strata == Strata()
    for part, sentence in (("weight", "weight names a column"), ("unit", "unit names a column")):
        with pytest.raises(InputError, match=sentence):
            Plan.of(**{part: {}})


def test_pairs_of_numbers_as_tables_or_in_order():
    found = Require(n_k={"a": {"k": 85, "n": 2}}, entropy={"b": 2.5})
    assert found == Require(n_k={"a": Dominance(2, 85)}, entropy={"b": 2.5})
    assert Require(n_k={"a": [2, 85]}) == Require(n_k={"a": (2, 85)})
    assert (found.columns, found.diverse, bool(found)) == (("b", "a"), ("b",), True)
    assert not Require()


def test_names_that_are_no_texts_are_for_keywords_alone():
    plan = Plan.of(columns=[0], strata=[1], weight=2, unit={"column": 3}, missing={"codes": {0: 9}})
    pair = Plan.of(columns=["a"], weight=("w", "x"), unit=("u", "v"))  # as of pandas' MultiIndex
    assert (pair.weight.column, pair.unit) == (("w", "x"), ("u", "v"))
    for part in ("strata", "weight", "unit"):
        with pytest.raises(InputError, match=part):
            Plan.from_dict({"microagg": 1, part: 3})
    with pytest.raises(InputError, match="Names of columns in a plan file are text"):
        plan.to_toml()


def test_a_plan_file_as_people_write_it():
    plan = Plan.from_toml(Path(__file__).with_name("whole_plan.toml"))
    assert plan == Plan.of(
        k=5,
        columns=["age", "education", "income", "nace", "isco"],
        drop=["name"],
        confidential=["diagnosis"],
        strata={"columns": ["region"], "small": "merge"},
        weight="w",
        unit="household",
        missing={"most": 0.02, "codes": {"income": [-8, -9], "job title": ["?"]}},
        kinds={
            "education": ["low", "middle", "high"],
            "income": {"kind": "spiked", "transform": "log", "round": "nearest"},
            "nace": {"kind": "hierarchy", "prefixes": [1, 2, 4]},
            "isco": {"kind": "hierarchy", "parents": {"21": "2", "22": "2"}, "release": "node"},
            "age": {},
        },
        require={"distinct": {"diagnosis": 3}, "n_k": {"turnover": (2, 85)}, "population": 100},
        relations=["gross = net + tax", "`net wage` <= gross"],
    )
    assert Plan.from_toml_text(plan.to_toml()) == plan
