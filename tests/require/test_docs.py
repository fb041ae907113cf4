"""The examples of docs/requirements, run as they stand, and the words that a page must not leak."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "requirements").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples(page):
    result = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
        encoding="utf-8",
    )
    assert result.attempted > 2
    assert result.failed == 0


def test_every_page_is_linked_and_every_requirement_has_one():
    first = (PAGES[0].parent / "index.md").read_text(encoding="utf-8")
    names = {page.stem for page in PAGES} - {"index"}
    assert all(f"({name}.md)" in first for name in names)
    source = Path(__file__).parents[2] / "src" / "microagg" / "require"
    files = {path.stem for path in source.glob("*.py")} - {"__init__", "requirement", "search"}
    assert files == names
    assert all("{" + name.upper() not in first for name in names)  # tables are filled in
