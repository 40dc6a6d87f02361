"""Reads of elements of arrays by the threads that compute with them: neighbours together where memory has them so."""

from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.block.tiles import TileOp
from xgpu.dialects.threads import PredicatedExtractOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.emit.builders import extract
from xgpu.emit.scalar.op import constant
from xgpu.indexing.access import shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.tensor_views import flat_map, has_pairs
from xgpu.passes.llvm.memory import element_pointer, load
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.vectors import elements
from xgpu.structure import dtype_of, element_of

_PAIR = 2
_COLUMN = 1
_BITS = (16, 32)
_BYTE = 8


def read_element(tile: TileOp, where: Sequence[ir.Value], branches: bool) -> ir.Value:
    """Read an element of an array, which is zero where constraints do not hold: a branch leaves it out, if allowed."""
    if not branches and _is_bounded(tile.map):
        return _read_within(tile, where)
    indices = ApplyIndexingOp.build(tile.map, where) if tile.map.results else []
    if not tile.map.constraints:
        return extract(tile.array, indices)
    condition = InDomainOp.build(tile.map, where)
    return PredicatedExtractOp.build(condition, constant(element_of(tile.array), 0), tile.array, indices)


def are_paired(tile: TileOp) -> bool:
    """Whether elements of an even column of a tile and the next one are read together."""
    element = element_of(tile.array)
    is_number = isinstance(element, ir.FloatType) and element.width in _BITS
    if len(shape_of(tile.tile)) != _PAIR or not (is_number or _is_condition(element)):
        return False
    return bool(tile.map.results) and has_pairs(flat_map(tile.map, shape_of(tile.array)), _COLUMN)


def read_pair(tile: TileOp, where: Sequence[ir.Value]) -> list[ir.Value]:
    """Read the element of an even column and the next one, which are zero where constraints do not hold.

    The array's first elements are read instead then, and nothing branches.
    """
    element = element_of(tile.array)
    flat = flat_map(tile.map, shape_of(tile.array))
    # Where constraints do not hold, what is computed under them is anything.
    (number,) = ApplyIndexingOp.build(replace(flat, constraints=()), where)
    inside = InDomainOp.build(flat, where) if flat.constraints else None
    if inside is not None:
        number = ir.arith.select(inside, number, create_index(0))
    first, stored = ArrayPointerOp.build(tile.array), integer_type(_BYTE) if _is_condition(element) else element
    pointer = element_pointer(first, stored, ir.arith.index_cast(integer_type(64), number))
    alignment = _PAIR * dtype_of(tile.array).storage_bits // _BYTE
    if stored == element:
        found = elements(load(pointer, ir.VectorType.get([_PAIR], element), alignment, invariant=True))
    else:
        # LLVM reads vectors of bytes one by one.
        pair = load(pointer, integer_type(_PAIR * _BYTE), alignment, invariant=True)
        shifts = (constant(pair.type, _BYTE * number) for number in range(_PAIR))
        found = [ir.arith.trunci(element, ir.arith.shrui(pair, shift)) for shift in shifts]
    if inside is None:
        return found
    return [ir.arith.select(inside, each, constant(element, 0)) for each in found]


def _is_condition(element: ir.Type) -> bool:
    """Whether elements are conditions, of which each is a byte in memory."""
    return isinstance(element, ir.IntegerType) and element.width == 1


def _is_bounded(map_: IndexingMap) -> bool:
    """Whether constraints say nothing but that indices of an array, which are not negative, are in it."""
    return all(
        each in map_.results and bound.lower <= 0 <= each.interval(map_.dims, map_.symbols).lower
        for each, bound in map_.constraints
    )


def _read_within(tile: TileOp, where: Sequence[ir.Value]) -> ir.Value:
    """Read an element, or the last one instead of one that is beyond, which is zero: threads need no branch for it."""
    # Where constraints do not hold, what is computed under them is anything.
    indices = ApplyIndexingOp.build(replace(tile.map, constraints=()), where) if tile.map.results else []
    if not tile.map.constraints:
        return extract(tile.array, indices)
    for expression, bound in tile.map.constraints:
        number = tile.map.results.index(expression)
        indices[number] = ir.arith.minsi(indices[number], create_index(bound.upper))
    zero = constant(element_of(tile.array), 0)
    value: ir.Value = ir.arith.select(InDomainOp.build(tile.map, where), extract(tile.array, indices), zero)
    return value
