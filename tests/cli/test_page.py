"""The command page, as far as it does not serve: see tests/page for that."""

import importlib.util

import pytest

from command import here, said
from microagg.cli import main


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(main, "find_spec", lambda name: None)
    done = here("page")
    assert done.returncode == 2
    assert "needs starlette and uvicorn" in said(done)
    assert 'pip install "microagg[page]"' in said(done)


def test_what_the_extra_brings_is_what_is_looked_for():
    assert all(importlib.util.find_spec(name) for name in main._PACKAGES_OF_PAGE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no-such.csv"], "there is no"),
        (["--port", "70000"], "from 0 to 65535"),
        (["--idle", "0"], "above 0"),
        (["--idle", "nan"], "above 0"),
        (["--host", "0.0.0.0"], "No such option"),
    ],
)
def test_wrong_use(words, told):
    done = here("page", *words)
    assert done.returncode == 2
    assert told in said(done)
