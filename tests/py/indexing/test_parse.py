"""The text form of maps: what is printed is read back, what is wrong is refused with its column."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.py.indexing.indexing_strategies import decisions, make_expr, make_map
from xgpu.errors import InvalidInput
from xgpu.indexing import IndexingMap, Interval, dim, symbol
from xgpu.indexing.parse import MAX_LENGTH, MAX_NESTING

d0, s0 = dim(0), symbol(0)
RANGE = ", d0 in [0, 9]"


@given(decisions)
def test_printed_maps_are_read_back(rng: random.Random) -> None:
    indexing_map = make_map(rng, depth=4)
    assert IndexingMap.parse(str(indexing_map)) == indexing_map
    assert IndexingMap.parse(str(indexing_map.simplify())) == indexing_map.simplify()


@given(decisions)
def test_printed_expressions_are_read_back(rng: random.Random) -> None:
    expr, box = make_expr(rng, depth=6), Interval(0, 1)
    indexing_map = IndexingMap((box, box), (box,), (expr,), ((expr, box), (d0, Interval(-3, 3))))
    assert IndexingMap.parse(str(indexing_map)) == indexing_map


def test_text() -> None:
    text = (
        "(d0, d1)[s0] -> (d0 * 4 + s0, d1 mod 3), d0 in [0, 127], d1 in [0, 9], s0 in [0, 3], d0 * 4 + s0 in [0, 500]"
    )
    ranges = (Interval(0, 127), Interval(0, 9)), (Interval(0, 3),)
    expected = IndexingMap(*ranges, (d0 * 4 + s0, dim(1) % 3), ((d0 * 4 + s0, Interval(0, 500)),))
    assert str(expected) == text
    assert IndexingMap.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("() -> ()", "() -> ()"),
        ("()->(3)", "() -> (3)"),
        ("()[s0] -> (s0), s0 in [0, 1]", "()[s0] -> (s0), s0 in [0, 1]"),
        ("(d0)[] -> (d0), d0 in [0, 1]", "(d0) -> (d0), d0 in [0, 1]"),
        ("( d0 )\n->\t(4*d0-2*-3) , d0 in [-1 , 1]", "(d0) -> (d0 * 4 + 6), d0 in [-1, 1]"),
        ("(d0) -> (d0 floordiv 4 * 8 mod 5)" + RANGE, "(d0) -> (((d0 floordiv 4) * 8) mod 5)" + RANGE),
        ("(d0) -> (- - d0 + --3 - -2)" + RANGE, "(d0) -> (d0 + 5)" + RANGE),
        ("(d0) -> ((((d0))))" + RANGE, "(d0) -> (d0)" + RANGE),
        # The first range of a variable is its range, a second one is a constraint, and so is an expression.
        ("(d0) -> (d0)" + RANGE + ", d0 in [1, 2]", "(d0) -> (d0)" + RANGE + ", d0 in [1, 2]"),
        ("(d0) -> (d0), d0 + 1 in [1, 2]" + RANGE, "(d0) -> (d0)" + RANGE + ", d0 + 1 in [1, 2]"),
        ("(d0) -> (d0), d0 in [3, 1]", "(d0) -> (d0), d0 in [3, 1]"),
    ],
)
def test_spellings(text: str, printed: str) -> None:
    assert str(IndexingMap.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"column 1: expected '\(', got the end of the text"),
        ("(d0", r"column 4: expected ',' or '\)', got the end of the text"),
        ("(d1) -> (d1)", "column 2: expected 'd0', got 'd1'"),
        ("(d0, d0) -> (d0)", "column 6: expected 'd1', got 'd0'"),
        ("(d0)[s1] -> (d0)", "column 6: expected 's0', got 's1'"),
        ("(d0) (d0)", r"column 6: expected '->', got '\('"),
        ("(d0) -> d0", r"column 9: expected '\(', got 'd0'"),
        ("(d0) -> (d0 +)" + RANGE, r"column 14: expected a number, a declared variable or '\(', got '\)'"),
        ("(d0) -> (d1)" + RANGE, r"column 10: expected a number, a declared variable or '\(', got 'd1'"),
        ("(d0) -> (d0 4)" + RANGE, r"column 13: expected '\)', got '4'"),
        ("(d0) -> (d0 / 4)" + RANGE, "column 13: unexpected character '/'"),
        ("(d0) -> (d0 * d0)" + RANGE, "column 15: one factor of a product must be a constant"),
        ("(d0) -> (4 floordiv d0)" + RANGE, "column 21: the divisor of floordiv must be a positive constant"),
        ("(d0) -> (d0 mod 0)" + RANGE, "column 17: the divisor of mod must be a positive constant"),
        ("(d0) -> (d0 mod -2)" + RANGE, "column 17: the divisor of mod must be a positive constant"),
        ("(d0) -> (d0)", "no range is given for d0"),
        ("(d0) -> (d0), d0", "column 17: expected 'in', got the end of the text"),
        ("(d0) -> (d0), d0 in 3", r"column 21: expected '\[', got '3'"),
        ("(d0) -> (d0), d0 in [0, d0]", "column 25: expected an integer, got 'd0'"),
        ("(d0) -> (d0), d0 in [0, 9", r"column 26: expected '\]', got the end of the text"),
        ("(d0) -> (d0)" + RANGE + ";", "column 27: unexpected character ';'"),
        ("(d0) -> (d0)" + RANGE + " d0", "column 28: expected ',' or the end of the text, got 'd0'"),
        ("(d0) -> (\u0663)" + RANGE, "column 10: unexpected character"),
        ("(d0) -> (d0\0)" + RANGE, "column 12: unexpected character"),
    ],
)
def test_refusals_name_the_column(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        IndexingMap.parse(text)


NESTED = "(" * 5000 + "d0" + ")" * 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(d0) -> (d0" + " + d0" * MAX_LENGTH + ")" + RANGE, "characters, more than the"),
        ("(d0) -> (" + NESTED + ")" + RANGE, f"nested more than {2 * MAX_NESTING + 1} deep"),
        ("(d0) -> (d0" + " mod 7" * (MAX_NESTING + 1) + ")" + RANGE, f"nested more than {MAX_NESTING} deep"),
        ("(d0) -> (d0 * 99999999999999999999)" + RANGE, "the number has more than 19 digits"),
        ("(d0) -> (d0 * 9999999999999999999)" + RANGE, "the number does not fit 64 bits"),
        ("(d0) -> (d0 * -9223372036854775808)" + RANGE, "the number does not fit 64 bits"),
        ("(d0) -> (d0 * 9223372036854775808)" + RANGE, "the number does not fit 64 bits"),
        ("(d0) -> (d0" + " * 9223372036854775807" * 900 + ")" + RANGE, "the number does not fit 64 bits"),
        ("(d0) -> (9223372036854775807 + 9223372036854775807)" + RANGE, "the number does not fit 64 bits"),
        ("(d0) -> (d0), d0 in [0, 99999999999999999999]", "the number has more than 19 digits"),
        ("(" + "d0, " * 8000, "expected 'd1', got 'd0'"),
        ("-" * 30000, r"expected '\(', got '-'"),
    ],
)
def test_hostile_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        IndexingMap.parse(text)


def test_what_the_limits_allow_can_be_processed() -> None:
    long = "(d0) -> (" + " + ".join(["d0 mod 3"] * 2500) + ")" + RANGE
    assert str(IndexingMap.parse(long)) == "(d0) -> ((d0 mod 3) * 2500)" + RANGE
    deep = d0
    for i in range(MAX_NESTING):
        deep = (deep * 3 + s0 * 2 + 5) // 7 if i % 2 else (deep * -5 + s0) % 1000
    ranges = (Interval(0, 1000),), (Interval(0, 7),)
    indexing_map = IndexingMap(*ranges, (deep,), ((deep, Interval(0, 10)),))
    assert IndexingMap.parse(str(indexing_map)) == indexing_map
    assert IndexingMap.parse(str(indexing_map.simplify())) == indexing_map.simplify()


@given(st.text(alphabet="d01s in[](),->+-*floordivmod 4", max_size=60))
def test_any_text_is_a_map_or_invalid_input(text: str) -> None:
    for candidate in (text, f"(d0)[s0] -> ({text}), d0 in [0, 1], s0 in [0, 1]", f"(d0) -> (d0), d0 in [0, 1]{text}"):
        try:
            parsed = IndexingMap.parse(candidate)
        except InvalidInput:
            continue
        assert IndexingMap.parse(str(parsed)) == parsed
