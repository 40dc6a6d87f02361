"""The pass `mark-products`."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.costs import products, warp_products
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dialects.attributes import BY_WARP_GROUPS, BY_WARPS, PRODUCT
from xgpu.emit.families.products.schedule import device_problem
from xgpu.emit.families.products.warp_schedule import warp_device_problem
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.warp_tiles import units, warp_problem
from xgpu.passes.framework.base import OperationRewrite


@dataclass(frozen=True)
class MarkProducts(OperationRewrite):
    """Marks the matrix products that kernels compute, with what follows them, instead of XLA's libraries.

    With ``products=kernels`` these are those of bf16 or f16 that a kernel computes about as fast. The mark says by
    which instructions: ``wgmma`` on a GPU that multiplies by warp groups (sm_90a) and for operands that can be copied
    as boxes, else ``mma``, by warps. Needs: products in their final form.

    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x64xbf16>, tensor<64x256xbf16>) -> ...
    ```
    becomes, with products=kernels
    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : ...
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
        if self.products == "kernels" and (instruction := self._instruction(Product(op))) is not None:
            op.attributes[PRODUCT] = ir.StringAttr.get(instruction)

    def _instruction(self, product: Product) -> str | None:
        """Return what multiplies a product: warp groups where they can, else warps; None if it is no kernel's."""
        target = device(self.target)
        sizes = (product.batch, product.m, product.n, product.k)
        if device_problem(target) is None and product.problem() is None:
            return BY_WARP_GROUPS if products.is_fast(sizes, product.element_bytes, target) else None
        if warp_device_problem(target) is None and warp_problem(product) is None:
            return BY_WARPS if warp_products.is_fast(sizes, units(product), target) else None
        return None
