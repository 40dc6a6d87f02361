"""Expected times of matrix products and their epilogues: by a kernel, and by XLA's libraries and kernels.

That is what computes products of which nobody says it (``products=auto``): a kernel where it is clearly faster.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.costs.products.library_products import library_computed_seconds, library_product_seconds
from xgpu.costs.products.products import HANDED_SECONDS_PER_BYTE, SHARE_OF_MEMORY, ProductTile, pays_joined, timed_tiles
from xgpu.costs.values import byte_size, elements
from xgpu.device import Device
from xgpu.emit.families.products.absorbed import Absorbed, absorbed, copied_operand
from xgpu.emit.families.products.facts import is_short
from xgpu.emit.families.products.prologue import best_tile, computing
from xgpu.emit.families.products.schedule import device_problem
from xgpu.fusion.product_operands import TRANSPOSE
from xgpu.fusion.widened_operands import widening
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.tiles.product_maps import Product, TileSizes
from xgpu.indexing.tiles.ragged_maps import product_of
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_LEAST_GAIN = 1.07
"""The factor by which the library must be expected to take longer than a kernel: both are estimates."""
_LEAST_GAIN_SECONDS = 1e-6
"""The time that a kernel must save each time: to compile one takes half a second."""
_LEAST_ROWS, _LEAST_RESULTS = 16, 1 << 16
"""Rows or columns, and results, of the smallest products that were timed and were not a library's."""
_FEW_ROWS, _SMALL_TILE = 128, 64 * 64
"""Rows or columns of products, or results of a tile, up to which operands were exchanged where that was timed."""
_ISSUED = 0.8
"""The time of an epilogue, as a part of what its instructions take to issue: measured with GELU, SiLU."""
_SUM_BYTES = 4
_TYPES = ("bf16", "f16")
_BATCHES = Reason("products in batches were not timed")
_FEW = Reason(
    "libraries compute products of less than {} rows or columns, or {:,} results", (_LEAST_ROWS, _LEAST_RESULTS)
)
_NO_BOXES = Reason("its operands cannot be copied as boxes")
_EXCHANGED = Reason("large tiles of products with exchanged operands were not timed")
_APART = Reason("a kernel for each is expected to be faster than one for all")


@dataclass(frozen=True)
class Expected:
    """The time of products and their epilogue in seconds: by a kernel, and by libraries with a kernel for the rest.

    Or the ``reason`` why that is not known.
    """

    kernel: float = 0.0
    library: float = 0.0
    reason: Reason | None = None

    @property
    def is_faster(self) -> bool:
        """Whether a kernel is clearly faster, and is worth compiling."""
        gain = max(_LEAST_GAIN_SECONDS, (_LEAST_GAIN - 1) * self.kernel)
        return self.reason is None and self.library - self.kernel >= gain

    def __str__(self) -> str:
        if self.reason is not None:
            return f"no gain by a kernel: {self.reason}"
        return f"library {self.library * 1e6:.1f} us, kernel {self.kernel * 1e6:.1f} us"


def is_timed(op: ir.Operation, target: Device) -> bool:
    """Whether products of such a type were timed on a GPU."""
    return device_problem(target) is None and product_of(op).dtype.hlo in _TYPES


class Expectations:
    """The expectations for the products of a block.

    Those that are to be marked have their final form; before layouts are chosen, transposes of operands may still go.
    """

    def __init__(self, block: ir.Block, target: Device, are_final: bool):
        self._target, self._are_final = target, are_final
        numbered = enumerate(block.operations)
        self._order: dict[ir.Value, int] = {
            value: number for number, view in numbered for value in view.operation.results
        }

    def of(self, products: Sequence[ir.Operation], left: Sequence[ir.Operation] = ()) -> Expected:
        """Return what a product takes, or several of one left operand that meet; ``left`` is what XLA fuses into it."""
        if reason := next(filter(None, map(self._problem, products)), None):
            return Expected(reason=reason)
        rest = absorbed(products, self._order)
        if isinstance(rest, Reason):
            if len(products) > 1 or not product_of(products[0]).has_groups:
                return Expected(reason=rest)
            rest = _nothing_after(products[0])
        found = _expected(products, rest, left, self._target, lambda _: True)
        # Whether tiles can be copied takes longest to find.
        if found.is_faster and self._are_final:
            found = _expected(products, rest, left, self._target, lambda tile: _fits(products, tile))
        return found

    def of_computed(self, product: Product, left: Sequence[ir.Operation] = ()) -> Expected:
        """Return what a product takes whose operand its kernel computes; a library gets one that is stored.

        Where XLA computes it as it multiplies, the library is that. What is stored more by kernels, if several arrays
        follow, is little beside the operand: then the product alone is compared.
        """
        if product.batch > 1:
            return Expected(reason=_BATCHES)
        rest = absorbed([product.op], self._order)
        if isinstance(rest, Reason):
            rest = _nothing_after(product.op)
        stored = -(-dtype_of(rest.result).storage_bits // 8)
        kernel, _ = best_tile(product, stored, self._target)
        assert product.prologue is not None
        is_fused = bool(widening(product.op.operands[product.prologue.number]))
        product_bytes = -(-dtype_of(product.op.results[0]).storage_bits // 8)
        library = library_computed_seconds(computing(product), product_bytes, is_fused, self._target)
        library += _kernel_seconds([product.op], rest, left, self._target)
        return Expected(kernel + _rest_seconds(rest, self._target), library)

    def _problem(self, op: ir.Operation) -> Reason | None:
        """Return why no time is known of a product, but for what takes longer to find; None if it is."""
        product = product_of(op)
        if problem := product.common_problem():
            return Reason("{}", (problem,))
        if product.batch > 1:
            return _BATCHES
        if product.has_groups:
            return None
        if min(product.m, product.n) < _LEAST_ROWS or product.m * product.n < _LEAST_RESULTS:
            return _FEW
        folded = () if self._are_final else (TRANSPOSE,)
        copied = next(filter(None, (copied_operand(operand, *folded) for operand in op.operands)), None)
        return Reason("a kernel's operand, a result of {}, would be copied", (copied,)) if copied else None


def _nothing_after(op: ir.Operation) -> Absorbed:
    """Return that a kernel computes a product alone, the result of which is in memory in any case.

    So it is where rows are in groups: what is stored more than by a library is little beside what that multiplies more.
    """
    return Absorbed((), (), op.results[0], by_xla=True, by_kernels=False)


def _fits(products: Sequence[ir.Operation], tile: ProductTile) -> bool:
    """Whether operands of products can be copied by the tiles of a block."""
    several = (replace(product_of(op), is_swapped=tile.is_swapped) for op in products)
    return all(each.problem(TileSizes(tile.rows, tile.columns, each.step)) is None for each in several)


def _expected(
    products: Sequence[ir.Operation],
    rest: Absorbed,
    left: Sequence[ir.Operation],
    target: Device,
    fits: Callable[[ProductTile], bool],
) -> Expected:
    product = product_of(products[0])
    stored = -(-dtype_of(rest.result).storage_bits // 8)
    given = product.sizes, product.element_bytes, stored, target, len(products), product.has_groups
    kernel, tile = next((each for each in timed_tiles(*given) if fits(each[1])), (0.0, None))
    if tile is None:
        return Expected(reason=_NO_BOXES)
    if tile.is_swapped and min(product.m, product.n) > _FEW_ROWS and tile.rows * tile.columns > _SMALL_TILE:
        return Expected(reason=_EXCHANGED)
    if len(products) > 1 and not pays_joined(*given):
        return Expected(reason=_APART)
    library = sum(
        library_product_seconds(product.library_sizes, product.element_bytes, dtype_of(op.results[0]).bits // 8, target)
        for op in products
    )
    library += _kernel_seconds(products, rest, left, target)
    if product.has_groups:
        kernel += _copy_seconds(products, target)
    return Expected(kernel + _rest_seconds(rest, target), library)


def _copy_seconds(products: Sequence[ir.Operation], target: Device) -> float:
    """Return how long it takes to copy what a kernel reads, and a library where it is, as slices of several layers'."""
    read = dict.fromkeys(operand for op in products for operand in op.operands)
    return _to_move(2 * _bytes([each for each in read if copied_operand(each) is not None]), target)


def _rest_seconds(rest: Absorbed, target: Device) -> float:
    """Return how long the kernel of products takes for what follows: it is not hidden behind other tiles."""
    count, instructions = elements(rest.result), [OPERATIONS[op.name].instructions for op in rest.operations]
    seconds = _ISSUED * count * sum(instructions) / target.issue_rate + _to_move(_bytes(rest.read), target)
    if not is_short(instructions, [rest.result]):
        seconds += count * _SUM_BYTES / target.sm_count * HANDED_SECONDS_PER_BYTE
    return seconds


def _kernel_seconds(
    products: Sequence[ir.Operation], rest: Absorbed, left: Sequence[ir.Operation], target: Device
) -> float:
    """Return how long what follows takes, at least, if a library computes the products: a kernel of its own.

    Or nothing but what is read, where XLA fuses it into its products, or a kernel that runs anyway computes it.
    """
    read, written = _to_move(_bytes(rest.read), target), _to_move(byte_size(rest.result), target)
    if all(op in left for op in rest.operations) or not rest.by_xla:
        return read
    if rest.by_kernels:
        return read + written
    stored = _bytes([op.results[0] for op in products])
    return max(target.launch_seconds, read + written + _to_move(stored, target))


def _bytes(values: Sequence[ir.Value]) -> int:
    return sum(map(byte_size, values))


def _to_move(moved: int, target: Device) -> float:
    return moved / (target.memory_bandwidth * SHARE_OF_MEMORY)
