"""Index operations mean the same after simplification and lowering: random maps against IndexingMap.evaluate."""

import itertools
from collections.abc import Sequence
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from xgpu import ir
from xgpu.dialects.attributes import INDEX_BITS, int_of, map_attribute
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.passes.support.ranges import constant_of

POINTS = 25


def intervals(magnitude: int) -> st.SearchStrategy[Interval]:
    lowers = st.integers(-magnitude, magnitude)
    return st.builds(lambda lower, size: Interval(lower, lower + size), lowers, st.integers(0, magnitude))


def expressions(rank: int) -> st.SearchStrategy[AffineExpr]:
    leaves = st.one_of(st.integers(0, rank - 1).map(dim), st.integers(-9, 9).map(constant))
    small = st.integers(-6, 6)
    divisors = st.sampled_from((2, 3, 4, 5, 8, 12))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, k: a * k, inner, small),
            st.builds(lambda a, k: a // k, inner, divisors),
            st.builds(lambda a, k: a % k, inner, divisors),
        ),
        max_leaves=5,
    )


@st.composite
def maps(draw: st.DrawFn, rank: int, results: int, magnitude: int) -> IndexingMap:
    dims = tuple(draw(intervals(magnitude)) for _ in range(rank))
    exprs = tuple(draw(expressions(rank)) for _ in range(results))
    constraints = draw(st.lists(st.tuples(expressions(rank), intervals(15)), max_size=2))
    return IndexingMap(dims, (), exprs, tuple(constraints))


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


@given(st.tuples(intervals(20), intervals(20)), maps(2, 2, 25), maps(2, 2, 40))
def test_small(ranges: tuple[Interval, ...], producer: IndexingMap, consumer: IndexingMap) -> None:
    check(ranges, producer, consumer, "simplify-indexing,lower-indexing,simplify-arith,canonicalize,cse")


@given(st.tuples(intervals(20), intervals(20)), maps(2, 2, 25), maps(2, 2, 40))
def test_lowering_alone(ranges: tuple[Interval, ...], producer: IndexingMap, consumer: IndexingMap) -> None:
    check(ranges, producer, consumer, "lower-indexing")


@given(st.tuples(intervals(1 << 34), intervals(3)), maps(2, 2, 1 << 36), maps(2, 1, 1 << 62))
def test_large(ranges: tuple[Interval, ...], producer: IndexingMap, consumer: IndexingMap) -> None:
    samples = tuple(Interval(r.lower, min(r.upper, r.lower + 50)) for r in ranges)
    check(samples, producer, consumer, "simplify-indexing,lower-indexing,simplify-arith,canonicalize,cse")


@given(st.tuples(intervals(20), intervals(20)), maps(2, 2, 25), maps(2, 1, 40), st.integers(1, 12))
def test_limited_size(ranges: tuple[Interval, ...], producer: IndexingMap, consumer: IndexingMap, size: int) -> None:
    check(ranges, producer, consumer, f"simplify-indexing{{max-size={size}}},lower-indexing")
