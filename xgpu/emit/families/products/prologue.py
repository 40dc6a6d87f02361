"""The operand of a product that its kernel computes on its way from memory, as the program marks it."""

from dataclasses import replace

from xgpu import ir
from xgpu.analysis.heroes import is_hero
from xgpu.costs.products.products import COMPUTED_TILES, Computing, least_seconds
from xgpu.costs.values import byte_size, elements, instructions
from xgpu.device import Device
from xgpu.fusion.grouping.prologues import computed_operand
from xgpu.fusion.widened_operands import is_of_xla
from xgpu.hlo.chlo import RAGGED
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.tensor_cores import ALGORITHM
from xgpu.indexing.tiles.product_maps import Product
from xgpu.indexing.tiles.prologues import Prologue
from xgpu.indexing.tiles.ragged_maps import product_of
from xgpu.structure import dtype_of, is_argument, producer, users_of

_BITS = 16
"""Bits of the elements of operands that threads hold in registers as the instruction takes them."""
_COPIED = 3
"""The number of times that a computed array is moved: a kernel reads and writes it before it is read."""


def marked_product(op: ir.Operation) -> Product:
    """Return a product as matrices, with the prologue that it is marked with if the operand is computed."""
    product = product_of(op)
    number = computed_operand(op)
    if number is None or op.name == RAGGED:
        return product
    found = Prologue.of(op, number)
    return replace(product, prologue=found) if isinstance(found, Prologue) else product


def tiled(product: Product) -> Product:
    """Return a product with its operands in the order in which blocks multiply them: a computed one is the left one."""
    return product if product.prologue is None else replace(product, is_swapped=bool(product.prologue.number))


def computed_product(op: ir.Operation) -> Product | None:
    """Return a product with an operand that its kernel can compute on its way; None if there is none.

    Nothing else reads what is computed of as many elements as the operand has: that would be done twice.
    """
    if op.name == RAGGED or ALGORITHM in op.attributes:
        return None
    for number in (1, 0):
        found = Prologue.of(op, number)
        if isinstance(found, str) or not _is_read_once(op, found):
            continue
        product = tiled(replace(product_of(op), prologue=found))
        if product.dtype.bits == _BITS and product.problem() is None:
            return product
    return None


def _is_read_once(op: ir.Operation, prologue: Prologue) -> bool:
    own = {*prologue.operations, op}
    size = elements(op.operands[prologue.number])
    large = [each for each in _computed(prologue) if elements(each.results[0]) == size]
    return all(user in own for each in large for user in users_of(each.results[0]))


def _computed(prologue: Prologue) -> list[ir.Operation]:
    """Return the operations that are work: the others lead to elements of arrays."""
    return [each for each in prologue.operations if OPERATIONS[each.name].kind == "elementwise"]


def computing(product: Product) -> Computing:
    """Return what it takes to compute the operand of a product, whose operands are as blocks multiply them."""
    prologue = product.prologue
    assert prologue is not None
    size = elements(product.op.operands[prologue.number])
    executed = sum(instructions(each) * elements(each.results[0]) / size for each in _computed(prologue))
    read = sum(map(_moved, (prologue.array, *prologue.others)))
    return Computing(product.sizes, prologue.bits, product.element_bytes, executed, read)


def _moved(array: ir.Value) -> int:
    """Return the bytes that are moved until a kernel has read an array."""
    is_stored = is_argument(array) or is_of_xla(producer(array)) or is_hero(producer(array))
    return byte_size(array) * (1 if is_stored else _COPIED)


def best_tile(product: Product, result_bytes: int, target: Device) -> tuple[float, int]:
    """Return how long the kernel of a product takes whose operand it computes, in the best tile, and its rows.

    Where several take the same time, it is the first.
    """
    work = computing(product)
    steps = -(-product.k // product.step)
    timed = [
        (work.kernel_seconds(tile, result_bytes, target), tile.rows) for tile in COMPUTED_TILES if tile.split <= steps
    ]
    return min(timed, key=lambda each: each[0])


def is_better_computed(product: Product, target: Device) -> bool:
    """Whether to compute an operand as it is multiplied takes less time than to store it first, by kernels of ours."""
    result_bytes = -(-dtype_of(product.op.results[0]).storage_bits // 8)
    apart = least_seconds(product_of(product.op).sizes, product.element_bytes, result_bytes, target)
    return best_tile(product, result_bytes, target)[0] < apart + computing(product).store_seconds(target)
