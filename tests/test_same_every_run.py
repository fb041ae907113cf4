"""Whether two runs of ``make test`` are the same run."""

import sys
from pathlib import Path
from types import ModuleType

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from conftest import costly

ROOT = Path(__file__).parents[1]
RNG = np.random.default_rng(0)


def drawn() -> list[object]:
    """What one test draws, with what was imported by then."""
    examples = []

    @hypothesis.settings(hypothesis.settings.get_profile("same"), max_examples=100)
    @hypothesis.given(st.tuples(st.integers(0, 10**6), st.floats(0, 1e6), st.text(max_size=9)))
    def test(values):
        examples.append(values)

    test()
    return examples


def test_examples_are_drawn_anew_only_where_that_is_asked_for(monkeypatch):
    if not hypothesis.settings().derandomize:
        pytest.skip("This run draws its examples anew.")
    before = drawn()
    assert len(set(before)) > 50
    for path in (ROOT / "website").glob("*.py"):  # modules of ours that few tests import
        module = ModuleType(f"imported_{path.stem}")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    assert drawn() == before
    assert not hypothesis.settings.get_profile("fresh").derandomize


@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_generator_of_a_module_draws_the_same_in_each_test(turn):
    assert RNG.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("site", ["a parameter"])
def test_a_parameter_is_no_fixture_that_takes_minutes(request, site):
    assert costly(request.node) is None
