"""The flags that describe real tables: what they say, alone and over a plan file, and how they fail."""

import re

import pytest
import typer.main
from typer.testing import CliRunner

from microagg.cli.flags import PANELS, plan_of
from microagg.cli.main import app
from microagg.errors import InputError
from microagg.plan.forms import read_value, split_pair
from microagg.plan.plan import Plan

# Flags, and the keywords that say the same.
SAID = [
    (
        {"kind": ["education=low,middle,high"]},
        {"kinds": {"education": ["low", "middle", "high"]}},
    ),
    ({"kind": ["nace=01,02"]}, {"kinds": {"nace": ["01", "02"]}}),
    ({"kind": ["size=<=5,6-10,>10"]}, {"kinds": {"size": ["<=5", "6-10", ">10"]}}),
    ({"kind": ['x="1,5","2,5"']}, {"kinds": {"x": ["1,5", "2,5"]}}),
    ({"kind": ['"a=b"=integer']}, {"kinds": {"a=b": "integer"}}),
    (
        {"kind": ["income=spiked"], "importance": ["income=2"], "transform": ["income=log"]},
        {"kinds": {"income": {"kind": "spiked", "importance": 2, "transform": "log"}}},
    ),
    (
        {"coarsen": ["age=bands:5,top:80", "born=to:month", '"a=b"=bands:0/18']},
        {
            "coarsen": {
                "age": {"bands": 5, "top": 80},
                "born": {"to": "month"},
                "a=b": {"bands": [0, 18]},
            }
        },
    ),
    (
        {"strata": ["region"], "small_strata": "merge"},
        {"strata": {"columns": ["region"], "small": "merge"}},
    ),
    (
        {"weight": "w", "weight_release": "keep", "weight_grouping": "plain"},
        {"weight": {"column": "w", "release": "keep", "grouping": "plain"}},
    ),
    (
        {"unit": "db030", "unit_name": "household"},
        {"unit": {"column": "db030", "name": "household"}},
    ),
    (
        {"confidential": ["diagnosis=medical file, in no register", "income,rent"]},
        {
            "confidential": {
                "diagnosis": "medical file, in no register",
                "income": "",
                "rent": "",
            }
        },
    ),
    ({"confidential": ["a,b=both"]}, {"confidential": {"a": "both", "b": "both"}}),
    ({"confidential": ['"a=b"=c=d']}, {"confidential": {"a=b": "c=d"}}),
    (
        {"suppress": 0.01, "suppress_weighted": True},
        {"suppress": {"most": 0.01, "weighted": True}},
    ),
    ({"analysis": ["income ~ age", "gini(age)"]}, {"analyses": ["income ~ age", "gini(age)"]}),
    (
        {"missing_code": ["income=-8", "income=-9", "job=?,n/a"]},
        {"missing": {"codes": {"income": [-8, -9], "job": ["?", "n/a"]}}},
    ),
    (
        {
            "require": [
                "distinct:diagnosis=3",
                "distinct:drug=2",
                "closeness:diagnosis=0.2",
                "p_percent:turnover=10",
                "n_k:turnover=2,85",
                'entropy:"a=b"=2.5',
                "population=100",
                "individual_risk=0.05",
            ]
        },
        {
            "require": {
                "distinct": {"diagnosis": 3, "drug": 2},
                "closeness": {"diagnosis": 0.2},
                "p_percent": {"turnover": 10},
                "n_k": {"turnover": {"n": 2, "k": 85}},
                "entropy": {"a=b": 2.5},
                "population": 100,
                "individual_risk": 0.05,
            }
        },
    ),
    (
        {"relation": ["gross = net + tax", "a <= b"]},
        {"relations": ["gross = net + tax", "a <= b"]},
    ),
]


@pytest.mark.parametrize(("flags", "settings"), SAID)
def test_flags_say_what_keywords_say(flags, settings):
    assert plan_of(flags) == Plan.of(**settings)


PLAN = Plan.of(
    k=5,
    columns=["hours", "rooms"],
    kinds={"hours": {"kind": "spiked", "spike": -1, "round": "no"}},
    strata=["zone"],
    weight="weight",
    unit="person",
    missing={"policy": "drop", "codes": {"rooms": 99}},
    require={"distinct": {"answer": 3}},
    relations=["rent <= price"],
)
# Flags about what the plan names.
PARTS = [
    ({"small_strata": "merge"}, {"strata": {"small": "merge"}}),
    ({"weight_release": "keep"}, {"weight": {"release": "keep"}}),
    ({"unit_mode": "together"}, {"unit": {"mode": "together"}}),
    ({"importance": ["hours=2"]}, {"kinds": {"hours": {"importance": 2}}}),
]


@pytest.mark.parametrize(("flags", "settings"), [*SAID, *PARTS])
def test_flags_change_of_a_plan_file_what_keywords_change(tmp_path, flags, settings):
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    assert plan_of({"plan": tmp_path / "plan.toml", **flags}) == PLAN.override(**settings)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"kind": ["age"]}, "--kind takes a name and a value, such as sector=nominal; got 'age'"),
        ({"kind": ["a=number", "a=nominal"]}, "--kind is given twice for column 'a'"),
        ({"coarsen": ["age=5"]}, "--coarsen takes a column and how it is recoded"),
        ({"coarsen": ["age=top:5", "age=bottom:1"]}, "--coarsen is given twice for column 'age'"),
        ({"confidential": ["a=x", "a=y"]}, "'a' is named twice in confidential"),
        ({"require": ["distinct:diagnosis"]}, "--require takes a name and a value"),
        ({"require": ["distict:diagnosis=3"]}, r"did you mean distinct\?"),
        ({"require": ["population=1", "population:x=2"]}, "'population' twice"),
        ({"require": ["distinct:x=2", "distinct:x=3"]}, "'distinct' twice"),
    ],
)
def test_a_wrong_flag_has_its_sentence(flags, message):
    with pytest.raises(InputError, match=message):
        plan_of(flags)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("-8", -8), ("0", 0), ("1.50", 1.5), ("1e3", 1000.0), ("-0.5", -0.5)),
        *((w, w) for w in ("007", "+5", " 5", "1_000", "nan", "inf", "", "0x1", "1.", ".5", "٣")),
    ],
)
def test_values_are_numbers_only_if_nothing_is_lost(word, value):
    found = read_value(word)
    assert (found, type(found)) == (value, type(value))


def test_a_name_in_quotes_ends_at_its_quote():
    assert split_pair("--kind", '"say ""x"""=number', "") == ('say "x"', "number")
    assert split_pair("--kind", '"open=number', "") == ('"open', "number")
    assert split_pair("--kind", "a=b=c", "") == ("a", "b=c")


def test_every_flag_of_a_long_help_stands_in_one_panel_and_ten_common_ones_come_first():
    done = CliRunner().invoke(app, ["protect", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 0
    titles = re.findall(r"^╭─ (.+?) ─", done.stdout, re.M)
    assert titles == ["Arguments", "Options", *filter(None, PANELS)]
    listed = [name for names in PANELS.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    for command in ("protect", "plan", "compare"):
        flags = typer.main.get_command(app).commands[command].params
        options = {flag.name for flag in flags if flag.param_type_name == "option"}
        assert options <= {*listed, "help"}, command
    common = done.stdout.split("─ Options ─")[1].split("╰")[0]
    assert len(re.findall(r"^│ --", common, re.M)) == 10 + 1  # and --help


def test_help_keeps_brackets():
    shown = CliRunner().invoke(app, ["page", "--help"], env={"COLUMNS": "200"}).stdout
    assert "pip install 'microagg[page]'" in shown


@pytest.mark.parametrize(
    "command", [c.name or c.callback.__name__ for c in app.registered_commands]
)
def test_help_is_whole_on_a_narrow_terminal(command):
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"}).stdout
    assert "…" not in shown  # a word that did not fit
    # No flag looks as if it took a value, but the one that typer adds.
    assert {line.split()[1] for line in shown.splitlines() if "<bool>" in line} <= {"--help"}


def test_paragraphs_of_help_are_filled():
    shown = CliRunner().invoke(app, ["protect", "--help"], env={"COLUMNS": "200"}).stdout
    assert (
        "all else is protected; see microagg plan. Columns left as they are count as known" in shown
    )
