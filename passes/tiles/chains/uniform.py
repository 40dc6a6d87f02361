"""Conditions on the elements of a tile that hold for all of them, which is known by the numbers of block and step."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.block.tiles import IndexTileOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import direction_of
from xgpu.indexing.affine import AffineExpr, Symbol, constant
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.support.arith_builder import constant as number
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.structure import producer

_NOT_NEGATIVE = {"GE": (1, -1, 0), "GT": (1, -1, -1), "LE": (-1, 1, 0), "LT": (-1, 1, -1)}
"""A sum that is not negative where a comparison holds: so many times the left and the right operand, and a number."""


def holds_everywhere(tile: ir.Value, at: Sequence[ir.Value]) -> ir.Value | None:
    """Write whether all elements of a tile of conditions are true; None if that is not known by numbers alone.

    ``at`` are the numbers of block and step.
    """
    op = producer(tile)
    if op.name == "stablehlo.constant":
        return number(1, integer_type(1)) if _is(tile, True) else None
    if op.name == "stablehlo.compare":
        return _compared(op, at)
    if op.name == "stablehlo.and" or (op.name == "stablehlo.select" and _is(op.operands[2], False)):
        parts = [holds_everywhere(each, at) for each in list(op.operands)[:2]]
        left, right = parts
        return None if left is None or right is None else ir.arith.andi(left, right)
    return None


def compared(op: ir.Operation) -> IndexingMap | None:
    """Return the number, of an element, that is not negative where a comparison of numbers holds; None for others."""
    direction = direction_of(op)
    left, right = (_index(operand) for operand in op.operands)
    known = next((each for each in (left, right) if each is not None and each.dims), None)
    if left is None or right is None or known is None or direction not in _NOT_NEGATIVE:
        return None
    times, others, rest = _NOT_NEGATIVE[direction]
    least = left.results[0] * times + right.results[0] * others + rest
    return IndexingMap(known.dims, known.symbols, (least,))


def _compared(op: ir.Operation, at: Sequence[ir.Value]) -> ir.Value | None:
    known = compared(op)
    if known is None:
        return None
    (least,) = known.results
    ends = {}
    for atom, factor in least.terms:
        if isinstance(atom, Symbol):
            reached = known.symbols[atom.index]
            ends[atom.index] = constant(reached.lower if factor > 0 else reached.upper)
    least = least.substitute(None, ends) if ends else least
    if least.variables()[1]:
        return None
    (value,) = ApplyIndexingOp.build(IndexingMap(known.dims, (), (least,)).with_simple_results(), at)
    return ir.arith.cmpi(ir.arith.CmpIPredicate.sge, value, create_index(0))


def _index(tile: ir.Value) -> IndexingMap | None:
    """Return where the elements of a tile of integers lead to, a map without dimensions if they are all equal."""
    op = producer(tile)
    if isinstance(op.opview, IndexTileOp):
        return op.opview.map
    if op.name == "stablehlo.constant":
        value = splat_of(op)
        return IndexingMap((), (), (constant(int(value.value)),)) if isinstance(value, ir.IntegerAttr) else None
    if op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = (_index(operand) for operand in op.operands)
    if left is None or right is None:
        return None
    known = left if left.dims else right
    made: AffineExpr = left.results[0] + right.results[0] * (1 if op.name == "stablehlo.add" else -1)
    bits = ir.IntegerType(ir.RankedTensorType(tile.type).element_type).width
    reached = made.interval(known.dims, known.symbols)
    # A sum that wraps is another number.
    if max(abs(reached.lower), abs(reached.upper)) >= 1 << (bits - 1):
        return None
    return IndexingMap(known.dims, known.symbols, (made,))


def _is(tile: ir.Value, value: bool) -> bool:
    op = producer(tile)
    found = splat_of(op) if op.name == "stablehlo.constant" else None
    return isinstance(found, ir.IntegerAttr | ir.BoolAttr) and bool(found.value) == value
