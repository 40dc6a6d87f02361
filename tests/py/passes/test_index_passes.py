"""Index operations mean the same after simplification and lowering: random maps against IndexingMap.evaluate."""

import itertools
import random
from collections.abc import Sequence
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from tests.py.indexing.indexing_strategies import Decisions
from xgpu import ir
from xgpu.dialects.attributes import INDEX_BITS, int_of, map_attribute
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.passes.support.ranges import constant_of

POINTS = 25


cases = st.binary(min_size=256, max_size=256).map(Decisions)


def make_number(rng: random.Random, largest: int) -> int:
    """Return a number up to ``largest``, half of the time one of fewer bits."""
    return rng.randint(0, largest) >> (rng.randrange(largest.bit_length()) if rng.getrandbits(1) else 0)


def make_interval(rng: random.Random, magnitude: int) -> Interval:
    """Return an interval from a number up to ``magnitude``, or its negative, as long as another one."""
    lower = rng.choice((1, -1)) * make_number(rng, magnitude)
    return Interval(lower, lower + make_number(rng, magnitude))


def make_limits(rng: random.Random, possible: Interval) -> Interval:
    """Return an interval that has many of another one's members: its bounds are moved in, out or not at all."""
    most = (possible.upper - possible.lower) // 2 + 1
    first, second = (
        bound + rng.choice((0, -1, 1)) * make_number(rng, most) for bound in (possible.lower, possible.upper)
    )
    return Interval(min(first, second), max(first, second))


def make_expr(rng: random.Random, rank: int, leaves: int = 5, depth: int = 4) -> AffineExpr:
    """Return any expression of dimensions and constants, at most so many together, and so many levels of operators."""
    kind = "leaf" if not depth else rng.choice(("leaf", "sum", "difference", "product", "quotient", "remainder"))
    if kind == "leaf" or (leaves == 1 and kind in ("sum", "difference")):
        return rng.choice((dim(rng.randrange(rank)), constant(rng.randint(-9, 9))))
    if kind in ("sum", "difference"):
        left = rng.randrange(1, leaves)
        first, second = (make_expr(rng, rank, count, depth - 1) for count in (left, leaves - left))
        return first + second if kind == "sum" else first - second
    operand = make_expr(rng, rank, leaves, depth - 1)
    if kind == "product":
        return operand * rng.randint(-6, 6)
    divisor = rng.choice((2, 3, 4, 5, 8, 12))
    return operand // divisor if kind == "quotient" else operand % divisor


def make_map(rng: random.Random, ranges: Sequence[Interval], results: int) -> IndexingMap:
    """Return a map of arguments in ``ranges``, of which many are in its domain; it has up to two constraints."""
    dims = tuple(make_limits(rng, possible) for possible in ranges)
    conditions = [make_expr(rng, len(dims)) for _ in range(rng.randrange(3))]
    constraints = tuple((expr, make_limits(rng, expr.interval(ranges, ()))) for expr in conditions)
    return IndexingMap(dims, (), tuple(make_expr(rng, len(dims)) for _ in range(results)), constraints)


def program(ranges: Sequence[Interval], producer: IndexingMap, consumer: IndexingMap) -> str:
    """``producer`` of the arguments, then ``consumer`` of its results, and whether these are in the latter's domain."""
    rank, middle, results = len(ranges), len(producer.results), len(consumer.results)
    arguments = ", ".join(
        f"%a{i}: index {{xgpu.range = array<i64: {r.lower}, {r.upper}>}}" for i, r in enumerate(ranges)
    )
    inputs = ", ".join(f"%a{i}" for i in range(rank))
    between = ", ".join(f"%b{i}" for i in range(middle))
    outputs = ", ".join(f"%c{i}" for i in range(results))
    types = ["(" + ", ".join(["index"] * count) + ")" for count in (rank, middle, results)]
    returned = ", ".join([*["index"] * results, "i1"])
    return f"""
      func.func @f({arguments}) -> ({returned}) {{
        {between} = "xgpu.apply_indexing"({inputs}) {{map = {map_attribute(producer)}}} : {types[0]} -> {types[1]}
        {outputs} = "xgpu.apply_indexing"({between}) {{map = {map_attribute(consumer)}}} : {types[1]} -> {types[2]}
        %in = "xgpu.in_domain"({between}) {{map = {map_attribute(consumer)}}} : {types[1]} -> i1
        return {outputs}, %in : {returned}
      }}"""


def wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def step(op: ir.Operation, values: Sequence[int], bits: int) -> int:
    """Evaluate one operation on integers of ``bits`` bits; fails if its overflow flags are wrong."""
    unsigned = [value & ((1 << bits) - 1) for value in values]
    match op.name:
        case "arith.cmpi":
            a, b = values
            predicates = {0: a == b, 1: a != b, 2: a < b, 3: a <= b, 4: a > b, 5: a >= b}
            c, d = unsigned
            predicates |= {6: c < d, 7: c <= d, 8: c > d, 9: c >= d}
            return int(predicates[int_of(op.attributes["predicate"])])
        case "arith.select":
            return values[1] if values[0] else values[2]
        case "arith.andi":
            return values[0] & values[1]
        case "arith.xori":
            return values[0] ^ values[1]
        case "arith.divui":
            return wrap(unsigned[0] // unsigned[1], bits)
        case "arith.remui":
            return wrap(unsigned[0] % unsigned[1], bits)
        case "arith.shrsi":
            return values[0] >> values[1]
    compute = {"arith.addi": int.__add__, "arith.subi": int.__sub__, "arith.muli": int.__mul__}[op.name]
    exact = compute(*values)
    flags = str(op.attributes["overflowFlags"]) if "overflowFlags" in op.attributes else ""
    assert "nsw" not in flags or wrap(exact, bits) == exact, f"{op} of {values}"
    assert "nuw" not in flags or 0 <= compute(*unsigned) < 1 << bits, f"{op} of {values}"
    return wrap(exact, bits)


def evaluate(function: ir.Operation, arguments: Sequence[int]) -> list[int]:
    bits = int_of(function.attributes[INDEX_BITS])
    block = function.regions[0].blocks[0]
    values: dict[ir.Value, int] = dict(zip(block.arguments, arguments, strict=True))
    for view in block.operations:
        op = view.operation
        operands = [values[operand] for operand in op.operands]
        if op.name == "func.return":
            return operands
        if op.name == "arith.constant":
            number = constant_of(op.results[0])
            assert number is not None
            values[op.results[0]] = number
        else:
            values[op.results[0]] = step(op, operands, bits)
    raise AssertionError("no return")


@cache
def context() -> ir.Context:
    return ir.make_context()


def check(ranges: Sequence[Interval], producer: IndexingMap, consumer: IndexingMap, pipeline: str) -> None:
    with context():
        module = ir.Module.parse(program(ranges, producer, consumer))
        run(module, parse_pipeline(pipeline))
        function = module.body.operations[0].operation
        points = list(itertools.product(*(range(r.lower, r.upper + 1) for r in ranges)))
        for point in points[:: max(1, len(points) // POINTS)]:
            *got, inside = evaluate(function, point)
            between = producer.evaluate(point)
            if between is None or not all(r.contains(v) for r, v in zip(consumer.dims, between, strict=True)):
                continue
            expected = consumer.evaluate(between)
            assert inside == (expected is not None), (point, between)
            assert expected is None or got == list(expected), (point, between)


type Case = tuple[tuple[Interval, ...], IndexingMap, IndexingMap]


def make_case(rng: random.Random, magnitudes: Sequence[int] = (20, 20), results: int = 2) -> Case:
    """Return ranges of two arguments, a map of these, and one with so many results of what the first one returns."""
    ranges = tuple(make_interval(rng, magnitude) for magnitude in magnitudes)
    producer = make_map(rng, ranges, 2)
    between = [expr.interval(ranges, ()) for expr in producer.results]
    return ranges, producer, make_map(rng, between, results)


@given(cases)
def test_small(rng: random.Random) -> None:
    check(*make_case(rng), "simplify-indexing,lower-indexing,simplify-arith,canonicalize,cse")


@given(cases)
def test_lowering_alone(rng: random.Random) -> None:
    check(*make_case(rng), "lower-indexing")


@given(cases)
def test_large(rng: random.Random) -> None:
    ranges, producer, consumer = make_case(rng, (1 << 34, 3), results=1)
    samples = tuple(Interval(r.lower, min(r.upper, r.lower + 50)) for r in ranges)
    check(samples, producer, consumer, "simplify-indexing,lower-indexing,simplify-arith,canonicalize,cse")


@given(cases, st.integers(1, 12))
def test_limited_size(rng: random.Random, size: int) -> None:
    check(*make_case(rng, results=1), f"simplify-indexing{{max-size={size}}},lower-indexing")
