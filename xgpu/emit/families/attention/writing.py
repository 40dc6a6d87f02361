"""Shared parts of the emitters of chains: products of tiles, and the elements of results that threads write."""

from xgpu import ir
from xgpu.dialects.chain import CHAIN, returned
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.families.attention.schedule import ChainSchedule
from xgpu.emit.families.attention.tiles import FULL
from xgpu.emit.kernel_builder import KernelBuilder
from xgpu.hlo.stablehlo_builder import convert, hlo, tensor
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION
from xgpu.indexing.affine import constant, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.structure import body_of, element_of, users_of

MOVES = frozenset(("stablehlo.reshape", "stablehlo.transpose", "stablehlo.broadcast_in_dim"))
"""The operations that keep elements as they are."""
_ROW_LANES = 4
"""Lanes that hold a row together, of which the first one writes what there is of a row."""


def chain_arrays(fusion: Fusion, chain: ir.Operation, kernel: KernelBuilder) -> dict[ir.Value, ir.Value]:
    """Return the kernel's parameter for each argument of the region of a chain, the only operation of a fusion."""
    assert chain.name == CHAIN
    inputs: dict[ir.Value, ir.Value] = dict(zip(fusion.body.arguments, kernel.inputs, strict=True))
    given = zip(body_of(chain).arguments, chain.operands, strict=True)
    return {argument: inputs[operand] for argument, operand in given}


def stored_values(fusion: Fusion) -> list[ir.Value]:
    """Return what a fusion of one chain stores, as it is in the region."""
    (chain,) = fusion.heroes
    inside: dict[ir.Value, ir.Value] = dict(zip(chain.results, returned(chain), strict=True))
    return [inside[value] for value in fusion.results]


def tile_product(left: ir.Value, right: ir.Value, product: ir.Operation) -> ir.Value:
    """Return the product of two tiles, as precise as ``product``, in f32."""
    rows, columns = (ir.RankedTensorType(each.type).shape[number] for number, each in enumerate((left, right)))
    described = {}
    if element_of(product.operands[0]) == element_of(left):
        described = {name: product.attributes[name] for name in (PRECISION, ALGORITHM) if name in product.attributes}
    described["dot_dimension_numbers"] = ir.stablehlo.DotDimensionNumbers.get([], [], [1], [0])
    type_ = tensor([rows, columns], FULL)
    return ir.Operation.create("stablehlo.dot_general", [type_], [left, right], described).results[0]


def as_rounded(made: ir.Value, result: ir.Value) -> ir.Value:
    """Return the tile of a product as the program has its ``result``, unless that is rounded only to be widened.

    XLA takes such numbers as they were before.
    """
    return made if _is_only_widened(result) else convert(made, element_of(result))


def _is_only_widened(value: ir.Value) -> bool:
    """Whether f32 is made of all elements, before or after they are moved."""
    return all(
        isinstance(element_of(user.results[0]), ir.F32Type)
        if user.name == "stablehlo.convert"
        else user.name in MOVES and _is_only_widened(user.results[0])
        for user in users_of(value)
    )


def compare(direction: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Return where a comparison of two tiles holds."""
    result: ir.Value = hlo.compare(left, right, hlo.ComparisonDirectionAttr.get(direction))
    return result


def written_by_threads(
    schedule: ChainSchedule, stored: IndexingMap, grid: tuple[int, int, int], is_paired: bool
) -> IndexingMap:
    """Return (thread, block)[tile, and the thread's elements of it] -> indices, given the map of tiles of a result.

    Tiles are computed in pairs or one after the other. A result of rows has one element for each. If each step has a
    tile of its own, its number comes last.
    """
    threads, blocks = LaunchDimensions.along_x(schedule.blocks, schedule.threads).ranges
    is_of_rows = len(stored.symbols) == 1
    holders = schedule.holders(8 if is_of_rows else stored.symbols[1].size)
    own = holders.accumulators
    order = _paired(grid, schedule.blocks) if is_paired else _in_turn(grid, schedule.blocks)
    first = len(order.symbols)
    row, column, _ = (each.substitute(None, [symbol(first + i) for i in range(3)]) for each in own.results)
    row = row + holders.first_row(0)
    steps = stored.dims[len(order.results) :]
    number = [symbol(first + len(own.symbols)) for _ in steps]
    block = [*(each.substitute([dim(1)]) for each in order.results), *number]
    bounds = [(each.substitute(block, [row, column]), bound) for each, bound in stored.constraints]
    bounds += [(each.substitute([dim(1)]), bound) for each, bound in order.constraints]
    bounds.append((dim(0), Interval(0, holders.threads - 1)))
    results = tuple(each.substitute(block, [row, column]) for each in stored.results)
    symbols = (*order.symbols, *own.symbols, *steps)
    if is_of_rows:
        bounds.append((dim(0) % _ROW_LANES, Interval(0, 0)))
        symbols = (*order.symbols, own.symbols[0])
    return IndexingMap((threads, blocks), symbols, results, tuple(bounds)).simplify()


def _in_turn(grid: tuple[int, int, int], blocks: int) -> IndexingMap:
    """Return (block)[tile of the block] -> (matrix, row of tiles, 0)."""
    batch, rows, _ = grid
    number, count = dim(0) + symbol(0) * blocks, batch * rows
    symbols = (Interval(0, -(-count // blocks) - 1),)
    results = (number // rows, number % rows, constant(0))
    return IndexingMap((Interval(0, blocks - 1),), symbols, results, ((number, Interval(0, count - 1)),))


def _paired(grid: tuple[int, int, int], blocks: int) -> IndexingMap:
    """Return (block)[pair of the block, which of the pair, row of tiles] -> (matrix, row of tiles, 0).

    The first of a pair is as far from the end as the second is from the begin, which constraints say.
    """
    batch, rows, _ = grid
    pairs = -(-rows // 2)
    number, half, row = dim(0) + symbol(0) * blocks, symbol(1), symbol(2)
    near, far = row - number % pairs, row + number % pairs - (rows - 1)
    count = Interval(0, batch * pairs - 1)
    symbols = (Interval(0, -(-count.size // blocks) - 1), Interval(0, 1), Interval(0, rows - 1))
    # Whichever half it is, one of the differences is zero; the other one is anything between -rows and rows.
    bounds = (
        (number, count),
        (far - half * rows, Interval(-2 * rows, 0)),
        (far + half * rows, Interval(0, 2 * rows)),
        (near + half * rows, Interval(-rows, rows)),
        (near - half * rows, Interval(-rows, rows)),
        (number % pairs * 2 + half, Interval(0, rows - 1)),
    )
    return IndexingMap((Interval(0, blocks - 1),), symbols, (number // pairs, row, constant(0)), bounds)
