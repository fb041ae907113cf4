"""A ledger on the page: chosen or made in an opened folder, with what the command says, and clear errors."""

import html
import json
import shutil
from pathlib import Path

import pytest

from command import here
from microagg.errors import InputError
from microagg.ledger.ledger_file import opened_key
from microagg.page.files import Folders
from visitor import Visitor, served, survey

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

COLUMNS = ["income", "rent", "age"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A visitor of the page over two waves of a survey, and what came out of them with one ledger."""
    data = tmp_path_factory.mktemp("data")
    people = survey(80).drop(columns=["household", "region", "diagnosis"])
    people[:62].to_csv(data / "first.csv", index=False)
    people[:62].to_csv(data / "alone.csv", index=False)
    people[3:].to_csv(data / "second.csv", index=False)  # 3 left, 18 are new
    people[3:].assign(person=lambda rows: rows["person"] + 500).to_csv(
        data / "others.csv", index=False
    )
    with served(data, temporary=tmp_path_factory.mktemp("private")) as server:
        visitor = Visitor(server)
        visitor.data = data
        visitor.answers = {}
        for name, field in (("first", "new_ledger"), ("second", "ledger")):
            opened(visitor, name)
            visitor.answers[name] = released(visitor, **{field: "people.sqlite"})
        # As both releases left them: other tests open other files, and write the ledger themselves.
        visitor.mode = (data / "people.sqlite").stat().st_mode & 0o777
        visitor.plan_text = server.session.plan.to_toml()
        visitor.taken = visitor.get("take").text
        yield visitor


def opened(visitor, name):
    visitor.open(visitor.data / f"{name}.csv")
    visitor.plan(k=3, columns=COLUMNS, drop=["person"])


def released(visitor, **fields):
    """Ask for a release by the columns that the plan drops; return the screen once it is made or refused."""
    answer = visitor.post("protect", ending=".csv", **{"key": "0", "leavers": "withhold", **fields})
    visitor.wait()
    if not visitor.problems(answer):
        answer = visitor.get("protect")
    answer.text = html.unescape(answer.text.replace("\u00a0", " "))
    return answer


def test_a_ledger_is_made_and_then_chosen(page):
    for answer in page.answers.values():
        assert not page.problems(answer)
    assert page.mode == 0o600
    before = page.answers["first"].text
    assert "Release 1 of the ledger" in before
    # Once begun, it is chosen for the next release too.
    assert '<option value="people.sqlite" selected>' in before
    assert '<details id="with-ledger" open>' in before


def test_the_screen_says_what_the_command_says(page, tmp_path):
    for file in ("first.csv", "second.csv"):
        shutil.copy(page.data / file, tmp_path)
    (tmp_path / "plan.toml").write_text(page.plan_text)
    for name in ("first", "second"):
        done = here(
            *("protect", tmp_path / f"{name}.csv", tmp_path / f"{name}-safe.csv", "--json"),
            *("--plan", tmp_path / "plan.toml", "--ledger", tmp_path / "L", "--key", "person"),
        )
        assert done.returncode == 0, done.stderr
    text = page.answers["second"].text
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("ledger"))
    assert "new: 18" in line
    assert "left" in line
    words = line.removeprefix("ledger").strip()
    assert words[0].upper() + words[1:] + "." in text
    for sentence in json.loads(done.stdout)["ledger"]["sentences"]:
        assert sentence in text
    # The command that repeats it has the ledger too.
    assert f"--ledger {page.data / 'people.sqlite'} --key person" in page.taken


def test_without_a_ledger_the_promise_is_about_this_file_alone(page):
    opened(page, "alone")
    assert '<details id="with-ledger">' in page.get("protect").text
    text = released(page).text
    assert "The promise is about this file alone" in text
    assert "see “Ledger”" in text


def test_what_a_ledger_refuses_is_said_in_words_of_the_page(page):
    kept = {
        name: (page.data / name).read_bytes() for name in ("people.sqlite", "people.sqlite.key")
    }

    def refused(words, **fields):
        (problem,) = page.problems(released(page, **fields))
        assert words in problem
        assert "--" not in problem

    opened(page, "others")
    refused("A ledger is about one table", ledger="people.sqlite")
    opened(page, "first")
    refused(
        "Name the column by the role “unit”, or by “Column that", ledger="people.sqlite", key=""
    )
    with opened_key(page.data / "people.sqlite", make=False):
        refused("One run at a time", ledger="people.sqlite")
    refused("is another file of the job", new_ledger="first.csv")
    # Nothing else is written over.
    refused("A ledger is read with its key", new_ledger="second.csv")
    (page.data / "people.sqlite").write_bytes(kept["people.sqlite"][:3000])
    refused("damaged", ledger="people.sqlite")
    (page.data / "people.sqlite").unlink()
    refused("a new one would form other groups", ledger="people.sqlite")
    (page.data / "people.sqlite").write_bytes(kept["people.sqlite"])
    (page.data / "people.sqlite.key").unlink()
    refused("A ledger is read with its key", new_ledger="people.sqlite")
    (page.data / "people.sqlite.key").write_bytes(kept["people.sqlite.key"])
    refused("leavers", ledger="people.sqlite", leavers="forget")
    for name, bytes_before in kept.items():
        assert (page.data / name).read_bytes() == bytes_before


def test_a_ledger_and_its_key_lie_in_opened_folders(page, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    opened(page, "first")
    before = len(page.server.session.entries)
    (page.data / "link.sqlite").symlink_to(outside / "x.sqlite")
    (page.data / "linked.sqlite.key").symlink_to(outside / "x.key")
    for name in (
        str(outside / "x.sqlite"),
        f"../{outside.name}/x.sqlite",
        "no-such-folder/x.sqlite",
        "link.sqlite",
        "linked.sqlite",
        "..",
    ):
        (problem,) = page.problems(released(page, new_ledger=name))
        assert "folders that it was started with" in problem
    assert len(page.server.session.entries) == before
    assert list(outside.iterdir()) == []


def test_ledgers_are_files_with_a_key_next_to_them(tmp_path):
    for name in ("b.sqlite", "b.sqlite.key", "a", "a.key", "gone.key", "c.sqlite", ".d", ".d.key"):
        (tmp_path / name).touch()
    folders = Folders([tmp_path])
    assert folders.ledgers(tmp_path) == ["a", "b.sqlite"]
    assert folders.check_ledger(tmp_path / "new") == tmp_path.resolve() / "new"
    with pytest.raises(InputError, match="folders that it was started with"):
        folders.check_ledger(Path("new"))
