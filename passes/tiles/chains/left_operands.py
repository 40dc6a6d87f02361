"""Tiles that threads hold as left operands of products: fragments, of the elements of accumulators."""

import itertools
from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.threads import ShuffleOp
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.chains.spreads import ROW_LANES, Spread
from xgpu.passes.tiles.vectors import bitcast, from_elements

_HALVES = 2
_WORDS = 4
_NEAR, _FAR = (0, 2, 1, 3), (2, 0, 3, 1)
"""The lanes from which those of a row take in both exchanges."""
_SOURCE_BITS = 2
_PAIR = 2


def left_operand(spread: Spread, part: int) -> ir.Value:
    """Return the columns ``16 part`` to ``16 part + 15`` of a tile of 16 bits as a product's left operand."""
    places = itertools.product(range(_PAIR), range(_HALVES), range(_PAIR))
    first = 2 * part
    whole = from_elements([spread.at(half, (first + eighth) * _PAIR + each) for eighth, half, each in places])
    return bitcast(whole, _WORDS, integer_type(32))


def wide_left_operand(spread: Spread, part: int, lane: ir.Value) -> ir.Value:
    """Return the columns ``8 part`` to ``8 part + 7`` of a tile of f32, rounded to tf32, as a product's left operand.

    Of the columns of an eighth a lane of four holds a pair, but of the operand the column of its number and the one
    four after it. Two exchanges suffice, as in each of them no lane gives more than one number.
    """
    rows = [
        _exchanged([spread.at(half, part * _PAIR + each) for each in range(_PAIR)], lane) for half in range(_HALVES)
    ]
    words = [b.bitcast(rows[half][each], integer_type(32)) for each in range(_PAIR) for half in range(_HALVES)]
    return from_elements([b.as_tf32(each) for each in words])


def _exchanged(pair: Sequence[ir.Value], lane: ir.Value) -> list[ir.Value]:
    """Return the columns of a lane's number and four after it, of what four lanes have in pairs of neighbours.

    In the first exchange lane 0 keeps column 0, lane 1 gets 5, lane 2 gets 2 and lane 3 keeps 7; in the second they get
    4, 1, 6 and 3. So lanes 0 and 1 give the first of their pair and then the second, the others the other way around.
    """
    own = ir.arith.andi(lane, create_index(ROW_LANES - 1))
    is_low = ir.arith.cmpi(ir.arith.CmpIPredicate.ult, own, create_index(_PAIR))
    is_odd = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, ir.arith.andi(lane, create_index(1)), create_index(1))
    first, second = pair
    (near,) = ShuffleOp.build(_source(lane, own, _NEAR), [ir.arith.select(is_low, first, second)])
    (far,) = ShuffleOp.build(_source(lane, own, _FAR), [ir.arith.select(is_low, second, first)])
    return [ir.arith.select(is_odd, far, near), ir.arith.select(is_odd, near, far)]


def _source(lane: ir.Value, own: ir.Value, sources: Sequence[int]) -> ir.Value:
    """Return the lane that one of four takes from."""
    packed = sum(source << (_SOURCE_BITS * number) for number, source in enumerate(sources))
    shift = ir.arith.muli(own, create_index(_SOURCE_BITS))
    source = ir.arith.andi(ir.arith.shrui(create_index(packed), shift), create_index(ROW_LANES - 1))
    return ir.arith.addi(ir.arith.subi(lane, own), source)
