"""The site: built strictly with the code of its pages run, complete, and looked at in a real browser."""

import html
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer.main
from website.execute import Runner, blocks_of
from website.references import PARTS, command_page, plan_page

import microagg
from conftest import reference_file
from microagg.cli.main import app
from microagg.plan.registry import METHODS
from microagg.plan.settings_table import rows_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WIDTHS = (1280, 390)
_RUN_AT_BUILD = "---\nrun: true"
# Blocks that are shown and not run: text, and calls of other programs.
_SHOWN = {"", "text", "r", "java"}
_ON_SPARK = {"spark.md"}  # which tests/engines/test_spark.py runs, where there is a session


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def any_table() -> pd.DataFrame:
    """What pages call ``frame``: persons or firms with the columns that requirements are about."""
    rng, n = np.random.default_rng(0), 120
    return pd.DataFrame(
        {
            "age": rng.normal(45.5, 14, n).round(1),
            "height": rng.normal(170, 9, n).round(1),
            "income": rng.gamma(3, 800, n).round(2),
            "turnover": rng.gamma(9, 800, n).round(2),
            "diagnosis": rng.choice(["flu", "cold", "gout", "none"], n),
            "sector": rng.choice(["trade", "health", "farming", "arts"], n),
            "status": rng.choice(["single", "married", "widowed"], n),
            "firm": np.arange(n) // 2,
            "UTILITYID": np.arange(n) // 2,
            "w": rng.uniform(50, 150, n).round(1),
        }
    )


def runs_at_build(page: Path) -> bool:
    return page.read_text(encoding="utf-8").startswith(_RUN_AT_BUILD)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as `make docs` builds it; a warning, a broken link or a block that fails ends it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def text_of(path: Path) -> str:
    """The words of a page, without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))


def test_every_page_of_a_method_has_facts_a_drawing_and_text(site):
    for method in METHODS.values():
        words = text_of(site / "methods" / f"{method.name}.html")
        assert method.time in words
        assert "How it works" in words
        assert "When to use it" in words
        assert (site / "methods" / "drawings" / f"{method.name}.svg").is_file()


def test_tutorials_end_in_a_verified_file_and_have_pictures(site):
    tutorials = sorted((DOCS / "tutorials").glob("*.md"))
    assert len(tutorials) >= 6
    for page in tutorials:
        assert runs_at_build(page)
        words = text_of(site / "tutorials" / f"{page.stem}.html")
        assert ends_verified(words), page
        assert list((site / "tutorials").glob(f"{page.stem}-*.svg"))


TUTORIALS = sorted(path.stem for path in (DOCS / "tutorials").glob("*.md"))


def run_notebook(path: Path, folder: Path) -> list[str]:
    """Run the cells of a notebook in one process, as Jupyter would; return the code that was run."""
    program, ran = [], []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        ran.append(source)
        magic, _, rest = source.partition("\n")
        if magic.startswith("%%writefile "):
            program.append(f"open({magic.split()[1]!r}, 'w', encoding='utf-8').write({rest!r})")
        elif source.startswith("!"):
            program += [f"shell({line[1:]!r})" for line in source.splitlines()]
        else:
            program.append(source)
    shell = (
        "import subprocess, warnings, matplotlib\nmatplotlib.use('svg')\nwarnings.simplefilter('ignore')\n"
        f"def shell(line):\n    line = {shlex.quote(sys.executable)!r} + ' -m ' + line\n"
        "    code = int(line.partition('# exits with ')[2] or 0)\n"
        "    assert subprocess.run(line, shell=True).returncode == code, line\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", shell + "\n".join(program)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return ran


@pytest.mark.posix  # a command is given to the shell by its path
@pytest.mark.parametrize(
    "name",
    [n if n == "one-column" else pytest.param(n, marks=pytest.mark.long) for n in TUTORIALS],
)
def test_a_tutorial_is_a_notebook_that_runs(site, name, tmp_path):
    ran = run_notebook(site / "tutorials" / f"{name}.ipynb", tmp_path)
    assert f'href="{name}.ipynb"' in (site / "tutorials" / f"{name}.html").read_text("utf-8")
    blocks = blocks_of((DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8"))
    assert len(ran) == sum(block.language in ("python", "sh", "toml") for block in blocks)


def ends_verified(words: str) -> bool:
    """Whether the last check that a tutorial makes of its file is there, and what it gave is that k holds."""
    _, verify, counted = words.rpartition("microagg verify")
    if verify:
        return re.search(r"verified .*; k = [\d,]+ holds", counted) is not None
    _, holds, value = words.rpartition(".holds")
    return bool(holds) and re.search(r"\bTrue\b", value) is not None


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("microagg verify x --k 5\nverified     x: 9 records; k = 5 holds", True),
        (
            "microagg verify x --k 5\nfails     x: 9 records; k = 5 does not hold for 1 record",
            False,
        ),
        ("a file that is verified: k holds. microagg verify x --k 5", False),
        ("written.holds\n('green', True, 5)", True),
        ("written.holds\n('green', False, 5)", False),
        ("what holds is True", False),
    ],
)
def test_a_tutorial_without_a_verified_file_would_be_noticed(words, holds):
    assert ends_verified(words) is holds


def test_references_have_every_command_flag_and_key():
    command, plan = command_page(), plan_page()
    sections = dict(re.findall(r"^## `microagg (\w+)`\n(.*?)(?=^## |\Z)", command, re.M | re.S))
    commands = typer.main.get_command(app).commands
    assert set(sections) == set(commands)
    for name, one in commands.items():
        rows = re.findall(r"^\| `([^`]*)` \| (.*) \|$", sections[name], re.M)
        listed = {word.strip(",") for option, _ in rows for word in option.split()}
        wanted = [p for p in one.params if not getattr(p, "hidden", False)]
        assert {option for p in wanted for option in p.opts if option.startswith("-")} <= listed
        assert all(words.strip() for _, words in rows), name
    for row in (row for part in PARTS for row in rows_of(part)):
        assert f"| `{row.key}` |" in plan
        assert row.help
        assert row.flag.split("/")[0] in command
    for key in ("importance", "p_percent", "renumber", "small"):
        assert f"| `{key}` |" in plan


def test_every_code_block_is_of_a_kind_that_is_run():
    for page in pages():
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.language in _SHOWN:
                # A command would not be run. The local page, which runs until it is ended, and object
                # stores have their own tests.
                assert not re.match(r"microagg (?!page |protect s3://)", block.text), page
            else:
                assert block.language in ("python", "sh", "toml"), (page, block.language)


@pytest.mark.parametrize(
    "page",
    [p for p in pages() if not runs_at_build(p) and p.name not in _ON_SPARK],
    ids=lambda p: str(p.relative_to(DOCS)),
)
def test_blocks_of_pages_that_show_their_outputs(page, tmp_path):
    """Those of other pages are run when the site is built."""
    blocks = [
        block
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.prompted or block.language not in _SHOWN
    ]
    if page.name == "optimality.md":
        (tmp_path / "census.csv").write_bytes(reference_file("census").read_bytes())
        (tmp_path / "docs").symlink_to(DOCS)
    runner = Runner(tmp_path, str(page.relative_to(DOCS)), microagg=microagg, frame=any_table())
    for block in blocks:
        runner.run(block)


def test_a_block_that_fails_ends_the_build(tmp_path):
    wrong = ("python\n1 / 0", "sh\nmicroagg nothing", 'toml title="p.toml"\nnot = "a plan"')
    for block in blocks_of("\n".join(f"```{code}\n```" for code in wrong)):
        with pytest.raises(RuntimeError, match="this block fails"):
            Runner(tmp_path, "page.md").run(block)


def test_pages_fit_the_screen_and_ask_the_net_for_nothing(site, browser):
    for page in ("index", "tutorials/household", "methods/mdav", "comparison", "reference/command"):
        for width in WIDTHS:
            browser.open(site / f"{page}.html", width, 900)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width, page
            assert not [url for url in browser.requests if not url.startswith("file:")]
            assert not browser.complaints


def searched(browser, words: str) -> list[tuple[str, str]]:
    """Type words into the search of the page that is open; return address and text of each result."""
    typed = (
        "(() => { const q = document.querySelector('[data-md-component=search-query]');"
        " document.querySelector('#__search').checked || document.querySelector('#__search').click();"
        f" q.value = {json.dumps(words)}; q.dispatchEvent(new Event('focus'));"
        " q.dispatchEvent(new Event('keyup'));"
        " return JSON.stringify([...document.querySelectorAll('.md-search-result__item')].map("
        "one => [one.querySelector('a').getAttribute('href'), one.textContent])); })()"
    )
    found: list[list[str]] = []
    for _ in range(3_000):  # until the index is read and the page listens
        last, found = found, json.loads(browser.evaluate(typed))
        if found and found == last:
            break
        time.sleep(0.1)
    return [(address, text) for address, text in found]


def test_search_works_in_pages_opened_as_files(site, browser):
    browser.open(site / "index.html", 1280, 900)
    _, text = searched(browser, "semidefinite")[0]
    assert "semidefinite" in text.lower()
    assert not [url for url in browser.requests if not url.startswith("file:")]


def test_doctests_are_compared():
    """The runner of pages is strict: a wrong output fails."""
    (block,) = blocks_of("```python\n>>> 1 + 1\n3\n```\n")
    assert block.prompted
    with pytest.raises(RuntimeError, match="Expected"):
        Runner(Path.cwd(), "page.md").run(block)
