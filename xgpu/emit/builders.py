"""Small builders shared by the emitters: regions, index expressions, clamped runtime indices."""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.dtypes import DType
from xgpu.emit.scalar.op import constant
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.structure import element_of

Values = list[ir.Value]


def if_else(
    condition: ir.Value, types: Sequence[ir.Type], then: Callable[[], Values], otherwise: Callable[[], Values]
) -> Values:
    """Emit ``scf.if`` whose branches are what ``then`` and ``otherwise`` emit, and return its results."""
    op = ir.Operation.create("scf.if", results=list(types), operands=[condition], regions=2)
    for region, emit in zip(op.regions, (then, otherwise), strict=True):
        block = region.blocks.append()
        with ir.InsertionPoint(block):
            ir.scf.yield_(emit())
    return list(op.results)


def apply_map(map_: IndexingMap, variables: Values) -> Values:
    """Return the values of the map's results; a result that is a variable or a constant needs no operation."""
    names = [f"d{i}" for i in range(len(map_.dims))] + [f"s{i}" for i in range(len(map_.symbols))]
    by_name = dict(zip(names, variables, strict=True))
    values: list[ir.Value | None] = []
    for result in map_.results:
        if not result.terms:
            values.append(constant(ir.IndexType.get(), result.constant))
        else:
            values.append(by_name.get(str(result)))
    computed = [i for i, value in enumerate(values) if value is None]
    if computed:
        rest = IndexingMap(map_.dims, map_.symbols, tuple(map_.results[i] for i in computed), map_.constraints)
        for i, value in zip(computed, ApplyIndexingOp.build(rest, variables), strict=True):
            values[i] = value
    return [value for value in values if value is not None]


def launch_index(name: str, bound: int) -> ir.Value:
    """Return ``gpu.thread_id`` or ``gpu.block_id`` along x, of which there are ``bound``."""
    index = ir.IndexType.get()
    described = {"dimension": ir.Attribute.parse("#gpu.dim<x>"), "upper_bound": ir.IntegerAttr.get(index, bound)}
    return ir.Operation.create(name, results=[index], attributes=described).results[0]


def insert(scalar: ir.Value, tensor: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """Return ``tensor`` with the element at ``indices`` replaced."""
    operands = [scalar, tensor, *indices]
    return ir.Operation.create("tensor.insert", results=[tensor.type], operands=operands).results[0]


def extract(tensor: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """Return the element of ``tensor`` at ``indices``."""
    element = element_of(tensor)
    return ir.Operation.create("tensor.extract", results=[element], operands=[tensor, *indices]).results[0]


def clamped_index(value: ir.Value, dtype: DType, interval: Interval) -> ir.Value:
    """Return an integer as an index clamped to ``interval``, which starts at 0 or above.

    Clamping is done in the integer's own type, so no value is cut off by the conversion; a bound that the type cannot
    reach needs no test.
    """
    largest = 2 ** (dtype.bits - dtype.is_signed) - 1
    if dtype.is_signed:
        value = ir.arith.maxsi(value, constant(value.type, interval.lower))
    elif interval.lower > 0:
        value = ir.arith.maxui(value, constant(value.type, interval.lower))
    if interval.upper < largest:
        minimum = ir.arith.minsi if dtype.is_signed else ir.arith.minui
        value = minimum(value, constant(value.type, interval.upper))
    cast = ir.arith.index_cast if dtype.is_signed else ir.arith.index_castui
    return cast(ir.IndexType.get(), value)


def scalar_type(dtype: DType) -> ir.Type:
    """Return the signless MLIR type of a scalar of ``dtype``."""
    return ir.Type.parse(dtype.signless)


def signless_tensor(type_: ir.Type) -> ir.Type:
    """Return a tensor type with its element type made signless."""
    shaped = ir.RankedTensorType(type_)
    element = shaped.element_type
    if not isinstance(element, ir.IntegerType) or element.is_signless:
        return type_
    return ir.RankedTensorType.get(shaped.shape, ir.IntegerType.get_signless(element.width))
