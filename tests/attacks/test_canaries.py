"""Canaries: values that occur once and would be noticed anywhere, and names that try to break out.

What is protected or dropped stays out of every text: reports of both kinds, their JSON, stdout,
stderr, errors and what is left on disk. Names of columns and files appear as text and nothing else.
"""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import microagg
from microagg.cli.main import app
from microagg.errors import MicroaggError

NUMBERS = [918273.64551, -77665544.25, 13579.24683]  # planted in protected columns
WORDS = ["CANARYNAME", "CANARYMAIL"]  # planted in dropped ones
COLUMNS = ["income", "rent"]


def planted(n: int = 80) -> pa.Table:
    rng = np.random.default_rng(5)
    income, rent = rng.lognormal(8, 0.5, n).round(2), rng.lognormal(6, 0.5, n).round(2)
    income[3], income[40], rent[11] = NUMBERS
    return pa.table(
        {
            "name": [WORDS[0] + str(i) for i in range(n)],
            "mail": [f"{WORDS[1]}{i}@example.org" for i in range(n)],
            "income": income,
            "rent": rent,
            "region": rng.choice(["north", "south"], n),
            "illness": rng.choice(["flu", "cold"], n),
        }
    )


def written(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    pacsv.write_csv(planted(), path)
    return path


def leaks(text: str) -> list[str]:
    """Planted values that a text holds, in any of the forms that numbers are written in."""
    found = [word for word in WORDS if word in text]
    for value in NUMBERS:
        rounded = f"{abs(value):,.0f}", f"{abs(value):.0f}"
        forms = {repr(value), f"{value:.7g}", f"{value:.6g}", *rounded}
        found += [f for f in forms if re.search(rf"(?<![\d.]){re.escape(f)}(?!\d)", text)]
    return found


def run(*words: object) -> tuple[int, str]:
    """Run the command; return its exit code and all that it said on stdout and stderr."""
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return done.exit_code, done.output + done.stderr


ROLES = ["--drop", "name,mail", "--confidential", "illness"]


def test_no_planted_value_in_what_is_said_and_written(tmp_path):
    source = written(tmp_path)
    runs = {
        "protect": [source, tmp_path / "safe.csv", "--k", 5, "-c", "income,rent", *ROLES],
        "plan": [source, *ROLES],
        "compare": [source, "-k", "3,5", "-m", "mdav", "-c", "income,rent", *ROLES],
        "verify": [tmp_path / "safe.csv", "--k", 5, "-c", "income,rent"],
        "measure": [source, tmp_path / "safe.csv", "-c", "income,rent", "--k", 5],
    }
    reports = {
        "protect": [
            ["--report", tmp_path / "board.html", "--analysis", "income by region"],
            ["--report", tmp_path / "public.html", "--public"],
        ],
        "compare": [["--report", tmp_path / "map.html"]],
    }
    for name, words in runs.items():
        for more in [[], ["--json"], *reports.get(name, [])]:
            code, said = run(name, *words, *more)
            assert code == 0, said
            assert leaks(said) == [], (name, more)
    for path in tmp_path.iterdir():
        if path != source:
            assert leaks(path.read_text(encoding="utf-8")) == [], path.name
    assert {path.name for path in tmp_path.iterdir()} == {
        "survey.csv",
        "safe.csv",
        *(f"{stem}.{end}" for stem in ("board", "public", "map") for end in ("html", "json")),
    }


def test_the_canary_is_seen_where_it_is():
    assert len(leaks(planted().to_pandas().to_csv())) >= 5


def test_no_planted_value_in_what_a_notebook_shows():
    with pytest.warns(microagg.DisclosureRiskWarning) as said:
        release = microagg.protect(planted(), k=5, columns=COLUMNS, drop=["name", "mail"])
    shown = release, release.evidence, release.utility, release.risk, release.plan
    warned = [str(warning.message) for warning in said]
    texts = [release._repr_html_(), *map(repr, shown), *warned]
    assert [leaks(text) for text in texts] == [[]] * len(texts)


# Errors


def with_cell(column: str, value: Any) -> pd.DataFrame:
    frame = planted().to_pandas()
    frame[column] = frame[column].astype(object)
    frame.loc[9, column] = value
    return frame


def protect(frame: Any = None, **settings: Any) -> Any:
    given = planted() if frame is None else frame
    return microagg.protect(given, **{"k": 5, "columns": COLUMNS, **settings})


ERRORS: list[Callable[[], Any]] = [
    lambda: protect(columns=["name"]),
    lambda: protect(unit="income"),
    lambda: protect(unit="region"),
    lambda: protect(with_cell("income", float("nan"))),
    lambda: protect(with_cell("income", float("inf"))),
    lambda: protect(with_cell("income", "CANARYNAME")),
    lambda: protect(with_cell("income", None)),
    lambda: protect(with_cell("income", [918273.64551])),
    lambda: protect(kinds={"income": "CANARY".lower()}),
    lambda: protect().measure(analyses=["income ~ name"]),
    lambda: protect(drop=["name"]).measure(analyses=["income by name"]),
    lambda: microagg.partition([[918273.64551], ["CANARYNAME"], [1.0]], 2),
    lambda: microagg.partition([[918273.64551], [float("nan")], [1.0]], 2),
    lambda: microagg.utility(planted(), planted().slice(1), COLUMNS),
    lambda: microagg.compare(planted(), k=[3], methods=["mdav"], columns=["name"]),
]


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_no_planted_value_in_an_error(number):
    with pytest.raises(MicroaggError) as caught:
        ERRORS[number]()
    said = str(caught.value)
    assert leaks(said) == []
    cause = caught.value.__cause__
    assert cause is None or leaks(str(cause)) == []
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", said)


BROKEN = {
    "a text among numbers": "income,rent\n918273.64551,1\nCANARYNAME,2\n3,4\n5,6\n7,8\n9,10\n",
    "too many fields": "income,rent\n918273.64551,1,CANARYNAME\n3,4\n",
    "too few fields": "income,rent\nCANARYNAME\n3,4\n",
    "an open quote": 'income,rent\n"CANARYNAME,1\n3,4\n',
    "a quote amid a field": 'income,rent\nCANARY"NAME,1\n3,4\n5,6\n7,8\n9,10\n',
    "an empty cell": "income,rent\n,918273.64551\n3,4\n5,6\n7,8\n9,10\n",
    "the same name twice": "income,income\n918273.64551,2\n3,4\n",
    "decimal commas": 'income,rent\n"918273,64551",1\n"3,5",4\n"5,5",6\n"7,5",8\n"9,5",1\n',
    "a header alone": "income,rent\n",
    "signs that are no text": "income,rent\nCANARYNAME\udcff\udcfe,1\n3,4\n",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_no_planted_value_in_what_is_said_of_a_broken_file(tmp_path, what, more):
    source = tmp_path / "broken.csv"
    source.write_text(BROKEN[what], encoding="utf-8", errors="surrogateescape")
    code, said = run("protect", source, tmp_path / "out.csv", "--k", 2, "-c", "income,rent", *more)
    assert code == 2, said
    assert leaks(said) == []
    assert [path.name for path in tmp_path.iterdir()] == ["broken.csv"]


# Names


HOSTILE = [
    '<script>alert("x")</script>',
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "</style><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{a}{b}$",
    "[bold red]name[/bold red]",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "line\nbreak\r\ttab",
    "\u202eright to left",
    "long " * 300,
    "javascript:alert(1)",
    "&lt;already&gt;",
    "nul\x00byte",
]


class Page(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name.endswith(("href", "src"))]


def check_page(text: str) -> None:
    page = Page(text)
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "form", "a", "base"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert [
        link
        for link in page.links
        if not link.startswith(("#", "data:,", "data:image/png;base64,"))
    ] == []
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("public", [False, True])
def test_names_are_text_in_reports(tmp_path, public):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.lognormal(3, 1, 60).round(2) for name in HOSTILE[:7]})
    for name in HOSTILE[7:]:
        frame[name] = rng.choice([f"<b>{name}</b>", "other"], 60)
    release = microagg.protect(
        frame, k=5, columns=HOSTILE[:7], confidential=[HOSTILE[8]], method="mdav", bound=False
    )
    analyses = [[HOSTILE[0], "by", HOSTILE[7]]]
    release.report(tmp_path / "r.html", public=public, **({} if public else {"analyses": analyses}))
    check_page((tmp_path / "r.html").read_text(encoding="utf-8"))
    twin = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert twin["columns"]["protected"] == HOSTILE[:7]
    check_page(release._repr_html_())


def controls(text: str) -> list[str]:
    return re.findall(r"[\x00-\x09\x0b-\x1f\x7f\x9b\u202a-\u202e]", text)


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\x00" not in name])
def test_names_are_text_on_a_terminal(tmp_path, name):
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.lognormal(3, 1, 40).round(2), "b": rng.integers(0, 9, 40)})
    source = tmp_path / "t.parquet"
    pa.parquet.write_table(table, source)
    quoted = '"' + name.replace('"', '""') + '"'
    for words in (
        ["protect", source, tmp_path / "o.parquet", "--k", 3, "-c", quoted],
        ["protect", source, tmp_path / "o.parquet", "--k", 3, "-c", quoted + "x"],
        ["verify", source, "--k", 3],
        ["compare", source, "-k", 3, "-m", "mdav"],
        ["measure", source, source, "--id", name],
    ):
        code, said = run(*words)
        assert code in (0, 1, 2)
        assert controls(said) == [], words


@pytest.mark.parametrize("name", ["\x1b[31mred.csv", "a\nb.csv", "\u202evsc.csv", "<b>.csv"])
def test_names_of_files_are_text(tmp_path, name):
    source = tmp_path / name
    pacsv.write_csv(planted(), source)
    target = tmp_path / ("out" + name)
    report = tmp_path / "r.html"
    words = ["protect", source, target, "--k", 5, "-c", "income,rent", "--report", report]
    code, said = run(*words, "--method", "mdav", "--known", "name,mail")
    assert code == 0
    assert controls(said) == []
    check_page(report.read_text(encoding="utf-8"))
    assert controls(run("verify", tmp_path / ("no" + name), "--k", 3)[1]) == []


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize("public", [False, True])
def test_half_a_sign_in_a_name_is_shown_as_none(tmp_path, public):
    names = pd.Index(["a\udcff", "b"], dtype=object)
    values = np.random.default_rng(0).lognormal(3, 1, (40, 2))
    release = microagg.protect(pd.DataFrame(values, columns=names), k=5, columns=list(names))
    release.report(tmp_path / "r.html", public=public)
    check_page((tmp_path / "r.html").read_text(encoding="utf-8"))
