"""Rewrites reductions so that kernels can share their elements among threads as they like."""

from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import COMMUTATIVE, FIRST_EXTREME
from xgpu.dtypes import dtype_of_element
from xgpu.frontend.constants import is_number
from xgpu.frontend.narrow_floats import Widening
from xgpu.frontend.stablehlo_builder import Value, broadcast, element_of, hlo, reshape, shape_of
from xgpu.fusion.combiners import combiners
from xgpu.fusion.heroes import is_packed, is_reduction
from xgpu.fusion.initial_values import start_from_identity
from xgpu.fusion.reduction_regions import first_extreme, region_names
from xgpu.fusion.reduction_shape import ReductionShape
from xgpu.fusion.regions import planned_blocks
from xgpu.options import Options

ARITHMETIC = frozenset(f"stablehlo.{name}" for name in "add subtract multiply and or xor".split())
ORDERING = frozenset(f"stablehlo.{name}" for name in "maximum minimum compare select and or".split())
NO_COMPUTATION = frozenset(("stablehlo.constant", "stablehlo.return"))

_ELEMENTWISE: Mapping[str, Callable[[Value, Value], Value]] = {
    "add": hlo.add,
    "multiply": hlo.multiply,
    "minimum": hlo.minimum,
    "maximum": hlo.maximum,
}


def rewrite_reductions(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Widen packed integers, let reductions start from identities, and make their order not matter where it can.

    - What reduces dimensions of one element only becomes elementwise operations, which fuse with others.
    - Integers of 2 and 4 bits are reduced as 8-bit ones: results that share a byte cannot be written by two threads.
    - A sum of ``x`` from an initial value other than zero is that from zero, and the value is added at the end, so that
      every thread can start from it. Regions of several operations are taken to start from their identity, which is
      what StableHLO asks for; so their initial values may count more than once.
    - The position of the first extreme, as JAX's argmax computes it, is made independent of the order of NaNs.
    """
    for op in reductions(main):
        with op.location:
            _make_elementwise(op)
    for op in reductions(main):
        if (wider := _widening(op)) is not None:
            with op.location:
                wider.widen(op)
    for op in reductions(main):
        if is_reduction(op):
            with op.location:
                start_from_identity(op)
                if (direction := first_extreme(op)) is not None:
                    Widening(_single).widen(op)
                    _order_by_position(op, direction)


def reductions(main: ir.func.FuncOp) -> list[ir.Operation]:
    """Return the reductions of a function, also those in blocks of its control flow."""
    operations = (view.operation for block in planned_blocks(main.entry_block) for view in block.operations)
    return [op for op in operations if op.name == "stablehlo.reduce"]


def _widening(op: ir.Operation) -> Widening | None:
    """Return how to widen what a reduction computes in, None if that is not needed or would change results."""
    names = region_names(op) - NO_COMPUTATION
    if any(is_packed(value) for value in op.results) and (names <= ARITHMETIC or names <= ORDERING):
        # Arithmetic agrees in the lower bits, comparisons on extended numbers.
        return Widening(byte_of)
    return None


def byte_of(type_: ir.Type) -> ir.Type | None:
    """Return the 8-bit type for integers of 2 and 4 bits, None for other types."""
    if not isinstance(type_, ir.IntegerType) or type_.width not in (2, 4):
        return None
    return ir.IntegerType.get_unsigned(8) if type_.is_unsigned else ir.IntegerType.get_signless(8)


def _single(type_: ir.Type) -> ir.Type | None:
    """Numbers of 16 bits are compared in f32, where extending each once costs less than at each comparison."""
    return ir.F32Type.get(type_.context) if isinstance(type_, ir.F16Type | ir.BF16Type) else None


def _make_elementwise(op: ir.Operation) -> None:
    """Replace a reduction of single elements by what its region does with the initial values and them."""
    count, found = len(op.results), combiners(op)
    is_known = all(each.alone and each.function in _ELEMENTWISE for each in found)
    if ReductionShape.of(op).per_result != 1 or not is_known:
        return
    with ir.InsertionPoint(op):
        for number, each in enumerate(found):
            element, start = op.operands[number], op.operands[count + number]
            shape = shape_of(op.results[number])
            combined = _ELEMENTWISE[each.function](broadcast(start, shape), reshape(element, shape))
            op.results[number].replace_all_uses_with(combined)
    op.erase()


def _order_by_position(op: ir.Operation, direction: str) -> None:
    """Have the region that `first_extreme` knows prefer, of two NaNs, the one of the lower position.

    The region ends with ``select(better, a, b), select(better or tie, i, j)``, where ``better`` holds for every ``a``
    that is NaN. Where both are NaN, ``i < j`` takes the place of both conditions.
    """
    block = op.regions[0].blocks[0]
    first, position, second, other = block.arguments
    if dtype_of_element(element_of(first)).is_float:
        *_, end = block.operations
        with ir.InsertionPoint(end.operation):
            both = hlo.and_(*(hlo.compare(x, x, _direction("NE")) for x in (first, second)))
            is_before = hlo.compare(position, other, _direction("LT"))
            for number, (left, right) in enumerate(((first, second), (position, other))):
                keeps = end.operation.operands[number].owner.operation.operands[0]
                end.operation.operands[number] = hlo.select(hlo.select(both, is_before, keeps), left, right)
    op.attributes[COMMUTATIVE] = ir.UnitAttr.get()
    if is_number(op.operands[3], 0):
        op.attributes[FIRST_EXTREME] = ir.StringAttr.get(direction)


def _direction(name: str) -> ir.Attribute:
    return hlo.ComparisonDirectionAttr.get(name)
