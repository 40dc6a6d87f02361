"""The pass `pad-products`."""

from collections.abc import Sequence, Set
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.control_flow import before_loops
from xgpu.analysis.heroes import is_hero
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.registers import longest_row
from xgpu.costs.values import byte_size, elements
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.dialects.attributes import FALLBACK
from xgpu.fusion.fallback import PRODUCT, VIEWS, fallback_reason
from xgpu.fusion.product_operands import behind_transposes, labelled_product
from xgpu.fusion.product_orders import LabelledProduct, StoredOperand
from xgpu.fusion.product_pads import MovedForPads, Padded, best_pads
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import hlo, leading_part, splat, tensor
from xgpu.hlo.tensor_cores import product_problem
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.passes.prepare.products.leave_epilogues import epilogue_of, late_values
from xgpu.records import dataclass
from xgpu.structure import (
    attributes_of,
    behind,
    dtype_of,
    element_of,
    is_argument,
    is_result_of,
    producer,
    replace_op,
    users_of,
)

type _Pads = dict[tuple[ir.Value, tuple[int, ...]], ir.Value]
"""Padded arrays, by what they are of and the zeros at the ends of its dimensions."""

_BITS = (16, 32)
"""Of elements of products that were measured to be slower where rows are not aligned."""
_COPIED = 2.0
"""Times that a kernel moves an array that it only copies."""
_CONSTANTS = ("stablehlo.constant", "stablehlo.iota")
_ENDS = ("stablehlo.return", "func.return")
_FOLDED = "XLA folds a pad of a constant, which a kernel would have in its text"
_MOST_VISITED = 64
"""Operations that are looked at to find out what a value is computed from."""


@dataclass(frozen=True)
class PadProducts(BlockRewrite):
    """Pads matrix products with zeros so that rows begin at multiples of 16 bytes, as fast products need.

    Libraries take 2.4 to 5 times as long for others of 16 bits, and 2 to 3 times for f32; TMA copies none. Padded are
    the contiguous dimensions of operands and of the result as they lie in memory: if they are contracted, in both
    operands, and if not, the result is sliced. Kernels that compute an operand store it padded, those that read the
    result read its slice; what is in memory is copied, before all loops that do not change it. That is done where it
    pays by the estimates of `xgpu.costs.products.alignment`, for operands that tensor cores multiply and libraries read
    in place. Needs: products in their final order. Run it before mark-products, whose kernels copy aligned rows by TMA.

    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x4093xf32>, tensor<4093x64xf32>) -> ...
    ```
    becomes
    ```mlir
    %1 = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 3], interior = [0, 0] : ... -> tensor<64x4096xf32>
    %2 = stablehlo.pad %w, %zero, low = [0, 0], high = [3, 0], interior = [0, 0] : ... -> tensor<4096x64xf32>
    %0 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> ...
    ```
    """

    NAME: ClassVar[str] = "pad-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the estimates are for."""
    pad: bool = True
    """Whether any are padded: on a CPU they are as fast without."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Pad the products of ``block``, which share the operands that are padded alike."""
        if not self.pad or not (products := [op for op in operations_of(block, self.OPERATIONS) if _is_candidate(op)]):
            return
        # All is decided on the program as it is.
        late, chosen = late_values(block), []
        for op in products:
            product = labelled_product(op, block)
            if product.is_read_in_place:
                moved = _moved(op, product, late, self.target.device)
                chosen.append((op, product, best_pads(product, moved, self.target.device)))
        pads: _Pads = {}
        for op, product, padded in chosen:
            if padded:
                _pad_product(op, product, padded, pads)


def _is_candidate(op: ir.Operation) -> bool:
    """Whether a library computes a product, by tensor cores, of arrays with elements."""
    if fallback_reason(op) is None or product_problem(op) is not None:
        return False
    arrays = (*op.operands, op.results[0])
    return dtype_of(arrays[0]).bits in _BITS and all(map(elements, arrays))


def _moved(op: ir.Operation, product: LabelledProduct, late: Set[ir.Value], target: Device) -> MovedForPads:
    """Return what kernels would move only because operands of ``op`` were padded, and its result sliced.

    A kernel that reads the slice is not there for that alone if XLA would not compute the same with the product.
    """
    left, right = (
        _moved_for_operand(operand, each, op.block, target)
        for operand, each in zip(op.operands, product.operands, strict=True)
    )
    is_free = product.is_read_by_kernels and not epilogue_of(op, late)
    return MovedForPads((left, right), 0 if is_free else _COPIED * byte_size(op.results[0]))


def _moved_for_operand(value: ir.Value, operand: StoredOperand, block: ir.Block, target: Device) -> float:
    source = behind_transposes(value)
    if operand.is_made:
        if is_hero(producer(source)) or _is_stored_anyway(source):
            return _COPIED * operand.bytes
        return operand.bytes if _is_of_held_rows(source, target) else 0
    is_free = _is_constant(source) or before_loops([source], block)[1] is not None
    return 0 if is_free else _COPIED * operand.bytes


def _is_constant(value: ir.Value) -> bool:
    return is_result_of(behind(value, *VIEWS), *_CONSTANTS)


def _is_stored_anyway(value: ir.Value) -> bool:
    """Whether anything but kernels and products of its block reads ``value``, which a kernel computes, or a view."""
    pending, seen, block = [value], {value}, producer(value).block
    while pending:
        for user in users_of(pending.pop()):
            if user.block != block:
                return True
            if user.name in VIEWS:
                pending += [result for result in user.results if result not in seen]
                seen.update(user.results)
            elif user.name in _ENDS or (user.name != PRODUCT and fallback_reason(user) is not None):
                return True
    return False


def _is_of_held_rows(value: ir.Value, target: Device) -> bool:
    """Whether ``value`` is computed from reductions of its rows by a kernel that holds these, such as a softmax.

    Rows of another length are another kernel's, which reads again what they are computed from.
    """
    bits = dtype_of(value).storage_bits
    longest = longest_row([bits], [bits], target)
    pending, seen = [value], {value}
    while pending and len(seen) < _MOST_VISITED:
        each = pending.pop()
        if is_argument(each):
            continue
        op = producer(each)
        if op.name == REDUCE and is_hero(op):
            shape = ReductionShape.of(op)
            if shape.is_rows and shape.per_result <= longest and shape.elements >= elements(value):
                return True
        elif op.name in OPERATIONS and OPERATIONS[op.name].kind in ("elementwise", "indexing"):
            pending += set(op.operands) - seen
            seen.update(op.operands)
    return False


def _pad_product(op: ir.Operation, product: LabelledProduct, padded: Padded, pads: _Pads) -> None:
    """Replace ``op`` by the slice of a product whose dimensions have the ``padded`` sizes."""
    with ir.InsertionPoint(op), op.location:
        operands = [
            _padded_operand(op, value, operand, padded, pads)
            for value, operand in zip(op.operands, product.operands, strict=True)
        ]
        shape = shape_of(op.results[0])
        type_ = tensor([padded.get(label, size) for label, size in enumerate(shape)], element_of(op.results[0]))
        new = ir.Operation.create(PRODUCT, results=[type_], operands=operands, attributes=attributes_of(op))
        replace_op(op, [leading_part(new.results[0], shape)])


def _padded_operand(op: ir.Operation, value: ir.Value, operand: StoredOperand, padded: Padded, pads: _Pads) -> ir.Value:
    """Return the operand ``value`` of ``op`` with ``padded`` dimensions: what it is transposes of is padded."""
    source = behind_transposes(value)
    high = tuple(padded.get(label, size) - size for label, size in zip(operand.memory, shape_of(source), strict=True))
    if not any(high):
        return value
    if (source, high) not in pads:
        (outside,), loop = before_loops([source], op.block)
        place = op if loop is None else loop
        with ir.InsertionPoint(place), place.location:
            pads[source, high] = _pad(outside, high)
    if operand.now == operand.memory:
        return pads[source, high]
    transposed: ir.Value = hlo.transpose(pads[source, high], [operand.memory.index(label) for label in operand.now])
    return transposed


def _pad(value: ir.Value, high: Sequence[int]) -> ir.Value:
    """Return ``value`` with zeros after the ends of its dimensions."""
    none = [0] * len(high)
    padded: ir.Value = hlo.pad(value, splat(0, tensor([], element_of(value))), none, list(high), none)
    if _is_constant(value):
        producer(padded).attributes[FALLBACK] = ir.StringAttr.get(_FOLDED)
    return padded
