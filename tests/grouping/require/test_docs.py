"""The pages of docs/requirements: none is missing. tests/test_site.py runs their examples."""

import re
from pathlib import Path

from microagg.grouping.require.from_plan import RULES

PAGES = sorted((Path(__file__).parents[3] / "docs" / "requirements").glob("*.md"))


def test_every_page_is_linked_and_every_requirement_has_one():
    first = (PAGES[0].parent / "index.md").read_text(encoding="utf-8")
    names = {page.stem for page in PAGES} - {"index"}
    assert all(f"({name}.md)" in first for name in names)
    rules = {"dominance" if rule.sees == "amounts" else key for key, rule in RULES.items()}
    assert rules | {"units", "together"} == names
    for page in PAGES:
        assert not re.search(r"\{[A-Z]+\}", page.read_text(encoding="utf-8")), "a table is missing"
