"""Results of loops, order of the points included, do not change through any pass over loops."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgpu import ir
from xgpu.dialects.attributes import map_of
from xgpu.indexing import AffineExpr, IndexingMap, Interval, dim, symbol
from xgpu.passes.framework import manager
from xgpu.passes.framework.base import functions
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.structure import walk

THREADS = 8

# The body multiplies and adds, so a point more or less, or two points in another order, change the result.
MODULE = """
func.func @f(%x: index) -> index {{
  %tid = gpu.thread_id x upper_bound {threads}
  %c1000003 = arith.constant 1000003 : index
  %r = "xgpu.loop"(%tid, %x) ({{
  ^bb0({symbols}%i: index, %a: index):
    %in = "xgpu.in_domain"(%tid) {{map = #xgpu.map<(d0) -> (), d0 in [0, {last}], d0 * 2 in [5, 13]>}} : (index) -> i1
    %y = scf.if %in -> (index) {{
      %p = arith.muli %a, %c1000003 : index
      scf.yield %p : index
    }} else {{
      %q = arith.addi %a, %a : index
      scf.yield %q : index
    }}
    %n = arith.addi %y, %i : index
    "xgpu.yield"(%n) : (index) -> ()
  }}) {{map = #xgpu.map<{map}>}} : (index, index) -> index
  return %r : index
}}
"""

factors = st.sampled_from([-8, -4, -3, -1, 0, 1, 2, 3, 4, 8, 12, 16, 32])


@st.composite
def sums(draw: st.DrawFn, symbols: int) -> AffineExpr:
    """A sum of the variables, like the offsets that loops compute."""
    expr = dim(0) * draw(factors) + draw(st.integers(-9, 9))
    for i in range(symbols):
        expr += symbol(i) * draw(factors)
    return expr


@st.composite
def loop_maps(draw: st.DrawFn) -> IndexingMap:
    """A map of one dimension and up to three symbols, with constraints that cut off a part at one end or both."""
    count = draw(st.integers(1, 3))
    lowers = [draw(st.sampled_from([0, 0, 0, 2, -3])) for _ in range(count)]
    symbols = tuple(Interval(lower, lower + draw(st.integers(0, 4))) for lower in lowers)
    dims = (Interval(0, draw(st.sampled_from([THREADS - 1, THREADS - 1, 7, 20]))),)
    constraints = []
    for _ in range(draw(st.integers(0, 3))):
        expr = draw(sums(count))
        if draw(st.integers(0, 5)) == 0:
            expr = expr // draw(st.integers(2, 5))
        possible = expr.interval(dims, symbols)
        low, high = (draw(st.sampled_from([0, 0, 1, 2, 3, possible.size // 3])) for _ in range(2))
        constraints.append((expr, Interval(possible.lower + low, possible.upper - high)))
    return IndexingMap(dims, symbols, (draw(sums(count)),), tuple(constraints))


Environment = dict[ir.Value, int]

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.muli": lambda a, b: a * b,
}


def evaluate(function: ir.Operation, arguments: list[int], thread: int) -> list[int]:
    """Return the results of ``function`` as thread number ``thread`` computes them, with integers of any size."""
    block = function.regions[0].blocks[0]
    environment = dict(zip(block.arguments, arguments, strict=True))
    return _run(block, environment, thread)


def _run(block: ir.Block, environment: Environment, thread: int) -> list[int]:
    """Run ``block`` and return the operands of its terminator."""
    for view in block.operations:
        op = view.operation
        operands = [environment[value] for value in op.operands]
        if op.name in ("func.return", "scf.yield", "xgpu.yield"):
            return operands
        values = _values(op, operands, environment, thread)
        environment.update(zip(op.results, values, strict=True))
    return []


def _values(op: ir.Operation, operands: list[int], environment: Environment, thread: int) -> list[int]:
    if op.name in _ARITHMETIC:
        return [_ARITHMETIC[op.name](*operands)]
    if op.name == "arith.constant":
        return [ir.IntegerAttr(op.attributes["value"]).value]
    if op.name == "gpu.thread_id":
        return [thread]
    if op.name == "xgpu.apply_indexing":
        map_ = map_of(op.attributes["map"])
        result = map_.evaluate(operands[: len(map_.dims)], operands[len(map_.dims) :])
        assert result is not None, f"evaluated outside its domain: {op}"
        return list(result)
    if op.name == "xgpu.in_domain":
        map_ = map_of(op.attributes["map"])
        in_ranges = zip(operands, (*map_.dims, *map_.symbols), strict=True)
        assert all(interval.contains(value) for value, interval in in_ranges), f"outside the ranges: {op}"
        return [int(map_.contains(operands[: len(map_.dims)], operands[len(map_.dims) :]))]
    if op.name == "scf.if":
        blocks = op.regions[0 if operands[0] else 1].blocks
        return _run(blocks[0], environment, thread) if len(blocks) else []
    if op.name == "scf.for":
        lower, upper, step, *carried = operands
        for value in range(lower, upper, step):
            carried = _run_body(op, [value, *carried], environment, thread)
        return carried
    assert op.name == "xgpu.loop", f"not an operation of these tests: {op.name}"
    map_ = map_of(op.attributes["map"])
    dims, carried = operands[: len(map_.dims)], operands[len(map_.dims) :]
    for symbols in _points(tuple(range(i.lower, i.upper + 1) for i in map_.symbols)):
        result = map_.evaluate(dims, symbols)
        if result is not None:
            carried = _run_body(op, [*symbols, *result, *carried], environment, thread)
    return carried


def _run_body(op: ir.Operation, arguments: list[int], environment: Environment, thread: int) -> list[int]:
    block = op.regions[0].blocks[0]
    environment.update(zip(block.arguments, arguments, strict=True))
    return _run(block, environment, thread)


def _points(ranges: tuple[range, ...]) -> list[tuple[int, ...]]:
    points: list[tuple[int, ...]] = [()]
    for range_ in ranges:
        points = [(*point, value) for point in points for value in range_]
    return points


def results(module: ir.Module) -> list[list[int]]:
    return [evaluate(functions(module)[0].operation, [7], thread) for thread in range(THREADS)]


@pytest.mark.parametrize(
    "pipeline",
    [
        "peel-loops",
        "peel-loops,lower-loops,unswitch-loops",
        "lower-loops,unroll-loops{max-trip=3},canonicalize,cse",
        "peel-loops,lower-loops,unswitch-loops,unroll-loops,canonicalize,cse",
    ],
)
@given(map_=loop_maps())
def test_results_stay(pipeline: str, map_: IndexingMap) -> None:
    symbols = "".join(f"%s{i}: index, " for i in range(len(map_.symbols)))
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE.format(threads=THREADS, last=THREADS - 1, symbols=symbols, map=map_))
        expected = results(module)
        manager.run(module, parse_pipeline(pipeline))
        assert results(module) == expected, f"{map_}\n{module}"


@pytest.mark.parametrize("size", [1, 5, 397, 400, 1021])
def test_peeling_leaves_no_check_in_the_vector_loop(size: int) -> None:
    """Whatever the size, only the loop over the rest tests each element."""
    map_ = IndexingMap.parse(f"(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 255], s0 in [0, 3], d0 * 4 + s0 in [0, {size - 1}]")
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE.format(threads=256, last=255, symbols="%s0: index, ", map=map_))
        manager.run(module, parse_pipeline("peel-loops,lower-loops,unswitch-loops"))
        loops = [op for op in walk(module.operation, "scf.for") if "xgpu.unroll" not in op.attributes]
        assert len(loops) == (2 if size >= 4 else 0)
        assert not any(walk(loop, "scf.if") for loop in loops)
