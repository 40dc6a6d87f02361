"""The pass `convert-chlo-scans`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.scan_op import build_scan, combine_elements, function_of, is_elementwise, is_identity
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, reshape, shape_of
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op


@dataclass(frozen=True)
class ConvertChloScans(ModuleRewrite):
    """Converts CHLO's scans to `xgpu.scan` where they are marked associative and are elementwise.

    Others stay, and become loops when CHLO is written as StableHLO. Needs: constants of complex numbers split.

    ```mlir
    %0, %last = chlo.scan(%x) inits(%zero) dimension=0 attributes {is_associative = true} {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
    } : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
    ```
    becomes
    ```mlir
    %0 = "xgpu.scan"(%x) ({
    ^bb0(%b: tensor<f32>, %a: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {dimension = 0, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
    // %last is the last slice of %0
    ```
    """

    NAME: ClassVar[str] = "convert-chlo-scans"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("chlo.scan",))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite one scan."""
        count = len(op.results) // 2
        if _is_associative(op, count):
            replace_op(op, _scan_of_chlo(op, count))


def _is_associative(op: ir.Operation, count: int) -> bool:
    """Whether the results are what is carried, and the body combines it element by element."""
    block = op.regions[0].blocks[0]
    terminator = list(block.operations)[-1].operation
    outputs, carried = list(terminator.operands)[:count], list(terminator.operands)[count:]
    if not _flag(op, "is_associative") or len(op.operands) != 2 * count or outputs != carried:
        return False
    shapes = [shape_of(value) for value in list(op.operands)[:count]]
    return all(shape == shapes[0] for shape in shapes) and is_elementwise(block)


def _flag(op: ir.Operation, name: str) -> bool:
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


def _scan_of_chlo(op: ir.Operation, count: int) -> list[Value]:
    """Return the scans and, without the dimension, their last slices."""
    axis, is_reverse = ir.IntegerAttr(op.attributes["dimension"]).value, _flag(op, "is_reverse")
    inputs, starts = list(op.operands)[:count], list(op.operands)[count:]
    shape, block = shape_of(inputs[0]), op.regions[0].blocks[0]

    def combine(values: list[Value]) -> list[Value]:
        # The element comes first in this region, and what is carried second.
        return combine_elements(block, [*values[count:], *values[:count]])[:count]

    if 0 in shape:
        return [*inputs, *starts]
    scanned = build_scan(inputs, axis, is_reverse, combine)
    others = [i for i in range(len(shape)) if i != axis]
    outputs = scanned
    if not is_identity(_function(block), starts[0]):
        outputs = combine([*(broadcast(start, shape, others) for start in starts), *scanned])
    return [*outputs, *(_last(value, axis, is_reverse) for value in outputs)]


def _function(block: ir.Block) -> str | None:
    """Return the `binary_function` of the region of a CHLO scan, which returns its result twice."""
    *body, terminator = (op.operation for op in block.operations)
    if len(body) != 1 or len(terminator.operands) != 2:
        return None
    return function_of(body[0], block.arguments)


def _last(value: Value, axis: int, is_reverse: bool) -> Value:
    """Return the last slice along a dimension, or the first, without the dimension."""
    shape = shape_of(value)
    starts, ends = [0] * len(shape), list(shape)
    starts[axis], ends[axis] = (0, 1) if is_reverse else (shape[axis] - 1, shape[axis])
    part = hlo.slice(value, starts, ends, [1] * len(shape))
    return reshape(part, [size for i, size in enumerate(shape) if i != axis])
