"""Run the code of a page, in order and in a folder of its own; what it prints and draws is returned.

A fenced block is run by its language:

python   in one namespace for the page; with prompts (``>>>``) it is a doctest, without, the value of a
         last line that is an expression is shown, as in a notebook, unless there is a picture to show;
sh       each line is a line of the command ``microagg``, which may end in ``> FILE``; ``pip install`` lines
         are not run, but must name extras that exist (tests/test_package.py installs the package);
toml     with a title it is written to a file of that name; without, it must be a plan or a part of one.

Other blocks are text. A block that fails ends the page with its words, so that no page shows what does
not work.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import shlex
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from typer.testing import CliRunner

import microagg
from microagg.cli.main import app
from microagg.plan.plan import Plan

__all__ = ["FENCED", "Block", "Result", "Runner", "block_of", "blocks_of"]

FENCED = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.M | re.S)
_TITLE = re.compile(r'title="([^"]+)"')
_INSTALL = re.compile(r'pip install "?(?:microagg|\.)(?:\[([\w,]+)\])?"?$')
_DOCTEST_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]["optional-dependencies"]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str | None
    text: str

    @property
    def prompted(self) -> bool:
        """Whether it shows what it gives, as a doctest."""
        return ">>> " in self.text


@dataclass
class Result:
    """What a block printed, and the pictures that it drew."""

    text: str = ""
    pictures: list[bytes] = field(default_factory=list)


def blocks_of(page: str) -> list[Block]:
    """Find the fenced blocks of a page."""
    return [block_of(found) for found in FENCED.finditer(page)]


def block_of(found: re.Match[str]) -> Block:
    """Read a match of FENCED."""
    title = _TITLE.search(found[2])
    return Block(found[1], title[1] if title else None, found[3])


class Runner:
    """Runs the blocks of one page in a folder; ``names`` are there from the beginning."""

    def __init__(self, folder: Path, page: str, **names: Any) -> None:
        self.folder = folder
        self.page = page
        self._names: dict[str, Any] = {"__name__": "__page__", **names}

    def run(self, block: Block) -> Result:
        """Run a block; raise ``RuntimeError`` if it fails."""
        try:
            with _within(self.folder):
                if block.prompted:
                    return self._doctest(block)
                if block.language == "python":
                    return self._python(block.text)
                if block.language == "sh":
                    return Result("".join(self._command(line) for line in _lines(block.text)))
                if block.language == "toml":
                    self._plan(block)
                return Result()
        except Exception as error:
            raise RuntimeError(f"{self.page}: this block fails:\n{block.text}\n{error}") from error

    def _doctest(self, block: Block) -> Result:
        test = doctest.DocTestParser().get_doctest(block.text, self._names, self.page, None, 0)
        said = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False, optionflags=_DOCTEST_FLAGS)
        # What a page shows is run as it stands; what it is warned of goes to stderr, as for any reader.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
            runner.run(test, out=said.write, clear_globs=False)
        self._names = test.globs
        if runner.failures:
            raise RuntimeError(said.getvalue())
        return Result()

    def _python(self, text: str) -> Result:
        tree = ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        said = io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            warnings.catch_warnings(record=True) as warned,
            mpl.rc_context({"svg.hashsalt": "microagg", "figure.figsize": (7, 3.6)}),
        ):
            warnings.simplefilter("error")
            warnings.simplefilter("always", microagg.DisclosureRiskWarning)
            exec(compile(tree, self.page, "exec"), self._names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), self.page, "eval"), self._names)
                if value is not None and not plt.get_fignums():
                    print(value if isinstance(value, str) else repr(value))
            pictures = list(_pictures())
        words = [f"{w.category.__name__}: {w.message}\n" for w in warned]
        return Result(said.getvalue() + "".join(words), pictures)

    def _command(self, line: str) -> str:
        """What the command says, words and data; its exit must be 0, or the one that the page tells."""
        if installed := _INSTALL.match(line):
            unknown = set((installed[1] or "").split(",")) - {"", *_EXTRAS}
            if unknown:
                raise RuntimeError(f"no such extra: {', '.join(sorted(unknown))}")
            return ""
        line, _, code = line.partition("   # exits with ")
        line, _, target = line.partition(" > ")
        program, *words = shlex.split(line, comments=True)
        if program != "microagg":
            raise RuntimeError(f"only microagg is run here, not {program}")
        done = CliRunner().invoke(app, words, env={"COLUMNS": "100", "NO_COLOR": "1"})
        if done.exit_code != int(code or 0):
            raise RuntimeError(f"exit code {done.exit_code}: {done.output} {done.exception}")
        if target:
            Path(target.strip()).write_text(done.stdout, encoding="utf-8")
        return done.stderr + ("" if target else done.stdout)

    @staticmethod
    def _plan(block: Block) -> None:
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
            Plan.from_toml(block.title)
            return
        settled = tomllib.loads(block.text)
        settled.setdefault("microagg", 1)
        settled.setdefault("block", [{"k": 5}])
        if "relation" in settled:  # whose columns are not rounded
            settled.pop("round", None)
            settled.pop("digits", None)
        Plan.from_dict(settled)


def _lines(text: str) -> list[str]:
    """Lines of a command; a backslash at the end goes on in the next."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _pictures() -> Iterator[bytes]:
    for number in plt.get_fignums():
        figure, drawn = plt.figure(number), io.BytesIO()
        figure.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        yield drawn.getvalue()
