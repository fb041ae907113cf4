"""English that a machine can hold: short sentences, plain docstrings, right plurals.

That docstrings of functions begin with a verb is a rule of ruff (D401).
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyarrow import csv

import microagg
from command import here

ROOT = Path(microagg.__file__).parent
REPOSITORY = Path(__file__).parents[1]

# First words of a docstring that ask instead of saying what the function does or returns.
RIDDLES = {"How", "If", "Of", "That", "These", "This", "Those", "What", "When", "Where", "Whether"}
RIDDLES |= {"Which", "Who", "Whose", "Why"}

MOST_WORDS = 30  # in a sentence of a message
HOLE = "\x00"  # stands for what is formatted into a message


class Text(NamedTuple):
    """A piece of English: where it is, which part of a file it is, and its words."""

    path: Path
    line: int
    kind: str  # docstring, comment, message
    words: str
    first_of_function: bool = False

    def __str__(self) -> str:
        where = self.path.relative_to(REPOSITORY)
        return f"{where}:{self.line}: {self.kind}: {' '.join(self.words.split())[:160]}"


def texts_of_module(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    inner: set[int] = set()  # docstrings, and the parts of formatted strings
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = ast.get_docstring(node)
            if words is not None:
                first = node.body[0]
                assert isinstance(first, ast.Expr)
                inner.add(id(first.value))
                acts = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(
                    "property" in ast.unparse(one) for one in node.decorator_list
                )
                yield Text(path, first.lineno, "docstring", words, acts)
        elif isinstance(node, ast.JoinedStr):
            inner.update(id(one) for one in node.values)
            parts = (one.value if isinstance(one, ast.Constant) else HOLE for one in node.values)
            yield Text(path, node.lineno, "message", "".join(map(str, parts)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield Text(path, node.lineno, "message", node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], "comment", token.string)


def texts() -> Iterator[Text]:
    for path in sorted(ROOT.rglob("*.py")):
        yield from texts_of_module(path)


def is_sentence(text: Text) -> bool:
    """Lists of words and patterns are none."""
    return text.kind == "message" and re.search(r"[.,:;?!](\s|$)", text.words) is not None


def longest_sentence(words: str) -> int:
    """The number of words of the longest sentence."""
    sentences = re.split(r"[.!?](?:\s|$)|\n", words)
    return max(len(re.findall(r"[\w\x00][\w\x00'’.,%-]*", sentence)) for sentence in sentences)


NOUNS = "records|groups|columns|values|rows|files|blocks|units|households|others|combinations|classes|cells"
NOUNS += "|patterns|levels|categories|methods|points|plans|parts|seconds|minutes"

# A formatted number before a noun: base/formatting.py knows when the noun is singular.
HAND_MADE = re.compile(rf"{HOLE} (?:{NOUNS})\b")

RULES = {
    "riddle": lambda text: text.first_of_function and text.words.split()[0] in RIDDLES,
    "plural by hand": lambda text: text.kind == "message" and HAND_MADE.search(text.words),
    "long sentence": lambda text: is_sentence(text) and longest_sentence(text.words) > MOST_WORDS,
}


@pytest.fixture(scope="module")
def every_text() -> list[Text]:
    """Read when a test asks for it, and not by each process that looks for tests."""
    return list(texts())


@pytest.mark.parametrize("rule", RULES)
def test_texts_follow_the_rule(rule, every_text):
    found = [text for text in every_text if RULES[rule](text)]
    assert not found, "\n".join(map(str, found))


def test_files_named_in_comments_exist(every_text):
    folders = [ROOT, *(REPOSITORY / name for name in ("tests", "benchmarks", "website"))]
    known = [f"/{path.as_posix()}" for folder in folders for path in folder.rglob("*.py")]
    lost = [
        f"{named}: {text}"
        for text in every_text
        if text.kind in ("docstring", "comment")
        for named in re.findall(r"(?:\w+/)*\w+\.py\b", text.words)
        if not any(path.endswith(f"/{named}") for path in known)
    ]
    assert not lost, "\n".join(lost)


# --- what is rendered ----------------------------------------------------------------------------

ONE_OF_MANY = re.compile(rf"(?<![\d.,])1 (?:[a-z]+ )?(?:{NOUNS})\b")


def rendered(*arguments: object) -> str:
    """All that the command says and gives, the report included; tags stand for bars."""
    done = here(*arguments)
    words = f"{done.stdout}\n{done.stderr}"
    if "--report" in arguments and done.returncode == 0:
        report = Path(str(arguments[arguments.index("--report") + 1])).read_text("utf-8")
        words += re.sub(r"<(script|style).*?</\1>|<[^>]*>", " | ", report, flags=re.S)
    return words


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """One column; one record; one record that a known column singles out; one missing value."""
    monkeypatch.chdir(tmp_path)
    csv.write_csv(pa.table({"a": [3, 1, 4, 15, 9]}), "column.csv")
    csv.write_csv(pa.table({"a": [3], "b": ["x"]}), "record.csv")
    numbers = [i * 7 % 13 for i in range(12)]
    csv.write_csv(pa.table({"a": numbers, "b": ["x"] * 11 + ["y"]}), "known.csv")
    csv.write_csv(pa.table({"a": numbers, "b": [None, *numbers[1:]]}), "missing.csv")


@pytest.mark.parametrize(
    "arguments",
    [
        "protect column.csv out.csv --k 5 --columns a --report r.html",
        "protect record.csv out.csv --k 1 --columns a --drop b",
        "protect known.csv out.csv --k 3 --columns a --known b --report r.html",
        "protect known.csv out.csv --k 3 --columns a --confidential b",
        "protect missing.csv out.csv --k 3 --columns a,b",
        "protect missing.csv out.csv --k 3 --columns a,b --missing fill",
        "protect missing.csv out.csv --k 3 --columns a,b --missing drop",
        "plan column.csv",
        "plan record.csv",
        "measure record.csv record.csv",
        "verify record.csv --k 1 --columns a",
        "compare column.csv --k 5 --methods mdav",
    ],
)
def test_one_is_not_many(tables, arguments):
    words = rendered(*arguments.split())
    found = [words[max(0, m.start() - 50) : m.end() + 30] for m in ONE_OF_MANY.finditer(words)]
    assert not found


def test_the_pattern_sees_what_is_wrong():
    assert ONE_OF_MANY.search("read a.csv: 5 records, 1 columns")
    assert not ONE_OF_MANY.search(
        "11 columns, 1 group of 8 records, k = 1 protects nothing; 0.1 points"
    )
