"""The pass `merge-products`."""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.block_order import sort_block
from xgpu.costs.values import byte_size
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.emit.families.products.meetings import are_fast, meetings
from xgpu.emit.families.products.schedule import device_problem
from xgpu.fusion.fallback import PRODUCT, VIEWS, fallback_reason, is_read_by_kernels
from xgpu.fusion.product_choices import NOTHING, ProductChoices
from xgpu.hlo.stablehlo_builder import hlo, tensor
from xgpu.indexing.access import shape_of
from xgpu.indexing.tiles.product_maps import Product
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.structure import (
    attributes_of,
    behind,
    dtype_of,
    element_of,
    is_argument,
    is_result_of,
    longest_chains,
    producer,
)

_MOST_BYTES = 32 << 20
"""Bytes of operands and result above which XLA keeps a product apart from others."""
_MOST_MERGED_BYTES = 4 * _MOST_BYTES
"""Bytes of a merged result: it is in memory as long as any part of it is read."""
_WHILE = "stablehlo.while"


@dataclass(frozen=True)
class MergeProducts(BlockRewrite):
    """Makes one matrix product of those of one array with several, such as the gates of a recurrent cell.

    XLA merges small products too, after kernels are made: it would copy the parts of the result for the kernels that
    read them, which read them in place so. Operands that a loop does not change are concatenated before it. Merged are
    products that kernels alone read, with the same number of others one after the other before them, which cannot
    depend on each other. Those of constants are not: a kernel would have them in its text, and XLA folds them. Nor are
    those that one kernel of ours is to compute, with what follows: it reads the operands where they are.
    Needs: nothing; run it before choose-product-layouts, which looks at the uses of a product.

    ```mlir
    %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x64xf32>) -> ...
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x64xf32>) -> ...
    ```
    becomes
    ```mlir
    %vw = stablehlo.concatenate %v, %w, dim = 1 : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<256x128xf32>
    %01 = stablehlo.dot_general %x, %vw, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x128xf32>) -> ...
    %0 = stablehlo.slice %01 [0:32, 0:64] : (tensor<32x128xf32>) -> tensor<32x64xf32>
    %1 = stablehlo.slice %01 [0:32, 64:128] : (tensor<32x128xf32>) -> tensor<32x64xf32>
    ```
    """

    NAME: ClassVar[str] = "merge-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))
    target: str = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["library", "kernels"] = "library"
    """What computes matrix products, as of the pass `mark-products`."""
    choices: ProductChoices = NOTHING
    """What was chosen for each product, see `xgpu.fusion.product_choices`."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Merge the products of ``block`` that share their first operand, and then those that share their second."""
        products = [op for op in operations_of(block, self.OPERATIONS) if _is_candidate(op)]
        if len(products) < 2:
            return
        joined = self._joined(block)
        products = [op for op in products if op.results[0] not in joined]
        depths = longest_chains(block, set(products).__contains__)
        is_changed = False
        for shared in (0, 1):
            groups: dict[Hashable, list[ir.Operation]] = {}
            for op in products:
                if (key := _key(op, shared)) is not None:
                    groups.setdefault((depths[op.results[0]], key), []).append(op)
            merged = [part for group in groups.values() for part in _parts(group) if len(part) > 1]
            for part in merged:
                _merge(part, shared)
            gone = {op.results[0] for part in merged for op in part}
            products = [op for op in products if op.results[0] not in gone]
            for op in (op for part in merged for op in part):
                op.erase()
            is_changed |= bool(merged)
        if is_changed:
            sort_block(block)

    def _joined(self, block: ir.Block) -> set[ir.Value]:
        """Return the results of products that one kernel is to compute together, or that may be chosen to."""
        if self.products == "library" and not self.choices:
            return set()
        target = device(self.target)
        if device_problem(target) is not None:
            return set()
        # How operands lie is chosen later.
        found = [op for op in operations_of(block, self.OPERATIONS) if Product(op).common_problem() is None]
        groups = (group for group in meetings(block, found) if self.choices or are_fast(group, target))
        return {op.results[0] for group in groups for op in group}


def _is_candidate(op: ir.Operation) -> bool:
    arrays = (*op.operands, op.results[0])
    dtypes = [dtype_of(value) for value in arrays]
    is_real = all(dtype.is_float or dtype.is_integer for dtype in dtypes)
    is_small = 0 < sum(map(byte_size, arrays)) <= _MOST_BYTES and all(math.prod(shape_of(each)) for each in arrays)
    return is_real and is_small and fallback_reason(op) is not None and is_read_by_kernels(op)


def _parts(group: Sequence[ir.Operation]) -> Iterator[list[ir.Operation]]:
    """Cut ``group`` so that no part's results take more than `_MOST_MERGED_BYTES` together."""
    part: list[ir.Operation] = []
    size = 0
    for op in group:
        more = byte_size(op.results[0])
        if part and size + more > _MOST_MERGED_BYTES:
            yield part
            part, size = [], 0
        part.append(op)
        size += more
    yield part


def _key(op: ir.Operation, shared: int) -> Hashable | None:
    """Return what products to merge agree in, if the operand number ``shared`` is one for all; None if it cannot be."""
    other = op.operands[1 - shared]
    free = _free_dimension(op, 1 - shared)
    if free is None or _is_constant(other):
        return None
    shape = list(shape_of(other))
    shape[free] = 0
    attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes))
    return op.operands[shared], tuple(shape), element_of(other), element_of(op.results[0]), attributes


def _is_constant(value: ir.Value) -> bool:
    """Whether ``value`` only moves or converts a constant: a kernel would have it in its text, XLA folds it."""
    return is_result_of(behind(value, *VIEWS, "stablehlo.convert"), "stablehlo.constant", "stablehlo.iota")


def _free_dimension(op: ir.Operation, number: int) -> int | None:
    """Return the dimension of an operand that the result has and the other operand has not; None if not just one is."""
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batching = (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)[number]
    contracting = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)[number]
    free = set(range(len(shape_of(op.operands[number])))) - {*batching, *contracting}
    return free.pop() if len(free) == 1 else None


def _merge(group: Sequence[ir.Operation], shared: int) -> None:
    """Replace the results of ``group`` by slices of one product, before the last of them."""
    last = group[-1]
    free = _free_dimension(last, 1 - shared)
    assert free is not None
    with ir.InsertionPoint(last), last.location:
        operands = list(last.operands)
        operands[1 - shared] = _concatenated([op.operands[1 - shared] for op in group], free, last.block)
        # The result has the batch dimensions, then the first operand's, then the second's.
        numbers = hlo.DotDimensionNumbers(last.attributes["dot_dimension_numbers"])
        shape = list(shape_of(last.results[0]))
        along = len(shape) - 1 if shared == 0 else len(list(numbers.lhs_batching_dimensions))
        sizes = [shape_of(op.results[0])[along] for op in group]
        shape[along] = sum(sizes)
        merged = ir.Operation.create(
            PRODUCT,
            results=[tensor(shape, element_of(last.results[0]))],
            operands=operands,
            attributes=attributes_of(last),
        ).results[0]
        start = 0
        for op, size in zip(group, sizes, strict=True):
            low, high = [0] * len(shape), list(shape)
            low[along], high[along] = start, start + size
            op.results[0].replace_all_uses_with(hlo.slice(merged, low, high, [1] * len(shape)))
            start += size


def _concatenated(values: Sequence[ir.Value], dimension: int, block: ir.Block) -> ir.Value:
    """Concatenate ``values``, outside all loops around ``block`` that do not change them."""
    where = None
    while block.owner.operation.name == _WHILE and (outside := [_before(value, block) for value in values]):
        found = [value for value in outside if value is not None]
        if len(found) < len(values):
            break
        where, values = block.owner.operation, found
        block = where.block
    if where is None:
        return hlo.concatenate(values, dimension)
    with ir.InsertionPoint(where), where.location:
        return hlo.concatenate(values, dimension)


def _before(value: ir.Value, body: ir.Block) -> ir.Value | None:
    """Return what ``value`` is before the loop of ``body``, None if the loop computes it."""
    loop = body.owner.operation
    if is_argument(value):
        if value.owner != body:
            return value
        *_, terminator = body.operations
        number = ir.BlockArgument(value).arg_number
        return loop.operands[number] if terminator.operation.operands[number] == value else None
    return None if producer(value).block == body else value
