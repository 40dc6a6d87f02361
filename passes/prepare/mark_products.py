"""The pass `mark-products`."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.costs.products import is_fast
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dialects.attributes import PRODUCT
from xgpu.emit.families.products.schedule import device_problem
from xgpu.indexing.tiles.product_maps import Product
from xgpu.passes.framework.base import OperationRewrite
from xgpu.structure import dtype_of


@dataclass(frozen=True)
class MarkProducts(OperationRewrite):
    """Marks the matrix products that kernels compute, with what follows them, instead of XLA's libraries.

    With ``products=kernels`` these are all that a kernel can compute: of types and in a precision that tensor cores
    have, with operands that can be copied as boxes, those of 8 and 32 bits contiguous along the contracted dimension,
    on a GPU that multiplies by warp groups (sm_90a), unless that has too few tiles for its multiprocessors.
    Needs: products in their final form.

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
    """What computes matrix products."""

    def rewrite(self, op: ir.Operation) -> None:
        """Mark a product if a kernel computes it."""
        if PRODUCT in op.attributes:
            del op.attributes[PRODUCT]
        if self.products == "library" or device_problem(device(self.target)) is not None:
            return
        if self._is_ours(op):
            op.attributes[PRODUCT] = ir.UnitAttr.get()

    def _is_ours(self, op: ir.Operation) -> bool:
        product = Product(op)
        if product.problem() is not None:
            return False
        sizes = (product.batch, product.m, product.n, product.k)
        return is_fast(sizes, product.element_bytes, dtype_of(op.results[0]).bits // 8, device(self.target))
