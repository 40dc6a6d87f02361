"""The emitter of products that single warps multiply (``mma.sync``), of tiles that all threads of a block copy.

Its kernels of level ``tiles`` are those of the other one: what differs is the schedule, and so what becomes of them.
"""

from collections.abc import Hashable

from xgpu import ir
from xgpu.dialects.attributes import BY_WARPS
from xgpu.emit import requirements
from xgpu.emit.families.products.product import BY_TILES, DOT, ProductEmitter, follows, is_marked
from xgpu.emit.families.products.warp_facts import WarpProducts
from xgpu.emit.families.products.warp_schedule import WarpProductSchedule
from xgpu.emit.family import Family
from xgpu.fusion.grouping.families import Heroes
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.warp_tiles import warp_problem


class WarpProductEmitter(ProductEmitter):
    """Emits a fusion around a product that warps multiply."""

    NAME = "warp_product"


def _key(op: ir.Operation) -> Hashable | None:
    """Return the product itself: a kernel computes one."""
    return op if op.name == DOT and warp_problem(Product(op)) is None else None


WARP_PRODUCTS = Family(
    heroes=Heroes(
        "one product of bf16 or f16, of operands with rows in memory",
        _key,
        operations=(DOT,),
        pays=lambda op: is_marked(op, BY_WARPS),
    ),
    follows=follows,
    reads_memory=True,
    why=BY_TILES,
    emitter=WarpProductEmitter,
    facts=WarpProducts,
    schedule=WarpProductSchedule,
    results=requirements.results_of_one_shape,
    level="tiles",
)
