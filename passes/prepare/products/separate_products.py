"""The pass `separate-products`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, DeviceName
from xgpu.fusion.fallback import PRODUCT, VIEWS, is_read_by_kernels
from xgpu.fusion.product_merges import is_left_to_xla, merged_by_xla, sharing, sharing_turned, worth_merging
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import copy_operation, is_argument, is_result_of, producer

_GENERATORS = ("stablehlo.constant", "stablehlo.iota")


@dataclass(frozen=True)
class SeparateProducts(BlockRewrite):
    """Keeps XLA from making one matrix product of several of one array where copying the operands takes longer.

    XLA concatenates operands in memory whenever those of one product and its result have at most 64 MB without what is
    shared, in loops in each iteration: for few rows it then moves the weights three times instead of once. It turns
    operands that lie differently, and copies the parts of the result for kernels. It merges products that read the very
    same value, so all of a group but the first read it behind an optimization barrier, which costs nothing: XLA removes
    it once merging is over.
    Needs: products in their final form, and marks of those that kernels compute. What asks which products share an
    operand runs before.

    ```mlir
    %0 = stablehlo.dot_general %x, %v, ... : (tensor<16x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
    %1 = stablehlo.dot_general %x, %w, ... : (tensor<16x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<16x1024xbf16>
    ```
    becomes
    ```mlir
    %0 = stablehlo.dot_general %x, %v, ...
    %y = stablehlo.optimization_barrier %x : tensor<16x4096xbf16>
    %1 = stablehlo.dot_general %y, %w, ...
    ```
    """

    NAME: ClassVar[str] = "separate-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the estimates are for."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Separate the products of ``block`` that XLA would merge at a loss."""
        products = [op for op in operations_of(block, self.OPERATIONS) if is_left_to_xla(op)]
        for shared in (0, 1):
            together = set[ir.Value]()
            for group in sharing(products, shared):
                merged = merged_by_xla(group, shared)
                if not merged or _is_generated(group[0].operands[shared]):
                    continue
                kept = worth_merging(merged, shared, self.target.device, are_hoisted=False)
                together.update(op.results[0] for op in kept)
                others = [op for op in merged if op not in kept]
                for op in others if kept else others[1:]:
                    _separate(op, shared)
            for _, *others in sharing_turned(products, shared):
                for op in others:
                    is_free = op.results[0] not in together and not _is_generated(op.operands[shared])
                    if is_free and is_read_by_kernels(op):
                        _separate(op, shared)


def _separate(op: ir.Operation, shared: int) -> None:
    """Let ``op`` read an operand behind a barrier, with the views that XLA folds into products after it."""
    views = _views(op.operands[shared])
    source = views[-1].operands[0] if views else op.operands[shared]
    with ir.InsertionPoint(op), op.location:
        barrier = ir.Operation.create("stablehlo.optimization_barrier", results=[source.type], operands=[source])
        copies = {source: barrier.results[0]}
        for view in reversed(views):
            copy_operation(view, copies)
        op.operands[shared] = copies[op.operands[shared]]


def _views(value: ir.Value) -> Sequence[ir.Operation]:
    """Return the views that ``value`` is made by, one of the other, the last first."""
    found: list[ir.Operation] = []
    while not is_argument(value) and producer(value).name in VIEWS and len(producer(value).operands) == 1:
        found.append(producer(value))
        value = found[-1].operands[0]
    return found


def _is_generated(value: ir.Value) -> bool:
    """Whether XLA folds ``value``, which a barrier would keep it from."""
    views = _views(value)
    return is_result_of(views[-1].operands[0] if views else value, *_GENERATORS)
