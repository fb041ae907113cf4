"""Relations between columns: read as written, counted like exact arithmetic counts them."""

import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.errors import InputError
from microagg.plan.relations import TOLERANCE, Relation

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))

NAMES = st.one_of(
    st.sampled_from(
        ["a", "net", "größe", "a.b", "_x", "a b", "a-b", "2a", "", "`", '"', "=", "e5"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
FACTORS = st.one_of(st.integers(0, 50), st.sampled_from([0.5, 0.1, 2.25, 1e-3, 1e6]))


def quoted(name, mark):
    return mark + name.replace(mark, mark * 2) + mark


@st.composite
def sides(draw, least=0):
    """Texts of one side, and what a naive reader would collect from its pieces."""
    pieces, found = [], []
    for i in range(draw(st.integers(max(least, 1), 4))):
        minus = draw(st.booleans())
        sign = draw(st.sampled_from(["-", "−"])) if minus else ("" if i == 0 else "+")
        factor, space = draw(FACTORS), draw(st.sampled_from(["", " "]))
        name = draw(st.none() | NAMES)
        if name is None:
            text = repr(factor)
        else:
            word = quoted(name, draw(st.sampled_from(['"', "`"])))
            orders = [
                f"{factor!r}{space}*{space}{word}",
                f"{word}{space}*{space}{factor!r}",
            ]
            if factor == 1:
                orders.append(word)
            text = draw(st.sampled_from(orders))
        pieces.append(f"{sign}{space}{text}")
        found.append((name, -Fraction(factor) if minus else Fraction(factor)))
    return " ".join(pieces), found


@given(sides(), sides(), st.sampled_from(["=", "==", "<=", ">=", "≤", "≥"]))
def test_what_is_written_is_what_is_read(left, right, sign):
    terms, constant = {}, Fraction(0)
    for side, pieces in ((1, left[1]), (-1, right[1])):
        for name, factor in pieces:
            if name is None:
                constant += side * factor
            else:
                terms[name] = terms.get(name, 0) + side * factor
    text = f"{left[0]}{sign}{right[0]}"
    if not terms or any(abs(factor) < 1e-9 for factor in terms.values()):
        # A factor that cancels exactly is refused; rounding may leave the dust of one.
        if not terms or all(f.denominator == 1 for _, f in left[1] + right[1]):
            with pytest.raises(InputError, match=r"names no column|cancels out"):
                Relation(text)
        return
    relation = Relation(text)
    assert list(relation.terms) == list(terms) == list(relation.columns)
    assert list(relation.terms.values()) == pytest.approx([float(f) for f in terms.values()])
    assert relation.constant == pytest.approx(float(constant), abs=1e-6)
    assert relation.comparison == {"==": "=", "≤": "<=", "≥": ">="}.get(sign, sign)
    assert relation == Relation(text)


@pytest.mark.parametrize(
    ("text", "terms", "constant", "comparison"),
    [
        ("gross = net + tax", {"gross": 1, "net": -1, "tax": -1}, 0, "="),
        ("-a<=b", {"a": -1, "b": -1}, 0, "<="),
        ("a >= 0", {"a": 1}, 0, ">="),
        ("3 ≥ 0.5*b", {"b": -0.5}, 3, ">="),
        ("a + a = b", {"a": 2, "b": -1}, 0, "="),
        ("`net wage` = 2e3 * größe.1", {"net wage": 1, "größe.1": -2000}, 0, "="),
        ('"say ""x""" = .5 - 1.', {'say "x"': 1}, 0.5, "="),
    ],
)
def test_relations_as_people_write_them(text, terms, constant, comparison):
    found = Relation(text)
    assert (dict(found.terms), found.constant, found.comparison) == (terms, constant, comparison)


@pytest.mark.parametrize(
    ("text", "fact"), [*REFUSED["no_relation"].items(), (3, "A relation is a text; got 3")]
)
def test_what_is_no_relation_is_refused_with_the_place(text, fact):
    with pytest.raises(InputError, match=fact):
        Relation(text)


@given(st.text(max_size=30))
def test_any_text_is_a_relation_or_an_input_error(text):
    try:
        found = Relation(text)
    except InputError:
        return
    assert found.columns


@given(
    st.lists(st.tuples(*[st.integers(-(10**6), 10**6)] * 3), min_size=1, max_size=20),
    st.sampled_from(["=", "<=", ">="]),
    st.sampled_from([1, 2, 7]),
    st.integers(-5, 5),
)
def test_rows_are_judged_as_in_exact_arithmetic(rows, sign, factor, constant):
    found = Relation(f"{factor} * a {sign} b + c - {constant}".replace("- -", "+ "))
    columns = dict(zip("abc", np.array(rows, dtype=float).T, strict=True))
    exact = [Fraction(factor) * a - b - c + constant for a, b, c in rows]
    assert found.residual(columns).tolist() == [float(value) for value in exact]
    wrong = {"=": lambda r: r != 0, "<=": lambda r: r > 0, ">=": lambda r: r < 0}[sign]
    # Whole numbers of this size are far from the tolerance unless they are equal.
    assert found.broken(columns).tolist() == [wrong(value) for value in exact]


def test_the_tolerance_is_relative_to_the_largest_term_of_the_row():
    found = Relation("a = b")
    b = np.array([1e12, 1.0, 0.0, 1e12, 1.0, 1e-30])
    a = b + TOLERANCE * np.array([5e11, 0.5, 0, 2e12, 2, 1])
    assert found.broken({"a": a, "b": b}).tolist() == [False, False, False, True, True, True]
    # A scale tells what is large where a row is next to nothing.
    assert found.broken({"a": a, "b": b}, scale=1.0).tolist()[5] is False
    assert Relation("a + b = 1").broken({"a": [0.1], "b": [0.9 + 1e-12]}).tolist() == [False]


def test_missing_values_are_not_judged():
    nan = float("nan")
    found = Relation("a >= b")
    assert found.broken({"a": [nan, 1, 1], "b": [2, nan, 2]}).tolist() == [False, False, True]
    assert np.isnan(found.residual({"a": [nan], "b": [1]})).all()
    huge = {"a": [1e308, 1e308], "b": [1e308, -1e308]}
    assert Relation("10 * a = 10 * b").broken(huge).tolist() == [False, False]  # inf is not judged


@pytest.mark.parametrize("text", ["a <= b + 1", "a + b <= c", "a <= 2 * b", "a >= 0", "a = b"])
def test_what_is_more_than_a_plain_order(text):
    assert not Relation(text).is_plain_order
