"""The pass `expand-sorts`."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.hlo.chlo import TOP_K
from xgpu.hlo.stablehlo_builder import Value, hlo, reshape, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.prepare.sorting.elements import SortedRows, SortOrder
from xgpu.passes.prepare.sorting.merges import places_in_merged
from xgpu.passes.prepare.sorting.orders import SORT, numbered, order_of_largest, order_of_sort
from xgpu.passes.prepare.sorting.ranks import places_in_tiles
from xgpu.records import dataclass
from xgpu.structure import replace_op

_LONGEST = 4096
"""Elements of the longest row that may be a tile by itself."""
_TILES = (64, 128, 256, 512, 1024)
_MERGE, _MERGED_ELEMENT = 1 << 22, 64
"""The cost of a merge, and of each of its elements, in comparisons of a tile: its launches, and steps of bisections."""
_MOST_POSITIONS = (1 << 31) - 1


@dataclass(frozen=True)
class ExpandSorts(OperationRewrite):
    """Writes sorts, and searches for the largest elements, as operations that kernels compute.

    Only for ``runs=launches``, where there is nothing else that sorts. The place of an element in its row is the number
    of elements that come before it: each is compared with all, by one reduction. A longer row is sorted in tiles, and
    its runs are merged two by two: the place of an element is that in its own run and, by bisection, the number of
    elements of the other run that come before it. Sorts are stable. Regions that do more than look at single elements
    stay. Needs: nothing. Run it before whatever decides about loops.

    ```mlir
    %r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({ stablehlo.compare LT, ... }) : (tensor<64xf32>) -> ...
    ```
    becomes
    ```mlir
    %precedes = ...    // tensor<64x64xi1>, of %x along either dimension
    %places = stablehlo.reduce(...) applies stablehlo.add across dimensions = [1] : ... -> tensor<64xi32>
    %order = "stablehlo.scatter"(%zeros, %places, %iota) ...
    %r = "stablehlo.gather"(%x, %order) ...
    ```
    """

    NAME: ClassVar[str] = "expand-sorts"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SORT, TOP_K))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of the program."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a sort."""
        sizes = [prod(shape_of(value)) for value in (*op.operands, *op.results)]
        if self.runs != "launches" or 0 in sizes or max(sizes) > _MOST_POSITIONS:
            return
        if op.name == TOP_K:
            replace_op(op, _largest(op))
            return
        if (order := order_of_sort(op)) is not None:
            axis = ir.IntegerAttr(op.attributes["dimension"]).value
            replace_op(op, _sorted(list(op.operands), axis, order))


def _largest(op: ir.Operation) -> list[Value]:
    """Return the largest elements of rows, and where they are."""
    shape = shape_of(op.operands[0])
    limits = [*shape[:-1], shape_of(op.results[0])[-1]]
    result = _sorted(numbered(op), len(shape) - 1, order_of_largest(op))
    return [hlo.slice(each, [0] * len(shape), limits, [1] * len(shape)) for each in result]


def _sorted(operands: list[Value], axis: int, order: SortOrder) -> list[Value]:
    """Return operands of one shape sorted along a dimension."""
    shape = shape_of(operands[0])
    rows = SortedRows(prod(shape) // shape[axis], shape[axis])
    apart = [*(each for each in range(len(shape)) if each != axis), axis]
    arrays = [reshape(_turned(each, apart), [rows.length]) for each in operands]
    tile = _tile(rows)

    def keys() -> list[Value]:
        return [arrays[number] for number in order.keys]

    arrays = rows.moved(arrays, places_in_tiles(keys(), rows, tile, order))
    while tile < rows.size:
        arrays = rows.moved(arrays, places_in_merged(keys(), rows, tile, order))
        tile *= 2
    back = [apart.index(each) for each in range(len(shape))]
    return [_turned(reshape(each, [shape[number] for number in apart]), back) for each in arrays]


def _tile(rows: SortedRows) -> int:
    """Return the elements of a tile with which a sort takes the fewest comparisons, those that merges cost included."""
    whole = (rows.size,) if rows.size <= _LONGEST else ()

    def work(tile: int) -> int:
        merges = (-(-rows.size // tile) - 1).bit_length()
        return rows.length * tile + merges * (_MERGE + _MERGED_ELEMENT * rows.length)

    return min((*(tile for tile in _TILES if tile < rows.size), *whole), key=work)


def _turned(value: Value, order: Sequence[int]) -> Value:
    return value if list(order) == sorted(order) else hlo.transpose(value, list(order))
