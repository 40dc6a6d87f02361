"""The accumulation of elements that an operation reads in a loop: its start, its step and its end.

Each step is a block of StableHLO over rank-0 tensors, as the region of a reduction is, so that every element type
and operation works here as it does elsewhere.
"""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dtypes import DType, dtype_named
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.source_location import unsupported
from xgpu.records import dataclass
from xgpu.structure import dtype_of


@dataclass(frozen=True)
class Accumulation:
    """The blocks of a loop over elements.

    ``start`` takes the initial values that the operation reads and returns those that the loop carries; ``step`` takes
    what is carried and an element of each operand, and returns what is carried on; ``end`` returns the results.
    A block that is None returns what it takes.
    """

    start: ir.Block | None
    step: ir.Block
    end: ir.Block | None

    def emit_start(self, initial: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit the code before the loop."""
        return list(initial) if self.start is None else emit_combiner(self.start, initial)

    def emit_step(self, carried: Sequence[ir.Value], elements: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit the code in the loop."""
        return emit_combiner(self.step, [*carried, *elements])

    def emit_end(self, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """Emit the code after the loop."""
        return list(carried) if self.end is None else emit_combiner(self.end, carried)


def accumulation_of(op: ir.Operation) -> Accumulation:
    """Return what a reduction does, as its region says, or a sum of products.

    Raises `Unsupported` for a scan, of which an element is not made by itself.
    """
    if op.name == SCAN:
        raise unsupported(op, "its elements are made together, by a kernel of which it is a hero")
    if op.regions:
        return Accumulation(None, op.regions[0].blocks[0], None)
    left, right = (dtype_of(operand) for operand in op.operands)
    result = dtype_of(op.results[0])
    wide = _accumulator(left, right, result)
    with op.location:
        return Accumulation(
            _block([], lambda _: _zero(wide)),
            _block([wide, left, right], lambda values: _add_product(wide, *values)),
            _block([wide], lambda values: _convert(values[0], result)),
        )


def _accumulator(left: DType, right: DType, result: DType) -> DType:
    """Return the type in which products are made and summed, which is rounded or converted to the result's at the end.

    Floats are at least f32, so a sum of 16-bit products is rounded once, as in XLA. Integers wrap in the result's type.
    On pred alone, the product is "and", the sum "or". Of complex numbers whose result is real, the sums are complex, as
    in XLA. What an operation says of its precision allows for less than this, never asks for more.
    """
    types = (left, right, result)
    are_complex = [dtype for dtype in (result, left, right) if dtype.kind == "complex"]
    if are_complex:
        return are_complex[0] if result.kind == "complex" else max(are_complex, key=lambda dtype: dtype.bits)
    if any(dtype.is_float for dtype in types):
        return dtype_named("f64" if "f64" in {dtype.hlo for dtype in types} else "f32")
    return max(left, right, key=lambda dtype: dtype.bits) if result.kind == "bool" else result


def _block(arguments: Sequence[DType], body: Callable[[Sequence[ir.Value]], ir.Value]) -> ir.Block:
    """Return a block that is in no module; ``body`` makes what it returns of its arguments."""
    type_ = ir.FunctionType.get([_scalar(dtype) for dtype in arguments], [])
    function = ir.func.FuncOp("step", type_, ip=False)
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        ir.Operation.create("stablehlo.return", operands=[body(list(block.arguments))])
    return block


def _scalar(dtype: DType) -> ir.Type:
    return ir.RankedTensorType.get([], ir.Type.parse(dtype.mlir))


def _zero(dtype: DType) -> ir.Value:
    if dtype.kind == "complex":
        return _convert(_zero(dtype_named("f32")), dtype)
    number = "0.0" if dtype.is_float else "false" if dtype.kind == "bool" else "0"
    value = ir.Attribute.parse(f"dense<{number}> : {_scalar(dtype)}")
    return ir.Operation.create("stablehlo.constant", results=[_scalar(dtype)], attributes={"value": value}).results[0]


def _convert(value: ir.Value, dtype: DType) -> ir.Value:
    if dtype_of(value) == dtype:
        return value
    return ir.Operation.create("stablehlo.convert", results=[_scalar(dtype)], operands=[value]).results[0]


def _add_product(dtype: DType, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    operands = [_convert(left, dtype), _convert(right, dtype)]
    product = ir.Operation.create("stablehlo.multiply", results=[_scalar(dtype)], operands=operands).results[0]
    return ir.Operation.create("stablehlo.add", results=[_scalar(dtype)], operands=[total, product]).results[0]
