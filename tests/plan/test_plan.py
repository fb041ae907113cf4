"""Property tests of the plan: every way of writing it down leads back to it."""

import dataclasses
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.errors import InputError
from microagg.plan.block import Block, Require
from microagg.plan.column import Column
from microagg.plan.forms import join_names, split_names
from microagg.plan.plan import UNSET, Plan
from microagg.plan.sections import Accept, Missing, Strata, Suppress, Unit, Weight
from microagg.plan.settings_table import rows_of
from plans import NAMES, plans, settings_in

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))


@given(plans())
def test_json_leads_back(plan):
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


@given(plans())
def test_a_file_leads_back(tmp_path_factory, plan):
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    path.write_bytes(plan.to_toml().encode())
    assert Plan.from_toml(path) == plan


@given(st.lists(NAMES, min_size=1, unique=True))
def test_lists_of_names_lead_back(names):
    assert split_names([join_names(names)]) == names


@given(plans())
def test_unset_changes_nothing(plan):
    names = plan._keywords() - {"plan", "progress"} | {"effort"}
    assert {"k", "columns", "drop", "unit", "keep_order", "max_loss", "kinds"} <= names
    assert plan.override() == plan
    assert plan.override(**dict.fromkeys(names, UNSET)) == plan


@given(plans())
def test_a_plan_is_frozen_and_equal_by_value(plan):
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.seed = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.blocks[0].k = 1
    assert dataclasses.replace(plan) == plan
    assert plan.override(k=10**9 + 1) != plan
    assert plan == dataclasses.replace(plan, notes={})


@pytest.mark.parametrize("given_", REFUSED["unknown_keys"])
def test_unknown_keys_are_refused_with_the_nearest(given_):
    with pytest.raises(InputError, match=rf"did you mean {given_['near']}\?"):
        Plan.from_dict({"microagg": 1, **settings_in(given_)})


@pytest.mark.parametrize("word", ["mehtod", "colums", "droop", "seed"])
def test_unknown_keywords_are_refused(word):
    with pytest.raises(InputError, match=f"no setting called '{word}'"):
        Plan.of(**{word: 1})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
WRONG = st.one_of(
    JSON,
    st.sampled_from(["auto", "mdav", "zscore", "number", "nearest", "fast", "mean", "fresh"]),
    st.sampled_from(
        ["ordinal", "spiked", "log", "totals", "keep", "merge", "together", "drop", 0.5, 2]
    ),
)


def almost(section, **more):
    """Tables with some of the keys of a section."""
    keys = {f.name: WRONG for f in dataclasses.fields(section) if f.name != "options"}
    return WRONG | st.fixed_dictionaries({}, optional={**keys, **more})


KEYS = st.text(max_size=3)
ANY = WRONG | st.dictionaries(KEYS, WRONG, max_size=2)
LEVELS = st.lists(st.booleans() | st.integers() | st.floats() | st.text(max_size=3), max_size=4)
LEVELLED = st.fixed_dictionaries(
    {"levels": LEVELS}, optional={"kind": st.sampled_from(["nominal", "ordinal"])}
)
REQUIRED = almost(Require, **{f.name: ANY for f in dataclasses.fields(Require)})
BLOCKS = almost(
    Block, **dict.fromkeys(["effort", "time_limit", "cost", "cut"], WRONG), require=REQUIRED
)
ALMOST = st.fixed_dictionaries(
    {"microagg": st.just(1)},
    optional={
        **{row.key: WRONG for row in rows_of(Plan)},
        "confidential": ANY,
        "unit": almost(Unit),
        "strata": almost(Strata, columns=WRONG | st.just(["s"])),
        "weight": almost(Weight),
        "missing": almost(Missing, codes=ANY),
        "accept": almost(Accept),
        "suppress": almost(Suppress),
        "relation": WRONG
        | st.lists(st.fixed_dictionaries({"holds": WRONG | st.just("a <= b")}), max_size=2),
        "analyses": WRONG | st.lists(WRONG, max_size=2),
        "columns": WRONG | st.dictionaries(KEYS, almost(Column) | LEVELLED, max_size=2),
        "block": WRONG | st.lists(BLOCKS, max_size=2),
    },
)


@given(JSON)
def test_random_data_are_a_plan_or_an_input_error(data):
    with pytest.raises(InputError):
        Plan.from_dict(data)


@given(ALMOST)
def test_wrong_types_are_input_errors_and_what_is_accepted_leads_back(data):
    try:
        plan = Plan.from_dict(data)
    except InputError:
        return
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan
    assert Plan.from_toml_text(plan.to_toml()) == plan


@pytest.mark.parametrize(
    "given_", [*REFUSED["plans"], {"confidential": {"a": "x" * 501}, "says": "at most 500"}]
)
def test_each_wrong_setting_has_its_sentence(given_):
    with pytest.raises(InputError, match=given_["says"]):
        Plan.from_dict({"microagg": 1, **settings_in(given_)})


@pytest.mark.parametrize("version", [None, 0, 2, "1", True, 1.5, [1]])
def test_another_version_is_refused(version):
    with pytest.raises(InputError, match="microagg = 1"):
        Plan.from_dict({"microagg": version})


@pytest.mark.parametrize("data", [[1.0, 2.0], (1,), {"a": 1}, b"bytes", object(), float("nan")])
def test_no_data_go_in(data):
    with pytest.raises(InputError, match="holds no data"):
        Plan.of(method="mst", tree=data)


@pytest.mark.parametrize("text", ["k = ", "a = 1\na = 2", "\x00", "[[block]"])
def test_what_is_no_toml_is_an_input_error(text):
    with pytest.raises(InputError, match="not a TOML file"):
        Plan.from_toml_text(text)


@pytest.mark.parametrize("brackets", ["[]", ["{a=", "}"]])
def test_a_plan_of_too_many_brackets_is_an_input_error(brackets):
    text = f"drop = {brackets[0] * 20_000}{brackets[1] * 20_000}"
    with pytest.raises(InputError, match=r"at most four deep; .* Remove brackets"):
        Plan.from_toml_text(text)


@given(NAMES, NAMES)
def test_no_note_leaves_its_comment(name, note):
    plan = Plan(blocks=(Block(columns=("x",), k=3),), notes={"x": note, name: note})
    lines = plan.to_toml().splitlines()
    assert Plan.from_toml_text("\n".join(lines) + "\n") == plan
    plain = Plan(blocks=(Block(columns=("x",), k=3),)).to_toml()
    assert Plan.from_toml_text(plain) == plan


def test_roles_of_a_table():
    plan = Plan.of(columns=["a"], drop="b", renumber="c", confidential="d", unit="c")
    roles = plan.roles(list("abcdef"))
    assert (roles.protected, roles.dropped, roles.renumbered) == (["a"], ["b"], ["c"])
    assert (roles.confidential, roles.known, roles.unit) == (["d"], ["e", "f"], "c")
    with pytest.raises(InputError, match=r"no column 'incme'.*Did you mean 'income'"):
        Plan.of(columns=["incme"]).roles(["income"])
    assert Plan.of(k=3).roles(["a", "b"]).protected == []


def test_a_claim_keeps_its_reason_while_it_is_made():
    plan = Plan.of(confidential={"diagnosis": " in no register ", "income": ""})
    assert plan.confidential == ("diagnosis", "income")
    assert plan.reasons == {"diagnosis": "in no register"}
    assert plan == Plan(confidential={"diagnosis": "in no register", "income": ""})
    assert plan.override(confidential=["diagnosis"]).reasons == plan.reasons
    assert plan.override(confidential="income").reasons == {}
    assert plan.override(confidential={"diagnosis": ""}).reasons == {}
    with pytest.raises(InputError, match=r"'income' is not\. Name it in confidential"):
        Plan(confidential=("diagnosis",), reasons={"income": "x"})


def test_confidential_columns_are_a_list_or_a_table():
    given_ = {"microagg": 1, "confidential": ["a", "b"]}
    assert Plan.from_dict(given_).as_dict()["confidential"] == ["a", "b"]
    given_ = {"microagg": 1, "confidential": {"a": "why", "b": ""}}
    assert Plan.from_dict(given_).as_dict()["confidential"] == {"a": "why", "b": ""}
    text = Plan.from_dict(given_).to_toml()
    assert 'confidential = { a = "why", b = "" }' in text


def test_a_stratum_and_a_unit_may_be_known():
    plan = Plan.of(columns=["a"], known=["s", "u", "z"], strata="s", unit="u")
    assert plan.roles(list("asuyz")).known == ["s", "u", "y", "z"]


def test_the_noun_belongs_to_the_column():
    plan = Plan.of(unit={"column": "db030", "name": " household "})
    assert plan.words_of_unit("db030") == ("household", "households")
    assert plan.override(unit={"mode": "together"}).unit_section.name == "household"
    assert plan.override(unit="rb030").unit_section.name is None
    blocks = tuple(
        Block(columns=(c,), unit=Unit(f"{c}id", name=noun))
        for c, noun in (("a", "firm"), ("b", None))
    )
    plan = Plan(blocks=blocks)
    assert [plan.words_of_unit(unit).many for unit in plan.units] == ["firms", "units (bid)"]


def test_override_changes_one_thing_and_drops_options_of_another_method():
    plan = Plan.of(k=3, method="auto", effort="fast")
    assert plan.override(k=5).blocks[0].options == {"effort": "fast"}
    assert plan.override(method="mdav").blocks[0].options == {}
    with pytest.raises(InputError, match="effort"):
        plan.override(method="mdav", effort="fast")
