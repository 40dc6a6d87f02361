"""Facts of a fusion around a matrix product, before it is scheduled."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from xgpu import ir
from xgpu.dialects.block.matrices import ELEMENT_BITS, multiplied_as
from xgpu.dtypes import dtype_of_element
from xgpu.emit.base import Fusion
from xgpu.emit.families.products.prologue import marked_product
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.product_maps import ROW_BYTES, Product, TileSizes, step_of
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_COPIED_BITS = (8, 16, 32, 64)
_SHORT = 48
"""Instructions for an element that may follow a product as code of all elements that a thread holds."""
_NARROW_BITS = 16
"""Elements of which four threads write less than a sector."""


@dataclass(frozen=True)
class Operands:
    """The operands of a kernel's products, as its memory and its steps depend on them.

    There are ``rights`` right ones, whose tiles are multiplied as one; elements are multiplied as ``element``. If the
    left one is computed, its elements have ``narrow_bits`` in memory. Rows may be in ``groups``.
    """

    element: str
    rights: int = 1
    groups: int = 0
    narrow_bits: int | None = None

    @property
    def bits(self) -> int:
        """The bits of an element of a right operand."""
        return ELEMENT_BITS[multiplied_as(self.element)]

    @property
    def left_bits(self) -> int:
        """The bits of an element of the left one in memory."""
        return self.bits if self.narrow_bits is None else self.narrow_bits

    @property
    def is_computed(self) -> bool:
        """Whether the left one is computed from what is in memory."""
        return self.narrow_bits is not None

    @property
    def step(self) -> int:
        """The elements that a step contracts: a row of the tile with the narrower elements."""
        return step_of(self.left_bits, self.bits)


@dataclass(frozen=True)
class Products:
    """A fusion around a product, or around several of one left operand, whose right ones are alike."""

    fusion: Fusion

    @cached_property
    def product(self) -> Product:
        """The product, of several the first."""
        return marked_product(self.fusion.heroes[0])

    @property
    def rights(self) -> int:
        """The number of right operands."""
        return len(self.fusion.heroes)

    @cached_property
    def swapped(self) -> Product:
        """The product with its operands exchanged."""
        return replace(self.product, is_swapped=True)

    def result_views(self, tile: TileSizes) -> list[TensorView | str]:
        """Return how each result's tiles are copied as boxes, or why they cannot be."""
        map_ = self.product.result_map(tile)
        return [_view(map_, ir.RankedTensorType(value.type)) for value in self.fusion.results]

    @property
    def is_short(self) -> bool:
        """Whether little follows the product, and results are narrow: then threads compute all that they hold as it is.

        Else it pays that threads have neighbours of a row before they compute what follows.
        """
        before = set(self.fusion.heroes)
        if (prologue := self.product.prologue) is not None:
            before |= set(prologue.operations)
        operations = [op.operation for op in self.fusion.body.operations if op.operation not in before]
        known = [OPERATIONS[op.name].instructions for op in operations if op.name in OPERATIONS]
        return is_short(known, self.fusion.results)

    def staging_problem(self, tile: TileSizes) -> str | None:
        """Return why a result cannot be copied as boxes, None if each can."""
        return next((view for view in self.result_views(tile) if isinstance(view, str)), None)

    @property
    def operands(self) -> Operands:
        """The operands, as a kernel has them."""
        prologue = self.product.prologue
        narrow = None if prologue is None else prologue.bits
        return Operands(self.product.dtype.mlir, self.rights, self.product.groups, narrow)

    @property
    def element_bytes(self) -> tuple[int, int]:
        """The bytes of an element of the operands, and of the widest result."""
        return self.product.element_bytes, max(self.result_bytes)

    @property
    def result_bytes(self) -> list[int]:
        """The bytes of an element of each result."""
        return [-(-dtype_of(each).storage_bits // 8) for each in self.fusion.results]


def is_short(instructions: Sequence[int], results: Sequence[ir.Value]) -> bool:
    """Whether operations of so many ``instructions`` follow a product as code of all elements that a thread holds."""
    return sum(instructions) <= _SHORT and max(dtype_of(each).storage_bits for each in results) <= _NARROW_BITS


def _view(map_: IndexingMap, type_: ir.RankedTensorType) -> TensorView | str:
    bits = dtype_of_element(type_.element_type).bits
    if bits not in _COPIED_BITS:
        return "its elements are not of 8, 16, 32 or 64 bits"
    view = tensor_view(map_, tuple(type_.shape), bits // 8, ROW_BYTES)
    # The rows of a single column are as far apart as in memory: the column is what is contiguous.
    if isinstance(view, TensorView) and view.inner != 1:
        return "elements of a row are not neighbours in memory"
    return view
