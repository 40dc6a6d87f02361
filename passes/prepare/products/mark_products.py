"""The pass `mark-products`."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.control_flow import planned_blocks
from xgpu.costs.products import is_fast
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dialects.attributes import CANDIDATE, MEASURED, PRODUCT, SCHEDULE, int_attribute, schedule_attribute
from xgpu.emit.families.products.schedule import device_problem
from xgpu.errors import InvalidInput
from xgpu.fusion.product_choices import NOTHING, OPEN, ProductChoice, ProductChoices
from xgpu.indexing.tiles.product_maps import Product
from xgpu.passes.framework.base import OperationRewrite, main_of, operations_of
from xgpu.structure import dtype_of

_MARKS = (PRODUCT, CANDIDATE, MEASURED, SCHEDULE)


@dataclass(frozen=True)
class MarkProducts(OperationRewrite):
    """Marks the matrix products that kernels compute, with what follows them, instead of XLA's libraries.

    With ``products=kernels`` these are all that a kernel can compute: of types and in a precision that tensor cores
    have, with operands that can be copied as boxes, those of 8 and 32 bits contiguous along the contracted dimension,
    on a GPU that multiplies by warp groups (sm_90a), unless that has too few tiles for its multiprocessors.
    With ``choices`` they are those of which a kernel was measured to be the fastest, each with the schedule of that
    kernel; ``choices=open`` marks and numbers all, so that they can be measured. Needs: products in their final form.

    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x64xbf16>, tensor<64x256xbf16>) -> ...
    ```
    becomes, with products=kernels
    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.product} : ...
    ```
    """

    NAME: ClassVar[str] = "mark-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.dot_general",))
    target: str = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["library", "kernels"] = "library"
    """What computes matrix products of which nothing is chosen."""
    choices: ProductChoices = NOTHING
    """What computes each product that a kernel can compute, in their order, see `xgpu.fusion.product_choices`."""

    def apply(self, module: ir.Module) -> None:
        """Mark the products of a program."""
        super().apply(module)
        if not self.choices:
            return
        blocks = planned_blocks(main_of(module).entry_block, self.WITH_CONDITIONS)
        found = [op for block in blocks for op in operations_of(block, self.OPERATIONS) if self._can_be_ours(op)]
        if self.choices == OPEN:
            for number, op in enumerate(found):
                op.attributes[PRODUCT] = ir.UnitAttr.get()
                op.attributes[CANDIDATE] = int_attribute(number)
            return
        if len(found) != len(self.choices.each):
            raise InvalidInput(
                f"pass '{self.NAME}', option 'choices': expected one for each of {len(found)} products that a kernel"
                f" can compute, got {len(self.choices.each)}"
            )
        for op, choice in zip(found, self.choices.each, strict=True):
            _choose(op, choice)

    def rewrite(self, op: ir.Operation) -> None:
        """Mark a product if a kernel computes it, and nothing is chosen."""
        for name in _MARKS:
            if name in op.attributes:
                del op.attributes[name]
        if self.products == "kernels" and not self.choices and self._can_be_ours(op) and self._is_fast(op):
            op.attributes[PRODUCT] = ir.UnitAttr.get()

    def _can_be_ours(self, op: ir.Operation) -> bool:
        return device_problem(device(self.target)) is None and Product(op).problem() is None

    def _is_fast(self, op: ir.Operation) -> bool:
        product = Product(op)
        sizes = (product.batch, product.m, product.n, product.k)
        return is_fast(sizes, product.element_bytes, dtype_of(op.results[0]).bits // 8, device(self.target))


def _choose(op: ir.Operation, choice: ProductChoice) -> None:
    if choice.figures:
        op.attributes[MEASURED] = ir.StringAttr.get(choice.figures)
    if choice.schedule is not None:
        op.attributes[PRODUCT] = ir.UnitAttr.get()
        op.attributes[SCHEDULE] = schedule_attribute(choice.schedule)
