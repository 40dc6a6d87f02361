"""The pass `merge-products`."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.block_order import sort_block
from xgpu.analysis.control_flow import before_loops
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.emit.families.products.expected import Expectations, is_timed
from xgpu.emit.families.products.meetings import are_fast, meetings
from xgpu.emit.families.products.schedule import device_problem
from xgpu.fusion.fallback import PRODUCT, is_read_by_kernels
from xgpu.fusion.product_choices import NOTHING, ProductChoices
from xgpu.fusion.product_merges import (
    free_dimension,
    free_result_dimension,
    is_left_to_xla,
    merged_by_xla,
    sharing,
    worth_merging,
)
from xgpu.hlo.stablehlo_builder import hlo, tensor
from xgpu.indexing.access import shape_of
from xgpu.indexing.tiles.product_maps import Product
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import attributes_of, element_of, longest_chains


@dataclass(frozen=True)
class MergeProducts(BlockRewrite):
    """Merges the matrix products of one array with several others, such as the gates of a recurrent cell.

    XLA merges small products too, after kernels are made: it would copy the parts of the result for the kernels that
    read them, which read them in place so. Operands that a loop does not change are concatenated before it. Merged are
    products of which kernels read some, with the same number of others one after the other before them, which cannot
    depend on each other, where that saves more time than copying the operands takes. Those of constants are not: a
    kernel would have them in its text, and XLA folds them. Nor are those that one kernel of ours is to compute, with
    what follows: it reads the operands where they are.
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
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["auto", "library", "kernels", "all"] = "auto"
    """The code that computes matrix products, as in the pass `mark-products`."""
    choices: ProductChoices = NOTHING
    """The code that was chosen for each product, see `xgpu.fusion.product_choices`."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Merge the products of ``block`` that share their first operand, and then those that share their second."""
        products = [op for op in operations_of(block, self.OPERATIONS) if is_left_to_xla(op)]
        if len(products) < 2:
            return
        joined = self._joined(block)
        products = [op for op in products if op.results[0] not in joined]
        depths = longest_chains((view.operation for view in block.operations), set(products).__contains__)
        is_changed = False
        for shared in (0, 1):
            groups = sharing(products, shared, lambda op: depths[op.results[0]])
            merged = [part for group in groups if (part := self._part(group, shared))]
            for part in merged:
                _merge(part, shared)
            gone = {op.results[0] for part in merged for op in part}
            products = [op for op in products if op.results[0] not in gone]
            for op in (op for part in merged for op in part):
                op.erase()
            is_changed |= bool(merged)
        if is_changed:
            sort_block(block)

    def _part(self, group: Sequence[ir.Operation], shared: int) -> list[ir.Operation]:
        """Return the products of ``group`` that are to be one, none if no kernel reads any of them."""
        part = worth_merging(merged_by_xla(group, shared), shared, device(self.target))
        return part if any(map(is_read_by_kernels, part)) else []

    def _joined(self, block: ir.Block) -> set[ir.Value]:
        """Return the results of products that one kernel is to compute together, or that may be chosen to."""
        if self.products == "library" and not self.choices:
            return set()
        target = device(self.target)
        if device_problem(target) is not None:
            return set()
        # How operands lie is chosen later.
        found = [op for op in operations_of(block, self.OPERATIONS) if Product(op).common_problem() is None]
        groups = meetings(block, found)
        if groups and self.products == "auto" and not self.choices:
            expectations = Expectations(block, target, are_final=False)
            groups = [group for group in groups if is_timed(group[0], target) and expectations.of(group).is_faster]
        elif not self.choices:
            groups = [group for group in groups if are_fast(group, target)]
        return {op.results[0] for group in groups for op in group}


def _merge(group: Sequence[ir.Operation], shared: int) -> None:
    """Replace the results of ``group`` by slices of one product, before the last of them."""
    last = group[-1]
    free = free_dimension(last, 1 - shared)
    assert free is not None
    with ir.InsertionPoint(last), last.location:
        operands = list(last.operands)
        operands[1 - shared] = _concatenated([op.operands[1 - shared] for op in group], free, last.block)
        shape = list(shape_of(last.results[0]))
        along = free_result_dimension(last, 1 - shared)
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
    outside, loop = before_loops(values, block)
    if loop is None:
        return hlo.concatenate(outside, dimension)
    with ir.InsertionPoint(loop), loop.location:
        return hlo.concatenate(outside, dimension)
