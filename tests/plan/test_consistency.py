"""What the parts of a plan must agree on: roles, weights, and relations that the release keeps."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from microagg.errors import InputError
from microagg.plan.block import Block
from microagg.plan.plan import Plan, Promise
from microagg.plan.relations import Relation
from microagg.plan.sections import Strata
from microagg.plan.settings import AGGREGATES
from plans import settings_in

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))

ROLES = {
    "columns": {"columns": ["x", "other"]},
    "drop": {"drop": ["x"]},
    "renumber": {"renumber": ["x"]},
    "confidential": {"confidential": ["x"]},
    "strata": {"strata": ["x"]},
    "weight": {"weight": "x"},
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(ROLES, 2)))
def test_a_column_has_one_role(first, second):
    with pytest.raises(InputError, match=f"'x' is named in {first} and in {second}"):
        Plan.of(**{"columns": ["y"], **ROLES[first], **ROLES[second]})


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        ("columns", "whose record"),
        ("strata", "is both the unit and in strata"),
        ("weight", "is named as both"),
        ("drop", None),
        ("renumber", None),
        ("confidential", None),
    ],
)
def test_what_a_unit_may_be_beside(role, sentence):
    settings = {"columns": ["y"], **ROLES[role], "unit": "x"}
    if sentence is None:
        assert Plan.of(**settings).unit == "x"
    else:
        with pytest.raises(InputError, match=sentence):
            Plan.of(**settings)


@pytest.mark.parametrize("role", [role for role in ROLES if role != "columns"])
def test_codes_and_kinds_are_of_protected_columns(role):
    with pytest.raises(InputError, match=f"'x' is in {role}"):
        Plan.of(columns=["y"], **ROLES[role], missing={"codes": {"x": -8}})
    with pytest.raises(InputError, match=f"'x' is in {role}"):
        Plan.of(columns=["y"], **ROLES[role], kinds={"x": "number"})
    assert Plan.of(columns=["x"], missing={"codes": {"x": -8}}, kinds={"x": "number"})


def test_a_weight_to_be_dropped_is_told_so():
    with pytest.raises(InputError, match=r'weight = \{ release = "drop" \}'):
        Plan.of(columns=["a"], drop=["w"], weight="w")


def test_one_mean_weight_needs_one_partition():
    blocks = [{"columns": ["a"], "k": 3}, {"columns": ["b"], "k": 3}]
    data = {"microagg": 1, "block": blocks}
    for release in ("keep", "drop"):
        weight = {"column": "w", "release": release}
        assert Plan.from_dict({**data, "weight": weight}).weight.release == release
        assert Plan.of(columns=["a", "b"], per_column=True, weight=weight)
    with pytest.raises(InputError, match="several blocks"):
        Plan.from_dict({**data, "weight": "w"})
    with pytest.raises(InputError, match="each column its own groups"):
        Plan.of(columns=["a", "b"], per_column=True, weight="w")
    assert Plan.of(columns=["a"], per_column=True, weight="w")


def test_what_must_stay_different_is_not_protected():
    for rule, value in (("distinct", 2), ("entropy", 2), ("closeness", 0.5)):
        with pytest.raises(InputError, match="'a' is protected in this block"):
            Plan.of(columns=["a"], require={rule: {"a": value}})
    # Dominance is about quantities, which are protected.
    assert Plan.of(columns=["a"], require={"p_percent": {"a": 10}, "n_k": {"a": (2, 85)}})


def test_roles_with_strata_and_weight():
    names = ["a", "w", "region", "z", "id"]
    settings = {"columns": ["a"], "strata": ["region"], "drop": ["id"]}
    kept = Plan.of(**settings, weight={"column": "w", "release": "keep"}).roles(names)
    assert (kept.known, kept.dropped) == (["w", "region", "z"], ["id"])
    dropped = Plan.of(**settings, weight={"column": "w", "release": "drop"}).roles(names)
    assert (dropped.known, dropped.dropped) == (["region", "z"], ["id", "w"])
    mean = Plan.of(**settings, weight="w").roles(names)
    assert (mean.known, mean.dropped) == (["region", "z"], ["id"])
    for roles in (kept, dropped, mean):
        assert (roles.weight, roles.strata) == ("w", ["region"])
        assert sorted(roles.named) == sorted(names)
    assert Plan.of(columns=["a"]).roles(names).weight is None


@pytest.mark.parametrize("settings", REFUSED["unknown_names"])
def test_every_name_must_be_in_the_table(settings):
    with pytest.raises(InputError, match=r"no column 'regin'.*Did you mean 'region'"):
        Plan.of(**settings).roles(["a", "region"])


@pytest.mark.parametrize("found", REFUSED["swapping"])
def test_what_cannot_be_swapped_is_refused(found):
    swapped = {"k": 3, "columns": ["age", "income"], "release": "swap"}
    with pytest.raises(InputError, match=found["says"]):
        Plan.of(**{**swapped, **settings_in(found)})


def test_columns_that_cannot_be_drafted():
    plan = Plan.of(
        drop=["d"],
        renumber=["r"],
        confidential=["c"],
        strata=["s"],
        weight="w",
        unit="u",
        require={"distinct": {"q": 2}, "p_percent": {"p": 3}},
    )
    assert plan.with_other_role == {"d", "r", "c", "s", "w", "u", "q"}
    assert Plan().with_other_role == set()


def test_small_strata_are_not_merged_where_a_record_has_several_groups():
    merged = {"columns": ["s"], "small": "merge"}
    Plan.of(columns=["a"], per_column=True, strata=merged)
    with pytest.raises(InputError, match="per_column gives each column its own groups"):
        Plan.of(columns=["a", "b"], per_column=True, strata=merged)
    blocks = (Block(("a",)), Block(("b",)))
    for settings in (
        {"blocks": blocks, "strata": Strata(("s",), "merge")},
        {"blocks": (Block(("a",), strata=Strata(("s",), "merge")), Block(("b",)))},
    ):
        with pytest.raises(InputError, match="several blocks, each with its own groups"):
            Plan(**settings)


BLOCKS = Path(__file__).with_name("blocks.toml").read_text(encoding="utf-8")


def test_blocks_have_units_and_strata_of_their_own():
    plan = Plan.from_toml_text(BLOCKS)
    assert plan.promises() == [
        Promise(3, ["a", "b", "region"], "hid"),
        Promise(5, ["c"], "firm"),
        Promise(2, ["d", "region", "sector"], "hid"),
    ]
    assert plan.units == ["hid", "firm"]
    assert plan.all_strata == ["region", "sector"]
    assert plan.shared_strata == []
    assert plan.also_shared() == ["region", "sector"]
    assert [plan.unit_of(block).mode for block in plan.blocks] == ["count", "together", "count"]
    assert {"hid", "firm", "region", "sector"} <= plan.with_other_role
    assert Plan.from_toml_text(plan.to_toml()) == plan
    assert Plan.from_dict(plan.as_dict()) == plan
    with pytest.raises(InputError, match="no column 'firm'"):
        plan.roles(["a", "b", "c", "d", "hid", "region", "sector"])


def test_what_the_one_block_has_is_the_plans():
    own = Plan(blocks=(Block(("a",), 3, unit="u", strata=["s"]),))
    assert own == Plan.of(columns=["a"], k=3, unit="u", strata=["s"])
    assert Plan(strata=Strata(("s",)), blocks=(Block(("a",), strata=[]),)).all_strata == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"unit": "hid"}, "Blocks of the plan have a unit of their own"),
        ({"strata": ["sector"]}, "Blocks of the plan have a strata of their own"),
    ],
)
def test_what_blocks_have_of_their_own_is_not_overridden(settings, words):
    with pytest.raises(InputError, match=words):
        Plan.from_toml_text(BLOCKS).override(**settings)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('column = "firm"', 'column = "a"', "The unit 'a' tells whose record it is"),
        ('column = "firm"', 'column = ["a"]', "unit is the name of one column"),
        ('"region", "sector"', '"region", "hid"', "A stratum must hold k units; 'hid'"),
        ('"region", "sector"', '"a"', "'a' is named in block 1 and in strata"),
        ("strata = []", "strata = [1]", "strata takes names of columns"),
        ("strata = []", "stratum = []", "did you mean strata"),
        ('mode = "together"', 'mode = "apart"', "mode, of the unit, is one of"),
    ],
)
def test_what_is_wrong_with_the_part_of_a_block(old, new, words):
    with pytest.raises(InputError, match=words):
        Plan.from_toml_text(BLOCKS.replace(old, new))


RELATED = [(text, found) for text, several in REFUSED["relations"].items() for found in several]


@pytest.mark.parametrize(
    ("relation", "found"), [*RELATED, ("gross = net + tax", {"round": True, "columns": None})]
)
def test_a_plan_that_would_break_a_relation_is_refused(relation, found):
    taxes = {"columns": ["gross", "net", "tax"], "k": 3, "relations": [relation]}
    whole = {**taxes, **settings_in(found)}
    if "says" not in found:
        plan = Plan.of(**whole)
        assert plan.relations == (Relation(relation),)
        assert plan.related == set(Relation(relation).columns)
    else:
        with pytest.raises(InputError, match=f"must keep the relation '.*', but .*{found['says']}"):
            Plan.of(**whole)


def test_a_relation_across_blocks_is_refused():
    data = {
        "microagg": 1,
        "relation": [{"holds": "net <= gross"}],
        "block": [{"columns": ["net"]}, {"columns": ["gross"]}],
    }
    with pytest.raises(InputError, match="'net' is protected and 'gross' is protected in another"):
        Plan.from_dict(data)
    assert Plan.from_dict({**data, "relation": [{"holds": "net >= 0"}]})


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ({"holds": "a = b"}, "two brackets"),
        ([{}], "says what holds"),
        (["a = b"], "relation is a table"),
    ],
)
def test_what_is_no_relation_of_a_file(relation, sentence):
    with pytest.raises(InputError, match=sentence):
        Plan.from_dict({"microagg": 1, "relation": relation})


AGGREGATE = {
    "mean": np.mean,
    "median": np.median,
    "midrange": lambda x: (np.min(x) + np.max(x)) / 2,
    "maximum": np.max,
    "minimum": np.min,
}


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.integers(0, 40), st.integers(0, 9)),
        min_size=1,
        max_size=7,
    ),
    st.sampled_from(["a = b + c", "b <= a", "b + c <= a", "2*a >= 2*b", "b <= a + 3", "a >= b"]),
    st.sampled_from(AGGREGATES),
    st.sampled_from([None, -1, 0, 1]),
    st.sampled_from(["no", "nearest"]),
    st.sampled_from([None, "no", "nearest"]),
)
def test_what_is_accepted_keeps_its_relation(rows, text, aggregate, digits, rounding, of_b):
    """Naive release of one group: whatever the plan lets pass leaves no relation broken."""
    try:
        plan = Plan.of(
            columns=["a", "b", "c"],
            relations=[text],
            aggregate=aggregate,
            digits=digits,
            round=rounding == "nearest",
            kinds={"b": {"round": of_b}},
        )
    except InputError:
        assume(False)
    b, c, extra = (np.array(column, dtype=float) / 4 for column in zip(*rows, strict=True))
    a = b + c + (0 if text == "a = b + c" else extra)
    values = {"a": a, "b": b, "c": c}
    relation = plan.relations[0]
    assert not relation.broken(values).any()
    released = {}
    for name, column in values.items():
        value = AGGREGATE[aggregate](column)
        if plan.column(name).round == "nearest":
            value = np.rint(value)
        elif digits is not None:
            value = np.round(value, digits)
        released[name] = np.array([value])
    assert not relation.broken(released).any()
