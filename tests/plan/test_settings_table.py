"""A setting is one row: a plan with one more row has the setting everywhere."""

import re
from dataclasses import dataclass, fields
from inspect import signature

import pytest
import typer
from typer.testing import CliRunner
from website.references import keys_of

import microagg
from microagg.cli.flags import flag_of, flag_rows, keywords_of_flags
from microagg.errors import InputError
from microagg.page.edits import edited
from microagg.page.screens import fields_of
from microagg.plan.block import Block
from microagg.plan.forms import COUNT
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept
from microagg.plan.settings import check_count
from microagg.plan.settings_table import rows_of, setting


@dataclass(frozen=True)
class OneMore(Plan):
    """The plan with one more setting."""

    patience: int = setting(
        3,
        check=check_count,
        flag="--patience",
        form=COUNT,
        help="How many times to try.",
        label="Patience",
        hint="More tries lose less.",
    )


PLAN = OneMore.of(patience=5, columns=["a"], k=3)


def test_one_row_is_a_keyword_with_its_check():
    assert PLAN.patience == 5
    assert PLAN.override(k=4).patience == 5
    with pytest.raises(InputError, match="patience must be a whole number of at least 1; got 0"):
        PLAN.override(patience=0)
    with pytest.raises(InputError, match=r"called 'patence'; did you mean patience\?"):
        PLAN.override(patence=7)


def test_one_row_is_a_key_of_the_file():
    assert "patience = 5\n" in PLAN.to_toml()
    assert OneMore.from_toml_text(PLAN.to_toml()) == PLAN
    assert "patience" not in OneMore.of(k=3).as_dict()
    with pytest.raises(InputError, match=r"did you mean patience\?"):
        OneMore.from_dict({"microagg": 1, "patiense": 1})


def test_one_row_is_a_flag_with_its_help():
    assert keywords_of_flags(OneMore, {"patience": 5}) == {"patience": 5}
    app = typer.Typer()
    found = []
    row = next(row for _, row in flag_rows(OneMore) if row.argument == "patience")

    @app.command()
    def try_it(patience: row.form.type = flag_of(row)):
        found.append(patience)

    assert (
        "How many times to try."
        in CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    )
    CliRunner().invoke(app, ["--patience", "7"], catch_exceptions=False)
    assert found == [7]


def test_one_row_is_a_field_of_the_page():
    field = fields_of(PLAN)["patience"]
    assert (field.row.label, field.value, field.row.hint) == (
        "Patience",
        "5",
        "More tries lose less.",
    )
    assert edited(PLAN, {"what": "whole", "patience": "7"}, ["a"], {}).patience == 7


def test_one_row_is_a_line_of_the_reference():
    assert "| `patience` | `int` | `3` | `--patience` | How many times to try. |" in keys_of(
        OneMore
    )


def test_the_command_gives_numbers_to_settings_that_are_numbers():
    sections = [Plan, *(row.section for row in rows_of(Plan) if row.section)]
    kinds = {field.name: field.type for section in sections for field in fields(section)}
    texts = {
        row.flag
        for _, row in flag_rows(Plan)
        if re.fullmatch(r"(int|float)( \| None)?", str(kinds.get(row.name)))
        and row.form.type not in (int, float)
    }
    # A seed may be the word "fresh"; importance is said of columns.
    assert texts == {"--seed", "--importance"}


def test_every_setting_is_a_row_and_a_keyword_of_protect():
    rows = {row.name for row in rows_of(Plan)}
    assert {f.name for f in fields(Plan)} - rows == {"reasons", "notes"}
    keywords = {row.keyword for row in rows_of(Plan) if not row.is_spread}
    keywords |= {row.keyword for section in (Block, Accept) for row in rows_of(section)}
    named = set(signature(microagg.protect).parameters)
    assert named - keywords == {"frame", "plan", "coarsen", "progress"}
    assert keywords - named == set()
