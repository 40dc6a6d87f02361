"""Rewrites associative scans, which cumulative sums are, as reductions of the window that ends at each element."""

from collections.abc import Sequence
from typing import Any

from xgpu import ir
from xgpu.frontend.mhlo import replace
from xgpu.frontend.stablehlo_builder import Value, element_of, fill_region, hlo, reshape, shape_of, tensor

# What the body may consist of: each element of a slice is combined on its own.
_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and compare divide exponential log log_plus_one maximum minimum multiply negate not or select "
        "subtract xor"
    ).split()
)


def expand_associative_scans(module: ir.Module) -> None:
    """Rewrite, in place, each chlo.scan that says it is associative, works element by element and starts from scalars.

    Others stay, and become loops when CHLO is written as StableHLO.
    """
    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name == "chlo.scan":
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for op in found:
        count = len(op.results) // 2
        with op.location, ir.InsertionPoint(op):
            initial = [_scalar_of(value) for value in list(op.operands)[count:]]
            if _is_elementwise_and_associative(op, count):
                scalars = [value for value in initial if value is not None]
                if len(scalars) == count:
                    replace(op, _expand(op, scalars))


def _is_elementwise_and_associative(op: ir.Operation, count: int) -> bool:
    """Whether the results are what is carried, and the body combines it element by element."""
    block = op.regions[0].blocks[0]
    *body, terminator = (each.operation for each in block.operations)
    outputs, carried = list(terminator.operands)[:count], list(terminator.operands)[count:]
    if not _flag(op, "is_associative") or len(op.operands) != 2 * count or outputs != carried:
        return False
    local = {*block.arguments, *(result for each in body for result in each.results)}
    return all(each.name in _ELEMENTWISE and local.issuperset(each.operands) for each in body)


def _flag(op: ir.Operation, name: str) -> bool:
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


def _scalar_of(value: Value) -> Value | None:
    """Return the scalar that an array holds everywhere, None if that is not known."""
    if not shape_of(value):
        return value
    producer = value.owner
    if isinstance(producer, ir.Block):
        return None
    if producer.name == "stablehlo.broadcast_in_dim" and not shape_of(producer.operands[0]):
        return producer.operands[0]
    dense: Any = producer.attributes["value"] if producer.name == "stablehlo.constant" else None
    if dense is None or not dense.is_splat:
        return None
    return hlo.constant(ir.DenseElementsAttr.get_splat(tensor([], element_of(value)), dense.get_splat_value()))


def _expand(op: ir.Operation, initial: Sequence[Value]) -> list[Value]:
    axis, is_reverse = ir.IntegerAttr(op.attributes["dimension"]).value, _flag(op, "is_reverse")
    inputs = list(op.operands)[: len(initial)]
    shape = shape_of(inputs[0])
    if is_reverse:
        inputs = [hlo.reverse(value, [axis]) for value in inputs]
    size = shape[axis]
    padding = [[max(size - 1, 0) if i == axis else 0, 0] for i in range(len(shape))]
    window = hlo.ReduceWindowOp(
        [value.type for value in inputs],
        inputs,
        list(initial),
        [max(size, 1) if i == axis else 1 for i in range(len(shape))],
        padding=_pairs(padding),
    )
    scalars = [tensor([], element_of(value)) for value in inputs]
    fill_region(window.operation, [*scalars, *scalars], lambda values: _combine(op, values))
    outputs: list[Value] = list(window.operation.results)
    starts = list(op.operands)[len(inputs) :]
    last = [_last(value, axis) if size else start for value, start in zip(outputs, starts, strict=True)]
    if is_reverse:
        outputs = [hlo.reverse(value, [axis]) for value in outputs]
    return [*outputs, *last]


def _pairs(padding: Sequence[Sequence[int]]) -> ir.DenseElementsAttr:
    numbers = [ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number) for pair in padding for number in pair]
    return ir.DenseElementsAttr.get(numbers, tensor([len(padding), 2], "i64"))


def _last(value: Value, axis: int) -> Value:
    """Return the last slice along a dimension, without the dimension."""
    shape = shape_of(value)
    starts = [size - 1 if i == axis else 0 for i, size in enumerate(shape)]
    part = hlo.slice(value, starts, shape, [1] * len(shape))
    return reshape(part, [size for i, size in enumerate(shape) if i != axis])


def _combine(op: ir.Operation, values: Sequence[Value]) -> list[Value]:
    """Emit the body for scalars: what is carried comes first in a window's region, second in a scan's."""
    block = op.regions[0].blocks[0]
    half = len(values) // 2
    scalars: dict[Value, Value] = dict(zip(block.arguments, [*values[half:], *values[:half]], strict=True))
    *body, terminator = (each.operation for each in block.operations)
    for each in body:
        types = [tensor([], element_of(result)) for result in each.results]
        attributes = {name: each.attributes[name] for name in each.attributes}
        operands = [scalars[operand] for operand in each.operands]
        copy = ir.Operation.create(each.name, types, operands, attributes, loc=each.location)
        scalars.update(zip(each.results, copy.results, strict=True))
    return [scalars[value] for value in list(terminator.operands)[:half]]
