"""Checks of single settings: what they accept, and what they say to the rest."""

from fractions import Fraction

import numpy as np
import pytest

from microagg import InputError
from microagg.plan.registry import METHODS, find
from microagg.plan.settings import (
    as_number,
    check_count,
    check_k,
    check_options,
    check_random_state,
    check_time_limit,
    settings_of,
)

NOT_WHOLE = ["3", None, 3.0, np.float64(3), True, np.True_, [3], np.array([3, 4]), float("nan")]


@pytest.mark.parametrize("three", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_any_integer_type_is_a_whole_number(three):
    for value in (check_count("starts", three), check_k(three, 5)):
        assert value == 3
        assert type(value) is int
    check_random_state(three)


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
def test_nothing_else_is(value):
    with pytest.raises(InputError, match="starts must be a whole number of at least 1; got"):
        check_count("starts", value)
    with pytest.raises(InputError, match=r"k, the least .*, must be a whole number of at least 1"):
        check_k(value, 5)
    if value is not None:
        with pytest.raises(
            InputError, match="random_state must be a whole number from 0 up, or None"
        ):
            check_random_state(value)


def test_a_count_has_a_least_value():
    assert check_count("nodes", 0, least=0) == 0
    with pytest.raises(InputError, match="nodes must be a whole number of at least 0; got -1"):
        check_count("nodes", np.int64(-1), least=0)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), Fraction(2)])
def test_numbers(value):
    assert as_number(value) == 2.0
    assert type(as_number(value)) is float


@pytest.mark.parametrize("value", [True, np.True_, "2", None, 2j, [2], np.array([2.0]), 10**400])
def test_what_is_no_number(value):
    assert as_number(value) is None


@pytest.mark.parametrize("seconds", [None, 0, 1.5, np.float32(1), np.int64(3), float("inf")])
def test_time_limits(seconds):
    check_time_limit(seconds)


@pytest.mark.parametrize("seconds", ["1", -1, float("nan"), True, [1], np.array([1, 2])])
def test_what_is_no_time_limit(seconds):
    with pytest.raises(InputError, match="time_limit is a number of seconds, 0 or more; got"):
        check_time_limit(seconds)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_is_no_option_of_a_method(method):
    with pytest.raises(InputError, match=r"it is a setting of its own.* Pass random_state=\.\.\."):
        check_options(find(method), {"random_state": 1})


def test_the_seed_reaches_the_methods_that_draw():
    assert settings_of(find("random-projection"), {}, 7)["random_state"] == 7
    assert "random_state" not in settings_of(find("mdav"), {}, 7)


def test_options_are_named_without_the_seed():
    with pytest.raises(InputError, match=r"no option 'speed'; it takes 'n_projections', 'cut'\."):
        check_options(find("random-projection"), {"speed": 1})
