"""The table of attacks on the page is the one that the last run counted."""

import json

from benchmarks.attacks import (
    AREAS,
    BEGIN,
    BEGIN_KNOWN,
    END,
    END_KNOWN,
    KEPT,
    KNOWN,
    PAGE,
    table_of,
)
from benchmarks.known_attacks import table_of_known


def test_the_table_of_the_page_is_what_was_counted():
    counted = json.loads(KEPT.read_text())
    assert set(counted) <= set(AREAS)
    shown = PAGE.read_text().split(BEGIN)[1].split(END)[0].strip()
    assert shown == table_of(counted)
    for found in counted.values():
        assert sum(found["ends"].values()) == found["tries"]
        failed = sum(n for end, n in found["ends"].items() if end.startswith(("failed", "differs")))
        assert failed == len(found["failures"])


def test_the_table_of_known_attacks_is_what_was_found():
    found = json.loads(KNOWN.read_text())
    shown = PAGE.read_text().split(BEGIN_KNOWN)[1].split(END_KNOWN)[0].strip()
    assert shown == table_of_known(found)
    assert len(found) == 6
    assert all(row["now"] < row["before"] for row in found)
