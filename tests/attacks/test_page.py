"""The page under attack: hostile labels, slow senders, many tabs."""

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from microagg.page.files import RequestLimits
from microagg.plan.plan import Plan
from visitor import Visitor, line_to, served

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

MARKUP = "\"><img src=x onerror='window.hit=1'><script>window.hit=1</script>"
SCREENS = ("open", "table", "plan", "try", "protect", "see", "take", "versions")


def hostile_file(folder: Path) -> Path:
    """An SPSS file whose labels, values and name are markup."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 40).astype(float),
            "pay": rng.lognormal(7, 0.5, 40).round(2),
            "sex": rng.integers(1, 3, 40).astype(float),
            "note": [f"{MARKUP}{i % 3}" for i in range(40)],
        }
    )
    path = folder / "<b>in'.sav"
    pyreadstat.write_sav(
        frame,
        path,
        file_label="<script>window.hit=1</script>",
        note=[MARKUP],
        column_labels={"age": MARKUP, "sex": "{{7*7}}"},
        variable_value_labels={"sex": {1: MARKUP, 2: "</td><svg onload='window.hit=1'>"}},
    )
    return path


def test_hostile_labels_are_text(tmp_path):
    """Labels of an SPSS file; tests/page/test_way.py shows names and values to a browser."""
    (tmp_path / "data").mkdir()
    with served(hostile_file(tmp_path / "data"), temporary=tmp_path) as server:
        visitor, session = Visitor(server), server.session
        visitor.wait(lambda: session.table is not None)
        plan = Plan.of(
            k=3, method="mdav", columns=["age", "pay"], drop=["note"], known=["sex"], bound=False
        )
        session.edit(plan)
        session.new_release(plan, ".sav")
        visitor.wait(lambda: len(session.releases) == 1)
        shown = [visitor.get(screen).text for screen in SCREENS]
        assert any("window.hit" in text for text in shown)
        for text in shown:
            assert not re.search(r"<script>window|<img src=x|<svg onload", text)


HALVES = [b"", b"G", b"GET / HTTP/1.1\r\nHost: ", b"POST /x HTTP/1.1\r\nContent-Length: 99\r\n"]


def test_slow_senders_keep_nobody_waiting(tmp_path):
    """Forty who send half of a request, a byte at a time, while a visitor works.

    They may go on for longer than the visitor waits for an answer.
    """
    pd.DataFrame({"x": range(30), "y": range(30)}).to_csv(tmp_path / "in.csv", index=False)
    patient = RequestLimits(seconds=1e6, silent=1e6)
    with (
        served(tmp_path / "in.csv", temporary=tmp_path, limits=patient) as server,
        contextlib.ExitStack() as open_,
    ):
        lines = [open_.enter_context(line_to(server, HALVES[i % 4])) for i in range(40)]
        visitor = Visitor(server)
        for line in lines[:20]:
            with contextlib.suppress(OSError):
                line.sendall(b"x")
            assert visitor.get("open").status == 200


def test_many_tabs_see_one_plan(tmp_path):
    """Edits of twenty tabs at once: each is made whole or refused, and the last plan is one of theirs."""
    pd.DataFrame({"x": range(30), "y": range(30), "z": range(30)}).to_csv(
        tmp_path / "in.csv", index=False
    )
    with served(tmp_path / "in.csv", temporary=tmp_path) as server:
        tabs = [Visitor(server, enter=i == 0) for i in range(20)]
        for tab in tabs:
            tab.cookie = tabs[0].cookie
        tabs[0].wait(lambda: server.session.table is not None)
        roles = ["drop", "confidential", "known", "renumber"]

        def edit(i: int) -> int:
            return tabs[i].post("plan", what="role", column=str(i % 3), role=roles[i % 4]).status

        with ThreadPoolExecutor(20) as pool:
            found = list(pool.map(edit, range(20)))
        assert set(found) <= {200, 400, 409, 422}
        assert found.count(200) >= 1
        texts = {tab.get("plan.toml").text for tab in tabs}
        assert texts == {server.session.plan.to_toml()}
