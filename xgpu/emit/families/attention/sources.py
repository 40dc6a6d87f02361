"""Tiles of a chain's operands in memory: the arrays that they are moved or gathered from, and the maps there."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.analysis.attention.places import PAD, number_of
from xgpu.analysis.attention.softmax import beyond
from xgpu.dialects.block.tiles import GatherTileOp, TileOp
from xgpu.emit.tile_program import TileProgram
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.affine import constant, dim
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.indexing.tiles.element_tiles import can_be_tiled, then
from xgpu.indexing.tiles.gathered_tiles import Gathered, gathered_view
from xgpu.indexing.tiles.product_maps import ROW_BYTES
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, element_of

LOOKUPS = frozenset(("stablehlo.gather", "stablehlo.dynamic_slice"))
"""The operations that read at indices which are in other arrays."""
_MOST_NUMBERS = 64
"""Values that numbers are computed of at most: each thread that copies computes them for itself."""
Arrays = Mapping[ir.Value, ir.Value]
"""The values that are in memory, each with what has it where code is written."""


@dataclass(frozen=True)
class TileSource:
    """The place of a tile in memory: a ``map`` leads to indices of an ``array``, also from ``numbers``.

    These are values of the chain, each at the place of its own map.
    """

    array: ir.Value
    map: IndexingMap
    numbers: tuple[tuple[ir.Value, IndexingMap], ...] = ()
    reads: tuple[IndexingMap, ...] = ()

    @classmethod
    def of(cls, value: ir.Value, map_: IndexingMap, arrays: Arrays) -> "TileSource | None":
        """Return that of a tile of ``value``, moved or gathered from one of ``arrays``; None if it is computed."""
        looked_up: TileSource | None = None
        while value not in arrays:
            op = defining_op(value)
            if op is not None and op.name in LOOKUPS and looked_up is None:
                looked_up = _looked_up(op, map_, arrays)
                moved = None if looked_up is None else (looked_up.array, looked_up.map)
            else:
                moved = _moved_once(value, map_, converts=False)
            if moved is None:
                return None
            value, map_ = moved
        return cls(value, map_) if looked_up is None else replace(looked_up, array=value, map=map_)

    def view(self) -> TensorView | str:
        """Return how tiles, or their parts that have the same numbers, are copied as boxes; or why they are not."""
        shape, size = shape_of(self.array), dtype_of(self.array).bits // 8
        if not self.numbers:
            return tensor_view(self.map, shape, size, ROW_BYTES)
        found = gathered_view(Gathered(self.map, self.reads, len(self.numbers)), shape, size, ROW_BYTES)
        return found if isinstance(found, str) else found[1]

    def read(self, arrays: dict[ir.Value, ir.Value], at: list[ir.Value]) -> ir.Value:
        """Write the tile at the numbers of block and step; ``arrays`` has the kernel's parameters."""
        array, element = arrays[self.array], element_of(self.array)
        if not self.numbers:
            return TileOp.build(array, at, self.map, element)
        program = TileProgram(at, arrays)
        numbers = [program.tile(value, map_) for value, map_ in self.numbers]
        return GatherTileOp.build(array, numbers, at, self.map, element)


def _looked_up(op: ir.Operation, map_: IndexingMap, arrays: Arrays) -> TileSource | None:
    """Return what a gather or a slice reads at which numbers; None if one is not computed element by element."""
    accessed = accesses(op)
    indices, clamps = list(map_.results), list[Interval]()
    numbers, reads = list[tuple[ir.Value, IndexingMap]](), list[IndexingMap]()
    for each in accessed[-1].runtime:
        if each.clamp.size == 1:
            indices.append(constant(each.clamp.lower))
            continue
        place = accessed[each.access]
        value = op.operands[place.operand]
        where = _within(map_.compose(place.map).with_simple_results(), shape_of(value))
        found = _reads(value, where, arrays)
        if found is None or each.clamp.lower:
            return None
        indices.append(dim(len(map_.dims) + len(numbers)))
        numbers.append((value, where))
        reads += found
        clamps.append(each.clamp)
    results = tuple(each.substitute(indices) for each in accessed[-1].map.results)
    moved = IndexingMap((*map_.dims, *clamps), map_.symbols, results, map_.constraints).with_simple_results()
    return TileSource(op.operands[accessed[-1].operand], moved, tuple(numbers), tuple(reads))


def _within(map_: IndexingMap, shape: Sequence[int]) -> IndexingMap:
    """Return a map to an array whose constraints are nothing but that indices are in it, where that is not known."""
    bounds = [(each, Interval(0, size - 1)) for each, size in zip(map_.results, shape, strict=True)]
    open_ = (
        (each, bound) for each, bound in bounds if not bound.contains_interval(each.interval(map_.dims, map_.symbols))
    )
    return replace(map_, constraints=tuple(open_))


def _reads(value: ir.Value, map_: IndexingMap, arrays: Container[ir.Value]) -> list[IndexingMap] | None:
    """Return where what a tile of numbers is made of is read in ``arrays``; None if that is not element by element."""
    found, pending, seen = list[IndexingMap](), [(value, map_)], set[tuple[ir.Value, IndexingMap]]()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        made, where = each
        op = None if made in arrays else defining_op(made)
        if made in arrays:
            found.append(where)
        elif op is None or not can_be_tiled(op) or len(seen) > _MOST_NUMBERS:
            return None
        else:
            pending += [(op.operands[access.operand], then(where, access.map)) for access in accesses(op)]
    return found


def is_read(value: ir.Value, map_: IndexingMap, arrays: Container[ir.Value]) -> bool:
    """Whether numbers are computed element by element of what is in memory."""
    return _reads(value, map_, arrays) is not None


def read_tile(value: ir.Value, map_: IndexingMap, arrays: dict[ir.Value, ir.Value], at: list[ir.Value]) -> ir.Value:
    """Write a tile of what is moved or gathered from one of ``arrays``, at the numbers of block and step."""
    source = TileSource.of(value, map_, arrays)
    assert source is not None
    return source.read(arrays, at)


def operand_view(value: ir.Value, map_: IndexingMap, arrays: Arrays) -> TensorView | str:
    """Return how tiles of a value are copied from the array in memory that it is moved from."""
    found = in_memory(value, map_, arrays)
    return "they are computed" if found is None else TileSource(*found).view()


def in_memory(
    value: ir.Value, map_: IndexingMap, arrays: Arrays, converts: bool = False
) -> tuple[ir.Value, IndexingMap] | None:
    """Return the one of ``arrays`` that a value is moved from, and the map of its tile; None if it is computed.

    If it ``converts``, what widens floats counts as a move. So does padding with zeros, as copies have it, if all of it
    is beyond the bounds of the tile.
    """
    while value not in arrays:
        moved = _moved_once(value, map_, converts)
        if moved is None:
            return None
        value, map_ = moved
    return value, map_


def _moved_once(value: ir.Value, map_: IndexingMap, converts: bool) -> tuple[ir.Value, IndexingMap] | None:
    """Return what the operation that makes a value moves it from, and the map there; None if it computes it."""
    op = defining_op(value)
    if op is None or (op.name == PAD and not _is_left_out(op, map_)):
        return None
    if op.name != PAD and (len(op.operands) != 1 or (op.name == "stablehlo.convert" and not converts)):
        return None
    return op.operands[0], _read(map_, op)


def _read(map_: IndexingMap, op: ir.Operation) -> IndexingMap:
    """Return the map of a tile of the first operand, from that of the result."""
    results = map_.compose(accesses(op)[0].map).results
    return IndexingMap(map_.dims, map_.symbols, results, map_.constraints).with_simple_results()


def _is_left_out(pad: ir.Operation, map_: IndexingMap) -> bool:
    """Whether padding is of zeros, which the constraints on a tile of the result leave out."""
    simplifier = Simplifier(map_.dims, map_.symbols)
    known = {(simplifier.simplify(each), bound) for each, bound in map_.constraints}
    return (
        number_of(pad.operands[1]) == 0
        and not any(integers(pad, "interior_padding"))
        and known >= set(beyond(pad, map_))
    )
