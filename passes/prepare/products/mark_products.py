"""The pass `mark-products`."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.analysis.control_flow import planned_blocks
from xgpu.costs.products import warp_products
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects.attributes import (
    BY_THREADS,
    BY_WARP_GROUPS,
    BY_WARPS,
    CANDIDATE,
    EXPECTED,
    JOINED,
    LEFT,
    MEASURED,
    PRODUCT,
    PROLOGUE,
    RIGHT,
    SCHEDULE,
    int_attribute,
    schedule_attribute,
)
from xgpu.emit.families.products.expected import Expectations, Expected, is_timed
from xgpu.emit.families.products.meetings import are_fast, by_warp_groups, meetings
from xgpu.emit.families.products.product import DOT, in_common, is_marked
from xgpu.emit.families.products.prologue import computed_product, is_better_computed
from xgpu.emit.families.products.schedule import device_problem
from xgpu.emit.families.products.warp_schedule import warp_device_problem
from xgpu.errors import InvalidInput
from xgpu.fusion.fallback import fallback_reason, has_library
from xgpu.fusion.product_choices import NOTHING, OPEN, ProductChoice, ProductChoices
from xgpu.hlo.chlo import RAGGED
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.ragged_maps import product_of
from xgpu.indexing.tiles.warp_tiles import units, warp_problem
from xgpu.passes.framework.base import OperationRewrite, main_of, operations_of
from xgpu.passes.prepare.products.leave_epilogues import epilogue_of, late_values
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_MARKS = (PRODUCT, PROLOGUE, JOINED, CANDIDATE, MEASURED, EXPECTED, SCHEDULE)


@dataclass(frozen=True)
class MarkProducts(OperationRewrite):
    """Marks the matrix products that kernels compute, with their epilogues, instead of XLA's libraries.

    The mark says by which instructions. They are ``wgmma`` on a GPU that multiplies by warp groups (sm_90a), for types
    and a precision that tensor cores have, and operands that can be copied as boxes, those of 8 and 32 bits contiguous
    along the contracted dimension. For other products of bf16 or f16 they are ``mma``, by warps. With
    ``products=auto`` those by ``wgmma`` are marked that a kernel is expected to compute clearly faster than a library,
    with what follows them, and those of bytes that no library computes. Products of bf16 and f16 then say what is
    expected of either. With
    ``products=kernels`` those are marked that a kernel computes about as fast as a library, with ``products=all`` all
    that would be left to a library: those that neither multiplies as ``fma``, which a loop's threads compute. With
    ``choices`` they are those of which a kernel was measured to be the fastest, each with the schedule of that kernel;
    ``choices=open`` marks and numbers all, so that they can be measured. Products of one left operand that meet, such
    as those of a gated unit, are marked with a number that they share: one kernel computes them, and with
    ``products=auto`` and ``products=kernels`` they are fast together or not. An operand that is computed from an array
    of bytes, such as weights that are dequantised, is marked where the kernel is to compute it on its way from memory.
    Needs: products in their final form.

    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x64xbf16>, tensor<64x256xbf16>) -> ...
    ```
    becomes, with products=kernels
    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : ...
    ```
    """

    NAME: ClassVar[str] = "mark-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((DOT, RAGGED))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["auto", "library", "kernels", "all"] = "auto"
    """The code that computes matrix products of which nothing is chosen."""
    choices: ProductChoices = NOTHING
    """The code of each product that a kernel can compute, in their order, see `xgpu.fusion.product_choices`."""

    def apply(self, module: ir.Module) -> None:
        """Mark the products of a program."""
        super().apply(module)
        if self.choices:
            self._mark_chosen(module)
        for block in planned_blocks(main_of(module).entry_block, self.WITH_CONDITIONS):
            if self.choices or self.products in ("kernels", "all"):
                self._join(block)
            elif self.products == "auto":
                self._mark_faster(block, self.OPERATIONS)
            if self.choices:
                # Only the others are measured.
                self._mark_faster(block, frozenset((RAGGED,)))

    def _mark_chosen(self, module: ir.Module) -> None:
        blocks = planned_blocks(main_of(module).entry_block, self.WITH_CONDITIONS)
        all_ = [op for block in blocks for op in operations_of(block, frozenset((DOT,)))]
        found = [(op, instruction) for op in all_ if (instruction := self._instruction(op)) is not None]
        for op, _ in found:
            self._mark_computed(op)
        if self.choices == OPEN:
            for number, (op, instruction) in enumerate(found):
                op.attributes[PRODUCT] = ir.StringAttr.get(instruction)
                op.attributes[CANDIDATE] = int_attribute(number)
            return
        if len(found) != len(self.choices.each):
            raise InvalidInput(
                f"pass '{self.NAME}', option 'choices': expected one for each of {len(found)} products that a kernel"
                f" can compute, got {len(self.choices.each)}"
            )
        for (op, instruction), choice in zip(found, self.choices.each, strict=True):
            _choose(op, instruction, choice)

    def rewrite(self, op: ir.Operation) -> None:
        """Mark a product if a kernel computes it, whatever the others, and nothing is chosen."""
        for name in _MARKS:
            if name in op.attributes:
                del op.attributes[name]
        if self.products == "library" or self.choices:
            return
        is_plain = op.name == DOT and not has_library(op) and fallback_reason(op) is not None
        if self.products == "auto" and not is_plain:
            return
        instruction = self._instruction(op)
        if is_plain and instruction == BY_WARP_GROUPS:
            op.attributes[PRODUCT] = ir.StringAttr.get(instruction)
        elif self.products == "auto":
            return
        elif self._mark_computed(op):
            op.attributes[PRODUCT] = ir.StringAttr.get(BY_WARP_GROUPS)
        elif instruction is not None and self._is_fast(op, instruction):
            op.attributes[PRODUCT] = ir.StringAttr.get(instruction)
        elif self.products == "all" and fallback_reason(op) is not None:
            op.attributes[PRODUCT] = ir.StringAttr.get(instruction or BY_THREADS)

    def _mark_computed(self, op: ir.Operation) -> bool:
        """Mark an operand as computed by the product's kernel if that is better than to store it; return whether it is.

        Compared are kernels of ours.
        """
        target = device(self.target)
        product = computed_product(op) if device_problem(target) is None else None
        if product is None or not is_better_computed(product, target):
            return False
        _mark_prologue(product)
        return True

    def _join(self, block: ir.Block) -> None:
        """Mark products of a block that meet as joined; where nothing is chosen, if a kernel computes them all fast."""
        all_, target = operations_of(block, self.OPERATIONS), device(self.target)
        apart = [op for op in all_ if PROLOGUE not in op.attributes]
        found = [op for op in apart if (is_marked(op, BY_WARP_GROUPS) if self.choices else by_warp_groups(op, target))]
        numbers = Counter[Hashable]()
        for group in meetings(block, found):
            if self.choices or are_fast(group, target):
                kind = in_common(group[0])
                for op in group:
                    op.attributes[PRODUCT] = ir.StringAttr.get(BY_WARP_GROUPS)
                    op.attributes[JOINED] = int_attribute(numbers[kind])
                numbers[kind] += 1

    def _mark_faster(self, block: ir.Block, names: frozenset[str]) -> None:
        """Mark the products of a block that kernels are expected to compute clearly faster: those that meet first."""
        target = device(self.target)
        found = [op for op in operations_of(block, names) if is_timed(op, target) and fallback_reason(op)]
        if not found:
            return
        expectations, late, numbers = (
            Expectations(block, target, are_final=True),
            late_values(block),
            Counter[Hashable](),
        )
        for op in found:
            product = computed_product(op)
            if product is not None and _mark_expected([op], expectations.of_computed(product, epilogue_of(op, late))):
                _mark_prologue(product)
        found = [op for op in found if PRODUCT not in op.attributes]
        for group in meetings(block, found):
            if _mark_expected(group, expectations.of(group)):
                kind = in_common(group[0])
                for op in group:
                    op.attributes[JOINED] = int_attribute(numbers[kind])
                numbers[kind] += 1
        for op in (op for op in found if PRODUCT not in op.attributes):
            alone = expectations.of([op], epilogue_of(op, late))
            # What is expected of products that meet says more of why they are left than that one reads another.
            if alone.is_faster or EXPECTED not in op.attributes:
                _mark_expected([op], alone)

    def _instruction(self, op: ir.Operation) -> str | None:
        """Return what multiplies a product: warp groups where they can, else warps; None if it is no kernel's."""
        target = device(self.target)
        if by_warp_groups(op, target):
            return BY_WARP_GROUPS
        if op.name == DOT and warp_device_problem(target) is None and warp_problem(product_of(op)) is None:
            return BY_WARPS
        return None

    def _is_fast(self, op: ir.Operation, instruction: str) -> bool:
        product, target, result_bytes = product_of(op), device(self.target), dtype_of(op.results[0]).bits // 8
        if instruction == BY_WARP_GROUPS:
            return are_fast([op], target)
        return warp_products.is_fast(product.sizes, units(product), result_bytes, target)


def _mark_expected(products: Sequence[ir.Operation], found: Expected) -> bool:
    """Say of products what is expected, and mark them if a kernel is faster; return whether it is."""
    for op in products:
        op.attributes[EXPECTED] = ir.StringAttr.get(str(found))
        if found.is_faster:
            op.attributes[PRODUCT] = ir.StringAttr.get(BY_WARP_GROUPS)
    return found.is_faster


def _mark_prologue(product: Product) -> None:
    """Say of a product which operand its kernel computes."""
    assert product.prologue is not None
    product.op.attributes[PROLOGUE] = ir.StringAttr.get((LEFT, RIGHT)[product.prologue.number])


def _choose(op: ir.Operation, instruction: str, choice: ProductChoice) -> None:
    if choice.figures:
        op.attributes[MEASURED] = ir.StringAttr.get(choice.figures)
    if choice.schedule is not None:
        op.attributes[PRODUCT] = ir.StringAttr.get(instruction)
        op.attributes[SCHEDULE] = schedule_attribute(choice.schedule)
    elif PROLOGUE in op.attributes:
        del op.attributes[PROLOGUE]
