"""Old names warn and give what the new ones do."""

from __future__ import annotations

import pandas as pd
import pytest

import microagg
from microagg.registry import find

SETTINGS = {"columns": ["age"], "k": 3, "method": "mdav", "known": ["id"]}


def release() -> microagg.Release:
    table = pd.DataFrame({"id": [1, 2, 3, 4, 5, 6], "age": [23, 25, 31, 47, 52, 58]})
    return microagg.protect(table, k=3, columns=["age"], known=["id"], method="mdav")


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
@pytest.mark.parametrize(
    ("old", "new", "given"),
    [
        (
            "settings",
            r"Release\.plan\.settings",
            {"columns": ["age"], "k": 3, "method": "mdav", "known": ["id"]},
        ),
        ("untouched", r"Release\.roles\.released", ["id"]),
        ("aggregate", r"Release\.plan\.blocks", "mean"),
        ("identifying", r"Release\.cautions", ["id"]),
    ],
)
def test_old_names_of_a_release(old, new, given):
    r = release()
    with pytest.warns(DeprecationWarning, match=rf"Release\.{old} is .*{new}.*0\.3"):
        assert getattr(r, old) == given


def test_old_name_of_a_methods_time():
    with pytest.warns(DeprecationWarning, match=r"Method\.cost is Method\.time"):
        assert find("mdav").cost == find("mdav").time
