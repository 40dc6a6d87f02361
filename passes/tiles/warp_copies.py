"""Copies of an operand's tiles by all threads of a block, unit by unit, into buffers in shared memory."""

from dataclasses import replace

from xgpu import ir
from xgpu.dialects.attributes import EARLY, UNROLL
from xgpu.dialects.block import copies
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.block.tiles import TileOp
from xgpu.dialects.threads import PredicatedExtractOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp, LoopOp, YieldOp
from xgpu.emit.scalar.op import constant
from xgpu.indexing.affine import symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.row_tiles import ASYNC_BYTES, CHUNK_BYTES, RowTile
from xgpu.passes.llvm.memory import element_pointer, store
from xgpu.passes.support.arith_builder import constant as splat
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.structured import Values
from xgpu.passes.tiles.vectors import extract, insert
from xgpu.records import dataclass

_PAIR = 2


def operand_rows(tile: TileOp) -> RowTile:
    """Return the tile of an operand as threads copy it. Raises `CompilerError` for one that they cannot copy."""
    type_ = ir.RankedTensorType(tile.array.type)
    found = RowTile.of(tile.map, tuple(type_.shape), copies.element_bytes(type_.element_type))
    if isinstance(found, str):
        refuse(PASS, tile.operation, f"the tile cannot be copied by rows: {found}")
    return found


@dataclass(frozen=True)
class RowCopies:
    """The copies of an operand's tiles by all ``threads`` of a block, in units of so many bytes, into a ring.

    Units from 4 bytes on are copied asynchronously. Narrower ones, single elements, are loaded and, later, stored two
    by two. ``memory`` is the ring's first buffer.
    """

    rows: RowTile
    array: ir.Value
    unit: int
    threads: int
    memory: ir.Value

    @property
    def is_async(self) -> bool:
        """Whether threads do not wait for what they copy."""
        return self.unit in ASYNC_BYTES

    def buffer(self, slot: ir.Value) -> ir.Value:
        """Return where the tile of a slot is."""
        return offset(self.memory, ir.arith.muli(slot, i32(self.rows.shared.bytes)))

    def start(self, thread: ir.Value, at: Values, slot: ir.Value) -> None:
        """Start to copy a thread's units of a tile, asynchronously; ``at`` are the numbers of block and step."""
        buffer, source = self.buffer(slot), ArrayPointerOp.build(self.array)
        loop = self._loop(self.rows.shared.units(self.threads, self.unit), thread, [])
        with ir.InsertionPoint(loop.body):
            row, byte, *place = loop.result_arguments
            where = self.rows.source()
            # Where a unit is outside, nothing is read; the map of its address has no domain to rely on.
            position = ApplyIndexingOp.build(_position(where), [*at, row, byte])[0]
            from_ = element_pointer(source, self.element, _as_i64(position), inbounds=False)
            is_inside = self._is_inside(where, [*at, row, byte])
            valid = ir.arith.select(is_inside, i32(self.unit), i32(0))
            to = offset(buffer, address(place))
            copies.AsyncCopyOp.create([to, from_, valid], attributes={"bytes": self.unit})
            YieldOp.build([])

    def load(self, thread: ir.Value, at: Values) -> ir.Value:
        """Return a thread's elements of a tile, zeros where it is outside of the array."""
        units = self.rows.shared.units(self.threads, _PAIR * self.rows.size, _PAIR)
        numbered = replace(units, results=(*units.results[:2], symbol(0) * _PAIR + symbol(1)))
        count = _PAIR * units.symbols[0].size
        loop = self._loop(numbered, thread, [splat(0, ir.VectorType.get([count], self.element))])
        with ir.InsertionPoint(loop.body):
            row, byte, number = loop.result_arguments
            where = self.rows.source()
            variables = [*at, row, byte]
            indices = ApplyIndexingOp.build(replace(where, results=where.results[:-1]), variables)
            is_inside = self._is_inside(where, variables)
            element = PredicatedExtractOp.build(is_inside, constant(self.element, 0), self.array, indices)
            YieldOp.build([insert(element, loop.carried_arguments[0], number)])
        return loop.operation.results[0]

    def store(self, thread: ir.Value, loaded: ir.Value, slot: ir.Value) -> None:
        """Store what `load` returned into a slot."""
        buffer = self.buffer(slot)
        units = self.rows.shared.units(self.threads, _PAIR * self.rows.size)
        numbered = replace(units, results=(*units.results[2:], symbol(0) * _PAIR))
        loop = self._loop(numbered, thread, [])
        with ir.InsertionPoint(loop.body):
            *place, number = loop.result_arguments
            pair = splat(0, ir.VectorType.get([_PAIR], self.element))
            for neighbour in range(_PAIR):
                position = ir.arith.addi(number, create_index(neighbour))
                pair = insert(extract(loaded, position), pair, create_index(neighbour))
            store(pair, offset(buffer, address(place)), _PAIR * self.rows.size)
            YieldOp.build([])

    @property
    def element(self) -> ir.Type:
        """The type of its elements."""
        return ir.RankedTensorType(self.array.type).element_type

    def _loop(self, map_: IndexingMap, thread: ir.Value, inits: Values) -> LoopOp:
        loop = LoopOp.build(map_, [thread], inits)
        loop.operation.attributes[UNROLL] = ir.StringAttr.get(EARLY)
        return loop

    def _is_inside(self, where: IndexingMap, variables: Values) -> ir.Value:
        return InDomainOp.build(replace(where, results=()), variables)


def address(place: Values) -> ir.Value:
    """Return the byte that four numbers of a place stand for: ``first + (chunk xor turn) * 16 + rest``."""
    first, chunk, turn, rest = (as_i32(each) for each in place)
    turned = ir.arith.muli(ir.arith.xori(chunk, turn), i32(CHUNK_BYTES))
    return ir.arith.addi(ir.arith.addi(first, turned), rest)


def _position(where: IndexingMap) -> IndexingMap:
    return replace(where, results=where.results[-1:], constraints=()).with_simple_results()


def _as_i64(value: ir.Value) -> ir.Value:
    return ir.arith.index_cast(ir.IntegerType.get_signless(64), value)
