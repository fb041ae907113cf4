"""The choice: what is worth choosing, the search for k, targets and words."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.base.formatting import TRADE_OFF
from microagg.comparing.choices import (
    TOLERANCE,
    Choice,
    mark_frontier,
    next_k,
    next_k_for,
    suggestion,
)
from microagg.measure.linkage import Linkage
from microagg.plan.plan import Plan


def cell(method, k, loss, share, high=None):
    linkage = Linkage(share, share, share if high is None else high, 9, sampled=high is not None)
    return Choice(method, k, 5, k, k, loss, linkage, 0.1)


def accepted(**targets):
    return Plan.of(**targets).accept


def suggested(cells, **targets):
    return suggestion(mark_frontier(cells), accepted(**targets))


def worth(cells):
    return [(c.method, c.k) for c in mark_frontier(cells) if c.on_frontier]


def test_what_is_hardly_better_in_one_respect_is_not_worth_choosing():
    ends = [cell("m", 3, 5.0, 0.30), cell("m", 9, 9.0, 0.10)]
    assert worth([*ends, cell("n", 3, 5.02, 0.20)]) == [("m", 9), ("n", 3)]
    assert worth([*ends, cell("n", 9, 20.0, 0.0999)]) == [("m", 3), ("m", 9)]
    assert worth([*ends, cell("n", 3, 5.30, 0.20)]) == [("m", 3), ("m", 9), ("n", 3)]
    assert worth([cell("m", 3, 5.0, 0.3)]) == [("m", 3)]
    assert worth([Choice("m", 3, problem="cannot")]) == []


def covers(points, kept, width, height):
    """Whether every point is better than one that is kept by the tolerance at most."""
    return all(any(a <= x + width and b <= y + height for a, b in kept) for x, y in points)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400).map(lambda x: x / 4), st.integers(0, 400).map(lambda y: y / 4e2)
        ),
        min_size=1,
        max_size=9,
    )
)
def test_the_frontier_is_the_smallest_set_that_covers_all(points):
    cells = [cell("m", 3, x, y) for x, y in points]
    kept = [(c.information_loss, c.linkage.share) for c in mark_frontier(cells) if c.on_frontier]
    front = [
        (x, y)
        for x, y in set(points)
        if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
    ]
    width, height = (
        TOLERANCE * (max(p[axis] for p in front) - min(p[axis] for p in front)) for axis in (0, 1)
    )
    assert set(kept) <= set(front)
    assert covers(points, kept, width, height)
    fewer = itertools.combinations(front, len(kept) - 1)
    assert not any(covers(points, some, width, height) for some in fewer)


def search(meets, n, start, largest):
    """Follow the search to its end; what was tried, in order."""
    known = {k: meets(k) for k in start}
    while (k := next_k(known, n, largest=largest)) is not None:
        assert 2 <= k <= n
        assert k not in known
        known[k] = meets(k)
    return known


@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.booleans(),
    st.lists(st.integers(1, 300), min_size=1),
)
def test_the_search_finds_the_edge(edge, n, largest, start):
    start = [min(k, n) for k in start]
    known = search(lambda k: (k <= edge) == largest, n, start, largest)
    good = [k for k, holds in known.items() if holds]
    if largest:
        assert max(good, default=1) == max(min(edge, n), 1)
    elif edge < n:
        assert min(good) == max(edge + 1, 2)
    else:
        assert good == []
    assert len(known) <= len(set(start)) + 20


@given(st.integers(0, 2**30), st.booleans())
def test_the_search_ends_where_neighbours_fail_even_if_measures_jump(bits, largest):
    n = 30
    known = search(lambda k: bool(bits >> k & 1), n, [3, 5, 10], largest)
    good = [k for k, holds in known.items() if holds and k > 1]
    if not good:  # then k that is easiest to meet was tried
        assert known[2 if largest else n] is False
        return
    best, step = (max(good), 1) if largest else (min(good), -1)
    for k in (best + step, best + 2 * step):
        assert known.get(k) is False or not 2 <= k <= n


def test_meeting_both_targets_is_given_up_when_it_would_lose_too_much():
    tried = [cell("m", 3, 5.0, 0.30), cell("m", 5, 9.0, 0.18)]
    assert next_k_for(tried, accepted(max_linkage=0.1), 100) == 10
    assert next_k_for(tried, accepted(max_linkage=0.1, max_loss=10), 100) == 10
    assert next_k_for(tried, accepted(max_linkage=0.1, max_loss=8), 100) is None
    assert next_k_for(tried, accepted(max_loss=8), 100) == 4
    assert (
        next_k_for([*tried, Choice("m", 10, problem="cannot")], accepted(max_loss=8), 100) is None
    )


@pytest.mark.parametrize(
    ("targets", "choice", "words"),
    [
        ({"max_loss": 8}, ("n", 5), "loses 8.00 % (at most 8 % asked for) and 20.0 %"),
        ({"max_linkage": 0.25}, ("n", 5), "2 of 3 choices do; this one loses least"),
        ({"max_loss": 9.5, "max_linkage": 0.19}, ("m", 5), "meets the targets"),
        (
            {"max_loss": 4},
            None,
            "None of the 3 choices has a loss of at most 4 %. The nearest is m",
        ),
        (
            {"max_loss": 5, "max_linkage": 0.2},
            None,
            "None of the 3 choices has a loss of at most 5 % and a linkage of at most 20 %. The nearest is m "
            "with k = 3 (5.00 % lost, 30.0 % linked).",
        ),
        ({}, None, "3 of 3 choices are worth choosing, from m with k = 3"),
    ],
)
def test_suggestions(targets, choice, words):
    answer = suggested(
        [cell("m", 3, 5.0, 0.30), cell("m", 5, 9.0, 0.18), cell("n", 5, 8.0, 0.20)], **targets
    )
    assert words in answer.words
    assert answer.words.endswith(TRADE_OFF)
    assert (answer.cell and (answer.cell.method, answer.cell.k)) == choice
    assert answer.meets == (bool(choice) if targets else None)
    assert answer.as_dict()["meets"] == answer.meets


def test_an_estimated_linkage_counts_at_its_upper_end():
    cells = [cell("m", 3, 5.0, 0.19, high=0.21), cell("m", 5, 9.0, 0.15, high=0.17)]
    answer = suggested(cells, max_linkage=0.2)
    assert answer.cell.k == 5
    assert "15.0 % (up to 17.0 %) of the records are linked" in answer.words
