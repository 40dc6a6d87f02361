"""Values and the indices at which others are computed from them: what keeps elements is seen through."""

from dataclasses import replace
from functools import lru_cache

from xgpu import ir
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.scan_op import function_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import body_of, defining_op, dtype_of

DOT = "stablehlo.dot_general"
REDUCE = "stablehlo.reduce"
PAD = "stablehlo.pad"
IOTA = "stablehlo.iota"
MOVES = frozenset(("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose"))
"""Operations that may move elements, one to one."""
SPREADS = MOVES | {"stablehlo.broadcast_in_dim"}
"""The same, and what repeats elements."""
_MOST_INTEGER = 256
"""All integers up to this are numbers of every type of 16 bits or more."""
Place = tuple[ir.Value, IndexingMap]
"""A value, and the map from the weights' indices to its own."""


def reducing_function(op: ir.Operation) -> str | None:
    """Return the name of the one function by which an operation reduces, None if it does so in another way."""
    body = body_of(op)
    *operations, _ = (each.operation for each in body.operations)
    return function_of(operations[0], list(body.arguments)) if len(operations) == 1 else None


def number_of(value: ir.Value) -> float | None:
    """Return the float that all elements of a value are, if they are a constant or its broadcast; or a small integer's.

    None for values that are no floats.
    """
    op, is_float = defining_op(value), dtype_of(value).is_float
    while op is not None and op.name in SPREADS:
        op = defining_op(op.operands[0])
    number = None if op is None or op.name != "stablehlo.constant" or not is_float else splat_of(op)
    if isinstance(number, ir.IntegerAttr) and op is not None and dtype_of(op.results[0]).is_integer:
        return float(number.value) if abs(number.value) <= _MOST_INTEGER else None
    return float(number.value) if isinstance(number, ir.FloatAttr) else None


def behind(place: Place, names: frozenset[str]) -> Place:
    """Return the value that one is made of by operations of these names that keep numbers, and the map to it."""
    value, map_ = place
    while (op := defining_op(value)) is not None and op.name in names and keeps_numbers(op):
        value, map_ = op.operands[0], then(map_, accesses(op)[0].map)
    return value, map_


def keeps_numbers(op: ir.Operation) -> bool:
    """Whether the elements of a result are those of the only operand, but for rounding to no less than 16 bits.

    Narrower types are asked for because of what they leave, and integers leave other numbers.
    """
    if op.name != "stablehlo.convert":
        return len(op.operands) == 1
    return all(is_wide(value) for value in (*op.operands, *op.results))


def is_wide(value: ir.Value) -> bool:
    """Whether elements are floats of at least 16 bits."""
    dtype = dtype_of(value)
    return dtype.is_float and dtype.bits >= 16


@lru_cache(maxsize=1 << 12)
def then(map_: IndexingMap, access: IndexingMap) -> IndexingMap:
    """Return a map, then that of a read: indices of one array are always indices of the other."""
    return replace(map_.compose(access), constraints=()).with_simple_results()


def is_tiled(op: ir.Operation) -> bool:
    """Whether tiles of the result of ``op`` are computed from tiles of its operands, or of nothing but indices."""
    if op.name == "stablehlo.constant":
        return splat_of(op) is not None
    if op.name == IOTA:
        return True
    if op.name not in OPERATIONS or len(op.regions):
        return False
    kind = access_kind(op)
    return kind == "elementwise" or (kind == "indexing" and not any(each.runtime for each in accesses(op)))
